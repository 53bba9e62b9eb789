"""A target given all other columns, row by row, by Bayes.

Given the others, the density of a target ``y`` is proportional to that of its own noise, ``p(y - from parents)``, times
that of the noise which each child would then have had. With one dimension to integrate over, sums on a grid that is
drawn around the density are exact to several digits for any function and noise.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax

from castlereg.synthetic.equations import Features
from castlereg.synthetic.noise import NOISES, Noise

Array = NDArray[np.float64]

GRID: Final = 512  # points per row
LEAST: Final = GRID // 3  # points that must fall where the density is; otherwise the grid is drawn closer around it
ROUNDS: Final = 8  # each draws the grid closer, up to eighty times
FEWEST: Final = 8  # points of several peaks together; with fewer in one of a hundred rows the shape is unknown
NEGLIGIBLE: Final = 16.0  # e^-16 of the highest density, a ten-millionth


class NumericChild(NamedTuple):
    """A numeric child of the target: its standardized noise, shape (rows,), and the target's effect on it."""

    noise: Array
    weights: Array  # of the target's features, in units of the noise's standard deviation
    kind: Noise

    def log_likelihood(self, change: Array) -> Array:
        """Return the log-density if the target's features changed, from shape (rows, points, features)."""
        return self.kind.log_density(self.noise[:, None] - change @ self.weights)


class CategoricalChild(NamedTuple):
    """A categorical child: scores of its levels, shape (levels, rows), the level it has, and the target's effect."""

    scores: Array
    level: NDArray[np.intp]
    weights: Array  # (levels, features)

    def log_likelihood(self, change: Array) -> Array:
        """Return the log-probability of the level, as for numeric children."""
        scores = self.scores.T[:, None] + change @ self.weights.T
        found = np.take_along_axis(log_softmax(scores, axis=-1), self.level[:, None, None], axis=-1)
        return np.asarray(found[..., 0])


Child = NumericChild | CategoricalChild


def merged(children: list[Child]) -> list[Child]:
    """Replace numeric children with Gaussian noise by one as informative, if the target has a single feature.

    With ``e_c`` the noise and ``w_c`` the weight of child c, ``sum (e_c - w_c t)^2`` depends on t as
    ``(sum w_c e_c / w - w t)^2`` with ``w^2 = sum w_c^2``.
    """
    gaussian = [
        child
        for child in children
        if isinstance(child, NumericChild) and child.kind is NOISES["gaussian"] and len(child.weights) == 1
    ]
    if len(gaussian) < 2:
        return children
    weights = np.concatenate([child.weights for child in gaussian])
    size = float(np.sqrt(np.sum(weights**2)))
    noise = np.sum([w / size * child.noise for w, child in zip(weights, gaussian, strict=True)], axis=0)
    one = NumericChild(noise, np.array([size]), NOISES["gaussian"])
    return [one, *(child for child in children if not any(child is other for other in gaussian))]


def level_posterior(prior: Array, levels: NDArray[np.intp], features: Features, children: list[Child]) -> Array:
    """Return the log-probability of each level of a categorical target given the rest.

    Parameters
    ----------
    prior : array of shape (levels, rows)
        Log-probabilities given the parents, up to a constant.
    levels : array of int, shape (rows,)
        The true ones, on which the noise of the children rests.
    features : Features
        Of the target.
    children : list

    Returns
    -------
    array of shape (rows, levels)
    """
    every = features.apply(np.arange(len(prior), dtype=np.float64)).T
    change = every - every[levels][:, None]
    total = prior.T.copy()
    for child in children:
        total += child.log_likelihood(change)
    return np.asarray(log_softmax(total, axis=1))


def conditional_variance(
    values: Array, noise: Array, noise_std: float, kind: Noise, features: Features, children: list[Child]
) -> Array:
    """Return the variance of a numeric target given the rest.

    Parameters
    ----------
    values : array of shape (rows,)
        True values of the target, on which the noise of the children rests.
    noise : array of shape (rows,)
        Its noise, in its units.
    noise_std : float
    kind : Noise
    features : Features
        Of the target.
    children : list

    Returns
    -------
    array of shape (rows,)

    Raises
    ------
    ValueError
        If the density has several peaks that are too narrow for the grid.

    Examples
    --------
    A child with the same noise, into which the target goes with weight 1, halves the variance:

    >>> import numpy as np
    >>> from castlereg.synthetic.equations import node_features
    >>> rng = np.random.default_rng(0)
    >>> y = rng.standard_normal(5)
    >>> child = NumericChild(rng.standard_normal(5), np.ones(1), NOISES["gaussian"])
    >>> conditional_variance(y, y, 1.0, NOISES["gaussian"], node_features("linear", 0, rng), [child]).round(6)
    array([0.5, 0.5, 0.5, 0.5, 0.5])
    """
    children = merged(children)

    def log_density(shift: Array) -> Array:
        """Return the log-density of the target at its true value plus a shift, from and to shape (rows, points)."""
        total = kind.log_density((noise[:, None] + shift) / noise_std)
        moved = features.apply((values[:, None] + shift).ravel()).reshape(features.size, *shift.shape)
        change = moved - features.apply(values)[:, :, None]
        for child in children:
            total = total + child.log_likelihood(np.moveaxis(change, 0, -1))
        return total

    return _variance(log_density, noise_std * kind.low - noise, noise_std * kind.high - noise)


def _variance(log_density: Callable[[Array], Array], low: Array, high: Array) -> Array:
    """Return the variance of densities between bounds, around a value 0 that is known to have density.

    A density whose support is narrower than a cell can fall between the points of the first grid; since 0 is in it, the
    next grid is drawn around 0.
    """
    at_zero = log_density(np.zeros((len(low), 1)))[:, 0]
    cells = np.arange(GRID)
    for _ in range(ROUNDS):
        step = (high - low) / GRID
        points = low[:, None] + step[:, None] * (cells + 0.5)
        logs = log_density(points)
        kept = logs > np.maximum(logs.max(axis=1), at_zero)[:, None] - NEGLIGIBLE
        count = kept.sum(axis=1)
        first, last = kept.argmax(axis=1), GRID - 1 - kept[:, ::-1].argmax(axis=1)
        if ((count > 0) & (last - first >= LEAST)).all():
            break
        inner_low = np.where(count, low + (first - 1) * step, 0)
        inner_high = np.where(count, low + (last + 2) * step, 0)
        low, high = (
            np.maximum(low, np.minimum(inner_low, -step)),
            np.minimum(high, np.maximum(inner_high, step)),
        )
    if np.mean(count < FEWEST) > 0.01:  # peaks far apart and narrow: no grid around all of them is fine enough
        raise ValueError(
            "given the other columns, the target's density has several peaks too narrow for a grid, so that its best "
            "error cannot be computed; take smaller weights or more noise"
        )
    density = np.exp(logs - logs.max(axis=1, keepdims=True))
    density /= density.sum(axis=1, keepdims=True)
    mean = (density * points).sum(axis=1, keepdims=True)
    return np.asarray((density * (points - mean) ** 2).sum(axis=1))
