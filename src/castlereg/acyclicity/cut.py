"""From learned weights to the edges of a graph: cut cycles, separate strong edges from weak ones, find a cycle.

Array algorithms: ``weights[j, k]`` is the weight of the edge j -> k, zero for none.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def acyclic_cut(weights: NDArray[np.float64], required: NDArray[np.bool_] | None = None) -> NDArray[np.float64]:
    """Keep edges from the strongest down, with a weight of zero for each that would close a cycle.

    ``required`` edges, which must not contain a cycle, are kept before all others.

    >>> acyclic_cut(np.array([[0.0, 3.0], [1.0, 0.0]]))
    array([[0., 3.],
           [0., 0.]])
    """
    weights = np.asarray(weights, dtype=np.float64)
    if weights.ndim != 2 or weights.shape[0] != weights.shape[1]:
        raise ValueError(f"weights must be a square matrix, got shape {weights.shape}")
    if not (np.isfinite(weights).all() and (weights >= 0).all()):
        raise ValueError("weights must be finite and not negative")
    first = np.zeros_like(weights, dtype=bool) if required is None else required
    order = np.lexsort((-weights.ravel(), ~first.ravel()))
    causes, effects = np.unravel_index(order[weights.flat[order] > 0], weights.shape)
    cut = weights.copy()
    reached = [1 << k for k in range(len(weights))]  # bit k of reached[j]: there is a path from j to k
    for cause, effect in zip(causes.tolist(), effects.tolist(), strict=True):
        if reached[effect] >> cause & 1:
            cut[cause, effect] = 0.0
        elif not reached[cause] >> effect & 1:
            beyond = reached[effect]
            reached = [bits | beyond if bits >> cause & 1 else bits for bits in reached]
    return cut


def strong_edges(weights: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return a mask of the strong edges, for weights of any shape; see :func:`weakest_strong_weight`.

    >>> strong_edges(np.array([0.0, 0.05, 0.04, 0.2, 0.17, 0.06]))
    array([False, False, False,  True,  True, False])
    """
    return (weights > 0) & (weights >= weakest_strong_weight(weights))


def weakest_strong_weight(weights: NDArray[np.float64]) -> float:
    """Return the smallest weight of the strong edges, by Otsu's method; 0 when there are no edges.

    A network gives some weight to nearly every edge, by an amount that depends on the table, so no fixed threshold fits
    all tables. The split into strong and weak edges is the one that explains most of the variance of the weights; all
    edges are strong if they have the same weight.

    >>> weakest_strong_weight(np.array([0.0, 0.05, 0.04, 0.2, 0.17, 0.06]))
    0.17
    """
    ascending = np.sort(weights[weights > 0], axis=None)
    if len(ascending) == 0 or ascending[0] == ascending[-1]:
        return float(ascending[0]) if len(ascending) else 0.0
    below = np.arange(1, len(ascending))
    above = len(ascending) - below
    sums = np.cumsum(ascending)
    means = sums[:-1] / below, (sums[-1] - sums[:-1]) / above
    variance_between = below * above * (means[1] - means[0]) ** 2
    return float(ascending[1:][variance_between.argmax()])


def find_cycle(edges: NDArray[np.bool_]) -> list[int] | None:
    """Return the nodes of a directed cycle, the first of them again at the end, or None if there is no cycle.

    >>> find_cycle(np.array([[0, 1, 0], [0, 0, 1], [1, 0, 0]], bool))
    [0, 1, 2, 0]
    """
    edges = np.asarray(edges, dtype=bool)
    left = np.ones(len(edges), dtype=bool)
    while (sources := left & ~edges[left].any(axis=0)).any():
        left &= ~sources  # nodes without causes are in no cycle
    if not left.any():
        return None
    import networkx as nx  # slow to import, and only an error message needs to name the cycle

    cycle = nx.find_cycle(nx.from_numpy_array(edges, create_using=nx.DiGraph))
    return [*(cause for cause, _ in cycle), cycle[0][0]]
