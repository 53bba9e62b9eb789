"""What a layered picture shows and where, for matplotlib, SVG and reports."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import NamedTuple

import pandas as pd

from castlereg.graph.causal_graph import AGREEMENT, NOT_PROOF, CausalGraph
from castlereg.graph.drawing.layered import Places, layered

FONT_SIZE, CAPTION_SIZE = 10.0, 8.0
MOST_NODES = 40  # larger graphs are shown as the target's neighbourhood first

_MOST_LOOSE = 30  # more nodes without an edge are a list, not a picture


class Line(NamedTuple):
    """An edge as it is drawn; ``directed`` if the networks agree on its direction."""

    cause: str
    effect: str
    weight: float
    confidence: float
    direction: float  # NaN if no network joins the two nodes
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
    """Return the strongest of the edges between some nodes, by default twice as many as nodes."""
    edges = graph.edges()
    if len(nodes) < len(graph.names):
        edges = edges[edges["cause"].isin(nodes) & edges["effect"].isin(nodes)]
    return edges.head(2 * len(nodes) if max_edges is None else max_edges)


def picture(graph: CausalGraph, edges: pd.DataFrame, nodes: Sequence[str]) -> Picture:
    """Lay out some rows of ``graph.edges()`` and the nodes that may be shown with them."""
    joined = {*edges["cause"], *edges["effect"]}
    loose = [node for node in nodes if node not in joined]
    left_out = {node for node in loose if node not in graph.targets} if len(loose) > _MOST_LOOSE else set()
    shown = [node for node in nodes if node not in left_out]
    labels = {node: shortened(node) for node in shown}
    lines = _lines(graph, edges)
    sentences = [NOT_PROOF]
    if not all(line.directed for line in lines):
        sentences.append("Dashed: networks disagree on the direction.")
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


def _lines(graph: CausalGraph, edges: pd.DataFrame) -> list[Line]:
    """Decide how each edge looks, the weakest first."""
    # With one network all shares are 0 or 1 and say no more than the weight does.
    several_networks = bool(((graph.confidence_array > 0) & (graph.confidence_array < 1)).any())
    heaviest = edges["weight"].max() if len(edges) else 1.0
    lines = []
    for cause, effect, weight, confidence, direction in edges.iloc[::-1].itertuples(index=False):
        opacity = 0.4 + 0.55 * (confidence if several_networks else weight / heaviest)
        directed = not direction < AGREEMENT  # true of NaN
        width = 0.9 + 2.6 * weight / heaviest
        lines.append(Line(cause, effect, weight, confidence, direction, width, opacity, directed))
    return lines


def shortened(name: str, limit: int = 22) -> str:
    """Cut the middle out of a long name, so that ``limit`` characters are left."""
    # A line break or a tab would leave the box.
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
    if base in "ijl.,:;'|! ":
        return 0.32
    if base in 'ftr()[]{}-/\\"':
        return 0.4
    if base in "mwMW%@…":
        return 0.96
    return 0.69 if base.isupper() else 0.63
