"""Which engine trains: the rule of "auto", and what the user asks for."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from typing import Any

import pytest

from castlereg.regularizers import DeepLasso, Regularizer, Tangos
from castlereg.training import engines, train
from castlereg.training.engines import all_names, engine_for, native
from castlereg.training.state import Setup
from tests.training.cases import members, plan, table


def setup(engine: Any = "auto", sizes: tuple[int, ...] = (5,), n: int = 2) -> Setup:
    return Setup(table(), members(n), plan(sizes, engine=engine))


@pytest.fixture
def kernels(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Have kernels that support every stack."""
    monkeypatch.setattr(native, "why_not_covered", lambda setup: None)
    monkeypatch.setattr(native, "is_faster", lambda setup: True)
    monkeypatch.setattr(engines, "has_accelerator", lambda: False)
    return monkeypatch


def test_a_single_large_network_is_faster_on_jax() -> None:
    """JAX shares its products among the cores; the native engine trains one of several networks on each core."""
    assert native.is_faster(setup(n=1))
    assert not native.is_faster(setup(sizes=(2000, 2000), n=1))
    assert native.is_faster(setup(sizes=(2000, 2000), n=2))


def test_auto_is_native_where_it_supports_the_stack_and_is_faster(kernels: pytest.MonkeyPatch) -> None:
    assert engine_for(setup()).name == "native"
    assert engine_for(setup("jax")).name == "jax"
    with kernels.context() as patch:
        patch.setattr(native, "is_faster", lambda setup: False)
        assert engine_for(setup()).name == "jax"
        assert engine_for(setup("native")).name == "native"
    with kernels.context() as patch:
        patch.setattr(native, "why_not_covered", lambda setup: "batch norm")
        assert engine_for(setup()).name == "jax"
        with pytest.raises(ValueError, match=r"cannot train these networks \(batch norm\); use engine='auto'"):
            engine_for(setup("native"))
    kernels.setattr(engines, "has_accelerator", lambda: True)
    assert engine_for(setup()).name == "jax"
    assert engine_for(setup("native")).name == "native"


@pytest.mark.parametrize("regularizer", [DeepLasso(), Tangos()])
def test_regularizers_that_the_kernels_do_not_have_train_on_jax(
    regularizer: Regularizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(native, "kernels", object)
    plain, given = (
        Setup(table(), [replace(member, regularizers=chosen) for member in members(2)], plan((5,), engine="auto"))
        for chosen in ((), (regularizer,))
    )
    assert native.why_not_covered(plain) is None
    assert native.why_not_covered(given) == f"{type(regularizer).__name__} is not supported"
    assert train(given.encoded, given.members, given.plan).engine == "jax"


def test_the_native_engine_does_not_start_jax() -> None:
    pytest.importorskip("castlereg_kernels")
    code = """
from castlereg.forks import has_started
from castlereg.training import train
from tests.training.cases import members, plan, table

for engine in ("auto", "native"):
    assert train(table(), members(2, features_per_step=2), plan((5,), engine=engine)).engine == "native"
assert not has_started()
"""
    environment = {**os.environ, "JAX_PLATFORMS": "cpu"}
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True, env=environment)


def test_a_model_without_training_adds_no_name() -> None:
    assert all_names(["", "native"]) == "native"
    assert all_names(["native", "jax", "native"]) == all_names(["jax, native", "jax"]) == "jax, native"
