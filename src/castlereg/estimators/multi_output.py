"""Several targets of any kind in one network: numbers and classes together."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from sklearn.metrics import r2_score
from sklearn.utils.metaestimators import available_if

from castlereg.estimators.base import NetworkEstimator, PlainNetwork, read_known_rows
from castlereg.estimators.castle import CastleEstimator
from castlereg.table.targets import NumericTarget


def _has_classes(model: MultiOutput) -> bool:
    """Return whether any target has classes."""
    return "model_" in vars(model) and bool(model.model_.classes)


def _index(X: ArrayLike) -> pd.Index | None:
    return X.index if isinstance(X, pd.DataFrame) else None


class MultiOutput(NetworkEstimator):
    """Estimators for mixed targets."""

    target_kind = "any"

    def predict(self, X: ArrayLike) -> pd.DataFrame:
        """Predict every target.

        Parameters
        ----------
        X : DataFrame or array-like of shape (rows, features)

        Returns
        -------
        DataFrame
            One column per target: the value of a numeric target, or the most probable class.
        """
        values = self._predicted(X)
        columns = [
            value if isinstance(target, NumericTarget) else target.classes[value.argmax(axis=1)]
            for target, value in zip(self.model_.targets, values, strict=True)
        ]
        return pd.DataFrame(dict(zip(self.target_names_, columns, strict=True)), index=_index(X))

    @available_if(_has_classes)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: ArrayLike) -> dict[str, pd.DataFrame] | pd.DataFrame:
        """Predict the probability of every class of the targets that have classes.

        Parameters
        ----------
        X : DataFrame or array-like of shape (rows, features)

        Returns
        -------
        dict of str to DataFrame
            One frame per target, with one column per class. With a single target, the frame itself.
        """
        probabilities = {
            name: pd.DataFrame(value, columns=target.classes, index=_index(X))
            for name, target, value in zip(self.target_names_, self.model_.targets, self._predicted(X), strict=True)
            if not isinstance(target, NumericTarget)
        }
        return probabilities if self.n_outputs_ > 1 else probabilities[self.target_names_[0]]

    def score(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Return the mean score over targets: R2 for numbers, accuracy for classes.

        Parameters
        ----------
        X : DataFrame or array-like of shape (rows, features)
        y : array-like of shape (rows, targets)
        sample_weight : array-like of shape (rows,), optional
        """
        predicted = self.predict(X)
        rows = read_known_rows(self, X, y, self.model_.target_kinds)
        scores = []
        for target, truth, name in zip(self.model_.targets, rows.targets, self.target_names_, strict=True):
            column = predicted[name].to_numpy()
            if isinstance(target, NumericTarget):
                scores.append(r2_score(truth, column, sample_weight=sample_weight))
            else:
                scores.append(np.average(column == truth, weights=sample_weight))  # type: ignore[arg-type]
        return float(np.mean(scores))

    @property
    def target_names_(self) -> list[str]:
        """Names of the targets."""
        return [target.name for target in self._fitted().targets]


class CastleMultiOutput(MultiOutput, CastleEstimator):
    """CASTLE for several targets of any kind: numbers and classes together, in one network and one graph.

    Targets with text, booleans, categories or a few repeated integers are classes; all others are numbers. No target is
    an input of another. The loss is the sum over targets, each divided by the loss of its base rate. Validation rows
    are stratified by the first target with classes. Options and attributes are those of :class:`CastleRegressor`, and
    ``target_names_``.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from castlereg import CastleMultiOutput
    >>> frame = load_wine(as_frame=True).frame
    >>> frame["target"] = frame["target"].map({0: "barolo", 1: "grignolino", 2: "barbera"})
    >>> targets = ["alcohol", "target"]
    >>> model = CastleMultiOutput(max_epochs=20, random_state=0).fit(frame.drop(columns=targets), frame[targets])
    >>> list(model.predict(frame.drop(columns=targets)).columns)
    ['alcohol', 'target']
    >>> model.predict_proba(frame.drop(columns=targets))["target"].shape
    (178, 3)
    >>> model.graph_.targets
    ('alcohol', 'target')
    """


class NetworkMultiOutput(MultiOutput, PlainNetwork):
    """The network of :class:`CastleMultiOutput` with any regularizers; without any, only early stopping.

    Options and attributes are those of :class:`NetworkRegressor`, and ``target_names_``.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from castlereg import NetworkMultiOutput
    >>> X, y = load_wine(return_X_y=True, as_frame=True)
    >>> targets = X[["alcohol"]].assign(kind=y.astype(str))
    >>> model = NetworkMultiOutput(max_epochs=20, random_state=0).fit(X.drop(columns="alcohol"), targets)
    >>> model.predict(X.drop(columns="alcohol")).shape
    (178, 2)
    """
