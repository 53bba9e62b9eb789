"""What every column is: numeric, binary, categorical or ordinal.

The rule, by what a column holds and not by its dtype (an integer, a float and a nullable column of the same
values are the same column):

===========  ==========================================================================================
kind         columns
===========  ==========================================================================================
binary       two different values, whatever they are
categorical  text and pandas categories of three and more levels; those in ``categorical_features``
ordinal      ordered pandas categories; whole numbers with 3 to 10 different values
numeric      all others: numbers, dates
===========  ==========================================================================================

Ordinal numbers are used as the numbers they are; the kind says that they might be codes without an order, to be named
in ``categorical_features``. A text column that is hardly ever twice the same is free text and raises. Beyond 100 levels
the rarest are joined into one. Text that is numbers but for a missing-value mark such as ``?`` is numbers with missing
values, with a warning: it is text only because of the mark.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from castlereg.data.reading import MISSING_MARKS, Columns, ColumnType, Holds, Level, as_numbers, check_range, listed
from castlereg.layout import Kind, Node
from castlereg.notices import warn_user
from castlereg.options import check_choice

ColumnKind = Literal["numeric", "binary", "categorical", "ordinal"]

MOST_LEVELS = 100  # more make wide layers of weights that a few rows each must teach
_MOST_ORDINAL_VALUES = 10
_ENOUGH_VALUES = _MOST_ORDINAL_VALUES + 2  # different numbers beyond which a column is numeric whatever follows
_FEWEST_TEXTS = 20  # fewer different texts are levels, even when each occurs once
OTHER = "(other)"


@dataclass(frozen=True)
class ColumnSchema:
    """One column of a table that a model was trained on."""

    name: str
    kind: ColumnKind
    holds: Holds
    levels: tuple[Level, ...] | None  # in order, for columns whose cells are levels; OTHER stands last for joined ones
    missing: int  # number of missing values
    constant: bool  # whether there is nothing to learn from: one value, or none
    note: str = ""  # what else the user should know

    @property
    def is_coded(self) -> bool:
        """Whether cells are indices into the levels."""
        return self.levels is not None

    def node(self, clipped: bool = False) -> Node:
        """Return the column's node; ``clipped`` applies to numeric columns only."""
        kind: Kind = "numeric" if self.kind == "ordinal" else self.kind
        n_levels = len(self.levels or ()) if kind == "categorical" else 1
        missing = self.missing > 0 and self.holds != "nothing"
        return Node(kind, n_levels, missing=missing, clipped=clipped and self.kind == "numeric")


class KindChanged(ValueError):
    """A column that held one thing in one piece of a table and another in the next."""

    def __init__(self, column: str, before: str, now: str, texts: Sequence[str]) -> None:
        super().__init__(f"column {column!r} holds {before} in one part of the table and {now} in another")
        self.column, self.texts = column, texts


