"""Graphs that may be true, drawn from the confidence and direction of each edge."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from castlereg.causal.graph.causal_graph import CausalGraph
from castlereg.causal.structural.system import reached_from

Edges = NDArray[np.bool_]

_UNLIKELY = 0.02  # pairs with a lower probability of an edge never have one
_FIRST_SWEEPS, _SWEEPS = 5, 2  # sweeps over all pairs, before the first graph and between graphs


def graph_draws(graph: CausalGraph, n_draws: int, rng: np.random.Generator) -> list[Edges]:
    """Draw acyclic graphs in which each pair has an edge, and each edge its direction, with the graph's probabilities.

    Pairs are independent, given that the graph is acyclic: one pair at a time is drawn again, without directions that
    would close a cycle (Gibbs sampling). If probabilities are not known, all draws are the graph itself.

    Parameters
    ----------
    graph : CausalGraph
        The graph, with ``confidence`` and ``direction``.
    n_draws : int
    rng : Generator

    Examples
    --------
    >>> import numpy as np
    >>> weights = np.array([[[0.0, 0.9], [0.0, 0.0]]] * 3 + [[[0.0, 0.0], [0.3, 0.0]]])  # one of four disagrees
    >>> graph = CausalGraph.from_members(weights, ["age", "income"], target="income")
    >>> draws = graph_draws(graph, 400, np.random.default_rng(0))
    >>> bool(0.7 < np.mean([edges[0, 1] for edges in draws]) < 0.8)
    True
    """
    joined = graph.confidence_array
    pairs = [(j, k) for j, k in np.argwhere(np.triu(joined >= _UNLIKELY, 1)).tolist()]
    if not n_draws or not pairs or not np.isfinite(joined[graph.edge_array]).all():
        return [graph.edge_array] * n_draws
    forward = np.nan_to_num(graph.direction_array, nan=0.5)
    edges, drawn = graph.edge_array & (joined >= _UNLIKELY), []
    for sweep in range(_FIRST_SWEEPS + _SWEEPS * n_draws):
        for index in rng.permutation(len(pairs)):
            j, k = pairs[index]
            edges[j, k] = edges[k, j] = False
            shares = joined[j, k] * np.array([forward[j, k], 1 - forward[j, k], 0.0])
            shares[2] = 1 - joined[j, k]
            if shares[0] and reached_from(edges, [k])[j]:
                shares[0] = 0.0
            if shares[1] and reached_from(edges, [j])[k]:
                shares[1] = 0.0
            total = shares.sum()
            choice = 2 if total <= 0 else int(np.searchsorted(np.cumsum(shares / total), rng.random()))
            if choice < 2:
                edges[(j, k) if choice == 0 else (k, j)] = True
        if sweep >= _FIRST_SWEEPS and (sweep - _FIRST_SWEEPS) % _SWEEPS == 0:
            drawn.append(edges.copy())
    return drawn
