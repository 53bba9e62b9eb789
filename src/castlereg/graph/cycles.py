"""Cycles and paths of a graph given as a square array: ``edges[j, k]`` is the edge j -> k."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def find_cycle(edges: NDArray[np.bool_]) -> list[int] | None:
    """Find a directed cycle; the first node stands again at the end. None when there is none.

    Parameters
    ----------
    edges : array of bool, shape (nodes, nodes)

    Returns
    -------
    list of int or None

    Examples
    --------
    >>> import numpy as np
    >>> find_cycle(np.array([[0, 1, 0], [0, 0, 1], [1, 0, 0]], bool))
    [0, 1, 2, 0]
    >>> find_cycle(np.array([[0, 1], [0, 0]], bool)) is None
    True
    """
    edges = np.asarray(edges, dtype=bool)
    left = np.ones(len(edges), dtype=bool)
    while True:
        caused = edges[left].any(axis=0)
        if not (left & ~caused).any():
            break
        left &= caused  # nodes without causes are in no cycle
    if not left.any():
        return None
    # Every node that is left has a cause that is left: walking back must come round.
    walk = [int(np.argmax(left))]
    while walk[-1] not in walk[:-1]:
        walk.append(int(np.argmax(left & edges[:, walk[-1]])))
    cycle = walk[walk.index(walk[-1]) :][::-1]
    first = cycle.index(min(cycle))
    return [*cycle[first:-1], *cycle[: first + 1]] if first else cycle


def reachability(edges: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Tell which nodes reach which along edges, shape (nodes, nodes); a node reaches itself on a cycle only.

    Parameters
    ----------
    edges : array of bool, shape (nodes, nodes)

    Returns
    -------
    array of bool, shape (nodes, nodes)

    Examples
    --------
    >>> import numpy as np
    >>> reachability(np.array([[0, 1, 0], [0, 0, 1], [0, 0, 0]], bool)).astype(int)
    array([[0, 1, 1],
           [0, 0, 1],
           [0, 0, 0]])
    """
    reaches = np.array(edges, dtype=bool)
    for middle in range(len(reaches)):  # Warshall
        reaches |= np.outer(reaches[:, middle], reaches[middle])
    return reaches