class ColumnSurvey:
    """What the rule needs to know of one column, from all its pieces; ``categorical`` if the user calls it so."""

    def __init__(self, name: str, categorical: bool) -> None:
        self.categorical = categorical
        self.type = ColumnType(name, "nothing")  # of the first piece that holds something
        self.missing = 0
        self.counts: Counter[Level] = Counter()  # of levels, and of the values of a categorical column of numbers
        self.some_values: set[float] = set()  # of numbers: all, or enough of them to be numeric
        self.lowest, self.highest = np.inf, -np.inf

    def add(self, column: ColumnType, cells: NDArray[np.float64]) -> None:
        """Take note of one piece, shape (rows,)."""
        missing = np.isnan(cells)
        present = cells[~missing] if missing.any() else cells
        self.missing += len(cells) - len(present)
        if not len(present) and column.levels is None:
            return
        known = self.type
        if known.holds == "nothing":
            self.type = column
        elif known.holds != column.holds or (known.levels is None) != (column.levels is None):
            texts = column.levels if column.holds == "text" else self.counts if known.holds == "text" else ()
            raise KindChanged(known.name, known.holds, column.holds, [str(text) for text in texts or ()])
        if column.levels is not None:
            self._count(column.levels, np.bincount(present.astype(np.int64), minlength=len(column.levels)))
            return
        if self.categorical:
            values, counts = np.unique(present, return_counts=True)
            self._count(values.tolist(), counts)
        for values in (present[:1000], present):  # the first values are enough for most columns
            if len(self.some_values) < _ENOUGH_VALUES:
                self.some_values.update(np.unique(values)[:_ENOUGH_VALUES].tolist())
        self.lowest, self.highest = min(self.lowest, present.min()), max(self.highest, present.max())

    def _count(self, levels: Sequence[Level], counts: NDArray[np.int64]) -> None:
        if self.type.ordered and self.counts and list(self.counts) != list(levels):
            raise ValueError(
                f"column {self.type.name!r} has ordered categories {list(self.counts)} in one part of the table and "
                f"{list(levels)} in another: write it with the same categories throughout"
            )
        self.counts.update(dict(zip(levels, counts.tolist(), strict=True)))

    def counted_levels(self) -> tuple[ColumnType, NDArray[np.int64]]:
        """Return the column with the levels that occur, in order, and the count of each."""
        levels = [level for level, count in self.counts.items() if count]
        if not self.type.ordered:
            levels.sort(key=lambda level: level)
        return replace(self.type, levels=tuple(levels)), np.array([self.counts[level] for level in levels], np.int64)

    def schema(self, what: str, marks: Sequence[str] = ()) -> tuple[ColumnSchema, Sequence[str]]:
        """Decide what the column is; return also the missing-value marks among its numbers, as given or as found."""
        column, missing = self.type, self.missing
        values = np.array(sorted({*self.some_values, self.lowest, self.highest}) if self.some_values else [])
        if column.levels is not None or (self.categorical and not is_constant(values)):
            column, counts = self.counted_levels()
            marks = () if self.categorical else _missing_marks(column)
            if not marks:
                return _schema_of_levels(column, counts, missing, what), ()
            numbers = as_numbers([str(level) for level in column.levels or ()])
            assert numbers is not None  # that is what marks mean
            column, missing = ColumnType(column.name), missing + int(counts[np.isnan(numbers)].sum())
            values = np.unique(numbers[~np.isnan(numbers)])
        note = f"text of numbers and {', '.join(map(repr, marks))}" if marks else ""
        return _schema_of_numbers(column, values, missing, note), marks


def infer_schema(columns: Columns, categorical: Sequence[bool], what: str = "X") -> tuple[ColumnSchema, ...]:
    """Decide what every column is, by the rule of this module; ``categorical`` columns hold levels even as numbers."""
    surveys = list(map(ColumnSurvey, columns.names, categorical))
    for j, survey in enumerate(surveys):
        survey.add(columns.types[j], columns.column(j))
    return schema_of(surveys, what, {})


def schema_of(
    surveys: Sequence[ColumnSurvey], what: str, marked: Mapping[str, Sequence[str]]
) -> tuple[ColumnSchema, ...]:
    """Decide what every column is; warn of marks taken as missing values, of constant columns and of joined levels.

    ``marked`` texts of a column were already taken as missing when its numbers were read.
    """
    decided = [survey.schema(what, marked.get(survey.type.name, ())) for survey in surveys]
    schema = tuple(column for column, _ in decided)
    with_marks = [column.name for column, marks in decided if marks]
    if with_marks:
        shown = ", ".join(map(repr, sorted({mark for _, marks in decided for mark in marks})))
        warn_user(
            f"{what} has text in {listed(with_marks)} that is numbers but for {shown}: read as numbers, with {shown} "
            "as missing"
        )
    constant = [column.name for column in schema if column.constant]
    if constant:
        warn_user(f"constant columns have no edges and no influence: {listed(constant)}")
    joined = [f"{column.name!r} ({column.note})" for column in schema if column.note.endswith(OTHER)]
    if joined:
        warn_user(
            f"{what} has columns of more than {MOST_LEVELS} levels, of which the rarest are one level now: "
            + ", ".join(joined)
        )
    return schema


def _missing_marks(column: ColumnType) -> list[str]:
    """Find the marks that make a column of numbers text; none when it is text for other reasons too."""
    if column.holds != "text" or column.declared:
        return []
    texts = [str(level) for level in column.levels or ()]
    marks = [text for text in texts if text.strip() in MISSING_MARKS]
    return marks if len(marks) < len(texts) and as_numbers(texts) is not None else []


