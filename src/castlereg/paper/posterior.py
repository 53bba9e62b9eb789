"""The posterior of a target given all other columns, row by row, by Bayes' rule.

Given the other columns, the density of a target ``y`` is proportional to the density of its own noise,
``p(y - from parents)``, times the densities of the noise that each child would then have. The integral has one
dimension, so sums on a grid around the density are exact to several digits for any function and noise.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax

from castlereg.causal.synthetic.equations import Features
from castlereg.paper.densities import DENSITIES, Density

Array = NDArray[np.float64]

GRID: Final = 512  # points per row
LEAST: Final = GRID // 3  # minimum number of points within the density; with fewer, the grid is narrowed around it
ROUNDS: Final = 8  # each narrows the grid, up to eighty times
FEWEST: Final = 8  # points within all peaks together; with fewer in 1 % of the rows, the shape is not resolved
NEGLIGIBLE: Final = 16.0  # e^-16 of the highest density, a ten-millionth


class NumericChild(NamedTuple):
    """A numeric child of the target: its standardized noise, shape (rows,), and the target's effect on it."""

    noise: Array
    weights: Array  # of the target's features, in units of the noise's standard deviation
    kind: Density

    def log_likelihood(self, change: Array) -> Array:
        """Return the log-density after a change of the target's features, of shape (rows, points, features)."""
        return self.kind.log_density(self.noise[:, None] - change @ self.weights)


class CategoricalChild(NamedTuple):
    """A categorical child: scores of its levels, shape (levels, rows), its level, and the target's effect."""

    scores: Array
    level: NDArray[np.intp]
    weights: Array  # (levels, features)

    def log_likelihood(self, change: Array) -> Array:
        """Return the log-probability of the level after a change of the target's features."""
        scores = self.scores.T[:, None] + change @ self.weights.T
        logs = np.take_along_axis(log_softmax(scores, axis=-1), self.level[:, None, None], axis=-1)
        return np.asarray(logs[..., 0])


Child = NumericChild | CategoricalChild


def merged(children: list[Child]) -> list[Child]:
    """Replace numeric children with Gaussian noise by one equivalent child, if the target has a single feature.

    With ``e_c`` the noise and ``w_c`` the weight of child c, ``sum (e_c - w_c t)^2`` depends on t as
    ``(sum w_c e_c / w - w t)^2`` with ``w^2 = sum w_c^2``.
    """
    gaussian = [
        child
        for child in children
        if isinstance(child, NumericChild) and child.kind is DENSITIES["gaussian"] and len(child.weights) == 1
    ]
    if len(gaussian) < 2:
        return children
    weights = np.concatenate([child.weights for child in gaussian])
    size = float(np.sqrt(np.sum(weights**2)))
    noise = np.sum([w / size * child.noise for w, child in zip(weights, gaussian, strict=True)], axis=0)
    equivalent = NumericChild(noise, np.array([size]), DENSITIES["gaussian"])
    return [equivalent, *(child for child in children if not any(child is other for other in gaussian))]


def level_posterior(prior: Array, levels: NDArray[np.intp], features: Features, children: list[Child]) -> Array:
    """Return the log-probability of each level of a categorical target given the other columns.

    Parameters
    ----------
    prior : array of shape (levels, rows)
        Log-probabilities given the parents, up to a constant.
    levels : array of int, shape (rows,)
        True levels of the target, which the noise of the children refers to.
    features : Features
        Features of the target.
    children : list

    Returns
    -------
    array of shape (rows, levels)
    """
    by_level = features.apply(np.arange(len(prior), dtype=np.float64)).T
    change = by_level - by_level[levels][:, None]
    total = prior.T.copy()
    for child in children:
        total += child.log_likelihood(change)
    return np.asarray(log_softmax(total, axis=1))


def conditional_variance(
    values: Array, noise: Array, noise_std: float, kind: Density, features: Features, children: list[Child]
) -> Array:
    """Return the variance of a numeric target given the other columns.

    Parameters
    ----------
    values : array of shape (rows,)
        True values of the target, which the noise of the children refers to.
    noise : array of shape (rows,)
        Noise of the target, in the unit of the target.
    noise_std : float
    kind : Density
    features : Features
        Features of the target.
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
    A child with the same noise and an edge weight of 1 halves the variance:

    >>> import numpy as np
    >>> from castlereg.causal.synthetic.equations import node_features
    >>> rng = np.random.default_rng(0)
    >>> y = rng.standard_normal(5)
    >>> child = NumericChild(rng.standard_normal(5), np.ones(1), DENSITIES["gaussian"])
    >>> conditional_variance(y, y, 1.0, DENSITIES["gaussian"], node_features("linear", 0, rng), [child]).round(6)
    array([0.5, 0.5, 0.5, 0.5, 0.5])
    """
    children = merged(children)

    def log_density(shift: Array) -> Array:
        """Return the log-density of the target at its true value plus a shift; both have shape (rows, points)."""
        total = kind.log_density((noise[:, None] + shift) / noise_std)
        moved = features.apply((values[:, None] + shift).ravel()).reshape(features.size, *shift.shape)
        change = moved - features.apply(values)[:, :, None]
        for child in children:
            total = total + child.log_likelihood(np.moveaxis(change, 0, -1))
        return total

    return _variance(log_density, noise_std * kind.low - noise, noise_std * kind.high - noise)


def _variance(log_density: Callable[[Array], Array], low: Array, high: Array) -> Array:
    """Return the variance of densities between bounds; the density at 0 is positive.

    A density whose support is narrower than a cell may lie between the points of the first grid. Because its support
    contains 0, the next grid is centred on 0.
    """
    at_zero = log_density(np.zeros((len(low), 1)))[:, 0]
    cells = np.arange(GRID)
    for _ in range(ROUNDS):
        step = (high - low) / GRID
        points = low[:, None] + step[:, None] * (cells + 0.5)
        logs = log_density(points)
        relevant = logs > np.maximum(logs.max(axis=1), at_zero)[:, None] - NEGLIGIBLE
        count = relevant.sum(axis=1)
        first, last = relevant.argmax(axis=1), GRID - 1 - relevant[:, ::-1].argmax(axis=1)
        if ((count > 0) & (last - first >= LEAST)).all():
            break
        inner_low = np.where(count, low + (first - 1) * step, 0)
        inner_high = np.where(count, low + (last + 2) * step, 0)
        low, high = (
            np.maximum(low, np.minimum(inner_low, -step)),
            np.minimum(high, np.maximum(inner_high, step)),
        )
    if np.mean(count < FEWEST) > 0.01:  # narrow peaks far apart: no grid around all of them is fine enough
        raise ValueError(
            "given the other columns, the density of the target has several peaks too narrow for a grid, so its "
            "best error cannot be computed; use smaller weights or more noise"
        )
    density = np.exp(logs - logs.max(axis=1, keepdims=True))
    density /= density.sum(axis=1, keepdims=True)
    mean = (density * points).sum(axis=1, keepdims=True)
    return np.asarray((density * (points - mean) ** 2).sum(axis=1))
