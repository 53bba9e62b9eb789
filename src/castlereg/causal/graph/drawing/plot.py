"""Pictures with matplotlib: the graph with causes to the left of their effects, and the weights as a heat map."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from castlereg.causal.graph.causal_graph import NOT_PROOF, CausalGraph
from castlereg.causal.graph.drawing.layered import curves
from castlereg.causal.graph.drawing.picture import (
    CAPTION_SIZE,
    FONT_SIZE,
    Picture,
    edges_around,
    neighbourhood,
    picture,
    shortened,
    strongest_edges,
    text_width,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.typing import ColorType

_NODE, _TARGET, _EDGE, _TEXT = "#eef2f6", "#ffd8a8", "#52616f", "#1b2733"
_INTO_TARGET, _FAINT = "#d9480f", "#8a949e"
_MOST_INCHES = 60.0
_SMALLEST_LETTERS = 6.0


def draw(graph: CausalGraph, ax: Axes | None = None, max_edges: int | None = None) -> Axes:
    """Draw the strongest edges of a graph; see :meth:`CausalGraph.plot`."""
    return _draw(graph, picture(graph, strongest_edges(graph, graph.nodes, max_edges), graph.nodes), ax)


def draw_neighbourhood(
    graph: CausalGraph, node: str | None = None, ax: Axes | None = None, max_nodes: int = 30
) -> Axes:
    """Draw the neighbourhood of a node, by default of the target; see :func:`neighbourhood`."""
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
    # The axes get their size only from the layout, and the letters must fit the boxes, which grow with the axes.
    ax.figure.canvas.figure.draw_without_rendering()
    scale = ax.get_window_extent().width / wide * 72 / ax.figure.dpi

    ax.set_xlabel(shown.caption, fontsize=CAPTION_SIZE * min(scale, 1.0), color=_FAINT)
    # The shaft of a transparent arrow shows through its head, so mix its colour with the background instead.
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
                color=_mixed(_INTO_TARGET if line.effect in graph.targets else _EDGE, background, line.opacity),
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
                ec=_INTO_TARGET if target else _FAINT if loose else _EDGE,
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
            color=_FAINT if loose and not target else _TEXT,
            zorder=4,
            parse_math=False,
        )
    return ax


def _mixed(colour: str, background: ColorType, share: float) -> ColorType:
    """Mix a colour with the background, as if it were transparent; a transparent background counts as white."""
    from matplotlib.colors import to_rgb, to_rgba

    *behind, alpha = to_rgba(background)
    under = alpha * np.array(behind) + 1 - alpha
    red, green, blue = share * np.array(to_rgb(colour)) + (1 - share) * under
    return float(red), float(green), float(blue)


def draw_heat_map(graph: CausalGraph, ax: Axes | None = None) -> Axes:
    """Draw all weights as a heat map; see :meth:`CausalGraph.plot_heat_map`."""
    import matplotlib.pyplot as plt
    from matplotlib.colors import PowerNorm

    order = graph.topological_order()
    weights = graph.weights.loc[order, order].to_numpy()
    if ax is None:
        names = max(text_width(shortened(node)) for node in order) * FONT_SIZE / 72
        side = float(np.clip(0.26 * len(order), 2.0, 13.0)) + names + 0.3
        _, ax = plt.subplots(figsize=(side + 0.9, side + 0.4), layout="constrained")
    # Use square roots, because a few edges are many times as heavy as the others. White means no edge.
    image = ax.imshow(
        np.where(weights > 0, weights, np.nan), cmap="BuPu", norm=PowerNorm(0.5, vmin=0, vmax=weights.max() or 1.0)
    )
    bar = ax.figure.colorbar(image, cax=ax.inset_axes((1.02, 0, 0.03, 1)), label="weight")
    bar.outline.set_visible(False)
    ax.set(xlabel="effect", ylabel="cause", facecolor="white")
    ax.xaxis.set_label_position("top")
    ax.tick_params(length=0, top=True, labeltop=True, bottom=False, labelbottom=False)
    ax.spines[:].set_color(_FAINT)
    below = (0, 0), (0, -5), "axes fraction", "offset points"
    ax.annotate(NOT_PROOF, *below, va="top", fontsize=CAPTION_SIZE, color=_FAINT)
    _label_cells(ax, order, [order.index(target) for target in graph.targets])
    return ax


def _label_cells(ax: Axes, names: Sequence[str], targets: Sequence[int]) -> None:
    """Label rows and columns; only some if the cells are smaller than the letters, but always the targets."""

    def label(font_size: float, every: int) -> None:
        free = [i for i in range(0, len(names), every) if all(abs(i - target) >= every for target in targets)]
        labelled = sorted({*targets, *free})
        for axis, rotation in ((ax.xaxis, 90), (ax.yaxis, 0)):
            axis.set_ticks(labelled, [shortened(names[i]) for i in labelled], fontsize=font_size, rotation=rotation)
            for text, i in zip(axis.get_ticklabels(), labelled, strict=True):
                text.set_parse_math(False)
                # Labels are set twice, and the tick may have belonged to a target the first time.
                text.set_fontweight("bold" if i in targets else "normal")
                text.set_color(_INTO_TARGET if i in targets else ax.xaxis.label.get_color())

    # Labels take space from the cells, and the size of the cells limits that of the labels.
    label(_SMALLEST_LETTERS, 1)
    ax.figure.canvas.figure.draw_without_rendering()
    cell = ax.get_window_extent().height / len(names) * 72 / ax.figure.dpi
    font_size = float(np.clip(0.72 * cell, _SMALLEST_LETTERS, FONT_SIZE))
    label(font_size, int(np.ceil(1.15 * font_size / cell)))
    for target in targets:
        for rim in (target - 0.5, target + 0.5):
            ax.axvline(rim, color=_INTO_TARGET, lw=0.8, alpha=0.7)
            ax.axhline(rim, color=_INTO_TARGET, lw=0.8, alpha=0.7)
