"""Rows and columns in an order of their own, whatever order the user has them in.

Random numbers are dealt to rows and columns by position. Ordering both by what they hold makes a fitted model
independent of the user's order of rows and columns and of the columns' names, and makes an integer weight the same
thing as that many copies of a row, bit for bit.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from castlereg.layout import Node

# Whole-number weights are repetitions as long as they lengthen an epoch no more than this; beyond, they weigh the loss.
_MOST_REPETITIONS = 10


def row_order(columns: Iterable[NDArray[Any]]) -> NDArray[np.int64]:
    """Return the indices that sort rows by their values, shape (rows,); units of columns do not change them.

    Columns come most telling first; later ones are looked at only while rows are tied.

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
    """Rank the values of a column, NaN last, with less memory than :func:`numpy.unique`; count the different values.

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
    """Turn whole-number weights into row indices, each as often as its weight says.

    None when weights are not whole numbers or would make the table more than ten times as long.

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


def column_order(
    columns: Iterable[NDArray[np.float64]], target: NDArray[np.int64], nodes: Sequence[Node], names: Sequence[str]
) -> tuple[int, ...]:
    """Order columns by their node's type, and then by how their values go with the ranks of the target.

    Columns of one type stand together, so that tables with the same types share a layout and a compiled program. Names
    decide between columns that go with the target in exactly the same way.

    Examples
    --------
    >>> import numpy as np
    >>> from castlereg.layout import Node
    >>> cells, target = np.array([[1.0, 5.0], [2.0, 3.0], [3.0, 4.0]]), np.array([0, 1, 2])
    >>> order = column_order(cells.T, target, [Node(), Node()], ["a", "b"])
    >>> turned = column_order(cells[::-1, ::-1].T, target[::-1], [Node(), Node()], ["b", "a"])
    >>> [["a", "b"][j] for j in order] == [["b", "a"][j] for j in turned]
    True
    """
    keys = [
        (type_key(node), _fingerprint(column, target), name, j)
        for j, (column, node, name) in enumerate(zip(columns, nodes, names, strict=True))
    ]
    return tuple(key[-1] for key in sorted(keys))


def type_key(node: Node) -> tuple[str, int, bool, bool]:
    """Return what decides which columns stand together."""
    return node.kind, node.levels, node.gaps, node.clipped


def _fingerprint(column: NDArray[np.float64], target: NDArray[np.int64]) -> bytes:
    """Digest the pairs of ranks of a column and the target, in no order: neither rows nor units change it."""
    pairs = ranked(column)[0]
    pairs += target * np.int64(len(column))
    pairs.sort()
    return hashlib.blake2b(pairs.data, digest_size=16).digest()
