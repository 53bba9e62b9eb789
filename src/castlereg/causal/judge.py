"""The judge: the log likelihood of a column given others, cross-validated over rows, for every kind of column.

Continuous numbers are sums of smooth functions of their causes plus noise; the density of the noise is learned, its
scale may depend on the causes, and the number may be a monotone function of such a sum. Rounded numbers are the same
after each value is spread over its cell. Ordinal values, counts, and numbers with many equal values (zeros, limits) are
cells of a latent normal number that is such a sum, so their likelihood is a probability of the cell. Levels have logits
that are such sums, or a table of shares. Products of two causes join where the residuals ask for them. If several forms
are possible, the best on left-out rows is used. A row in which a cause is missing is scored without that cause.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax, ndtr, ndtri
from scipy.stats import rankdata

from castlereg.causal.smooth import Basis, fit_logits
from castlereg.causal.variables import Variable

Array = NDArray[np.float64]
Rows = NDArray[np.int64]

_WAVES = 7  # more would only take longer
_FOLDS = 4
_RIDGES = np.array([1e-3, 1e-1, 1e1])  # the last one leaves little more than straight lines
_USUAL_RIDGE = 1e-2  # where it is not chosen
_MARGIN = 3.0  # gain in log density of all rows that a more complex form needs
_FLOOR = 1e-2  # share of the mean squared residual that is added before the logarithm
_STEPS = 15  # for fitting logits
_ROWS_PER_CELL = 5  # minimum for a table of shares
_LEAST_SHARE = 1e-3
_MOST_LEVELS = 15  # of a column; rarer ones count as one
_NEARLY_NORMAL = 0.998  # correlation of a number with its normal scores
_MOST_STORED = 4000  # scores of rows
_FEWEST_ROWS = 40  # with fewer rows that have all causes, the cause that is missing most often is left out

# What kind of number a column holds, from the shares of its values
_FEW_REPEATS = 0.1  # share of rows with a repeated value, up to which a number is continuous
_MANY_VALUES, _LARGE_CELL = 25, 0.05  # numbers of more values, none with a larger share, are rounded
_EM_STEPS = 4  # for latent numbers; the likelihood hardly changes after
_OUTLIERS = 0.02  # share of rows that a latent number does not explain

_PRODUCT_SHAPES = (0, 2)  # of a number: its line, and a wave that is highest at both ends
_MOST_PRODUCT_LEVELS = 4
_CLEAR_PRODUCT, _MOST_PAIRS = 4.5, 3  # standard errors of a correlation with the residuals; pairs that join

# Residuals are in units of their spread around the median. Outside the span only the wide tail remains.
_SPAN, _CELLS = 8.0, 512
_STEP = 2 * _SPAN / _CELLS
_FREQUENCIES = np.fft.rfftfreq(2 * _CELLS, d=_STEP)
_BANDWIDTHS = (0.6, 1.0)  # factors of Silverman's rule; the better one is used
_TAIL, _TAIL_SCALE = 0.05, 2.0  # share and scale of a Cauchy density, which makes every residual possible


@dataclass(frozen=True)
class Column:
    """A column as the judge sees it: numbers with mean 0 and variance 1, or levels.

    ``kind`` is continuous, rounded, tied (ordinal values, counts, zeros and limits) or levels.
    """

    values: Array  # (rows,); missing cells are zero
    levels: int = 0  # 0 for a number
    present: NDArray[np.bool_] | None = None  # (rows,), True where a cell is not missing; None if none is
    kind: str = "continuous"

    @classmethod
    def of(cls, variable: Variable, values: Array) -> Column:
        """Prepare a column: ordinal levels count as numbers, numbers of two values as levels."""
        missing, schema = np.isnan(values), variable.schema
        present = ~missing if missing.any() and not missing.all() else None
        if missing.all():
            return cls(np.zeros(len(values)))
        if variable.levels is not None and (schema is None or schema.kind != "ordinal"):
            codes, n_levels = _common_levels(np.where(missing, 0, values).astype(np.int64), present)
            return cls(np.where(missing, 0.0, codes), n_levels, present, "levels")
        different, counts = np.unique(values[~missing], return_counts=True)
        if len(different) == 2:
            return cls((values == different[1]).astype(np.float64), 2, present, "levels")
        values = values / (np.nanmax(np.abs(values)) or 1.0)  # squares of large numbers would overflow
        center, spread = float(values[~missing].mean()), float(values[~missing].std())
        scaled = np.where(missing, 0.0, values - center) / (spread or 1.0)
        return cls(scaled, 0, present, kind_of_numbers(counts))

    @property
    def mask(self) -> NDArray[np.bool_]:
        """Where cells are present, shape (rows,)."""
        return np.ones(len(self.values), bool) if self.present is None else self.present

    @cached_property
    def spread_values(self) -> Array:
        """Values to which densities apply: those of rounded numbers are spread between their neighbours' middles."""
        if self.kind != "rounded":
            return self.values
        at = np.flatnonzero(self.mask)
        different, codes = np.unique(self.values[at], return_inverse=True)
        middles = (different[1:] + different[:-1]) / 2
        ends = np.r_[2 * different[0] - middles[0], middles, 2 * different[-1] - middles[-1]]
        digest = hashlib.blake2b((np.round(different, 6) + 0.0).tobytes(), digest_size=8).digest()
        position = np.random.default_rng(int.from_bytes(digest)).random(len(at))
        values = self.values.copy()
        values[at] = ends[codes] + position * (ends[codes + 1] - ends[codes])
        return values

    @cached_property
    def normal(self) -> Array:
        """Normal scores of the values, from the ranks of those that are present; zero where they are missing."""
        scores = np.zeros(len(self.values))
        scores[self.mask] = _normal_scores(self.spread_values[self.mask])
        return scores

    @cached_property
    def cells(self) -> Array:
        """Normal scores at the lower and upper end of each value's cell, shape (2, rows)."""
        _, codes, counts = np.unique(self.values[self.mask], return_inverse=True, return_counts=True)
        ends = ndtri(np.r_[0.0, np.cumsum(counts) / counts.sum()])
        cells = np.zeros((2, len(self.values)))
        cells[:, self.mask] = ends[codes], ends[codes + 1]
        return cells

    @cached_property
    def is_nearly_normal(self) -> bool:
        """Whether normal scores hardly differ from the values."""
        values = self.spread_values[self.mask]
        return not values.any() or bool(np.corrcoef(values, self.normal[self.mask])[0, 1] > _NEARLY_NORMAL)

    @cached_property
    def basis(self) -> tuple[Array, Array]:
        """Features, shape (rows, features), in which functions of the column are nearly linear, and their penalties."""
        values = self.values if self.present is None else np.where(self.present, self.values, np.nan)
        basis = Basis.of_levels(self.levels) if self.levels else Basis.of_numbers(values, _WAVES)
        # The last feature is for missing values, which the judge leaves out.
        return basis.expand(values)[:, :-1], basis.penalties[:-1]

    @property
    def product_shapes(self) -> list[int]:
        """Which features of the basis are multiplied with those of other columns."""
        shapes = range(min(self.levels, _MOST_PRODUCT_LEVELS)) if self.levels else _PRODUCT_SHAPES
        return [shape for shape in shapes if shape < self.basis[0].shape[1]]


