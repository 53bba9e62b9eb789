"""Reading of user input into columns of numbers, missing values and levels.

pandas and polars frames are read column by column, so each column keeps its type; arrays and lists of lists of numbers
are read as a whole. Nothing is coerced silently: errors name the column and row of values that cannot be used.

==============================  =================================================
input                           result
==============================  =================================================
numbers, booleans               numbers
dates, times, durations         days, since 1970 for dates
text                            levels; :mod:`castlereg.table.schema` finds those that are numbers or dates
pandas categories               levels, in their order if they are ordered
None, NaN, NaT, pd.NA           missing values, as are texts such as ``NA``, ``?`` and blank ones; among numbers and
                                dates also ``-`` and similar marks
==============================  =================================================
"""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from numbers import Number
from typing import Any, Literal, NoReturn

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.utils.validation import check_array

from castlereg.table.texts import MISSING_MARKS, stands_for_missing

Holds = Literal["numbers", "text", "dates", "durations", "nothing"]
Level = str | float

_DAY = np.timedelta64(1, "D")
_FLOATS = (np.float64, np.float32)  # single precision needs half the memory, and double represents it exactly


@dataclass(frozen=True)
class ColumnType:
    """The type of a column: its values or levels."""

    name: str
    holds: Holds = "numbers"  # "nothing" if all values are missing
    levels: tuple[Level, ...] | None = None  # to which cells are indices; None if cells are values
    ordered: bool = False  # whether the levels have a meaningful order
    declared: bool = False  # whether the dtype itself is categorical
    marks: tuple[str, ...] = ()  # texts that were read as missing values


@dataclass(frozen=True)
class Columns:
    """A table as numbers: values or indices into a column's levels, NaN for missing values. Arrays are not copied."""

    values: NDArray[np.float64] | NDArray[np.float32]  # (rows, columns)
    types: tuple[ColumnType, ...]
    rows: NDArray[np.int64] | None = None  # rows to use, in this order, without copying the table; all by default
    complete: bool = False  # whether no value is missing or beyond float32

    def __len__(self) -> int:
        return len(self.values if self.rows is None else self.rows)

    @property
    def cells(self) -> NDArray[np.float64]:
        """The whole table in float64, shape (rows, columns)."""
        return self.block(0, len(self))

    def block(self, start: int, stop: int) -> NDArray[np.float64]:
        """Some neighbouring rows in float64."""
        rows = slice(start, stop) if self.rows is None else self.rows[start:stop]
        return self.values[rows].astype(np.float64, copy=False)

    def column(self, j: int) -> NDArray[np.float64]:
        """One column in float64, shape (rows,)."""
        column = self.values[:, j] if self.rows is None else self.values[self.rows, j]
        return column.astype(np.float64, copy=False)

    @property
    def has_values_only(self) -> bool:
        """Whether no column has levels, which may be missing values where a schema has numbers."""
        types = self.types
        return types is unnamed_numbers(len(types)) or all(column.levels is None for column in types)

    @property
    def names(self) -> list[str]:
        """Names of the columns."""
        return [column.name for column in self.types]

    def take(self, rows: NDArray[np.int64]) -> Columns:
        """Return some rows, in this order."""
        return replace(self, rows=rows if self.rows is None else self.rows[rows])


def read_columns(X: Any, what: str = "X", ignored: Collection[int] = ()) -> Columns:
    """Read a pandas or polars frame, or an array-like of shape (rows, columns); ``what`` is its name in messages.

    ``ignored`` columns are zeros, whatever their values.
    """
    if is_frame(X):
        columns = _read_frame(X, what, ignored)
    else:
        values = _as_array(X, what)
        if values.dtype.kind in "biuf":
            cells = values if values.dtype in _FLOATS else check_array(values, dtype=_FLOATS, ensure_all_finite=False)
            columns = _without(Columns(cells, unnamed_numbers(cells.shape[1])), ignored)
        else:
            names = [f"x{j}" for j in range(values.shape[1])]
            dtype = object if values.dtype.kind in "OUS" else None  # unchanged: pandas would check and copy texts
            columns = _read_series(
                [pd.Series(values[:, j], dtype=dtype) for j in range(len(names))], names, what, ignored
            )
    check_shape(columns.values.shape, what)
    if sum_of_squares(columns.values) < LARGEST:
        return replace(columns, complete=True)
    check_range(columns.values, columns.names, what)
    return columns


