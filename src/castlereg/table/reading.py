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

A column of text is a column of dates if one reading fits all its texts. Times with an offset are converted to UTC;
others are used unchanged.

============  ==============================================================================
reading       texts, each with or without a time of day, and that with Z, an offset or AM, PM
============  ==============================================================================
year first    ``2024-01-31``, ``2024/01/31``, ``2024-01``, ``2024-01-31T10:20:30.5Z``
day first     ``31.01.2024``, ``31/01/2024``, ``31-01-2024``
month first   ``01/31/2024``, ``01-31-2024``
month name    ``Jan 31, 2024``, ``31 January 2024``, ``31-Jan-2024``
============  ==============================================================================
"""

from __future__ import annotations

import datetime
import re
import tempfile
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import takewhile
from numbers import Number
from typing import Any, Literal, NoReturn

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.utils.validation import check_array

Holds = Literal["numbers", "text", "dates", "durations", "nothing"]
Level = str | float
Reading = Literal["", "year first", "day first", "month first", "month name"]  # "" for dates that were not text

_DAY = np.timedelta64(1, "D")
_FLOATS = (np.float64, np.float32)  # single precision needs half the memory, and double represents it exactly


# Missing values in every column of text: those that pandas recognizes in files, and "?" of the UCI repository.
ALWAYS_MISSING = (
    *("", "?", "NA", "N/A", "n/a", "#N/A", "#NA", "#N/A N/A", "<NA>", "NaN", "nan", "-NaN", "-nan"),
    *("NULL", "null", "None", "1.#IND", "-1.#IND", "1.#QNAN", "-1.#QNAN"),
)
# The others may be classes or levels, such as "+" and "-", so they are missing values only among numbers and dates.
MISSING_MARKS = frozenset([*ALWAYS_MISSING, "-", "--", ".", "na", "Null", "none", "missing", "NaT"])

FEW = 20  # up to this many different texts may always be levels
_MOSTLY = 0.8  # from this share of numbers, or of dates, other texts are exceptions
_LONGEST = 60  # characters of a date, or of a number with marks
_BOOLEANS = {"True": 1.0, "TRUE": 1.0, "true": 1.0, "False": 0.0, "FALSE": 0.0, "false": 0.0}
_CODE = re.compile(r"[+-]?0\d+")  # only codes have leading zeros


@dataclass(frozen=True)
class ColumnType:
    """The type of a column: its values or levels."""

    name: str
    holds: Holds = "numbers"  # "nothing" if all values are missing
    levels: tuple[Level, ...] | None = None  # to which cells are indices; None if cells are values
    ordered: bool = False  # whether the levels have a meaningful order
    declared: bool = False  # whether the dtype itself is categorical
    marks: tuple[str, ...] = ()  # texts that were read as missing values
    reading: Reading = ""  # of dates that were text


@dataclass(frozen=True)
class Columns:
    """A table as numbers: values or indices into a column's levels, NaN for missing values. Arrays are not copied."""

    values: NDArray[np.float64] | NDArray[np.float32]  # (rows, columns)
    types: tuple[ColumnType, ...]
    rows: NDArray[np.int64] | None = None  # rows to use, in this order, without copying the table; all by default
    complete: bool = False  # whether there are only values, none of them missing or beyond float32

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
    def on_disk(self) -> bool:
        """Whether the values are a memory-mapped file."""
        return isinstance(self.values, np.memmap)

    @property
    def names(self) -> list[str]:
        """Names of the columns."""
        return [column.name for column in self.types]

    def take(self, rows: NDArray[np.int64]) -> Columns:
        """Return some rows, in this order."""
        return replace(self, rows=rows if self.rows is None else self.rows[rows])