def kind_of_numbers(counts: NDArray[np.int64]) -> str:
    """Return the kind of a column of numbers, from how often each value occurs.

    Examples
    --------
    >>> [kind_of_numbers(np.array(counts)) for counts in ([1] * 99, [4] * 50, [60, 30, 9], [500, *[1] * 500])]
    ['continuous', 'rounded', 'tied', 'tied']
    """
    shares = counts / counts.sum()
    if shares[counts > 1].sum() <= _FEW_REPEATS:
        return "continuous"
    return "rounded" if len(counts) > _MANY_VALUES and shares.max() <= _LARGE_CELL else "tied"


def _common_levels(codes: Rows, present: NDArray[np.bool_] | None) -> tuple[Array, int]:
    """Number the levels from the most common one, and merge the rarest ones."""
    counts = np.bincount(codes if present is None else codes[present])
    rank = np.argsort(np.argsort(-counts, kind="stable"))
    n_levels = min(_MOST_LEVELS, int((counts > 0).sum()))
    return np.minimum(rank[np.minimum(codes, len(rank) - 1)], n_levels - 1).astype(np.float64), n_levels


def _normal_scores(values: Array) -> Array:
    return np.asarray(ndtri((rankdata(values) - 0.5) / len(values)))


class _Fits:
    """Ridge regressions on the features of some causes, for any values: each fold is predicted from the others."""

    def __init__(self, features: Array, penalties: Array, fold: Rows, left: Array | None = None) -> None:
        self.features, self.penalties, self.fold = features, penalties, fold
        self.in_fold = (fold == np.arange(_FOLDS)[:, None]).astype(np.float64)
        self.left = np.stack([(features.T * rows) @ features for rows in self.in_fold]) if left is None else left

    @cached_property
    def inverses(self) -> Array:
        """Inverses of the systems without each fold, for each ridge; shape (folds, ridges, features, features)."""
        others = self.left.sum(axis=0) - self.left
        strength = len(self.fold) * (1 - 1 / _FOLDS) * _RIDGES[:, None, None]
        return np.asarray(np.linalg.inv(others[:, None] + strength * np.diag(self.penalties)))

    def left_out(self, values: Array, ridge: int | None = None) -> tuple[Array, float, int]:
        """Predict left-out rows, with the best ridge by default.

        Return the predictions, how much lower their squared error is than that of predicting zero, and the ridge.
        """
        right = (self.in_fold * values) @ self.features
        other = right.sum(axis=0) - right
        if ridge is None:
            weights = (self.inverses @ other[:, None, :, None])[..., 0]
            gains = ((2 * right[:, None] - np.matmul(weights, self.left)) * weights).sum(axis=(0, 2))
            ridge = int(np.argmax(gains))
            gain, weights = float(gains[ridge]), weights[:, ridge]
        else:
            gain, weights = np.nan, (self.inverses[:, ridge] @ other[..., None])[..., 0]
        return (self.features @ weights.T)[np.arange(len(values)), self.fold], gain, ridge


