"""Columns in an order of their own, whatever order the user has them in.

Starting weights are dealt to columns by position. Laying the columns out in an order that follows from what is in them
makes a fitted model independent of the order and the names of the user's columns.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from castlereg.data.row_order import ranked
from castlereg.layout import Node


def column_order(
    columns: Iterable[NDArray[np.float64]], target: NDArray[np.int64], nodes: Sequence[Node], names: Sequence[str]
) -> tuple[int, ...]:
    """Order columns by their node's type, and then by their values.

    Parameters
    ----------
    columns : iterable of array of shape (rows,)
    target : array of int, shape (rows,)
        Ranks of the target, which tie a column's values to rows whatever the order of these.
    nodes : sequence of Node
        Type of each column. Columns of one type stand together, so that tables with the same types share a layout and a
        compiled program.
    names : sequence of str
        Decide between columns that go with the target in exactly the same way.

    Returns
    -------
    tuple of int
        Columns in their own order.

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
        ((node.kind, node.levels, node.gaps, node.clipped), _fingerprint(column, target), name, j)
        for j, (column, node, name) in enumerate(zip(columns, nodes, names, strict=True))
    ]
    return tuple(key[-1] for key in sorted(keys))


def _fingerprint(column: NDArray[np.float64], target: NDArray[np.int64]) -> bytes:
    """Digest the pairs of ranks of a column and the target, in no order: neither rows nor units change it."""
    pairs = ranked(column)[0]
    pairs += target * np.int64(len(column))
    pairs.sort()
    return hashlib.blake2b(pairs.data, digest_size=16).digest()
