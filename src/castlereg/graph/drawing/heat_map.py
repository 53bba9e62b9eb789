"""The weights of a graph as a heat map."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from castlereg.graph.causal_graph import NOT_PROOF, CausalGraph
from castlereg.graph.drawing.picture import CAPTION_SIZE, FONT_SIZE, shortened, text_width
from castlereg.graph.drawing.plot import FAINT, INTO_TARGET

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SMALLEST_LETTERS = 6.0


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
    # Square roots, since a few edges are many times as heavy as the others. White means no edge.
    image = ax.imshow(
        np.where(weights > 0, weights, np.nan), cmap="BuPu", norm=PowerNorm(0.5, vmin=0, vmax=weights.max() or 1.0)
    )
    bar = ax.figure.colorbar(image, cax=ax.inset_axes((1.02, 0, 0.03, 1)), label="weight")
    bar.outline.set_visible(False)
    ax.set(xlabel="effect", ylabel="cause", facecolor="white")
    ax.xaxis.set_label_position("top")
    ax.tick_params(length=0, top=True, labeltop=True, bottom=False, labelbottom=False)
    ax.spines[:].set_color(FAINT)
    ax.annotate(
        NOT_PROOF,
        (0, 0),
        (0, -5),
        xycoords="axes fraction",
        textcoords="offset points",
        va="top",
        fontsize=CAPTION_SIZE,
        color=FAINT,
    )
    _label_cells(ax, order, [order.index(target) for target in graph.targets])
    return ax


def _label_cells(ax: Axes, names: Sequence[str], targets: Sequence[int]) -> None:
    """Name rows and columns; where cells are smaller than letters only some of them, and targets always."""

    def label(font_size: float, every: int) -> None:
        free = [i for i in range(0, len(names), every) if all(abs(i - target) >= every for target in targets)]
        labelled = sorted({*targets, *free})
        for axis, rotation in ((ax.xaxis, 90), (ax.yaxis, 0)):
            axis.set_ticks(labelled, [shortened(names[i]) for i in labelled], fontsize=font_size, rotation=rotation)
            for text, i in zip(axis.get_ticklabels(), labelled, strict=True):
                text.set_parse_math(False)
                # Labels are set twice, and a tick may have been that of a target the first time.
                text.set_fontweight("bold" if i in targets else "normal")
                text.set_color(INTO_TARGET if i in targets else ax.xaxis.label.get_color())

    # Labels take room from the cells, and the cells that are left decide how large the labels may be.
    label(_SMALLEST_LETTERS, 1)
    ax.figure.canvas.figure.draw_without_rendering()
    cell = ax.get_window_extent().height / len(names) * 72 / ax.figure.dpi
    font_size = float(np.clip(0.72 * cell, _SMALLEST_LETTERS, FONT_SIZE))
    label(font_size, int(np.ceil(1.15 * font_size / cell)))
    for target in targets:
        for rim in (target - 0.5, target + 0.5):
            ax.axvline(rim, color=INTO_TARGET, lw=0.8, alpha=0.7)
            ax.axhline(rim, color=INTO_TARGET, lw=0.8, alpha=0.7)
