"""Names, edges and pictures of a graph."""

from __future__ import annotations

import pickle
import subprocess
import sys
from dataclasses import FrozenInstanceError
from typing import Any

import matplotlib as mpl
import networkx as nx
import numpy as np
import pandas as pd
import pytest

from castlereg.causal import CausalGraph, InputGraph


@pytest.fixture
def graph() -> CausalGraph:
    weights = np.array([[0, 0.9, 0.3], [0.2, 0, 0.5], [0, 0.1, 0]])
    return CausalGraph.from_weights(weights, ["a", "b", "c"], target="c")


def test_edges_parents_children(graph: CausalGraph) -> None:
    assert graph.edges()[["cause", "effect", "weight"]].to_dict("list") == {
        "cause": ["a", "b", "a"],
        "effect": ["b", "c", "c"],
        "weight": [0.9, 0.5, 0.3],
    }
    assert graph.parents("c") == ["b", "a"]
    assert graph.children("a") == ["b", "c"]
    assert graph.parents("a") == []


def test_networkx_has_the_weights(graph: CausalGraph) -> None:
    converted = graph.to_networkx()
    assert nx.is_directed_acyclic_graph(converted)
    assert converted["a"]["b"]["weight"] == 0.9
    assert list(converted) == ["a", "b", "c"]


@pytest.fixture
def diamond() -> CausalGraph:
    """a -> b, c -> d -> e, and other -> d."""
    edges = {"cause": list("aabcdo"), "effect": list("bcdded"), "weight": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]}
    return CausalGraph.from_edges(pd.DataFrame(edges), target="d", nodes=list("eabcdo"))


def test_relatives(diamond: CausalGraph) -> None:
    assert diamond.ancestors("d") == ["a", "b", "c", "o"]
    assert diamond.descendants("a") == ["b", "c", "d", "e"]
    assert diamond.markov_blanket("b") == ["a", "c", "o", "d"]
    assert diamond.markov_blanket("e") == ["d"]
    assert diamond.topological_order() == ["a", "b", "c", "o", "d", "e"]
    assert nx.is_directed_acyclic_graph(diamond.to_networkx())


