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
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from castlereg.data.missing import MISSING_MARKS
from castlereg.data.reading import Columns, ColumnType, Holds, Level, as_numbers, check_range, listed
from castlereg.layout import Node
from castlereg.notices import warn_user
from castlereg.options import check_choice

ColumnKind = Literal["numeric", "binary", "categorical", "ordinal"]

MOST_LEVELS = 100  # more make wide layers of weights that a few rows each must teach
_MOST_ORDINAL_VALUES = 10
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
        has_missing = self.missing > 0 and self.holds != "nothing"
        if self.kind == "categorical":
            assert self.levels is not None
            return Node("categorical", len(self.levels), gaps=has_missing)
        if self.kind == "binary":
            return Node("binary", gaps=has_missing)
        return Node(gaps=has_missing, clipped=clipped and self.kind == "numeric")


def infer_schema(columns: Columns, categorical: Sequence[bool], what: str = "X") -> tuple[ColumnSchema, ...]:
    """Decide what every column is, by the rule of this module; ``categorical`` columns hold levels even as numbers.

    Examples
    --------
    >>> import pandas as pd
    >>> from castlereg.data.reading import read_columns
    >>> frame = pd.DataFrame({"rooms": [1, 2, 3, 2], "garden": [True, False, None, True], "area": list("abca")})
    >>> for column in infer_schema(read_columns(frame), [False, False, False]):
    ...     print(column.name, column.kind, column.levels, column.missing)
    rooms ordinal None 0
    garden binary None 1
    area categorical ('a', 'b', 'c') 0
    """
    schema = []
    marked: dict[str, list[str]] = {}
    for j, (column, is_listed) in enumerate(zip(columns.types, categorical, strict=True)):
        cells = columns.column(j)
        marks = [] if is_listed else missing_marks(column, cells)
        if marks:
            marked[column.name] = marks
            values = values_of_levels(column, cells)
            assert values is not None  # that is what marks mean
            note = f"text of numbers and {', '.join(map(repr, marks))}"
            schema.append(infer_numbers(ColumnType(column.name), values, False, what, note))
        elif column.levels is not None:
            schema.append(infer_levels(column, *_counted(cells, column), what))
        else:
            schema.append(infer_numbers(column, cells, is_listed, what))
    warn_of_oddities(schema, marked, what)
    return tuple(schema)


def missing_marks(column: ColumnType, cells: NDArray[np.float64]) -> list[str]:
    """Find the marks that make a column of numbers text; none when it is text for other reasons too."""
    if column.holds != "text" or column.declared or column.levels is None:
        return []
    present = [str(column.levels[int(place)]) for place in np.unique(cells[~np.isnan(cells)])]
    marks = [text for text in present if text.strip() in MISSING_MARKS]
    return marks if len(marks) < len(present) and as_numbers(present) is not None else []


def _counted(cells: NDArray[np.float64], column: ColumnType) -> tuple[NDArray[np.int64], int]:
    """Count the cells of every level, and the missing values."""
    assert column.levels is not None
    missing = np.isnan(cells)
    return np.bincount(cells[~missing].astype(np.int64), minlength=len(column.levels)), int(missing.sum())


def infer_numbers(
    column: ColumnType, cells: NDArray[np.float64], categorical: bool, what: str, note: str = ""
) -> ColumnSchema:
    """Decide what a column of numbers is, by its cells or by one cell of every value."""
    missing = np.isnan(cells)
    n_missing = int(missing.sum())
    present = cells[~missing] if n_missing else cells
    if is_constant(present):
        single = (present[0],) if len(present) else ()
        return _of_one_value(column, single, None, n_missing)
    if categorical:
        values, places = np.unique(present, return_inverse=True)
        coded = np.full(len(cells), np.nan)
        coded[~missing] = places
        levels = tuple(float(v) for v in values)
        listed_levels = ColumnType(column.name, column.holds, levels)
        return infer_levels(listed_levels, *_counted(coded, listed_levels), what)
    lowest, highest = present.min(), present.max()
    if np.all((present == lowest) | (present == highest)):
        return ColumnSchema(column.name, "binary", column.holds, None, n_missing, False, note)
    kind: ColumnKind = "ordinal" if column.holds == "numbers" and _few_whole_numbers(present) else "numeric"
    return ColumnSchema(
        column.name, kind, column.holds, None, n_missing, False, note or column.holds * (column.holds == "dates")
    )