def on_disk(shape: tuple[int, int], dtype: Any, *, by_column: bool = False) -> NDArray[Any]:
    """Return an array of zeros, shape (rows, columns), in a temporary file that is deleted with the process."""
    with tempfile.TemporaryFile(prefix="castlereg-", suffix=".rows") as file:
        return np.memmap(file, dtype, "w+", shape=shape, order="F" if by_column else "C")


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
            dtype = object if values.dtype.kind in "OUS" else None  # unchanged: pandas would check and copy texts
            series = [pd.Series(column, dtype=dtype) for column in values.T]
            columns = _read_series(series, [f"x{j}" for j in range(len(series))], what, ignored)
    n_rows, width = columns.values.shape
    if not (n_rows and width):
        missing = "sample(s)" if width else "feature(s)"
        raise ValueError(
            f"Found array with 0 {missing} (shape=({n_rows}, {width})) while a minimum of 1 is required: {what} has no "
            f"{'rows' if width else 'columns'}"
        )
    if sum_of_squares(columns.values) < _LARGEST:
        return replace(columns, complete=all(column.levels is None for column in columns.types))
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
    arrays = [X[name].to_numpy() if hasattr(X[name], "to_numpy") else np.asarray(X[name]) for name in X.columns]
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
            raise ValueError(
                f"{where} has {shown([text])}, which is not valid Unicode text (a lone surrogate): replace it"
            )


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
    holds = pd.api.types.infer_dtype(column[column.notna()])  # NaT among numbers is a missing value
    if not (pd.api.types.is_object_dtype(dtype) or isinstance(dtype, pd.StringDtype) or holds == "string"):
        raise ValueError(
            f"{what} has column {name!r} of dtype {dtype}, which is not supported: "
            "convert it to numbers, dates or text, or drop it"
        )
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
        _reject_objects(column, name, what)
    values, column_type = _read_one(column.mask(is_text), name, what)
    return values, replace(column_type, marks=tuple(sorted(marks)))


def _read_texts(column: pd.Series, name: str, what: str) -> tuple[NDArray[np.float64], ColumnType]:
    """Read texts as levels, and missing-value texts as missing."""
    codes, texts = pd.factorize(column.to_numpy(dtype=object, na_value=None))
    levels = [str(text) for text in texts]
    check_unicode(levels, f"column {name!r} of {what}")
    marks = tuple(sorted(level for level in levels if level.strip() in ALWAYS_MISSING))
    if len(marks) == len(levels):
        return np.full(len(column), np.nan), ColumnType(name, "nothing", marks=marks)
    return _in_order(codes, levels, ColumnType(name, "text", marks=marks))


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
    """Sort the levels without the marks, to make the result independent of their order in the table."""
    ordered = tuple(sorted(set(levels).difference(column_type.marks)))
    rank = {level: i for i, level in enumerate(ordered)}
    ranks = np.array([*(rank.get(level, np.nan) for level in levels), np.nan])  # index -1 is missing
    return ranks[codes], replace(column_type, levels=ordered)


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
        _reject_objects(pd.Series(categories, dtype=object), name, what)
    if column.cat.ordered:
        return np.where(codes < 0, np.nan, codes), replace(column_type, levels=tuple(levels), ordered=True)
    return _in_order(codes, levels, column_type)


def values_at(indices: NDArray[np.float64], values: Any) -> NDArray[np.float64]:
    """Return the value at each index; NaN stays NaN."""
    return np.append(values, np.nan)[np.where(np.isnan(indices), -1, indices).astype(np.int64)]


_LARGEST = float(np.finfo(np.float32).max)


def check_range(cells: NDArray[np.float64] | NDArray[np.float32], names: Sequence[str], what: str) -> None:
    """Raise for infinity and values beyond float32, in cells of shape (rows, columns) that may contain NaN."""
    if not cells.size or not max(np.fmax.reduce(cells, axis=None), -np.fmin.reduce(cells, axis=None)) > _LARGEST:
        return
    row, column = np.argwhere(np.abs(cells) > _LARGEST)[0]
    value = cells[row, column]
    where = f"{value:g} in row {row} of column {names[column]!r}"
    if np.isinf(value):
        raise ValueError(f"{what} contains infinity: {where}; replace it or drop the row")
    raise ValueError(
        f"{what} has {where}, beyond the range of float32 (3.4e38), which networks use: rescale the column or take its "
        "logarithm"
    )


_WITHOUT_THREADS = 8192  # longer products start other BLAS threads, which may take longer than the product itself


