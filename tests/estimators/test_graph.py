"""What users know of the graph holds in what is learned; thresholds; edit and refit."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm
from sklearn.base import clone
from sklearn.metrics import log_loss

from castlereg import (
    CastleClassifier,
    CastleRegressor,
    CastleRegressorCV,
    CausalGraph,
    EdgeConstraints,
    NetworkRegressor,
)
from castlereg.acyclicity.cut import acyclic_cut, weakest_strong_weight
from castlereg.causal.synthetic import example_dag, sample
from castlereg.network import forward
from castlereg.search.fit import fit

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
    objective = data.draw(st.sampled_from(["prediction", "graph"]))
    model = CastleRegressor(constraints=known, hidden_layer_sizes=(8,), objective=objective, **QUICK)
    try:
        graph = model.fit(*table).graph_
    except ValueError as error:
        assert "required" in str(error) or "nothing may cause" in str(error)
        return
    rules = known.rules(NAMES)
    learned, kept = graph.learned_array > 0, graph.weight_array > 0
    np.testing.assert_array_equal(learned & ~rules.allowed, False)
    np.testing.assert_array_equal(kept[rules.required], True)
    np.testing.assert_array_equal(graph.confidence_array[rules.required], 1)
    assert graph.is_dag


def test_required_edges_are_left_alone_by_sparsity(table: Any) -> None:
    options: dict[str, Any] = {"reg_beta": 10.0, "max_epochs": 30, "random_state": 0, "learning_rate": 0.01}
    free = CastleRegressor(**options).fit(*table).graph_.learned_weights
    known = EdgeConstraints(required=[("c", "d")])
    held = CastleRegressor(constraints=known, **options).fit(*table).graph_.learned_weights
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
    assert (again.graph_.weights > 0).loc[NAMES, NAMES].equals((edited.weights > 0).loc[NAMES, NAMES])
    assert again.graph_.dropped_weight == 0
    np.testing.assert_array_equal(again.predict(X.assign(c=9.0, d=-9.0)), again.predict(X))
    folds = CastleRegressorCV((0.1,), cv=2, **QUICK).fit(X, y, graph=edited)
    assert (folds.graph_.weights > 0).loc[NAMES, NAMES].equals((edited.weights > 0).loc[NAMES, NAMES])
    classes = CastleClassifier(constraints=EdgeConstraints(sources=["a"]), **QUICK).fit(X, y > 0)
    assert classes.graph_.learned_weights["a"].sum() == 0


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


@pytest.mark.filterwarnings("ignore:the graph has no causes of 'y'", "ignore:predictions of 'y'")
@pytest.mark.parametrize("objective", ["prediction", "graph"])
def test_a_target_that_nothing_may_cause_is_predicted_by_its_mean(table: Any, objective: Any) -> None:
    X, y = table
    model = CastleRegressor(constraints=EdgeConstraints(sources=["y"]), objective=objective, **QUICK).fit(X, y)
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


def test_sortability_is_that_of_the_table(table: Any) -> None:
    X, y = table
    kinds = X.assign(c=np.where(X["c"] > 0, "up", "down"), d=pd.cut(X["d"], 3, labels=list("xyz")).astype(object))
    graph = CastleRegressor(**QUICK).fit(kinds, 100 * y).graph_
    assert graph.traits is not None
    np.testing.assert_allclose(graph.traits.variance[:2], X[["a", "b"]].var(ddof=0), rtol=1e-9)
    np.testing.assert_allclose(graph.traits.variance[4], (100 * y).var(ddof=0), rtol=1e-9)
    assert np.isnan(graph.traits.variance[3])
    assert set(graph.sortability) == {"varsortability", "r2_sortability"}


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
    graph = CastleRegressor(0.1, learning_rate=0.01, max_epochs=60, random_state=0).fit(X, y).graph_
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
    weights = model.graph_.learned_weights["y"].drop("y")
    candidates = np.r_[0.0, np.sort(weights)]
    means, errors = [], []
    for threshold in candidates:
        pruned = copy.copy(model)
        networks = model.model_.networks.of_features((weights >= threshold).to_numpy())
        pruned.model_ = replace(model.model_, networks=networks)
        losses = (pruned.predict(X.iloc[held_out]) - y.iloc[held_out]) ** 2
        means.append(losses.mean())
        errors.append(losses.std(ddof=1) / np.sqrt(20))
    best = int(np.argmin(means))
    highest = candidates[np.array(means) <= means[best] + errors[best]].max()
    standing_out = weakest_strong_weight(acyclic_cut(model.graph_.learned_array))
    assert model.graph_.threshold == pytest.approx(min(highest, standing_out), rel=1e-12)


@pytest.mark.parametrize("objective", ["prediction", "graph"])
def test_units_change_neither_graph_nor_predictions(objective: Any) -> None:
    data = sample(example_dag(), 150, random_state=0)
    X, y = data.drop(columns="Y"), data["Y"]
    model = CastleRegressor(max_epochs=20, objective=objective, random_state=0)
    one = clone(model).fit(X, y)
    scaled = X.assign(X2=1000 * X["X2"])
    other = clone(model).fit(scaled, y)
    np.testing.assert_allclose(other.graph_.learned_array, one.graph_.learned_array, rtol=1e-3, atol=1e-5)
    assert other.graph_.edges()[["cause", "effect"]].equals(one.graph_.edges()[["cause", "effect"]])
    np.testing.assert_allclose(other.predict(scaled), one.predict(X), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("sizes", "unit"), [((8,), np.sqrt(np.pi / np.sqrt(3))), ((), np.pi / np.sqrt(3))])
def test_weights_into_classes_are_in_units_of_their_noise(table: Any, sizes: tuple[int, ...], unit: float) -> None:
    X, y = table
    kinds = X.assign(b=np.where(X["b"] > 0, "high", "low"))
    model = CastleRegressor(hidden_layer_sizes=sizes, **QUICK).fit(kinds, y)
    weights = np.asarray(model.model_.networks.parameters.input_weights[0], np.float64)
    norms = np.linalg.norm(weights, axis=-1)  # one channel each
    order = [*model.model_.preprocessing.order, 4]
    for cause in range(5):
        for effect in range(5):
            expected = norms[cause, effect] / (unit if order[effect] == 1 else 1)
            assert model.graph_.learned_array[order[cause], order[effect]] == pytest.approx(expected)


def test_the_cut_compares_kinds_in_common_units(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    flag = rng.integers(0, 2, 400)
    X = pd.DataFrame({"flag": np.where(flag == 1, "yes", "no"), "noise": rng.normal(size=400)})
    y = 1.5 * flag + rng.normal(size=400)
    cut: list[Any] = []

    def watched(weights: Any, required: Any = None) -> Any:
        cut.append(weights.copy())
        return acyclic_cut(weights, required)

    monkeypatch.setattr("castlereg.training.plan.acyclic_cut", watched)
    monkeypatch.setitem(fit.__globals__, "_discovered", lambda *_: None)  # the phases without a graph given
    model = CastleRegressor(0.03, objective="graph", max_epochs=30, random_state=0).fit(X, y)
    flag_node, target_node = [*model.model_.preprocessing.order, 2].index(0), 2
    (before,) = cut
    into_target, into_flag = before[flag_node, target_node], before[target_node, flag_node]
    assert into_flag < into_target < into_flag * np.sqrt(np.pi / np.sqrt(3))  # as they are, the effect seems the cause
    graph = model.graph_
    assert graph.parents(graph.target) == ["flag"]
    assert graph.learned_weights.loc[graph.target, "flag"] == 0


def test_weights_of_the_graph_objective_are_strengths() -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(500, 2)), columns=["cause", "noise"])
    y = pd.Series(0.8 * X["cause"] + 0.6 * rng.normal(size=500), name="target")
    model = CastleRegressor(0.01, objective="graph", max_epochs=60, random_state=0).fit(X, y)
    weights = model.graph_.learned_weights
    joined = max(weights.loc["cause", "target"], weights.loc["target", "cause"])
    assert joined == pytest.approx(np.corrcoef(X["cause"], y)[0, 1], abs=0.05)  # like a correlation, here 0.8
    assert weights.loc["noise"].max() < 0.2 and model.graph_.parents("noise") == []


def test_the_graph_objective_keeps_a_required_edge_without_information(table: Any) -> None:
    X, y = table
    X = X.assign(z=np.random.default_rng(5).normal(size=len(X)))
    known = EdgeConstraints(required=[("z", "a")])
    model = CastleRegressor(constraints=known, objective="graph", **QUICK).fit(X, y)
    assert "z" in model.graph_.parents("a")
    assert 0 < model.graph_.learned_weights.loc["z", "a"] < 0.3


def test_log_likelihood_is_that_of_each_columns_own_gaussian_noise(table: Any) -> None:
    X, y = table
    X = X.assign(constant=1.0)
    with pytest.warns(UserWarning, match="constant"):
        model = CastleRegressor(n_members=2, hidden_layer_sizes=(), **QUICK).fit(X, y)
    expected = []
    for member in range(2):
        parameters, batch = model.standardized(X, y, member)
        errors = np.asarray(forward(parameters, batch.inputs) - batch.truth)[:, :, 0]
        errors = errors[:, errors.any(axis=0)]  # not of the constant column
        noise = norm.logpdf(errors, scale=np.sqrt((errors**2).mean(axis=0)))
        expected.append(noise.mean(axis=0).sum() + 5 * 0.5 * np.log(2 * np.pi * np.e))
    assert model.log_likelihood(X, y) == pytest.approx(np.mean(expected), abs=5e-6)  # losses are float32


def test_log_likelihood_of_classes_is_their_log_loss(table: Any) -> None:
    X, y = table
    only = pd.DataFrame({"flag": np.where(X["a"] > 0, "yes", "no")})
    model = CastleClassifier(hidden_layer_sizes=(8,), **QUICK).fit(only, y > 0)
    parameters, batch = model.standardized(only, y > 0)
    logits = np.asarray(forward(parameters, batch.inputs))[:, :, 0]
    truth = np.asarray(batch.truth)[:, :, 0]
    losses = [log_loss(truth[:, k], 1 / (1 + np.exp(-logits[:, k]))) for k in range(2)]
    assert model.log_likelihood(only, y > 0) == pytest.approx(-sum(losses), rel=1e-5)


def test_log_likelihood_needs_all_columns(table: Any) -> None:
    with pytest.raises(ValueError, match="NetworkRegressor was trained to predict only the target"):
        NetworkRegressor(**QUICK).fit(*table).log_likelihood(*table)
