"""Why a table is refused: the column, the row and the value, and what to do about it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd


def why_refused(X: Any, what: str) -> str | None:
    """Find the first text, gap or infinity in a table that could not be used.

    Parameters
    ----------
    X : array-like
        What the user gave.
    what : str
        Its name in the message.

    Returns
    -------
    str or None
        None when neither is found: the refusal has another reason.

    Examples
    --------
    >>> import pandas as pd
    >>> why_refused(pd.DataFrame({"city": ["Oslo", "Rome"]}), "X")  # doctest: +ELLIPSIS
    "X has text in column 'city', such as 'Oslo' in row 0: encode it as numbers, ..."
    """
    frame = X if isinstance(X, pd.DataFrame) else _as_frame(X)
    if frame is None:
        return None
    for name, column in frame.items():
        numbers = pd.to_numeric(column, errors="coerce")
        text = np.flatnonzero(numbers.isna() & column.notna())
        if len(text):
            return (
                f"{what} has text in column {name!r}, such as {column.iloc[text[0]]!r} in row {text[0]}: encode it as "
                "numbers, for example with sklearn.preprocessing.OneHotEncoder"
            )
        gaps = np.flatnonzero(numbers.isna())
        if len(gaps):
            return (
                f"{what} has NaN in column {name!r}, first in row {gaps[0]} ({len(gaps)} in all): missing values are "
                "not taken yet; fill them, for example with sklearn.impute.SimpleImputer, or drop the rows"
            )
        infinite = np.flatnonzero(np.isinf(numbers.to_numpy(dtype=np.float64)))
        if len(infinite):
            return f"{what} has inf in column {name!r}, first in row {infinite[0]}: replace it or drop the row"
    return None


def _as_frame(X: Any) -> pd.DataFrame | None:
    try:
        values = np.asarray(X)
    except ValueError:
        return None
    if values.ndim != 2 or values.dtype.kind not in "biufOUS" or any(isinstance(v, dict) for v in values.ravel()[:1]):
        return None
    return pd.DataFrame(values, columns=[f"x{j}" for j in range(values.shape[1])])
