"""Splits of rows into training and held-out rows, made by scikit-learn's splitters in the user's order of rows.

==================  =====================================  ==========================================
rows                one split for early stopping           folds
==================  =====================================  ==========================================
any                 ``ShuffleSplit``                       ``KFold``
with classes        ``StratifiedShuffleSplit``             ``StratifiedKFold``
with groups         some of the folds on the right         ``GroupKFold``, ``StratifiedGroupKFold``
with times          the latest rows                        ``TimeSeriesSplit`` over blocks of times
==================  =====================================  ==========================================

A class's only row is never held out, no group is on both sides, and held-out rows are later than all training rows.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    ShuffleSplit,
    StratifiedGroupKFold,
    StratifiedKFold,
    StratifiedShuffleSplit,
    TimeSeriesSplit,
    check_cv,
)

from castlereg.options import check_integer
from castlereg.table.reading import Columns
from castlereg.table.schema import ColumnSchema, values_of_levels

Fold = tuple[NDArray[np.int64], NDArray[np.int64]]  # training and held-out rows, both ascending

_INSTEAD = "pass X_val and y_val"
_MOST_PARTS = 20  # of groups, from which held-out ones are chosen
_MOST_STRATIFIED_GROUPS = 1000  # StratifiedGroupKFold takes a fifth of a millisecond per group


def validation_split(
    n_rows: int,
    fraction: float,
    *,
    seed: int,
    classes: NDArray[Any] | None = None,
    groups: NDArray[np.int64] | None = None,
    times: NDArray[np.float64] | None = None,
) -> Fold:
    """Hold out about a fraction of the rows: at least one, leaving at least two.

    ``classes`` are held out in proportion, ``groups`` (:func:`group_codes`) stay together, and with ``times``
    (:func:`times_of`) the latest rows are held out; all have the shape (rows,).

    Examples
    --------
    >>> validation_split(5, 0.2, seed=0, times=np.array([3.0, 9.0, 2.0, 2.0, 5.0]))
    (array([0, 2, 3, 4]), array([1]))
    >>> train, held_out = validation_split(6, 0.5, seed=0, groups=np.array([0, 0, 1, 1, 2, 2]))
    >>> len(held_out)
    2
    """
    wanted = min(max(1, round(fraction * n_rows)), n_rows - 2)
    if times is not None:
        return _latest_rows(_time_blocks(times, groups), wanted)
    if groups is not None:
        return _whole_groups(groups, classes, wanted, seed)
    if classes is not None:
        return _share_of_classes(np.unique(classes, return_inverse=True)[1], wanted, seed)
    (train, held_out), *_ = ShuffleSplit(1, test_size=wanted, random_state=seed).split(np.empty((n_rows, 1)))
    return np.sort(train), np.sort(held_out)


def _share_of_classes(classes: NDArray[np.int64], wanted: int, seed: int) -> Fold:
    """Hold out rows of all classes in proportion, as far as there are enough; one row of each always stays."""
    n_rows = len(classes)
    order = np.random.default_rng(seed).permutation(n_rows)
    rest = np.delete(np.arange(n_rows), order[np.unique(classes[order], return_index=True)[1]])
    if len(rest) == 0:
        raise ValueError(
            f"none of the {n_rows} rows can be held out for validation, because each of the {n_rows} classes has a "
            f"single row: pass more rows, or {_INSTEAD}"
        )
    strata = classes[rest]
    counts = np.bincount(strata)
    strata[counts[strata] == 1] = -1  # classes with too few rows are drawn together, or with the largest class
    if np.count_nonzero(strata == -1) == 1:
        strata[strata == -1] = np.argmax(counts)
    wanted, n_strata = min(wanted, len(rest)), len(np.unique(strata))
    if wanted == len(rest):
        held_out = rest
    else:
        enough = n_strata <= wanted <= len(rest) - n_strata
        splitter = (StratifiedShuffleSplit if enough else ShuffleSplit)(1, test_size=wanted, random_state=seed)
        held_out = np.sort(rest[next(splitter.split(rest, strata))[1]])
    return np.delete(np.arange(n_rows), held_out), held_out


def _whole_groups(groups: NDArray[np.int64], classes: NDArray[Any] | None, wanted: int, seed: int) -> Fold:
    """Hold out groups with about the wanted number of rows, and with some rows of every class on the other side."""
    n_rows, numbers = len(groups), np.arange(len(groups))
    n_groups = len(np.unique(groups))
    if n_groups < 2:
        raise ValueError(f"groups has only one group, so none is left for validation: pass more groups, or {_INSTEAD}")
    most = min(n_groups, _MOST_PARTS)
    share = Fraction(wanted / n_rows).limit_denominator(most)
    share = min(max(share, Fraction(1, most)), Fraction(most - 1, most))
    labels = np.zeros(n_rows, np.int64) if classes is None else np.unique(classes, return_inverse=True)[1]
    is_stratified = classes is not None and n_groups <= _MOST_STRATIFIED_GROUPS
    is_stratified = is_stratified and np.bincount(labels).max() >= share.denominator
    with warnings.catch_warnings():  # about classes with fewer rows than parts
        warnings.simplefilter("ignore", UserWarning)
        folds = _group_folds(groups, labels if is_stratified else None, share.denominator, seed)
    parts = [held_out for _, held_out in folds]
    choices = []
    for first in range(len(parts)):
        chosen = np.concatenate([parts[(first + k) % len(parts)] for k in range(share.numerator)])
        lost = np.count_nonzero(np.bincount(labels) == np.bincount(labels[chosen], minlength=labels.max() + 1))
        if 0 < len(chosen) <= n_rows - 2:
            choices.append((lost, abs(len(chosen) - wanted), len(chosen), first, chosen))
    if not choices:
        raise ValueError(
            f"groups has {n_groups} groups in {n_rows} rows, and none can be held out, because at least two rows must "
            f"remain for training: pass more rows, or {_INSTEAD}"
        )
    held_out = np.sort(min(choices, key=lambda choice: choice[:4])[-1])
    return np.delete(numbers, held_out), held_out


def _group_folds(groups: NDArray[np.int64], classes: NDArray[Any] | None, cv: int, seed: int) -> list[Fold]:
    splitter = (GroupKFold if classes is None else StratifiedGroupKFold)(cv, shuffle=True, random_state=seed)
    return [(train, held_out) for train, held_out in splitter.split(np.empty((len(groups), 1)), classes, groups)]


def _latest_rows(blocks: NDArray[np.int64], wanted: int) -> Fold:
    """Hold out the latest blocks with about the wanted number of rows."""
    earlier = np.cumsum(np.bincount(blocks))[:-1]  # rows before each cut
    possible = np.flatnonzero(earlier >= 2)
    if len(possible) == 0:
        raise ValueError(
            f"{len(blocks)} rows cannot be split by time into at least two training rows and later validation rows: "
            f"there are too few different times, or groups span all of them; {_INSTEAD}"
        )
    cut = possible[np.argmin(np.abs(earlier[possible] - (len(blocks) - wanted)))]
    return np.flatnonzero(blocks <= cut), np.flatnonzero(blocks > cut)


def _time_blocks(times: NDArray[np.float64], groups: NDArray[np.int64] | None = None) -> NDArray[np.int64]:
    """Number the different times from the earliest; times that a group spans form one block."""
    values, numbers = np.unique(times, return_inverse=True)
    if groups is None:
        return numbers
    reach = np.arange(len(values))  # the last time of the groups that start at each time
    np.maximum.at(reach, pd.Series(numbers).groupby(groups).transform("min"), numbers)
    is_new = np.r_[0, np.maximum.accumulate(reach)[:-1] < np.arange(1, len(values))]
    return np.cumsum(is_new)[numbers]


def cross_validation_folds(
    cv: Any,
    n_rows: int,
    *,
    seed: int,
    classes: NDArray[Any] | None = None,
    groups: Any = None,
    times: NDArray[np.float64] | None = None,
    y: Any = None,
    is_classifier: bool = False,
    kept: NDArray[np.int64] | None = None,
) -> list[Fold]:
    """Split rows into folds.

    An integer ``cv`` is the number of random folds, or of folds in time; see :func:`validation_split`. Any other ``cv``
    (a splitter, or pairs of lists, arrays or masks of rows) is used as scikit-learn uses it: it gets ``y`` and
    ``groups`` unchanged, and ``classes`` and ``times`` are ignored. Of its folds, only rows in ``kept`` stay, as their
    positions in ``kept``.

    Examples
    --------
    >>> folds = cross_validation_folds(2, 4, seed=0, times=np.array([1.0, 1.0, 2.0, 3.0]))
    >>> [(train.tolist(), held_out.tolist()) for train, held_out in folds]
    [([0, 1], [2]), ([0, 1, 2], [3])]
    """
    rows = np.arange(n_rows)
    if not isinstance(cv, int | np.integer):
        splitter = check_cv(cv, y, classifier=is_classifier)
        splits = splitter.split(np.empty((n_rows, 1)), y, groups)
        pairs = [(rows[np.asarray(train)], rows[np.asarray(held_out)]) for train, held_out in splits]
        if kept is not None:
            position = np.full(n_rows, -1)
            position[kept] = np.arange(len(kept))
            pairs = [(position[train], position[held_out]) for train, held_out in pairs]
            pairs = [(train[train >= 0], held_out[held_out >= 0]) for train, held_out in pairs]
    else:
        check_integer("cv", cv, least=2)
        pairs = _counted_folds(int(cv), n_rows, seed, classes, groups, times)
    for number, (train, held_out) in enumerate(pairs):
        if len(train) < 2 or len(held_out) < 1:
            raise ValueError(
                f"fold {number} of cv={cv!r} has {len(train)} training rows and {len(held_out)} validation rows: a "
                "network needs at least two training rows and one validation row"
            )
    if len(pairs) < 2:
        raise ValueError(f"cv={cv!r} gives {len(pairs)} fold, but cross-validation needs at least two")
    return pairs


def _counted_folds(
    cv: int,
    n_rows: int,
    seed: int,
    classes: NDArray[Any] | None,
    groups: NDArray[np.int64] | None,
    times: NDArray[np.float64] | None,
) -> list[Fold]:
    if times is not None:
        blocks = _time_blocks(times, groups)
        n_blocks = int(blocks.max()) + 1
        if cv >= n_blocks:
            raise ValueError(
                f"cv={cv} folds by time need at least {cv + 1} different times that no group spans, but there are "
                f"{n_blocks}: lower cv"
            )
        by_time = TimeSeriesSplit(cv).split(np.empty((n_blocks, 1)))
        return [(np.flatnonzero(np.isin(blocks, a)), np.flatnonzero(np.isin(blocks, b))) for a, b in by_time]
    if groups is not None:
        n_groups = len(np.unique(groups))
        if cv > n_groups:
            raise ValueError(f"cv={cv} needs at least {cv} groups, but there are {n_groups}: lower cv")
        return _group_folds(groups, classes, cv, seed)
    if cv > n_rows:
        raise ValueError(f"cv={cv} needs at least {cv} rows, but there are {n_rows}: lower cv")
    if classes is None:
        return list(KFold(cv, shuffle=True, random_state=seed).split(np.empty((n_rows, 1))))
    most = int(np.unique(classes, return_counts=True)[1].max())
    if cv > most:
        raise ValueError(
            f"cv={cv} needs a class with at least {cv} rows, but the largest class has {most}: lower cv, or use a "
            "regressor if the classes are numbers"
        )
    return list(StratifiedKFold(cv, shuffle=True, random_state=seed).split(np.empty((n_rows, 1)), classes))


def group_codes(groups: ArrayLike, n_rows: int) -> NDArray[np.int64]:
    """Return the group number of each row; groups are numbered in the order of their labels."""
    values = np.asarray(groups)
    if values.shape != (n_rows,):
        raise ValueError(f"groups has shape {values.shape}, but X has {n_rows} rows: pass one label for each row")
    labels = pd.Series(values.tolist(), dtype=object)
    missing = labels.isna().to_numpy()
    if missing.any():
        raise ValueError(f"groups has a missing label in row {int(np.argmax(missing))}: pass a label for each row")
    try:
        codes, _ = pd.factorize(labels, sort=True)
    except TypeError:
        raise ValueError("groups mixes labels that cannot be sorted together: convert them to text") from None
    return codes.astype(np.int64)


def times_of(columns: Columns, schema: Sequence[ColumnSchema], j: int) -> NDArray[np.float64]:
    """Return the time of each row, shape (rows,): column ``j`` as read, not coded, which may be an identifier."""
    column, read = schema[j], columns.types[j]
    times = columns.column(j)
    is_levels = column.is_coded or (column.kind == "unusable" and read.levels is not None)
    if is_levels or (column.holds == "nothing" and column.kind != "unusable"):
        content = "text or categories" if is_levels else "no values"
        raise ValueError(f"time_column {column.name!r} has {content}: it must have numbers or dates")
    if read.levels is not None:
        times = values_of_levels(times, read, column, "X")
    missing = np.isnan(times)
    if missing.any():
        raise ValueError(
            f"time_column {column.name!r} has {int(missing.sum())} missing values, the first in row "
            f"{int(np.argmax(missing))}: fill them or drop these rows"
        )
    return times
