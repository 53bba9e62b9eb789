"""Structural models of tables, and known graphs in any order."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from castlereg.causal import CausalGraph, discover_graph, structural_model
from tests.causal.coded import coded


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    n = 500
    X = pd.DataFrame({"smoker": rng.choice(["yes", "no"], n), "age": rng.integers(20, 80, n).astype(float)})
    X["tar"] = 2.0 * (X["smoker"] == "yes") + 0.5 * rng.normal(size=n)
    X["visit"] = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 700, n), unit="D")
    X["risk"] = X["tar"] + 0.05 * X["age"] + rng.normal(size=n)
    X.loc[:30, "age"] = np.nan
    return X


EDGES = pd.DataFrame({"cause": ["smoker", "tar", "age"], "effect": ["tar", "risk", "risk"]})
KNOWN = CausalGraph.from_edges(EDGES, "risk", ["smoker", "age", "tar", "visit", "risk"])


def test_a_given_graph_is_taken_as_known(frame: pd.DataFrame) -> None:
    world = structural_model(*coded(frame, "risk"), KNOWN, is_graph_given=True, n_draws=10)
    assert world.is_graph_given and world.effect("smoker", "risk").direction.forward == 1
    levels = world.effect("smoker", "risk", values=["no", "yes"])
    assert levels.estimate[1] - levels.estimate[0] == pytest.approx(2.0, abs=0.35)
    assert world.effect("age", "risk", by=10.0).estimate[0] == pytest.approx(0.5, abs=0.12)
    drawn = world.sample(5, random_state=0)
    assert drawn["smoker"].isin(["yes", "no"]).all() and drawn["visit"].dtype.kind == "M"
    without = KNOWN.without_edge("tar", "risk")
    after = structural_model(*coded(frame, "risk"), without, is_graph_given=True, n_draws=0)
    assert after.effect("tar", "risk", by=1.0).estimate[0] == 0


def test_nodes_of_a_graph_may_stand_in_another_order(frame: pd.DataFrame) -> None:
    turned = CausalGraph.from_edges(EDGES, "risk", list(KNOWN.names)[::-1])
    first, second = (
        structural_model(*coded(frame, "risk"), graph, is_graph_given=True, n_draws=0).effect("age", "risk")
        for graph in (KNOWN, turned)
    )
    np.testing.assert_array_equal(first.estimate, second.estimate)


def test_answers_average_over_graphs_that_may_be_true(frame: pd.DataFrame) -> None:
    table = coded(frame, "risk")
    graph = discover_graph(*table)
    world = structural_model(*table, graph, is_graph_given=False, n_draws=30)
    assert world.effect("tar", "risk", by=1.0).estimate[0] == pytest.approx(1.0, abs=0.2)
    effect = world.effect("visit", "risk")
    assert effect.direction.forward < 0.5 and "zero" not in effect.summary()


def test_classes_are_levels(frame: pd.DataFrame) -> None:
    ill = frame.assign(risk=np.where(frame["risk"] > frame["risk"].median(), "ill", "well"))
    effect = structural_model(*coded(ill, "risk"), KNOWN, is_graph_given=True, n_draws=10).effect(
        "tar", "risk", values=[-1.0, 3.0], level="ill"
    )
    assert effect.level == "ill" and effect.estimate[1] > effect.estimate[0] + 0.4
    assert (effect.answer.low >= 0).all() and (effect.answer.high <= 1).all()


def test_graphs_of_other_tables_raise(frame: pd.DataFrame) -> None:
    table = coded(frame, "risk")
    with pytest.raises(ValueError, match="the graph has no node 'visit'"):
        structural_model(*table, CausalGraph.from_edges(EDGES, "risk"), is_graph_given=True)
    with pytest.raises(ValueError, match="unknown node 'Risk' in the graph"):
        other = CausalGraph.from_weights(np.zeros((2, 2)), ["age", "Risk"], "Risk")
        structural_model(*table, other, is_graph_given=True)
    with pytest.raises(ValueError, match="must be a CausalGraph"):
        structural_model(*table, "a -> b", is_graph_given=True)  # type: ignore[arg-type]


@pytest.mark.filterwarnings("ignore:(X has|'day'|columns)")
def test_rows_are_read_as_the_table_was_read() -> None:
    """Day-first dates, marks of missing values, numbers of two values."""
    rng = np.random.default_rng(1)
    n = 600
    days = pd.Timestamp("2021-01-01") + pd.to_timedelta(rng.integers(0, 300, n), unit="D")
    X = pd.DataFrame({"day": days.strftime("%d/%m/%Y"), "flag": rng.integers(0, 2, n)})
    X["size"] = [f"{value:.2f}" for value in rng.normal(size=n)]
    X.loc[3, "size"] = "?"
    rows = X.assign(y=X["flag"] + rng.normal(size=n))
    edges = pd.DataFrame({"cause": ["flag", "day"], "effect": ["y", "y"]})
    graph = CausalGraph.from_edges(edges, "y", list(rows))
    world = structural_model(*coded(rows, "y"), graph, is_graph_given=True, n_draws=3)
    assert world.coded(rows)[0] == pytest.approx((days - pd.Timestamp(0)).days.to_numpy())
    assert (world.counterfactual(rows, {"flag": 1})["flag"] == 1).all()
    first, second = (world.what_if({"day": day}, "y").after.estimate for day in ("05/02/2021", "2021-02-05"))
    np.testing.assert_array_equal(first, second)
    assert world.effect("flag", "y", values=["0", 1]).estimate.shape == (2,)
    with pytest.warns(UserWarning, match=r"'flag' has no level 7"):
        assert np.isnan(world.coded(rows.assign(flag=7))[1]).all()


def test_weights_of_rows_count(frame: pd.DataFrame) -> None:
    weight = np.where(frame["smoker"] == "yes", 3.0, 0.5)
    world = structural_model(*coded(frame, "risk", weight), KNOWN, is_graph_given=True, n_draws=0)
    assert world.what_if({"visit": "2020-05-05"}, "risk").before == pytest.approx(
        np.average(frame["risk"], weights=weight), rel=1e-6
    )
