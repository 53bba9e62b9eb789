"""A graph on the page: its edges, and two pictures to choose from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from castlereg.graph.causal_graph import AGREEMENT, NOT_PROOF, CausalGraph
from castlereg.graph.drawing.layered import Box
from castlereg.graph.drawing.picture import MOST_NODES, edges_around, neighbourhood, picture, strongest_edges
from castlereg.graph.drawing.svg import dashes, edge_shape

_MOST_LISTED = 1000
_SORTABILITY = {"varsortability": "Varsortability", "r2_sortability": "R²-sortability"}


@dataclass(frozen=True)
class Edge:
    """A row of the table of edges."""

    cause: str
    effect: str
    weight: float
    confidence: float | None  # None if it is not known, as for one network
    direction: float | None  # share of this direction among the networks with an edge between the two; None without any
    directed: bool  # whether the networks agree on the direction


@dataclass(frozen=True)
class DrawnEdge:
    """An edge in a picture."""

    rank: int  # its index in the table of edges
    path: str  # path, head and dashes as of :mod:`castlereg.graph.drawing.svg`
    head: str
    dashes: str
    width: float
    opacity: float
    into_target: bool


@dataclass(frozen=True)
class DrawnNode:
    """A node in a picture."""

    index: int  # among the nodes
    label: str
    is_target: bool
    box: Box


@dataclass(frozen=True)
class GraphView:
    """One picture of a graph."""

    key: str  # "all" or "neighbourhood"
    width: float
    height: float
    nodes: tuple[DrawnNode, ...]  # from left to right
    edges: tuple[DrawnEdge, ...]  # weakest first, so that strong ones lie on top


@dataclass(frozen=True)
class GraphContent:
    """Edges, pictures and summary of a graph."""

    nodes: tuple[str, ...]
    targets: tuple[str, ...]
    edges: tuple[Edge, ...]  # strongest first
    n_edges: int  # of the graph; very long lists are cut
    shown: int  # number of the strongest edges that are shown at first
    n_networks: int  # whose agreement is the confidence
    views: tuple[GraphView, ...]
    first_view: str  # key of the view shown at first
    summary: tuple[str, ...]  # lines
    warnings: tuple[str, ...]  # about sortability
    sortability: tuple[tuple[str, float], ...]  # name and share
    not_proof: str = NOT_PROOF


def graph_content(graph: CausalGraph, n_networks: int = 1) -> GraphContent:
    """List the edges of a graph that was learned by this many networks, and draw it.

    >>> from castlereg import CausalGraph
    >>> graph = CausalGraph.from_weights(np.array([[0.0, 0.9], [0.2, 0.0]]), ["age", "income"], target="income")
    >>> content = graph_content(graph)
    >>> [(edge.cause, edge.effect, edge.weight) for edge in content.edges]
    [('age', 'income', 0.9)]
    >>> [view.key for view in content.views]
    ['all', 'neighbourhood']
    """
    frame = graph.edges()
    edges = tuple(
        Edge(cause, effect, weight, _known(confidence), _known(share), directed=not share < AGREEMENT)
        for cause, effect, weight, confidence, share in frame.head(_MOST_LISTED).itertuples(index=False)
    )
    blankets = {node for target in graph.targets for node in neighbourhood(graph, target, steps=0)}
    near = [node for node in graph.nodes if node in blankets]
    views = (
        _view("all", graph, strongest_edges(graph, graph.nodes), graph.nodes),
        _view("neighbourhood", graph, edges_around(graph, graph.targets, near), near),
    )
    warnings = () if graph.traits is None else tuple(graph.traits.remarks(graph.weight_array))
    large = len(graph.nodes) > MOST_NODES
    return GraphContent(
        nodes=graph.names,
        targets=graph.targets,
        edges=edges,
        n_edges=len(frame),
        shown=_shown_at_first(graph, frame, large),
        n_networks=n_networks,
        views=views,
        first_view="neighbourhood" if large else "all",
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


def _shown_at_first(graph: CausalGraph, edges: pd.DataFrame, large: bool) -> int:
    """Show twice as many edges as nodes; in large graphs as many as nodes, and the first five of each target."""
    count = (1 if large else 2) * len(graph.nodes)
    if large:
        for target in graph.targets:
            of_target = edges.index[(edges["cause"] == target) | (edges["effect"] == target)][:5]
            count = max([count, *(of_target + 1)])
    return int(min(count, len(edges), _MOST_LISTED))


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
        if rank[line.cause, line.effect] < _MOST_LISTED
    )
    return GraphView(key, drawn.places.width, drawn.places.height, nodes_drawn, edges_drawn)
