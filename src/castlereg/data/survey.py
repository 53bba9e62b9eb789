"""The preprocessing of a table that is read in pieces, learned in one pass.

The kinds of columns follow from the same rules as those of a table in memory, see :mod:`castlereg.data.schema`. Those
rules look at the different values of a column and how often each occurs, and that is what is collected here; of
numbers, a few values are enough.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from castlereg.data.preprocessing import Preprocessing
from castlereg.data.reading import Columns, ColumnType, Holds, Level, as_numbers
from castlereg.data.rows import type_key
from castlereg.data.schema import (
    ColumnSchema,
    infer_levels,
    infer_numbers,
    missing_marks,
    values_of_levels,
    warn_of_oddities,
)
from castlereg.data.table import Moments, usable_spread
from castlereg.data.targets import ClassTarget, NumericTarget, Target

_MOST_VALUES = 1_000_000  # different texts that are counted; more than this is no column of levels
_ENOUGH_VALUES = 12  # different numbers beyond which a column is numeric whatever follows
_MOST_CLASSES = 10_000  # that are counted; more are not classes


class KindChanged(ValueError):
    """A column that held one thing in one piece of a table and another in the next."""

    def __init__(self, column: str, before: str, now: str, texts: Sequence[str]) -> None:
        super().__init__(f"column {column!r} holds {before} in one part of the table and {now} in another")
        self.column, self.texts = column, texts


class ColumnSurvey:
    """What the pieces say of one column; ``categorical`` if the user calls it so."""

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
        present = cells[~np.isnan(cells)]
        self.missing += len(cells) - len(present)
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
        """Decide what the column is; return also the marks that make it text."""
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

    def scale(self, schema: ColumnSchema) -> tuple[float, float]:
        """Return what to subtract from the cells and what to divide them by."""
        if schema.kind == "categorical" or self.holds == "nothing":
            return 0.0, 1.0
        moments, lowest, highest = self.moments, self.lowest, self.highest
        if self.is_coded:
            counts = np.array([self.counts[level] for level in self._levels], np.float64)
            values = self._values(schema)
            present = (counts > 0) & ~np.isnan(values)
            moments = Moments.of(values[present][:, None], counts[present], False)
            lowest, highest = values[present].min(), values[present].max()
        if schema.kind == "binary":
            return float(lowest), float(highest - lowest)
        assert moments is not None
        mean = float(moments.mean[0])
        return mean, usable_spread(mean, float(np.sqrt(moments.variance[0])))

    def _values(self, schema: ColumnSchema) -> NDArray[np.float64]:
        """Return the cell of each level: its index in the schema, or the number that it writes out."""
        if schema.levels is not None:
            known = {level: float(i) for i, level in enumerate(schema.levels)}
            return np.array([known.get(level, np.nan) for level in self._levels])
        column = ColumnType(self.name, self.holds, self._levels, self.ordered, self.declared)
        values = values_of_levels(column, np.arange(len(self._levels), dtype=np.float64))
        assert values is not None  # the schema says that they are numbers
        return values


class TableSurvey:
    """What the pieces say of all columns."""

    def __init__(self, names: Sequence[str], categorical: Sequence[bool]) -> None:
        self.columns = [ColumnSurvey(name, listed) for name, listed in zip(names, categorical, strict=True)]

    def add(self, piece: Columns) -> None:
        """Take note of one piece of the table."""
        for j, (survey, column) in enumerate(zip(self.columns, piece.types, strict=True)):
            survey.add(column, piece.column(j))

    def schema(self, what: str, marked: dict[str, list[str]]) -> tuple[ColumnSchema, ...]:
        """Decide what every column is, and warn as of a table in memory; ``marked`` as in :meth:`preprocessing`."""
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

    def preprocessing(
        self, what: str, marked: dict[str, list[str]], targets: tuple[Target, ...], *, clipped: bool
    ) -> Preprocessing:
        """Return the preprocessing of the table; ``marked`` texts were already taken as missing when numbers were read.

        Columns are ordered by type and name: no digest of all rows is at hand.
        """
        schema = self.schema(what, marked)
        nodes = [column.node(clipped) for column in schema]
        order = sorted(range(len(schema)), key=lambda j: (*type_key(nodes[j]), schema[j].name))
        center, spread = np.array([self.columns[j].scale(schema[j]) for j in order]).T
        return Preprocessing(schema, tuple(order), tuple(nodes[j] for j in order), center, spread, targets)


class TargetSurvey:
    """What the pieces say of a target, which is to be predicted as a number or as classes."""

    def __init__(self, name: str, is_numeric: bool) -> None:
        self.name, self.is_numeric, self.n_rows = name, is_numeric, 0
        self.lowest, self.highest = np.inf, -np.inf
        self.moments: Moments | None = None
        self.classes: NDArray[Any] | None = None
        self.counts = np.zeros(0, np.int64)

    def add(self, values: NDArray[Any]) -> None:
        """Take note of one piece, shape (rows,), that was checked."""
        self.n_rows += len(values)
        if self.is_numeric:
            self.lowest, self.highest = min(self.lowest, values.min()), max(self.highest, values.max())
            moments = Moments.of(values[:, None], np.ones(len(values)), False)
            self.moments = moments if self.moments is None else self.moments.and_of(moments)
            return
        classes, counts = np.unique(values, return_counts=True)
        if self.classes is None:
            self.classes, self.counts = classes, counts
            return
        if (classes.dtype.kind in "OUS") != (self.classes.dtype.kind in "OUS"):
            raise ValueError(
                f"column {self.name!r} has text in one part and numbers in another: write it as one of them"
            )
        together, places = np.unique(np.concatenate([self.classes, classes]), return_inverse=True)
        self.counts = np.bincount(places, np.r_[self.counts, counts], len(together)).astype(np.int64)
        self.classes = together
        if len(together) > _MOST_CLASSES:
            raise ValueError(
                f"column {self.name!r} has more than {_MOST_CLASSES:,} classes: for numbers use a regressor"
            )

    def target(self, learn: Callable[[NDArray[Any], str], Target]) -> Target:
        """Learn how to encode the target; ``learn`` raises for constants and single classes."""
        if not self.is_numeric:
            assert self.classes is not None
            return learn(self.classes, self.name)
        assert self.moments is not None
        learn(np.array([self.lowest, self.highest]), self.name)
        return NumericTarget(self.name, float(self.moments.mean[0]), self.spread)

    @property
    def spread(self) -> float:
        """Standard deviation of a target of numbers."""
        assert self.moments is not None
        return float(np.sqrt(self.moments.variance[0]))

    def counts_of(self, target: Target) -> NDArray[np.int64]:
        """Count the rows of every class; all rows of a target of numbers."""
        return self.counts if isinstance(target, ClassTarget) else np.array([self.n_rows])
