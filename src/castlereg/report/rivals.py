"""Tree models for comparison: scikit-learn's random forest and gradient boosting, on the same rows."""

from __future__ import annotations

from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from threadpoolctl import threadpool_limits

from castlereg.table.targets import NumericTarget, Target

Rival = Literal["random forest", "gradient boosting"]
RIVALS: tuple[Rival, ...] = get_args(Rival)
MOST_ROWS = 20_000  # to train rivals on; more rows take minutes

_TREES = 100
_MOST_ROWS_OF_TREE = 5_000  # in a forest
_MIN_ROWS_IN_LEAF = 3
_HELD_OUT = 0.1  # share of the rows that decide when boosting stops


def predicted_by(
    rival: Rival,
    target: Target,
    cells: NDArray[np.float64],
    values: NDArray[Any],
    held_out: NDArray[np.float64],
    categorical: NDArray[np.bool_],
    seed: int,
) -> NDArray[np.float64]:
    """Train a rival and predict the held-out rows: values of shape (rows,) or probabilities of shape (rows, classes).

    Parameters
    ----------
    rival : {"random forest", "gradient boosting"}
    target : NumericTarget or ClassTarget
    cells, held_out : array of float64, shape (rows, columns)
        Numbers and level indices, -1 for an unknown level and NaN for missing values; both rivals support them.
    values : array of shape (rows,)
        The target of the training rows.
    categorical : array of bool, shape (columns,)
        Columns whose levels have no order. The forest splits them in the order of their indices.
    seed : int

    Examples
    --------
    >>> x = np.arange(40.0)
    >>> target = NumericTarget.fit(x, "y")
    >>> rows, categorical = x[:, None], np.array([False])
    >>> predicted_by("random forest", target, rows, x, rows[[0, 39]], categorical, seed=0).round()
    array([ 3., 36.])
    """
    empty = np.isnan(cells).all(axis=0)  # boosting cannot bin a column without values
    cells, held_out = np.where(empty, 0.0, cells), np.where(empty, 0.0, held_out)
    forest = {
        "n_estimators": _TREES,
        "min_samples_leaf": _MIN_ROWS_IN_LEAF,
        "max_samples": min(_MOST_ROWS_OF_TREE / len(cells), 1.0),
        "random_state": seed,
    }
    boosting = {"categorical_features": categorical, "random_state": seed}
    is_forest = rival == "random forest"
    model: Any
    if isinstance(target, NumericTarget):
        if is_forest:
            model = RandomForestRegressor(**forest, max_features=1 / 3)
        else:
            model = HistGradientBoostingRegressor(**boosting, early_stopping=_HELD_OUT * len(cells) >= 2)
        return _predicted(model, cells, values, held_out, "predict")
    codes = target.codes(values)
    counts = np.bincount(codes, minlength=len(target.classes))
    present = np.flatnonzero(counts)
    if is_forest:
        model = RandomForestClassifier(**forest)
    else:
        # The rows for early stopping must contain every class; a class with a single row cannot be in both parts.
        stops_early = counts[present].min() >= 2 and _HELD_OUT * len(codes) >= len(present)
        model = HistGradientBoostingClassifier(**boosting, early_stopping=bool(stops_early))
    predicted = np.zeros((len(held_out), len(counts)))
    predicted[:, present] = _predicted(model, cells, codes, held_out, "predict_proba")
    # Add one tree that predicts the base rates, because all trees may be certain of a wrong class.
    return (_TREES * predicted + counts / len(codes)) / (_TREES + 1) if is_forest else predicted


def _predicted(
    model: Any, cells: NDArray[np.float64], values: NDArray[Any], held_out: NDArray[np.float64], method: str
) -> NDArray[np.float64]:
    # Use one thread: on tables of this size more threads are slower, much slower on a busy machine.
    with threadpool_limits(1, "openmp"):
        return np.asarray(getattr(model.fit(cells, values), method)(held_out), np.float64)
