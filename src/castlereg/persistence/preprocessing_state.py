"""How rows become channels: the columns, their levels and scales, and the targets."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, get_type_hints

import numpy as np

from castlereg.data.encoding import Encoder, Scaling
from castlereg.data.rows import Coding
from castlereg.data.schema import ColumnSchema
from castlereg.data.targets import ClassTarget, NumericTarget, Target
from castlereg.persistence.container import Arrays, StoredArrays
from castlereg.persistence.errors import Unreadable
from castlereg.persistence.json_content import fields
from castlereg.persistence.values import read_value, write_value

_COLUMN = get_type_hints(ColumnSchema)


def write_preprocessing(coding: Coding, arrays: Arrays) -> dict[str, Any]:
    """Return the columns and targets as JSON; scales are added to the arrays."""
    encoder = coding.encoder
    _write_scaling(encoder.scaling, "columns", arrays)
    for k, target in enumerate(coding.targets):
        if isinstance(target, NumericTarget):
            _write_scaling(target.scaling, f"targets/{k}", arrays)
    return {
        "columns": [asdict(column) for column in encoder.schema],
        "order": [int(j) for j in encoder.order],
        "clipped": any(node.clipped for node in encoder.nodes),
        "targets": [
            {
                "name": target.name,
                "classes": write_value(target.classes, arrays) if isinstance(target, ClassTarget) else None,
            }
            for target in coding.targets
        ],
    }


def read_preprocessing(content: Any, arrays: StoredArrays) -> Coding:
    """Undo :func:`write_preprocessing`."""
    stored = fields(content, "its preprocessing", columns=list, order=list[int], clipped=bool, targets=list)
    schema = tuple(map(_read_column, stored.columns))
    if not schema or sorted(stored.order) != list(range(len(schema))):
        raise Unreadable(f"it has an invalid order of its {len(schema)} columns")
    nodes = tuple(schema[j].node(stored.clipped) for j in stored.order)
    encoder = Encoder(schema, tuple(stored.order), nodes, _read_scaling("columns", len(schema), arrays))
    targets = tuple(_read_target(target, k, arrays) for k, target in enumerate(stored.targets))
    if not targets:
        raise Unreadable("it has no target")
    return Coding(encoder, targets)


def _read_column(content: Any) -> ColumnSchema:
    stored = fields(content, "a column", **_COLUMN)
    if stored.levels is not None:
        if not stored.levels or len(set(stored.levels)) != len(stored.levels):
            raise Unreadable(f"column {stored.name!r} has no levels, or the same level twice")
        stored.levels = tuple(stored.levels)
    if stored.kind == "categorical" and len(stored.levels or ()) < 2:
        raise Unreadable(f"column {stored.name!r} is categorical and has fewer than two levels")
    return ColumnSchema(**vars(stored))


def _read_target(content: Any, k: int, arrays: StoredArrays) -> Target:
    stored = fields(content, "a target", name=str, classes=object)
    if stored.classes is None:
        return NumericTarget(stored.name, _read_scaling(f"targets/{k}", 1, arrays))
    classes = read_value(stored.classes, arrays)
    if type(classes) is not np.ndarray or classes.ndim != 1 or len(classes) < 2 or not all(classes[:-1] < classes[1:]):
        raise Unreadable(f"target {stored.name!r} has invalid classes")
    return ClassTarget(stored.name, classes)


def _write_scaling(scaling: Scaling, where: str, arrays: Arrays) -> None:
    arrays |= {f"{where}/center": scaling.center, f"{where}/spread": scaling.spread}


def _read_scaling(where: str, n: int, arrays: StoredArrays) -> Scaling:
    center, spread = (arrays.take(f"{where}/{name}", np.float64, (n,), finite=True) for name in ("center", "spread"))
    if not (spread > 0).all():
        raise Unreadable(f"its array '{where}/spread' has numbers that are not positive")
    return Scaling(center, spread)
