"""Errors about a table: which column, row and value, and what to do about it."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from numbers import Number
from typing import Any, NoReturn

import numpy as np
import pandas as pd
from numpy.typing import NDArray

# What float32 can hold.
LARGEST = float(np.finfo(np.float32).max)


def check_range(cells: NDArray[np.float64] | NDArray[np.float32], names: Sequence[str], what: str) -> None:
    """Raise for infinity and values that float32 cannot hold, in cells of shape (rows, columns) that may have NaN."""
    if not cells.size:
        return
    if not (np.fmax.reduce(cells, axis=None) > LARGEST or np.fmin.reduce(cells, axis=None) < -LARGEST):
        return
    row, column = np.argwhere(np.abs(cells) > LARGEST)[0]
    value = cells[row, column]
    if np.isinf(value):
        raise ValueError(
            f"{what} contains infinity: {value:g} in row {row} of column {names[column]!r}; replace it or drop the row"
        )
    raise ValueError(
        f"{what} has {value:g} in row {row} of column {names[column]!r}, beyond the range of "
        "float32 (3.4e38) that networks compute in: rescale the column or take its logarithm"
    )


def sum_of_squares(cells: NDArray[np.float64] | NDArray[np.float32]) -> float:
    """Tell in one quick pass whether there is anything to look for: NaN if a cell is, infinite or huge if one is."""
    in_one_piece = cells.flags.c_contiguous or cells.flags.f_contiguous
    step = len(cells) if in_one_piece else 4096  # pieces are copied: not all at once
    total = 0.0
    with np.errstate(over="ignore", invalid="ignore"):
        for start in range(0, len(cells), max(step, 1)):
            flat = cells[start : start + step].ravel(order="K")
            total += float(flat.dot(flat))
    return total


def reject_objects(column: pd.Series, name: str, what: str) -> NoReturn:
    """Raise for a column of objects, and say which of them do not go together."""
    first: dict[str, tuple[int, Any]] = {}
    for row, value in enumerate(column):
        if pd.api.types.is_scalar(value) and pd.isna(value):
            continue
        first.setdefault(_sort_of(value), (row, value))
    for sort, (row, value) in first.items():
        if sort not in ("text", "numbers", "booleans", "dates"):
            raise TypeError(
                f"{what} has {_short(value)} of type {sort} in row {row} of column {name!r}: an argument must be a "
                "string or a number (or a date), so convert or drop the column"
            )
    seen = [f"{sort} ({_short(value)} in row {row})" for sort, (row, value) in first.items()]
    raise ValueError(
        f"{what} has column {name!r} that mixes {' and '.join(seen)}: convert it to one of them, for example with "
        "pd.to_numeric or .astype(str)"
    )


def _sort_of(value: Any) -> str:
    if isinstance(value, str):
        return "text"
    if isinstance(value, bool | np.bool_):
        return "booleans"
    if isinstance(value, complex | np.complexfloating):
        return "complex"
    if isinstance(value, Number):
        return "numbers"
    if isinstance(value, datetime.date | datetime.timedelta | np.datetime64 | np.timedelta64):
        return "dates"
    return type(value).__name__


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else text[:37] + "..."


def check_shape(shape: tuple[int, ...], what: str) -> None:
    """Raise for a table without rows or columns."""
    rows, width = shape
    if width == 0:
        raise ValueError(f"0 feature(s) (shape=({rows}, 0)) while a minimum of 1 is required: {what} has no columns")
    if rows == 0:
        raise ValueError(
            f"Found array with 0 sample(s) (shape=(0, {width})) while a minimum of 1 is required: {what} has no rows"
        )


def listed(names: Sequence[str], most: int = 5) -> str:
    """Write names with quotes, and a count of those beyond the first few."""
    shown = ", ".join(repr(name) for name in names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more columns"