def _schema_of_numbers(column: ColumnType, values: NDArray[np.float64], missing: int, note: str) -> ColumnSchema:
    """Decide what a column of numbers is, by its different values or enough of them."""
    if is_constant(values):
        return _schema_of_one_value(column, values[:1].tolist(), None, missing)
    if len(values) == 2:
        return ColumnSchema(column.name, "binary", column.holds, None, missing, False, note)
    is_ordinal = len(values) <= _MOST_ORDINAL_VALUES and np.array_equal(values, np.floor(values))
    kind: ColumnKind = "ordinal" if column.holds == "numbers" and is_ordinal else "numeric"
    return ColumnSchema(
        column.name, kind, column.holds, None, missing, False, "dates" if column.holds == "dates" else note
    )


def _schema_of_levels(column: ColumnType, counts: NDArray[np.int64], missing: int, what: str) -> ColumnSchema:
    """Decide what a column of levels is, by the count of each."""
    levels = column.levels or ()
    if len(levels) <= 1:
        return _schema_of_one_value(column, levels, levels or None, missing)
    kind: ColumnKind = "binary" if len(levels) == 2 else "ordinal" if column.ordered else "categorical"
    note = "in the order of its categories" if column.ordered else ""
    if kind == "categorical":
        _check_not_free_text(column.name, levels, int(counts.sum()), what)
        if len(levels) > MOST_LEVELS:
            note = f"{len(levels) - MOST_LEVELS + 1} of {len(levels)} levels joined as {OTHER}"
            frequent = np.argsort(-counts, kind="stable")[: MOST_LEVELS - 1]
            levels = (*(levels[i] for i in np.sort(frequent)), OTHER)
    return ColumnSchema(column.name, kind, column.holds, levels, missing, False, note)


def _schema_of_one_value(
    column: ColumnType, values: Sequence[Level], levels: tuple[Level, ...] | None, missing: int
) -> ColumnSchema:
    """Describe a column with at most one value: constant, unless there are missing values too."""
    if not values:
        return ColumnSchema(column.name, "numeric", "nothing", levels, missing, True, "no values")
    shown = repr(values[0] if isinstance(values[0], str) else f"{values[0]:g}")
    note = f"{shown} or missing" if missing else f"always {shown}"
    return ColumnSchema(column.name, "numeric", column.holds, levels, missing, not missing, note)


def _check_not_free_text(name: str, levels: Sequence[Level], rows: int, what: str) -> None:
    if len(levels) <= _FEWEST_TEXTS or 2 * len(levels) <= rows:
        return
    texts = [level for level in levels if isinstance(level, str)]
    if texts and as_numbers(texts) is not None:
        advice = "it is numbers written as text: convert it with pd.to_numeric"
    elif texts and re.match(r"\d{4}-\d{2}-\d{2}", texts[0]):
        advice = "it is dates written as text: convert it with pd.to_datetime"
    else:
        advice = "it looks like free text or an identifier: drop it, or make numbers or a few levels of it"
    raise ValueError(
        f"{what} has {len(levels)} different values in {rows} rows of column {name!r}, such as {levels[0]!r}: {advice}"
    )


def is_constant(values: NDArray[np.float64]) -> bool:
    """Tell whether there is one value, or values that differ by rounding only, or none."""
    if not len(values):
        return True
    lowest, highest = float(values.min()), float(values.max())
    return highest - lowest <= 4 * sys.float_info.epsilon * max(abs(lowest), abs(highest))


# --- cells by a known schema ---------------------------------------------------------------------


def coded_columns(columns: Columns, schema: Sequence[ColumnSchema], what: str = "X") -> Columns:
    """Number the levels of a table as read by the schema; a table whose cells are values already is not copied.

    Cells are numbers, or indices into the schema's levels with -1 for unknown ones; NaN for missing values.
    """
    pairs = list(zip(schema, columns.types, strict=True))
    for known, column in pairs:
        if {known.holds, column.holds} == {"numbers", "dates"}:
            raise _another_kind(column, known, what)
    if all(known.levels is None and column.levels is None for known, column in pairs):
        return columns
    cells = columns.cells.copy()
    unknown: list[str] = []
    for j, (known, column) in enumerate(pairs):
        given = columns.column(j)
        if known.is_coded:
            cells[:, j] = known_levels(given, column, known, what)
            new = given[cells[:, j] == -1]
            if len(new):
                level = float(new[0]) if column.levels is None else column.levels[int(new[0])]
                unknown.append(f"{level!r} in column {known.name!r}")
        elif column.levels is not None:
            cells[:, j] = _numbers(given, column, known, what)
    if unknown:
        shown = ", ".join(unknown[:5]) + (f" and in {len(unknown) - 5} more columns" if len(unknown) > 5 else "")
        warn_user(f"{what} has levels that were not there in training: {shown}; each counts as one more level")
    return Columns(cells, tuple(ColumnType(known.name, known.holds, known.levels) for known in schema))


