"""The graph on the page: a table of edges and two drawings."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from castlereg.causal.graph.causal_graph import AGREEMENT, FOR_CONFIDENCE, NOT_PROOF, CausalGraph
from castlereg.causal.graph.drawing.layered import Box
from castlereg.causal.graph.drawing.picture import MOST_NODES, edges_around, neighbourhood, picture
from castlereg.causal.graph.drawing.svg import dashes, edge_shape

_MANY_EDGES = 200  # a drawing with more edges, and more than two edges per node, is not readable
_SORTABILITY = {"varsortability": "Varsortability", "r2_sortability": "R²-sortability"}


@dataclass(frozen=True)
class Edge:
    """A row of the table of edges."""

    cause: str
    effect: str
    weight: float
    confidence: float | None  # None if not available, as for a single network
    direction: (
        float | None
    )  # share of this direction among networks with an edge between the two; None if there are none
    directed: bool  # whether the networks agree on the direction


@dataclass(frozen=True)
class DrawnEdge:
    """An edge in a drawing."""

    rank: int  # its index among the edges
    path: str  # path, head and dashes as in :mod:`castlereg.causal.graph.drawing.svg`
    head: str
    dashes: str
    width: float
    opacity: float
    into_target: bool


@dataclass(frozen=True)
class DrawnNode:
    """A node in a drawing."""

    index: int  # among the nodes
    label: str
    is_target: bool
    box: Box


@dataclass(frozen=True)
class GraphView:
    """One drawing of a graph."""

    key: str  # "all" or "neighbourhood"
    width: float
    height: float
    nodes: tuple[DrawnNode, ...]  # from left to right
    edges: tuple[DrawnEdge, ...]  # weakest first, so strong edges are drawn on top
    caption: str  # the nodes that are not drawn, and why; empty if all are drawn


@dataclass(frozen=True)
class GraphContent:
    """Edges, drawings and summary of a graph.

    Table and drawings have the same edges: all edges or, in large graphs, the strongest and those next to a target.
    """

    nodes: tuple[str, ...]
    targets: tuple[str, ...]
    edges: tuple[Edge, ...]  # strongest first
    n_edges: int  # of the graph
    shown: int  # number of the strongest edges that are shown at first
    confidence_note: str  # explains confidence and direction; empty if they are not available
    views: tuple[GraphView, ...]
    first_view: str  # key of the view shown at first
    summary: tuple[str, ...]  # lines
    warnings: tuple[str, ...]  # about sortability
    sortability: tuple[tuple[str, float], ...]  # name and share
    not_proof: str = NOT_PROOF
    for_confidence: str = FOR_CONFIDENCE  # how to obtain confidence


def graph_content(graph: CausalGraph) -> GraphContent:
    """List the edges of a graph and draw it.

    >>> from castlereg import CausalGraph
    >>> graph = CausalGraph.from_weights(np.array([[0.0, 0.9], [0.2, 0.0]]), ["age", "income"], target="income")
    >>> content = graph_content(graph)
    >>> [(edge.cause, edge.effect, edge.weight) for edge in content.edges]
    [('age', 'income', 0.9)]
    >>> [view.key for view in content.views]
    ['all', 'neighbourhood']
    """
    frame = graph.edges()
    counted = edges_around(graph, graph.targets, graph.nodes).index  # 2 x nodes, and the targets' strongest
    page = frame[(frame.index < _MANY_EDGES) | frame.index.isin(counted)].reset_index(drop=True)
    edges = tuple(
        Edge(cause, effect, weight, _known(confidence), _known(share), directed=not share < AGREEMENT)
        for cause, effect, weight, confidence, share in page.itertuples(index=False)
    )
    blankets = {node for target in graph.targets for node in neighbourhood(graph, target, steps=0)}
    near = [node for node in graph.nodes if node in blankets]
    between = page[page["cause"].isin(near) & page["effect"].isin(near)]
    views = (_view("all", graph, page, graph.nodes), _view("neighbourhood", graph, between, near))
    warnings = () if graph.traits is None else tuple(graph.traits.remarks(graph.weight_array))
    return GraphContent(
        nodes=graph.names,
        targets=graph.targets,
        edges=edges,
        n_edges=len(frame),
        shown=_shown_at_first(graph, page),
        confidence_note=graph.confidence_note,
        views=views,
        first_view="neighbourhood" if len(graph.nodes) > MOST_NODES else "all",
        summary=_summary(graph, warnings),
        warnings=warnings,
        sortability=tuple((_SORTABILITY[k], share) for k, share in graph.sortability.items() if not np.isnan(share)),
    )


def _known(share: float) -> float | None:
    return None if np.isnan(share) else share


def _summary(graph: CausalGraph, warnings: tuple[str, ...]) -> tuple[str, ...]:
    """Return the lines of the graph's summary without those that the page shows elsewhere."""
    text = graph.summary().removesuffix(NOT_PROOF).removesuffix("\n")
    for warning in reversed(warnings):
        text = text.removesuffix(warning).removesuffix("\n")
    return tuple(text.split("\n"))


def _shown_at_first(graph: CausalGraph, edges: pd.DataFrame) -> int:
    """Show twice as many edges as nodes, and the first five of each target."""
    count = 2 * len(graph.nodes)
    for target in graph.targets:
        of_target = edges.index[(edges["cause"] == target) | (edges["effect"] == target)][:5]
        count = max([count, *(of_target + 1)])
    return int(min(count, len(edges)))


def _view(key: str, graph: CausalGraph, edges: pd.DataFrame, nodes: list[str]) -> GraphView:
    drawn = picture(graph, edges, nodes)
    rank = {(row.cause, row.effect): int(row.Index) for row in edges.itertuples()}
    index = {name: i for i, name in enumerate(graph.names)}
    boxes = sorted(drawn.places.boxes.items(), key=lambda item: (item[1].x, item[1].y))
    nodes_drawn = tuple(DrawnNode(index[name], drawn.labels[name], name in graph.targets, box) for name, box in boxes)
    edges_drawn = tuple(
        DrawnEdge(
            rank[line.cause, line.effect],
            *edge_shape(line, drawn.places.routes[line.cause, line.effect]),
            dashes(line),
            float(line.width),
            float(line.opacity),
            line.effect in graph.targets,
        )
        for line in drawn.lines
    )
    caption = _caption(len(nodes_drawn), len(nodes), len(graph.names))
    return GraphView(key, drawn.places.width, drawn.places.height, nodes_drawn, edges_drawn, caption)


def _caption(n_drawn: int, n_nodes: int, n_all: int) -> str:
    """Return a sentence on the nodes that a drawing leaves out.

    >>> _caption(40, 101, 101), _caption(8, 8, 8)
    ('Not drawn: 61 columns without an edge on this page.', '')
    """
    sentences = []
    if n_nodes < n_all:
        sentences.append(
            f"{n_nodes} of {n_all} nodes: the target, its strongest causes and effects, and the other causes of these."
        )
    if n_drawn < n_nodes:
        sentences.append(f"Not drawn: {n_nodes - n_drawn} columns without an edge on this page.")
    return " ".join(sentences)
