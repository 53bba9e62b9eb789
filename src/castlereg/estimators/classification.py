"""Estimators of classes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils import Tags

from castlereg.data.preprocessing import Preprocessing
from castlereg.data.rows import Rows
from castlereg.data.targets import ClassTarget, as_classes
from castlereg.estimators.base import NetworkEstimator
from castlereg.training import TrainedStack

ClassWeight = Mapping[Any, float] | str | Sequence[Any] | None


class Classification(ClassifierMixin, NetworkEstimator):
    """What every classifier does."""

    class_weight: ClassWeight

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64] | list[NDArray[np.float64]]:
        """Predict the probability of every class.

        Parameters
        ----------
        X : DataFrame or array-like of shape (rows, features)

        Returns
        -------
        array of shape (rows, classes), or a list of these for several targets
            In the order of ``classes_``; the mean over networks.
        """
        probabilities = self._decoded(X)
        return probabilities[0] if len(probabilities) == 1 else probabilities

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Predict the most probable class.

        Parameters
        ----------
        X : DataFrame or array-like of shape (rows, features)

        Returns
        -------
        array of shape (rows,), or (rows, targets) for several targets
        """
        probabilities = self._decoded(X)
        classes = [self.classes_] if len(probabilities) == 1 else self.classes_
        predicted = [labels[one.argmax(axis=1)] for labels, one in zip(classes, probabilities, strict=True)]
        return predicted[0] if len(predicted) == 1 else np.column_stack(predicted)

    def score(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Return the share of rows predicted right, in all targets when there are several.

        Parameters
        ----------
        X : DataFrame or array-like of shape (rows, features)
        y : array-like of shape (rows,) or (rows, targets)
        sample_weight : array-like of shape (rows,), optional

        Returns
        -------
        float
        """
        if self.n_outputs_ == 1:
            return float(super().score(X, y, sample_weight))
        right = np.all(self.predict(X) == np.asarray(y), axis=1)
        return float(np.average(right, weights=sample_weight))  # type: ignore[arg-type]

    def _check_options(self) -> None:
        super()._check_options()
        for one in self.class_weight if _is_list(self.class_weight) else [self.class_weight]:  # type: ignore[union-attr]
            if not (one is None or isinstance(one, Mapping) or (isinstance(one, str) and one == "balanced")):
                raise ValueError(f"class_weight={one!r} must be None, 'balanced' or a dict of class to weight")

    def _as_target(self, column: NDArray[Any], name: str) -> NDArray[Any]:
        return as_classes(column, name)

    def _fit_target(self, column: NDArray[Any], name: str) -> ClassTarget:
        return ClassTarget.fit(column, name)

    def _keep(self, coding: Preprocessing, stack: TrainedStack, names: list[str]) -> None:
        super()._keep(coding, stack, names)
        classes = [target.classes for target in coding.targets if isinstance(target, ClassTarget)]
        self.classes_: Any = classes[0] if len(classes) == 1 else classes

    def _with_target_weights(self, coding: Preprocessing, rows: Rows) -> Rows:
        """Multiply the rows' weights by those of their classes."""
        if self.class_weight is None:
            return rows
        several = self.class_weight if _is_list(self.class_weight) else [self.class_weight] * len(coding.targets)
        if len(several) != len(coding.targets):
            raise ValueError(
                f"class_weight has {len(several)} entries for {len(coding.targets)} targets: give one for each"
            )
        weight = np.ones(len(rows)) if rows.weight is None else rows.weight
        factors = [
            _class_factors(one, target, values, weight)
            for one, target, values in zip(several, coding.targets, rows.targets, strict=True)
            if isinstance(target, ClassTarget)
        ]
        weight = weight * np.prod(factors, axis=0)
        return replace(rows, weight=weight).take(np.flatnonzero(weight))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags


def _is_list(class_weight: Any) -> bool:
    return isinstance(class_weight, list | tuple)


def _class_factors(
    class_weight: Any, target: ClassTarget, values: NDArray[Any], weight: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return what each row's weight is multiplied by, as scikit-learn has it."""
    codes = target.codes(values)
    if class_weight is None:
        return np.ones(len(codes))
    if isinstance(class_weight, Mapping):
        known = target.classes.tolist()
        for label, factor in class_weight.items():
            if label not in known:
                raise ValueError(
                    f"class_weight has class {label!r}, which {target.name} does not have; classes are {known}"
                )
            if not factor >= 0:
                raise ValueError(f"class_weight={factor!r} of class {label!r} must not be negative")
        return np.array([float(class_weight.get(label, 1.0)) for label in known])[codes]
    totals = np.bincount(codes, weight, minlength=len(target.classes))
    balanced: NDArray[np.float64] = (totals.sum() / (len(totals) * totals))[codes]
    return balanced
