"""Structural models in other packages: the same graph, and the same answers where they can be had."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pandas as pd
import pytest

from castlereg.causal import CausalGraph, FittedWorld, KnownWorld, StructuralModel
from castlereg.causal.variables import Variable, Variables

ARROWS = {("a", "b"): 1.0, ("a", "d"): -1.0, ("b", "c"): 1.5, ("b", "d"): 1.0, ("c", "d"): 1.0}


def world(function: str = "sine", categorical: dict[str, int] | None = None) -> KnownWorld:
    dag = pd.DataFrame(0.0, index=list("cabd"), columns=list("cabd"))  # not in causal order
    for edge, weight in ARROWS.items():
        dag.loc[edge] = weight
    return KnownWorld(dag, function=function, noise_std=0.5, categorical=categorical or {}, random_state=1)


def fitted(known: KnownWorld, n_rows: int = 2000, weight: Any = None) -> FittedWorld:
    rows = known.sample(n_rows, random_state=0)
    table = Variables.of_frame(rows, weight=weight)
    return FittedWorld.fit(table, known.graph("d"), is_graph_given=True, n_draws=0)


WORLDS = [world(), world(categorical={"a": 3, "c": 2}), fitted(world()), fitted(world(categorical={"a": 3, "c": 2}))]


# --- networkx ---------------------------------------------------------------------------------------


def test_networkx_has_nodes_and_edges_with_what_is_known_of_them() -> None:
    model = fitted(world(categorical={"a": 3}))
    graph = model.to_networkx()
    assert set(graph.edges) == set(ARROWS)
    assert graph.nodes["d"]["parents"] == ["c", "a", "b"]
    assert graph.nodes["d"]["target"]
    assert [graph.nodes[name]["kind"] for name in "abcd"] == ["3 levels", "numbers", "numbers", "numbers"]
    explained = model.to_frame().set_index("column")["explained"]
    assert {name: graph.nodes[name]["explained"] for name in graph} == explained.to_dict()
    assert graph.edges["b", "c"] == {"weight": 1.5, "confidence": 1.0, "direction": 1.0}


@pytest.mark.parametrize("model", [world(), fitted(world())])
def test_columns_that_are_held_have_no_causes(model: StructuralModel) -> None:
    graph = model.do(b=0.5).to_networkx()
    assert graph.nodes["b"]["parents"] == []
    assert graph.nodes["b"]["held"] == 0.5
    assert set(graph.edges) == set(ARROWS) - {("a", "b")}


# --- without the packages ---------------------------------------------------------------------------


@pytest.mark.parametrize("package", ["dowhy", "pgmpy"])
def test_a_missing_package_is_named(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError, match=f"pip install {package}"):
        getattr(world(), f"to_{package}")()


# --- DoWhy ------------------------------------------------------------------------------------------


def dowhy_samples(model: StructuralModel, do: dict[str, Any], n_rows: int = 20_000) -> pd.DataFrame:
    gcm = pytest.importorskip("dowhy.gcm", exc_type=ImportError)
    gcm.util.general.set_random_seed(0)
    interventions = {name: lambda _, value=value: value for name, value in do.items()}
    return gcm.interventional_samples(model.to_dowhy(), interventions, num_samples_to_draw=n_rows)


@pytest.mark.parametrize("model", WORLDS)
@pytest.mark.parametrize("do", [{"b": 1.0}, {"b": -1.0}, {"a": 1.0}, {"c": 0.0, "b": 0.5}])
def test_dowhy_samples_what_we_sample(model: StructuralModel, do: dict[str, Any]) -> None:
    levels = {v.name: v.levels for v in model.variables if v.levels is not None}
    do = {name: levels[name][int(value)] if name in levels else value for name, value in do.items()}
    theirs = dowhy_samples(model, do)
    own = model.sample(20_000, random_state=1, do=do)
    for name in model.names:
        for level in levels.get(name, (None,)):
            x, y = (rows[name] if level is None else rows[name].astype(str) == level for rows in (theirs, own))
            error = np.sqrt(x.astype(float).var() / len(x) + y.astype(float).var() / len(y))
            assert abs(x.mean() - y.mean()) <= 4.5 * error + 1e-12, name


@pytest.mark.parametrize("model", [world(), fitted(world())])
def test_dowhy_finds_the_same_counterfactuals(model: StructuralModel) -> None:
    gcm = pytest.importorskip("dowhy.gcm", exc_type=ImportError)
    rows = world().sample(50, random_state=5)
    theirs = gcm.counterfactual_samples(model.to_dowhy(), {"b": lambda _: 1.0}, observed_data=rows)
    own = model.counterfactual(rows, {"b": 1.0})
    np.testing.assert_allclose(theirs[model.names], own, atol=1e-9)


def test_dowhy_keeps_our_equations_when_it_fits() -> None:
    gcm = pytest.importorskip("dowhy.gcm", exc_type=ImportError)
    model = fitted(world())
    handed, X = model.to_dowhy(), np.random.default_rng(0).normal(size=(10, 3))
    before = handed.causal_mechanism("d").prediction_model.predict(X)
    gcm.fit(handed, model.sample(100, random_state=0))
    assert np.array_equal(handed.causal_mechanism("d").prediction_model.predict(X), before)


def test_rows_of_large_weight_come_more_often_in_dowhy() -> None:
    pytest.importorskip("dowhy.gcm", exc_type=ImportError)
    weight = np.repeat([1.0, 3.0], 1000)
    model = fitted(world(), weight=weight)
    values = model.population.values[model.names.index("a")]
    drawn = model.to_dowhy().causal_mechanism("a").data
    assert drawn.mean() == pytest.approx(np.average(values, weights=weight), abs=0.01)


def test_dowhy_has_columns_that_are_held_at_their_value() -> None:
    theirs = dowhy_samples(world(categorical={"a": 3}).do(b=0.5, a="L1"), {"c": 1.0}, 100)
    assert set(theirs["a"]) == {"L1"}
    assert set(theirs["b"]) == {0.5}


# --- pgmpy ------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore")  # of pgmpy
def test_pgmpy_infers_what_we_count() -> None:
    inference = pytest.importorskip("pgmpy.inference", exc_type=ImportError)
    model = fitted(world(categorical=dict.fromkeys("abcd", 2) | {"a": 3}))
    network = model.to_pgmpy()
    assert network.check_model()
    marginal = inference.VariableElimination(network).query(["d"], evidence={"a": "L2"}, show_progress=False)
    rows = model.sample(100_000, random_state=0)
    share = (rows.loc[rows["a"] == "L2", "d"] == "L1").mean()
    assert marginal.get_value(d="L1") == pytest.approx(share, abs=0.01)
    held = inference.VariableElimination(model.do(b="L1").to_pgmpy()).query(["d"], show_progress=False)
    share = (model.sample(100_000, random_state=0, do={"b": "L1"})["d"] == "L1").mean()
    assert held.get_value(d="L1") == pytest.approx(share, abs=0.01)


@pytest.mark.filterwarnings("ignore")  # of pgmpy
def test_pgmpy_has_the_graph_of_numbers() -> None:
    pytest.importorskip("pgmpy.base", exc_type=ImportError)
    assert set(world().to_pgmpy().edges()) == set(ARROWS)


@pytest.mark.filterwarnings("ignore")  # of pgmpy
def test_too_many_combinations_for_pgmpy_are_said() -> None:
    pytest.importorskip("pgmpy.base", exc_type=ImportError)
    names = [f"x{i}" for i in range(9)]
    variables = [Variable(name, tuple("abcdefgh")) for name in names]
    values = np.random.default_rng(0).integers(8, size=(200, 9)).astype(float)
    weights = np.zeros((9, 9))
    weights[:8, 8] = 1.0
    graph = CausalGraph.from_weights(weights, names, target="x8")
    model = FittedWorld.fit(Variables(variables, values), graph, is_graph_given=True, n_draws=0)
    with pytest.raises(ValueError, match="'x8' have 16,777,216 combinations"):
        model.to_pgmpy()
