"""Classifiers: CASTLE, and the same network with any regularizers, with fixed or cross-validated strengths."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils import Tags

from castlereg.estimators.base import NetworkEstimator, PlainNetwork
from castlereg.estimators.castle import CastleEstimator
from castlereg.estimators.cross_validation import CastleCV, ClassSetCV, NetworkCV
from castlereg.estimators.file_fit import FileFit
from castlereg.estimators.partial_fit import PartialFitOfClasses
from castlereg.table.targets import ClassWeight, check_class_weight


@dataclass(eq=False, repr=False)
class Classification(ClassifierMixin, NetworkEstimator):
    """Predictions and scores of all classifiers."""

    target_kind = "classes"
    class_weight: ClassWeight = field(default=None, kw_only=True)  # type: ignore[misc]

    @property
    def classes_(self) -> Any:
        """The classes, sorted; a list of arrays for several targets."""
        classes = self._fitted().classes
        return classes[0] if len(classes) == 1 else classes

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64] | list[NDArray[np.float64]]:
        """Predict the probability of every class.

        Parameters
        ----------
        X : DataFrame or array-like of shape (rows, features)

        Returns
        -------
        array of shape (rows, classes), or a list of these for several targets
            Mean over networks, in the order of ``classes_``.
        """
        probabilities = self._predicted(X)
        return probabilities[0] if len(probabilities) == 1 else probabilities

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Predict the most probable class.

        Parameters
        ----------
        X : DataFrame or array-like of shape (rows, features)
        """
        probabilities = self._predicted(X)
        classes = self.model_.classes
        predicted = [labels[shares.argmax(axis=1)] for labels, shares in zip(classes, probabilities, strict=True)]
        return predicted[0] if len(predicted) == 1 else np.column_stack(predicted)

    def score(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Return the accuracy; with several targets, the share of rows with correct predictions for all of them.

        Parameters
        ----------
        X : DataFrame or array-like of shape (rows, features)
        y : array-like of shape (rows,) or (rows, targets)
        sample_weight : array-like of shape (rows,), optional
        """
        if self.n_outputs_ == 1:
            return float(super().score(X, y, sample_weight))
        right = np.all(self.predict(X) == np.asarray(y), axis=1)
        return float(np.average(right, weights=sample_weight))  # type: ignore[arg-type]

    def _check_options(self) -> None:
        super()._check_options()
        check_class_weight(self.class_weight)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags


@dataclass(eq=False, repr=False)
class CastleClassifier(Classification, FileFit, PartialFitOfClasses, CastleEstimator):
    """Neural network for classification, regularized by learning the causal graph of the columns and the target.

    The target's loss is the cross-entropy, in both the supervised and the reconstruction term, divided by that of the
    base rates; a loss of 1 is no better than predicting these. The target is one node of the graph, whatever its number
    of classes. Validation rows are stratified by class. All other options and attributes are those of
    :class:`CastleRegressor`.

    Parameters
    ----------
    class_weight : "balanced", dict or None
        Weights of the classes, which multiply the weights of rows, as in scikit-learn: ``"balanced"`` gives every class
        the same total weight. For several targets, pass a list with one entry per target; the factors are multiplied.

    Attributes
    ----------
    classes_ : array
        The classes, sorted; a list of arrays for several targets.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from castlereg import CastleClassifier
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = CastleClassifier(max_epochs=40, random_state=0).fit(X, y)
    >>> model.predict_proba(X).shape
    (150, 3)
    """


@dataclass(eq=False, repr=False)
class NetworkClassifier(Classification, FileFit, PartialFitOfClasses, PlainNetwork):
    """Neural network for classification with any regularizers; without any, the paper's Baseline with early stopping.

    Options and attributes are those of :class:`NetworkRegressor`, with ``class_weight`` and ``classes_`` as in
    :class:`CastleClassifier`. Validation rows are stratified by class.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from castlereg import NetworkClassifier
    >>> from castlereg.regularizers import MixUp
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = NetworkClassifier([MixUp(0.2)], max_epochs=40, random_state=0).fit(X, y)
    >>> model.predict_proba(X).shape
    (150, 3)
    """


@dataclass(eq=False, repr=False)
class CastleClassifierCV(Classification, ClassSetCV, CastleCV):
    """CASTLE for classification, chosen by cross-validation in one batched run.

    The probabilities are the mean over the fold networks of the chosen candidate. If ``cv`` is a number, folds are
    stratified by class. Options and attributes are those of :class:`CastleRegressorCV`, with ``class_weight`` and
    ``classes_`` as in :class:`CastleClassifier`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from castlereg import CastleClassifierCV
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = CastleClassifierCV((0.01,), cv=3, max_epochs=40, random_state=0).fit(X, y)
    >>> model.predict_proba(X).shape
    (150, 3)
    >>> model.predict_set(X, coverage=0.95).shape  # which classes cannot be ruled out
    (150, 3)
    """


@dataclass(eq=False, repr=False)
class NetworkClassifierCV(Classification, ClassSetCV, NetworkCV):
    """Neural network for classification, with regularizers chosen by cross-validation in one batched run.

    Options and attributes are those of :class:`NetworkRegressorCV`, with ``class_weight`` and ``classes_`` as in
    :class:`CastleClassifier`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from castlereg import NetworkClassifierCV
    >>> from castlereg.regularizers import L2
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> grid = [[L2(0.1)], [L2(0.01)]]
    >>> model = NetworkClassifierCV(grid, cv=3, max_epochs=20, random_state=0).fit(X, y)
    >>> model.best_regularizers_ in [tuple(candidate) for candidate in grid]
    True
    """
