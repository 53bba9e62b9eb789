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
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax, ndtri
from scipy.stats import rankdata

from castlereg.causal.smooth import Basis, fit_logits
from castlereg.causal.variables import Variable

Array = NDArray[np.float64]
Function = Callable[[Array], Array]

_WAVES = 7  # more would only take longer
_FOLDS = 4
_RIDGES = np.array([1e-3, 1e-1, 1e1])  # the last one leaves little more than straight lines
_USUAL_RIDGE = 1e-2  # where it is not chosen
_MARGIN = 3.0  # gain in log density of all rows that a more complex form needs
_FLOOR = 1e-2  # share of the mean squared residual that is added before the logarithm
_STEPS = 15  # for fitting logits
_ROWS_PER_CELL = 5  # minimum for a table of shares
_LEAST_SHARE = 1e-3
_NEARLY_NORMAL = 0.998  # correlation of a number with its normal scores


# Residuals are in units of their spread around the median. Outside the span only the wide tail remains.
_SPAN, _CELLS = 8.0, 512
_STEP = 2 * _SPAN / _CELLS
_FREQUENCIES = np.fft.rfftfreq(2 * _CELLS, d=_STEP)
_BANDWIDTHS = (0.6, 1.0)  # factors of Silverman's rule; the better one is used
_TAIL, _TAIL_SCALE = 0.05, 2.0  # share and scale of a Cauchy density, which makes every residual possible


