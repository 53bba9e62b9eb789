"""CASTLE for classes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, softmax
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets

from castlereg.estimators.base import CastleEstimator, Rows
from castlereg.estimators.holdout import stratified_split
from castlereg.layout import Node
from castlereg.tables.encoding import class_channels, target_node


class CastleClassifier(ClassifierMixin, CastleEstimator):
    """Neural network for two or more classes, regularized by learning the causal graph of columns and target.

    The target's loss is the cross-entropy, in the supervised and in the reconstruction term.
    The target is one node of the graph, however many classes it has.

    Parameters
    ----------
    reg_beta, reg_lambda, hidden_layer_sizes, acyclicity, sparsity, reconstruct, setting, learning_rate, batch_size, \
max_epochs, patience, validation_fraction, n_members, random_state, verbose
        As in :class:`CastleRegressor`. Rows held out to stop by are a share of every class.

    Attributes
    ----------
    classes_ : array
        The classes, sorted.
    graph_, history_, validation_loss_, network_, n_features_in_, feature_names_in_
        As in :class:`CastleRegressor`; losses are cross-entropies.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from castlereg import CastleClassifier
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = CastleClassifier(max_epochs=40, random_state=0).fit(X, y)
    >>> model.predict_proba(X).shape
    (150, 3)
    """

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
        logits = self._outputs(X)
        if len(self.classes_) == 2:
            positive = expit(logits[:, :, 0]).mean(axis=0)
            return np.column_stack([1 - positive, positive])
        probabilities: NDArray[np.float64] = softmax(logits, axis=-1).mean(axis=0)
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
