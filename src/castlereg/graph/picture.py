"""What a layered picture shows and where, for matplotlib and SVG alike."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import pandas as pd

from castlereg.graph.causal_graph import AGREEMENT
from castlereg.graph.layered import Places, layered

if TYPE_CHECKING:
    from castlereg.graph.causal_graph import CausalGraph

NOT_PROOF = "A prediction aid, not proof of cause."
FONT_SIZE, CAPTION_SIZE = 10.0, 8.0

_LONGEST_LABEL = 22
# More nodes without an edge than this are a list, not a picture.
_MOST_LOOSE = 30


class Line(NamedTuple):
    """An edge as it is drawn.

    Attributes
    ----------
    cause, effect : str
    weight, confidence : float
    direction : float
        Of the networks that join the two, the share that has this direction; NaN if none joins them.
    width, opacity : float
    directed : bool
        Whether networks agree on the direction.
    """

    cause: str
    effect: str
    weight: float
    confidence: float
    direction: float
    width: float
    opacity: float
    directed: bool


class Picture(NamedTuple):
    """Everything a layered picture shows.

    Attributes
    ----------
    places : Places
    labels : dict of str to str
        What is written in the box of each node.
    lines : list of Line
        Weakest first, so that strong ones lie on top.
    loose : frozenset of str
        Nodes without a line.
    caption : str
        What a reader should know.
    """

    places: Places
    labels: dict[str, str]
    lines: list[Line]
    loose: frozenset[str]
    caption: str


def picture(graph: CausalGraph, edges: pd.DataFrame, nodes: Sequence[str]) -> Picture:
    """Decide what a layered picture shows, and where.

    Parameters
    ----------
    graph : CausalGraph
    edges : DataFrame
        Rows of ``graph.edges()``.
    nodes : sequence of str
        Those that may be shown.

    Returns
    -------
    Picture

    Examples
    --------
    >>> import numpy as np
    >>> from castlereg import CausalGraph
    >>> graph = CausalGraph.from_weights(np.triu(np.ones((3, 3)), k=1), ["a", "b", "c"], target="c")
    >>> [(line.cause, line.effect) for line in picture(graph, graph.edges().head(1), graph.nodes).lines]
    [('a', 'b')]
    """
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
    shares, ways = graph.confidence, graph.direction
    # With one network all shares are 0 or 1 and say no more than the weight does.
    shares_tell, ways_tell = (bool(((values > 0) & (values < 1)).to_numpy().any()) for values in (shares, ways))
    heaviest = edges["weight"].max() if len(edges) else 1.0
    lines = []
    for cause, effect, weight in triples(edges.iloc[::-1]):
        strength = weight / heaviest
        confidence, way = float(shares.loc[cause, effect]), float(ways.loc[cause, effect])
        lines.append(
            Line(
                cause,
                effect,
                weight,
                confidence,
                way,
                width=0.9 + 2.6 * strength,
                opacity=0.4 + 0.55 * (confidence if shares_tell else strength),
                directed=not (ways_tell and way < AGREEMENT),
            )
        )
    return lines


def shortened(name: str, limit: int = _LONGEST_LABEL) -> str:
    """Cut the middle out of a long name.

    Parameters
    ----------
    name : str
    limit : int
        Number of characters that may stay.

    Returns
    -------
    str

    Examples
    --------
    >>> shortened("population density per square mile")
    'population…square mile'
    """
    # A line break or a tab would leave the box.
    name = "".join(" " if unicodedata.category(c) in ("Cc", "Zl", "Zp") else c for c in name)
    if len(name) <= limit:
        return name
    kept = limit - 1
    return f"{name[: kept // 2].rstrip()}…{name[-(kept - kept // 2) :].lstrip()}"


def text_width(text: str) -> float:
    """Estimate how wide a text is, in units of the font size, for a wide font such as DejaVu Sans.

    Parameters
    ----------
    text : str

    Returns
    -------
    float

    Examples
    --------
    >>> text_width("ill") < text_width("age") < text_width("MAX")
    True
    """
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


def triples(edges: pd.DataFrame) -> list[tuple[str, str, float]]:
    """List edges as (cause, effect, weight)."""
    return list(zip(edges["cause"], edges["effect"], edges["weight"].astype(float), strict=True))
