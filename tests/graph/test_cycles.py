"""Cycles and paths."""

from __future__ import annotations

import itertools

import networkx as nx
import numpy as np
import pytest

from castlereg.graph.cycles import find_cycle, reachability


@pytest.mark.parametrize("seed", range(20))
def test_agrees_with_networkx(seed: int) -> None:
    edges = np.random.default_rng(seed).random((9, 9)) < 0.15
    graph = nx.from_numpy_array(edges, create_using=nx.DiGraph)
    cycle = find_cycle(edges)
    assert (cycle is None) == nx.is_directed_acyclic_graph(graph)
    if cycle is not None:
        assert cycle[0] == cycle[-1]
        assert all(edges[a, b] for a, b in itertools.pairwise(cycle))
    reached = nx.transitive_closure(graph, reflexive=False)
    np.testing.assert_array_equal(reachability(edges), nx.to_numpy_array(reached, nodelist=range(9)) > 0)
