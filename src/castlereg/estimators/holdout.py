"""Which rows are held out to stop by."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def n_held_out(n_rows: int, fraction: float) -> int:
    """Count the rows to hold out: the fraction, but at least one, and leave at least two.

    Examples
    --------
    >>> [n_held_out(n, 0.1) for n in (3, 25, 100)]
    [1, 2, 10]
    """
    return min(max(1, round(fraction * n_rows)), n_rows - 2)


def random_split(n_rows: int, fraction: float, rng: np.random.Generator) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Hold out random rows.

    Parameters
    ----------
    n_rows : int
    fraction : float
    rng : numpy.random.Generator

    Returns
    -------
    train_rows, validation_rows : array of int, ascending
    """
    held = n_held_out(n_rows, fraction)
    order = rng.permutation(n_rows)
    return np.sort(order[held:]), np.sort(order[:held])


def stratified_split(
    classes: NDArray[np.int64], fraction: float, rng: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Hold out a share of every class, and never a class's only row.

    Parameters
    ----------
    classes : array of int, shape (rows,)
    fraction : float
    rng : numpy.random.Generator

    Returns
    -------
    train_rows, validation_rows : array of int, ascending
    """
    held = n_held_out(len(classes), fraction)
    # Every row gets its place within its class as a fraction; the lowest places go first, so
    # that classes are held out in proportion. Each class keeps its last row.
    order = rng.permutation(len(classes))
    place = np.empty(len(classes))
    for label in np.unique(classes):
        rows = order[classes[order] == label]
        place[rows] = (np.arange(len(rows)) + rng.random()) / len(rows)
        place[rows[-1]] = np.inf
    chosen = np.argsort(place, kind="stable")[:held]
    chosen = chosen[np.isfinite(place[chosen])]
    if len(chosen) == 0:
        raise ValueError(
            f"{len(classes)} rows of {len(np.unique(classes))} classes leave none to stop by: "
            "every class has a single row; give more rows or X_val and y_val"
        )
    keep = np.ones(len(classes), bool)
    keep[chosen] = False
    return np.flatnonzero(keep), np.sort(chosen)
