"""Splits that keep groups of rows together, such as the visits of one patient: no group is in both parts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.model_selection import GroupKFold, StratifiedGroupKFold

from castlereg.options import check_integer
from castlereg.table.rows import Fold, n_held_out


def group_codes(groups: ArrayLike, n_rows: int) -> NDArray[np.int64]:
    """Return the group number of each row; groups are numbered in the order of their labels.

    Examples
    --------
    >>> group_codes(["b", "a", "b"], 3)
    array([1, 0, 1])
    """
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


def group_split(
    groups: NDArray[np.int64], classes: NDArray[np.int64] | None, fraction: float, rng: np.random.Generator
) -> Fold:
    """Hold out random groups with about a given fraction of the rows; return row numbers in ascending order.

    Groups are tried in random order. A group is held out if this brings the number of held-out rows closer to the
    fraction: first groups that take at most the same fraction from every class, then groups that leave at least one row
    of every class. If there is no such group, the smallest one is held out.

    Examples
    --------
    >>> import numpy as np
    >>> groups = np.repeat(np.arange(6), 5)
    >>> train, held = group_split(groups, None, 0.3, np.random.default_rng(0))
    >>> np.unique(groups[train]), np.unique(groups[held])
    (array([0, 1, 4, 5]), array([2, 3]))
    """
    numbers, groups = np.unique(groups, return_inverse=True)
    if len(numbers) < 2:
        raise ValueError(
            "groups has only one group, so none is left for validation: pass more groups, or X_val and y_val"
        )
    classes = np.zeros_like(groups) if classes is None else classes
    n_classes = int(classes.max()) + 1
    counts = np.bincount(groups * n_classes + classes, minlength=len(numbers) * n_classes).reshape(-1, n_classes)
    held = _held_groups(counts, n_held_out(len(groups), fraction), rng.permutation(len(numbers)))
    if not held.any():
        raise ValueError(
            f"groups has {len(numbers)} groups in {len(groups)} rows, and none can be held out, because at least two "
            "rows must remain for training: pass more rows, or X_val and y_val"
        )
    return np.flatnonzero(~held[groups]), np.flatnonzero(held[groups])


def _held_groups(counts: NDArray[np.int64], wanted: int, order: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Choose groups to hold out, given their number of rows of each class, shape (groups, classes)."""
    sizes, total = counts.sum(axis=1), counts.sum(axis=0)
    most = total.sum() - 2
    held, rows = np.zeros(len(counts), bool), np.zeros_like(total)
    share, but_one = np.ceil(total * (wanted / total.sum())), np.maximum(total - 1, 0)
    for limit in (share, but_one):
        for group in order:
            after = rows + counts[group]
            nearer = abs(after.sum() - wanted) < abs(rows.sum() - wanted)
            if nearer and not held[group] and after.sum() <= most and (after <= limit).all():
                held[group], rows = True, after
    for limit in (but_one, total):
        possible = [group for group in order if sizes[group] <= most and (counts[group] <= limit).all()]
        if possible and not held.any():
            held[min(possible, key=lambda group: sizes[group])] = True
    return held


def group_folds(
    groups: NDArray[np.int64], classes: NDArray[np.int64] | None, cv: Any, *, random_state: int
) -> list[Fold]:
    """Split rows into random folds of whole groups, with nearly equal class proportions if there are classes."""
    check_integer("cv", cv, least=2)
    n_groups = len(np.unique(groups))
    if cv > n_groups:
        raise ValueError(f"cv={cv} needs at least {cv} groups, but there are {n_groups}: lower cv")
    splitter = GroupKFold if classes is None else StratifiedGroupKFold
    options: dict[str, Any] = {"n_splits": int(cv), "shuffle": True, "random_state": random_state}
    cut = splitter(**options).split(np.empty((len(groups), 1)), classes, groups)
    return [(np.asarray(train), np.asarray(held)) for train, held in cut]
