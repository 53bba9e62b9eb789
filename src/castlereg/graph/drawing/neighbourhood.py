"""The nodes around one node, for pictures of large graphs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import networkx as nx
import numpy as np
import pandas as pd

if TYPE_CHECKING:
    from castlereg.graph.causal_graph import CausalGraph


def neighbourhood(graph: CausalGraph, node: str, steps: int = 1, max_nodes: int = 30) -> list[str]:
    """Name the nodes around a node: the node itself, its Markov blanket, then nodes some steps further.

    Networks give some weight to nearly every edge, so only the edges of :func:`edges_around` count. Within the blanket
    and within each step the strongest nodes come first; a node behind several edges is as strong as the weakest.

    Examples
    --------
    >>> import numpy as np
    >>> from castlereg import CausalGraph
    >>> weights = np.zeros((5, 5))
    >>> weights[[0, 1, 2, 4], [1, 3, 3, 2]] = [0.4, 0.9, 0.6, 0.5]
    >>> graph = CausalGraph.from_weights(weights, ["far", "first", "second", "target", "further"], target="target")
    >>> neighbourhood(graph, "target")
    ['target', 'first', 'second', 'further', 'far']
    >>> neighbourhood(graph, "far", steps=0)
    ['far', 'first']
    """
    if steps < 0 or max_nodes < 1:
        raise ValueError(f"steps must be at least 0 and max_nodes at least 1, got {steps} and {max_nodes}")
    edges = edges_around(graph, [node], graph.nodes)
    effects = nx.DiGraph()
    effects.add_nodes_from(graph.nodes)
    effects.add_weighted_edges_from(edges[["cause", "effect", "weight"]].itertuples(index=False))
    causes = effects.reverse(copy=False)

    reached = {node: np.inf}
    blanket = _next_to(reached, (causes, effects))
    others = _next_to({child: blanket[child] for child in effects[node]}, (causes,))
    for other, strength in others.items():
        blanket[other] = max(strength, blanket.get(other, 0.0))
    step = blanket
    for _ in range(steps + 1):
        reached |= dict(sorted(((n, s) for n, s in step.items() if n not in reached), key=lambda pair: -pair[1]))
        step = _next_to(reached, (causes, effects))
    return list(reached)[:max_nodes]


def _next_to(sources: dict[str, float], ways: Iterable[nx.DiGraph]) -> dict[str, float]:
    """Return the strength of each node next to a source: the weaker of source and edge, over the best such edge."""
    strength: dict[str, float] = {}
    for way in ways:
        for source, limit in sources.items():
            for other, edge in way[source].items():
                strength[other] = max(strength.get(other, 0.0), min(limit, edge["weight"]))
    return strength


def edges_around(graph: CausalGraph, centres: Sequence[str], nodes: Sequence[str], per_centre: int = 5) -> pd.DataFrame:
    """Return the rows of ``graph.edges()`` between some nodes that count around the centres.

    These are the strongest edges of the graph, twice as many as nodes, and the ``per_centre`` strongest of each centre.
    """
    edges = graph.edges()
    counted = {*edges.index[: 2 * len(graph.names)]}
    for centre in centres:
        graph.index(centre)
        counted.update(edges.index[(edges["cause"] == centre) | (edges["effect"] == centre)][:per_centre])
    return edges[edges.index.isin(counted) & edges["cause"].isin(nodes) & edges["effect"].isin(nodes)]