def known_levels(
    cells: NDArray[np.float64], column: ColumnType, schema: ColumnSchema, what: str
) -> NDArray[np.float64]:
    """Find a column's levels among those of the schema: their indices, and -1 for unknown ones."""
    if column.holds == "nothing":
        return cells
    if column.holds != schema.holds:
        raise _another_kind(column, schema, what)
    index = {level: float(i) for i, level in enumerate(schema.levels or ())}
    other = index.get(OTHER, -1.0)
    codes, levels = pd.factorize(cells) if column.levels is None else (_codes(cells), column.levels)
    return np.array([*(index.get(level, other) for level in levels), np.nan])[codes]


def _codes(cells: NDArray[np.float64]) -> NDArray[np.int64]:
    """Turn indices with NaN for missing values into whole numbers with -1."""
    return np.where(np.isnan(cells), -1, cells).astype(np.int64)


def _numbers(cells: NDArray[np.float64], column: ColumnType, schema: ColumnSchema, what: str) -> NDArray[np.float64]:
    """Read levels where the schema has numbers: text of numbers, or categories of numbers."""
    if schema.holds == "nothing":
        return np.full(len(cells), np.nan)
    values = values_of_levels(column, cells) if schema.holds == "numbers" else None
    if values is None:
        raise _another_kind(column, schema, what)
    check_range(values[:, None], [schema.name], what)
    return values


def values_of_levels(column: ColumnType, cells: NDArray[np.float64]) -> NDArray[np.float64] | None:
    """Turn indices into levels into the numbers that the levels are or write out; None when a level is not a number."""
    codes, levels = _codes(cells), column.levels or ()
    present = np.unique(codes[codes >= 0])
    numbers = as_numbers([str(levels[i]) for i in present])
    if numbers is None:
        return None
    values = np.full(len(levels) + 1, np.nan)  # the last is for missing values
    values[present] = numbers
    return values[codes]


def _another_kind(column: ColumnType, schema: ColumnSchema, what: str) -> ValueError:
    example = f", such as {column.levels[0]!r}" if column.levels else ""
    return ValueError(
        f"{what} has {column.holds} in column {schema.name!r}{example}, where there were {schema.holds} in training: "
        f"convert it to {schema.holds}"
    )


# --- what users set and see ----------------------------------------------------------------------


def named_columns(categorical_features: Any, names: Sequence[str]) -> list[bool]:
    """Read the option ``categorical_features``: names, indices or a mask; None for none."""
    if categorical_features is None:
        return [False] * len(names)
    if isinstance(categorical_features, str) or not hasattr(categorical_features, "__iter__"):
        raise ValueError(
            f"categorical_features={categorical_features!r} must be a sequence of column names, indices or a mask, "
            "or None"
        )
    given = list(categorical_features)
    if given and all(isinstance(item, bool | np.bool_) for item in given):
        if len(given) != len(names):
            raise ValueError(f"categorical_features is a mask of {len(given)} columns, and X has {len(names)}")
        return [bool(item) for item in given]
    chosen = [False] * len(names)
    for item in given:
        if isinstance(item, str):
            check_choice("column in categorical_features", item, names)
            item = list(names).index(item)
        if not isinstance(item, int | np.integer) or isinstance(item, bool):
            raise ValueError(f"categorical_features has {item!r}, which is not a column name or index")
        if not -len(names) <= item < len(names):
            raise ValueError(f"categorical_features has index {item}, and X has {len(names)} columns")
        chosen[item] = True
    return chosen


def schema_frame(schema: Sequence[ColumnSchema]) -> pd.DataFrame:
    """Show ``kind``, ``levels``, ``missing`` and ``note`` of every column, one row each."""
    return pd.DataFrame(
        {
            "kind": ["constant" if column.constant else column.kind for column in schema],
            "levels": [column.levels for column in schema],
            "missing": [column.missing for column in schema],
            "note": [column.note for column in schema],
        },
        index=pd.Index([column.name for column in schema], name="column"),
    )
