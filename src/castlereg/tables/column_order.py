"""Columns in an order of their own, whatever order the user has them in.

Starting weights are dealt to columns by position. Laying the columns out in an order that follows from what is in them
makes a fitted model independent of the order and the names of the user's columns.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from castlereg.layout import Node


def column_order(
    cells: NDArray[np.float64], target: NDArray[np.int64], nodes: Sequence[Node], names: Sequence[str]
) -> tuple[int, ...]:
    """Order columns by their node's type, and then by their values.

    Parameters
    ----------
    cells : array of shape (rows, columns)
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
    >>> order = column_order(cells, target, [Node(), Node()], ["a", "b"])
    >>> turned = column_order(cells[::-1, ::-1], target[::-1], [Node(), Node()], ["b", "a"])
    >>> [["a", "b"][j] for j in order] == [["b", "a"][j] for j in turned]
    True
    """
    keys = [
        ((node.kind, node.levels, node.gaps, node.clipped), _fingerprint(column, target), name, j)
        for j, (column, node, name) in enumerate(zip(cells.T, nodes, names, strict=True))
    ]
    return tuple(key[-1] for key in sorted(keys))


def _fingerprint(column: NDArray[np.float64], target: NDArray[np.int64]) -> bytes:
    """Digest the pairs of ranks of a column and the target, in no order: neither rows nor units change it."""
    ranks = np.unique(column, return_inverse=True)[1]
    pairs = np.sort(target * np.int64(len(column)) + ranks)
    return hashlib.blake2b(pairs.tobytes(), digest_size=16).digest()
