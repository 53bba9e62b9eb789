"""Rows of a table with their targets and weights, in a fixed order, and how they are split.

Random numbers are assigned to rows, and starting weights to columns, by position. Rows and columns are therefore sorted
by their values. A fitted model then does not depend on the order of the user's rows and columns or on the column names,
and an integer weight gives exactly the same result as n copies of the row.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.model_selection import KFold, StratifiedKFold, check_cv, train_test_split

from castlereg.layout import Node
from castlereg.options import check_integer
from castlereg.random_streams import OfFit, fit_stream
from castlereg.table.reading import Columns

# Integer weights repeat rows if this lengthens an epoch by at most this factor; otherwise they weight the loss.
_MOST_REPETITIONS = 10


def row_order(columns: Iterable[NDArray[Any]]) -> NDArray[np.int64]:
    """Return the indices that sort rows by their values, shape (rows,); they do not depend on the units of columns.

    Pass the most informative columns first; later columns only break ties.
    """
    return np.argsort(row_ranks(columns), kind="stable")


def row_ranks(columns: Iterable[NDArray[Any]]) -> NDArray[np.int64]:
    """Return the rank of each row by its values, the same for equal rows; see :func:`row_order`."""
    codes: NDArray[np.int64] | None = None
    for column in columns:
        inverse, n_values = ranked(column)
        codes = inverse if codes is None else ranked(codes * n_values + inverse)[0]
        if len(codes) == 0 or codes.max() == len(codes) - 1:
            break
    if codes is None:
        raise ValueError("rows cannot be ordered without a column")
    return codes


def ranked(column: NDArray[Any]) -> tuple[NDArray[np.int64], int]:
    """Return the ranks of a column, NaN last, and the number of its values, using less memory than ``np.unique``."""
    order = np.argsort(column)
    values = column[order]
    is_new = np.zeros(len(column), bool)
    is_new[1:] = values[1:] != values[:-1]
    if values.dtype.kind == "f" and len(values) and np.isnan(values[-1]):
        is_new[np.searchsorted(values, np.nan) + 1 :] = False
    del values
    ranks = np.empty(len(column), np.int64)
    ranks[order] = np.cumsum(is_new)
    return ranks, int(is_new.sum()) + (len(column) > 0)


def repeated_rows(weight: NDArray[np.float64]) -> NDArray[np.int64] | None:
    """Convert integer weights to row indices that are repeated according to their weights.

    Return None if the weights are not integers or would make the table more than ten times as long.
    """
    counts = np.floor(weight)
    if not np.array_equal(counts, weight) or counts.sum() > _MOST_REPETITIONS * len(weight):
        return None
    return np.repeat(np.arange(len(weight)), counts.astype(np.int64))


def column_order(
    columns: Iterable[NDArray[np.float64]], target: NDArray[np.int64], nodes: Sequence[Node], names: Sequence[str]
) -> tuple[int, ...]:
    """Return the order of columns by the type of their node, then by their ranks paired with those of the target.

    Columns of one type are adjacent, so tables with the same types share a layout and a compiled program. Names break
    ties between columns with the same pairs of ranks.
    """
    keys = [
        (type_key(node), _fingerprint(column, target), name, j)
        for j, (column, node, name) in enumerate(zip(columns, nodes, names, strict=True))
    ]
    return tuple(key[-1] for key in sorted(keys))


def type_key(node: Node) -> tuple[str, int, bool, bool, int]:
    """Return the key that groups columns of one type."""
    return node.kind, node.levels, node.missing, node.clipped, node.extra


def _fingerprint(column: NDArray[np.float64], target: NDArray[np.int64]) -> bytes:
    """Return a digest of the sorted pairs of ranks of a column and the target, independent of row order and units."""
    pairs = ranked(column)[0]
    pairs += target * np.int64(len(column))
    pairs.sort()
    return hashlib.blake2b(pairs.data, digest_size=16).digest()


@dataclass(frozen=True)
class Rows:
    """Rows with their targets and weights; columns are either as read or coded by the schema of a preprocessing."""

    columns: Columns
    targets: tuple[NDArray[Any], ...]  # each of shape (rows,)
    weight: NDArray[np.float64] | None = None  # None if all weights are equal
    index: NDArray[np.int64] | None = None  # in the user's table; None for all rows in the user's order

    def __len__(self) -> int:
        return len(self.columns)

    def take(self, rows: NDArray[np.int64]) -> Rows:
        """Return some rows, in this order."""
        weight = None if self.weight is None else self.weight[rows]
        index = rows if self.index is None else self.index[rows]
        return Rows(self.columns.take(rows), tuple(target[rows] for target in self.targets), weight, index)

    def weighted(self, weight: NDArray[np.float64] | None) -> Rows:
        """Repeat rows by integer weights; otherwise store the weights and drop rows with weight 0."""
        if weight is None:
            return self
        repeated = repeated_rows(weight)
        if repeated is not None:
            return self.take(repeated)
        return replace(self, weight=weight).take(np.flatnonzero(weight))


Fold = tuple[NDArray[np.int64], NDArray[np.int64]]  # training and validation rows


def n_held_out(n_rows: int, fraction: float) -> int:
    """Return the number of rows to hold out: the fraction, at least one, leaving at least two."""
    return min(max(1, round(fraction * n_rows)), n_rows - 2)


def random_split(n_rows: int, fraction: float, rng: np.random.Generator) -> Fold:
    """Hold out random rows; return row numbers in ascending order."""
    held = n_held_out(n_rows, fraction)
    order = rng.permutation(n_rows)
    return np.sort(order[held:]), np.sort(order[:held])


def stratified_split(classes: NDArray[np.int64], fraction: float, rng: np.random.Generator) -> Fold:
    """Hold out a share of every class, but never its only row; return row numbers in ascending order."""
    held = n_held_out(len(classes), fraction)
    # Every row gets its rank within its class as a fraction, and the lowest ranks are held out. The classes are then
    # held out in proportion, and each class keeps its last row.
    order = rng.permutation(len(classes))
    rank = np.empty(len(classes))
    for label in np.unique(classes):
        rows = order[classes[order] == label]
        rank[rows] = (np.arange(len(rows)) + rng.random()) / len(rows)
        rank[rows[-1]] = np.inf
    chosen = np.argsort(rank, kind="stable")[:held]
    chosen = chosen[np.isfinite(rank[chosen])]
    if len(chosen) == 0:
        raise ValueError(
            f"none of the {len(classes)} rows can be held out for validation, because each of the "
            f"{len(np.unique(classes))} classes has a single row: pass more rows, or X_val and y_val"
        )
    keep = np.ones(len(classes), bool)
    keep[chosen] = False
    return np.flatnonzero(keep), np.sort(chosen)


def folds(
    cv: Any,
    n_rows: int,
    *,
    random_state: int,
    classes: NDArray[Any] | None = None,
    y: Any = None,
    groups: ArrayLike | None = None,
    is_classifier: bool = False,
) -> list[Fold]:
    """Split rows into folds.

    An integer ``cv`` gives random folds, stratified by ``classes`` if there are any. Any other ``cv`` is passed with
    ``y`` and ``groups`` to :func:`sklearn.model_selection.check_cv`; its splits may be lists, arrays or masks.
    """
    if not isinstance(cv, int | np.integer):
        cut = check_cv(cv, y, classifier=is_classifier).split(np.empty((n_rows, 1)), y, groups)
        numbers = np.arange(n_rows)
        return [(numbers[np.asarray(train)], numbers[np.asarray(held)]) for train, held in cut]
    check_integer("cv", cv, least=2)
    if cv > n_rows:
        raise ValueError(f"cv={cv} needs at least {cv} rows, but there are {n_rows}: lower cv")
    options: dict[str, Any] = {"n_splits": int(cv), "shuffle": True, "random_state": random_state}
    if classes is None:
        return list(KFold(**options).split(np.empty((n_rows, 1))))
    most = int(np.unique(classes, return_counts=True)[1].max())
    if cv > most:
        raise ValueError(
            f"cv={cv} needs a class with at least {cv} rows, but the largest class has {most}: lower cv, or use a "
            "regressor if the classes are numbers"
        )
    return list(StratifiedKFold(**options).split(np.empty((n_rows, 1)), classes))


@dataclass(frozen=True)
class Split:
    """Test rows, and the folds of the remaining rows."""

    test_rows: NDArray[np.int64]
    rest: NDArray[np.int64]
    folds: list[Fold]


def splits_with_test_rows(
    cv: Any,
    y: NDArray[Any],
    *,
    n_splits: int,
    test_size: float | int,
    is_classification: bool,
    seed: np.random.SeedSequence,
) -> list[Split]:
    """Hold out random test rows and split the others into folds, ``n_splits`` times; stratified for classes."""
    if is_classification:
        _check_classes(y, cv)
    if test_size > len(y) - 2:
        raise ValueError(f"test_size={test_size} leaves too few of the {len(y)} rows for training: lower it")
    splits = []
    for number in range(n_splits):
        rng = np.random.default_rng(fit_stream(seed, OfFit.HELD_OUT_ROWS, number))
        rest, test_rows = train_test_split(
            np.arange(len(y)),
            test_size=test_size,
            random_state=int(rng.integers(2**31)),
            stratify=y if is_classification else None,
        )
        of_rest = folds(
            cv,
            len(rest),
            random_state=int(rng.integers(2**31)),
            classes=y[rest] if is_classification else None,
            y=y[rest],
            is_classifier=is_classification,
        )
        splits.append(Split(test_rows, rest, [(rest[train], rest[held]) for train, held in of_rest]))
    return splits


def _check_classes(y: NDArray[Any], cv: Any) -> None:
    classes, counts = np.unique(y, return_counts=True)
    least = counts.argmin()
    needed = 2 + (cv if isinstance(cv, int) else 1)
    if counts[least] < needed:
        raise ValueError(
            f"class {classes[least]!r} has {counts[least]} rows, but cv={cv!r} and the test rows need at least "
            f"{needed} rows of every class: lower cv or merge classes"
        )
