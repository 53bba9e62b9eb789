"""Preprocessing of a table that is read in pieces, learned in one pass.

The kinds of columns follow the same rules as for a table in memory, see :mod:`castlereg.table.schema`; the scales are
computed from moments that are updated piece by piece.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from castlereg.table.coding import known_levels, values_of_levels
from castlereg.table.dates import as_dates, only_reading
from castlereg.table.preprocessing import Preprocessing, feature_nodes
from castlereg.table.reading import Columns, ColumnType
from castlereg.table.rows import type_key
from castlereg.table.schema import ColumnSchema, ColumnSurvey, KindChanged, schema_of
from castlereg.table.table import Moments, usable_spread
from castlereg.table.targets import ClassTarget, NumericTarget, Target
from castlereg.table.texts import MISSING_MARKS, as_numbers
from castlereg.target_losses import TargetLoss

_MOST_VALUES = 1_000_000  # most different texts to count; more are not levels
_MOST_CLASSES = 10_000  # most classes to count


class MeasuredColumn(ColumnSurvey):
    """Statistics of one column, collected piece by piece, which decide its kind and scale."""

    moments: Moments | None = None

    def add(self, column: ColumnType, cells: NDArray[np.float64]) -> None:
        """Add one piece, shape (rows,)."""
        if self.reading and column.holds == "text":
            column, cells = self._as_dates(column, cells)
        super().add(column, cells)
        if len(self.counts) > _MOST_VALUES and not self.too_many:
            self._end_counting(column)
        present = cells[~np.isnan(cells)]
        if column.levels is None and len(present):
            self._measure(present, np.ones(len(present)))

    def _measure(self, values: NDArray[np.float64], weight: NDArray[np.float64]) -> None:
        moments = Moments.of(values[:, None], weight, False)
        self.moments = moments if self.moments is None else self.moments.and_of(moments)

    def _end_counting(self, column: ColumnType) -> None:
        """Read the texts as dates from now on, or stop counting them, because there are too many."""
        counts, self.counts = self.counts, Counter()
        texts = [str(level) for level in counts] if column.holds == "text" and not column.declared else []
        if texts and all(as_numbers([text]) is not None for text in texts):
            raise KindChanged(column.name, "text", "numbers", texts)
        dates = {} if self.categorical else as_dates(texts, MISSING_MARKS)
        if not dates:
            self.too_many, self.counts = True, counts
            return
        self.reading, days = only_reading(dates, texts, f"the table has dates in column {column.name!r}")
        present, weight = ~np.isnan(days), np.array(list(counts.values()), np.float64)
        self.type, self.missing = ColumnType(column.name, "dates"), self.missing + int(weight[~present].sum())
        super().add(self.type, days[present])
        self._measure(days[present & (weight > 0)], weight[present & (weight > 0)])

    def _as_dates(self, column: ColumnType, cells: NDArray[np.float64]) -> tuple[ColumnType, NDArray[np.float64]]:
        dates = replace(column, holds="dates", levels=None)
        schema = ColumnSchema(column.name, "numeric", "dates", None, 0, False, reading=self.reading)
        return dates, values_of_levels(cells, column, schema, "the table")

    def scale(self, schema: ColumnSchema) -> tuple[float, float]:
        """Return the shift and divisor of the cells."""
        if schema.kind == "categorical" or schema.holds == "nothing":
            return 0.0, 1.0
        moments, lowest, highest = self.moments, self.lowest, self.highest
        if schema.is_coded or self.type.levels is not None:
            column, counts = self.counted_levels()
            indices = np.arange(len(counts), dtype=np.float64)
            # The cell of each level: its index in the schema, or the number that its text represents.
            cells = (known_levels if schema.is_coded else values_of_levels)(indices, column, schema, "")
            present = ~np.isnan(cells)
            moments = Moments.of(cells[present][:, None], counts[present].astype(np.float64), False)
            lowest, highest = cells[present].min(), cells[present].max()
        if schema.kind == "binary":
            return float(lowest), float(highest - lowest)
        assert moments is not None
        mean = float(moments.mean[0])
        return mean, usable_spread(mean, float(np.sqrt(moments.variance[0])))


class TableSurvey:
    """Statistics of all columns, collected piece by piece."""

    def __init__(self, names: Sequence[str], categorical: Sequence[bool]) -> None:
        self.columns = list(map(MeasuredColumn, names, categorical))

    def add(self, piece: Columns) -> None:
        """Add one piece of the table."""
        for j, (survey, column) in enumerate(zip(self.columns, piece.types, strict=True)):
            survey.add(column, piece.column(j))

    def preprocessing(
        self,
        what: str,
        marked: Mapping[str, Sequence[str]],
        targets: tuple[Target, ...],
        *,
        clipped: bool,
        drop_unusable: bool = False,
        monotone: Sequence[int] | None = None,
    ) -> Preprocessing:
        """Return the preprocessing of the table; ``marked`` texts were already read as missing values.

        Columns are ordered by type and name, because a digest of all rows is not available.
        """
        schema = schema_of(self.columns, what, marked, drop_unusable=drop_unusable)
        nodes = feature_nodes(schema, clipped, monotone)
        order = sorted(range(len(schema)), key=lambda j: (*type_key(nodes[j]), schema[j].name))
        center, spread = np.array([self.columns[j].scale(schema[j]) for j in order]).T
        return Preprocessing(schema, tuple(order), tuple(nodes[j] for j in order), center, spread, targets)


_MOST_KEPT = 100_000  # values, enough for accurate quartiles


class TargetSurvey:
    """Statistics of a target, collected piece by piece: a number to predict, or classes."""

    def __init__(self, name: str, is_numeric: bool, loss: TargetLoss | None = None) -> None:
        self.name, self.is_numeric, self.loss, self.n_rows = name, is_numeric, loss, 0
        self._some, self._chance = np.zeros(0), np.zeros(0)  # random values, for losses that need them
        self._rng = np.random.default_rng(0)
        self._numbers = MeasuredColumn(name, categorical=False)
        self._classes: NDArray[Any] | None = None
        self._counts = np.zeros(0, np.int64)

    def add(self, values: NDArray[Any]) -> None:
        """Add one piece of checked values, shape (rows,)."""
        self.n_rows += len(values)
        if self.is_numeric:
            self._numbers.add(ColumnType(self.name), values)
            if self.loss is not None:
                self.loss.check(values, f"column {self.name!r}")
                self._keep_some(values)
            return
        before = values[:0] if self._classes is None else self._classes
        was, now = ("text" if part.dtype.kind in "OUS" else "numbers" for part in (before, values))
        if was != now:
            raise KindChanged(self.name, was, now, ())
        classes, counts = np.unique(values, return_counts=True)
        self._classes, index = np.unique(np.concatenate([before, classes]), return_inverse=True)
        self._counts = np.bincount(index, np.r_[self._counts, counts], len(self._classes)).astype(np.int64)
        if len(self._classes) > _MOST_CLASSES:
            raise ValueError(
                f"column {self.name!r} has more than {_MOST_CLASSES:,} classes: if they are numbers, use a regressor"
            )

    def _keep_some(self, values: NDArray[np.float64]) -> None:
        """Keep the values with the lowest random numbers: a uniform random sample."""
        chance = np.r_[self._chance, self._rng.random(len(values))]
        positions = np.sort(np.argsort(chance)[:_MOST_KEPT])
        self._some, self._chance = np.r_[self._some, values][positions], chance[positions]

    def target(self) -> Target:
        """Learn how to encode the target; constants and single classes raise."""
        if not self.is_numeric:
            assert self._classes is not None
            return ClassTarget.of_counted(self._classes, self._counts, self.name)
        NumericTarget.fit(np.array([self._numbers.lowest, self._numbers.highest]), self.name)
        assert self._numbers.moments is not None
        if self.loss is not None:
            mean = float(self._numbers.moments.mean[0])
            return NumericTarget(self.name, *self.loss.center_and_spread(self._some, mean, self.spread), self.loss)
        return NumericTarget(self.name, float(self._numbers.moments.mean[0]), self.spread)

    @property
    def spread(self) -> float:
        """Standard deviation of a numeric target."""
        assert self._numbers.moments is not None
        return float(np.sqrt(self._numbers.moments.variance[0]))

    def counts_of(self, target: Target) -> NDArray[np.int64]:
        """Return the number of rows of every class, or of all rows for a numeric target."""
        return self._counts if isinstance(target, ClassTarget) else np.array([self.n_rows])
