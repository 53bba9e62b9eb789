"""Weights of rows by their classes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from castlereg.data.rows import Rows
from castlereg.data.targets import ClassTarget, Target
from castlereg.options import check_number

ClassWeight = Mapping[Any, float] | str | Sequence[Any] | None


def check_class_weight(class_weight: ClassWeight) -> None:
    """Raise for what is not None, "balanced" or a dict, or a list of these."""
    for entry in class_weight if isinstance(class_weight, list | tuple) else [class_weight]:
        if not (entry is None or isinstance(entry, Mapping) or (isinstance(entry, str) and entry == "balanced")):
            raise ValueError(f"class_weight={entry!r} must be None, 'balanced' or a dict of class to weight")


def weighted_by_class(rows: Rows, targets: Sequence[Target], class_weight: ClassWeight) -> Rows:
    """Multiply the rows' weights by those of their classes, as scikit-learn does; drop rows that then weigh nothing."""
    if class_weight is None:
        return rows
    entries = class_weight if isinstance(class_weight, list | tuple) else [class_weight] * len(targets)
    if len(entries) != len(targets):
        raise ValueError(f"class_weight has {len(entries)} entries for {len(targets)} targets: give one for each")
    weight = np.ones(len(rows)) if rows.weight is None else rows.weight
    factors = [
        _factors(entry, target, values, weight)
        for entry, target, values in zip(entries, targets, rows.targets, strict=True)
        if isinstance(target, ClassTarget)
    ]
    weight = weight * np.prod(factors, axis=0)
    return replace(rows, weight=weight).take(np.flatnonzero(weight))


def _factors(entry: Any, target: ClassTarget, values: NDArray[Any], weight: NDArray[np.float64]) -> NDArray[np.float64]:
    codes = target.codes(values)
    if entry is None:
        return np.ones(len(codes))
    if isinstance(entry, Mapping):
        known = target.classes.tolist()
        for label, factor in entry.items():
            if label not in known:
                raise ValueError(
                    f"class_weight has class {label!r}, which {target.name} does not have; classes are {known}"
                )
            check_number(f"class_weight[{label!r}]", factor, least=0)
        return np.array([float(entry.get(label, 1.0)) for label in known])[codes]
    totals = np.bincount(codes, weight, minlength=len(target.classes))
    balanced: NDArray[np.float64] = (totals.sum() / (len(totals) * totals))[codes]
    return balanced
