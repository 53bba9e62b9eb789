"""Content and layout of a layered picture, for matplotlib, SVG and reports."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import networkx as nx
import numpy as np
import pandas as pd

from castlereg.causal.graph.causal_graph import AGREEMENT, NOT_PROOF, CausalGraph
from castlereg.causal.graph.drawing.layered import Places, layered

FONT_SIZE, CAPTION_SIZE = 10.0, 8.0
MOST_NODES = 40  # of larger graphs, the neighbourhood of the target is shown first

_MOST_LOOSE = 30  # more nodes without an edge than this are not drawn
_LETTERS = {0.32: "ijl.,:;'|! ", 0.4: 'ftr()[]{}-/\\"', 0.96: "mwMW%@…"}  # by width, in units of the font size
_WIDTHS = {letter: width for width, letters in _LETTERS.items() for letter in letters}


class Line(NamedTuple):
    """An edge as it is drawn; ``directed`` if the networks agree on its direction."""

    cause: str
    effect: str
    weight: float
    confidence: float  # NaN if it is not known, as for a single network
    direction: float  # also NaN if no network joins the two nodes
    width: float
    opacity: float
    directed: bool


class Picture(NamedTuple):
    """Everything a layered picture shows."""

    places: Places
    labels: dict[str, str]  # of the boxes, by node
    lines: list[Line]  # weakest first, so that strong ones lie on top
    loose: frozenset[str]  # nodes without a line
    caption: str


def strongest_edges(graph: CausalGraph, nodes: Sequence[str], max_edges: int | None = None) -> pd.DataFrame:
    """Return the strongest edges between some nodes, by default twice as many as there are nodes."""
    edges = graph.edges()
    if len(nodes) < len(graph.names):
        edges = edges[edges["cause"].isin(nodes) & edges["effect"].isin(nodes)]
    return edges.head(2 * len(nodes) if max_edges is None else max_edges)


def shown_of(graph: CausalGraph, n_edges: int, n_nodes: int | None = None) -> str:
    """Return a sentence on how much of a graph a picture shows; empty if it shows everything.

    Pictures omit weak edges if there are many. :func:`picture` puts this sentence into its caption. For your own
    picture, pass the numbers of edges and nodes that it draws (by default all nodes).

    Examples
    --------
    >>> import numpy as np
    >>> weights = np.triu(np.ones((4, 4)), 1)
    >>> graph = CausalGraph.from_weights(weights, ["a", "b", "c", "d"], target="d")
    >>> shown_of(graph, 5)
    'Shown: the 5 strongest of 6 edges.'
    >>> shown_of(graph, 2, n_nodes=3)
    'Shown: 3 of 4 nodes, 2 of 6 edges.'
    >>> shown_of(graph, 6)
    ''
    """
    all_edges, all_nodes = int(np.count_nonzero(graph.edge_array)), len(graph.names)
    if n_nodes is not None and n_nodes < all_nodes:
        return f"Shown: {n_nodes} of {all_nodes} nodes, {n_edges} of {all_edges} edges."
    return f"Shown: the {n_edges} strongest of {all_edges} edges." if n_edges < all_edges else ""


def neighbourhood(graph: CausalGraph, node: str, steps: int = 1, max_nodes: int = 30) -> list[str]:
    """Return the nodes around a node: the node itself, its Markov blanket, then nodes some steps further.

    Networks give some weight to nearly every edge, so only the edges of :func:`edges_around` count. Within the blanket
    and within each step the strongest nodes come first; a node behind several edges is as strong as the weakest edge.

    Examples
    --------
    >>> import numpy as np
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
    """Return the rows of ``graph.edges()`` between some nodes that matter around the centres.

    These are the strongest edges of the graph, twice as many as it has nodes, and the ``per_centre`` strongest of each
    centre.
    """
    edges = graph.edges()
    counted = {*edges.index[: 2 * len(graph.names)]}
    for centre in centres:
        graph.index(centre)
        counted.update(edges.index[(edges["cause"] == centre) | (edges["effect"] == centre)][:per_centre])
    return edges[edges.index.isin(counted) & edges["cause"].isin(nodes) & edges["effect"].isin(nodes)]


def picture(graph: CausalGraph, edges: pd.DataFrame, nodes: Sequence[str]) -> Picture:
    """Lay out some rows of ``graph.edges()`` and the nodes that may be shown with them."""
    joined = {*edges["cause"], *edges["effect"]}
    loose = [node for node in nodes if node not in joined]
    left_out = {node for node in loose if node not in graph.targets} if len(loose) > _MOST_LOOSE else set()
    shown = [node for node in nodes if node not in left_out]
    labels = {node: shortened(node) for node in shown}
    heaviest = edges["weight"].max() if len(edges) else 1.0
    lines = []
    for cause, effect, weight, confidence, direction in edges.iloc[::-1].itertuples(index=False):
        opacity = 0.4 + 0.55 * (weight / heaviest if np.isnan(confidence) else confidence)
        width, directed = 0.9 + 2.6 * weight / heaviest, not direction < AGREEMENT  # NaN is directed
        lines.append(Line(cause, effect, weight, confidence, direction, width, opacity, directed))
    sentences = [NOT_PROOF, *filter(None, [shown_of(graph, len(lines), len(nodes))])]
    if not all(line.directed for line in lines):
        sentences.append("Dashed: the direction is unknown.")
    if any(np.isnan(line.confidence) for line in lines):
        sentences.append("Confidence is not known.")
    if left_out:
        sentences.append(f"Left out: {len(left_out)} nodes without an edge among the strongest.")
    elif loose:
        sentences.append("Pale: no edge among the strongest.")
    caption = " ".join(sentences)
    # Bold letters are wider than others.
    widths = {n: text_width(labels[n]) * (1.15 if n in graph.targets else 1.0) * FONT_SIZE + 16 for n in shown}
    places = layered(
        widths,
        list(zip(edges["cause"], edges["effect"], strict=True)),
        min_width=max(420.0, text_width(caption) * CAPTION_SIZE),
    )
    return Picture(places, labels, lines, frozenset(loose) - left_out, caption)


def shortened(name: str, limit: int = 22) -> str:
    """Cut the middle out of a long name to keep ``limit`` characters."""
    # A line break or a tab would not fit into the box.
    name = "".join(" " if unicodedata.category(c) in ("Cc", "Zl", "Zp") else c for c in name)
    if len(name) <= limit:
        return name
    head = (limit - 1) // 2
    return f"{name[:head].rstrip()}…{name[head + 1 - limit :].lstrip()}"


def text_width(text: str) -> float:
    """Estimate the width of a text, in units of the font size, for a wide font such as DejaVu Sans."""
    return sum(_character_width(character) for character in text)


def _character_width(character: str) -> float:
    if unicodedata.combining(character):
        return 0.0
    if unicodedata.east_asian_width(character) in "WF":
        return 1.0
    base = unicodedata.normalize("NFD", character)[0]
    return _WIDTHS.get(base, 0.69 if base.isupper() else 0.63)
