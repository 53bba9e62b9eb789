"""The graph of every estimator, what users know of it, and the input graph of the networks."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from castlereg import (
    CastleClassifier,
    CastleRegressor,
    CastleRegressorCV,
    CausalGraph,
    EdgeConstraints,
    NetworkRegressor,
)
from castlereg.acyclicity.cut import acyclic_cut, find_cycle, weakest_strong_weight
from castlereg.causal import example_dag, sample

NAMES = ["a", "b", "c", "d", "y"]
QUICK: dict[str, Any] = {"max_epochs": 2, "random_state": 0}


@pytest.fixture(scope="module")
def table() -> tuple[pd.DataFrame, pd.Series]:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(60, 4)), columns=list("abcd"))
    return X, pd.Series(X["a"] - X["b"] + 0.1 * rng.normal(size=60), name="y")


edges = st.lists(st.tuples(st.sampled_from(NAMES), st.sampled_from(NAMES)), max_size=4)


@settings(deadline=None, max_examples=15)
@given(st.data())
def test_constraints_hold_in_every_fitted_graph(table: Any, data: st.DataObject) -> None:
    tiers = data.draw(st.none() | st.permutations(NAMES).map(lambda p: [p[:2], p[2:4]]))
    ends = st.lists(st.sampled_from(NAMES[:4]), max_size=1)
    known = EdgeConstraints(data.draw(edges), data.draw(edges), tiers, data.draw(ends), data.draw(ends))
    model = CastleRegressor(constraints=known, hidden_layer_sizes=(8,), **QUICK)
    try:
        model.fit(*table)
    except ValueError as error:
        assert "required" in str(error) or "nothing may cause" in str(error)
        return
    rules = known.rules(NAMES)
    for graph in (model.graph_, model.input_graph_):
        np.testing.assert_array_equal(graph.edge_array & ~rules.allowed, False)
        np.testing.assert_array_equal(graph.edge_array[rules.required], True)
        assert find_cycle(graph.edge_array) is None
    np.testing.assert_array_equal(model.graph_.confidence_array[rules.required], 1)
    np.testing.assert_array_equal((model.input_graph_.learned_array > 0) & ~rules.allowed, False)


def test_one_graph_for_all_estimators_of_a_table(table: Any) -> None:
    """It is found in the rows, with calibrated probabilities, whatever the networks and their number."""
    models = [CastleRegressor(**QUICK), NetworkRegressor(**QUICK), CastleRegressorCV(cv=2, **QUICK)]
    graphs = [model.fit(*table).graph_ for model in models]
    for graph in graphs:
        assert graph.edges().equals(graphs[0].edges())
    assert ((graphs[0].confidence_array >= 0) & (graphs[0].confidence_array <= 1)).all()
    assert {"a", "b"} <= set(graphs[0].parents("y")) | set(graphs[0].children("y"))
    flipped = CastleRegressor(**QUICK).fit(table[0].iloc[:, ::-1], table[1]).graph_
    named = graphs[0].confidence.loc[NAMES, NAMES]
    pd.testing.assert_frame_equal(flipped.confidence.loc[NAMES, NAMES], named, check_exact=True)


def test_the_graph_is_found_once_and_when_it_is_asked_for(table: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    import castlereg.causal

    calls = []
    original = castlereg.causal.discover_graph
    monkeypatch.setattr(
        castlereg.causal, "discover_graph", lambda *args, **options: calls.append(1) or original(*args, **options)
    )
    model = CastleRegressor(**QUICK).fit(*table)
    model.predict(table[0])
    assert not calls
    assert model.graph_ is model.graph_ and calls == [1]


def test_required_edges_are_left_alone_by_sparsity(table: Any) -> None:
    options: dict[str, Any] = {"reg_beta": 10.0, "max_epochs": 30, "random_state": 0, "learning_rate": 0.01}
    free = CastleRegressor(**options).fit(*table).input_graph_.learned_weights
    known = EdgeConstraints(required=[("c", "d")])
    held = CastleRegressor(constraints=known, **options).fit(*table).input_graph_.learned_weights
    assert free.loc["c", "d"] < 0.02 < held.loc["c", "d"]
    assert held.loc["a", "d"] < 0.02


def test_a_forbidden_cause_of_the_target_has_no_influence(table: Any) -> None:
    X, y = table
    model = CastleRegressor(constraints=EdgeConstraints(forbidden=[("a", "y")]), **QUICK).fit(X, y)
    np.testing.assert_array_equal(model.predict(X.assign(a=7.0)), model.predict(X))
    assert not np.array_equal(model.predict(X.assign(b=7.0)), model.predict(X))


def test_refit_with_an_edited_graph_has_its_edges_and_no_others(table: Any) -> None:
    X, y = table
    model = CastleRegressor(**QUICK).fit(X, y)
    edited = CausalGraph.from_edges(
        pd.DataFrame({"cause": ["a", "b", "c"], "effect": ["y", "y", "a"]}), target="y", nodes=NAMES[::-1]
    )
    again = clone(model).fit(X, y, graph=edited)
    assert (again.input_graph_.weights > 0).loc[NAMES, NAMES].equals((edited.weights > 0).loc[NAMES, NAMES])
    assert again.graph_ is edited
    np.testing.assert_array_equal(again.predict(X.assign(c=9.0, d=-9.0)), again.predict(X))
    for search in ("paper", "fast"):
        folds = CastleRegressorCV((0.1,), search=search, cv=2, **QUICK).fit(X, y, graph=edited)
        assert (folds.input_graph_.weights > 0).loc[NAMES, NAMES].equals((edited.weights > 0).loc[NAMES, NAMES])
        np.testing.assert_array_equal(folds.predict(X.assign(c=9.0, d=-9.0)), folds.predict(X))
    classes = CastleClassifier(constraints=EdgeConstraints(sources=["a"]), **QUICK).fit(X, y > 0)
    assert classes.input_graph_.learned_weights["a"].sum() == 0


@pytest.mark.parametrize(
    ("known", "message"),
    [
        (EdgeConstraints(required=[("a", "x")]), "unknown node 'x' in the required edges"),
        ("a -> b", "constraints='a -> b' must be EdgeConstraints"),
    ],
)
def test_impossible_constraints_raise(table: Any, known: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        CastleRegressor(constraints=known, **QUICK).fit(*table)


@pytest.mark.filterwarnings("ignore:predictions of 'y'")
def test_a_target_that_nothing_may_cause_is_predicted_by_its_mean(table: Any) -> None:
    X, y = table
    model = CastleRegressor(constraints=EdgeConstraints(sources=["y"]), **QUICK).fit(X, y)
    assert model.graph_.parents("y") == []
    assert np.ptp(model.predict(X)) == 0
    assert model.predict(X)[0] == pytest.approx(y.mean(), abs=0.2 * y.std())


@pytest.mark.filterwarnings("ignore:constant columns")
def test_a_constant_column_cannot_have_a_required_edge(table: Any) -> None:
    X, y = table
    known = EdgeConstraints(required=[("c", "d")])
    for model in (CastleRegressor(constraints=known, **QUICK), CastleRegressorCV((0.1,), constraints=known, **QUICK)):
        with pytest.raises(ValueError, match="an edge of 'c' is required, but the column is constant"):
            model.fit(X.assign(c=1.0), y)


def test_only_a_graph_is_a_graph(table: Any) -> None:
    with pytest.raises(ValueError, match="graph='a -> b' must be a CausalGraph"):
        CastleRegressor(**QUICK).fit(*table, graph="a -> b")  # type: ignore[arg-type]


def test_targets_are_no_inputs_of_each_other(table: Any) -> None:
    X, y = table
    several = pd.DataFrame({"y": y, "z": -y})
    known = EdgeConstraints(required=[("y", "z")])
    with pytest.raises(ValueError, match="'y' -> 'z' is required, but a target is never an input for another"):
        CastleRegressor(constraints=known, **QUICK).fit(X, several)


def test_the_threshold_keeps_what_predicts_and_drops_the_rest() -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(400, 6)), columns=list("abcdef"))
    y = pd.Series(2 * X["a"] - X["b"] + 0.3 * rng.normal(size=400), name="y")
    graph = CastleRegressor(0.1, learning_rate=0.01, max_epochs=60, random_state=0).fit(X, y).input_graph_
    assert graph.threshold > 0
    into_target = graph.learned_weights["y"]
    assert {"a", "b"} <= set(into_target.index[into_target >= graph.threshold])
    assert (graph.edges()["weight"] >= graph.threshold).all()
    assert len(graph.above(0).edges()) > len(graph.edges())


def test_the_threshold_is_the_highest_within_one_standard_error(table: Any) -> None:
    """By hand: take inputs out one by one, and score the rows that were held out. Edges that stand out stay."""
    X, y = table
    held_out, rest = np.arange(20), np.arange(20, 60)
    model = CastleRegressor(0.01, learning_rate=0.02, max_epochs=40, random_state=0)
    model.fit(X.iloc[rest], y.iloc[rest], X_val=X.iloc[held_out], y_val=y.iloc[held_out])
    weights = model.input_graph_.learned_weights["y"].drop("y")
    candidates = np.r_[0.0, np.sort(weights)]
    means, errors = [], []
    for threshold in candidates:
        pruned = copy.copy(model)
        networks = model.model_.networks.with_features((weights >= threshold).to_numpy())
        pruned.model_ = replace(model.model_, blend=replace(model.model_.blend, parts=(networks,)))
        losses = (pruned.predict(X.iloc[held_out]) - y.iloc[held_out]) ** 2
        means.append(losses.mean())
        errors.append(losses.std(ddof=1) / np.sqrt(20))
    best = int(np.argmin(means))
    highest = candidates[np.array(means) <= means[best] + errors[best]].max()
    standing_out = weakest_strong_weight(acyclic_cut(model.input_graph_.learned_array))
    assert model.input_graph_.threshold == pytest.approx(min(highest, standing_out), rel=1e-12)


def test_units_change_neither_graphs_nor_predictions() -> None:
    data = sample(example_dag(), 150, random_state=0)
    X, y = data.drop(columns="Y"), data["Y"]
    model = CastleRegressor(max_epochs=20, random_state=0)
    one = clone(model).fit(X, y)
    scaled = X.assign(X2=1024 * X["X2"])
    other = clone(model).fit(scaled, y)
    np.testing.assert_allclose(other.input_graph_.learned_array, one.input_graph_.learned_array, rtol=1e-3, atol=1e-5)
    assert other.graph_.edges()[["cause", "effect"]].equals(one.graph_.edges()[["cause", "effect"]])
    np.testing.assert_allclose(other.graph_.confidence_array, one.graph_.confidence_array, atol=1e-6)
    np.testing.assert_allclose(other.predict(scaled), one.predict(X), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("sizes", "unit"), [((8,), np.sqrt(np.pi / np.sqrt(3))), ((), np.pi / np.sqrt(3))])
def test_weights_into_classes_are_in_units_of_their_noise(table: Any, sizes: tuple[int, ...], unit: float) -> None:
    X, y = table
    kinds = X.assign(b=np.where(X["b"] > 0, "high", "low"))
    model = CastleRegressor(hidden_layer_sizes=sizes, **QUICK).fit(kinds, y)
    weights = np.asarray(model.model_.networks.parameters.input_weights[0], np.float64)
    norms = np.linalg.norm(weights, axis=-1)  # one channel each
    for cause in range(5):
        for effect in range(5):
            expected = norms[cause, effect] / (unit if effect == 1 else 1)
            assert model.input_graph_.learned_array[cause, effect] == pytest.approx(expected)
