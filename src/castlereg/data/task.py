"""Whether a target asks for regression or classification."""

from __future__ import annotations

from numbers import Number
from typing import Any, Literal

import numpy as np
import pandas as pd

Task = Literal["regression", "classification"]

_MOST_CLASSES = 10


def inferred_task(y: Any) -> tuple[Task, str]:
    """Infer the task from the values of a target, and say why.

    Text, booleans, categories and few whole numbers that repeat (2 to 10 values, on average in two rows each) are
    classes; other numbers are a regression. Missing values are ignored.

    Parameters
    ----------
    y : Series or array-like of shape (rows,)

    Returns
    -------
    task : {"regression", "classification"}
    reason : str

    Examples
    --------
    >>> inferred_task(["yes", "no", "yes"])
    ('classification', '2 classes')
    >>> inferred_task([1.5, 2.0, 7.25])
    ('regression', 'numbers')
    >>> inferred_task([0, 1, 1, 0])
    ('classification', '2 classes')
    >>> inferred_task([3, 8, 4, 9, 4])
    ('regression', 'numbers')
    """
    values = (y if isinstance(y, pd.Series) else pd.Series(np.asarray(y).ravel())).dropna()
    if values.dtype == object and all(isinstance(v, Number) and not isinstance(v, bool | np.bool_) for v in values):
        return "regression", "numbers"  # such as decimals
    distinct = values.nunique()
    few = min(_MOST_CLASSES, max(2, len(values) // 2))
    if (
        not pd.api.types.is_numeric_dtype(values)
        or pd.api.types.is_bool_dtype(values)
        or (2 <= distinct <= few and bool((values == values.round()).all()))
    ):
        return "classification", f"{distinct} classes"
    return "regression", "numbers"
