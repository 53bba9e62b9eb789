"""A learned graph, written and read."""

from __future__ import annotations

from typing import Any

import numpy as np

from castlereg.graph import CausalGraph
from castlereg.graph.column_traits import ColumnTraits
from castlereg.persistence.arrays import ArrayReader, ArrayWriter
from castlereg.persistence.json_content import Content
from castlereg.persistence.refusal import Unreadable


def write_graph(graph: CausalGraph, arrays: ArrayWriter) -> dict[str, Any]:
    """Write a graph.

    Parameters
    ----------
    graph : CausalGraph
    arrays : ArrayWriter

    Returns
    -------
    dict
    """
    arrays.add("graph/weights", graph.weight_array)
    arrays.add("graph/learned_weights", graph.learned_array)
    arrays.add("graph/confidence", graph.confidence_array)
    arrays.add("graph/direction", graph.direction_array)
    if graph.traits is not None:
        arrays.add("graph/variance", np.array(graph.traits.variance, np.float64))
        arrays.add("graph/explained", np.array(graph.traits.explained, np.float64))
    return {
        "names": list(graph.names),
        "targets": list(graph.targets),
        "threshold": float(graph.threshold),
        "dropped_weight": float(graph.dropped_weight),
        "traits": graph.traits is not None,
    }


def read_graph(content: Content, n_nodes: int, arrays: ArrayReader) -> CausalGraph:
    """Undo :func:`write_graph`.

    Parameters
    ----------
    content : Content
    n_nodes : int
    arrays : ArrayReader

    Returns
    -------
    CausalGraph
    """
    content.only("names", "targets", "threshold", "dropped_weight", "traits")
    square = (n_nodes, n_nodes)
    weights = arrays.take_finite("graph/weights", np.float64, square)
    learned = arrays.take_finite("graph/learned_weights", np.float64, square)
    if (weights < 0).any() or (learned < 0).any():
        raise Unreadable("its graph has negative weights")
    confidence = arrays.take_finite("graph/confidence", np.float64, square)
    direction = arrays.take("graph/direction", np.float64, square)  # NaN where no network has an edge
    if not _are_shares(confidence) or not _are_shares(direction[~np.isnan(direction)]):
        raise Unreadable("its graph has a confidence or direction that is no share")
    traits = None
    if content.flag("traits"):
        variance, explained = (
            tuple(map(float, arrays.take(f"graph/{name}", np.float64, (n_nodes,))))
            for name in ("variance", "explained")
        )
        traits = ColumnTraits(variance, explained)
    try:
        return CausalGraph(
            tuple(content.texts("names")),
            tuple(content.texts("targets")),
            weights,
            learned,
            confidence,
            direction,
            threshold=content.number("threshold"),
            dropped_weight=content.number("dropped_weight"),
            traits=traits,
        )
    except ValueError as error:
        raise Unreadable(f"its graph is none ({error})") from None


def _are_shares(array: Any) -> bool:
    return bool(((array >= 0) & (array <= 1)).all())
