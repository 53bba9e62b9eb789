"""What the page shows of graphs, small and large."""

from __future__ import annotations

import numpy as np

from castlereg import CausalGraph
from castlereg.graph.drawing.picture import neighbourhood
from castlereg.report.graph_view import graph_content

from .handmade import random_graph


def test_a_small_graph_is_shown_whole() -> None:
    graph = random_graph(tuple("abcdefgh"), 14)
    content = graph_content(graph, 3)
    assert content.first_view == "all"
    assert content.shown == len(content.edges) == content.n_edges == len(graph.edges())
    assert {node.index for node in content.views[0].nodes} == set(range(8))
    assert sorted(edge.rank for edge in content.views[0].edges) == list(range(content.n_edges))


def test_edges_are_those_of_the_graph_and_uncertain_directions_have_no_head() -> None:
    graph = random_graph(tuple("abcdefgh"), 14)
    frame = graph.edges()
    content = graph_content(graph, 3)
    uncertain = set(map(tuple, graph.uncertain_edges()[["cause", "effect"]].to_numpy()))
    assert 0 < len(uncertain) < len(frame)
    for edge, row in zip(content.edges, frame.itertuples(), strict=True):
        assert (edge.cause, edge.effect, edge.weight, edge.confidence) == (
            row.cause,
            row.effect,
            row.weight,
            row.confidence,
        )
        assert edge.directed == ((edge.cause, edge.effect) not in uncertain)
    for drawn in content.views[0].edges:
        assert bool(drawn.head) == content.edges[drawn.rank].directed
        assert bool(drawn.dashes) != bool(drawn.head)


def test_a_large_graph_begins_with_the_targets_neighbourhood_and_fewer_edges() -> None:
    names = tuple(f"column {k}" for k in range(60))
    graph = random_graph(names, 400)
    content = graph_content(graph, 3)
    whole, near = content.views
    assert content.first_view == near.key == "neighbourhood"
    assert {graph.names[node.index] for node in near.nodes} == set(neighbourhood(graph, names[-1], steps=0))
    assert content.shown < content.n_edges
    ranks = {edge.rank for edge in near.edges}
    assert any(rank < content.shown for rank in ranks)
    own = [k for k, e in enumerate(content.edges) if names[-1] in (e.cause, e.effect)]
    assert set(own[:5]) <= ranks
    assert content.shown >= own[:5][-1] + 1
    assert len(whole.edges) == 2 * len(names)


def test_the_neighbourhood_of_several_targets_holds_them_all() -> None:
    weights = np.zeros((6, 6))
    weights[[0, 1, 2], [4, 4, 5]] = [0.9, 0.8, 0.7]
    graph = CausalGraph.from_weights(weights, list("abcdyz"), target=["y", "z"])
    near = graph_content(graph).views[1]
    assert {graph.names[node.index] for node in near.nodes} == set("abcyz")
    assert sum(node.is_target for node in near.nodes) == 2
    assert len(near.edges) == 3


def test_a_graph_without_edges_is_shown() -> None:
    content = graph_content(CausalGraph.from_weights(np.zeros((3, 3)), list("abc"), target="c"))
    assert content.shown == content.n_edges == 0
    assert len(content.views[0].nodes) == 3
    assert len(content.views[1].nodes) == 1


def test_direction_without_a_network_that_joins_the_two_is_unknown() -> None:
    weights = np.zeros((2, 3, 3))
    weights[:, 0, 2], weights[:, 1, 2] = 1.0, 0.01
    graph = CausalGraph.from_members(weights, list("abc"), target="c")
    edges = graph_content(graph).edges
    assert (edges[0].direction, edges[1].direction) == (1.0, None)
    assert edges[1].confidence == 0
    alone = graph_content(CausalGraph.from_weights(weights[0], list("abc"), target="c")).edges
    assert {(edge.confidence, edge.direction, edge.directed) for edge in alone} == {(None, None, True)}
