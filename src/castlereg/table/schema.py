"""The kind of every column (numeric, binary, categorical or ordinal), and the coding of other tables by it.

The kind depends on the values of a column, not on its dtype: the same values as integers, floats, nullable integers or
text give the same kind.

===========  ==========================================================================================
kind         columns
===========  ==========================================================================================
binary       two different values of any type
categorical  text and pandas categories with three or more levels; columns in ``categorical_features``
ordinal      ordered pandas categories; integers with 3 to 10 different values
numeric      all others: numbers, dates, durations
unusable     identifiers and free text, which are left out
===========  ==========================================================================================

Ordinal numbers are used as numbers. Their kind is a hint that they may be codes without an order, which belong in
``categorical_features``. Text that contains plain numbers is read as numbers, and text that contains dates as dates,
even with missing-value marks such as ``-``. Text with numbers in other formats (decimal commas, units) raises. Text
with hardly any repeated values is left out. Beyond 100 levels, the rarest are joined.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from castlereg.layout import Kind, Node
from castlereg.notices import warn_user
from castlereg.options import check_choice
from castlereg.table.reading import (
    FEW,
    MISSING_MARKS,
    Columns,
    ColumnType,
    Holds,
    Level,
    Reading,
    Season,
    are_codes,
    as_dates,
    as_numbers,
    check_range,
    first_few,
    on_disk,
    only_reading,
    parsed,
    seasons_of,
    shown,
    values_at,
    what_is_wrong,
)

IN_ORDER = "in the order of its categories"  # note for levels with a meaningful order
_ColumnKind = Literal["numeric", "binary", "categorical", "ordinal", "unusable"]

_MOST_LEVELS = 100  # more levels need wide layers, with few rows to train each weight
MOST_TEXTS = 500_000  # different texts of a column on disk; others are read as OTHER
OTHER = "(other)"
SMALLEST_RANGE = 1e-100  # of values that vary: squares of smaller ranges underflow in float64
_MOST_ORDINAL_VALUES = 10
_ENOUGH_VALUES = _MOST_ORDINAL_VALUES + 2  # a column with more different numbers is numeric

# Names of columns whose integers, if all different, are identifiers; names of columns that may count time.
_IDENTIFIER = re.compile(
    r"(?i:(.*[_ .-])?(id|uuid|guid)|index|idx|row([_ ]?(number|num|no|id))?|unnamed: \d+)|.*[a-z]I[dD]"
)
_ANYTHING = re.compile(r"(?i:.*(time|date|year|month|week|day|hour|min|sec|step|period|epoch|age).*|[a-z]?\d*)")


@dataclass(frozen=True)
class ColumnSchema:
    """One column of a table that a model was trained on."""

    name: str
    kind: _ColumnKind
    holds: Holds
    levels: tuple[Level, ...] | None  # in order, if cells are levels; OTHER is last and represents joined levels
    missing: int  # number of missing values
    constant: bool  # whether it has one value, no value, or is not used
    note: str = ""  # other information for the user
    reading: Reading = ""  # of dates that were text
    seasons: tuple[Season, ...] = ()  # of dates, inputs of the network in addition to the value

    @property
    def is_coded(self) -> bool:
        """Whether cells are indices into the levels."""
        return self.levels is not None

    def node(self, clipped: bool = False) -> Node:
        """Return the column's node; ``clipped`` applies to numeric columns only."""
        kind: Kind = "numeric" if self.kind in ("ordinal", "unusable") else self.kind  # type: ignore[assignment]
        n_levels = len(self.levels or ()) if kind == "categorical" else 1
        missing = self.missing > 0 and self.holds != "nothing"
        clipped = clipped and self.kind == "numeric"
        return Node(kind, n_levels, missing=missing, clipped=clipped, extra=2 * len(self.seasons))


class _Decision(NamedTuple):
    """The schema of a column, and what to warn the user about."""

    schema: ColumnSchema
    marks: tuple[str, ...] = ()  # texts that were read as missing values
    was_text: bool = False  # whether its numbers were text


