"""Estimators of classes: prediction, checks and encoding of the target."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, softmax
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets

from castlereg.estimators.base import NetworkEstimator, Rows
from castlereg.estimators.holdout import stratified_split
from castlereg.layout import Node
from castlereg.tables.encoding import class_channels, target_node


class ClassTarget(ClassifierMixin, NetworkEstimator):
    """What every classifier does."""

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Predict the probability of every class.

        Parameters
        ----------
        X : array-like of shape (rows, features)

        Returns
        -------
        array of shape (rows, classes)
            In the order of ``classes_``; the mean over networks.
        """
        return self._decoded(self._outputs(X)).mean(axis=0)

    def _decoded(self, outputs: NDArray[np.float64]) -> NDArray[np.float64]:
        if len(self.classes_) == 2:
            positive = expit(outputs[:, :, 0])
            return np.stack([1 - positive, positive], axis=-1)
        probabilities: NDArray[np.float64] = softmax(outputs, axis=-1)
        return probabilities

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Predict the most probable class.

        Parameters
        ----------
        X : array-like of shape (rows, features)

        Returns
        -------
        array of shape (rows,)
        """
        most_probable = self.predict_proba(X).argmax(axis=1)
        classes: NDArray[Any] = self.classes_
        return classes[most_probable]

    def _target_is_numeric(self) -> bool:
        return False

    def _target_node(self) -> Node:
        return target_node(len(self.classes_))

    def _check_target(self, y: NDArray[Any], what: str) -> None:
        check_classification_targets(y)

    def _encode_target(self, y: NDArray[Any]) -> NDArray[np.float64]:
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(f"y has only one class, {self.classes_[0]!r}: a classifier needs at least two")
        return class_channels(codes, len(self.classes_))

    def _encode_more_targets(self, y: NDArray[Any]) -> NDArray[np.float64]:
        unknown = np.setdiff1d(y, self.classes_)
        if len(unknown):
            raise ValueError(
                f"y_val has class {unknown[0]!r}, which y does not have; classes are {list(self.classes_)}"
            )
        return class_channels(np.searchsorted(self.classes_, y), len(self.classes_))

    def _split(self, rows: Rows, rng: np.random.Generator) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        classes = rows.y[:, 0].astype(np.int64) if rows.y.shape[1] == 1 else rows.y.argmax(axis=1)
        return stratified_split(classes, self.validation_fraction, rng)