def sum_of_squares(cells: NDArray[np.float64] | NDArray[np.float32]) -> float:
    """Return the sum of squares: NaN if any cell is NaN, infinite or huge if any cell is. A quick check of cells."""
    step = max(len(cells), 1) if cells.flags.forc else 4096  # pieces are copied, so limit their size
    total = 0.0
    with np.errstate(over="ignore", invalid="ignore"):
        for start in range(0, len(cells), step):
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


def _reject_objects(column: pd.Series, name: str, what: str) -> NoReturn:
    """Raise for a column of objects, and name values of incompatible types."""
    first: dict[str, str] = {}
    for row, value in enumerate(column):
        sort = next((sort for types, sort in _SORTS.items() if isinstance(value, types)), type(value).__name__)
        if sort in first or (pd.api.types.is_scalar(value) and pd.isna(value)):
            continue
        cell = repr(value) if len(repr(value)) <= 40 else repr(value)[:37] + "..."
        if sort not in ("text", "booleans", "numbers", "dates"):
            raise TypeError(
                f"{what} has {cell} of type {sort} in row {row} of column {name!r}: an argument must be a "
                "string or a number (or a date); convert or drop the column"
            )
        first[sort] = f"{sort} ({cell} in row {row})"
    raise ValueError(
        f"{what} has column {name!r}, which mixes {' and '.join(first.values())}: convert it to one type, for example "
        "with pd.to_numeric or .astype(str)"
    )


def first_few(items: Sequence[str], separator: str = ", ") -> str:
    """Join the first five descriptions of columns; beyond them, only their number."""
    return separator.join(items[:5]) + (f" and {len(items) - 5} more columns" if len(items) > 5 else "")


# --- texts ---------------------------------------------------------------------------------------------


def are_codes(texts: Sequence[str]) -> bool:
    """Return whether digits are codes, such as postal codes: numbers do not start with 0."""
    return any(_CODE.fullmatch(text.strip()) for text in texts)


def shown(texts: Sequence[str], most: int = 3) -> str:
    """Format some texts with quotes, and shorten long ones."""
    return ", ".join(repr(text if len(text) <= 40 else text[:37] + "...") for text in texts[:most])


# --- numbers -------------------------------------------------------------------------------------------

GROUPS = {".": r"[, \u00a0\u202f'\u2019]", ",": r"[. \u00a0\u202f'\u2019]"}
_NUMBERS = {
    mark: re.compile(
        rf"[+-]?(?:(?:\d+(?:[{mark}]\d*)?|[{mark}]\d+)(?:[eE][+-]?\d+)?"
        rf"|[1-9]\d{{0,2}}({groups})\d{{3}}(?:\1\d{{3}})*(?:[{mark}]\d*)?)"
    )
    for mark, groups in GROUPS.items()
}
_MARKED = re.compile(
    r"[-+\u2212]?\s*(?P<currency>[$€£¥₹]|(?:USD|EUR|GBP|CHF|JPY)\s)?\s*(?P<number>[-+]?[.,]?\d.*?)\s*(?P<unit>"
    r"%|‰|[$€£¥₹]|°[CF]?|(?:mg|kg|g|lbs?|oz|km|cm|mm|m|mi|ft|ml|l|kWh?|Wh?|V|Hz|bar|ms|min|h|s|yrs?|years?|days?)"
    r"(?:/[a-z]{1,3})?[²³]?|(?<=\s)[^\W\d_]{1,8}(?:/[^\W\d_]{1,4})?[²³]?)?"
)


def as_numbers(texts: Sequence[str]) -> NDArray[np.float64] | None:
    """Read texts as plain numbers, or all as booleans, and missing-value marks as NaN; None if this fails."""
    stripped = [text.strip() for text in texts]
    for read in (_plain_number, _BOOLEANS.__getitem__):
        try:
            return np.array([np.nan if text in MISSING_MARKS else read(text) for text in stripped], np.float64)
        except (ValueError, KeyError):
            continue
    return None


def _plain_number(text: str) -> float:
    if "_" in text:  # which Python reads
        raise ValueError(text)
    return float(text)


