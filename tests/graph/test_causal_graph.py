"""Names, edges and pictures of a graph."""

from __future__ import annotations

import matplotlib as mpl
import networkx as nx
import numpy as np
import pytest

from castlereg import CausalGraph


@pytest.fixture
def graph() -> CausalGraph:
    weights = np.array([[0, 0.9, 0.3], [0.2, 0, 0.5], [0, 0.1, 0]])
    return CausalGraph.from_weights(weights, ["a", "b", "c"], target="c")


def test_edges_parents_children(graph: CausalGraph) -> None:
    assert graph.edges().to_dict("list") == {
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


def test_unknown_node_is_named(graph: CausalGraph) -> None:
    with pytest.raises(KeyError, match="no node 'z'; the nodes are a, b, c"):
        graph.parents("z")


@pytest.mark.parametrize(
    ("names", "target", "message"),
    [(["a", "b"], "a", "2 nodes|3 nodes"), (["a", "a", "b"], "a", "different names"), (["a", "b", "c"], "z", "'z'")],
)
def test_bad_names_are_refused(names: list[str], target: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        CausalGraph.from_weights(np.zeros((3, 3)), names, target=target)


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
