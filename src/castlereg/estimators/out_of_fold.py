"""How far to trust a prediction: intervals and class sets from the rows that folds left out (Barber et al. 2021)."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from castlereg.estimators.cross_validation import CrossValidation
from castlereg.options import check_fraction

_CELLS_AT_ONCE = 4_000_000  # rows x left-out rows


class IntervalCV(CrossValidation):
    """Regressors that also tell an interval."""

    def predict_interval(self, X: ArrayLike, coverage: float = 0.9) -> NDArray[np.float64]:
        """Predict an interval for every row, by CV+ (the jackknife+ over folds).

        For each row of the training table, the network of the fold that left it out is taken, with how far it
        was off on that row. The interval holds what these networks say of the new row, give or take how far they
        were off.

        Parameters
        ----------
        X : DataFrame or array-like of shape (rows, features)
        coverage : float
            Share of new rows whose target should lie inside. The theorem gives at least ``2 * coverage - 1`` for
            exchangeable rows; here it holds nearly, because left-out rows also decide when a network stops.

        Returns
        -------
        array of shape (rows, 2), or (rows, targets, 2) for several targets
            Lower and upper ends; infinite when there are too few rows for the coverage.

        Examples
        --------
        >>> from sklearn.datasets import load_diabetes
        >>> from castlereg import CastleRegressorCV
        >>> X, y = load_diabetes(return_X_y=True)
        >>> model = CastleRegressorCV((0.01,), cv=3, max_epochs=20, random_state=0).fit(X[:300], y[:300])
        >>> lower, upper = model.predict_interval(X[300:]).T
        >>> bool(((lower <= y[300:]) & (y[300:] <= upper)).mean() > 0.8)
        True
        """
        check_fraction("coverage", coverage)
        by_target = [
            _cv_plus(values, [fold[k] for fold in self._left_out], coverage)
            for k, values in enumerate(self._by_fold(X))
        ]
        return by_target[0] if len(by_target) == 1 else np.stack(by_target, axis=1)


class ClassSetCV(CrossValidation):
    """Classifiers that also tell a set of classes."""

    def predict_set(self, X: ArrayLike, coverage: float = 0.9) -> NDArray[np.bool_] | list[NDArray[np.bool_]]:
        """Predict the classes that cannot be ruled out, by CV+.

        A class is ruled out when the fold networks find it less probable than they found the true class of most
        rows that they had not seen.

        Parameters
        ----------
        X : DataFrame or array-like of shape (rows, features)
        coverage : float
            Share of new rows whose class should be in the set.

        Returns
        -------
        array of bool, shape (rows, classes), or a list of these for several targets
            In the order of ``classes_``.
        """
        check_fraction("coverage", coverage)
        sets = [
            _class_sets(probabilities, [fold[k] for fold in self._left_out], coverage)
            for k, probabilities in enumerate(self._by_fold(X))
        ]
        return sets[0] if len(sets) == 1 else sets


def _cv_plus(values: NDArray[np.float64], off: list[NDArray[np.float64]], coverage: float) -> NDArray[np.float64]:
    """Return the ends of the CV+ interval, from values (folds, rows) and how far each fold was off."""
    n = sum(map(len, off))
    rank = math.ceil(coverage * (n + 1))  # of n, from below for the upper and from above for the lower end
    ends = np.empty((values.shape[1], 2))
    if rank > n:
        ends[:] = -np.inf, np.inf
        return ends
    at_once = max(1, _CELLS_AT_ONCE // n)
    for start in range(0, len(ends), at_once):
        block = values[:, start : start + at_once]
        for side, sign in enumerate((-1.0, 1.0)):
            moved = np.concatenate([sign * one[:, None] + r for one, r in zip(block, off, strict=True)], axis=1)
            ends[start : start + at_once, side] = sign * np.partition(moved, rank - 1, axis=1)[:, rank - 1]
    return ends


def _class_sets(
    probabilities: NDArray[np.float64], off: list[NDArray[np.float64]], coverage: float
) -> NDArray[np.bool_]:
    """Return which classes stay, from probabilities (folds, rows, classes) and how far each fold was off."""
    n = sum(map(len, off))
    # In how many left-out rows the true class was found at least as improbable as this class here.
    as_far = sum(
        len(r) - np.searchsorted(np.sort(r), 1 - of_fold, side="left")
        for of_fold, r in zip(probabilities, off, strict=True)
    )
    kept: NDArray[np.bool_] = n - as_far < coverage * (n + 1)
    return kept