def _without(columns: Columns, ignored: Collection[int]) -> Columns:
    """Replace columns of numbers with zeros."""
    if not ignored:
        return columns
    values = columns.values.copy()
    values[:, [j for j in ignored if j < values.shape[1]]] = 0
    return replace(columns, values=values)


@lru_cache(maxsize=64)
def unnamed_numbers(width: int) -> tuple[ColumnType, ...]:
    """Return the types of the columns of an array of numbers."""
    return tuple(ColumnType(f"x{j}") for j in range(width))


def is_frame(X: Any) -> bool:
    """Return whether this is a frame of pandas, polars or similar: named columns that can be selected by name."""
    return hasattr(X, "columns") and hasattr(X, "__getitem__") and len(getattr(X, "shape", ())) == 2


def _as_array(X: Any, what: str) -> NDArray[Any]:
    """Convert an array-like to a two-dimensional array of numbers or objects, or raise as scikit-learn does."""
    if issparse(X):
        check_array(X)  # raises, and explains how to make it dense
    try:
        values = np.asarray(X)
    except ValueError as error:
        raise ValueError(f"{what} is not a table: its rows have different lengths or contain arrays") from error
    if values.dtype.kind in "OUSmM" and values.ndim == 2 and values.size:
        if values.dtype.kind in "US" and not isinstance(X, np.ndarray):
            values = np.asarray(X, dtype=object)  # a list of lists: numbers stay numbers
        return values
    checked: NDArray[Any] = check_array(values, dtype=None, ensure_all_finite=False, input_name=what)
    return checked


def _read_frame(X: Any, what: str, ignored: Collection[int]) -> Columns:
    names = [str(name) for name in X.columns]
    check_names(names, what)
    if isinstance(X, pd.DataFrame):
        dtypes = list(X.dtypes)
        if all(isinstance(dtype, np.dtype) and dtype.kind in "biuf" for dtype in dtypes):
            dtype = np.float32 if all(dtype == np.float32 for dtype in dtypes) else np.float64
            return _without(Columns(X.to_numpy(dtype), tuple(map(ColumnType, names))), ignored)
        return _read_series([X.iloc[:, j] for j in range(len(names))], names, what, ignored)
    columns = [X[name] for name in X.columns]
    arrays = [column.to_numpy() if hasattr(column, "to_numpy") else np.asarray(column) for column in columns]
    for array, name in zip(arrays, names, strict=True):
        if array.ndim != 1:
            raise ValueError(f"{what} has lists in column {name!r}: expand them into separate columns, or drop it")
    return _read_series([pd.Series(array) for array in arrays], names, what, ignored)


def check_names(names: Sequence[str], what: str) -> None:
    """Raise for names that are duplicated or not valid Unicode."""
    for name, count in Counter(names).items():
        if count > 1:
            raise ValueError(
                f"{what} has {count} columns named {name!r}: rename them so that each column has its own name"
            )
    check_unicode(names, f"the column names of {what}")


def check_unicode(texts: Iterable[str], where: str) -> None:
    """Raise for text that cannot be encoded in a file: a lone surrogate."""
    for text in texts:
        if not text.isascii() and any("\ud800" <= letter <= "\udfff" for letter in text):
            shown = repr(text) if len(text) <= 40 else repr(text[:37]) + "..."
            raise ValueError(f"{where} has {shown}, which is not valid Unicode text (a lone surrogate): replace it")


def _read_series(columns: list[pd.Series], names: list[str], what: str, ignored: Collection[int]) -> Columns:
    cells, types = np.zeros((len(columns[0]) if columns else 0, len(columns))), list(map(ColumnType, names))
    for j, column in enumerate(columns):
        if j not in ignored:
            cells[:, j], types[j] = _read_one(column, names[j], what)
    return Columns(cells, tuple(types))


