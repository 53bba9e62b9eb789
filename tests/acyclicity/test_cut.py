"""Cutting cycles, telling strong edges from weak ones, finding cycles."""

from __future__ import annotations

import itertools

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from castlereg.acyclicity.cut import acyclic_cut, find_cycle, strong_edges


@settings(deadline=None, max_examples=200)
@given(st.integers(1, 15), st.integers(0, 2**32 - 1), st.integers(1, 5))
def test_always_a_dag_that_no_dropped_edge_could_join(p: int, seed: int, levels: int) -> None:
    """With few levels there are many ties."""
    rng = np.random.default_rng(seed)
    weights = rng.integers(0, levels + 1, (p, p)) / levels
    np.fill_diagonal(weights, 0)
    kept = acyclic_cut(weights)
    graph = nx.from_numpy_array(kept, create_using=nx.DiGraph)
    assert nx.is_directed_acyclic_graph(graph)
    assert ((kept == weights) | (kept == 0)).all()
    for cause, effect in np.argwhere((weights > 0) & (kept == 0)):
        as_strong = nx.from_numpy_array(np.where(kept >= weights[cause, effect], kept, 0), create_using=nx.DiGraph)
        assert nx.has_path(as_strong, effect, cause)


def test_a_dag_is_left_alone() -> None:
    dag = np.triu(np.random.default_rng(0).random((20, 20)), k=1)
    np.testing.assert_array_equal(acyclic_cut(dag), dag)


def test_self_loops_are_dropped() -> None:
    assert not acyclic_cut(np.eye(3)).any()


@pytest.mark.parametrize(
    "bad", [np.array([[0, np.inf], [0, 0]]), np.array([[0, -1.0], [0, 0]]), np.array([[0, np.nan], [0, 0]])]
)
def test_bad_weights_raise(bad: np.ndarray) -> None:
    with pytest.raises(ValueError, match="finite and not negative"):
        acyclic_cut(bad)


def test_weights_must_be_square() -> None:
    with pytest.raises(ValueError, match=r"shape \(2, 3\)"):
        acyclic_cut(np.zeros((2, 3)))


@pytest.mark.parametrize("seed", range(20))
def test_a_cycle_is_found_if_there_is_one(seed: int) -> None:
    edges = np.random.default_rng(seed).random((9, 9)) < 0.15
    cycle = find_cycle(edges)
    assert (cycle is None) == nx.is_directed_acyclic_graph(nx.from_numpy_array(edges, create_using=nx.DiGraph))
    if cycle is not None:
        assert cycle[0] == cycle[-1]
        assert all(edges[a, b] for a, b in itertools.pairwise(cycle))


def test_a_graph_without_nodes_has_no_cycle() -> None:
    assert find_cycle(np.zeros((0, 0), dtype=bool)) is None


@settings(deadline=None, max_examples=100)
@given(st.integers(2, 30), st.integers(0, 2**32 - 1))
def test_no_other_split_leaves_less_variance_inside_the_groups(n: int, seed: int) -> None:
    """Otsu's criterion, against all splits one by one."""
    weights = np.random.default_rng(seed).lognormal(size=n)
    inside = {}
    for threshold in weights:
        groups = [weights[weights >= threshold], weights[weights < threshold]]
        inside[threshold] = sum(((g - g.mean()) ** 2).sum() for g in groups if len(g))
    strong = strong_edges(weights)
    assert inside[weights[strong].min()] <= min(inside.values()) * (1 + 1e-9)
    np.testing.assert_array_equal(strong_edges(1000 * weights), strong)


def test_weights_that_are_all_alike_are_all_strong() -> None:
    np.testing.assert_array_equal(strong_edges(np.array([[0, 2.0], [2.0, 0]])), [[False, True], [True, False]])
    assert not strong_edges(np.zeros((3, 3))).any()
    np.testing.assert_array_equal(strong_edges(np.array([0.0, 1.0, 0.0])), [False, True, False])
