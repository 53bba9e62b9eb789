"""A layered picture of a graph: causes left, effects right, the target highlighted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import networkx as nx
import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from castlereg.graph.causal_graph import CausalGraph

_NODE, _TARGET, _EDGE, _INTO_TARGET = "#e8eef4", "#ffd8a8", "#5c6b7a", "#d9480f"


def draw(graph: CausalGraph, ax: Axes | None, max_edges: int) -> Axes:
    """Draw the strongest edges of a graph.

    Parameters
    ----------
    graph : CausalGraph
    ax : matplotlib Axes, optional
    max_edges : int

    Returns
    -------
    matplotlib Axes
    """
    import matplotlib.pyplot as plt
    from matplotlib.patches import FancyArrowPatch

    edges = graph.edges().head(max_edges)
    place = _places(graph, list(zip(edges["cause"], edges["effect"], strict=True)))
    columns = 1 + max(x for x, _ in place.values())
    tallest = max(np.bincount([int(x) for x, _ in place.values()]))
    if ax is None:
        _, ax = plt.subplots(figsize=(1.5 + 1.2 * columns, 2.4 + 0.7 * tallest), layout="constrained")

    boxes = {}
    for node, (x, y) in place.items():
        target = node in graph.targets
        boxes[node] = ax.text(
            x,
            y,
            node,
            ha="center",
            va="center",
            fontsize=10,
            fontweight="bold" if target else "normal",
            zorder=3,
            parse_math=False,
            bbox={"boxstyle": "round,pad=0.4", "fc": _TARGET if target else _NODE, "ec": _EDGE, "lw": 0.8},
        )
    ax.set_xlim(-0.6, columns - 0.4)
    ax.set_ylim(-tallest / 2 - 0.8, tallest / 2 + 0.8)
    ax.set_axis_off()
    # Boxes have a place only once they are laid out, and arrows are to end at their rims.
    ax.figure.canvas.figure.draw_without_rendering()

    heaviest = edges["weight"].max() if len(edges) else 1.0
    for edge in edges.itertuples():
        strength = edge.weight / heaviest
        (x0, y0), (x1, y1) = place[edge.cause], place[edge.effect]
        # Edges that pass over a column bend, so that they do not run through the nodes in between.
        bend = 0.0 if x1 - x0 == 1 else 0.25 * (1 if (y0 + y1) >= 0 else -1)
        ax.add_patch(
            FancyArrowPatch(
                (x0, y0),
                (x1, y1),
                connectionstyle=f"arc3,rad={-bend}",
                arrowstyle="-|>",
                mutation_scale=11,
                patchA=boxes[edge.cause].get_bbox_patch(),
                patchB=boxes[edge.effect].get_bbox_patch(),
                shrinkA=1,
                shrinkB=2,
                lw=0.6 + 3.0 * strength,
                alpha=0.35 + 0.6 * strength,
                color=_INTO_TARGET if edge.effect in graph.targets else _EDGE,
                zorder=2,
            )
        )
    return ax


def _places(graph: CausalGraph, edges: list[tuple[str, str]]) -> dict[str, tuple[float, float]]:
    """Place nodes in columns by their longest path from a root, ordered to keep edges short; loose nodes last."""
    shown = nx.DiGraph()
    shown.add_nodes_from(graph.nodes)
    shown.add_edges_from(edges)
    joined = [node for node in shown if shown.degree(node)]
    loose = [node for node in shown if not shown.degree(node)]
    layers = [list(layer) for layer in nx.topological_generations(shown.subgraph(joined))]
    height: dict[str, float] = {}
    for number, layer in enumerate(layers):
        # Barycentre: a node goes to the mean height of its causes. Neighbouring columns are shifted against each other.
        ordered = sorted(layer, key=lambda n: float(np.mean([height[c] for c in shown.predecessors(n)] or [0.0])))
        for i, node in enumerate(ordered):
            height[node] = i - (len(layer) - 1) / 2 + 0.3 * (-1) ** number
    place = {node: (float(x), height[node]) for x, layer in enumerate(layers) for node in layer}
    for i, node in enumerate(loose):
        place[node] = (float(len(layers)), i - (len(loose) - 1) / 2)
    return place
