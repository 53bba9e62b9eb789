"""The nodes around one node, for pictures of large graphs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import networkx as nx
import numpy as np
import pandas as pd

from castlereg.graph.picture import triples

if TYPE_CHECKING:
    from castlereg.graph.causal_graph import CausalGraph


def neighbourhood(graph: CausalGraph, node: str, steps: int = 1, max_nodes: int = 30) -> list[str]:
    """Name the nodes around one node: its Markov blanket, then nodes some steps further.

    The blanket are the node's causes, its effects, and the other causes of these effects: whoever knows them learns
    nothing more about the node from the rest, if the graph is right. Networks give some weight to nearly every edge,
    so only strong edges count here: see :func:`edges_around`.

    Parameters
    ----------
    graph : CausalGraph
    node : str
    steps : int
        After the blanket come the causes and effects of its nodes, then theirs, so many times.
    max_nodes : int
        Length of the list at most.

    Returns
    -------
    list of str
        The node itself, its blanket, then each step, strongest first; a node that is reached by several edges is as
        strong as the weakest of them.

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
    edges = edges_around(graph, node, graph.nodes)
    causes, effects = nx.DiGraph(), nx.DiGraph()
    for joined in (causes, effects):
        joined.add_nodes_from(graph.nodes)
    effects.add_weighted_edges_from(triples(edges))
    causes.add_weighted_edges_from((effect, cause, weight) for cause, effect, weight in triples(edges))

    found = {node: np.inf}
    blanket = _reached(found, (causes, effects))
    others = _reached({child: blanket[child] for child in effects[node]}, (causes,))
    for other, strength in others.items():
        blanket[other] = max(strength, blanket.get(other, 0.0))
    step = blanket
    for _ in range(steps + 1):
        found |= dict(sorted(((n, s) for n, s in step.items() if n not in found), key=lambda pair: -pair[1]))
        step = _reached(found, (causes, effects))
    return list(found)[:max_nodes]


def _reached(sources: dict[str, float], ways: Iterable[nx.DiGraph]) -> dict[str, float]:
    """Give each node that one edge joins to a source its strength: the weaker of source and edge, at the best."""
    strength: dict[str, float] = {}
    for way in ways:
        for source, limit in sources.items():
            for other, edge in way[source].items():
                strength[other] = max(strength.get(other, 0.0), min(limit, edge["weight"]))
    return strength


def edges_around(graph: CausalGraph, node: str, nodes: Iterable[str], own: int = 5) -> pd.DataFrame:
    """List the edges that count around a node: the strongest of the graph, and the strongest of the node itself.

    Parameters
    ----------
    graph : CausalGraph
    node : str
    nodes : iterable of str
        Edges between these.
    own : int
        So many of the node's own edges count even if they are not among the strongest of the graph, which are twice as
        many as nodes.

    Returns
    -------
    DataFrame
        Rows of ``graph.edges()``.
    """
    if node not in graph.nodes:
        raise KeyError(f"there is no node {node!r}; the nodes are {', '.join(graph.nodes)}")
    edges = graph.edges()
    mine = edges.index[(edges["cause"] == node) | (edges["effect"] == node)][:own]
    counted = edges[(edges.index < 2 * len(graph.nodes)) | edges.index.isin(mine)]
    among = list(nodes)
    return counted[counted["cause"].isin(among) & counted["effect"].isin(among)]
