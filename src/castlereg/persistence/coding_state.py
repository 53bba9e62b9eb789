"""How rows become channels, written and read: the columns, their levels and scales, and the targets."""

from __future__ import annotations

from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from castlereg.data.preprocessing import Preprocessing
from castlereg.data.reading import Holds
from castlereg.data.schema import ColumnKind, ColumnSchema
from castlereg.data.targets import ClassTarget, NumericTarget, Target
from castlereg.persistence.arrays import ArrayReader, ArrayWriter
from castlereg.persistence.json_content import Content
from castlereg.persistence.refusal import Unreadable
from castlereg.persistence.values import read_value, write_value

Floats = NDArray[np.float64]


def write_coding(coding: Preprocessing, arrays: ArrayWriter) -> dict[str, Any]:
    """Write a coding.

    Parameters
    ----------
    coding : Preprocessing
    arrays : ArrayWriter

    Returns
    -------
    dict
    """
    _write_scale(coding.center, coding.spread, "columns", arrays)
    for k, target in enumerate(coding.targets):
        if isinstance(target, NumericTarget):
            _write_scale(np.array([target.center]), np.array([target.spread]), f"targets/{k}", arrays)
    return {
        "columns": [
            {
                "name": column.name,
                "kind": column.kind,
                "holds": column.holds,
                "levels": None if column.levels is None else write_value(list(column.levels), arrays),
                "missing": column.missing,
                "constant": column.constant,
                "note": column.note,
            }
            for column in coding.schema
        ],
        "order": [int(j) for j in coding.order],
        "clipped": any(node.clipped for node in coding.nodes),
        "targets": [
            {
                "name": target.name,
                "classes": write_value(target.classes, arrays) if isinstance(target, ClassTarget) else None,
            }
            for target in coding.targets
        ],
    }


def read_coding(content: Content, arrays: ArrayReader) -> Preprocessing:
    """Undo :func:`write_coding`.

    Parameters
    ----------
    content : Content
    arrays : ArrayReader

    Returns
    -------
    Preprocessing
    """
    content.only("columns", "order", "clipped", "targets")
    schema = tuple(_read_column(column, arrays) for column in content.parts("columns"))
    order = tuple(content.integers("order"))
    if not schema or sorted(order) != list(range(len(schema))):
        raise Unreadable(f"the order of its {len(schema)} columns is none")
    nodes = tuple(schema[j].node(content.flag("clipped")) for j in order)
    center, spread = _read_scale("columns", len(schema), arrays)
    targets = tuple(_read_target(target, k, arrays) for k, target in enumerate(content.parts("targets")))
    if not targets:
        raise Unreadable("it has no target")
    return Preprocessing(schema, order, nodes, center, spread, targets)


def _read_column(content: Content, arrays: ArrayReader) -> ColumnSchema:
    content.only("name", "kind", "holds", "levels", "missing", "constant", "note")
    kind = content.text("kind", get_args(ColumnKind))
    levels = content.any("levels")
    if levels is not None:
        levels = read_value(levels, arrays)
        if type(levels) is not list or not all(type(level) in (str, float) for level in levels) or not levels:
            raise Unreadable(f"the levels of column {content.text('name')!r} are no texts or numbers")
        if len(set(levels)) != len(levels):
            raise Unreadable(f"column {content.text('name')!r} has a level twice")
    if kind == "categorical" and (levels is None or len(levels) < 2):
        raise Unreadable(f"column {content.text('name')!r} is categorical and has no two levels")
    return ColumnSchema(
        content.text("name"),
        kind,  # type: ignore[arg-type]
        content.text("holds", get_args(Holds)),  # type: ignore[arg-type]
        None if levels is None else tuple(levels),
        content.integer("missing"),
        content.flag("constant"),
        content.text("note"),
    )


def _read_target(content: Content, k: int, arrays: ArrayReader) -> Target:
    content.only("name", "classes")
    if content.any("classes") is None:
        center, spread = _read_scale(f"targets/{k}", 1, arrays)
        return NumericTarget(content.text("name"), float(center[0]), float(spread[0]))
    classes = read_value(content.any("classes"), arrays)
    if type(classes) is not np.ndarray or classes.ndim != 1 or len(classes) < 2 or not _are_classes(classes):
        raise Unreadable(f"the classes of its target {content.text('name')!r} are none")
    return ClassTarget(content.text("name"), classes)


def _are_classes(classes: NDArray[Any]) -> bool:
    """Tell whether these are different labels in order, as :class:`ClassTarget` has them."""
    try:
        return bool(np.all(classes[:-1] < classes[1:]))
    except TypeError:
        return False


def _write_scale(center: Floats, spread: Floats, where: str, arrays: ArrayWriter) -> None:
    arrays.add(f"{where}/center", center)
    arrays.add(f"{where}/spread", spread)


def _read_scale(where: str, n: int, arrays: ArrayReader) -> tuple[Floats, Floats]:
    center, spread = (arrays.take_finite(f"{where}/{name}", np.float64, (n,)) for name in ("center", "spread"))
    if not (spread > 0).all():
        raise Unreadable(f"its array '{where}/spread' has numbers that are not positive")
    return center, spread
