"""Which rows are held out: validation rows, the folds of cross-validation, and test rows with folds of the others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.model_selection import KFold, StratifiedKFold, check_cv, train_test_split

from castlereg.options import check_integer

Fold = tuple[NDArray[np.int64], NDArray[np.int64]]  # training and validation rows


def n_held_out(n_rows: int, fraction: float) -> int:
    """Count the rows to hold out: the fraction, but at least one, and leave at least two.

    Examples
    --------
    >>> [n_held_out(n, 0.1) for n in (3, 25, 100)]
    [1, 2, 10]
    """
    return min(max(1, round(fraction * n_rows)), n_rows - 2)


def random_split(n_rows: int, fraction: float, rng: np.random.Generator) -> Fold:
    """Hold out random rows; both parts are ascending."""
    held = n_held_out(n_rows, fraction)
    order = rng.permutation(n_rows)
    return np.sort(order[held:]), np.sort(order[:held])


def stratified_split(classes: NDArray[np.int64], fraction: float, rng: np.random.Generator) -> Fold:
    """Hold out a share of every class, and never a class's only row; both parts are ascending."""
    held = n_held_out(len(classes), fraction)
    # Every row gets its rank within its class as a fraction; the lowest ranks go first, so
    # that classes are held out in proportion. Each class keeps its last row.
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
            f"{len(classes)} rows of {len(np.unique(classes))} classes leave none to stop by: "
            "every class has a single row; give more rows or X_val and y_val"
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
    """Cut rows into folds.

    A number of folds is dealt out at random, ``classes`` in proportion if there are any. Anything else, with ``y`` and
    ``groups``, is for scikit-learn's :func:`~sklearn.model_selection.check_cv`; its rows may be lists, arrays or masks.

    Examples
    --------
    >>> [validation.tolist() for _, validation in folds(3, 6, random_state=0)]
    [[2, 5], [1, 3], [0, 4]]
    """
    if not isinstance(cv, int | np.integer):
        cut = check_cv(cv, y, classifier=is_classifier).split(np.empty((n_rows, 1)), y, groups)
        return [(_row_numbers(train), _row_numbers(held)) for train, held in cut]
    check_integer("cv", cv, least=2)
    if cv > n_rows:
        raise ValueError(f"cv={cv} folds of {n_rows} rows: lower cv")
    if classes is None:
        return list(KFold(int(cv), shuffle=True, random_state=random_state).split(np.empty((n_rows, 1))))
    most = int(np.unique(classes, return_counts=True)[1].max())
    if cv > most:
        raise ValueError(
            f"cv={cv} folds of classes with at most {most} rows each: lower cv, or use a regressor if the classes are "
            "numbers"
        )
    splitter = StratifiedKFold(int(cv), shuffle=True, random_state=random_state)
    return list(splitter.split(np.empty((n_rows, 1)), classes))


def _row_numbers(rows: ArrayLike) -> NDArray[np.int64]:
    rows = np.asarray(rows)
    return np.flatnonzero(rows) if rows.dtype == bool else rows.astype(np.int64)


@dataclass(frozen=True)
class Split:
    """Test rows, and the folds of the others."""

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
    """Hold test rows out at random and cut the others into folds, classes in proportion; ``n_splits`` times."""
    if is_classification:
        _check_classes(y, cv)
    if test_size > len(y) - 2:
        raise ValueError(f"test_size={test_size} of {len(y)} rows leaves too few to train on: lower it")
    splits = []
    for number in range(n_splits):
        rng = np.random.default_rng(np.random.SeedSequence(seed.entropy, spawn_key=(1, number)))
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
            f"class {classes[least]!r} has {counts[least]} rows, too few to have some in every fold and among the "
            f"held-out rows: at least {needed} are needed with cv={cv!r}; lower cv or merge classes"
        )
