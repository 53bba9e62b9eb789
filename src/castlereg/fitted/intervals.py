"""How far to trust a prediction: intervals and class sets from the rows that folds left out (Barber et al. 2021)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

_CELLS_AT_ONCE = 4_000_000  # rows x left-out rows


def cv_plus(values: NDArray[np.float64], errors: Sequence[NDArray[np.float64]], coverage: float) -> NDArray[np.float64]:
    """Return the ends of the CV+ interval, shape (rows, 2).

    ``values`` are what each fold's network predicts, shape (folds, rows); ``errors`` its absolute errors on the rows
    that the fold left out.
    """
    n = sum(map(len, errors))
    rank = math.ceil(coverage * (n + 1))  # of n, from below for the upper and from above for the lower end
    ends = np.empty((values.shape[1], 2))
    if rank > n:
        ends[:] = -np.inf, np.inf
        return ends
    at_once = max(1, _CELLS_AT_ONCE // n)
    for start in range(0, len(ends), at_once):
        block = values[:, start : start + at_once]
        for side, sign in enumerate((-1.0, 1.0)):
            moved = np.concatenate([sign * v[:, None] + e for v, e in zip(block, errors, strict=True)], axis=1)
            ends[start : start + at_once, side] = sign * np.partition(moved, rank - 1, axis=1)[:, rank - 1]
    return ends


def class_sets(
    probabilities: NDArray[np.float64], errors: Sequence[NDArray[np.float64]], coverage: float
) -> NDArray[np.bool_]:
    """Return which classes cannot be ruled out, shape (folds, rows, classes) to (rows, classes).

    ``errors`` are one minus the probability of the true class, of the rows that each fold left out.
    """
    n = sum(map(len, errors))
    # In how many left-out rows the true class was found at least as improbable as this class here.
    as_far = sum(
        len(e) - np.searchsorted(np.sort(e), 1 - of_fold, side="left")
        for of_fold, e in zip(probabilities, errors, strict=True)
    )
    kept: NDArray[np.bool_] = n - as_far < coverage * (n + 1)
    return kept
