"""What a table holds, learned in one pass over its pieces: kinds, levels, gaps and scales.

The kinds follow from the same rules as those of a table in memory, see :mod:`castlereg.data.schema`. Those rules look
at the different values of a column and how often each occurs, and that is what is collected here; of numbers, a
few values are enough.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from castlereg.data.encoding import Scaling
from castlereg.data.reading import Columns, ColumnType, Holds, Level, as_numbers
from castlereg.data.schema import (
    ColumnSchema,
    infer_levels,
    infer_numbers,
    missing_marks,
    values_of_levels,
    warn_of_oddities,
)
from castlereg.moments import Moments

_MOST_VALUES = 1_000_000  # different texts that are counted; more than this is no column of levels
_ENOUGH_VALUES = 12  # different numbers beyond which a column is numeric whatever follows


class KindChanged(ValueError):
    """A column that held one thing in one piece of a table and another in the next."""

    def __init__(self, column: str, before: str, now: str, texts: Sequence[str]) -> None:
        super().__init__(f"column {column!r} holds {before} in one part of the table and {now} in another")
        self.column, self.texts = column, texts


class ColumnSurvey:
    """What was seen of one column.

    Parameters
    ----------
    name : str
    categorical : bool
        Whether the user calls it categorical.
    """

    def __init__(self, name: str, categorical: bool) -> None:
        self.name, self.categorical = name, categorical
        self.holds: Holds = "nothing"
        self.ordered = self.declared = False
        self.missing = 0
        self.counts: Counter[Level] = Counter()  # of levels, and of the values of a categorical column of numbers
        self.is_coded = False
        self.some: set[float] = set()
        self.lowest, self.highest = np.inf, -np.inf
        self.moments: Moments | None = None

    def add(self, column: ColumnType, cells: NDArray[np.float64]) -> None:
        """Take note of one piece, shape (rows,)."""
        gaps = np.isnan(cells)
        present = cells[~gaps]
        self.missing += int(gaps.sum())
        if not len(present) and column.levels is None:
            return
        if self.holds == "nothing":
            self.holds, self.ordered, self.declared = column.holds, column.ordered, column.declared
            self.is_coded = column.levels is not None
        elif self.holds != column.holds or self.is_coded != (column.levels is not None):
            texts = column.levels if column.holds == "text" else list(self.counts) if self.holds == "text" else ()
            raise KindChanged(self.name, self.holds, column.holds, [str(t) for t in texts or ()])
        if column.levels is not None:
            self._count(column.levels, np.bincount(present.astype(np.int64), minlength=len(column.levels)))
            return
        if self.categorical:
            values, counts = np.unique(present, return_counts=True)
            self._count([float(v) for v in values], counts)
        if len(self.some) < _ENOUGH_VALUES:
            self.some.update(np.unique(present)[:_ENOUGH_VALUES].tolist())
        self.lowest, self.highest = min(self.lowest, present.min()), max(self.highest, present.max())
        moments = Moments.of(present[:, None], np.ones(len(present)), False)
        self.moments = moments if self.moments is None else self.moments.and_of(moments)

    def _count(self, levels: Sequence[Level], counts: NDArray[np.int64]) -> None:
        if self.ordered:
            known = list(self.counts)
            if known and known != list(levels):
                raise ValueError(
                    f"column {self.name!r} has ordered categories {known} in one part of the table and {list(levels)} "
                    "in another: write it with the same categories throughout"
                )
        self.counts.update(dict(zip(levels, counts.tolist(), strict=True)))
        if len(self.counts) > _MOST_VALUES:
            texts = [str(level) for level in self.counts] if self.holds == "text" and not self.declared else []
            if any(as_numbers([text]) is None for text in texts) or not texts:
                raise ValueError(
                    f"column {self.name!r} has more than {_MOST_VALUES:,} different values, such as {levels[0]!r}: it "
                    "looks like free text or an identifier; leave it out by columns=[...]"
                )
            raise KindChanged(self.name, "text", "numbers", texts)

    @property
    def _levels(self) -> tuple[Level, ...]:
        return tuple(self.counts) if self.ordered else tuple(sorted(self.counts, key=lambda level: level))

    def schema(self, what: str) -> tuple[ColumnSchema, list[str]]:
        """Decide what the column is; return also the marks for which alone it is text."""
        if not (self.is_coded or (self.categorical and len(self.counts) > 1)):
            values = np.array([*self.some, *([self.lowest, self.highest] if self.some else [])])
            cells = np.r_[values, [np.nan] * (self.missing > 0)]
            schema = infer_numbers(ColumnType(self.name, self.holds), cells, False, what)
            return replace(schema, missing=self.missing), []
        column = ColumnType(self.name, self.holds, self._levels, self.ordered, self.declared)
        places = np.arange(len(self._levels), dtype=np.float64)
        counts = np.array([self.counts[level] for level in self._levels])
        marks = [] if self.categorical else missing_marks(column, places[counts > 0])
        if not marks:
            return infer_levels(column, counts, self.missing, what), []
        values_of = values_of_levels(column, places)
        assert values_of is not None  # that is what marks mean
        note = f"text of numbers and {', '.join(map(repr, marks))}"
        schema = infer_numbers(ColumnType(self.name), values_of[counts > 0], False, what, note)
        return replace(schema, missing=self.missing + int(counts[np.isnan(values_of)].sum())), marks

    def scaling(self, schema: ColumnSchema) -> Scaling:
        """Return where the column lies and how far it spreads."""
        if schema.kind == "categorical" or self.holds == "nothing":
            return Scaling(np.zeros(1), np.ones(1))
        moments, lowest, highest = self.moments, self.lowest, self.highest
        if self.is_coded:
            column = ColumnType(self.name, self.holds, self._levels, self.ordered, self.declared)
            counts = np.array([self.counts[level] for level in self._levels], np.float64)
            values = np.arange(len(counts), dtype=np.float64)
            if schema.levels is not None:
                known = {level: float(i) for i, level in enumerate(schema.levels)}
                values = np.array([known.get(level, np.nan) for level in self._levels])
            else:
                values = values_of_levels(column, values)  # type: ignore[assignment]
            seen = (counts > 0) & ~np.isnan(values)
            moments = Moments.of(values[seen][:, None], counts[seen], False)
            lowest, highest = values[seen].min(), values[seen].max()
        assert moments is not None
        if schema.kind == "binary":
            return Scaling(np.array([lowest]), np.array([highest - lowest]))
        spread = np.sqrt(moments.variance)
        varies = spread > 4 * np.finfo(np.float64).eps * np.abs(moments.mean)
        return Scaling(moments.mean, np.where(varies, spread, 1.0))


class TableSurvey:
    """What was seen of all columns.

    Parameters
    ----------
    names : sequence of str
    categorical : sequence of bool
        Which columns the user calls categorical.
    """

    def __init__(self, names: Sequence[str], categorical: Sequence[bool]) -> None:
        self.columns = [ColumnSurvey(name, listed) for name, listed in zip(names, categorical, strict=True)]

    def add(self, piece: Columns) -> None:
        """Take note of one piece of the table."""
        for j, (survey, column) in enumerate(zip(self.columns, piece.types, strict=True)):
            survey.add(column, piece.column(j))

    def schema(self, what: str, marked: dict[str, list[str]]) -> tuple[ColumnSchema, ...]:
        """Decide what every column is, and warn as of a table in memory.

        Parameters
        ----------
        what : str
            Name of the table in messages.
        marked : dict of str to list of str
            Texts that were already taken as gaps when columns of numbers were read.
        """
        schemas = []
        marked = dict(marked)
        for survey in self.columns:
            schema, marks = survey.schema(what)
            if survey.name in marked:
                schema = replace(schema, note=f"text of numbers and {', '.join(map(repr, marked[survey.name]))}")
            elif marks:
                marked[survey.name] = marks
            schemas.append(schema)
        warn_of_oddities(schemas, marked, what)
        return tuple(schemas)
