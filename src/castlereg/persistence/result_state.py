"""Convert other results of training: the learned graph, and the folds and choices of cross-validation."""

from __future__ import annotations

from typing import Any

import numpy as np

from castlereg.causal.graph import CausalGraph
from castlereg.causal.graph.sortability import ColumnTraits
from castlereg.fitted import FoldBook, Networks
from castlereg.persistence.container import Arrays, StoredArrays
from castlereg.persistence.json_content import Unreadable, checked, fields
from castlereg.persistence.values import LOST, read_value, write_option, write_value
from castlereg.regularizers import Regularizer

_BOOK = {"folds": list, "seeds": list[int], "errors": list, "results": dict, "best": int}


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
        "agreement_of": graph.agreement_of,
    }


def read_graph(content: Any, n_nodes: int, arrays: StoredArrays) -> CausalGraph:
    """Undo :func:`write_graph`."""
    kinds = {"names": list[str], "targets": list[str], "threshold": float, "dropped_weight": float, "traits": bool}
    stored = fields(content, "its graph", **kinds, agreement_of=str)
    square = (n_nodes, n_nodes)
    weights, learned = (
        arrays.take(f"graph/{name}", np.float64, square, finite=True) for name in ("weights", "learned_weights")
    )
    # these are NaN where they are not known
    confidence, direction = (arrays.take(f"graph/{name}", np.float64, square) for name in ("confidence", "direction"))
    if (weights < 0).any() or (learned < 0).any():
        raise Unreadable("its graph has negative weights")
    if any((shares < 0).any() or (shares > 1).any() for shares in (confidence, direction)):
        raise Unreadable("its graph has a confidence or direction that is not between 0 and 1")
    traits = None
    if stored.traits:
        by_column = (arrays.take(f"graph/{name}", np.float64, (n_nodes,)) for name in ("variance", "explained"))
        traits = ColumnTraits(*(tuple(values.tolist()) for values in by_column))
    names, targets, cut = tuple(stored.names), tuple(stored.targets), (stored.threshold, stored.dropped_weight)
    shares = confidence, direction
    return CausalGraph(names, targets, weights, learned, *shares, *cut, traits, stored.agreement_of)


def write_folds(book: FoldBook, arrays: Arrays) -> dict[str, Any]:
    """Return the folds as JSON and arrays."""
    arrays["fold_of"] = book.fold_of
    return {
        **{name: write_value(getattr(book, name), arrays) for name in _BOOK},
        "regularizers": write_option("best_regularizers_", book.regularizers, arrays),
    }


def read_folds(content: Any, networks: Networks, arrays: StoredArrays) -> FoldBook:
    """Undo :func:`write_folds`."""
    where = "its cross-validation"
    stored = fields(content, where, regularizers=object, **dict.fromkeys(_BOOK, object))
    values: dict[str, Any] = {
        name: None if content == LOST else read_value(content, arrays) for name, content in vars(stored).items()
    }
    for name, kind in _BOOK.items():
        checked(values[name], kind, f"{name} of {where}")
    book = FoldBook(**values, fold_of=arrays.take("fold_of", np.int64, (networks.n_members,)))
    _check(book, len(networks.layout.targets))
    return book


def _check(book: FoldBook, n_targets: int) -> None:
    """Raise if the parts do not match each other."""
    for fold in book.folds:
        if type(fold) is not tuple or len(fold) != 2 or not all(_is_vector(rows, "i") for rows in fold):
            raise Unreadable("its folds are not pairs of row numbers")
    for errors in book.errors:
        if type(errors) is not list or len(errors) != n_targets or not all(_is_vector(array, "f") for array in errors):
            raise Unreadable("the left-out errors of a fold do not match the targets")
    folds = np.unique(book.fold_of)
    if len(book.seeds) != len(book.folds) or len(book.errors) != len(folds) or set(folds) - {*range(len(book.folds))}:
        raise Unreadable(f"its seeds, networks or left-out errors do not match its {len(book.folds)} folds")
    params: Any = book.results.get("params")
    scores: Any = book.results.get("mean_test_score")
    if not (type(params) is list and all(type(of_candidate) is dict for of_candidate in params)):
        raise Unreadable("the results of its candidates have no params")
    if not _is_vector(scores, "f") or not book.best < len(scores) == len(params):
        raise Unreadable(f"its scores or its choice do not match its {len(params)} candidates")
    if book.regularizers is not None and not (
        type(book.regularizers) is tuple and all(isinstance(chosen, Regularizer) for chosen in book.regularizers)
    ):
        raise Unreadable("its chosen regularizers are not a tuple of regularizers")


def _is_vector(value: Any, kind: str) -> bool:
    return isinstance(value, np.ndarray) and value.ndim == 1 and value.dtype.kind == kind
