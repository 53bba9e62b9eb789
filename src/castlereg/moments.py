"""Means and variances of long tables, block by block."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

# Rows that are looked at in one piece, in float64, summed as NumPy does; and the pieces of longer tables.
MOST_AT_ONCE = 65_536
_PIECE = 8192


class Moments(NamedTuple):
    """Weight, mean and variance of the cells that are there, channel by channel."""

    total: NDArray[np.float64]  # (channels,), weight of the cells
    mean: NDArray[np.float64]  # (channels,), 0 where there is no cell
    variance: NDArray[np.float64]  # (channels,)

    @classmethod
    def of(cls, rows: NDArray[np.float64], weight: NDArray[np.float64], has_gaps: bool) -> Moments:
        """Measure rows, shape (rows, channels), that have NaN for gaps."""
        if not has_gaps:
            mean = np.average(rows, axis=0, weights=weight)
            variance = np.average((rows - mean) ** 2, axis=0, weights=weight)
            return cls(np.full(rows.shape[1], weight.sum()), mean, variance)
        present = ~np.isnan(rows)
        share = weight[:, None] * present
        total = share.sum(axis=0)
        share /= np.where(total > 0, total, 1.0)
        rows = np.where(present, rows, 0.0)
        mean = np.sum(share * rows, axis=0)
        return cls(total, mean, np.sum(share * (rows - mean) ** 2, axis=0))

    def and_of(self, other: Moments) -> Moments:
        """Return the moments of the rows of both, by sums of deviations from the means: no digits are lost.

        Examples
        --------
        >>> import numpy as np
        >>> rows = np.array([[1.0], [2.0], [6.0]])
        >>> parts = [Moments.of(part, np.ones(len(part)), False) for part in (rows[:1], rows[1:])]
        >>> both = parts[0].and_of(parts[1])
        >>> float(both.mean[0]), round(float(both.variance[0]), 4)
        (3.0, 4.6667)
        """
        total = self.total + other.total
        share = other.total / np.where(total > 0, total, 1.0)
        apart = other.mean - self.mean
        variance = (1 - share) * self.variance + share * other.variance + share * (1 - share) * apart**2
        return Moments(total, self.mean + share * apart, np.where(total > 0, variance, 0.0))

    @classmethod
    def joined(cls, parts: Sequence[Moments]) -> Moments:
        """Return the moments of the rows of all parts."""
        return reduce(cls.and_of, parts)


def blocks(n_rows: int, size: int | None = None) -> Iterator[slice]:
    """Cut rows into blocks: the rows of a long table, or all rows into blocks of a size.

    Examples
    --------
    >>> list(blocks(5, 2))
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    size = size or (n_rows if n_rows <= MOST_AT_ONCE else _PIECE)
    for start in range(0, n_rows, max(size, 1)):
        yield slice(start, min(start + size, n_rows))