class Judge:
    """Scores of columns given others."""

    def __init__(self, columns: Sequence[Column], seed: int = 0) -> None:
        self.columns = columns
        self.n_rows = len(columns[0].values)
        features, penalties = zip(*(column.basis for column in columns), strict=True)
        starts = np.cumsum([1, *(block.shape[1] for block in features)])
        self._at = [np.arange(*ends) for ends in itertools.pairwise(starts)]
        self._features = np.concatenate([np.ones((self.n_rows, 1)), *features], axis=1)
        self._penalties = np.concatenate([[1e-9], *penalties])
        self._fold = np.random.default_rng(seed).permutation(self.n_rows) % _FOLDS
        folds = [self._features[self._fold == k] for k in range(_FOLDS)]
        # For products of two causes: which features they multiply, and the variance of each product
        self._shapes = [at[column.product_shapes] for at, column in zip(self._at, columns, strict=True)]
        shapes = self._features[:, np.concatenate(self._shapes)]
        self._shapes_at = np.cumsum([0, *map(len, self._shapes)])
        self._product_variance = np.square(shapes).T @ np.square(shapes) / self.n_rows
        self._product_variance -= np.square(shapes.T @ shapes / self.n_rows)
        self._products = np.stack([rows.T @ rows for rows in folds])
        self._is_complete = all(column.present is None for column in columns)
        self._simple: dict[tuple[int, frozenset[int]], Array] = {}  # scores of rows, only if cells are missing
        self._alone = [self._without_causes(column) for column in columns]

    def total(self, effect: int, causes: frozenset[int]) -> float:
        """Return the log likelihood of a column given others, summed over rows."""
        return float(self.by_row(effect, causes).sum())

    def by_row(self, effect: int, causes: frozenset[int]) -> Array:
        """Return the log likelihood of a column given others for every row; zero where the column is missing.

        Rows without some of the causes are scored by the others, in a simpler form.
        """
        if not causes:
            return self._alone[effect]
        if self._is_complete:
            return self._fitted(effect, causes, None)
        used = [*sorted(causes), effect]
        present = np.stack([self.columns[k].mask for k in used])
        is_complete = present.all(axis=0)
        complete, scores = np.flatnonzero(is_complete), self._alone[effect].copy()
        if len(complete) < _FEWEST_ROWS:
            return self.by_row(effect, causes - {used[int(np.argmin(present[:-1].sum(axis=1)))]})
        scores[complete] = self._fitted(effect, causes, complete if len(complete) < self.n_rows else None)
        partly = np.flatnonzero(present[-1] & ~is_complete)
        patterns, pattern = np.unique(present[:-1, partly], axis=1, return_inverse=True)
        for k, has_cause in enumerate(patterns.T):
            known = frozenset(itertools.compress(used[:-1], has_cause))
            if known:
                rows = partly[np.ravel(pattern) == k]
                scores[rows] = self._simple_scores(effect, known)[rows]
        return scores

    def _simple_scores(self, effect: int, causes: frozenset[int]) -> Array:
        """Score the rows in which all are present by the simplest form; other rows without causes."""
        if (effect, causes) not in self._simple:
            if len(self._simple) > _MOST_STORED:
                self._simple.clear()
            rows = np.flatnonzero(np.logical_and.reduce([self.columns[k].mask for k in (effect, *causes)]))
            scores = self._alone[effect].copy()
            if len(rows) >= _FEWEST_ROWS:
                fitted = self._fitted(effect, causes, rows, is_simple=True)
                if fitted.sum() > scores[rows].sum():
                    scores[rows] = fitted
            self._simple[effect, causes] = scores
        return self._simple[effect, causes]

    def _fitted(self, effect: int, causes: frozenset[int], rows: Rows | None, is_simple: bool = False) -> Array:
        """Return the log likelihood in some rows, in which no cell is missing; in all rows for None."""
        column, used = self.columns[effect], np.concatenate([[0], *(self._at[cause] for cause in sorted(causes))])
        if rows is None:
            left = self._products[:, used[:, None], used]
            fits = _Fits(self._features[:, used], self._penalties[used], self._fold, left)
        else:
            fits = _Fits(self._features[np.ix_(rows, used)], self._penalties[used], self._fold[rows])
        rows = np.arange(self.n_rows) if rows is None else rows
        if is_simple and not column.levels:
            if column.kind == "tied":
                cells = column.cells[:, rows]
                return _of_cells(cells, *self._expected(cells, fits, 1)[:2], self._alone[effect][rows])
            return log_density(column.spread_values[rows] - fits.left_out(column.spread_values[rows])[0])
        if column.levels:
            return self._level(column, effect, causes, rows, fits)
        if column.kind == "tied":
            return self._latent(column, effect, causes, rows, fits)
        return self._number(column, effect, causes, rows, fits)

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
        scores, mask = np.zeros(self.n_rows), column.mask
        if not column.levels and column.kind != "tied":
            scores[mask] = log_density(column.spread_values[mask])
            return scores
        _, codes, counts = np.unique(column.values[mask], return_inverse=True, return_counts=True)
        if column.levels:  # without the row itself
            shares = np.maximum((counts - 0.5) / (mask.sum() - 1 + 0.5 * column.levels), 1e-9)
        else:  # the cells of the latent number have the same shares
            shares = counts / counts.sum()
        scores[mask] = np.log(shares)[codes]
        return scores

    # --- products of two causes ---------------------------------------------------------------------

    def _with_products(self, causes: frozenset[int], residuals: Array, rows: Rows, fits: _Fits) -> _Fits | None:
        """Add the products of the pairs of causes that the residuals, shape (rows, outputs), are clearly related to."""
        if len(causes) < 2:
            return None
        used = sorted(causes)
        owner = np.repeat(np.arange(len(used)), [len(self._shapes[cause]) for cause in used])
        shapes = self._features[rows[:, None], np.concatenate([self._shapes[cause] for cause in used])]
        at = np.concatenate([np.arange(*self._shapes_at[[cause, cause + 1]]) for cause in used])
        deviation = np.sqrt(np.maximum(self._product_variance[np.ix_(at, at)], 1e-3))
        clear = np.zeros(deviation.shape)
        for output in _standardized(residuals).T:
            np.maximum(clear, np.abs((shapes.T * output) @ shapes) / np.sqrt(len(rows)) / deviation, out=clear)
        by_pair = np.zeros((len(used), len(used)))
        np.maximum.at(by_pair, (owner[:, None], owner), clear)
        by_pair = np.triu(by_pair, 1)
        best = np.argsort(-by_pair, axis=None, kind="stable")[:_MOST_PAIRS]
        pairs = [(a, b) for a, b in zip(*np.unravel_index(best, by_pair.shape), strict=True)
                 if by_pair[a, b] > _CLEAR_PRODUCT]  # fmt: skip
        if not pairs:
            return None
        blocks = [
            _standardized((shapes[:, owner == a][:, :, None] * shapes[:, owner == b][:, None]).reshape(len(rows), -1))
            for a, b in pairs
        ]
        features = np.concatenate([fits.features, *blocks], axis=1)
        penalties = np.r_[fits.penalties, np.full(features.shape[1] - fits.features.shape[1], 0.1)]
        return _Fits(features, penalties, fits.fold)

    # --- numbers ------------------------------------------------------------------------------------

    def _number(self, column: Column, effect: int, causes: frozenset[int], rows: Rows, fits: _Fits) -> Array:
        values = column.spread_values[rows]
        best = self._noise(values, causes, rows, fits)
        if column.is_nearly_normal:
            return best
        # Normal scores undo a monotone function; adding its log derivative gives the density of the number itself. It
        # is the quotient of two densities, both estimated, or scores with and without causes could not be compared.
        normal = column.normal[rows]
        derivative = self._alone[effect][rows] - log_density(normal)
        return _better(self._noise(normal, causes, rows, fits) + derivative, best)

    def _noise(self, values: Array, causes: frozenset[int], rows: Rows, fits: _Fits) -> Array:
        """Score numbers as smooth functions plus noise; the scale of the noise may depend on the causes."""
        residuals = values - fits.left_out(values)[0]
        scores = self._scaled_noise(residuals, fits)
        joint = self._with_products(causes, residuals[:, None], rows, fits)
        if joint is None:
            return scores
        return _better(self._scaled_noise(values - joint.left_out(values)[0], fits), scores)

    @staticmethod
    def _scaled_noise(residuals: Array, fits: _Fits) -> Array:
        """Return the log density of residuals, whose scale may depend on the causes."""
        scores = log_density(residuals)
        squares = np.log(np.square(residuals) + _FLOOR * residuals.var() + 1e-300)
        log_square, gain, _ = fits.left_out(squares - squares.mean())
        if gain <= 0:  # not better than a constant
            return scores
        log_scale = 0.5 * (log_square - log_square.mean())
        return _better(log_density(residuals * np.exp(-log_scale)) - log_scale, scores)

    # --- cells of a latent number -------------------------------------------------------------------

    def _latent(self, column: Column, effect: int, causes: frozenset[int], rows: Rows, fits: _Fits) -> Array:
        """Score cells of a latent normal number; its expectation given the cell and the causes is regressed (EM)."""
        cells, alone = column.cells[:, rows], self._alone[effect][rows]
        center, scale, latent = self._expected(cells, fits)
        best = _of_cells(cells, center, scale, alone)
        joint = self._with_products(causes, (latent - center)[:, None], rows, fits)
        if joint is not None:
            other_center, other_scale, other_latent = self._expected(cells, joint)
            better = _better(_of_cells(cells, other_center, other_scale, alone), best)
            if better is not best:
                best, center, scale, latent = better, other_center, other_scale, other_latent
        squares = np.log(np.square(latent - center) + _FLOOR * scale**2)
        log_square, gain, _ = fits.left_out(squares - squares.mean())
        if gain <= 0:
            return best
        log_scale = 0.5 * (log_square - log_square.mean())
        return _better(_of_cells(cells, center, scale * np.exp(log_scale), alone), best)

    @staticmethod
    def _expected(cells: Array, fits: _Fits, steps: int = _EM_STEPS) -> tuple[Array, float, Array]:
        """Return the expected latent number of left-out rows, the scale of its noise, and the number given its cell."""
        latent, variance = _truncated(cells, np.zeros(cells.shape[1]), 1.0)
        center, _, ridge = fits.left_out(latent)
        for _ in range(steps):
            scale = float(np.sqrt(np.mean(np.square(latent - center) + variance)))
            latent, variance = _truncated(cells, center, scale)
            center, *_ = fits.left_out(latent, ridge)
        return center, float(np.sqrt(np.mean(np.square(latent - center) + variance))), latent

    # --- levels -------------------------------------------------------------------------------------

    def _level(self, column: Column, effect: int, causes: frozenset[int], rows: Rows, fits: _Fits) -> Array:
        """Score levels by logits, or by a table of shares if all causes have levels."""
        codes = column.values[rows].astype(np.int64)
        shapes = [self.columns[cause].levels for cause in causes]
        if all(shapes) and np.prod([float(n) for n in shapes]) * _ROWS_PER_CELL <= len(rows):
            return self._shares(column, codes, causes, rows, np.exp(self._alone[effect][rows]))
        truth = (codes == np.arange(column.levels)[:, None]).astype(np.float64)
        scores, shares = self._logits(truth, fits)
        if len(causes) > 1:
            joint = self._with_products(causes, (truth - shares).T, rows, fits)
            if joint is not None:
                scores = _better(self._logits(truth, joint)[0], scores)
        return scores

    def _shares(self, column: Column, codes: Rows, causes: frozenset[int], rows: Rows, prior: Array) -> Array:
        cell = np.zeros(len(rows), np.int64)
        for cause in sorted(causes):
            cell = cell * self.columns[cause].levels + self.columns[cause].values[rows].astype(np.int64)
        counts = np.bincount(cell * column.levels + codes, minlength=(int(cell.max()) + 1) * column.levels)
        same_level = counts[cell * column.levels + codes] - 1.0  # without the row itself
        all_levels = counts.reshape(-1, column.levels).sum(axis=1)[cell] - 1.0
        return np.asarray(np.log((same_level + prior) / (all_levels + 1.0)))

    @staticmethod
    def _logits(truth: Array, fits: _Fits) -> tuple[Array, Array]:
        """Fit logits on all folds but one; return the log likelihood of each row, and the shares of its levels."""
        n_rows = truth.shape[1]
        total, penalty = fits.left.sum(axis=0), _USUAL_RIDGE * n_rows * fits.penalties
        log_shares = np.empty((len(truth), n_rows))
        for k, product in enumerate(fits.left):
            rows, train = fits.fold == k, fits.fold != k
            ones = np.ones(int(train.sum()))
            weights = fit_logits(fits.features[train], truth[:, train], ones, penalty, _STEPS, total - product)
            log_shares[:, rows] = log_softmax(fits.features[rows] @ weights, axis=1).T
        scores = np.maximum((log_shares * truth).sum(axis=0), np.log(_LEAST_SHARE))
        return scores, np.exp(log_shares)


