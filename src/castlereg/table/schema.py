"""The kind of every column: numeric, binary, categorical or ordinal.

The kind depends on the values of a column, not on its dtype: the same values as integers, floats, nullable integers or
text give the same kind.

===========  ==========================================================================================
kind         columns
===========  ==========================================================================================
binary       two different values of any type
categorical  text and pandas categories with three or more levels; columns in ``categorical_features``
ordinal      ordered pandas categories; integers with 3 to 10 different values
numeric      all others: numbers, dates, durations
unusable     identifiers and free text, if they are dropped
===========  ==========================================================================================

Ordinal numbers are used as numbers. Their kind is a hint that they may be codes without an order, which belong in
``categorical_features``. Text that contains plain numbers is read as numbers, and text that contains dates as dates,
even with missing-value marks such as ``-``. Text with numbers in other formats (decimal commas, units) raises, and so
does text with hardly any repeated values unless such columns are dropped. Beyond 100 levels, the rarest are joined.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from castlereg.layout import Kind, Node
from castlereg.notices import warn_user
from castlereg.options import check_choice
from castlereg.table.dates import DateSurvey, Reading, Season, as_dates, only_reading
from castlereg.table.reading import Columns, ColumnType, Holds, Level, listed
from castlereg.table.texts import FEW, MISSING_MARKS, are_codes, as_numbers, is_prose, shown, what_is_wrong

IN_ORDER = "in the order of its categories"  # note for levels with a meaningful order
ColumnKind = Literal["numeric", "binary", "categorical", "ordinal", "unusable"]

MOST_LEVELS = 100  # more levels need wide layers, with few rows to train each weight
_MOST_ORDINAL_VALUES = 10
SMALLEST_RANGE = 1e-100  # of values that vary: squares of smaller ranges underflow in float64
_ENOUGH_VALUES = _MOST_ORDINAL_VALUES + 2  # a column with more different numbers is numeric
OTHER = "(other)"

# Names of columns whose integers, if all different, are identifiers; names of columns that may count time.
_IDENTIFIER = re.compile(
    r"(?i:(.*[_ .-])?(id|uuid|guid)|index|idx|row([_ ]?(number|num|no|id))?|unnamed: \d+)|.*[a-z]I[dD]"
)
_ANYTHING = re.compile(r"(?i:.*(time|date|year|month|week|day|hour|min|sec|step|period|epoch|age).*|[a-z]?\d*)")
_MOST_NUMBERED = 10_000_000  # up to this many rows, values are compared with row numbers


@dataclass(frozen=True)
class ColumnSchema:
    """One column of a table that a model was trained on."""

    name: str
    kind: ColumnKind
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


class KindChanged(ValueError):
    """Error for a column whose values are of different kinds in different parts of a table."""

    def __init__(self, column: str, before: str, now: str, texts: Sequence[str]) -> None:
        super().__init__(f"column {column!r} holds {before} in one part of the table and {now} in another")
        self.column, self.texts = column, texts


class Decision(NamedTuple):
    """The schema of a column, and what to warn the user about."""

    schema: ColumnSchema
    as_numbers: tuple[str, ...] | None = None  # missing-value marks among numbers that were text
    marks: tuple[str, ...] = ()  # texts that were read as missing values
    unusable: str = ""  # why a network cannot use it


class ColumnSurvey:
    """Statistics of one column from all its pieces, which decide its kind; ``categorical`` if the user marked it so."""

    def __init__(self, name: str, categorical: bool) -> None:
        self.categorical = categorical
        self.type = ColumnType(name, "nothing")  # of the first piece with values
        self.missing = 0
        self.counts: Counter[Level] = Counter()  # of levels, or of the values of a categorical column of numbers
        self.some_values: set[float] = set()  # of numbers: all, or enough to know that the column is numeric
        self.lowest, self.highest = np.inf, -np.inf
        self.too_many = False  # whether there are too many texts to count
        self.reading: Reading = ""  # of dates that were text, once it is known
        self._marks: set[str] = set()
        self._dates = DateSurvey()
        self._numbered: list[NDArray[np.float64]] | None = []  # integers that may be row numbers

    def add(self, column: ColumnType, cells: NDArray[np.float64]) -> None:
        """Add one piece, shape (rows,)."""
        self._marks.update(column.marks)
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
        if column.holds == "dates":
            self._dates.add(present)
        elif self._numbered is not None:
            self._numbered.append(present)
            if not _may_number_rows(column, self._numbered):
                self._numbered = None

    def _count(self, levels: Sequence[Level], counts: NDArray[np.int64]) -> None:
        if self.type.ordered and self.counts and list(self.counts) != list(levels):
            raise ValueError(
                f"column {self.type.name!r} has ordered categories {list(self.counts)} in one part of the table and "
                f"{list(levels)} in another: write it with the same categories throughout"
            )
        if not self.too_many:
            self.counts.update(dict(zip(levels, counts.tolist(), strict=True)))

    def counted_levels(self) -> tuple[ColumnType, NDArray[np.int64]]:
        """Return the column with its levels in order, and the count of each level."""
        levels = [level for level, count in self.counts.items() if count]
        if not self.type.ordered:
            levels.sort(key=lambda level: level)
        return replace(self.type, levels=tuple(levels)), np.array([self.counts[level] for level in levels], np.int64)

    def decide(self, what: str, marks: Sequence[str] = ()) -> Decision:
        """Decide the kind of the column; ``marks`` were already read as missing values."""
        column, missing = self.type, self.missing
        values = np.array(sorted({*self.some_values, self.lowest, self.highest}) if self.some_values else [])
        if column.levels is not None or (self.categorical and not is_constant(values)):
            column, counts = self.counted_levels()
            if column.holds == "text" and not (column.declared or self.too_many):
                if self.categorical:
                    column, counts = _with_numbers(column, counts)
                else:
                    decision = self._of_texts(column, counts, what)
                    if decision is not None:
                        return decision
            return self._of_levels(column, counts)
        if column.holds == "dates":
            schema = _schema_of_dates(column, values, missing, self._dates)
            return Decision(replace(schema, reading=self.reading), marks=tuple(sorted(self._marks)))
        schema = _schema_of_numbers(column, values, missing, _noted(marks))
        unusable = (
            _numbers_of_rows(column.name, np.concatenate(self._numbered)) if self._numbered and not missing else ""
        )
        return Decision(schema, tuple(marks) or None, tuple(sorted(self._marks)), unusable)

    def _of_texts(self, column: ColumnType, counts: NDArray[np.int64], what: str) -> Decision | None:
        """Read texts as numbers or dates; None if they are neither."""
        texts = [str(level) for level in column.levels or ()]
        marks = tuple(sorted({*self._marks, *(text for text in texts if text.strip() in MISSING_MARKS)}))
        numbers = None if are_codes(texts) else as_numbers(texts)
        if numbers is not None and not np.isnan(numbers).all():
            values, missing = _present(numbers, counts)
            missing += self.missing
            schema = _schema_of_numbers(ColumnType(column.name), values, missing, _noted(marks))
            differ = not missing and len(values) == counts.sum() and np.array_equal(values, np.floor(values))
            return Decision(schema, marks, unusable=_numbers_of_rows(column.name, values) if differ else "")
        dates = as_dates(texts, MISSING_MARKS)
        if dates:
            reading, days = only_reading(dates, texts, f"{what} has dates in column {column.name!r}")
            values, missing = _present(days, counts)
            survey = DateSurvey()
            survey.add(values)
            schema = _schema_of_dates(ColumnType(column.name, "dates"), values, self.missing + missing, survey)
            return Decision(replace(schema, reading=reading), marks=marks)
        wrong = what_is_wrong(texts)
        if wrong is not None:
            raise ValueError(
                f"{what} has text in column {column.name!r} that looks like {wrong}, or list the column in "
                "categorical_features (--categorical) if its values are codes"
            )
        return None

    def _of_levels(self, column: ColumnType, counts: NDArray[np.int64]) -> Decision:
        schema = _schema_of_levels(column, counts, self.missing)
        levels, rows = column.levels or (), int(counts.sum())
        unusable, is_known = "", self.categorical or column.declared  # as categorical, by the user
        hardly_repeats = self.too_many or (2 * len(levels) > rows and not is_known)
        if schema.kind == "categorical" and len(levels) > FEW and hardly_repeats:
            texts = [str(level) for level in levels]
            sort = "free text" if is_prose(texts) else "an identifier"
            more = "more than " if self.too_many else ""
            unusable = f"{sort}: {more}{len(levels)} different values in {more}{rows} rows, such as {shown(texts, 1)}"
        return Decision(schema, marks=tuple(sorted(self._marks)), unusable=unusable)


def _with_numbers(column: ColumnType, counts: NDArray[np.int64]) -> tuple[ColumnType, NDArray[np.int64]]:
    """Convert levels that are plain numbers stored as text to numbers, as reading a file does."""
    texts = [str(level) for level in column.levels or ()]
    numbers = None if are_codes(texts) else as_numbers(texts)
    if numbers is None or np.isnan(numbers).any():
        return column, counts
    levels, index = np.unique(numbers, return_inverse=True)
    column = replace(column, holds="numbers", levels=tuple(levels.tolist()))
    return column, np.bincount(index, counts, len(levels)).astype(np.int64)


def _numbers_of_rows(name: str, values: NDArray[np.float64]) -> str:
    """Return why a column of integers looks like an identifier; empty if it does not."""
    if len(values) <= _MOST_ORDINAL_VALUES:
        return ""
    if _counts_up(values) and not _ANYTHING.fullmatch(name):
        return "row numbers"
    is_identifier = _IDENTIFIER.fullmatch(name) and len(np.unique(values)) == len(values)
    return "an identifier: whole numbers, all different" if is_identifier else ""


def _may_number_rows(column: ColumnType, pieces: Sequence[NDArray[np.float64]]) -> bool:
    """Return whether numbers may still be row numbers; only the last piece has not been checked."""
    if column.holds != "numbers" or sum(map(len, pieces)) > _MOST_NUMBERED:
        return False
    if not _IDENTIFIER.fullmatch(column.name) and not _counts_up(pieces[0][:_ENOUGH_VALUES]):
        return False
    return np.array_equal(pieces[-1], np.floor(pieces[-1]))


def _counts_up(values: NDArray[np.float64]) -> bool:
    """Return whether values are 0, 1, 2, ... or 1, 2, 3, ..."""
    return values[0] in (0, 1) and np.array_equal(values, values[0] + np.arange(len(values)))


def infer_schema(
    columns: Columns, categorical: Sequence[bool], what: str = "X", *, drop_unusable: bool = False
) -> tuple[ColumnSchema, ...]:
    """Decide the kind of every column by the rule of this module; ``categorical`` columns have levels."""
    surveys = list(map(ColumnSurvey, columns.names, categorical))
    for j, survey in enumerate(surveys):
        survey.add(columns.types[j], columns.column(j))
    return schema_of(surveys, what, {}, drop_unusable=drop_unusable)


def schema_of(
    surveys: Sequence[ColumnSurvey], what: str, marked: Mapping[str, Sequence[str]], *, drop_unusable: bool = False
) -> tuple[ColumnSchema, ...]:
    """Decide the kind of every column; warn about texts read as missing values, constant columns and joined levels.

    ``marked`` texts of a column were already read as missing values. Identifiers and free text raise a single error
    that lists them all, unless they are dropped; numbers that look like an identifier only warn.
    """
    decided = _without_unusable(
        [survey.decide(what, marked.get(survey.type.name, ())) for survey in surveys], what, drop_unusable
    )
    schema = tuple(decision.schema for decision in decided)
    as_numbers = [decision for decision in decided if decision.as_numbers is not None]
    if as_numbers:
        marks = ", ".join(map(repr, sorted({mark for decision in as_numbers for mark in decision.as_numbers or ()})))
        warn_user(
            f"{what} has numbers stored as text in {listed([decision.schema.name for decision in as_numbers])}"
            + (f" (except for {marks}): read as numbers, with {marks} as missing" if marks else ": read as numbers")
            + "; if they are codes, list the columns in categorical_features (--categorical)"
        )
    missing = [f"{shown(decision.marks)} in {decision.schema.name!r}" for decision in decided if decision.marks]
    if missing:
        warn_user(
            f"{what} has text that is read as missing values: {'; '.join(missing[:5])}"
            + (f"; and in {len(missing) - 5} more columns" if len(missing) > 5 else "")
        )
    constant = [column.name for column in schema if column.constant and column.kind != "unusable"]
    if constant:
        warn_user(f"constant columns have no edges and no influence: {listed(constant)}")
    joined = [f"{column.name!r} ({column.note})" for column in schema if column.note.endswith(OTHER)]
    if joined:
        warn_user(
            f"{what} has columns with more than {MOST_LEVELS} levels, of which the rarest are joined into one: "
            + ", ".join(joined)
        )
    return schema


def _without_unusable(decided: Sequence[Decision], what: str, drop: bool) -> list[Decision]:
    """Drop unusable columns; or raise for columns of text and warn about columns of numbers."""
    unusable = [decision for decision in decided if decision.unusable]
    if not unusable:
        return list(decided)
    advice = 'drop them, or pass unusable_columns="drop" (--drop-unusable)'
    texts, numbers = ([d for d in unusable if d.schema.is_coded == is_coded] for is_coded in (True, False))
    if drop:
        warn_user(f"{what} has columns that are not used: {_reasons(unusable)}")
        return [_dropped(decision) if decision.unusable else decision for decision in decided]
    if texts:
        raise ValueError(f"{what} has columns that a network cannot use: {_reasons(unusable)}; {advice}")
    warn_user(f"{what} has columns that carry no information about new rows: {_reasons(numbers)}; {advice}")
    return list(decided)


def _reasons(decided: Sequence[Decision]) -> str:
    return "; ".join(f"{decision.schema.name!r} ({decision.unusable})" for decision in decided)


def _dropped(decision: Decision) -> Decision:
    return Decision(
        ColumnSchema(
            decision.schema.name, "unusable", "nothing", None, decision.schema.missing, True, decision.unusable
        )
    )


def _noted(marks: Sequence[str]) -> str:
    return f"text of numbers and {', '.join(map(repr, marks))}" if marks else ""


def _present(values: NDArray[np.float64], counts: NDArray[np.int64]) -> tuple[NDArray[np.float64], int]:
    """Return the different values, and the number of missing cells."""
    missing = np.isnan(values)
    return np.unique(values[~missing]), int(counts[missing].sum())


def _schema_of_numbers(column: ColumnType, values: NDArray[np.float64], missing: int, note: str) -> ColumnSchema:
    """Decide the kind of a column of numbers by its different values, or enough of them."""
    if is_constant(values):
        return _schema_of_one_value(column, values[:1].tolist(), None, missing)
    if len(values) == 2:
        return ColumnSchema(column.name, "binary", column.holds, None, missing, False, note)
    is_ordinal = len(values) <= _MOST_ORDINAL_VALUES and np.array_equal(values, np.floor(values))
    kind: ColumnKind = "ordinal" if column.holds == "numbers" and is_ordinal else "numeric"
    return ColumnSchema(column.name, kind, column.holds, None, missing, False, note)


def _schema_of_dates(column: ColumnType, values: NDArray[np.float64], missing: int, survey: DateSurvey) -> ColumnSchema:
    """Return the schema of a column of dates, given its different values or enough of them."""
    schema = _schema_of_numbers(column, values, missing, "dates")
    seasons = survey.seasons() if schema.kind == "numeric" and len(values) > 2 else ()
    return replace(schema, seasons=seasons, note=f"dates ({', '.join(seasons)})" if seasons else schema.note)


def _schema_of_levels(column: ColumnType, counts: NDArray[np.int64], missing: int) -> ColumnSchema:
    """Decide the kind of a column of levels by their counts."""
    levels = column.levels or ()
    if len(levels) <= 1:
        return _schema_of_one_value(column, levels, levels or None, missing)
    kind: ColumnKind = "binary" if len(levels) == 2 else "ordinal" if column.ordered else "categorical"
    note = IN_ORDER if column.ordered else ""
    if kind == "categorical" and len(levels) > MOST_LEVELS:
        note = f"{len(levels) - MOST_LEVELS + 1} of {len(levels)} levels joined as {OTHER}"
        frequent = np.argsort(-counts, kind="stable")[: MOST_LEVELS - 1]
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
    chosen = [False] * len(names)
    for item in items:
        chosen[_column_index("categorical_features", item, names)] = True
    return chosen


Monotone = Mapping[str, int] | Mapping[int, int] | None


def monotone_signs(monotone: Monotone, names: Sequence[str]) -> list[int] | None:
    """Convert the option ``monotone`` to one sign per column: the targets rise (1) or fall (-1) with it, or either (0).

    >>> monotone_signs({"age": -1}, ["sex", "age"])
    [0, -1]
    """
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
        column = _column_index("monotone", item, names)
        if signs[column]:
            raise ValueError(f"monotone has column {names[column]!r} twice, by name and by index")
        signs[column] = int(sign)
    return signs if any(signs) else None


def _column_index(option: str, item: Any, names: Sequence[str]) -> int:
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
    return pd.DataFrame(
        {
            "kind": ["constant" if column.constant and column.kind != "unusable" else column.kind for column in schema],
            "levels": [column.levels for column in schema],
            "missing": [column.missing for column in schema],
            "note": [column.note for column in schema],
        },
        index=pd.Index([column.name for column in schema], name="column"),
    )
