"""Rows of a table with their targets and weights."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from castlereg.data.ordering import repeated_rows
from castlereg.data.reading import Columns


@dataclass(frozen=True)
class Rows:
    """Rows with their targets and weights.

    Parameters
    ----------
    columns : Columns
        As read, or coded by the schema of a :class:`castlereg.data.preprocessing.Preprocessing`.
    targets : tuple of array of shape (rows,)
    weight : array of float64, shape (rows,), optional
        None when all weigh alike.
    index : array of int, shape (rows,), optional
        Indices of the rows in the user's table; None when they are all there in the user's order.
    """

    columns: Columns
    targets: tuple[NDArray[Any], ...]
    weight: NDArray[np.float64] | None = None
    index: NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return len(self.columns)

    def take(self, rows: NDArray[np.int64]) -> Rows:
        """Keep some rows, in this order."""
        weight = None if self.weight is None else self.weight[rows]
        index = rows if self.index is None else self.index[rows]
        return Rows(self.columns.take(rows), tuple(target[rows] for target in self.targets), weight, index)

    def weighted(self, weight: NDArray[np.float64] | None) -> Rows:
        """Repeat rows as whole-number weights say, or drop those that weigh nothing and keep the weights."""
        if weight is None:
            return self
        repeated = repeated_rows(weight)
        if repeated is not None:
            return self.take(repeated)
        return replace(self, weight=weight).take(np.flatnonzero(weight))
