"""From weights with cycles to a graph without: strongest edges first."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def acyclic_cut(weights: NDArray[np.float64], required: NDArray[np.bool_] | None = None) -> NDArray[np.float64]:
    """Keep edges from the strongest down, skipping each that would close a cycle.

    Parameters
    ----------
    weights : array of shape (nodes, nodes)
        Non-negative; ``weights[j, k]`` is the weight of j -> k.
    required : array of bool, shape (nodes, nodes), optional
        Edges that are kept before all others; without a cycle among them.

    Returns
    -------
    array of shape (nodes, nodes)
        The same weights with those of skipped edges at zero: always a directed acyclic graph.

    Examples
    --------
    >>> import numpy as np
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
    causes, effects = (places.tolist() for places in np.unravel_index(order[weights.flat[order] > 0], weights.shape))
    skipped = []
    reached = [1 << k for k in range(len(weights))]  # bit k of reached[j]: there is a path from j to k
    for cause, effect in zip(causes, effects, strict=True):
        if reached[effect] >> cause & 1:
            skipped.append((cause, effect))
        elif not reached[cause] >> effect & 1:
            beyond = reached[effect]
            reached = [bits | beyond if bits >> cause & 1 else bits for bits in reached]
    kept = weights.copy()
    for cause, effect in skipped:
        kept[cause, effect] = 0.0
    return kept
