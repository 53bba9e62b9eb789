"""From estimators to structural models."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import castlereg
from castlereg import CastleClassifier, CastleRegressor, NetworkRegressor
from castlereg.causal.graph import CausalGraph


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
        with pytest.raises(ValueError, match="the training rows are not in memory: pass X and y"):
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
    with pytest.raises(ValueError, match="pass both or neither"):
        model.structural_model(X=table[0])
    with pytest.raises(ValueError, match="the graph has no node 'visit'"):
        model.structural_model(CausalGraph.from_edges(known.edges(), "risk"))
    with pytest.raises(ValueError, match="unknown node 'Risk' in the graph"):
        model.structural_model(CausalGraph.from_weights(np.zeros((2, 2)), ["age", "Risk"], "Risk"))
    with pytest.raises(ValueError, match="must be a CausalGraph"):
        model.structural_model("a -> b")  # type: ignore[arg-type]
    plain = NetworkRegressor(max_epochs=2, random_state=0).fit(*table)
    with pytest.raises(ValueError, match="has not learned a graph"):
        plain.structural_model()
    assert plain.structural_model(known, n_draws=0).effect("visit", "risk", by=1.0).estimate[0] == 0


@pytest.mark.filterwarnings("ignore:X has")
def test_rows_are_read_as_the_model_reads_them() -> None:
    """Day-first dates, marks of missing values, rare levels, unusable columns, numbers of two values, number names."""
    rng = np.random.default_rng(1)
    n = 600
    days = pd.Timestamp("2021-01-01") + pd.to_timedelta(rng.integers(0, 300, n), unit="D")
    X = pd.DataFrame({"day": days.strftime("%d/%m/%Y"), "flag": rng.integers(0, 2, n)})
    X["size"] = [f"{value:.2f}" for value in rng.normal(size=n)]
    X.loc[3, "size"] = "?"
    X["text"] = [f"note {i} of {value}" for i, value in enumerate(rng.normal(size=n))]
    y = (X["flag"] + rng.normal(size=n)).rename("y")
    model = CastleRegressor(max_epochs=2, unusable_columns="drop", random_state=0).fit(X, y)
    names = [*X, "y"]
    edges = pd.DataFrame({"cause": ["flag", "day"], "effect": ["y", "y"]})
    world = model.structural_model(CausalGraph.from_edges(edges, "y", names), n_draws=3)
    rows = X.assign(y=y)
    assert world.coded(rows)[0] == pytest.approx((days - pd.Timestamp(0)).days.to_numpy())
    changed = world.counterfactual(rows, {"flag": 1})
    assert (changed["flag"] == 1).all() and changed["text"].isna().all()
    first, second = (world.what_if({"day": day}, "y").after.estimate for day in ("05/02/2021", "2021-02-05"))
    np.testing.assert_array_equal(first, second)
    assert world.effect("flag", "y", values=["0", 1]).estimate.shape == (2,)
    with pytest.warns(UserWarning, match=r"'flag' has no level 7"):
        assert np.isnan(world.coded(rows.assign(flag=7))[1]).all()


def test_levels_of_a_file_and_held_dates_come_back(tmp_path: Path, model: CastleRegressor, known: CausalGraph) -> None:
    world = model.structural_model(known, n_draws=2).do(visit=pd.Timestamp("2020-03-01"), smoker="yes")
    castlereg.save(world, tmp_path / "world.castle")
    loaded = castlereg.load(tmp_path / "world.castle")
    assert loaded.fixed == {"visit": pd.Timestamp("2020-03-01"), "smoker": "yes"}
    assert loaded.variables == world.variables


def test_weights_of_rows_count(
    table: tuple[pd.DataFrame, pd.Series], known: CausalGraph, model: CastleRegressor
) -> None:
    X, y = table
    weight = np.where(X["smoker"] == "yes", 3.0, 0.5)
    world = model.structural_model(known, X=X, y=y, sample_weight=weight, n_draws=0)
    assert world.what_if({"visit": "2020-05-05"}, "risk").before == pytest.approx(
        np.average(y, weights=weight), rel=1e-6
    )
    with pytest.raises(ValueError, match="sample_weight needs X and y"):
        model.structural_model(known, sample_weight=weight)


def test_agreement_of_networks_is_not_called_a_probability(
    table: tuple[pd.DataFrame, pd.Series], model: CastleRegressor
) -> None:
    several = CastleRegressor(n_members=3, max_epochs=2, random_state=0).fit(*table)
    assert "the agreement of networks" in several.structural_model(n_draws=2).effect("tar", "risk").summary()
    assert "the agreement of networks" not in model.structural_model(n_draws=2).effect("tar", "risk").summary()