def _few_whole_numbers(values: NDArray[np.float64]) -> bool:
    for some in (values[:1000], values):  # most columns are told by their first values
        if np.any(some != np.floor(some)) or len(np.unique(some)) > _MOST_ORDINAL_VALUES:
            return False
    return True


def infer_levels(column: ColumnType, counts: NDArray[np.int64], n_missing: int, what: str) -> ColumnSchema:
    """Decide what a column of levels is, by the count of each and of the missing values."""
    assert column.levels is not None
    levels = [level for level, count in zip(column.levels, counts, strict=True) if count]
    if len(levels) <= 1:
        return _of_one_value(column, tuple(levels), tuple(levels) or None, n_missing)
    if column.ordered:
        kind: ColumnKind = "binary" if len(levels) == 2 else "ordinal"
        return ColumnSchema(
            column.name, kind, column.holds, tuple(levels), n_missing, False, "in the order of its categories"
        )
    if len(levels) == 2:
        return ColumnSchema(column.name, "binary", column.holds, tuple(levels), n_missing, False)
    _check_not_free_text(column, levels, int(counts.sum()), what)
    note = ""
    if len(levels) > MOST_LEVELS:
        note = f"{len(levels) - MOST_LEVELS + 1} of {len(levels)} levels joined as {OTHER}"
        frequent = np.argsort(-counts, kind="stable")[: MOST_LEVELS - 1]
        levels = [*(column.levels[i] for i in np.sort(frequent)), OTHER]
    return ColumnSchema(column.name, "categorical", column.holds, tuple(levels), n_missing, False, note)


def _of_one_value(
    column: ColumnType, values: tuple[Any, ...], levels: tuple[Level, ...] | None, missing: int
) -> ColumnSchema:
    """Describe a column with at most one value: constant, unless its missing values tell something."""
    shown = values[0] if values and isinstance(values[0], str) else f"{values[0]:g}" if values else None
    constant = not values or not missing
    note = "no values" if shown is None else f"always {shown!r}" if constant else f"{shown!r} or missing"
    return ColumnSchema(column.name, "numeric", column.holds if values else "nothing", levels, missing, constant, note)


def _check_not_free_text(column: ColumnType, levels: list[Level], rows: int, what: str) -> None:
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
        f"{what} has {len(levels)} different values in {rows} rows of column {column.name!r}, such as {levels[0]!r}: "
        + advice
    )


def is_constant(values: NDArray[np.float64]) -> bool:
    """Tell whether there is one value, or values that differ by rounding only, or none."""
    if not len(values):
        return True
    largest = max(abs(float(values.max())), abs(float(values.min())))
    return bool(float(np.ptp(values)) <= 4 * np.finfo(np.float64).eps * largest)


