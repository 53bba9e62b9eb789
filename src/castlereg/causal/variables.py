"""Variables of discovery and structural models: names, levels, and values as numbers."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from castlereg.notices import warn_user
from castlereg.options import did_you_mean
from castlereg.table.encoding import Preprocessing, Rows
from castlereg.table.reading import read_columns
from castlereg.table.schema import OTHER, ColumnSchema, coded_columns
from castlereg.table.targets import ClassTarget

Array = NDArray[np.float64]
_DAY = pd.Timedelta(days=1)


@dataclass(frozen=True)
class Variable:
    """A column of numbers, or of levels, which are numbered from 0."""

    name: str
    levels: tuple[Any, ...] | None = None  # None for numbers
    holds: Literal["numbers", "dates", "durations"] = "numbers"  # dates are days since 1970, durations days
    schema: ColumnSchema | None = None  # how to read the cells of a column that a model was trained on

    @property
    def n_signals(self) -> int:
        """Number of noise signals: one for a number, one per level otherwise."""
        return 1 if self.levels is None else len(self.levels)

    def code(self, value: Any) -> float:
        """Convert one value to a number."""
        if self.levels is not None:
            position = self._position(value)
            if position is None:
                hint = did_you_mean(str(value), map(str, self.levels))
                known = ", ".join([*map(repr, self.levels[:10]), *["..."] * (len(self.levels) > 10)])
                raise ValueError(f"{self.name!r} has no level {value!r}; its levels are {known}{hint}")
            return position
        try:
            number = float(self._read([value])[0]) if self.schema is not None else self._number(value)
        except (TypeError, ValueError):
            number = np.nan
        if not np.isfinite(number):
            kind = "number" if self.holds == "numbers" else self.holds[:-1]
            raise ValueError(f"the value of {self.name!r} must be a {kind}, got {value!r}")
        return float(number)

    def codes(self, column: Any) -> Array:
        """Convert a column to numbers: NaN for missing values and, with a warning, for unknown levels."""
        if self.schema is not None:
            return self._read(column)
        values = pd.Series(column)
        if self.levels is None:
            if self.holds == "numbers" and pd.api.types.is_numeric_dtype(values):
                return values.to_numpy(np.float64, na_value=np.nan)
            return values.map({value: self.code(value) for value in values.dropna().unique()}).to_numpy(np.float64)
        known = {value: self._position(value) for value in values.dropna().unique()}
        self._warn_of([value for value, position in known.items() if position is None])
        positions = values.map({value: position for value, position in known.items() if position is not None})
        return positions.to_numpy(np.float64, na_value=np.nan)

    def _number(self, value: Any) -> float:
        if self.holds == "dates":
            return float((pd.Timestamp(value) - pd.Timestamp(0)) / _DAY)
        if self.holds == "durations" and not isinstance(value, int | float | np.number):
            return float(pd.Timedelta(value) / _DAY)
        return float(value)

    def _position(self, value: Any) -> float | None:
        """Return the number of a level, passed as a value or as text; None if it is unknown."""
        levels = list(self.levels or ())
        for position, level in enumerate(levels):
            if level == value or str(level) == str(value):
                return float(position)
        if not any(isinstance(level, str) for level in levels):
            try:
                return next((float(i) for i, level in enumerate(levels) if float(level) == float(value)), None)
            except (TypeError, ValueError):
                return None
        return float(levels.index(OTHER)) if OTHER in levels else None

    def _read(self, column: Any) -> Array:
        """Read a column as the model reads it."""
        assert self.schema is not None
        if self.schema.kind == "unusable":
            return np.zeros(len(column))
        frame = pd.DataFrame({self.name: column})
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # about new levels; _warn_of reports them below
            cells = coded_columns(read_columns(frame, "the table"), [self.schema], "the table").column(0)
        if self.levels is None:
            return cells
        if self.schema.levels is None:  # numbers of two values
            positions = np.minimum(np.searchsorted(self.levels, cells), len(self.levels) - 1)
            known = np.asarray(self.levels, np.float64)[positions] == cells
            cells = np.where(known, positions, np.where(np.isnan(cells), np.nan, -1))
        unknown = cells == -1
        self._warn_of(pd.Series(column)[unknown].unique().tolist())
        return np.where(unknown, np.nan, cells)

    def _warn_of(self, unknown: Sequence[Any]) -> None:
        if unknown:
            shown = ", ".join(map(repr, unknown[:5]))
            warn_user(f"{self.name!r} has no level {shown}; these values are treated as missing")

    def decode(self, codes: Array) -> Any:
        """Convert numbers to a column of values."""
        if self.schema is not None and self.schema.kind == "unusable":
            return np.full(len(codes), np.nan)
        if self.levels is None:
            if self.holds == "numbers":
                return codes
            unit = pd.to_timedelta(codes, unit="D")
            return unit if self.holds == "durations" else pd.Timestamp(0) + unit
        missing = np.isnan(codes)
        positions = np.where(missing, -1, codes).astype(np.int64)
        if any(isinstance(level, str) for level in self.levels):
            return pd.Categorical.from_codes(positions, [str(level) for level in self.levels])
        labels = np.array(self.levels)[np.maximum(positions, 0)]
        return np.where(missing, np.nan, labels.astype(np.float64)) if missing.any() else labels


def index_of(name: Any, variables: Sequence[Variable]) -> int:
    """Return the position of a variable; unknown names raise a KeyError."""
    names, name = [variable.name for variable in variables], str(name)
    if name not in names:
        raise KeyError(f"unknown column {name!r}; the columns are {', '.join(names)}{did_you_mean(str(name), names)}")
    return names.index(name)


def fixed_codes(values: Mapping[str, Any], variables: Sequence[Variable]) -> dict[int, float]:
    """Convert the values of an intervention to numbers, by the positions of their variables."""
    positions = {name: index_of(name, variables) for name in values}
    return {position: variables[position].code(values[name]) for name, position in positions.items()}


def as_frame(values: Array, variables: Sequence[Variable], index: Any = None) -> pd.DataFrame:
    """Convert numbers, shape (variables, rows), to a table."""
    if all(variable.levels is None and variable.holds == "numbers" for variable in variables):
        return pd.DataFrame(values.T, index=index, columns=[variable.name for variable in variables], copy=False)
    columns = {variable.name: variable.decode(codes) for variable, codes in zip(variables, values, strict=True)}
    return pd.DataFrame(columns, index=index)


def from_frame(rows: pd.DataFrame, variables: Sequence[Variable]) -> Array:
    """Convert a table with a column for every variable to numbers, shape (variables, rows)."""
    if not isinstance(rows, pd.DataFrame):
        raise ValueError(f"rows must be a DataFrame with the columns of the model, got a {type(rows).__name__}")
    columns = {str(name): rows[name] for name in rows.columns}
    absent = [variable.name for variable in variables if variable.name not in columns]
    if absent:
        raise ValueError(f"the rows have no column {', '.join(map(repr, absent))}; pass all columns of the model")
    return np.stack([variable.codes(columns[variable.name]) for variable in variables])


@dataclass(frozen=True, eq=False)
class Variables:
    """The columns and targets of a table with their rows, for discovery and structural equations.

    Parameters
    ----------
    columns : sequence of Variable
    values : array of shape (rows, variables)
        Numbers, and levels as their numbers; NaN where they are missing.
    weight : array of shape (rows,), optional
        Weights of the rows; all equal by default.
    """

    columns: tuple[Variable, ...]
    values: Array
    weight: Array

    def __init__(self, columns: Sequence[Variable], values: Array, weight: Array | None = None) -> None:
        weight = np.ones(len(values)) if weight is None else np.asarray(weight, np.float64)
        for name, content in (("columns", tuple(columns)), ("values", np.asfortranarray(values)), ("weight", weight)):
            object.__setattr__(self, name, content)

    @classmethod
    def of_frame(
        cls, frame: pd.DataFrame, columns: Sequence[Variable] | None = None, weight: Array | None = None
    ) -> Variables:
        """Read a table; by default, categorical columns have levels and all others are numbers.

        Examples
        --------
        >>> import pandas as pd
        >>> table = Variables.of_frame(pd.DataFrame({"age": [30, 40], "sex": pd.Categorical(["f", "m"])}))
        >>> table.values.tolist(), table.n_levels
        ([[30.0, 0.0], [40.0, 1.0]], [0, 2])
        """
        if columns is None:
            levels = [tuple(c.cat.categories) if c.dtype == "category" else None for _, c in frame.items()]
            columns = [Variable(str(name), column_levels) for name, column_levels in zip(frame, levels, strict=True)]
        return cls(columns, from_frame(frame, columns).T, weight)

    @classmethod
    def of_rows(cls, preprocessing: Preprocessing, rows: Rows) -> Variables:
        """Return the columns and targets of rows that are coded by a preprocessing, in the user's order."""
        features = [_feature(column, rows.columns.column(j)) for j, column in enumerate(preprocessing.schema)]
        targets = [
            (Variable(target.name, tuple(target.classes.tolist())), target.codes(values).astype(np.float64))
            if isinstance(target, ClassTarget)
            else (Variable(target.name), np.asarray(values, np.float64))
            for target, values in zip(preprocessing.targets, rows.targets, strict=True)
        ]
        columns, values = zip(*features, *targets, strict=True)
        return cls(columns, np.stack(values, axis=1), rows.weight)

    @property
    def names(self) -> list[str]:
        """Names of the variables."""
        return [variable.name for variable in self.columns]

    @property
    def n_levels(self) -> list[int]:
        """Number of levels of every variable; 0 for numbers."""
        return [len(variable.levels or ()) for variable in self.columns]

    def take(self, rows: NDArray[np.int64]) -> Variables:
        """Keep some rows, in this order."""
        return Variables(self.columns, self.values[rows], self.weight[rows])


def _feature(column: ColumnSchema, cells: Array) -> tuple[Variable, Array]:
    """Return a column as a variable: with levels if it has levels or two numbers, otherwise numeric."""
    if column.levels is not None:
        return Variable(column.name, tuple(column.levels), schema=column), np.where(cells < 0, np.nan, cells)
    levels = np.unique(cells[np.isfinite(cells)])
    if column.kind == "binary" and column.holds == "numbers" and len(levels) == 2:
        codes = np.where(np.isfinite(cells), np.searchsorted(levels, cells), np.nan)
        return Variable(column.name, tuple(levels.tolist()), schema=column), codes
    holds: Any = column.holds if column.holds in ("dates", "durations") else "numbers"
    return Variable(column.name, None, holds, column), cells
