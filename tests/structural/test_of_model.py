"""From estimators to structural models."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import castlereg
from castlereg import CastleClassifier, CastleRegressor, NetworkRegressor
from castlereg.graph import CausalGraph


@pytest.fixture(scope="module")
def table() -> tuple[pd.DataFrame, pd.Series]:
    rng = np.random.default_rng(0)
    n = 500
    X = pd.DataFrame({"smoker": rng.choice(["yes", "no"], n), "age": rng.integers(20, 80, n).astype(float)})
    X["tar"] = 2.0 * (X["smoker"] == "yes") + 0.5 * rng.normal(size=n)
    X["visit"] = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 700, n), unit="D")
    y = (X["tar"] + 0.05 * X["age"] + rng.normal(size=n)).rename("risk")
    X.loc[:30, "age"] = np.nan
    return X, y


@pytest.fixture(scope="module")
def model(table: tuple[pd.DataFrame, pd.Series]) -> CastleRegressor:
    return CastleRegressor(objective="graph", max_epochs=3, random_state=0).fit(*table)


@pytest.fixture(scope="module")
def known(table: tuple[pd.DataFrame, pd.Series]) -> CausalGraph:
    edges = pd.DataFrame({"cause": ["smoker", "tar", "age"], "effect": ["tar", "risk", "risk"]})
    return CausalGraph.from_edges(edges, "risk", ["smoker", "age", "tar", "visit", "risk"])


def test_a_given_graph_is_taken_as_known(model: CastleRegressor, known: CausalGraph) -> None:
    world = model.structural_model(known, n_draws=10)
    assert world.is_graph_given and world.effect("smoker", "risk").direction.forward == 1
    levels = world.effect("smoker", "risk", values=["no", "yes"])
    assert levels.estimate[1] - levels.estimate[0] == pytest.approx(2.0, abs=0.35)
    assert world.effect("age", "risk", by=10.0).estimate[0] == pytest.approx(0.5, abs=0.12)
    drawn = world.sample(5, random_state=0)
    assert drawn["smoker"].isin(["yes", "no"]).all() and drawn["visit"].dtype.kind == "M"


def test_an_edited_arrow_changes_the_answer(model: CastleRegressor, known: CausalGraph) -> None:
    before = model.structural_model(known, n_draws=5).effect("tar", "risk", by=1.0)
    after = model.structural_model(known.without_edge("tar", "risk"), n_draws=5).effect("tar", "risk", by=1.0)
    assert before.estimate[0] == pytest.approx(1.0, abs=0.15) and after.estimate[0] == 0


def test_nodes_of_a_graph_may_stand_in_another_order(model: CastleRegressor, known: CausalGraph) -> None:
    names = list(known.names)[::-1]
    turned = CausalGraph.from_edges(known.edges()[["cause", "effect"]], "risk", names)
    first, second = (model.structural_model(graph, n_draws=0).effect("age", "risk") for graph in (known, turned))
    np.testing.assert_array_equal(first.estimate, second.estimate)


def test_the_learned_graph_brings_its_uncertainty(model: CastleRegressor) -> None:
    world = model.structural_model(n_draws=40)
    graphs = {draw.whole.edges.tobytes() for draw in world.draws}
    assert not world.is_graph_given and len(graphs) > 1
    effect = world.effect("smoker", "tar")
    assert 0 < effect.direction.forward < 1 and effect.answer.between.max() > 0
    assert not effect.direction.is_known and "not known" in effect.summary()


def test_rows_are_not_given_away(model: CastleRegressor, table: tuple[pd.DataFrame, pd.Series], tmp_path: Path) -> None:
    castlereg.save(model, tmp_path / "m.castle")
    for other in (castlereg.load(tmp_path / "m.castle"), pickle.loads(pickle.dumps(model))):
        with pytest.raises(ValueError, match="the training rows are not in memory: give X and y"):
            other.structural_model()
        X, y = table
        expected = model.structural_model(n_draws=0).effect("age", "risk", by=1.0).estimate
        found = other.structural_model(X=X, y=y, n_draws=0).effect("age", "risk", by=1.0).estimate
        np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_classes_are_levels(table: tuple[pd.DataFrame, pd.Series]) -> None:
    X, y = table
    ill = np.where(y > y.median(), "ill", "well")
    model = CastleClassifier(objective="graph", max_epochs=3, random_state=0).fit(X, ill)
    edges = pd.DataFrame({"cause": ["smoker", "tar", "age"], "effect": ["tar", "y", "y"]})
    graph = CausalGraph.from_edges(edges, "y", [*X, "y"])
    effect = model.structural_model(graph, n_draws=10).effect("tar", "y", values=[-1.0, 3.0], level="ill")
    assert effect.level == "ill" and effect.estimate[1] > effect.estimate[0] + 0.4
    assert (effect.answer.low >= 0).all() and (effect.answer.high <= 1).all()


def test_what_cannot_be_is_rejected(
    model: CastleRegressor, known: CausalGraph, table: tuple[pd.DataFrame, pd.Series]
) -> None:
    with pytest.raises(ValueError, match="give both or neither"):
        model.structural_model(X=table[0])
    with pytest.raises(ValueError, match="the graph has no node 'visit'"):
        model.structural_model(CausalGraph.from_edges(known.edges(), "risk"))
    with pytest.raises(ValueError, match="name 'Risk', which is not a node"):
        model.structural_model(CausalGraph.from_weights(np.zeros((2, 2)), ["age", "Risk"], "Risk"))
    with pytest.raises(ValueError, match="must be a CausalGraph"):
        model.structural_model("a -> b")  # type: ignore[arg-type]
    plain = NetworkRegressor(max_epochs=2, random_state=0).fit(*table)
    with pytest.raises(ValueError, match="has learned no graph"):
        plain.structural_model()
    assert plain.structural_model(known, n_draws=0).effect("visit", "risk", by=1.0).estimate[0] == 0
