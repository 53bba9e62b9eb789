"""Names, edges and pictures of a graph."""

from __future__ import annotations

import pickle
from dataclasses import FrozenInstanceError
from typing import Any

import matplotlib as mpl
import networkx as nx
import numpy as np
import pandas as pd
import pytest

from castlereg import CausalGraph
from castlereg.causal.graph.sortability import ColumnTraits


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
    assert graph.dropped_weight == pytest.approx(0.3 / 2.0)
    assert graph.is_dag


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
        diamond.threshold = 1.0  # type: ignore[misc]
    again = pickle.loads(pickle.dumps(diamond))
    pd.testing.assert_frame_equal(again.weights, diamond.weights)


def test_a_threshold_drops_weak_edges_before_the_cut(graph: CausalGraph) -> None:
    above = graph.above(0.3)
    assert above.edges()["weight"].tolist() == [0.9, 0.5, 0.3]
    assert above.dropped_weight == 0  # the edges that close cycles are weaker
    assert graph.above(0.4).parents("c") == ["b"]
    pd.testing.assert_frame_equal(above.above(0).weights, graph.weights)
    with pytest.raises(ValueError, match="threshold=-1"):
        graph.above(-1)


def test_summary_says_how_far_to_trust() -> None:
    one, other = np.array([[0.0, 0.9], [0.2, 0.0]]), np.array([[0.0, 0.1], [0.3, 0.0]])
    traits = ColumnTraits((1.0, 5.0), (0.2, 0.1))
    graph = CausalGraph.from_members(np.stack([one, one, other]), ["age", "pay"], target="pay", traits=traits)
    lines = graph.summary().splitlines()
    assert lines[0] == "2 nodes, 1 edges of at least 0; 27% of their weight closed cycles and was cut."
    assert lines[1] == "Into pay: age."
    assert lines[2] == "The direction of 1 of the edges is unknown."
    assert lines[3].startswith("Confidence is the agreement of 3 networks: the share")
    assert lines[4].startswith("100% of the paths lead to columns of higher variance")
    assert lines[5].startswith("100% of the paths lead to columns of lower predictability")
    assert lines[-1] == "A prediction aid, not proof of cause."
    assert graph.sortability == {"varsortability": 1.0, "r2_sortability": 0.0}
    assert len(graph.uncertain_edges()) == 1
    assert repr(graph) == "<CausalGraph: 2 nodes, 1 edges, target pay>"


def test_one_network_has_no_confidence_and_says_how_to_get_it(graph: CausalGraph) -> None:
    assert graph.confidence.isna().all(axis=None) and graph.direction.isna().all(axis=None)
    assert graph.agreement_of == "" and len(graph.uncertain_edges()) == 0
    assert (
        "Confidence and direction are not known (NaN); they need several networks: fit with n_members=20, "
        "bootstrap=True, or by cross-validation." in graph.summary().splitlines()
    )
    edited = graph.with_edge("a", "b", 0.4)  # the user is sure of this one
    assert edited.edges()["confidence"].tolist()[1] == 1 and "not known" in edited.summary()
    two = CausalGraph.from_members(np.stack([graph.learned_array] * 2), list("abc"), "c", agreement_of="two twins")
    assert "Confidence is the agreement of two twins: " in two.summary() and "not known" not in two.summary()
    assert two.edges()["confidence"].tolist() == [1, 0, 0]


def test_weights_that_are_no_weights_raise() -> None:
    for bad in (-0.1, np.nan, np.inf):
        weights = np.array([[0.0, bad], [0.0, 0.0]])
        with pytest.raises(ValueError, match="negative weights, or weights that are not finite"):
            CausalGraph(("a", "b"), ("b",), weights, weights, weights, weights)


def test_required_edges_are_kept_first() -> None:
    weights = np.array([[[0.0, 0.1], [0.9, 0.0]]])
    required = np.array([[False, True], [False, False]])
    graph = CausalGraph.from_members(weights, ["a", "b"], target="b", threshold=0.5, required=required)
    assert graph.parents("b") == ["a"]
    assert graph.confidence.loc["a", "b"] == 1
    assert (graph.direction.loc["a", "b"], graph.direction.loc["b", "a"]) == (1, 0)


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
        graph = CausalGraph.from_weights(weights, [f"x{k}" for k in range(n)], target="x0", threshold=rng.random())
        assert graph.is_dag
        assert nx.is_directed_acyclic_graph(graph.to_networkx())
    with pytest.raises(ValueError, match="finite and not negative"):
        CausalGraph.from_weights(np.array([[0, np.inf], [0, 0]]), ["a", "b"], target="b")


def test_a_graph_without_weight_drops_nothing() -> None:
    assert CausalGraph.from_weights(np.zeros((2, 2)), ["a", "b"], target="b").dropped_weight == 0


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