def warn_of_oddities(schema: Sequence[ColumnSchema], marked: dict[str, list[str]], what: str) -> None:
    """Warn of marks taken as missing values, of constant columns and of joined levels."""
    if marked:
        marks = ", ".join(map(repr, sorted({mark for of_column in marked.values() for mark in of_column})))
        warn_user(
            f"{what} has text in {listed(list(marked))} that is numbers but for {marks}: read as numbers, with {marks} "
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


# --- cells by a known schema ---------------------------------------------------------------------


def coded_columns(columns: Columns, schema: Sequence[ColumnSchema], what: str = "X") -> Columns:
    """Number the levels of a table as read by the schema; a table whose cells are values already is not copied.

    Cells are numbers, or indices into the schema's levels with -1 for unknown ones; NaN for missing values.
    """
    for known, column in zip(schema, columns.types, strict=True):
        if {known.holds, column.holds} == {"numbers", "dates"}:
            raise _another_kind(column, known, what)
    if all(not known.is_coded and column.levels is None for known, column in zip(schema, columns.types, strict=True)):
        return columns
    given = columns.cells
    cells = given.copy()
    unknown: list[str] = []
    for j, (known, column) in enumerate(zip(schema, columns.types, strict=True)):
        if known.is_coded:
            cells[:, j] = _places(cells[:, j], column, known, what)
            new = _first_unknown(cells[:, j], given[:, j], column)
            if new is not None:
                unknown.append(f"{new!r} in column {known.name!r}")
        elif column.levels is not None:
            cells[:, j] = _values(cells[:, j], column, known, what)
    if unknown:
        shown = ", ".join(unknown[:5]) + (f" and in {len(unknown) - 5} more columns" if len(unknown) > 5 else "")
        warn_user(f"{what} has levels that were not there in training: {shown}; they are taken as a level of their own")
    return Columns(cells, tuple(ColumnType(known.name, known.holds, known.levels) for known in schema))


def _places(cells: NDArray[np.float64], column: ColumnType, schema: ColumnSchema, what: str) -> NDArray[np.float64]:
    """Find a column's levels among those of the schema."""
    assert schema.levels is not None
    place = {level: float(i) for i, level in enumerate(schema.levels)}
    others = place.get(OTHER, -1.0)
    if column.holds == "nothing":
        return cells
    if column.holds != schema.holds:
        raise _another_kind(column, schema, what)
    if column.levels is None:
        values, inverse = np.unique(cells, return_inverse=True)
        places = np.array([np.nan if np.isnan(v) else place.get(float(v), others) for v in values])
        return places[inverse]
    known = np.array([place.get(level, others) for level in column.levels] + [np.nan])
    return known[np.where(np.isnan(cells), -1, cells).astype(np.int64)]


def _first_unknown(places: NDArray[np.float64], cells: NDArray[np.float64], column: ColumnType) -> Level | None:
    lost = np.flatnonzero(places == -1)
    if not len(lost):
        return None
    cell = cells[lost[0]]
    return float(cell) if column.levels is None else column.levels[int(cell)]


def _values(cells: NDArray[np.float64], column: ColumnType, schema: ColumnSchema, what: str) -> NDArray[np.float64]:
    """Read levels where the schema has numbers: text of numbers, or categories of numbers."""
    if schema.holds == "nothing" or column.holds == "nothing":
        return np.full(len(cells), np.nan)
    if schema.holds != "numbers":
        raise _another_kind(column, schema, what)
    values = values_of_levels(column, cells)
    if values is None:
        raise _another_kind(column, schema, what)
    check_range(values[:, None], [schema.name], what)
    return values


def values_of_levels(column: ColumnType, cells: NDArray[np.float64]) -> NDArray[np.float64] | None:
    """Turn indices into levels into the numbers that the levels are or write out; None when a level is not a number."""
    places = np.unique(cells[~np.isnan(cells)]).astype(np.int64)
    assert column.levels is not None
    numbers = as_numbers([str(column.levels[place]) for place in places])
    if numbers is None:
        return None
    by_place = np.full(len(column.levels) + 1, np.nan)  # the last is for missing values
    by_place[places] = numbers
    return by_place[np.where(np.isnan(cells), -1, cells).astype(np.int64)]


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
            chosen[list(names).index(item)] = True
        elif isinstance(item, int | np.integer) and not isinstance(item, bool):
            if not -len(names) <= item < len(names):
                raise ValueError(f"categorical_features has index {item}, and X has {len(names)} columns")
            chosen[int(item)] = True
        else:
            raise ValueError(f"categorical_features has {item!r}, which is no column name or index")
    return chosen


def schema_frame(schema: Sequence[ColumnSchema]) -> pd.DataFrame:
    """Show ``kind``, ``levels``, ``missing`` and ``note`` of every column, one row each."""
    return pd.DataFrame(
        {
            "kind": ["constant" if column.constant else column.kind for column in schema],
            "levels": [column.levels if column.is_coded else None for column in schema],
            "missing": [column.missing for column in schema],
            "note": [column.note for column in schema],
        },
        index=pd.Index([column.name for column in schema], name="column"),
    )
