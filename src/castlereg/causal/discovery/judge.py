"""The judge: the log density of a column given others, cross-validated over rows.

A number is a sum of smooth functions of its causes, plus noise. The density of the noise is learned; its scale may
depend on the causes, and the number may be a monotone function of such a sum. A level has logits that are such sums, or
a table of shares for every combination of the causes' levels. If several forms are possible, the best on left-out rows
is used. The judge makes no assumption about the kind of data: given its true causes, the noise of a column is simple;
given other columns, it appears to depend on them.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from castlereg.causal.discovery.columns import Column
from castlereg.causal.discovery.density import log_density

_FOLDS = 4
_RIDGES = np.array([1e-3, 1e-1, 1e1])  # the last one leaves little more than straight lines
_USUAL_RIDGE = 1e-2  # where it is not chosen
_MARGIN = 3.0  # gain in log density of all rows that a more complex form needs
_FLOOR = 1e-2  # share of the mean squared residual that is added before the logarithm
_STEPS = 15  # for fitting logits
_ROWS_PER_CELL = 5  # minimum for a table of shares
_LEAST_SHARE = 1e-3

Function = Callable[[NDArray[np.float64]], NDArray[np.float64]]


class Scores(Protocol):
    """The interface of a judge for a search."""

    def total(self, effect: int, causes: frozenset[int]) -> float:
        """Return the log density of a column given others, summed over rows."""


class LinearJudge:
    """A fast judge that assumes every column is a linear function of its causes plus normal noise."""

    def __init__(self, columns: Sequence[Column]) -> None:
        values = np.stack([column.values for column in columns], axis=1)
        self._n_rows = len(values)
        self._covariance = np.atleast_2d(np.cov(values.T, bias=True)) + 1e-9 * np.eye(len(columns))

    def total(self, effect: int, causes: frozenset[int]) -> float:
        """Return the log density of a column given others, summed over rows."""
        used = sorted(causes)
        to_effect = self._covariance[used, effect]
        explained = to_effect @ np.linalg.solve(self._covariance[np.ix_(used, used)], to_effect) if used else 0.0
        return float(-0.5 * self._n_rows * np.log(max(self._covariance[effect, effect] - explained, 1e-9)))


class Judge:
    """Scores of columns given others, cached for each set of causes."""

    def __init__(self, columns: Sequence[Column], seed: int = 0) -> None:
        self.columns = columns
        self.n_rows = len(columns[0].values)
        features = [column.features for column in columns]
        starts = np.cumsum([1, *(block.shape[1] for block in features)])
        self._at = [np.arange(*ends) for ends in itertools.pairwise(starts)]
        normal = [np.zeros(self.n_rows) if column.levels else column.normal for column in columns]
        self._features = np.concatenate([np.ones((self.n_rows, 1)), *features, np.stack(normal, axis=1)], axis=1)
        self._normal_at = starts[-1] + np.arange(len(columns))
        self._penalties = np.concatenate([[1e-9], *(column.penalties for column in columns)])
        fold = np.random.default_rng(seed).permutation(self.n_rows) % _FOLDS
        self._folds = [np.flatnonzero(fold == k) for k in range(_FOLDS)]
        self._products = np.stack([self._features[rows].T @ self._features[rows] for rows in self._folds])
        self._alone = [self._without_causes(column) for column in columns]
        self._totals: dict[tuple[int, frozenset[int]], float] = {}

    @property
    def n_scored(self) -> int:
        """Number of scored sets of causes."""
        return len(self._totals)

    def total(self, effect: int, causes: frozenset[int]) -> float:
        """Return the log density of a column given others, summed over rows."""
        key = effect, causes
        if key not in self._totals:
            self._totals[key] = float(self.by_row(effect, causes).sum())
        return self._totals[key]

    def by_row(self, effect: int, causes: frozenset[int]) -> NDArray[np.float64]:
        """Return the log density of a column given others for every row; zero where the column is missing."""
        if not causes:
            return self._alone[effect]
        column = self.columns[effect]
        used = np.concatenate([[0], *(self._at[cause] for cause in sorted(causes))])
        if column.levels:
            return self._level(column, used, causes)
        return self._number(effect, column, used)

    def dependence(self) -> NDArray[np.float64]:
        """Return how well each column predicts each other one, shape (columns, columns), between 0 and 1."""
        product = self._products.sum(axis=0)
        explained = np.zeros((len(self.columns), len(self.columns)))
        center = product[0] / self.n_rows
        covariance = product - self.n_rows * np.outer(center, center)
        for cause, at in enumerate(self._at):
            ridge = np.diag(_USUAL_RIDGE * self.n_rows * self._penalties[at])
            weights = np.linalg.solve(covariance[np.ix_(at, at)] + ridge, covariance[at])
            shares = np.einsum("ij,ij->j", covariance[at], weights) / np.maximum(np.diag(covariance), 1e-9)
            explained[cause] = [shares[of_effect].max() for of_effect in self._at]
        np.fill_diagonal(explained, 0)
        return explained

    def _without_causes(self, column: Column) -> NDArray[np.float64]:
        if column.levels:
            codes = column.values.astype(np.int64)
            counts = np.bincount(codes, minlength=column.levels)
            return np.log(np.maximum((counts[codes] - 1.0 + 0.5) / (self.n_rows - 1 + 0.5 * column.levels), 1e-9))
        return _where(column.present, log_density)(column.values)

    # --- numbers ------------------------------------------------------------------------------------

    def _number(self, effect: int, column: Column, used: NDArray[np.int64]) -> NDArray[np.float64]:
        as_it_is = self._noise(column.values, self._at[effect][0], column, used)
        if column.is_nearly_normal:
            return as_it_is
        # Normal scores undo a monotone function; adding its log derivative gives the density of the number itself.
        derivative = self._alone[effect] + 0.5 * np.square(column.normal) + 0.5 * np.log(2 * np.pi)
        normal = self._noise(column.normal, self._normal_at[effect], column, used)
        normal = normal + _where(column.present, lambda values: values)(derivative)
        return normal if normal.sum() > as_it_is.sum() + _MARGIN else as_it_is

    def _noise(
        self, values: NDArray[np.float64], at: int, column: Column, used: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """Score numbers as smooth functions plus noise; the scale of the noise may depend on the causes."""
        density = _where(column.present, log_density)
        if column.present is None:
            left, right = self._products[:, used[:, None], used], self._products[:, used, at]
            residuals = values - self._left_out(left, right, used)[0]
        else:
            left = self._products_of(used, column.present)
            residuals = values - self._left_out(left, self._products_with(used, values * column.present), used)[0]
        scores = density(residuals)
        squares = np.log(np.square(residuals) + _FLOOR * residuals.var())
        squares -= squares.mean()
        if column.present is not None:
            squares = squares * column.present
        log_square, gain = self._left_out(left, self._products_with(used, squares), used)
        if gain <= 0:  # not better than a constant
            return scores
        log_scale = 0.5 * (log_square - log_square.mean())
        scaled = density(residuals * np.exp(-log_scale)) - _where(column.present, lambda values: values)(log_scale)
        return scaled if scaled.sum() > scores.sum() + _MARGIN else scores

    def _left_out(
        self, left: NDArray[np.float64], right: NDArray[np.float64], used: NDArray[np.int64]
    ) -> tuple[NDArray[np.float64], float]:
        """Predict the rows of every fold by ridge regression on the other folds, from products of each fold.

        Return the predictions, and how much lower their squared error is than that of predicting zero.
        """
        others, of_others = left.sum(axis=0) - left, right.sum(axis=0) - right
        ridge = _RIDGES[:, None, None] * (self.n_rows * (1 - 1 / _FOLDS)) * np.diag(self._penalties[used])
        systems = others[:, None] + ridge
        wanted = np.broadcast_to(of_others[:, None, :, None], (*systems.shape[:3], 1))
        weights = np.linalg.solve(systems, wanted)[..., 0]
        gains = ((2 * right[:, None] - np.matmul(weights, left)) * weights).sum(axis=(0, 2))
        ridge_of_best = int(np.argmax(gains))
        best = weights[:, ridge_of_best]
        predicted = np.empty(self.n_rows)
        features = self._features[:, used]
        for rows, of_fold in zip(self._folds, best, strict=True):
            predicted[rows] = features[rows] @ of_fold
        return predicted, float(gains[ridge_of_best])

    def _products_with(self, used: NDArray[np.int64], values: NDArray[np.float64]) -> NDArray[np.float64]:
        features = self._features[:, used]
        return np.stack([values[rows] @ features[rows] for rows in self._folds])

    def _products_of(self, used: NDArray[np.int64], present: NDArray[np.bool_]) -> NDArray[np.float64]:
        features = self._features[:, used] * present[:, None]
        return np.stack([features[rows].T @ features[rows] for rows in self._folds])

    # --- levels -------------------------------------------------------------------------------------

    def _level(self, column: Column, used: NDArray[np.int64], causes: frozenset[int]) -> NDArray[np.float64]:
        """Score levels by logits, or by a table of shares if all causes have levels."""
        codes = column.values.astype(np.int64)
        shapes = [self.columns[cause].levels for cause in causes]
        if all(shapes) and np.prod([float(n) for n in shapes]) * _ROWS_PER_CELL <= self.n_rows:
            return self._shares(column, codes, causes)
        return self._logits(column, codes, used)

    def _shares(self, column: Column, codes: NDArray[np.int64], causes: frozenset[int]) -> NDArray[np.float64]:
        cell = np.zeros(self.n_rows, np.int64)
        for cause in sorted(causes):
            cell = cell * self.columns[cause].levels + self.columns[cause].values.astype(np.int64)
        counts = np.bincount(cell * column.levels + codes, minlength=(int(cell.max()) + 1) * column.levels)
        same_level = counts[cell * column.levels + codes] - 1.0  # without the row itself
        all_levels = counts.reshape(-1, column.levels).sum(axis=1)[cell] - 1.0
        prior = np.exp(self._without_causes(column))
        return np.asarray(np.log((same_level + prior) / (all_levels + 1.0)))

    def _logits(self, column: Column, codes: NDArray[np.int64], used: NDArray[np.int64]) -> NDArray[np.float64]:
        """Fit logits on all folds but one, with a bound on the curvature (Böhning, 1992) and momentum."""
        features, truth = self._features[:, used], np.eye(column.levels)[codes]
        total = self._products[:, used[:, None], used].sum(axis=0)
        ridge = _USUAL_RIDGE * self.n_rows * np.diag(self._penalties[used])
        scores = np.empty(self.n_rows)
        for rows, product in zip(self._folds, self._products[:, used[:, None], used], strict=True):
            train = np.ones(self.n_rows, bool)
            train[rows] = False
            x, y = features[train], truth[train]
            inverse = np.linalg.inv(0.5 * (total - product) + ridge)
            weights = before = np.zeros((len(used), column.levels))
            for step in range(_STEPS):
                ahead = weights + step / (step + 3) * (weights - before)
                slope = x.T @ (y - _softmax(x @ ahead)) - ridge @ ahead
                weights, before = ahead + inverse @ slope, weights
            likely = _softmax(features[rows] @ weights)[np.arange(len(rows)), codes[rows]]
            scores[rows] = np.log(np.maximum(likely, _LEAST_SHARE))
        return scores


def _softmax(logits: NDArray[np.float64]) -> NDArray[np.float64]:
    exponentials = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(exponentials / exponentials.sum(axis=1, keepdims=True))


def _where(present: NDArray[np.bool_] | None, function: Function) -> Function:
    """Return a function that applies to present values only, and returns zero for missing ones."""
    if present is None:
        return function

    def of_present(values: NDArray[np.float64]) -> NDArray[np.float64]:
        scores = np.zeros(len(values))
        scores[present] = function(values[present])
        return scores

    return of_present
