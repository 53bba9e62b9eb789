"""Coding of other tables with a known schema: cells become numbers, or indices into the levels of training."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from castlereg.notices import warn_user
from castlereg.table.dates import Reading, only_reading, parsed
from castlereg.table.reading import Columns, ColumnType, Level, check_range
from castlereg.table.schema import OTHER, ColumnSchema
from castlereg.table.texts import MISSING_MARKS, as_numbers


def coded_columns(columns: Columns, schema: Sequence[ColumnSchema], what: str = "X") -> Columns:
    """Code the cells of a table by the schema; a table without levels is not copied.

    Cells become numbers, or indices into the schema's levels with -1 for unknown levels. Missing values are NaN, and
    cells of unusable columns are 0.
    """
    pairs = [
        (known, _without_values(column) if known.holds != column.holds and _is_empty(columns, j) else column)
        for j, (known, column) in enumerate(zip(schema, columns.types, strict=True))
    ]
    for known, column in pairs:
        if known.holds != column.holds and {known.holds, column.holds} <= {"numbers", "dates", "durations"}:
            raise _another_kind(column, known, what)
    if all(known.levels is None and column.levels is None and known.kind != "unusable" for known, column in pairs):
        return columns
    cells = columns.cells.copy()
    unknown: list[str] = []
    for j, (known, column) in enumerate(pairs):
        values = columns.column(j)
        if known.kind == "unusable":
            cells[:, j] = 0
        elif known.is_coded:
            cells[:, j] = known_levels(values, column, known, what)
            new = values[cells[:, j] == -1]
            if len(new):
                level = float(new[0]) if column.levels is None else column.levels[int(new[0])]
                unknown.append(f"{level!r} in column {known.name!r}")
        elif column.levels is not None:
            cells[:, j] = values_of_levels(values, column, known, what)
    if unknown:
        more = f" and in {len(unknown) - 5} more columns" if len(unknown) > 5 else ""
        warn_user(
            f"{what} has levels that are not in the training data: {', '.join(unknown[:5])}{more}; each is treated as "
            "an unknown level"
        )
    return Columns(cells, tuple(ColumnType(known.name, known.holds, known.levels) for known in schema))


def _is_empty(columns: Columns, j: int) -> bool:
    """Return whether all values of a column are missing; it may then be of any kind."""
    return columns.types[j].levels is None and bool(np.isnan(columns.column(j)).all())


def _without_values(column: ColumnType) -> ColumnType:
    return ColumnType(column.name, "nothing")


def known_levels(
    cells: NDArray[np.float64], column: ColumnType, schema: ColumnSchema, what: str
) -> NDArray[np.float64]:
    """Return the index of each cell's level in the schema, or -1 for an unknown level."""
    if column.holds == "nothing":
        return cells
    index = {level: float(i) for i, level in enumerate(schema.levels or ())}
    other = index.get(OTHER, -1.0)
    codes, levels = pd.factorize(cells) if column.levels is None else (_codes(cells), column.levels)
    if column.holds == "text" and schema.holds == "numbers":
        levels = [_as_number(str(level)) for level in levels]
    elif column.holds != schema.holds:
        raise _another_kind(column, schema, what)
    return np.array([*(np.nan if level != level else index.get(level, other) for level in levels), np.nan])[codes]


def _as_number(text: str) -> Level:
    """Read a text as a number, NaN for a missing value; return any other text unchanged."""
    numbers = as_numbers([text])
    return text if numbers is None else float(numbers[0])


def _codes(cells: NDArray[np.float64]) -> NDArray[np.int64]:
    """Convert indices with NaN for missing values to integers with -1."""
    return np.where(np.isnan(cells), -1, cells).astype(np.int64)


def values_of_levels(
    cells: NDArray[np.float64], column: ColumnType, schema: ColumnSchema, what: str
) -> NDArray[np.float64]:
    """Convert levels (texts or categories of numbers) to values where the schema has numbers or dates."""
    if schema.holds == "nothing":
        return np.full(len(cells), np.nan)
    codes, levels = _codes(cells), column.levels or ()
    present = np.unique(codes[codes >= 0])
    texts = [str(levels[i]) for i in present]
    if schema.holds == "dates" and column.holds == "text":
        read: NDArray[np.float64] | None = _days(texts, schema, what)
    else:
        read = as_numbers(texts) if schema.holds == "numbers" else None
    if read is None:
        raise _another_kind(column, schema, what)
    values = np.full(len(levels) + 1, np.nan)  # the last is for missing values
    values[present] = read
    check_range(values[codes][:, None], [schema.name], what)
    return values[codes]


def _days(texts: Sequence[str], schema: ColumnSchema, what: str) -> NDArray[np.float64]:
    """Read each date on its own, in the format of the training data or in one that is unambiguous."""
    of_training: tuple[Reading, ...] = (schema.reading,) if schema.reading else ("day first", "month first")
    readings: tuple[Reading, ...] = tuple(dict.fromkeys((*of_training, "year first", "month name")))
    days = np.full(len(texts), np.nan)
    for i, text in enumerate(texts):
        if text.strip() in MISSING_MARKS:
            continue
        dates = {reading: day for reading in readings if (day := parsed(text, reading)) is not None}
        if not dates:
            raise ValueError(
                f"{what} has {text!r} in column {schema.name!r}, which is not a date"
                + (f" in the format of the training data ({schema.reading})" if schema.reading else "")
                + ": write it as 2024-01-31 or leave it empty"
            )
        if len(dates) > 1:
            ways = {reading: np.array([day]) for reading, day in dates.items()}
            only_reading(ways, [text], f"{what} has dates in column {schema.name!r}")
        days[i] = next(iter(dates.values()))
    return days


def _another_kind(column: ColumnType, schema: ColumnSchema, what: str) -> ValueError:
    levels = list(column.levels or ())
    odd = [level for level in levels if schema.holds == "numbers" and as_numbers([str(level)]) is None]
    example = f", such as {(odd or levels)[0]!r}" if levels else ""
    return ValueError(
        f"{what} has {column.holds} in column {schema.name!r}{example}, but the training data had {schema.holds}: "
        f"convert it to {schema.holds}"
    )
