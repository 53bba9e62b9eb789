"""Rows in an order of their own, whatever order the user gave them in.

Random numbers are dealt to rows by position. Sorting the rows first makes a fitted
model independent of the order of the user's rows, and makes an integer weight the
same thing as that many copies of the row, bit for bit.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Whole-number weights are repetitions as long as they lengthen an epoch no more than this; beyond, they weigh the loss.
_MOST_REPETITIONS = 10


def row_order(columns: Iterable[NDArray[Any]]) -> NDArray[np.int64]:
    """Order rows by their values.

    Parameters
    ----------
    columns : iterable of array of shape (rows,)
        Most telling first; later ones are looked at only while rows are tied.

    Returns
    -------
    array of int, shape (rows,)
        Indices that sort the rows. Scaling a column by a positive number does not change it.

    Examples
    --------
    >>> import numpy as np
    >>> row_order([np.array([2.0, 1.0, 2.0]), np.array([5.0, 5.0, 4.0])])
    array([1, 2, 0])
    """
    return np.argsort(row_ranks(columns), kind="stable")


def row_ranks(columns: Iterable[NDArray[Any]]) -> NDArray[np.int64]:
    """Rank rows by their values, equal rows alike; see :func:`row_order`."""
    codes: NDArray[np.int64] | None = None
    for column in columns:
        inverse, n_values = ranked(column)
        codes = inverse if codes is None else ranked(codes * n_values + inverse)[0]
        if len(codes) == 0 or codes.max() == len(codes) - 1:
            break
    if codes is None:
        raise ValueError("no column to order rows by")
    return codes


def ranked(column: NDArray[Any]) -> tuple[NDArray[np.int64], int]:
    """Rank the values of a column, equal ones alike and NaN last, with less memory than :func:`numpy.unique` takes.

    Parameters
    ----------
    column : array of shape (rows,)

    Returns
    -------
    ranks : array of int, shape (rows,)
    n_values : int
        Different values.

    Examples
    --------
    >>> import numpy as np
    >>> ranked(np.array([5.0, np.nan, 3.0, 5.0, np.nan]))
    (array([1, 2, 0, 1, 2]), 3)
    """
    order = np.argsort(column)
    values = column[order]
    is_new = np.zeros(len(column), bool)
    is_new[1:] = values[1:] != values[:-1]
    if values.dtype.kind == "f" and len(values) and np.isnan(values[-1]):
        is_new[np.searchsorted(values, np.nan) + 1 :] = False
    del values
    ranks = np.empty(len(column), np.int64)
    ranks[order] = np.cumsum(is_new)
    return ranks, int(is_new.sum()) + (len(column) > 0)


def repeated_rows(weight: NDArray[np.float64]) -> NDArray[np.int64] | None:
    """Turn whole-number weights into repetitions.

    Parameters
    ----------
    weight : array of shape (rows,)

    Returns
    -------
    array of int or None
        Row indices, each as often as its weight says, or None when weights are not
        whole numbers or would make the table more than ten times as long.

    Examples
    --------
    >>> import numpy as np
    >>> repeated_rows(np.array([1.0, 0.0, 2.0]))
    array([0, 2, 2])
    >>> repeated_rows(np.array([0.5, 1.0])) is None
    True
    """
    whole = np.floor(weight)
    if not np.array_equal(whole, weight) or whole.sum() > _MOST_REPETITIONS * len(weight):
        return None
    return np.repeat(np.arange(len(weight)), whole.astype(np.int64))
