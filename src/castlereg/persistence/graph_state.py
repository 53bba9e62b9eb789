"""A learned graph: names and weights of its edges."""

from __future__ import annotations

from typing import Any

import numpy as np

from castlereg.graph import CausalGraph
from castlereg.graph.sortability import ColumnTraits
from castlereg.persistence.container import Arrays, StoredArrays
from castlereg.persistence.errors import Unreadable
from castlereg.persistence.json_content import fields


def write_graph(graph: CausalGraph, arrays: Arrays) -> dict[str, Any]:
    """Return a graph as JSON; weights are added to the arrays."""
    arrays |= {
        "graph/weights": graph.weight_array,
        "graph/learned_weights": graph.learned_array,
        "graph/confidence": graph.confidence_array,
        "graph/direction": graph.direction_array,
    }
    if graph.traits is not None:
        arrays["graph/variance"] = np.array(graph.traits.variance, np.float64)
        arrays["graph/explained"] = np.array(graph.traits.explained, np.float64)
    return {
        "names": graph.names,
        "targets": graph.targets,
        "threshold": float(graph.threshold),
        "dropped_weight": float(graph.dropped_weight),
        "traits": graph.traits is not None,
    }


def read_graph(content: Any, n_nodes: int, arrays: StoredArrays) -> CausalGraph:
    """Undo :func:`write_graph`."""
    stored = fields(
        content, "its graph", names=list[str], targets=list[str], threshold=float, dropped_weight=float, traits=bool
    )
    square = (n_nodes, n_nodes)
    weights, learned, confidence = (
        arrays.take(f"graph/{name}", np.float64, square, finite=True)
        for name in ("weights", "learned_weights", "confidence")
    )
    direction = arrays.take("graph/direction", np.float64, square)  # NaN where no network has an edge
    if (weights < 0).any() or (learned < 0).any():
        raise Unreadable("its graph has negative weights")
    if not _are_shares(confidence) or not _are_shares(direction[~np.isnan(direction)]):
        raise Unreadable("its graph has a confidence or direction that is not between 0 and 1")
    traits = None
    if stored.traits:
        variance, explained = (
            tuple(map(float, arrays.take(f"graph/{name}", np.float64, (n_nodes,))))
            for name in ("variance", "explained")
        )
        traits = ColumnTraits(variance, explained)
    names, targets, cut = tuple(stored.names), tuple(stored.targets), (stored.threshold, stored.dropped_weight)
    return CausalGraph(names, targets, weights, learned, confidence, direction, *cut, traits)


def _are_shares(array: Any) -> bool:
    return bool(((array >= 0) & (array <= 1)).all())
