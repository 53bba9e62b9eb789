"""Which engine trains: the rule of "auto", what the user asks for, and what a model says of it afterwards."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import castlereg
from castlereg import (
    CastleMultiOutput,
    CastleRegressor,
    CastleRegressorCV,
    NetworkRegressor,
    Recipe,
    use_devices,
)
from castlereg.regularizers import DeepLasso, Regularizer, Tangos
from castlereg.training import TrainedStack, train
from castlereg.training.engines import accelerators, choice, native
from castlereg.training.engines.choice import engine_for
from castlereg.training.engines.jax_engine import JaxEngine
from castlereg.training.setup import Setup
from tests.training.cases import assert_same, members, plan, stack_of, table
from tests.training.engines.stand_in import StandIn

rng = np.random.default_rng(0)
X = rng.normal(size=(60, 3))
y = X[:, 0] + 0.1 * rng.normal(size=60)


def setup(engine: Any = "auto") -> Setup:
    return stack_of(table(), members(2), plan((5,), engine=engine)).setup


@pytest.fixture
def kernels(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Have kernels that cover every stack."""
    monkeypatch.setattr(native, "why_not_covered", lambda setup: None)
    monkeypatch.setattr(native, "is_faster", lambda setup: True)
    monkeypatch.setattr(native, "NativeEngine", StandIn)
    monkeypatch.setattr(choice, "has_accelerator", lambda: False)
    return monkeypatch


def test_a_single_large_network_is_faster_on_jax() -> None:
    """JAX shares its products among the cores; of several networks, both engines train one on each core."""
    small, large = plan((5,)), plan((2000, 2000))
    assert native.is_faster(stack_of(table(), members(1), small).setup)
    assert not native.is_faster(stack_of(table(), members(1), large).setup)
    assert native.is_faster(stack_of(table(), members(2), large).setup)


def test_auto_is_native_where_it_covers_the_stack_and_is_faster(kernels: pytest.MonkeyPatch) -> None:
    assert engine_for(setup()).name == "native"
    assert engine_for(setup(), in_memory=False).name == "jax"
    kernels.setattr(native, "is_faster", lambda setup: False)
    assert engine_for(setup()).name == "jax"
    assert engine_for(setup("native")).name == "native"
    kernels.setattr(native, "why_not_covered", lambda setup: "batch norm")
    kernels.setattr(native, "is_faster", lambda setup: True)
    assert engine_for(setup()).name == "jax"


def test_auto_is_jax_where_the_user_has_chosen_devices_or_has_an_accelerator(kernels: pytest.MonkeyPatch) -> None:
    with use_devices(1):
        assert engine_for(setup()).name == "jax"
        assert engine_for(setup("native")).name == "native"
        with use_devices():
            assert engine_for(setup()).name == "native"
    with jax.default_device(jax.devices()[0]):
        assert engine_for(setup()).name == "jax"
    kernels.setattr(choice, "has_accelerator", lambda: True)
    assert engine_for(setup()).name == "jax"
    assert engine_for(setup("native")).name == "native"