def _read_one(column: pd.Series, name: str, what: str) -> tuple[NDArray[np.float64], ColumnType]:
    """Read one column by its dtype, and objects by their values."""
    dtype = column.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        return _read_categories(column, name, what)
    if pd.api.types.is_complex_dtype(dtype):
        raise ValueError(f"Complex data not supported: {what} has complex numbers in column {name!r}")
    if pd.api.types.is_numeric_dtype(dtype):
        return column.to_numpy(np.float64, na_value=np.nan), ColumnType(name)
    if pd.api.types.is_datetime64_any_dtype(dtype) or pd.api.types.is_timedelta64_dtype(dtype):
        return _days(column), ColumnType(name, "dates" if dtype.kind == "M" else "durations")
    if not (pd.api.types.is_object_dtype(dtype) or isinstance(dtype, pd.StringDtype) or _is_text(column)):
        raise ValueError(
            f"{what} has column {name!r} of dtype {dtype}, which is not supported: "
            "convert it to numbers, dates or text, or drop it"
        )
    holds = pd.api.types.infer_dtype(column[column.notna()])  # NaT among numbers is a missing value
    if holds == "string":
        return _read_texts(column, name, what)
    if holds in ("integer", "floating", "mixed-integer-float", "decimal", "boolean"):
        cells = [np.nan if missing else as_float(v) for v, missing in zip(column, column.isna(), strict=True)]
        return np.array(cells, np.float64), ColumnType(name)
    if holds in ("date", "datetime", "datetime64"):
        return _days(pd.to_datetime(column, utc=True)), ColumnType(name, "dates")
    if holds in ("timedelta", "timedelta64"):
        return _days(pd.to_timedelta(column)), ColumnType(name, "durations")
    if holds == "empty":
        return np.full(len(column), np.nan), ColumnType(name, "nothing")
    is_text = np.array([isinstance(cell, str) for cell in column])
    marks = set(column[is_text])
    if not marks or any(text.strip() not in MISSING_MARKS for text in marks):
        reject_objects(column, name, what)
    values, column_type = _read_one(column.mask(is_text), name, what)
    return values, replace(column_type, marks=tuple(sorted(marks)))


def _read_texts(column: pd.Series, name: str, what: str) -> tuple[NDArray[np.float64], ColumnType]:
    """Read texts as levels, and missing-value texts as missing."""
    codes, texts = pd.factorize(column.to_numpy(dtype=object, na_value=None))
    levels = [str(text) for text in texts]
    check_unicode(levels, f"column {name!r} of {what}")
    is_missing = np.array([stands_for_missing(level) for level in levels], bool)
    if not is_missing.any():
        return _in_order(codes, levels, ColumnType(name, "text"))
    position = np.append(np.where(is_missing, -1, np.cumsum(~is_missing) - 1), -1)
    marks = tuple(sorted(level for level in levels if stands_for_missing(level)))
    levels = [level for level in levels if not stands_for_missing(level)]
    if not levels:
        return np.full(len(column), np.nan), ColumnType(name, "nothing", marks=marks)
    return _in_order(position[codes], levels, ColumnType(name, "text", marks=marks))


def _is_text(column: pd.Series) -> bool:
    return bool(pd.api.types.infer_dtype(column, skipna=True) == "string")


def as_float(value: Any) -> float:
    """Convert a number to float; integers beyond float64 become infinite."""
    try:
        return float(value)
    except OverflowError:
        return np.inf if value > 0 else -np.inf


def _days(column: pd.Series) -> NDArray[np.float64]:
    """Convert dates to days since 1970, and durations to days."""
    if isinstance(column.dtype, pd.DatetimeTZDtype):
        column = column.dt.tz_convert("UTC").dt.tz_localize(None)
    values = column.to_numpy()
    if values.dtype.kind not in "mM":  # Arrow dates, which have no time
        values = pd.to_datetime(column.astype(object)).to_numpy()
    if values.dtype.kind == "M":
        values = values - np.datetime64(0, "D")
    return np.asarray(values / _DAY, np.float64)


def _in_order(
    codes: NDArray[np.int64], levels: list[Any], column_type: ColumnType
) -> tuple[NDArray[np.float64], ColumnType]:
    """Sort the levels, to make the result independent of their order in the table."""
    order = sorted(range(len(levels)), key=lambda i: levels[i])
    rank = np.empty(len(levels) + 1)
    rank[order] = np.arange(len(levels))
    rank[-1] = np.nan  # index -1 is missing
    return rank[codes], replace(column_type, levels=tuple(levels[i] for i in order))


