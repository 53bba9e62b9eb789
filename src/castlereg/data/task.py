"""Whether a target asks for regression or classification."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

Task = Literal["regression", "classification"]

_MOST_CLASSES = 10
_PLAIN = ("integer", "floating", "mixed-integer-float", "boolean")


def inferred_task(y: Any) -> tuple[Task, str]:
    """Infer the task from the values of a target, and say why.

    Text, booleans, categories and few whole numbers that repeat (2 to 10 values, on average in two rows each) are
    classes; other numbers are a regression. Missing values are ignored, and numbers stored as objects are numbers. The
    command line, :func:`castlereg.compare` and the estimators of several targets all use this rule.

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
    is_pandas = isinstance(y, pd.Series | pd.Index | pd.api.extensions.ExtensionArray)
    values = pd.Series(y if is_pandas else np.asarray(y).ravel()).dropna()
    if values.dtype == object:
        if pd.api.types.infer_dtype(values) == "decimal":
            return "regression", "numbers"
        values = pd.Series(without_objects(values.to_numpy()))
    distinct = values.nunique()
    few = min(_MOST_CLASSES, max(2, len(values) // 2))
    if (
        not pd.api.types.is_numeric_dtype(values)
        or pd.api.types.is_bool_dtype(values)
        or (2 <= distinct <= few and bool((values == values.round()).all()))
    ):
        return "classification", f"{distinct} classes"
    return "regression", "numbers"


def without_objects(values: NDArray[Any]) -> NDArray[Any]:
    """Return numbers or booleans that are stored as objects as an array of their own type; others as they are.

    Examples
    --------
    >>> import numpy as np
    >>> without_objects(np.array([1, 2], object)).dtype.kind
    'i'
    """
    stored = pd.api.types.infer_dtype(values, skipna=False) if values.dtype == object else ""
    return np.array(values.tolist()) if stored in _PLAIN else values
