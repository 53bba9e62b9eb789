"""The variables of a structural model: names, levels, and how values are written as numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from castlereg.options import did_you_mean

Array = NDArray[np.float64]
_DAY = pd.Timedelta(days=1)


@dataclass(frozen=True)
class Variable:
    """A node of a structural model: a column of numbers, or of levels, which are counted from 0."""

    name: str
    levels: tuple[Any, ...] | None = None  # None for numbers
    holds: Literal["numbers", "dates", "durations"] = "numbers"  # dates are days since 1970, durations days

    @property
    def n_signals(self) -> int:
        """Rows of its noise: one for a number, one per level otherwise."""
        return 1 if self.levels is None else len(self.levels)

    def code(self, value: Any) -> float:
        """Write one value as a number."""
        if self.levels is not None:
            for position, level in enumerate(self.levels):
                if level == value or str(level) == str(value):
                    return float(position)
            hint = did_you_mean(str(value), map(str, self.levels))
            known = ", ".join(repr(level) for level in self.levels[:10]) + (", ..." if len(self.levels) > 10 else "")
            raise ValueError(f"{self.name!r} has no level {value!r}; its levels are {known}{hint}")
        try:
            if self.holds == "dates":
                number = (pd.Timestamp(value) - pd.Timestamp(0)) / _DAY
            elif self.holds == "durations" and not isinstance(value, int | float | np.number):
                number = pd.Timedelta(value) / _DAY
            else:
                number = float(value)
        except (TypeError, ValueError):
            number = np.nan
        if not np.isfinite(number):
            raise ValueError(f"the value of {self.name!r} must be a finite number, got {value!r}")
        return float(number)

    def codes(self, column: Any) -> Array:
        """Write a column as numbers, NaN where values are missing."""
        values = pd.Series(column)
        if self.levels is None and self.holds == "numbers" and pd.api.types.is_numeric_dtype(values):
            return values.to_numpy(np.float64, na_value=np.nan)
        known: dict[Any, float] = {}
        for value in values.dropna().unique():
            known[value] = self.code(value)
        return values.map(known).to_numpy(np.float64, na_value=np.nan)

    def decode(self, codes: Array) -> Any:
        """Turn numbers into a column of values."""
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
    names = [variable.name for variable in variables]
    if name not in names:
        raise KeyError(
            f"there is no column {name!r}; the columns are {', '.join(names)}{did_you_mean(str(name), names)}"
        )
    return names.index(name)


def fixed_codes(values: Mapping[str, Any], variables: Sequence[Variable]) -> dict[int, float]:
    """Write the values of an intervention as numbers, by the position of their variables."""
    positions = {name: index_of(name, variables) for name in values}
    return {position: variables[position].code(values[name]) for name, position in positions.items()}


def as_frame(values: Array, variables: Sequence[Variable], index: Any = None) -> pd.DataFrame:
    """Turn numbers, shape (variables, rows), into a table."""
    if all(variable.levels is None and variable.holds == "numbers" for variable in variables):
        return pd.DataFrame(values.T, index=index, columns=[variable.name for variable in variables], copy=False)
    columns = {variable.name: variable.decode(of_one) for variable, of_one in zip(variables, values, strict=True)}
    return pd.DataFrame(columns, index=index)


def from_frame(rows: pd.DataFrame, variables: Sequence[Variable]) -> Array:
    """Turn a table with a column for every variable into numbers, shape (variables, rows)."""
    absent = [variable.name for variable in variables if variable.name not in rows.columns]
    if absent:
        raise ValueError(f"the rows have no column {', '.join(map(repr, absent))}: all columns of the model are needed")
    return np.stack([variable.codes(rows[variable.name]) for variable in variables])
