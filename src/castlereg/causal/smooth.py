"""Smooth functions of columns: the basis that discovery and structural equations share, and its penalized fits.

A function of a number is a line plus waves of its rank; a function of levels has one value for each; a joint function
of several columns is a sum of products and of random waves. All are linear in their weights, so equations need no
training: they are solved, and solved again for resampled rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax

Array = NDArray[np.float64]

_WAVES = 10  # cosines of the rank of a number, in addition to the number itself
_VALUE_PENALTY, _WAVE_PENALTY, _LEVEL_PENALTY, _JOINT_PENALTY, _PRODUCT_PENALTY = 1e-4, 0.1, 0.1, 0.05, 0.1
_MOST_KNOTS = 200  # maximum number of knots; functions are linear between them
_BEYOND = 10.0  # lines continue this many ranges beyond the values; further out, functions are constant
_RIDGES, _LEVEL_RIDGES = 10.0 ** np.arange(-5, 2.5, 0.5), 10.0 ** np.arange(-4, 1)
_FOLDS = 4  # for choosing the ridge of logits
_STEPS = 40  # for fitting logits
_JOINT_WAVES, _JOINT_LOG_SCALES = 200, (np.log(0.3), np.log(2.5))
_SHAPES, _MOST_SHAPES = 4, 8  # first features of a number, and first levels, that are multiplied


@dataclass(frozen=True)
class Basis:
    """Functions of one column: a line, waves of the rank of a number, and whether it is missing; or its levels.

    Ranks are interpolated between knots, which are quantiles of the values.
    """

    knots: Array  # (knots,), ascending; empty for levels
    ranks: Array  # (knots,)
    center: float
    spread: float
    penalties: Array  # (features,); those of waves increase with the square of their frequency
    is_complete: bool = True  # without missing values, their effect cannot be learned: they count as the mean

    @classmethod
    def of_numbers(cls, values: Array, waves: int = _WAVES) -> Basis:
        """Create the basis of a column of numbers; missing values are NaN."""
        present = values[np.isfinite(values)]
        shares = (np.arange(min(_MOST_KNOTS, max(len(present), 2))) + 0.5) / min(_MOST_KNOTS, max(len(present), 2))
        knots, first, counts = np.unique(np.quantile(present, shares), return_index=True, return_counts=True)
        ranks = shares[first] + (counts - 1) / (2 * len(shares))
        orders = np.arange(1, min(waves, len(knots) - 1) + 1)
        penalties = np.r_[_VALUE_PENALTY, _WAVE_PENALTY * np.square(orders), _LEVEL_PENALTY]
        spread = float(present.std()) or 1.0
        return cls(knots, ranks, float(present.mean()), spread, penalties, len(present) == len(values))

    @classmethod
    def of_levels(cls, n_levels: int) -> Basis:
        """Create the basis of a column of levels; the last feature is for missing values."""
        return cls(np.empty(0), np.empty(0), 0.0, 1.0, np.full(n_levels + 1, _LEVEL_PENALTY))

    @property
    def coordinates(self) -> slice:
        """Features that joint waves depend on: the line, or all levels."""
        return slice(1 if len(self.knots) else None)

    @property
    def shapes(self) -> slice:
        """Features that are multiplied with those of other columns."""
        return slice(min(_SHAPES if len(self.knots) else _MOST_SHAPES, len(self.penalties) - 1))

    @cached_property
    def points(self) -> Array:
        """The knots and a far point at either end, beyond which functions are constant; or the numbers of levels."""
        if not len(self.knots):
            return np.arange(len(self.penalties) - 1, dtype=np.float64)
        span = max(float(self.knots[-1] - self.knots[0]), 1e-9 * max(abs(float(self.knots[0])), 1.0))
        return np.r_[self.knots[0] - _BEYOND * span, self.knots, self.knots[-1] + _BEYOND * span]

    def expand(self, values: Array) -> Array:
        """Return the features of values, shape (rows, features)."""
        missing, last = np.isnan(values), len(self.penalties) - 1
        if not len(self.knots):
            return np.eye(last + 1)[np.where(missing, last, values).astype(np.int64)]
        x = np.clip(values, self.points[0], self.points[-1])
        features = np.zeros((last + 1, len(values)))
        features[0] = (x - self.center) / self.spread
        if last > 1:
            twice = 2 * np.cos(np.pi * np.interp(x, self.knots, self.ranks))
            features[1] = twice / np.sqrt(2)
            for k in range(2, last):  # of Chebyshev: faster than cosines
                before = features[k - 2] if k > 2 else np.sqrt(2)
                np.subtract(twice * features[k - 1], before, out=features[k])
        if missing.any():
            features[:, missing] = 0.0
            features[last] = missing & (not self.is_complete)
        return features.T


def fit_logits(
    features: Array, truth: Array, weight: Array, penalty: Array, steps: int, product: Array | None = None
) -> Array:
    """Fit logits to weighted rows, with a bound on the curvature (Böhning, 1992) and momentum.

    ``truth`` has shape (levels, rows), the result (features, levels). ``product`` is that of the weighted features with
    themselves, if it is known.
    """
    weighted, by_feature = features * weight[:, None], np.ascontiguousarray(features.T)
    inverse = np.linalg.inv(0.5 * (weighted.T @ features if product is None else product) + np.diag(penalty))
    weights = before = np.zeros((len(truth), len(penalty)))
    for step in range(steps):
        ahead = weights + step / (step + 3) * (weights - before)
        scores = ahead @ by_feature  # (levels, rows): sums over the first axis are fast
        shares = np.exp(scores - scores.max(axis=0))
        shares /= shares.sum(axis=0)
        slope = (truth - shares) @ weighted - penalty * ahead
        weights, before = ahead + slope @ inverse, weights
    return np.ascontiguousarray(weights.T)


class JointBasis(NamedTuple):
    """Basis functions of several parents together: products of two shapes, and random waves.

    Waves are cosines of weighted sums of all parents, or of two of them: random Fourier features (Rahimi and Recht,
    2007) of Gaussian processes with length scales from 0.4 to 3 standard deviations.
    """

    frequencies: Array  # (coordinates of the parents, waves)
    phases: Array  # (waves,)

    @classmethod
    def draw(cls, bases: Sequence[Basis], n_waves: int = _JOINT_WAVES) -> JointBasis:
        """Draw waves; parents with the same bases always have the same."""
        rng = np.random.default_rng(0)
        parent = np.repeat(np.arange(len(bases)), [1 if len(basis.knots) else len(basis.penalties) for basis in bases])
        frequencies = rng.normal(size=(len(parent), n_waves)) * np.exp(rng.uniform(*_JOINT_LOG_SCALES, n_waves))
        for wave in range(n_waves // 2):
            frequencies[~np.isin(parent, rng.choice(len(bases), min(2, len(bases)), replace=False)), wave] = 0.0
        return cls(frequencies, rng.uniform(0, 2 * np.pi, n_waves))

    def expand(self, bases: Sequence[Basis], expanded: Sequence[Array]) -> Array:
        """Return the features of rows, shape (rows, features), from those of each parent."""
        pairs = list(zip(bases, expanded, strict=True))
        at = np.concatenate([features[:, basis.coordinates] for basis, features in pairs], axis=1)
        turns = (at @ self.frequencies + self.phases) / (2 * np.pi)
        turns -= np.rint(turns)  # the cosine of float32 takes a fifth of the time; turns near zero keep its digits
        waves = np.cos(2 * np.pi * turns.astype(np.float32)) * np.float32(np.sqrt(2 / max(len(self.phases), 1)))
        shapes = [features[:, basis.shapes] for basis, features in pairs]
        products = [(a[:, :, None] * b[:, None, :]).reshape(len(a), -1) for a, b in combinations(shapes, 2)]
        return np.concatenate([waves, *products], axis=1)

    def penalties(self, n_features: int) -> Array:
        """Return the penalty of every feature; those of waves increase with the square of their frequency."""
        wave_penalties = _JOINT_PENALTY * np.maximum(1, np.square(self.frequencies).sum(axis=0))
        return np.r_[wave_penalties, np.full(n_features - len(wave_penalties), _PRODUCT_PENALTY)]


@dataclass(frozen=True)
class SmoothFunction:
    """A constant plus a function of each parent and, if there is a joint basis, a function of several parents."""

    bases: tuple[Basis, ...]  # of the parents
    weights: Array  # (1 + features, outputs), one output for a number and one per level otherwise; the constant first
    joint: JointBasis | None = None

    @cached_property
    def tables(self) -> list[tuple[Array, Array]]:
        """The function of each parent at the ends and knots of its basis, and where the parent is missing."""
        ends, tables, missing = np.cumsum([1, *(len(basis.penalties) for basis in self.bases)]), [], np.array([np.nan])
        for basis, (start, end) in zip(self.bases, pairwise(ends), strict=True):
            weights = self.weights[start:end]
            tables.append((basis.expand(basis.points) @ weights, basis.expand(missing) @ weights))
        return tables

    def __call__(self, columns: Sequence[Array], n_rows: int) -> Array:
        """Return outputs, shape (rows, outputs), given the values of the parents."""
        total = np.broadcast_to(self.weights[0], (n_rows, self.weights.shape[1])).copy()
        for basis, values, (table, missing_outputs) in zip(self.bases, columns, self.tables, strict=True):
            missing = np.isnan(values)
            if len(basis.knots):  # much faster than the basis functions
                parent_outputs = np.stack([np.interp(values, basis.points, column) for column in table.T], axis=1)
            else:
                parent_outputs = table[np.where(missing, 0, values).astype(np.int64)]
            total += np.where(missing[:, None], missing_outputs, parent_outputs) if missing.any() else parent_outputs
        if self.joint is not None:
            expanded = [basis.expand(values) for basis, values in zip(self.bases, columns, strict=True)]
            features = self.joint.expand(self.bases, expanded)
            total += features @ self.weights[-features.shape[1] :]
        return total


@dataclass(frozen=True)
class Design:
    """The features of the parents of one column, for fits to different weights of the rows."""

    bases: tuple[Basis, ...]  # of the parents
    features: Array  # (rows, features), a column of ones first
    penalties: Array  # (features,), almost zero for the constant
    joint: JointBasis | None = None

    @classmethod
    def of(
        cls, bases: Sequence[Basis], expanded: Sequence[Array], n_rows: int, joint: JointBasis | None = None
    ) -> Design:
        """Compute the features of rows from those of the parents."""
        blocks = [*expanded] if joint is None else [*expanded, joint.expand(bases, expanded)]
        features = np.concatenate([np.ones((n_rows, 1)), *blocks], axis=1)
        penalties = np.concatenate([[1e-10], *(basis.penalties for basis in bases)])
        if joint is not None:
            penalties = np.r_[penalties, joint.penalties(features.shape[1] - len(penalties))]
        return cls(tuple(bases), features, penalties, joint)

    def function(self, weights: Array) -> SmoothFunction:
        """Turn weights of the features, shape (features, outputs), into a function of the parents."""
        return SmoothFunction(self.bases, weights, self.joint)

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
        best = np.inf, 0.0, wanted
        for ridge in _RIDGES if self.bases else _RIDGES[:1]:
            factors = 1 / (np.maximum(sizes, 0) + ridge * weight.sum())
            leverage = share + squares @ factors
            left_out = (wanted - rows @ (along * factors)) / np.maximum(1 - leverage, 1e-3)
            loss = float(left_out @ left_out)
            if loss < best[0]:
                best = loss, float(ridge), left_out / root
        return best[1:]

    def solve(self, values: Array, weight: Array, ridge: float) -> Array:
        """Fit numbers to weighted rows; return the weights of features, shape (features, 1)."""
        weighted = self.features * weight[:, None]
        system = weighted.T @ self.features + ridge * weight.sum() * np.diag(self.penalties)
        return np.asarray(np.linalg.solve(system, weighted.T @ values)[:, None])

    # --- levels -------------------------------------------------------------------------------------

    def best_ridge_of_levels(self, codes: NDArray[np.int64], n_levels: int, weight: Array) -> float:
        """Choose the penalty strength by the log losses of left-out folds of the rows."""
        fold = np.random.default_rng(0).permutation(len(codes)) % _FOLDS
        losses = np.empty((len(_LEVEL_RIDGES) if self.bases else 1, len(codes)))
        for ridge_losses, ridge in zip(losses, _LEVEL_RIDGES, strict=False):
            for k in range(_FOLDS):
                weights = self.solve_levels(codes, n_levels, weight * (fold != k), ridge)
                likely = log_softmax(self.features[fold == k] @ weights, axis=1)
                ridge_losses[fold == k] = -likely[np.arange(len(likely)), codes[fold == k]]
        return float(_LEVEL_RIDGES[np.argmin([weight @ ridge_losses for ridge_losses in losses])])

    def solve_levels(self, codes: NDArray[np.int64], n_levels: int, weight: Array, ridge: float) -> Array:
        """Fit logits to weighted rows; return the weights of features, shape (features, levels)."""
        truth = (codes == np.arange(n_levels)[:, None]).astype(np.float64)
        return fit_logits(self.features, truth, weight, ridge * weight.sum() * self.penalties, _STEPS)
