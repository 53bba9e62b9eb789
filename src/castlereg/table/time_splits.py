"""Splits by time: validation rows are later than all training rows, and rows of one time stay together."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import TimeSeriesSplit

from castlereg.options import check_choice, check_integer
from castlereg.table.reading import Columns
from castlereg.table.rows import Fold, Rows, n_held_out
from castlereg.table.schema import ColumnSchema


def time_column_index(time_column: str | int, names: list[str]) -> int:
    """Return the index of the time column, given its name or index."""
    if isinstance(time_column, str):
        check_choice("time_column", time_column, names)
        return names.index(time_column)
    if not isinstance(time_column, int | np.integer) or isinstance(time_column, bool):
        raise ValueError(f"time_column={time_column!r} must be the name or index of a column of X")
    if not -len(names) <= time_column < len(names):
        raise ValueError(f"time_column={time_column} is out of range: X has {len(names)} columns")
    return int(time_column) % len(names)


def times_of(rows: Rows, read: Columns, column: ColumnSchema, j: int) -> NDArray[np.float64]:
    """Return the time of each coded row; ``j`` is the time column of ``read``, the user's table as read."""
    if column.kind == "unusable" and read.types[j].levels is None:  # coded as zeros
        assert rows.index is not None
        times = read.values[rows.index, j].astype(np.float64)
    elif column.is_coded or column.kind == "unusable" or column.holds == "nothing":
        content = "no values" if column.holds == "nothing" else "text or categories"
        raise ValueError(f"time_column {column.name!r} has {content}: it must have numbers or dates")
    else:
        times = rows.columns.column(j)
    missing = np.isnan(times)
    if missing.any():
        where = np.flatnonzero(missing) if rows.index is None else rows.index[missing]
        raise ValueError(
            f"time_column {column.name!r} has {len(np.unique(where))} missing values, the first in row {where.min()}: "
            "fill them or drop these rows"
        )
    return times


def time_blocks(times: NDArray[np.float64], groups: NDArray[np.int64] | None = None) -> NDArray[np.int64]:
    """Number the different times of rows from the earliest; times that a group spans form one block.

    Splitting rows between two blocks gives earlier and later rows that share neither a time nor a group.

    Examples
    --------
    >>> import numpy as np
    >>> times = np.array([2020.0, 2021.0, 2021.0, 2022.0, 2023.0])
    >>> time_blocks(times)
    array([0, 1, 1, 2, 3])
    >>> time_blocks(times, groups=np.array([0, 1, 2, 1, 3]))
    array([0, 1, 1, 1, 2])
    """
    values, numbers = np.unique(times, return_inverse=True)
    if groups is None:
        return numbers
    _, codes = np.unique(groups, return_inverse=True)
    first, last = np.full(codes.max() + 1, len(values)), np.zeros(codes.max() + 1, np.int64)
    np.minimum.at(first, codes, numbers)
    np.maximum.at(last, codes, numbers)
    spanned = np.zeros(len(values) + 1, np.int64)  # groups that start at or before a time and end after it
    np.add.at(spanned, first, 1)
    np.add.at(spanned, last, -1)
    is_new = np.r_[0, np.cumsum(spanned)[: len(values) - 1] == 0]
    return np.cumsum(is_new)[numbers]


def latest_split(blocks: NDArray[np.int64], fraction: float) -> Fold:
    """Hold out the latest blocks with about a given fraction of the rows; return row numbers in ascending order.

    Examples
    --------
    >>> import numpy as np
    >>> latest_split(np.array([0, 3, 1, 2, 2]), 0.2)
    (array([0, 2, 3, 4]), array([1]))
    """
    earlier = np.cumsum(np.bincount(blocks))[:-1]  # rows before each cut
    possible = np.flatnonzero(earlier >= 2)
    if len(possible) == 0:
        raise ValueError(
            f"{len(blocks)} rows cannot be split by time into at least two training rows and later validation rows: "
            "there are too few different times, or groups span all of them; pass X_val and y_val"
        )
    wanted = len(blocks) - n_held_out(len(blocks), fraction)
    cut = possible[np.argmin(np.abs(earlier[possible] - wanted))]
    return np.flatnonzero(blocks <= cut), np.flatnonzero(blocks > cut)


def expanding_folds(blocks: NDArray[np.int64], cv: Any) -> list[Fold]:
    """Split rows into folds that train on earlier blocks and leave out the next ones, like TimeSeriesSplit.

    Examples
    --------
    >>> import numpy as np
    >>> [(train.tolist(), held.tolist()) for train, held in expanding_folds(np.array([0, 0, 1, 2]), 2)]
    [([0, 1], [2]), ([0, 1, 2], [3])]
    """
    check_integer("cv", cv, least=2)
    n_blocks = int(blocks.max()) + 1
    if cv >= n_blocks:
        raise ValueError(
            f"cv={cv} folds by time need at least {cv + 1} different times that no group spans, but there are "
            f"{n_blocks}: lower cv"
        )
    cut = TimeSeriesSplit(n_splits=int(cv)).split(np.empty((n_blocks, 1)))
    return [(np.flatnonzero(np.isin(blocks, train)), np.flatnonzero(np.isin(blocks, held))) for train, held in cut]
