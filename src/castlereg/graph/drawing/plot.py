"""The layered picture with matplotlib: causes left, effects right, the target highlighted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from castlereg.graph.drawing.layered import curves
from castlereg.graph.drawing.neighbourhood import edges_around, neighbourhood
from castlereg.graph.drawing.picture import CAPTION_SIZE, FONT_SIZE, Picture, picture, strongest_edges

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.typing import ColorType

    from castlereg.graph.causal_graph import CausalGraph

INTO_TARGET, FAINT = "#d9480f", "#8a949e"

_NODE, _TARGET, _EDGE, _TEXT = "#eef2f6", "#ffd8a8", "#52616f", "#1b2733"
_MOST_INCHES = 60.0


def draw(graph: CausalGraph, ax: Axes | None = None, max_edges: int | None = None) -> Axes:
    """Draw the strongest edges of a graph; see :meth:`CausalGraph.plot`."""
    return _draw(graph, picture(graph, strongest_edges(graph, graph.nodes, max_edges), graph.nodes), ax)


def draw_neighbourhood(
    graph: CausalGraph, node: str | None = None, ax: Axes | None = None, max_nodes: int = 30
) -> Axes:
    """Draw the nodes around one, by default around the target; see :func:`neighbourhood`."""
    node = graph.target if node is None else node
    nodes = neighbourhood(graph, node, max_nodes=max_nodes)
    return _draw(graph, picture(graph, edges_around(graph, [node], nodes), nodes), ax, focus=node)


def _draw(graph: CausalGraph, shown: Picture, ax: Axes | None, focus: str | None = None) -> Axes:
    import matplotlib.pyplot as plt
    from matplotlib.patches import FancyArrowPatch, FancyBboxPatch
    from matplotlib.path import Path

    places, margin = shown.places, 10.0
    wide, high = places.width + 2 * margin, places.height + 2 * margin
    if ax is None:
        shrink = min(1.0, _MOST_INCHES * 72 / max(wide, high))
        _, ax = plt.subplots(figsize=(shrink * wide / 72 + 0.1, shrink * high / 72 + 0.4), layout="constrained")
    ax.set(xlim=(-margin, wide - margin), ylim=(high - margin, -margin), aspect="equal", xticks=[], yticks=[])
    ax.set_frame_on(False)
    # The axes have their size only once they are laid out, and letters are to fit the boxes, which grow with the axes.
    ax.figure.canvas.figure.draw_without_rendering()
    scale = ax.get_window_extent().width / wide * 72 / ax.figure.dpi

    ax.set_xlabel(shown.caption, fontsize=CAPTION_SIZE * min(scale, 1.0), color=FAINT)
    # Transparent arrows would show their shaft through their head; mixed with the background they do not.
    background = ax.figure.get_facecolor()
    for line in shown.lines:
        start, *rest = curves(places.routes[line.cause, line.effect])
        points = [*start, *(point for curve in rest for point in curve[1:])]
        ax.add_patch(
            FancyArrowPatch(
                path=Path(points, [Path.MOVETO] + [Path.CURVE4] * (len(points) - 1)),
                arrowstyle="-|>,head_length=0.7,head_width=0.3" if line.directed else "-",
                linestyle="solid" if line.directed else (0, (3, 2)),
                mutation_scale=(7 + 1.5 * line.width) * scale,
                lw=line.width * scale,
                color=_mixed(INTO_TARGET if line.effect in graph.targets else _EDGE, background, line.opacity),
                capstyle="butt",
                joinstyle="miter",
                zorder=2,
            )
        )
    for node, box in places.boxes.items():
        target, loose = node in graph.targets, node in shown.loose
        ax.add_patch(
            FancyBboxPatch(
                (box.x - box.width / 2, box.y - box.height / 2),
                box.width,
                box.height,
                boxstyle="round,pad=0,rounding_size=6",
                fc=_TARGET if target else "none" if loose else _NODE,
                ec=INTO_TARGET if target else FAINT if loose else _EDGE,
                lw=(1.8 if node == focus else 0.8) * scale,
                zorder=3,
            )
        )
        ax.text(
            box.x,
            box.y,
            shown.labels[node],
            ha="center",
            va="center",
            fontsize=FONT_SIZE * scale,
            fontweight="bold" if target else "normal",
            color=FAINT if loose and not target else _TEXT,
            zorder=4,
            parse_math=False,
        )
    return ax


def _mixed(colour: str, background: ColorType, share: float) -> ColorType:
    """Mix a colour with the background, as if it were transparent; no background counts as white."""
    from matplotlib.colors import to_rgb, to_rgba

    *behind, alpha = to_rgba(background)
    under = alpha * np.array(behind) + 1 - alpha
    red, green, blue = share * np.array(to_rgb(colour)) + (1 - share) * under
    return float(red), float(green), float(blue)
