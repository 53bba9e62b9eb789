"""Graphs drawn by how sure a graph is."""

from __future__ import annotations

import numpy as np

from castlereg.acyclicity.cut import find_cycle
from castlereg.causal.graph import CausalGraph
from castlereg.causal.structural.graph_draws import graph_draws


def graph_with(joined: np.ndarray, direction: np.ndarray) -> CausalGraph:
    weights = np.triu(np.ones_like(joined), 1)
    names = tuple(f"x{i}" for i in range(len(joined)))
    return CausalGraph(names, names[-1:], weights, weights, joined, direction)


def test_draws_have_no_cycles_and_differ() -> None:
    joined, direction = np.full((6, 6), 0.8), np.full((6, 6), 0.5)
    draws = graph_draws(graph_with(joined, direction), 100, np.random.default_rng(0))
    assert all(find_cycle(edges) is None for edges in draws)
    assert len({edges.tobytes() for edges in draws}) > 90


def test_shares_are_those_of_independent_pairs_without_a_cycle() -> None:
    """Three nodes, all pairs joined, directions of 1/2: six of eight graphs have no cycle, each as likely."""
    draws = graph_draws(graph_with(np.ones((3, 3)), np.full((3, 3), 0.5)), 3000, np.random.default_rng(0))
    counts = np.unique([edges.tobytes() for edges in draws], return_counts=True)[1]
    assert len(counts) == 6
    assert np.abs(counts / 3000 - 1 / 6).max() < 0.03


def test_sure_edges_stay_and_unlikely_ones_never_come() -> None:
    joined, direction = np.full((3, 3), 0.01), np.full((3, 3), 0.5)
    joined[0, 1] = joined[1, 0] = 1.0
    direction[0, 1], direction[1, 0] = 1.0, 0.0
    for edges in graph_draws(graph_with(joined, direction), 20, np.random.default_rng(0)):
        assert np.argwhere(edges).tolist() == [[0, 1]]


def test_without_probabilities_there_is_only_the_graph() -> None:
    graph = CausalGraph.from_weights(np.array([[0.0, 1.0], [0.0, 0.0]]), ["a", "b"], "b")
    draws = graph_draws(graph, 5, np.random.default_rng(0))
    assert len(draws) == 5 and all((edges == graph.edge_array).all() for edges in draws)
