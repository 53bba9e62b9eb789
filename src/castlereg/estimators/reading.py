"""From the arguments of ``fit`` and ``predict`` to rows, checked as scikit-learn does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_consistent_length
from sklearn.utils.validation import _check_sample_weight, validate_data

from castlereg.data.reading import Columns, read_columns
from castlereg.data.rows import Rows
from castlereg.data.targets import TargetKind, check_target, read_target, target_kinds


def read_features(estimator: Any, X: ArrayLike, *, reset: bool = False, what: str = "X") -> Columns:
    """Read a table, and check its columns against those of the estimator's ``fit``, or keep them if ``reset``."""
    columns = read_columns(X, what)
    validate_data(estimator, X, reset=reset, skip_check_array=True)
    return columns


def read_training_rows(estimator: Any, X: ArrayLike, y: ArrayLike) -> tuple[Rows, list[str]]:
    """Read rows to learn from; return them and the names of features and targets, all different, the targets last."""
    columns = read_features(estimator, X, reset=True)
    rows, names = _with_targets(columns, y, target_kinds(y, estimator.target_kind), "y")
    return rows, _different([*columns.names, *names])


def read_known_rows(
    estimator: Any, X: ArrayLike, y: Any, kinds: Sequence[TargetKind], what: tuple[str, str] = ("X", "y")
) -> Rows:
    """Read rows with targets of the kinds that were learned from; ``what`` names them in messages."""
    return _with_targets(read_features(estimator, X, what=what[0]), y, kinds, what[1])[0]


def _with_targets(columns: Columns, y: Any, kinds: Sequence[TargetKind], what: str) -> tuple[Rows, list[str]]:
    targets, names = read_target(y, what)
    if len(targets) != len(kinds):
        raise ValueError(f"{what} has {len(targets)} targets, but the model has {len(kinds)}")
    check_consistent_length(columns.values, *targets)
    values = [check_target(*target) for target in zip(targets, names, kinds, strict=True)]
    return Rows(columns, tuple(values)), names


def _different(names: list[str]) -> list[str]:
    """Mark repeated names with a number, so that every node has its own name."""
    counts: dict[str, int] = {}
    different = []
    for name in names:
        counts[name] = counts.get(name, 0) + 1
        different.append(name if counts[name] == 1 else f"{name} ({counts[name]})")
    return different


def checked_weight(sample_weight: ArrayLike, n_rows: int) -> NDArray[np.float64]:
    """Check weights of rows, as scikit-learn does, and that none is negative."""
    weight: NDArray[np.float64] = _check_sample_weight(sample_weight, np.empty((n_rows, 0)), dtype=np.float64)
    if (weight < 0).any():
        row = int(np.argmax(weight < 0))
        raise ValueError(f"sample_weight has {weight[row]:g} in row {row}: weights must not be negative")
    return weight
