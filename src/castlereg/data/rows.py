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
    """Rows with their targets and weights; their columns are as read, or coded by the schema of a preprocessing."""

    columns: Columns
    targets: tuple[NDArray[Any], ...]  # each of shape (rows,)
    weight: NDArray[np.float64] | None = None  # None when all weigh alike
    index: NDArray[np.int64] | None = None  # in the user's table; None when they are all there in the user's order

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