@pytest.mark.parametrize("regularizer", [DeepLasso(), Tangos()])
def test_regularizers_that_the_kernels_do_not_have_train_on_jax(
    regularizer: Regularizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(native, "kernels", object)
    monkeypatch.setattr(choice, "has_accelerator", lambda: False)
    plain = stack_of(table(), [replace(one, regularizers=()) for one in members(2)], plan((5,))).setup
    assert native.why_not_covered(plain) is None
    given = stack_of(table(), [replace(one, regularizers=(regularizer,)) for one in members(2)], plan((5,))).setup
    assert native.why_not_covered(given) == f"{type(regularizer).__name__} is not supported"
    assert engine_for(given).name == "jax"
    assert NetworkRegressor([regularizer], max_epochs=2).fit(X, y).engine_ == "jax"


def test_jax_is_jax(kernels: pytest.MonkeyPatch) -> None:
    assert isinstance(engine_for(setup("jax")), JaxEngine)


def test_native_where_it_does_not_apply_is_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(native, "why_not_covered", lambda setup: "batch norm")
    message = r"engine='native' cannot train these networks \({}\); use engine='auto', which trains them with JAX"
    recipe = Recipe(engine="native")
    with pytest.raises(ValueError, match=message.format("batch norm")):
        CastleRegressor(recipe=recipe, max_epochs=2).fit(X, y)
    path = tmp_path / "rows.csv"
    np.savetxt(path, np.column_stack([X, y]), delimiter=",", header="a,b,c,y", comments="")
    with pytest.raises(ValueError, match=message.format("rows are read from a file in chunks")):
        CastleRegressor(recipe=recipe, max_epochs=2).fit_file(path, "y")
    with pytest.raises(ValueError, match="engine"):
        Recipe(engine="torch")  # type: ignore[arg-type]


def test_joined_stacks_name_all_their_engines() -> None:
    ours = train(table(), members(2), plan((5,), epochs=2))
    other = replace(ours, engine="native")
    assert ours.engine == TrainedStack.joined([ours, ours]).engine == "jax"
    both = TrainedStack.joined([other, ours])
    assert both.engine == TrainedStack.joined([both, other]).engine == both.take(np.array([0])).engine == "jax, native"
    assert_same(both.take(np.array([0, 1])), ours)


PARTS: dict[str, Callable[[Recipe], Any]] = {
    "plain": lambda recipe: NetworkRegressor(recipe=recipe, max_epochs=2).fit(X, y),
    "castle": lambda recipe: CastleRegressor(recipe=recipe, max_epochs=2).fit(X, y),
    "refit": lambda recipe: CastleRegressor(recipe=replace(recipe, refit=True), max_epochs=2).fit(X, y),
    "several targets": lambda recipe: CastleMultiOutput(recipe=recipe, max_epochs=2).fit(X, np.column_stack([y, -y])),
    "grid": lambda recipe: CastleRegressorCV(recipe=recipe, search="paper", cv=2, max_epochs=2).fit(X, y),
    "pool": lambda recipe: CastleRegressorCV(recipe=recipe, search="fast", cv=2, time_limit=1e-3).fit(X, y),
    "partial_fit": lambda recipe: CastleRegressor(recipe=recipe).partial_fit(X, y),
}


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning", "ignore::castlereg.FitWarning")
def test_a_model_knows_what_trained_it_and_so_does_its_file(
    part: str, kernels: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for engine in ("native", "jax") if part in ("plain", "refit", "partial_fit") else ("native",):
        model = PARTS[part](Recipe(engine=engine))  # type: ignore[arg-type]
        assert model.engine_ == engine
        castlereg.save(model, tmp_path / engine)
        assert castlereg.load(tmp_path / engine).engine_ == engine


@pytest.mark.usefixtures("kernels")
def test_networks_that_two_engines_trained_in_turn_name_both() -> None:
    model = CastleRegressor(recipe=Recipe(engine="native")).partial_fit(X, y)
    assert model.set_params(recipe=Recipe(engine="jax")).partial_fit(X, y).engine_ == "jax, native"


def test_an_engine_does_not_make_a_pool_a_grid() -> None:
    assert CastleRegressorCV(recipe=Recipe(engine="jax"))._has_pool
    assert not CastleRegressorCV(recipe=Recipe(engine="jax", patience=3))._has_pool


def test_the_native_engine_does_not_start_jax() -> None:
    code = """
import numpy as np
from castlereg import CastleClassifier, CastleRegressor, Recipe
from castlereg.forks import has_started
from castlereg.training.engines import native
from tests.training.engines.stand_in import StandIn
from tests.training.engines.test_choice import X, y

native.why_not_covered, native.is_faster, native.NativeEngine = lambda setup: None, lambda setup: True, StandIn
for recipe in (None, Recipe(refit=True)):
    model = CastleRegressor(recipe=recipe, max_epochs=2, n_members=2).fit(X, y)
    assert model.engine_ == "native"
    model.predict(X)
CastleClassifier(max_epochs=2, objective="graph").fit(X, y > 0).predict(X)
CastleRegressor().partial_fit(X, y)
assert not has_started()
"""
    environment = {**os.environ, "JAX_PLATFORMS": "cpu"}
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True, env=environment)


class _Config:
    def __init__(self, platforms: str | None) -> None:
        self.jax_platforms = platforms


@pytest.mark.parametrize(
    ("platforms", "plugin", "backend", "asked", "expected"),
    [
        (None, False, "gpu", False, False),
        ("cpu", True, "gpu", False, False),
        (None, True, "gpu", True, True),
        (None, True, "cpu", True, False),  # a plugin without its hardware
        ("cuda", False, "gpu", True, True),
    ],
)
def test_jax_is_only_asked_where_it_may_have_an_accelerator(
    platforms: str | None,
    plugin: bool,
    backend: str,
    asked: bool,
    expected: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    questions = []

    def default_backend() -> str:
        questions.append(True)
        return backend

    monkeypatch.setattr(accelerators, "has_started", lambda: False)
    monkeypatch.setattr(accelerators, "_has_plugin", lambda: plugin)
    monkeypatch.setattr(accelerators.jax, "config", _Config(platforms))
    monkeypatch.setattr(accelerators, "prepare_jax", lambda: None)
    monkeypatch.setattr(accelerators.jax, "default_backend", default_backend)
    assert accelerators.has_accelerator() == expected
    assert bool(questions) == asked


def test_plugins_are_found_by_their_entry_points(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[Any] = []
    for name in ("PJRT_NAMES_AND_LIBRARY_PATHS", "TPU_LIBRARY_PATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(accelerators, "find_spec", lambda name: None)
    monkeypatch.setattr(accelerators, "entry_points", lambda group: found if group == "jax_plugins" else [1])
    assert not accelerators._has_plugin.__wrapped__()
    found.append("cuda12")
    assert accelerators._has_plugin.__wrapped__()


def test_a_model_without_training_adds_no_name() -> None:
    assert choice.all_names(["", "native"]) == "native"
