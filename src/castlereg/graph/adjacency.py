"""Checks of graphs given as arrays: ``matrix[j, k]`` is not zero for an edge j -> k."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from castlereg.acyclicity.cut import find_cycle


def square_matrix(name: str, matrix: ArrayLike) -> NDArray[np.float64]:
    """Return a square matrix without NaN, which would otherwise count as an edge."""
    values = np.asarray(matrix, dtype=np.float64)
    if values.ndim != 2 or values.shape[0] != values.shape[1]:
        raise ValueError(f"{name} must be a square matrix, got shape {values.shape}")
    if np.isnan(values).any():
        raise ValueError(f"{name} has NaN at {tuple(np.argwhere(np.isnan(values))[0].tolist())}")
    return values


def edge_matrix(name: str, matrix: ArrayLike, *, acyclic: bool = True) -> NDArray[np.bool_]:
    """Return where there are edges; none may join a node to itself, and by default there may be no cycle at all."""
    present = square_matrix(name, matrix) != 0
    if np.diag(present).any():
        raise ValueError(f"{name} has a cycle: an edge from node {int(np.diag(present).argmax())} to itself")
    cycle = find_cycle(present) if acyclic else None
    if cycle is not None:
        raise ValueError(f"{name} has a cycle: {' -> '.join(map(str, cycle))}")
    return present