def _read_categories(column: pd.Series, name: str, what: str) -> tuple[NDArray[np.float64], ColumnType]:
    """Read a pandas categorical: its categories are the levels, and numeric categories stay numbers."""
    categories, codes = column.cat.categories, np.asarray(column.cat.codes, np.int64)
    if len(categories) == 0:
        return np.full(len(column), np.nan), ColumnType(name, "nothing")
    holds = pd.api.types.infer_dtype(categories)
    levels: list[Any] = list(categories)
    if holds in ("integer", "floating", "mixed-integer-float", "boolean"):
        levels, column_type = [float(level) for level in levels], ColumnType(name, declared=True)
    elif holds in ("string", "datetime64", "datetime", "date", "period", "interval"):
        levels, column_type = [str(level) for level in levels], ColumnType(name, "text", declared=True)
        check_unicode(levels, f"column {name!r} of {what}")
    else:
        reject_objects(pd.Series(categories, dtype=object), name, what)
    if column.cat.ordered:
        cells = np.where(codes < 0, np.nan, codes).astype(np.float64)
        return cells, replace(column_type, levels=tuple(levels), ordered=True)
    return _in_order(codes, levels, column_type)


LARGEST = float(np.finfo(np.float32).max)


def check_range(cells: NDArray[np.float64] | NDArray[np.float32], names: Sequence[str], what: str) -> None:
    """Raise for infinity and values beyond float32, in cells of shape (rows, columns) that may contain NaN."""
    if not cells.size or not max(np.fmax.reduce(cells, axis=None), -np.fmin.reduce(cells, axis=None)) > LARGEST:
        return
    row, column = np.argwhere(np.abs(cells) > LARGEST)[0]
    value = cells[row, column]
    if np.isinf(value):
        raise ValueError(
            f"{what} contains infinity: {value:g} in row {row} of column {names[column]!r}; replace it or drop the row"
        )
    raise ValueError(
        f"{what} has {value:g} in row {row} of column {names[column]!r}, beyond the range of float32 (3.4e38), which "
        "networks use: rescale the column or take its logarithm"
    )


# Longer products start other BLAS threads, which on a busy machine takes longer than the product itself.
_WITHOUT_THREADS = 8192


def sum_of_squares(cells: NDArray[np.float64] | NDArray[np.float32]) -> float:
    """Return the sum of squares: NaN if any cell is NaN, infinite or huge if any cell is. A quick check of cells."""
    in_one_piece = cells.flags.c_contiguous or cells.flags.f_contiguous
    step = len(cells) if in_one_piece else 4096  # pieces are copied, so limit their size
    total = 0.0
    with np.errstate(over="ignore", invalid="ignore"):
        for start in range(0, len(cells), max(step, 1)):
            flat = cells[start : start + step].ravel(order="K")
            for first in range(0, len(flat), _WITHOUT_THREADS):
                part = flat[first : first + _WITHOUT_THREADS]
                total += float(part.dot(part))
    return total


_SORTS: dict[Any, str] = {
    str: "text",
    bool | np.bool_: "booleans",
    complex | np.complexfloating: "complex",
    Number: "numbers",
    datetime.date | datetime.timedelta | np.datetime64 | np.timedelta64: "dates",
}


def reject_objects(column: pd.Series, name: str, what: str) -> NoReturn:
    """Raise for a column of objects, and name values of incompatible types."""
    first: dict[str, str] = {}
    for row, value in enumerate(column):
        sort = next((sort for types, sort in _SORTS.items() if isinstance(value, types)), type(value).__name__)
        if sort in first or (pd.api.types.is_scalar(value) and pd.isna(value)):
            continue
        shown = repr(value) if len(repr(value)) <= 40 else repr(value)[:37] + "..."
        if sort not in ("text", "booleans", "numbers", "dates"):
            raise TypeError(
                f"{what} has {shown} of type {sort} in row {row} of column {name!r}: an argument must be a "
                "string or a number (or a date); convert or drop the column"
            )
        first[sort] = f"{sort} ({shown} in row {row})"
    raise ValueError(
        f"{what} has column {name!r}, which mixes {' and '.join(first.values())}: convert it to one type, for example "
        "with pd.to_numeric or .astype(str)"
    )


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
    """Format names with quotes; beyond the first few, only their number."""
    shown = ", ".join(repr(name) for name in names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more columns"
