"""Checks of graphs given as arrays."""

from __future__ import annotations

import numpy as np
import pytest

from castlereg.causal.graph.sortability import edge_matrix, square_matrix


def test_weights_of_either_sign_are_edges() -> None:
    np.testing.assert_array_equal(edge_matrix("graph", [[0, -0.5], [0, 0]]), [[False, True], [False, False]])
    np.testing.assert_array_equal(square_matrix("weights", [[1, 2], [3, 4]]), [[1.0, 2.0], [3.0, 4.0]])


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (np.zeros((2, 3)), r"graph must be a square matrix, got shape \(2, 3\)"),
        ([[0, np.nan], [0, 0]], r"graph contains NaN at \(0, 1\)"),
        ([[0, 0], [0, 1]], "graph has a cycle: an edge from node 1 to itself"),
        ([[0, 1], [1, 0]], "graph has a cycle: 0 -> 1 -> 0"),
    ],
)
def test_bad_matrices_raise(matrix: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        edge_matrix("graph", matrix)  # type: ignore[arg-type]


def test_cycles_through_several_nodes_may_be_allowed() -> None:
    assert edge_matrix("graph", [[0, 1], [1, 0]], acyclic=False).sum() == 2
