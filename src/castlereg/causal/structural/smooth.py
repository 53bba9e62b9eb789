"""Smooth functions of columns, and their sums: the form of an equation unless a network predicts clearly better.

A function of a number is a line plus waves of its rank; a function of levels has one value for each. Sums of these are
linear in their weights, so equations need no training: they are solved, and solved again for resampled rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax

Array = NDArray[np.float64]

_WAVES = 10  # cosines of the rank of a number, in addition to the number itself
# Penalties; those of waves increase with the square of their frequency.
_OF_VALUE, _OF_WAVE, _OF_LEVEL, _OF_PRODUCT = 1e-4, 0.1, 0.1, 0.1
_MOST_KNOTS = 200  # maximum number of knots; functions are linear between them
_BEYOND = 10.0  # lines continue this many ranges beyond the values; further out, functions are constant
RIDGES, RIDGES_OF_LEVELS = 10.0 ** np.arange(-5, 2.5, 0.5), 10.0 ** np.arange(-4, 1)
_FOLDS = 4  # for choosing the ridge of logits
_STEPS = 40  # for fitting logits


class Position(NamedTuple):
    """Positions of values between the knots of their column; see :meth:`Basis.locate`."""

    left: NDArray[np.int64]
    share: Array | None  # of the way to the next knot; None for levels

    def take(self, rows: NDArray[np.int64]) -> Position:
        """Keep some rows."""
        return Position(self.left[rows], None if self.share is None else self.share[rows])


@dataclass(frozen=True)
class Basis:
    """The basis functions of one column: tables of values at knots, linear in between.

    The knots of a number are its quantiles and two far points. Levels are their own knots. The last entry of every
    table is for missing values.
    """

    knots: Array  # (knots,), ascending; empty for levels
    features: Array  # (knots + 1 or levels + 1, features)
    penalties: Array  # (features,)

    @classmethod
    def of_numbers(cls, values: Array) -> Basis:
        """Create the basis of a column of numbers; missing values are NaN."""
        present = values[np.isfinite(values)]
        shares = (np.arange(min(_MOST_KNOTS, max(len(present), 2))) + 0.5) / min(_MOST_KNOTS, max(len(present), 2))
        knots, first, counts = np.unique(np.quantile(present, shares), return_index=True, return_counts=True)
        ranks = shares[first] + (counts - 1) / (2 * len(shares))
        span = max(float(knots[-1] - knots[0]), 1e-9 * max(abs(float(knots[0])), 1.0))
        knots = np.r_[knots[0] - _BEYOND * span, knots, knots[-1] + _BEYOND * span]
        ranks = np.r_[ranks[0], ranks, ranks[-1]]
        spread = float(present.std()) or 1.0
        orders = np.arange(1, min(_WAVES, len(knots) - 3) + 1)
        waves = np.sqrt(2) * np.cos(np.pi * ranks[:, None] * orders)
        features = np.column_stack([(knots - present.mean()) / spread, waves, np.zeros(len(knots))])
        features = np.vstack([features, np.r_[np.zeros(features.shape[1] - 1), 1.0]])
        penalties = np.r_[_OF_VALUE, _OF_WAVE * np.square(orders), _OF_LEVEL]
        if len(present) == len(values):
            features[:, -1] = 0.0  # missing values have no effect that can be learned: they count as the mean
        return cls(knots, features, penalties)

    @classmethod
    def of_levels(cls, n_levels: int) -> Basis:
        """Create the basis of a column of levels."""
        return cls(np.empty(0), np.eye(n_levels + 1), np.full(n_levels + 1, _OF_LEVEL))

    @property
    def n_features(self) -> int:
        """Number of features."""
        return self.features.shape[1]

    def locate(self, values: Array) -> Position:
        """Return the positions of values among the knots."""
        missing = np.isnan(values)
        if not len(self.knots):
            return Position(np.where(missing, len(self.features) - 1, values).astype(np.int64), None)
        left = np.clip(np.searchsorted(self.knots, values) - 1, 0, len(self.knots) - 2)
        share = np.clip((values - self.knots[left]) / np.diff(self.knots)[left], 0.0, 1.0)
        if missing.any():
            left, share = np.where(missing, len(self.knots), left), np.where(missing, 0.0, share)
        return Position(left, share)

    def expand(self, at: Position) -> Array:
        """Return the features of values, shape (rows, features)."""
        return looked_up(self.features, at)


def looked_up(table: Array, at: Position) -> Array:
    """Interpolate a table of shape (knots + 1, ...) at positions; return shape (rows, ...)."""
    if at.share is None:
        return np.asarray(table[at.left])
    share = at.share.reshape(at.share.shape + (1,) * (table.ndim - 1))
    right = np.minimum(at.left + 1, len(table) - 1)
    return np.asarray(table[at.left] * (1 - share) + table[right] * share)


@dataclass(frozen=True)
class SmoothSum:
    """A constant plus a function of each parent, with one output for a number and one per level otherwise."""

    bases: tuple[Basis, ...]  # of the parents
    weights: Array  # (1 + features, outputs), the constant first

    @cached_property
    def tables(self) -> list[Array]:
        """The function of each parent, shape (knots + 1, outputs)."""
        starts = np.cumsum([1, *(basis.n_features for basis in self.bases)])
        return [
            basis.features @ self.weights[start : start + basis.n_features]
            for basis, start in zip(self.bases, starts, strict=False)
        ]

    def __call__(self, positions: Sequence[Position], values: Array) -> Array:
        """Return outputs, shape (rows, outputs), given the positions of the parents' values, (nodes, rows)."""
        total = np.broadcast_to(self.weights[0], (values.shape[1], self.weights.shape[1])).copy()
        for table, at in zip(self.tables, positions, strict=True):
            total += looked_up(table, at)
        return total


