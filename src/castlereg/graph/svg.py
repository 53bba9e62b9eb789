"""The layered picture as SVG, for web pages and notebooks; needs no matplotlib."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from castlereg.graph.layered import Box, Places, Point, curves
from castlereg.graph.neighbourhood import edges_around, neighbourhood
from castlereg.graph.picture import CAPTION_SIZE, FONT_SIZE, NOT_PROOF, Line, Picture, picture

if TYPE_CHECKING:
    from castlereg.graph.causal_graph import CausalGraph

# Pixels for each point of the layout: letters of 13 pixels, about those of a web page.
_SCALE = 1.3
_MARGIN = 10.0
_MOST_NODES_IN_NOTEBOOK = 40

# Notebooks have themes of their own, light or dark whatever the system prefers. So boxes bring their background along,
# and lines and loose letters have colours that can be seen on white and on black.
_STYLE = """
.castlereg-graph { font: 10px system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
.castlereg-graph text { text-anchor: middle; dominant-baseline: central; fill: #1b2733; }
.castlereg-graph .caption, .castlereg-graph .loose text { fill: #7b8894; }
.castlereg-graph .caption { font-size: 8px; }
.castlereg-graph rect { fill: #eef2f6; stroke: #66788a; stroke-width: 0.8; }
.castlereg-graph .loose rect { fill: none; stroke: #7b8894; }
.castlereg-graph .target rect { fill: #ffd8a8; stroke: #d9480f; }
.castlereg-graph .target text { fill: #1b2733; font-weight: bold; }
.castlereg-graph .edge { color: #66788a; }
.castlereg-graph .into-target { color: #e8590c; }
.castlereg-graph .edge:hover { opacity: 1; }
.castlereg-graph .edge path { fill: none; stroke: currentColor; }
.castlereg-graph .edge polygon { fill: currentColor; }
.castlereg-graph .edge .near { stroke-width: 9px; stroke-opacity: 0; pointer-events: stroke; }
@media screen {
  .castlereg-graph { max-width: 100%; height: auto; }
}
@media (prefers-color-scheme: dark) {
  .castlereg-graph text { fill: #eef2f6; }
  .castlereg-graph .caption, .castlereg-graph .loose text { fill: #8b98a5; }
  .castlereg-graph rect { fill: #2b3642; stroke: #8b98a5; }
  .castlereg-graph .loose rect { fill: none; stroke: #8b98a5; }
  .castlereg-graph .target rect { fill: #7a3a0c; stroke: #ff922b; }
  .castlereg-graph .target text { fill: #fff4e6; }
  .castlereg-graph .edge { color: #7f91a3; }
  .castlereg-graph .into-target { color: #f76707; }
}
"""


def to_svg(graph: CausalGraph, *, max_edges: int | None = None, nodes: Iterable[str] | None = None) -> str:
    """Draw the strongest edges of a graph as SVG, causes left and effects right.

    The width of a line is the weight of its edge, its opacity the confidence; where networks disagree on the direction
    it is dashed and has no arrow head. Lines and boxes say what they are when the mouse is over them.

    Parameters
    ----------
    graph : CausalGraph
    max_edges : int, optional
        Draw this many of the strongest edges; twice as many as there are nodes by default.
    nodes : iterable of str, optional
        Draw only these nodes and the edges between them.

    Returns
    -------
    str
        An SVG element that stands alone, as a file or within HTML.

    Examples
    --------
    >>> import numpy as np
    >>> from castlereg import CausalGraph
    >>> graph = CausalGraph.from_weights(np.array([[0.0, 0.53], [0.0, 0.0]]), ["age", "income"], target="income")
    >>> "<title>age -&gt; income, weight 0.53, confidence 1</title>" in to_svg(graph)
    True
    """
    wanted = graph.nodes if nodes is None else list(nodes)
    for node in wanted:
        if node not in graph.nodes:
            raise KeyError(f"there is no node {node!r}; the nodes are {', '.join(graph.nodes)}")
    shown = [node for node in graph.nodes if node in wanted]
    edges = graph.edges()
    edges = edges[edges["cause"].isin(shown) & edges["effect"].isin(shown)]
    return _svg(graph, picture(graph, edges.head(2 * len(shown) if max_edges is None else max_edges), shown))


def notebook_html(graph: CausalGraph) -> str:
    """Show a graph in a notebook: its picture, or that of the target's neighbourhood if it is large, and a few numbers.

    Parameters
    ----------
    graph : CausalGraph

    Returns
    -------
    str
        HTML.

    Examples
    --------
    >>> import numpy as np
    >>> from castlereg import CausalGraph
    >>> graph = CausalGraph.from_weights(np.array([[0.0, 0.9], [0.1, 0.0]]), ["age", "income"], target="income")
    >>> text = notebook_html(graph)
    >>> "2 of 2 nodes and 1 of 1 edges shown; 10% of the learned weight was cut" in text
    True
    """
    edges = graph.edges()
    if len(graph.nodes) > _MOST_NODES_IN_NOTEBOOK:
        nodes = neighbourhood(graph, graph.target)
        shown = picture(graph, edges_around(graph, graph.target, nodes), nodes)
        sentences = [f"The graph is large; this is the neighbourhood of {_escaped(graph.target)}."]
    else:
        shown = picture(graph, edges.head(2 * len(graph.nodes)), graph.nodes)
        sentences = []
    sentences += [
        f"{len(shown.places.boxes)} of {len(graph.nodes)} nodes and {len(shown.lines)} of {len(edges)} edges shown; "
        f"{graph.dropped_weight:.0%} of the learned weight was cut to leave no cycle.",
        shown.caption,
    ]
    return (
        f'<div style="overflow-x: auto">{_svg(graph, shown, caption=False)}'
        f'<p style="font-size: small; opacity: 0.8">{" ".join(sentences)}</p></div>'
    )


def _svg(graph: CausalGraph, shown: Picture, caption: bool = True) -> str:
    places = shown.places
    wide, high = places.width + 2 * _MARGIN, places.height + (4 if caption else 2) * _MARGIN
    what = f"Graph of {len(places.boxes)} nodes and {len(shown.lines)} edges, target {', '.join(graph.targets)}"
    strongest = "; ".join(_told(line) for line in shown.lines[:-6:-1])
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="castlereg-graph" role="img" aria-label="{_escaped(what)}" '
        f'width="{wide * _SCALE:.0f}" height="{high * _SCALE:.0f}" '
        f'viewBox="{-_MARGIN:g} {-_MARGIN:g} {wide:.1f} {high:.1f}">',
        f"<desc>{_escaped(f'{NOT_PROOF} Strongest edges: {strongest or None}.')}</desc>",
        f"<style>{_STYLE}</style>",
        *(_edge(line, places, into_target=line.effect in graph.targets) for line in shown.lines),
    ]
    for node, box in places.boxes.items():
        kind = "target" if node in graph.targets else "loose" if node in shown.loose else "node"
        parts.append(_node(kind, node, shown.labels[node], box))
    if caption:
        parts.append(
            f'<text class="caption" x="{places.width / 2:.1f}" y="{places.height + 2 * _MARGIN:.1f}" '
            f'font-size="{CAPTION_SIZE:g}">{_escaped(shown.caption)}</text>'
        )
    return "\n".join([*parts, "</svg>"])


def edge_shape(line: Line, route: Sequence[Point]) -> tuple[str, str]:
    """Draw an edge along its route.

    Parameters
    ----------
    line : Line
    route : sequence of (x, y)

    Returns
    -------
    path : str
        The shaft, as the ``d`` of an SVG path.
    head : str
        Corners of the arrow head, as the ``points`` of an SVG polygon; empty for an edge without direction.

    Examples
    --------
    >>> line = Line("a", "b", 0.5, 1.0, 0.5, width=1.0, opacity=1.0, directed=False)
    >>> edge_shape(line, [(0.0, 0.0), (10.0, 6.0)])
    ('M0.0,0.0C5.0,0.0 5.0,6.0 10.0,6.0', '')
    """
    *before, (x, y) = route
    head, half = 5.0 + 1.1 * line.width, 2.0 + 0.9 * line.width
    # The shaft ends inside the head, else a thick one would show beside the tip.
    points = [*before, (x - 0.8 * head, y)] if line.directed else [*before, (x, y)]
    path = f"M{_point(points[0])}" + "".join(f"C{_point(c)} {_point(d)} {_point(e)}" for _, c, d, e in curves(points))
    return path, " ".join(map(_point, [(x, y), (x - head, y - half), (x - head, y + half)])) if line.directed else ""


def dashes(line: Line) -> str:
    """Return the dashes of an edge whose direction is in doubt, as SVG writes them; else nothing."""
    return "" if line.directed else f"{4 + line.width:.1f} {3 + 0.6 * line.width:.1f}"


def _edge(line: Line, places: Places, into_target: bool) -> str:
    path, head = edge_shape(line, places.routes[line.cause, line.effect])
    dashed = f' stroke-dasharray="{dashes(line)}"' if dashes(line) else ""
    tip = f'<polygon points="{head}"/>' if head else ""
    return (
        f'<g class="edge{" into-target" if into_target else ""}" opacity="{line.opacity:.2f}">'
        f"<title>{_escaped(_told(line))}</title>"
        f'<path class="near" d="{path}"/>'
        f'<path d="{path}" stroke-width="{line.width:.2f}"{dashed}/>{tip}</g>'
    )


def _node(kind: str, name: str, label: str, box: Box) -> str:
    told = f"{name}, target" if kind == "target" else name
    return (
        f'<g class="{kind}"><title>{_escaped(told)}</title>'
        f'<rect x="{box.x - box.width / 2:.1f}" y="{box.y - box.height / 2:.1f}" '
        f'width="{box.width:.1f}" height="{box.height:.1f}" rx="6"/>'
        f'<text x="{box.x:.1f}" y="{box.y:.1f}" font-size="{FONT_SIZE:g}">{_escaped(label)}</text></g>'
    )


def _told(line: Line) -> str:
    told = f"{line.cause} -> {line.effect}, weight {line.weight:.2g}, confidence {line.confidence:.2g}"
    return told if line.directed else f"{told}, this direction in {line.direction:.0%} of networks that join them"


def _point(point: tuple[float, float]) -> str:
    return f"{point[0]:.1f},{point[1]:.1f}"


def printable(text: str) -> str:
    r"""Replace control characters, which XML and HTML have no way at all to write.

    Parameters
    ----------
    text : str

    Returns
    -------
    str

    Examples
    --------
    >>> printable("a\x00b") == "a\ufffdb"
    True
    """
    return re.sub("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "\ufffd", text)


def _escaped(text: str) -> str:
    """Make a text safe within XML and HTML."""
    return html.escape(printable(text))