def is_number(text: str, decimal: str) -> bool:
    """Return whether a text is a number with this decimal mark, with or without thousands separators."""
    return _NUMBERS[decimal].fullmatch(text.strip()) is not None


def what_is_wrong(texts: Sequence[str]) -> str | None:
    """Return why texts that look like numbers or dates cannot be read as such; None if they do not look like them."""
    if len(texts) <= FEW or are_codes(texts):
        return None
    texts = [text for text in texts if text.strip() not in MISSING_MARKS]
    plain = {text for text in texts if as_numbers([text]) is not None}
    matches = {t: _MARKED.fullmatch(t.strip()) if len(t) < _LONGEST else None for t in texts if t not in plain}
    marked = {t: match for t, match in matches.items() if match and any(is_number(match["number"], m) for m in ".,")}
    units = {match["unit"] or match["currency"] for match in marked.values()}
    if len(units) <= 3 and FEW < len(plain) + len(marked) >= _MOSTLY * len(texts):
        if marked and 2 * len(marked) >= len(matches):
            has_commas = any(not is_number(match["number"], ".") for match in marked.values())
            marks = "decimal commas" if has_commas else "thousands separators or units"
            cure = "read them with decimal=',' (--decimal ,)"
            cure = cure if has_commas else "remove these marks, then convert with pd.to_numeric"
            return f"numbers with {marks}, such as {shown(list(marked))}: {cure}"
        odd = [text for text in texts if text not in plain]
        return f"numbers except for {shown(odd)}: replace these with numbers or missing values" if odd else None
    if sum(_SHORT_YEAR.fullmatch(text.strip()) is not None for text in texts) >= _MOSTLY * len(texts):
        return f"dates with two-digit years, such as {shown(texts)}: write them all as 2024-01-31"
    if sum(map(_is_date, texts[:FEW])) < _MOSTLY * FEW / 2:  # most texts are not dates
        return None
    odd = [text for text in texts if not _is_date(text)]
    if FEW < len(texts) - len(odd) >= _MOSTLY * len(texts):
        reason = f"dates except for {shown(odd)}" if odd else f"dates in several formats, such as {shown(texts)}"
        return f"{reason}: write them all as 2024-01-31"
    return None


# --- dates ---------------------------------------------------------------------------------------------

Season = Literal["year", "week", "day"]

PERIODS: dict[Season, float] = {"year": 365.2425, "week": 7.0, "day": 1.0}
"""Length of each season in days."""

_SHORTEST: dict[Season, float] = {"year": 700.0, "week": 14.0, "day": 2.0}  # shortest spans that show a season, in days
_PLAUSIBLE = range(1800, 2201)  # years of months without a day; other numbers may be codes
_EPOCH = datetime.date(1970, 1, 1).toordinal()
_MONTH_NAMES = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
_MONTHS = {form: m for m, name in enumerate(_MONTH_NAMES, 1) for form in (name, name[:3])} | {"sept": 9}
_SHORT_YEAR = re.compile(r"\d{1,2}([./-])\d{1,2}\1\d{2}(?: \d{1,2}:\d\d.*)?")
_TIME = (
    r"(?:[T ]\s*(?P<hour>\d{1,2}):(?P<minute>\d\d)(?::(?P<second>\d\d(?:[.,]\d+)?))?"
    r"\s*(?P<half>[AaPp]\.?[Mm]\.?)?\s*(?P<zone>Z|UTC|GMT|[+-]\d\d(?::?\d\d)?)?)?"
)
_FORMS: dict[Reading, re.Pattern[str]] = {
    "year first": re.compile(
        rf"(?P<year>\d{{4}})(?P<mark>[-/.])(?P<month>\d{{1,2}})(?:(?P=mark)(?P<day>\d{{1,2}}){_TIME})?"
    ),
    "day first": re.compile(rf"(?P<day>\d{{1,2}})(?P<mark>[./-])(?P<month>\d{{1,2}})(?P=mark)(?P<year>\d{{4}}){_TIME}"),
    "month first": re.compile(  # dots occur only in day-first dates
        rf"(?P<month>\d{{1,2}})(?P<mark>[/-])(?P<day>\d{{1,2}})(?P=mark)(?P<year>\d{{4}}){_TIME}"
    ),
    "month name": re.compile(
        rf"(?:(?P<day>\d{{1,2}})(?:st|nd|rd|th)?[ -]+)?(?P<month>[A-Za-z]{{3,9}})\.?"
        rf"(?:[ -]+(?P<later>\d{{1,2}})(?:st|nd|rd|th)?)?,?[ -]+(?P<year>\d{{4}}){_TIME}"
    ),
}


