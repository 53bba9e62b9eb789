"""Estimators of numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import RegressorMixin

from castlereg.data.targets import NumericTarget, as_numbers
from castlereg.estimators.base import NetworkEstimator


class Regression(RegressorMixin, NetworkEstimator):
    """What every regressor does."""

    def predict(self, X: ArrayLike) -> NDArray[np.float64]:
        """Predict the target, or every target.

        Parameters
        ----------
        X : DataFrame or array-like of shape (rows, features)

        Returns
        -------
        array of shape (rows,), or (rows, targets) for several targets
        """
        values = self._decoded(X)
        return values[0] if len(values) == 1 else np.column_stack(values)

    def _as_target(self, column: NDArray[Any], name: str) -> NDArray[np.float64]:
        return as_numbers(column, name)

    def _fit_target(self, column: NDArray[Any], name: str) -> NumericTarget:
        return NumericTarget.fit(column, name)
