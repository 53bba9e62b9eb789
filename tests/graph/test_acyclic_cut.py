"""The cut always gives a DAG and keeps what it can."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from castlereg.graph.acyclic_cut import acyclic_cut


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
def test_bad_weights_are_refused(bad: np.ndarray) -> None:
    with pytest.raises(ValueError, match="finite and not negative"):
        acyclic_cut(bad)


def test_weights_must_be_square() -> None:
    with pytest.raises(ValueError, match=r"shape \(2, 3\)"):
        acyclic_cut(np.zeros((2, 3)))
