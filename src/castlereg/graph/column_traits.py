"""Traits of the columns that might have set the arrows: their scale, and how well the others predict them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from castlereg.data.scaling import Moments
from castlereg.graph.sortability import (
    column_variances,
    explained_by_factor,
    explained_by_the_others,
    share_of_paths_upwards,
)

_TELLING = 0.8  # a remark is made if more than this share of the paths, or less than the rest of it, follow an order
_MOST_COLUMNS = 150  # a regression for each, where some are sums of others


@dataclass(frozen=True)
class ColumnTraits:
    """Variance and predictability of the nodes of a graph.

    Parameters
    ----------
    variance : tuple of float
        Of each node, in the units of the table; NaN for nodes that are not numeric.
    explained : tuple of float
        R², the share of each node's variance that a linear regression on the others explains; NaN as above.
    """

    variance: tuple[float, ...]
    explained: tuple[float, ...]

    @classmethod
    def of(cls, values: NDArray[np.float64], is_number: NDArray[np.bool_]) -> ColumnTraits | None:
        """Measure the numeric ones of the columns, shape (rows, nodes); None when there are too many.

        Examples
        --------
        >>> import numpy as np
        >>> values = np.array([[0.0, 0.0, 7.0], [1.0, 2.0, 9.0], [2.0, 4.1, 8.0]])
        >>> traits = ColumnTraits.of(values, np.array([True, True, False]))
        >>> np.round(traits.variance, 2)
        array([0.67, 2.8 ,  nan])
        """
        if is_number.sum() > _MOST_COLUMNS:
            return None
        numbers = values[:, is_number]
        variance, explained = np.full((2, len(is_number)), np.nan)
        if is_number.any():
            size = np.nanmax(np.abs(numbers), axis=0)
            scaled = numbers / np.where(size > 0, size, 1.0)  # squares of very large numbers would not be numbers
            with np.errstate(over="ignore"):
                variance[is_number] = column_variances(scaled) * size * size
            explained[is_number] = explained_by_the_others(scaled)
        return cls(tuple(map(float, variance)), tuple(map(float, explained)))

    @classmethod
    def of_blocks(
        cls, blocks: Callable[[], Iterable[NDArray[np.float64]]], is_number: NDArray[np.bool_]
    ) -> ColumnTraits | None:
        """Measure columns of a long table, given as a function that iterates over its blocks; see :meth:`of`.

        Examples
        --------
        >>> import numpy as np
        >>> values = np.array([[0.0, 0.0], [1.0, 2.0], [2.0, 4.1], [3.0, 5.0]])
        >>> whole = ColumnTraits.of(values, np.array([True, True]))
        >>> parts = ColumnTraits.of_blocks(lambda: [values[:1], values[1:]], np.array([True, True]))
        >>> np.allclose(parts.variance, whole.variance), np.allclose(parts.explained, whole.explained)
        (True, True)
        """
        if is_number.sum() > _MOST_COLUMNS:
            return None
        variance, explained = np.full((2, len(is_number)), np.nan)
        width = int(is_number.sum())
        if width == 0:
            return cls(tuple(variance), tuple(explained))
        lowest, highest = np.full(width, np.inf), np.full(width, -np.inf)
        for block in blocks():
            lowest = np.fmin(lowest, np.fmin.reduce(block[:, is_number], axis=0))
            highest = np.fmax(highest, np.fmax.reduce(block[:, is_number], axis=0))
        size, varies = np.maximum(np.abs(lowest), np.abs(highest)), lowest < highest
        size = np.where(size > 0, size, 1.0)
        scaled = ((block[:, is_number] / size) for block in blocks())
        moments = Moments.joined([Moments.of(block, np.ones(len(block)), True) for block in scaled])
        products = np.zeros((width, width))
        for block in blocks():
            centred = np.nan_to_num(block[:, is_number] / size - moments.mean)
            products += np.einsum("ij,ik->jk", centred, centred)  # too small for threads, which wait for each other
        with np.errstate(over="ignore"):
            variance[is_number] = np.where(varies, moments.variance, 0.0) * size * size
        lengths = np.where(varies, np.sqrt(np.diag(products)), 1.0)
        squares, directions = np.linalg.eigh(products / np.outer(lengths, lengths))
        factor = np.sqrt(np.maximum(squares, 0.0))[:, None] * directions.T
        explained[is_number] = explained_by_factor(factor, varies)
        return cls(tuple(map(float, variance)), tuple(map(float, explained)))

    def sortability(self, weights: NDArray[np.float64]) -> dict[str, float]:
        """Return the varsortability and the R²-sortability of a graph, over paths between numeric nodes."""
        numbers = ~np.isnan(self.variance)
        edges = weights[np.ix_(numbers, numbers)] != 0
        return {
            "varsortability": share_of_paths_upwards(np.array(self.variance)[numbers], edges),
            "r2_sortability": share_of_paths_upwards(np.array(self.explained)[numbers], edges),
        }

    def remarks(self, weights: NDArray[np.float64]) -> list[str]:
        """Say whether the arrows merely follow the scale or the predictability of the columns."""
        reasons = (
            ("variance", "columns were standardized, so it had no influence, but it may have a cause"),
            ("predictability", "this alone may have set the arrows, so trust them less"),
        )
        lines = []
        for share, (trait, reason) in zip(self.sortability(weights).values(), reasons, strict=True):
            if not np.isnan(share) and not 1 - _TELLING < share < _TELLING:
                order = "higher" if share > 0.5 else "lower"
                lines.append(f"{max(share, 1 - share):.0%} of the paths lead to columns of {order} {trait}: {reason}.")
        return lines

    def to_dict(self) -> dict[str, Any]:
        """Return plain lists, None for NaN."""
        return {
            name: [None if np.isnan(v) else v for v in values]
            for name, values in (("variance", self.variance), ("explained", self.explained))
        }

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> ColumnTraits:
        """Undo :meth:`to_dict`."""
        variance, explained = (
            tuple(np.nan if v is None else float(v) for v in content[name]) for name in ("variance", "explained")
        )
        return cls(variance, explained)
