"""The layered picture as SVG, for web pages and notebooks, without matplotlib."""

from __future__ import annotations

import html
import math
import re
from collections.abc import Iterable, Sequence

from castlereg.causal.graph.causal_graph import FOR_CONFIDENCE, NOT_PROOF, CausalGraph
from castlereg.causal.graph.drawing.layered import Places, Point, curves
from castlereg.causal.graph.drawing.picture import (
    CAPTION_SIZE,
    FONT_SIZE,
    MOST_NODES,
    Line,
    Picture,
    edges_around,
    neighbourhood,
    picture,
    strongest_edges,
)

_SCALE = 1.3  # pixels per point of the layout: letters of 13 pixels, as on web pages
_MARGIN = 10.0

# Notebooks have their own themes, whose light or dark mode may differ from the system's. So boxes have their own
# background, and lines and loose letters have colours that are visible on white and on black.
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
    """Draw the strongest edges of a graph as SVG; see :meth:`CausalGraph.to_svg`."""
    indices = range(len(graph.names)) if nodes is None else sorted({graph.index(node) for node in nodes})
    shown = [graph.names[k] for k in indices]
    return _svg(graph, picture(graph, strongest_edges(graph, shown, max_edges), shown))


def notebook_html(graph: CausalGraph) -> str:
    """Return a picture of a graph, or of the target's neighbourhood if the graph is large, as HTML with a caption."""
    nodes, sentences = graph.nodes, []
    if len(nodes) > MOST_NODES:
        nodes = neighbourhood(graph, graph.target)
        shown = picture(graph, edges_around(graph, [graph.target], nodes), nodes)
        sentences.append(f"The graph is large; this is the neighbourhood of {_escaped(graph.target)}.")
    else:
        shown = picture(graph, strongest_edges(graph, nodes), nodes)
    sentences += [f"{graph.dropped_weight:.0%} of the learned weight was cut to remove cycles.", shown.caption]
    return (
        f'<div style="overflow-x: auto">{_svg(graph, shown, caption=False)}'
        f'<p style="font-size: small; opacity: 0.8">{" ".join(sentences)}</p></div>'
    )


def _svg(graph: CausalGraph, shown: Picture, caption: bool = True) -> str:
    places = shown.places
    wide, high = places.width + 2 * _MARGIN, places.height + (4 if caption else 2) * _MARGIN
    label = f"Graph of {len(places.boxes)} nodes and {len(shown.lines)} edges, target {', '.join(graph.targets)}"
    strongest = "; ".join(_described(line) for line in shown.lines[:-6:-1]) or "none"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="castlereg-graph" role="img" aria-label="{_escaped(label)}" '
        f'width="{wide * _SCALE:.0f}" height="{high * _SCALE:.0f}" '
        f'viewBox="{-_MARGIN:g} {-_MARGIN:g} {wide:.1f} {high:.1f}">',
        f"<desc>{_escaped(f'{NOT_PROOF} Strongest edges: {strongest}.')}</desc>",
        f"<style>{_STYLE}</style>",
        *(_edge(line, places, into_target=line.effect in graph.targets) for line in shown.lines),
    ]
    for node, box in places.boxes.items():
        is_target = node in graph.targets
        parts.append(
            f'<g class="{"target" if is_target else "loose" if node in shown.loose else "node"}">'
            f"<title>{_escaped(f'{node}, target' if is_target else node)}</title>"
            f'<rect x="{box.x - box.width / 2:.1f}" y="{box.y - box.height / 2:.1f}" '
            f'width="{box.width:.1f}" height="{box.height:.1f}" rx="6"/>'
            f'<text x="{box.x:.1f}" y="{box.y:.1f}" font-size="{FONT_SIZE:g}">{_escaped(shown.labels[node])}</text></g>'
        )
    if caption:
        parts.append(
            f'<text class="caption" x="{places.width / 2:.1f}" y="{places.height + 2 * _MARGIN:.1f}" '
            f'font-size="{CAPTION_SIZE:g}">{_escaped(shown.caption)}</text>'
        )
    return "\n".join([*parts, "</svg>"])


def edge_shape(line: Line, route: Sequence[Point]) -> tuple[str, str]:
    """Return the shaft of an edge as the ``d`` of an SVG path, and its arrow head as the ``points`` of a polygon.

    The head is empty for an edge without direction.
    """
    *before, (x, y) = route
    head, half = 5.0 + 1.1 * line.width, 2.0 + 0.9 * line.width
    # The shaft ends inside the head; otherwise a thick one would show next to the tip.
    points = [*before, (x - 0.8 * head, y)] if line.directed else [*before, (x, y)]
    path = f"M{_point(points[0])}" + "".join(f"C{_point(c)} {_point(d)} {_point(e)}" for _, c, d, e in curves(points))
    return path, " ".join(map(_point, [(x, y), (x - head, y - half), (x - head, y + half)])) if line.directed else ""


def dashes(line: Line) -> str:
    """Return the SVG dash pattern of an edge whose direction is uncertain, otherwise an empty string."""
    return "" if line.directed else f"{4 + line.width:.1f} {3 + 0.6 * line.width:.1f}"


def _edge(line: Line, places: Places, into_target: bool) -> str:
    path, head = edge_shape(line, places.routes[line.cause, line.effect])
    dashed = f' stroke-dasharray="{dashes(line)}"' if dashes(line) else ""
    tip = f'<polygon points="{head}"/>' if head else ""
    return (
        f'<g class="edge{" into-target" if into_target else ""}" opacity="{line.opacity:.2f}">'
        f"<title>{_escaped(_described(line) + _confidence_hint(line))}</title>"
        f'<path class="near" d="{path}"/>'
        f'<path d="{path}" stroke-width="{line.width:.2f}"{dashed}/>{tip}</g>'
    )


def _described(line: Line) -> str:
    text = f"{line.cause} -> {line.effect}, weight {line.weight:.2g}"
    if not math.isnan(line.confidence):
        text += f", confidence {line.confidence:.2g}"
    return text if line.directed else f"{text}, this direction in {line.direction:.0%} of networks that join them"


def _confidence_hint(line: Line) -> str:
    return f", confidence not known: {FOR_CONFIDENCE}" if math.isnan(line.confidence) else ""


def _point(point: Point) -> str:
    return f"{point[0]:.1f},{point[1]:.1f}"


def printable(text: str) -> str:
    """Replace control characters, which XML and HTML cannot represent."""
    return re.sub("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "\ufffd", text)


def _escaped(text: str) -> str:
    """Escape a text for XML and HTML."""
    return html.escape(printable(text))