@dataclass(frozen=True)
class Design:
    """The features of the parents of one column, for fits to different weights of the rows."""

    bases: tuple[Basis, ...]  # of the parents
    features: Array  # (rows, features), a column of ones first
    penalties: Array  # (features,), almost zero for the constant

    @classmethod
    def of(cls, bases: Sequence[Basis], positions: Sequence[Position], n_rows: int) -> Design:
        """Compute the features of rows."""
        blocks = [basis.expand(at) for basis, at in zip(bases, positions, strict=True)]
        penalties = np.concatenate([[1e-10], *(basis.penalties for basis in bases)])
        return cls(tuple(bases), np.concatenate([np.ones((n_rows, 1)), *blocks], axis=1), penalties)

    def with_products(self, n_shapes: int) -> Design:
        """Add products of the first features of every two parents."""
        starts = np.cumsum([1, *(basis.n_features for basis in self.bases)])
        shapes = [
            self.features[:, start : start + min(n_shapes, basis.n_features)]
            for start, basis in zip(starts, self.bases, strict=False)
        ]
        products = [(a[:, :, None] * b[:, None, :]).reshape(len(a), -1) for a, b in combinations(shapes, 2)]
        features = np.concatenate([self.features, *products], axis=1)
        added = np.full(features.shape[1] - self.features.shape[1], _OF_PRODUCT)
        return Design(self.bases, features, np.r_[self.penalties, added])

    def equation(self, weights: Array) -> SmoothSum:
        """Turn weights of the features, shape (features, outputs), into functions of the parents."""
        return SmoothSum(self.bases, weights)

    # --- numbers ------------------------------------------------------------------------------------

    def best_ridge(self, values: Array, weight: Array) -> tuple[float, Array]:
        """Choose the penalty strength by leave-one-out errors; also return the leave-one-out residuals.

        With centred features divided by the square roots of their penalties, all strengths share one decomposition: the
        prediction and the leverage of every row are sums over its directions.
        """
        share, root = weight / weight.sum(), np.sqrt(weight)
        centered = (self.features[:, 1:] - share @ self.features[:, 1:]) / np.sqrt(self.penalties[1:])
        centered *= root[:, None]
        wanted = (values - share @ values) * root
        sizes, directions = np.linalg.eigh(centered.T @ centered)
        rows = centered @ directions
        along, squares = rows.T @ wanted, np.square(rows)
        best: tuple[float, float, Array] | None = None
        for ridge in RIDGES if self.bases else RIDGES[:1]:
            factors = 1 / (np.maximum(sizes, 0) + ridge * weight.sum())
            leverage = share + squares @ factors
            left_out = (wanted - rows @ (along * factors)) / np.maximum(1 - leverage, 1e-3)
            loss = float(left_out @ left_out)
            if best is None or loss < best[0]:
                best = loss, float(ridge), left_out / root
        assert best is not None
        return best[1:]

    def solve(self, values: Array, weight: Array, ridge: float) -> Array:
        """Fit numbers to weighted rows; return the weights of features, shape (features, 1)."""
        weighted = self.features * weight[:, None]
        system = weighted.T @ self.features + ridge * weight.sum() * np.diag(self.penalties)
        return np.asarray(np.linalg.solve(system, weighted.T @ values)[:, None])

    # --- levels -------------------------------------------------------------------------------------

    def best_ridge_of_levels(self, codes: NDArray[np.int64], n_levels: int, weight: Array) -> tuple[float, Array]:
        """Choose the penalty strength by folds of the rows; also return the log losses of left-out rows."""
        fold = np.random.default_rng(0).permutation(len(codes)) % _FOLDS
        best: tuple[float, float, Array] | None = None
        for ridge in RIDGES_OF_LEVELS if self.bases else RIDGES_OF_LEVELS[:1]:
            losses = np.empty(len(codes))
            for k in range(_FOLDS):
                weights = self.solve_levels(codes, n_levels, weight * (fold != k), ridge)
                likely = log_softmax(self.features[fold == k] @ weights, axis=1)
                losses[fold == k] = -likely[np.arange(len(likely)), codes[fold == k]]
            if best is None or weight @ losses < best[0]:
                best = float(weight @ losses), float(ridge), losses
        assert best is not None
        return best[1:]

    def solve_levels(self, codes: NDArray[np.int64], n_levels: int, weight: Array, ridge: float) -> Array:
        """Fit logits to weighted rows with a bound on the curvature (Böhning, 1992); shape (features, levels)."""
        truth = (codes == np.arange(n_levels)[:, None]).astype(np.float64)
        penalty = ridge * weight.sum() * self.penalties
        weighted, by_feature = self.features * weight[:, None], np.ascontiguousarray(self.features.T)
        inverse = np.linalg.inv(0.5 * weighted.T @ self.features + np.diag(penalty))
        weights = before = np.zeros((n_levels, len(penalty)))
        for step in range(_STEPS):
            ahead = weights + step / (step + 3) * (weights - before)
            scores = ahead @ by_feature  # (levels, rows): sums over the first axis are fast
            shares = np.exp(scores - scores.max(axis=0))
            shares /= shares.sum(axis=0)
            slope = (truth - shares) @ weighted - penalty * ahead
            weights, before = ahead + slope @ inverse, weights
        return np.ascontiguousarray(weights.T)