def infer_schema(columns: Columns, categorical: Sequence[bool], what: str = "X") -> tuple[ColumnSchema, ...]:
    """Decide the kind of every column by the rule of this module.

    Warnings name the columns that are left out, constant, stored as text or read with missing values. Columns marked
    as ``categorical`` have levels, and are never left out.
    """
    decided = [
        _decide(column, columns.column(j), is_categorical, what)
        for j, (column, is_categorical) in enumerate(zip(columns.types, categorical, strict=True))
    ]
    unusable = [f"{schema.name!r} ({schema.note})" for schema, *_ in decided if schema.kind == "unusable"]
    if unusable:
        warn_user(
            f"{what} has columns that carry no information about new rows and are left out: {'; '.join(unusable)}; to "
            "use a column, list it in categorical_features (--categorical)"
        )
    schema = tuple(decision.schema for decision in decided)
    text_columns = [decision for decision in decided if decision.was_text]
    if text_columns:
        names = first_few([repr(decision.schema.name) for decision in text_columns])
        marks = ", ".join(map(repr, sorted({mark for decision in text_columns for mark in decision.marks})))
        warn_user(
            f"{what} has numbers stored as text in {names}"
            + (f" (except for {marks}): read as numbers, with {marks} as missing" if marks else ": read as numbers")
            + "; if they are codes, list the columns in categorical_features (--categorical)"
        )
    missing = [f"{shown(d.marks)} in {d.schema.name!r}" for d in decided if d.marks and not d.was_text]
    if missing:
        warn_user(f"{what} has text that is read as missing values: {first_few(missing, '; ')}")
    constant = [repr(column.name) for column in schema if column.constant and column.kind != "unusable"]
    if constant:
        warn_user(f"constant columns have no edges and no influence: {first_few(constant)}")
    joined = [f"{column.name!r} ({column.note})" for column in schema if column.note.endswith(OTHER)]
    if joined:
        warn_user(
            f"{what} has columns with more than {_MOST_LEVELS} levels, of which the rarest are joined into one: "
            + ", ".join(joined)
        )
    return schema


def _left_out(column: ColumnType, missing: int, why: str) -> _Decision:
    return _Decision(ColumnSchema(column.name, "unusable", "nothing", None, missing, True, why))


def _decide(column: ColumnType, cells: NDArray[np.float64], categorical: bool, what: str) -> _Decision:
    """Decide the kind of a column, given its cells, shape (rows,)."""
    is_missing = np.isnan(cells)
    missing = int(np.count_nonzero(is_missing))
    present = cells[~is_missing] if missing else cells
    if column.levels is None and len(present) == 0:
        column = ColumnType(column.name, "nothing", marks=column.marks)
    values = _different(present) if column.levels is None else np.zeros(0)
    if column.levels is not None:
        counts = np.bincount(present.astype(np.int64), minlength=len(column.levels))
        levels = [level for level, count in zip(column.levels, counts, strict=True) if count]
        column, counts = replace(column, levels=tuple(levels)), counts[counts > 0]
    elif categorical and not is_constant(values):
        distinct, counts = np.unique(present, return_counts=True)
        column = replace(column, levels=tuple(distinct.tolist()))
    elif column.holds == "dates":
        return _Decision(_schema_of_dates(column, present, missing), column.marks)
    else:
        if not missing and (why := _why_identifier(column, present)):
            return _left_out(column, missing, why)
        return _Decision(_schema_of_numbers(column, values, missing), column.marks)
    if column.holds == "text" and not column.declared:
        if categorical:
            column, counts = _with_numbers(column, counts)
        else:
            if (decision := _decide_texts(column, counts, missing, what)) is not None:
                return decision
    return _decide_levels(column, counts, missing, categorical)