@dataclass(frozen=True)
class Column:
    """A column as the judge sees it: numbers with mean 0 and variance 1, or levels, missing values being another."""

    values: Array  # (rows,); missing numbers are zero
    levels: int = 0  # 0 for a number
    present: NDArray[np.bool_] | None = None  # (rows,), True where a number is not missing; None if none is

    @classmethod
    def of(cls, variable: Variable, values: Array) -> Column:
        """Prepare a column; ordinal levels count as numbers, and two dates as levels."""
        missing, schema = np.isnan(values), variable.schema
        if variable.levels is not None and (schema is None or schema.kind != "ordinal"):
            return cls(np.where(missing, len(variable.levels), values), len(variable.levels) + int(missing.any()))
        if schema is not None and schema.kind == "binary" and not missing.all():
            return cls(np.where(missing, 2.0, values == np.nanmax(values)), 2 + int(missing.any()))
        values = values / (np.nanmax(np.abs(values), initial=0.0) or 1.0)  # squares of large numbers would overflow
        center, spread = (float(f(values[~missing])) if not missing.all() else 0.0 for f in (np.mean, np.std))
        scaled = np.where(missing, 0.0, values - center) / (spread or 1.0)
        return cls(scaled, present=~missing if missing.any() and not missing.all() else None)

    @cached_property
    def normal(self) -> Array:
        """Normal scores of the values, from their ranks."""
        return np.asarray(ndtri((rankdata(self.values) - 0.5) / len(self.values)))

    @cached_property
    def is_nearly_normal(self) -> bool:
        """Whether normal scores hardly differ from the values."""
        return not self.values.any() or bool(np.corrcoef(self.values, self.normal)[0, 1] > _NEARLY_NORMAL)

    @property
    def basis(self) -> tuple[Array, Array]:
        """Features, shape (rows, features), in which functions of the column are nearly linear, and their penalties."""
        if self.levels:
            basis, values = Basis.of_levels(self.levels), self.values
        else:
            values = self.values if self.present is None else np.where(self.present, self.values, np.nan)
            basis = Basis.of_numbers(values, _WAVES)
        return basis.expand(values), basis.penalties


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
    """Scores of columns given others."""

    def __init__(self, columns: Sequence[Column], seed: int = 0) -> None:
        self.columns = columns
        self.n_rows = len(columns[0].values)
        features, penalties = zip(*(column.basis for column in columns), strict=True)
        starts = np.cumsum([1, *(block.shape[1] for block in features)])
        self._at = [np.arange(*ends) for ends in itertools.pairwise(starts)]
        normal = [np.zeros(self.n_rows) if column.levels else column.normal for column in columns]
        self._features = np.concatenate([np.ones((self.n_rows, 1)), *features, np.stack(normal, axis=1)], axis=1)
        self._normal_at = starts[-1] + np.arange(len(columns))
        self._penalties = np.concatenate([[1e-9], *penalties])
        fold = np.random.default_rng(seed).permutation(self.n_rows) % _FOLDS
        self._folds = [np.flatnonzero(fold == k) for k in range(_FOLDS)]
        self._products = np.stack([self._features[rows].T @ self._features[rows] for rows in self._folds])
        self._alone = [self._without_causes(column) for column in columns]

    def total(self, effect: int, causes: frozenset[int]) -> float:
        """Return the log density of a column given others, summed over rows."""
        return float(self.by_row(effect, causes).sum())

    def by_row(self, effect: int, causes: frozenset[int]) -> Array:
        """Return the log density of a column given others for every row; zero where the column is missing."""
        if not causes:
            return self._alone[effect]
        column = self.columns[effect]
        used = np.concatenate([[0], *(self._at[cause] for cause in sorted(causes))])
        return self._level(column, used, causes) if column.levels else self._number(effect, column, used)

    def dependence(self) -> Array:
        """Return how well each column predicts each other one, shape (columns, columns), between 0 and 1."""
        product = self._products.sum(axis=0)
        explained = np.zeros((len(self.columns), len(self.columns)))
        center = product[0] / self.n_rows
        covariance = product - self.n_rows * np.outer(center, center)
        for cause, at in enumerate(self._at):
            ridge = np.diag(_USUAL_RIDGE * self.n_rows * self._penalties[at])
            weights = np.linalg.solve(covariance[np.ix_(at, at)] + ridge, covariance[at])
            shares = np.einsum("ij,ij->j", covariance[at], weights) / np.maximum(np.diag(covariance), 1e-9)
            explained[cause] = [shares[effect_at].max() for effect_at in self._at]
        np.fill_diagonal(explained, 0)
        return explained

    def _without_causes(self, column: Column) -> Array:
        if not column.levels:
            return _where(column.present, log_density)(column.values)
        codes = column.values.astype(np.int64)
        same_level = np.bincount(codes, minlength=column.levels)[codes] - 1.0
        return np.log(np.maximum((same_level + 0.5) / (self.n_rows - 1 + 0.5 * column.levels), 1e-9))

    # --- numbers ------------------------------------------------------------------------------------

    def _number(self, effect: int, column: Column, used: NDArray[np.int64]) -> Array:
        as_it_is = self._noise(column.values, self._at[effect][0], column, used)
        if column.is_nearly_normal:
            return as_it_is
        # Normal scores undo a monotone function; adding its log derivative gives the density of the number itself.
        derivative = self._alone[effect] + 0.5 * np.square(column.normal) + 0.5 * np.log(2 * np.pi)
        normal = self._noise(column.normal, self._normal_at[effect], column, used)
        normal = normal + _where(column.present, lambda values: values)(derivative)
        return normal if normal.sum() > as_it_is.sum() + _MARGIN else as_it_is

    def _noise(self, values: Array, at: int, column: Column, used: NDArray[np.int64]) -> Array:
        """Score numbers as smooth functions plus noise; the scale of the noise may depend on the causes."""
        density = _where(column.present, log_density)
        if column.present is None:
            left, right = self._products[:, used[:, None], used], self._products[:, used, at]
        else:
            features = self._features[:, used] * column.present[:, None]
            left = np.stack([features[rows].T @ features[rows] for rows in self._folds])
            right = self._products_with(used, values * column.present)
        residuals = values - self._left_out(left, right, used)[0]
        scores = density(residuals)
        squares = np.log(np.square(residuals) + _FLOOR * residuals.var() + 1e-300)
        squares -= squares.mean()
        if column.present is not None:
            squares = squares * column.present
        log_square, gain = self._left_out(left, self._products_with(used, squares), used)
        if gain <= 0:  # not better than a constant
            return scores
        log_scale = 0.5 * (log_square - log_square.mean())
        scaled = density(residuals * np.exp(-log_scale)) - _where(column.present, lambda values: values)(log_scale)
        return scaled if scaled.sum() > scores.sum() + _MARGIN else scores

    def _left_out(self, left: Array, right: Array, used: NDArray[np.int64]) -> tuple[Array, float]:
        """Predict the rows of every fold by ridge regression on the other folds, from products of each fold.

        Return the predictions, and how much lower their squared error is than that of predicting zero.
        """
        others, other_products = left.sum(axis=0) - left, right.sum(axis=0) - right
        ridge = _RIDGES[:, None, None] * (self.n_rows * (1 - 1 / _FOLDS)) * np.diag(self._penalties[used])
        systems = others[:, None] + ridge
        wanted = np.broadcast_to(other_products[:, None, :, None], (*systems.shape[:3], 1))
        weights = np.linalg.solve(systems, wanted)[..., 0]
        gains = ((2 * right[:, None] - np.matmul(weights, left)) * weights).sum(axis=(0, 2))
        ridge_of_best = int(np.argmax(gains))
        best = weights[:, ridge_of_best]
        predicted = np.empty(self.n_rows)
        features = self._features[:, used]
        for rows, fold_weights in zip(self._folds, best, strict=True):
            predicted[rows] = features[rows] @ fold_weights
        return predicted, float(gains[ridge_of_best])

    def _products_with(self, used: NDArray[np.int64], values: Array) -> Array:
        features = self._features[:, used]
        return np.stack([values[rows] @ features[rows] for rows in self._folds])

    # --- levels -------------------------------------------------------------------------------------

    def _level(self, column: Column, used: NDArray[np.int64], causes: frozenset[int]) -> Array:
        """Score levels by logits, or by a table of shares if all causes have levels."""
        codes = column.values.astype(np.int64)
        shapes = [self.columns[cause].levels for cause in causes]
        if all(shapes) and np.prod([float(n) for n in shapes]) * _ROWS_PER_CELL <= self.n_rows:
            return self._shares(column, codes, causes)
        return self._logits(column, codes, used)

    def _shares(self, column: Column, codes: NDArray[np.int64], causes: frozenset[int]) -> Array:
        cell = np.zeros(self.n_rows, np.int64)
        for cause in sorted(causes):
            cell = cell * self.columns[cause].levels + self.columns[cause].values.astype(np.int64)
        counts = np.bincount(cell * column.levels + codes, minlength=(int(cell.max()) + 1) * column.levels)
        same_level = counts[cell * column.levels + codes] - 1.0  # without the row itself
        all_levels = counts.reshape(-1, column.levels).sum(axis=1)[cell] - 1.0
        prior = np.exp(self._without_causes(column))
        return np.asarray(np.log((same_level + prior) / (all_levels + 1.0)))

    def _logits(self, column: Column, codes: NDArray[np.int64], used: NDArray[np.int64]) -> Array:
        """Fit logits on all folds but one."""
        features, truth = self._features[:, used], (codes == np.arange(column.levels)[:, None]).astype(np.float64)
        products = self._products[:, used[:, None], used]
        total, penalty = products.sum(axis=0), _USUAL_RIDGE * self.n_rows * self._penalties[used]
        scores = np.empty(self.n_rows)
        for rows, product in zip(self._folds, products, strict=True):
            train = np.ones(self.n_rows, bool)
            train[rows] = False
            ones = np.ones(self.n_rows - len(rows))
            weights = fit_logits(features[train], truth[:, train], ones, penalty, _STEPS, total - product)
            likely = log_softmax(features[rows] @ weights, axis=1)[np.arange(len(rows)), codes[rows]]
            scores[rows] = np.maximum(likely, np.log(_LEAST_SHARE))
        return scores