def test_edits_give_another_graph(diamond: CausalGraph) -> None:
    assert diamond.with_edge("a", "e", 0.5).weights.loc["a", "e"] == 0.5
    assert diamond.with_edge("a", "e").weights.loc["a", "e"] == 3.5  # the median
    assert diamond.without_edge("a", "b").parents("b") == []
    turned = diamond.reversed_edge("d", "e")
    assert (turned.parents("d"), turned.weights.loc["e", "d"]) == (["o", "e", "c", "b"], 5)
    assert (turned.confidence.loc["d", "e"], turned.direction.loc["e", "d"], turned.direction.loc["d", "e"]) == (
        1,
        1,
        0,
    )
    assert diamond.parents("d") == ["o", "c", "b"]


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda g: g.with_edge("e", "a"), "'e' -> 'a' closes a cycle: e -> a -> [bc] -> d -> e"),
        (lambda g: g.with_edge("c", "b").reversed_edge("a", "b"), "closes a cycle: b -> a -> c -> b"),
        (lambda g: g.with_edge("a", "ee"), "unknown node 'ee' in the edge 'a' -> 'ee'; did you mean 'e'"),
        (lambda g: g.with_edge("a", "a"), "joins a node to itself"),
        (lambda g: g.with_edge("a", "e", -1), "weight=-1"),
        (lambda g: g.without_edge("b", "a"), "no edge 'b' -> 'a'; reverse 'a' -> 'b' to get it"),
        (lambda g: g.without_edge("a", "e"), "no edge 'a' -> 'e'$"),
    ],
)
def test_edits_that_make_no_dag_or_no_sense_raise(diamond: CausalGraph, edit: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        edit(diamond)


def test_a_graph_cannot_be_changed(diamond: CausalGraph) -> None:
    weights = diamond.weights
    weights.loc["a", "b"] = 7.0
    assert diamond.weights.loc["a", "b"] == 1
    with pytest.raises(ValueError, match="read-only"):
        diamond.weight_array[0, 0] = 1
    with pytest.raises(FrozenInstanceError):
        diamond.targets = ()  # type: ignore[misc]
    again = pickle.loads(pickle.dumps(diamond))
    pd.testing.assert_frame_equal(again.weights, diamond.weights)


def networks(*weights: list[list[float]], **options: Any) -> InputGraph:
    names = ["a", "b", "c"][: len(weights[0])]
    return InputGraph.from_networks(np.array(weights), names, names[-1], **options)


def test_a_threshold_drops_weak_edges_before_the_cut() -> None:
    graph = networks([[0, 0.9, 0.3], [0.2, 0, 0.5], [0, 0.1, 0]])
    assert graph.dropped_weight == pytest.approx(0.3 / 2.0)
    above = graph.above(0.3)
    assert above.edges()["weight"].tolist() == [0.9, 0.5, 0.3]
    assert above.dropped_weight == 0  # the edges that close cycles are weaker
    assert graph.above(0.4).parents("c") == ["b"]
    pd.testing.assert_frame_equal(above.above(0).weights, graph.weights)
    with pytest.raises(ValueError, match="threshold=-1"):
        graph.above(-1)


def test_agreement_is_the_share_of_networks_with_the_edge() -> None:
    forward, backward = [[0.0, 0.9], [0.2, 0.0]], [[0.0, 0.1], [0.3, 0.0]]
    graph = networks(forward, forward, backward)
    assert graph.agreement.to_numpy().tolist() == [[0, 2 / 3], [1 / 3, 0]] and graph.n_networks == 3
    assert "share of 3 networks" in graph.summary() and "27% of their weight closed cycles" in graph.summary()
    assert graph.edges()["agreement"].tolist() == [2 / 3]
    assert networks(forward).agreement.isna().all(axis=None) and "share of" not in networks(forward).summary()
    assert networks([[0, 0], [0, 0]]).dropped_weight == 0


def test_required_edges_are_kept_first() -> None:
    required = np.array([[False, True], [False, False]])
    graph = networks([[0.0, 0.1], [0.9, 0.0]], threshold=0.5, required=required)
    assert graph.parents("b") == ["a"] and graph.agreement.loc["a", "b"] == 1


def test_summary_says_how_far_to_trust() -> None:
    weights = np.array([[0.0, 0.9], [0.0, 0.0]])
    direction = np.array([[np.nan, 0.6], [0.4, np.nan]])
    graph = CausalGraph(("age", "pay"), ("pay",), weights, np.full((2, 2), 0.9), direction)
    lines = graph.summary().splitlines()
    assert lines[:3] == ["2 nodes, 1 edges.", "Into pay: age.", "The direction of 1 of the edges is unknown."]
    assert lines[3].startswith("Confidence and direction are probabilities")
    assert lines[-1] == "A prediction aid, not proof of cause."
    assert len(graph.uncertain_edges()) == 1
    assert repr(graph) == "<CausalGraph: 2 nodes, 1 edges, target pay>"


def test_probabilities_may_be_unknown(graph: CausalGraph) -> None:
    assert graph.confidence.isna().all(axis=None) and graph.direction.isna().all(axis=None)
    assert "not known (NaN)" in graph.summary() and len(graph.uncertain_edges()) == 0
    edited = graph.with_edge("a", "b", 0.4)  # the user is sure of this one
    assert edited.edges()["confidence"].tolist()[1] == 1 and "not known" in edited.summary()


def test_weights_that_are_no_weights_raise() -> None:
    for bad in (-0.1, np.nan, np.inf):
        weights = np.array([[0.0, bad], [0.0, 0.0]])
        with pytest.raises(ValueError, match="negative weights, or weights that are not finite"):
            CausalGraph(("a", "b"), ("b",), weights, weights, weights)


def test_unknown_node_is_named(graph: CausalGraph) -> None:
    with pytest.raises(KeyError, match="unknown node 'z'; the nodes are a, b, c"):
        graph.parents("z")


@pytest.mark.parametrize(
    ("names", "target", "message"),
    [(["a", "b"], "a", "2 nodes|3 nodes"), (["a", "a", "b"], "a", "different names"), (["a", "b", "c"], "z", "'z'")],
)
def test_bad_names_raise(names: list[str], target: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        CausalGraph.from_weights(np.zeros((3, 3)), names, target=target)


def test_any_weights_make_a_dag() -> None:
    """A thousand matrices of all sizes, sparse and dense, with ties."""
    rng = np.random.default_rng(0)
    for _ in range(1000):
        n, levels = rng.integers(1, 16), rng.integers(1, 6)
        weights = rng.integers(0, levels + 1, (n, n)) * (rng.random((n, n)) < rng.random())
        names = [f"x{k}" for k in range(n)]
        graph = InputGraph.from_networks(weights[None], names, "x0", threshold=rng.random())
        assert nx.is_directed_acyclic_graph(graph.to_networkx())
    with pytest.raises(ValueError, match="finite and not negative"):
        CausalGraph.from_weights(np.array([[0, np.inf], [0, 0]]), ["a", "b"], target="b")


def test_building_a_graph_does_not_import_networkx() -> None:
    """It takes a fifth of a second, which every first fit would pay for."""
    code = """
import sys
import numpy as np
from castlereg.causal import EdgeConstraints, InputGraph
known = EdgeConstraints(required=[("a", "b")]).rules(["a", "b"])
graph = InputGraph.from_networks(np.ones((2, 2, 2)), ["a", "b"], "b", required=known.required)
assert graph.parents("b") == ["a"] and graph.summary()
assert "networkx" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_plot_draws_every_node_and_the_strongest_edges(graph: CausalGraph) -> None:
    mpl.use("agg")
    import matplotlib.pyplot as plt

    ax = graph.plot(max_edges=2)
    shown = {text.get_text() for text in ax.texts}
    assert {"a", "b", "c"} <= shown
    assert len([p for p in ax.patches if p.__class__.__name__ == "FancyArrowPatch"]) == 2
    plt.close("all")


def test_names_are_drawn_as_they_are() -> None:
    mpl.use("agg")
    import matplotlib.pyplot as plt

    names = [r"$\\frac{1}$", "größe (m²)", "<b>&amp;"]
    ax = CausalGraph.from_weights(np.triu(np.ones((3, 3)), k=1), names, target="<b>&amp;").plot()
    ax.figure.canvas.draw()
    assert {text.get_text() for text in ax.texts} == set(names)
    plt.close("all")
