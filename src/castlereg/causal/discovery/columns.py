"""Columns of a table for the judge: values, and features in which functions of them are linear."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri
from scipy.stats import rankdata

from castlereg.table.table import Table

_WAVES = 7  # cosines of the rank of a number, in addition to the number itself
_OF_VALUE, _OF_WAVE, _OF_LEVEL = 1e-4, 0.1, 0.1  # penalties; those of waves increase with the square of their frequency

_NEARLY_NORMAL = 0.998  # correlation of a number with its normal scores


@dataclass(frozen=True)
class Column:
    """One node: numbers with mean 0 and variance 1, or levels represented by their numbers."""

    values: NDArray[np.float64]  # (rows,); missing values are zero or a separate level
    levels: int = 0  # 0 for a number
    present: NDArray[np.bool_] | None = None  # (rows,), True where a number is not missing; None if none is

    @cached_property
    def ranks(self) -> NDArray[np.float64]:
        """Ranks of the values, between 0 and 1."""
        return np.asarray((rankdata(self.values) - 0.5) / len(self.values))

    @cached_property
    def normal(self) -> NDArray[np.float64]:
        """Normal scores of the values, from their ranks."""
        return np.asarray(ndtri(self.ranks))

    @cached_property
    def is_nearly_normal(self) -> bool:
        """Whether normal scores hardly differ from the values."""
        return bool(np.corrcoef(self.values, self.normal)[0, 1] > _NEARLY_NORMAL)

    @cached_property
    def features(self) -> NDArray[np.float64]:
        """Features, shape (rows, features), in which functions of the column are nearly linear."""
        if self.levels:
            return np.eye(self.levels)[self.values.astype(np.int64)]
        waves = np.sqrt(2) * np.cos(np.pi * self.ranks[:, None] * np.arange(1, _WAVES + 1))
        missing = [] if self.present is None else [~self.present[:, None]]
        return np.concatenate([self.values[:, None], waves, *missing], axis=1)

    @property
    def penalties(self) -> NDArray[np.float64]:
        """Penalty of every feature."""
        if self.levels:
            return np.full(self.levels, _OF_LEVEL)
        missing = [] if self.present is None else [_OF_LEVEL]
        return np.r_[_OF_VALUE, _OF_WAVE * np.square(np.arange(1, _WAVES + 1)), missing]


def number(values: NDArray[np.float64]) -> Column:
    """Create a numeric column; missing values are NaN."""
    present = np.isfinite(values)
    center, spread = float(np.mean(values[present])), float(np.std(values[present]))
    scaled = (np.where(present, values, center) - center) / (spread if spread > 0 else 1.0)
    return Column(scaled, present=None if present.all() else present)


def columns_of(table: Table) -> Sequence[Column]:
    """Return the nodes of an encoded table; missing values of levels become a separate level."""
    layout, columns = table.layout, []
    for k, node in enumerate(layout.nodes):
        first = int(np.flatnonzero(layout.channel_nodes == k)[0])
        channels = table.inputs[:, first : first + node.levels].astype(np.float64)
        if node.kind == "numeric":
            columns.append(number(channels[:, 0]))
            continue
        missing = np.isnan(channels[:, 0])
        codes = channels[:, 0] > 0.5 if node.kind == "binary" else channels.argmax(axis=1)
        levels = 2 if node.kind == "binary" else node.levels
        values = np.where(missing, levels, codes).astype(np.float64)
        columns.append(Column(values, levels + int(missing.any())))
    return columns