def parsed(text: str, reading: Reading) -> float | None:
    """Read a text as days since 1970; None if it is not a date of this form."""
    match = _FORMS[reading].fullmatch(text.strip()) if len(text) < _LONGEST else None
    if match is None:
        return None
    fields = match.groupdict()
    year, day = int(fields["year"]), fields["day"] or fields.get("later")
    if reading == "month name":
        month = _MONTHS.get(fields["month"].lower(), 0)
        if day is None or (fields["day"] and fields["later"]):
            return None
    else:
        month = int(fields["month"])
        if day is None and year not in _PLAUSIBLE:
            return None
    hour, minute = int(fields["hour"] or 0), int(fields["minute"] or 0)
    second, zone, offset = float((fields["second"] or "0").replace(",", ".")), fields["zone"] or "", 0
    if fields["half"] is not None:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + (12 if fields["half"][0] in "pP" else 0)
    try:
        days = datetime.datetime(year, month, int(day or 1), hour, minute, int(second)).toordinal() - _EPOCH
    except ValueError:
        return None
    if zone[:1] in ("+", "-"):
        digits = zone[1:].replace(":", "")
        offset = (60 * int(digits[:2]) + int(digits[2:] or 0)) * (-1 if zone[0] == "-" else 1)
    return days + (3600 * hour + 60 * (minute - offset) + second) / 86400


def as_dates(texts: Sequence[str], missing: frozenset[str] = MISSING_MARKS) -> dict[Reading, NDArray[np.float64]]:
    """Read texts as days since 1970 with every reading that fits them all; ``missing`` texts are NaN."""
    present = [text for text in texts if text.strip() not in missing]
    fitting: dict[Reading, NDArray[np.float64]] = {}
    for reading in _FORMS:
        days = list(takewhile(lambda day: day is not None, (parsed(text, reading) for text in present)))
        if present and len(days) == len(present):
            fitting[reading] = np.full(len(texts), np.nan)
            fitting[reading][[text.strip() not in missing for text in texts]] = np.array(days, np.float64)
    return fitting


def _is_date(text: str) -> bool:
    return any(parsed(text, reading) is not None for reading in _FORMS)


def only_reading(
    dates: Mapping[Reading, NDArray[np.float64]], texts: Sequence[str], where: str
) -> tuple[Reading, NDArray[np.float64]]:
    """Return the reading of dates; raise if two readings give different dates."""
    reading, days = next(iter(dates.items()))
    for other in dates.values():
        differs = ~((other == days) | np.isnan(days))
        if differs.any():
            raise ValueError(
                f"{where} that could be day/month or month/day, such as {texts[int(np.argmax(differs))]!r}: write them "
                "as 2024-01-31, or convert them with pd.to_datetime"
            )
    return reading, days


def seasons_of(days: NDArray[np.float64]) -> tuple[Season, ...]:
    """Return the seasons that vary and that the span of dates, days since 1970, is long enough to show."""
    whole = np.floor(days)
    first_of_month = whole.astype("datetime64[D]").astype("datetime64[M]").astype("datetime64[D]")
    varies = {
        "year": True,
        "week": len(np.unique(whole % 7)) > 1 and not np.array_equal(first_of_month.astype(np.float64), whole),
        "day": len(np.unique(np.round((days - whole) * 86400) % 86400)) > 1,
    }
    span = days.max() - days.min()
    return tuple(season for season, shortest in _SHORTEST.items() if varies[season] and span >= shortest)
