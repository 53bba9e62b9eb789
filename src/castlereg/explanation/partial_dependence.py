"""Mean predictions of a model with one column set: predictions, not causal effects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from castlereg.estimators.base import NetworkEstimator, read_features
from castlereg.fitted.model import FittedModel
from castlereg.options import did_you_mean

Array = NDArray[np.float64]

_ROWS = 150  # maximum number of rows, evenly spaced


def mean_predictions(model: FittedModel, cells: Array, column: int, values: Array) -> list[Array]:
    """Return the mean prediction of each target with a column set to values and the other columns unchanged.

    Parameters
    ----------
    model : FittedModel
    cells : array of shape (rows, columns)
        From :meth:`castlereg.fitted.model.FittedModel.cells`.
    column : int
    values : array of shape (values,)
        Numbers, or indices of levels.

    Returns
    -------
    list of array
        One array per target, of shape (values,) for numbers or (values, classes) for classes.
    """
    rows = cells[np.unique(np.linspace(0, len(cells) - 1, min(len(cells), _ROWS)).round().astype(np.int64))]
    repeated = np.tile(rows, (len(values), 1))
    repeated[:, column] = np.repeat(values, len(rows))
    of_targets = [predicted.mean(axis=0) for predicted in model.predictor.predict(repeated)]
    return [predicted.reshape(len(values), len(rows), *predicted.shape[1:]).mean(axis=1) for predicted in of_targets]


def partial_dependence(
    model: NetworkEstimator, X: pd.DataFrame, column: str, values: Sequence[Any], *, level: Any = None
) -> Array:
    """Return the mean prediction of a fitted model with one column set to values in every row.

    It shows what the model predicts, not what would happen if the column were changed. To compare it with an effect,
    use ``effect.plot(predicted=partial_dependence(model, X, effect.cause, effect.values))``.

    Parameters
    ----------
    model : estimator
        A fitted estimator with one target.
    X : DataFrame
        Rows to average over.
    column : str
        A column of ``X``.
    values : sequence
        Values of the column.
    level : object, optional
        Class whose probability is returned, by default the last; not for regression.

    Returns
    -------
    array of shape (values,)

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from castlereg import CastleRegressor, partial_dependence
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    >>> model = CastleRegressor(max_epochs=20, random_state=0).fit(X, y)
    >>> low, high = partial_dependence(model, X, "bmi", [20.0, 35.0])
    >>> bool(low < high)
    True
    """
    if column not in X.columns:
        raise KeyError(f"X has no column {column!r}{did_you_mean(str(column), map(str, X.columns))}")
    if model.n_outputs_ != 1:
        raise ValueError(f"the model has {model.n_outputs_} targets, but partial_dependence() needs a model with one")
    classes = model.model_.classes
    if not classes and level is not None:
        raise ValueError(f"level={level!r} needs a model of classes, but this one predicts numbers; drop level")
    labels = classes[0].tolist() if classes else []
    if level is not None and level not in labels:
        raise ValueError(f"level={level!r} is not one of the classes {labels}")
    at = labels.index(level) if level is not None else -1
    means = []
    for value in values:
        (predicted,) = model.model_.predict(read_features(model, X.assign(**{column: value})))
        means.append(float(np.mean(predicted[:, at] if classes else predicted)))
    return np.array(means)