def _different(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the different values; or enough of them, and the extremes, to know that a column is numeric."""
    some = np.unique(values[:1000])  # enough for most columns
    if len(some) < _ENOUGH_VALUES < len(values):
        some = np.unique(values)
    if len(some) < _ENOUGH_VALUES:
        return some
    return np.unique([*some[:_ENOUGH_VALUES], values.min(), values.max()])


def _decide_texts(column: ColumnType, counts: NDArray[np.int64], missing: int, what: str) -> _Decision | None:
    """Read texts as numbers or dates; None if they are neither."""
    texts = [str(level) for level in column.levels or ()]
    marks = tuple(sorted({*column.marks, *(text for text in texts if text.strip() in MISSING_MARKS)}))
    numbers = None if are_codes(texts) else as_numbers(texts)
    if numbers is not None and not np.isnan(numbers).all():
        is_mark = np.isnan(numbers)
        values, missing = np.unique(numbers[~is_mark]), missing + int(counts[is_mark].sum())
        note, column = f"text of numbers and {', '.join(map(repr, marks))}" if marks else "", ColumnType(column.name)
        if not missing and len(values) == counts.sum() and (why := _why_identifier(column, values)):
            return _left_out(column, missing, why)
        return _Decision(_schema_of_numbers(column, values, missing, note), marks, was_text=True)
    dates = as_dates(texts)
    if dates:
        reading, days = only_reading(dates, texts, f"{what} has dates in column {column.name!r}")
        is_mark = np.isnan(days)
        missing += int(counts[is_mark].sum())
        column = ColumnType(column.name, "dates", reading=reading)
        return _Decision(_schema_of_dates(column, days[~is_mark], missing), marks)
    wrong = what_is_wrong(texts)
    if wrong is not None:
        raise ValueError(
            f"{what} has text in column {column.name!r} that looks like {wrong}, or list the column in "
            "categorical_features (--categorical) if its values are codes"
        )
    return None


def _decide_levels(column: ColumnType, counts: NDArray[np.int64], missing: int, categorical: bool) -> _Decision:
    """Decide the kind of a column of levels by their counts."""
    levels = column.levels or ()
    if len(levels) > MOST_TEXTS:  # the texts after them are not counted
        counts = np.where([level == OTHER for level in levels], 0, counts)
    schema, rows = _schema_of_levels(column, counts, missing), int(counts.sum())
    is_known = categorical or column.declared  # as categorical, by the user
    if schema.kind == "categorical" and len(levels) > FEW and 2 * len(levels) > rows and not is_known:
        texts = [str(level) for level in levels]
        is_prose = np.mean([len(text.split()) for text in texts[:100]]) > 3
        sort = "free text" if is_prose else "an identifier"
        why = f"{sort}: {len(levels)} different values in {rows} rows, such as {shown(texts, 1)}"
        return _left_out(column, missing, why)
    return _Decision(schema, column.marks)


def _with_numbers(column: ColumnType, counts: NDArray[np.int64]) -> tuple[ColumnType, NDArray[np.int64]]:
    """Convert levels that are plain numbers stored as text to numbers, as reading a file does."""
    texts = [str(level) for level in column.levels or ()]
    numbers = None if are_codes(texts) else as_numbers(texts)
    if numbers is None or np.isnan(numbers).any():
        return column, counts
    levels, index = np.unique(numbers, return_inverse=True)
    column = replace(column, holds="numbers", levels=tuple(levels.tolist()))
    return column, np.bincount(index, counts, len(levels)).astype(np.int64)


def _why_identifier(column: ColumnType, values: NDArray[np.float64]) -> str:
    """Return why a column of numbers without missing values is an identifier; empty if it is not."""
    if column.holds != "numbers" or len(values) <= _MOST_ORDINAL_VALUES:
        return ""
    counts_up = (
        values[0] in (0, 1)
        and all(  # most columns differ early
            np.array_equal(values[:n], values[0] + np.arange(n)) for n in (_ENOUGH_VALUES, len(values))
        )
    )
    if counts_up and not _ANYTHING.fullmatch(column.name):
        return "row numbers"
    is_named = _IDENTIFIER.fullmatch(column.name) is not None
    if is_named and np.array_equal(values, np.floor(values)) and len(np.unique(values)) == len(values):
        return "an identifier: whole numbers, all different"
    return ""


def _schema_of_numbers(column: ColumnType, values: NDArray[np.float64], missing: int, note: str = "") -> ColumnSchema:
    """Decide the kind of a column of numbers by its different values, or enough of them."""
    if is_constant(values):
        return _schema_of_one_value(column, values[:1].tolist(), None, missing)
    if len(values) == 2:
        return ColumnSchema(column.name, "binary", column.holds, None, missing, False, note)
    is_ordinal = len(values) <= _MOST_ORDINAL_VALUES and np.array_equal(values, np.floor(values))
    kind: _ColumnKind = "ordinal" if column.holds == "numbers" and is_ordinal else "numeric"
    return ColumnSchema(column.name, kind, column.holds, None, missing, False, note)


def _schema_of_dates(column: ColumnType, days: NDArray[np.float64], missing: int) -> ColumnSchema:
    """Return the schema of a column of dates, given those that are not missing."""
    schema = _schema_of_numbers(column, _different(days), missing, "dates")
    seasons = seasons_of(days) if schema.kind == "numeric" and not schema.constant else ()
    note = f"dates ({', '.join(seasons)})" if seasons else schema.note
    return replace(schema, reading=column.reading, seasons=seasons, note=note)


def _schema_of_levels(column: ColumnType, counts: NDArray[np.int64], missing: int) -> ColumnSchema:
    """Decide the kind of a column of levels by their counts."""
    levels = column.levels or ()
    if len(levels) <= 1:
        return _schema_of_one_value(column, levels, levels or None, missing)
    kind: _ColumnKind = "binary" if len(levels) == 2 else "ordinal" if column.ordered else "categorical"
    note = IN_ORDER if column.ordered else ""
    if kind == "categorical" and len(levels) > _MOST_LEVELS:
        note = f"{len(levels) - _MOST_LEVELS + 1} of {len(levels)} levels joined as {OTHER}"
        frequent = np.argsort(-counts, kind="stable")[: _MOST_LEVELS - 1]
        levels = (*(levels[i] for i in np.sort(frequent)), OTHER)
    return ColumnSchema(column.name, kind, column.holds, levels, missing, False, note)


def _schema_of_one_value(
    column: ColumnType, values: Sequence[Level], levels: tuple[Level, ...] | None, missing: int
) -> ColumnSchema:
    """Return the schema of a column with at most one value: constant, unless it also has missing values."""
    if not values:
        return ColumnSchema(column.name, "numeric", "nothing", levels, missing, True, "no values")
    (value,) = values
    if isinstance(value, float) and column.holds == "dates":
        value = str(np.datetime64(round(value * 86400), "s")).removesuffix("T00:00:00")
    text = repr(value if isinstance(value, str) else f"{value:g}")
    note = f"{text} or missing" if missing else f"always {text}"
    return ColumnSchema(column.name, "numeric", column.holds, levels, missing, not missing, note)


def is_constant(values: NDArray[np.float64]) -> bool:
    """Return whether there are no values, a single one, or values that differ only by rounding."""
    if not len(values):
        return True
    lowest, highest = float(values.min()), float(values.max())
    return highest - lowest <= max(SMALLEST_RANGE, 4 * sys.float_info.epsilon * max(abs(lowest), abs(highest)))


def center_and_spread(values: NDArray[np.float64]) -> tuple[float, float]:
    """Return mean and standard deviation of values that are not missing; 1 if they differ only by rounding.

    Networks compute in float32: this keeps the precision that large offsets or units would cost.
    """
    if np.isnan(values).all():
        return 0.0, 1.0
    center, spread = float(np.nanmean(values)), float(np.nanstd(values))
    return center, spread if spread > 4 * np.finfo(np.float64).eps * abs(center) else 1.0


# --- coding of other tables ----------------------------------------------------------------------------


def coded_columns(columns: Columns, schema: Sequence[ColumnSchema], what: str = "X") -> Columns:
    """Code the cells of a table by the schema; a table without levels is not copied.

    Cells become numbers, or indices into the schema's levels with -1 for unknown levels. Missing values are NaN, and
    cells of unusable columns are 0.
    """
    pairs = []
    for j, (known, column) in enumerate(zip(schema, columns.types, strict=True)):
        if known.holds != column.holds and column.levels is None and np.isnan(columns.column(j)).all():
            column = ColumnType(column.name, "nothing")  # without values, it may be of any kind
        if known.holds != column.holds and {known.holds, column.holds} <= {"numbers", "dates", "durations"}:
            raise _another_kind(column, known, what)
        pairs.append((known, column))
    if all(known.levels is None and column.levels is None and known.kind != "unusable" for known, column in pairs):
        return columns
    shape = len(columns), len(schema)
    cells = on_disk(shape, np.float64, by_column=True) if columns.on_disk else np.zeros(shape)
    unknown: list[str] = []
    for j, (known, column) in enumerate(pairs):
        if known.kind == "unusable":
            continue
        values = columns.column(j)
        if known.is_coded:
            cells[:, j] = _known_levels(values, column, known, what)
            new = values[cells[:, j] == -1]
            if len(new):
                level = float(new[0]) if column.levels is None else column.levels[int(new[0])]
                unknown.append(f"{level!r} in column {known.name!r}")
        else:
            cells[:, j] = values if column.levels is None else values_of_levels(values, column, known, what)
    if unknown:
        warn_user(
            f"{what} has levels that are not in the training data: {first_few(unknown)}; each is treated as an unknown "
            "level"
        )
    return Columns(cells, tuple(ColumnType(known.name, known.holds, known.levels) for known in schema))


def _known_levels(
    cells: NDArray[np.float64], column: ColumnType, schema: ColumnSchema, what: str
) -> NDArray[np.float64]:
    """Return the index of each cell's level in the schema, or -1 for an unknown level."""
    if column.holds == "nothing":
        return cells
    index = {level: float(i) for i, level in enumerate(schema.levels or ())}
    other = index.get(OTHER, -1.0)
    levels: Sequence[Level] = column.levels or ()
    if column.levels is None:
        codes, levels = pd.factorize(cells)
        cells = np.where(codes < 0, np.nan, codes)
    if column.holds == "text" and schema.holds == "numbers":
        numbers = [as_numbers([str(level)]) for level in levels]  # NaN for missing values, None for other texts
        levels = [str(x) if n is None else float(n[0]) for x, n in zip(levels, numbers, strict=True)]
    elif column.holds != schema.holds:
        raise _another_kind(column, schema, what)
    return values_at(cells, [np.nan if level != level else index.get(level, other) for level in levels])


def values_of_levels(
    cells: NDArray[np.float64], column: ColumnType, schema: ColumnSchema, what: str
) -> NDArray[np.float64]:
    """Convert levels (texts or categories of numbers) to values where the schema has numbers or dates."""
    if schema.holds == "nothing":
        return np.full(len(cells), np.nan)
    levels = column.levels or ()
    present = np.unique(cells[~np.isnan(cells)]).astype(np.int64)
    texts = [str(levels[i]) for i in present]
    read = as_numbers(texts) if schema.holds == "numbers" else None
    if schema.holds == "dates" and column.holds == "text":
        read = _days(texts, schema, what)
    elif read is None:
        raise _another_kind(column, schema, what)
    level_values = np.full(len(levels), np.nan)
    level_values[present] = read
    values = values_at(cells, level_values)
    check_range(values[:, None], [schema.name], what)
    return values


def _days(texts: Sequence[str], schema: ColumnSchema, what: str) -> NDArray[np.float64]:
    """Read each date on its own, in the format of the training data or in one that is unambiguous."""
    training_readings: tuple[Reading, ...] = (schema.reading,) if schema.reading else ("day first", "month first")
    readings: tuple[Reading, ...] = tuple(dict.fromkeys((*training_readings, "year first", "month name")))
    days = np.full(len(texts), np.nan)
    for i, text in enumerate(texts):
        if text.strip() in MISSING_MARKS:
            continue
        dates = {reading: np.array([day]) for reading in readings if (day := parsed(text, reading)) is not None}
        if not dates:
            raise ValueError(
                f"{what} has {text!r} in column {schema.name!r}, which is not a date"
                + (f" in the format of the training data ({schema.reading})" if schema.reading else "")
                + ": write it as 2024-01-31 or leave it empty"
            )
        days[i] = only_reading(dates, [text], f"{what} has dates in column {schema.name!r}")[1][0]
    return days


def _another_kind(column: ColumnType, schema: ColumnSchema, what: str) -> ValueError:
    levels = list(column.levels or ())
    odd = [level for level in levels if schema.holds == "numbers" and as_numbers([str(level)]) is None]
    example = f", such as {(odd or levels)[0]!r}" if levels else ""
    return ValueError(
        f"{what} has {column.holds} in column {schema.name!r}{example}, but the training data had {schema.holds}: "
        f"convert it to {schema.holds}"
    )


# --- options and output for users ----------------------------------------------------------------------


def named_columns(categorical_features: Any, names: Sequence[str]) -> list[bool]:
    """Convert the option ``categorical_features`` (names, indices, a mask or None) to a mask."""
    if categorical_features is None:
        return [False] * len(names)
    if isinstance(categorical_features, str) or not hasattr(categorical_features, "__iter__"):
        raise ValueError(
            f"categorical_features={categorical_features!r} must be a sequence of column names, indices or a mask, "
            "or None"
        )
    items = list(categorical_features)
    if items and all(isinstance(item, bool | np.bool_) for item in items):
        if len(items) != len(names):
            raise ValueError(f"categorical_features is a mask of {len(items)} columns, but X has {len(names)}")
        return [bool(item) for item in items]
    chosen = {column_index("categorical_features", item, names) for item in items}
    return [j in chosen for j in range(len(names))]


Monotone = Mapping[str, int] | Mapping[int, int] | None


def monotone_signs(monotone: Monotone, names: Sequence[str]) -> list[int] | None:
    """Convert the option ``monotone`` to one sign per column: targets rise (1) or fall (-1) with it, or either (0)."""
    if monotone is None:
        return None
    if not isinstance(monotone, Mapping):
        raise ValueError(f"monotone={monotone!r} must be None or a dict of columns to 1 or -1, such as {{'age': 1}}")
    signs = [0] * len(names)
    for item, sign in monotone.items():
        if isinstance(sign, bool) or not isinstance(sign, int | np.integer) or sign not in (-1, 0, 1):
            raise ValueError(
                f"monotone has {sign!r} for column {item!r}: use 1 if the target rises with it, -1 if it falls"
            )
        column = column_index("monotone", item, names)
        if signs[column]:
            raise ValueError(f"monotone has column {names[column]!r} twice, by name and by index")
        signs[column] = int(sign)
    return signs if any(signs) else None


def column_index(option: str, item: Any, names: Sequence[str]) -> int:
    """Return the index of a column that an option gives by name or index."""
    if isinstance(item, str):
        check_choice(f"column in {option}", item, names)
        return list(names).index(item)
    if not isinstance(item, int | np.integer) or isinstance(item, bool):
        raise ValueError(f"{option} has {item!r}, which is not a column name or index")
    if not -len(names) <= item < len(names):
        raise ValueError(f"{option} has index {item}, but X has {len(names)} columns")
    return int(item) % len(names)


def schema_frame(schema: Sequence[ColumnSchema]) -> pd.DataFrame:
    """Return a frame with one row per column: ``kind``, ``levels``, ``missing`` and ``note``."""
    rows = [
        ("constant" if c.constant and c.kind != "unusable" else c.kind, c.levels, c.missing, c.note) for c in schema
    ]
    index = pd.Index([column.name for column in schema], name="column")
    return pd.DataFrame(rows, index, ["kind", "levels", "missing", "note"])