def _truncated(cells: Array, center: Array, scale: float) -> tuple[Array, Array]:
    """Return the mean and the variance of a normal number, given that it lies between two ends."""
    low, high = np.clip((cells - center) / scale, -8.0, 8.0)
    mass = np.maximum(ndtr(high) - ndtr(low), 1e-12)
    at_low, at_high = np.exp(-0.5 * low**2) / np.sqrt(2 * np.pi), np.exp(-0.5 * high**2) / np.sqrt(2 * np.pi)
    shift = np.clip((at_low - at_high) / mass, low, high)
    variance = np.clip(1 + (low * at_low - high * at_high) / mass - shift**2, 0.0, 1.0)
    return center + scale * shift, scale**2 * variance


def _of_cells(cells: Array, center: Array, scale: Array | float, alone: Array) -> Array:
    """Return the log probability of cells, mixed with a little of that without causes."""
    low, high = (cells - center) / scale
    mass = np.where(low > 0, ndtr(-low) - ndtr(-high), ndtr(high) - ndtr(low))
    return np.asarray(np.log((1 - _OUTLIERS) * np.maximum(mass, 0.0) + _OUTLIERS * np.exp(alone)))


def _better(candidate: Array, than: Array) -> Array:
    """Return the scores of a more complex form if it is clearly better."""
    return candidate if candidate.sum() > than.sum() + _MARGIN else than


def _standardized(values: Array) -> Array:
    centered = values - values.mean(axis=0)
    return np.asarray(centered / np.maximum(np.sqrt(np.square(centered).mean(axis=0)), 1e-12))


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
