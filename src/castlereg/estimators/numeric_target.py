"""Estimators of a numeric target: prediction, checks and encoding of the target."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import RegressorMixin

from castlereg.estimators.base import NetworkEstimator, Rows
from castlereg.estimators.holdout import n_held_out
from castlereg.layout import Node
from castlereg.tables.encoding import Scaling, check_range, is_constant, target_node


class NumericTarget(RegressorMixin, NetworkEstimator):
    """What every regressor does."""

    def predict(self, X: ArrayLike) -> NDArray[np.float64]:
        """Predict the target.

        Parameters
        ----------
        X : array-like of shape (rows, features)

        Returns
        -------
        array of shape (rows,)
        """
        return self._decoded(self._outputs(X)).mean(axis=0)

    def _decoded(self, outputs: NDArray[np.float64]) -> NDArray[np.float64]:
        return self._target_scaling.decode(outputs[:, :, 0])

    def _target_is_numeric(self) -> bool:
        return True

    def _target_node(self) -> Node:
        return target_node(None)

    def _check_target(self, y: NDArray[Any], what: str) -> None:
        check_range(y.astype(np.float64)[:, None], [what], what)

    def _encode_target(self, y: NDArray[Any]) -> NDArray[np.float64]:
        column = y.astype(np.float64)[:, None]
        if is_constant(column)[0]:
            raise ValueError(f"y is {column[0, 0]:g} in every row: there is nothing to learn from a constant target")
        self._target_scaling = Scaling.fit(column)
        return self._target_scaling.encode(column)

    def _encode_more_targets(self, y: NDArray[Any]) -> NDArray[np.float64]:
        return self._target_scaling.encode(y.astype(np.float64)[:, None])

    def _split(self, rows: Rows, rng: np.random.Generator) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        held = n_held_out(len(rows), self.validation_fraction)
        order = rng.permutation(len(rows))
        return np.sort(order[held:]), np.sort(order[:held])
