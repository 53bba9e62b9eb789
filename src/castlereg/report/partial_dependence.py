"""Mean predictions of a model with one column set: what it predicts, not what would be caused."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from castlereg.fitted.model import FittedModel

Array = NDArray[np.float64]

_ROWS = 150  # at most, evenly spaced


def partial_dependence(model: FittedModel, cells: Array, column: int, values: Array) -> list[Array]:
    """Return the mean prediction of each target with a column set to values, the other columns as they are.

    Parameters
    ----------
    model : FittedModel
    cells : array of shape (rows, columns)
        As of :meth:`castlereg.fitted.model.FittedModel.cells`.
    column : int
    values : array of shape (values,)
        Numbers, or indices of levels.

    Returns
    -------
    list of array
        For each target, of shape (values,) for numbers or (values, classes).
    """
    some = cells[np.unique(np.linspace(0, len(cells) - 1, min(len(cells), _ROWS)).round().astype(np.int64))]
    repeated = np.tile(some, (len(values), 1))
    repeated[:, column] = np.repeat(values, len(some))
    of_targets = [predicted.mean(axis=0) for predicted in model.predictor.predict(repeated)]
    return [predicted.reshape(len(values), len(some), *predicted.shape[1:]).mean(axis=1) for predicted in of_targets]
