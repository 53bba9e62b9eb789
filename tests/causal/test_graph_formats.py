"""Graphs in the forms of other programs."""

from __future__ import annotations

import json
from collections.abc import Callable

import networkx as nx
import numpy as np
import pandas as pd
import pytest

from castlereg.causal import CausalGraph, InputGraph

NAMES = ["age", 'größe "in" m', "a -> b; [x]", "back\\slash & <tag>", "7", "income"]


# Of pydot, which calls its parser by old names.
pytestmark = pytest.mark.filterwarnings("ignore:.*deprecated:DeprecationWarning")


@pytest.fixture(scope="module")
def graph() -> CausalGraph:
    rng = np.random.default_rng(0)
    weights = np.triu(rng.random((6, 6)) * (rng.random((6, 6)) < 0.7), 1)
    edges, forward = weights > 0, np.triu(rng.random((6, 6)), 1)
    direction = np.where(edges, forward, np.where(edges.T, 1 - forward.T, np.nan))
    joined = np.triu(rng.random((6, 6)), 1)
    return CausalGraph(tuple(NAMES), ("income",), weights, joined + joined.T, direction)


def _same(one: CausalGraph, other: CausalGraph, digits: float = 0) -> None:
    assert one.names == other.names
    assert one.targets == other.targets
    edges = one.weight_array > 0
    np.testing.assert_allclose(other.weight_array, one.weight_array, rtol=digits)
    np.testing.assert_allclose(other.confidence_array[edges], one.confidence_array[edges], rtol=digits)
    np.testing.assert_allclose(other.direction_array[edges], one.direction_array[edges], rtol=digits)


FORMATS: dict[str, Callable[[CausalGraph], CausalGraph]] = {
    "networkx": lambda g: CausalGraph.from_networkx(g.to_networkx()),
    "gml": lambda g: CausalGraph.from_gml(g.to_gml()),
    "dot": lambda g: CausalGraph.from_dot(g.to_dot()),
    "json": lambda g: CausalGraph.from_json(g.to_json()),
    "edges": lambda g: CausalGraph.from_edges(g.edges(), target="income", nodes=NAMES),
}


@pytest.mark.parametrize("form", FORMATS)
def test_there_and_back_is_the_same(graph: CausalGraph, form: str) -> None:
    _same(graph, FORMATS[form](graph))


@pytest.mark.parametrize("form", FORMATS)
def test_what_one_network_does_not_know_stays_unknown(graph: CausalGraph, form: str) -> None:
    one = CausalGraph.from_weights(graph.weight_array, NAMES, target="income")
    again = FORMATS[form](one)
    _same(one, again)
    assert again.edges()[["confidence", "direction"]].isna().all(axis=None)


def test_what_is_not_known_is_left_out_or_null(graph: CausalGraph) -> None:
    one = CausalGraph.from_weights(graph.weight_array, NAMES, target="income")
    assert "confidence" not in one.to_gml() + one.to_dot() and "nan" not in (one.to_gml() + one.to_dot()).lower()
    assert {key for *_, edge in one.to_networkx().edges(data=True) for key in edge} == {"weight"}
    assert json.loads(one.to_json())["confidence"] == [[None] * 6] * 6


def test_json_keeps_everything(graph: CausalGraph) -> None:
    again = CausalGraph.from_json(graph.to_json())
    for name in ("weight_array", "confidence_array", "direction_array"):
        np.testing.assert_array_equal(getattr(again, name), getattr(graph, name))
    assert again.summary() == graph.summary()


def test_input_graphs_are_exported_with_their_agreement() -> None:
    graph = InputGraph.from_networks(np.triu(np.ones((3, 2, 2)), 1), ["a", "b"], "b")
    assert dict(graph.to_networkx().edges["a", "b"]) == {"weight": 1.0, "agreement": 1.0}
    assert "agreement=1.0" in graph.to_dot() and "agreement 1.0" in graph.to_gml()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "other"}, "not a castlereg graph"),
        ({"version": 99}, "version 99; this castlereg reads version 2"),
        ({"weights": [[0, 1]]}, "weights must have 6 rows of 6 numbers"),
        ({"weights": None}, "not a complete graph"),
        ({"nodes": ["a"] * 6}, "different names"),
        ({"targets": ["z"]}, "target 'z'"),
        ({"weights": [[0.0] + [1.0] * 5] + [[1.0] + [0.0] * 5] * 5}, "the edges form a cycle"),
        ({"weights": [[-1.0] * 6] * 6}, "negative"),
    ],
)
def test_json_that_is_not_a_graph_raises(graph: CausalGraph, change: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        CausalGraph.from_json(json.dumps(json.loads(graph.to_json()) | change))
    with pytest.raises(ValueError, match="not JSON"):
        CausalGraph.from_json("{")


def test_other_programs_graphs_need_no_weights() -> None:
    graph = CausalGraph.from_networkx(nx.DiGraph([("a", "b"), ("b", "c")]), target="c")
    assert graph.parents("c") == ["b"]
    assert graph.weights.loc["a", "b"] == 1
    assert np.isnan(graph.confidence.loc["a", "b"])
    assert CausalGraph.from_dot("digraph { a -> b; b -> c [weight=2]; }", target="c").parents("c") == ["b"]
    frame = pd.DataFrame({"cause": ["a"], "effect": ["b"]})
    assert CausalGraph.from_edges(frame, target="c").nodes == ["a", "b", "c"]


def test_what_is_not_a_graph_raises() -> None:
    with pytest.raises(ValueError, match="undirected"):
        CausalGraph.from_networkx(nx.Graph([("a", "b")]), target="b")
    with pytest.raises(ValueError, match="cycle: a -> b -> a"):
        CausalGraph.from_networkx(nx.DiGraph([("a", "b"), ("b", "a")]), target="b")
    with pytest.raises(ValueError, match="pass target="):
        CausalGraph.from_networkx(nx.DiGraph([("a", "b")]))
    with pytest.raises(ValueError, match="'a' -> 'b' has weight -1"):
        CausalGraph.from_networkx(nx.DiGraph([("a", "b", {"weight": -1})]), target="b")
    with pytest.raises(ValueError, match="weight='heavy', which is not a number"):
        CausalGraph.from_networkx(nx.DiGraph([("a", "b", {"weight": "heavy"})]), target="b")
    with pytest.raises(ValueError, match="no column 'effect'"):
        CausalGraph.from_edges(pd.DataFrame({"cause": ["a"]}), target="a")
    with pytest.raises(ValueError, match="mentions 'z'"):
        CausalGraph.from_edges(pd.DataFrame({"cause": ["a"], "effect": ["z"]}), target="a", nodes=["a", "b"])
    with pytest.raises(ValueError, match="not a DOT digraph"):
        CausalGraph.from_dot("graph { a -- b; }", target="b")


def test_dowhy_reads_gml(graph: CausalGraph) -> None:
    dowhy = pytest.importorskip("dowhy", reason="DoWhy is not a dependency of the tests")
    plain = CausalGraph.from_weights(np.triu(np.ones((4, 4)), k=1), ["a", "b", "c", "y"], target="y")
    data = pd.DataFrame(np.random.default_rng(0).normal(size=(50, 4)), columns=plain.nodes)
    model = dowhy.CausalModel(data=data, treatment="b", outcome="y", graph=plain.to_gml())
    estimand = model.identify_effect(proceed_when_unidentifiable=True)
    assert estimand.get_backdoor_variables() == ["a"]
