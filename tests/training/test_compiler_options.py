"""How programs are compiled, by their size."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jax
import numpy as np
import pytest

from castlereg import CastleRegressor, Recipe, use_devices
from castlereg.training import devices, program


@pytest.fixture(autouse=True)
def _asked_anew() -> Iterator[None]:
    devices._quick_options.cache_clear()
    yield
    devices._quick_options.cache_clear()


def mesh() -> jax.sharding.Mesh:
    with use_devices(1):
        return devices.training_mesh(1)


def test_quick_programs_leave_out_what_takes_long_to_compile() -> None:
    assert "xla_cpu_use_fusion_emitters" not in devices.compiler_options(mesh())
    assert devices.compiler_options(mesh(), quick=True)["xla_cpu_use_fusion_emitters"] is False


def test_an_option_that_xla_does_not_know_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "_QUICK", {"xla_cpu_no_such_option": False})
    assert devices.compiler_options(mesh(), quick=True) == devices.compiler_options(mesh())


@pytest.mark.parametrize(
    ("n_rows", "n_features", "sizes", "quick"),
    [
        (60, 5, "auto", True),
        (60, 20, "auto", False),
        (60, 5, (40,), False),
        (60, 5, (), True),
        (20_001, 2, (2,), False),
    ],
)
def test_small_tables_and_networks_are_quick(
    n_rows: int, n_features: int, sizes: Any, quick: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def options(mesh: jax.sharding.Mesh, *, quick: bool) -> dict[str, bool]:
        asked.append(quick)
        return {}

    monkeypatch.setattr(program, "compiler_options", options)
    program.compiled.cache_clear()
    X = np.random.default_rng(0).standard_normal((n_rows, n_features))
    recipe = Recipe(engine="jax")
    CastleRegressor(hidden_layer_sizes=sizes, recipe=recipe, max_epochs=1, random_state=0).fit(X, X[:, 0])
    assert asked == [quick]