def _where(present: NDArray[np.bool_] | None, function: Function) -> Function:
    """Return a function that applies to present values only, and returns zero for missing ones."""
    if present is None:
        return function

    def present_densities(values: Array) -> Array:
        scores = np.zeros(len(values))
        scores[present] = function(values[present])
        return scores

    return present_densities


# --- density of the noise -----------------------------------------------------------------------------


def log_density(values: Array, at: Array | None = None) -> Array:
    """Return the log density of every value, estimated from the others; or of other values, estimated from all.

    This is a kernel estimate on a grid that leaves out the value itself, mixed with a small share of a wide density.
    """
    n = len(values)
    low, center, high = np.percentile(values, (16, 50, 84))
    deviation = float(values.std())
    spread = min((high - low) / 2, deviation)
    if spread <= 1e-6 * deviation:
        spread = deviation
    spread = max(spread, 1e-9)
    cell, share = _cells(scaled := (values - center) / spread)
    counts = np.bincount(cell, 1 - share, 2 * _CELLS) + np.bincount(cell + 1, share, 2 * _CELLS)
    spectrum = np.fft.rfft(counts)
    if at is not None:
        cell, share = _cells(scaled := (at - center) / spread)
    tail = _TAIL / (np.pi * _TAIL_SCALE * (1 + np.square(scaled / _TAIL_SCALE)))
    best = np.full(len(scaled), -np.inf)
    for factor in _BANDWIDTHS if at is None else _BANDWIDTHS[-1:]:
        width = factor * 1.06 * n**-0.2
        sums = np.fft.irfft(spectrum * np.exp(-2 * np.square(np.pi * _FREQUENCIES * width)), 2 * _CELLS) / _STEP
        at_value = sums[cell] * (1 - share) + sums[cell + 1] * share
        if at is None:
            others = np.maximum(at_value - 1 / (np.sqrt(2 * np.pi) * width), 0) / max(n - 1, 1)
        else:
            others = np.maximum(at_value, 0) / n
        estimate = np.log((1 - _TAIL) * others + tail)
        best = estimate if estimate.sum() > best.sum() else best
    return best - np.log(spread)


def _cells(scaled: Array) -> tuple[NDArray[np.int64], Array]:
    """Return the grid cells of values, and the position within each cell."""
    position = (np.clip(scaled, -_SPAN + _STEP, _SPAN - _STEP) + _SPAN) / _STEP
    cell = position.astype(np.int64)
    return cell, position - cell
