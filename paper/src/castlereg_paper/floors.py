"""Errors that no predictor can beat, for a structural model with known equations and noise.

The posterior of a target given all other columns follows row by row from Bayes' rule: the density of a target ``y`` is
proportional to the density of its own noise, ``p(y - from parents)``, times the densities of the noise that each child
would then have. The integral has one dimension, so sums on a grid around the density are exact to several digits for
any function and noise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax

from castlereg.causal import KnownWorld
from castlereg.causal.worlds import Features

Array = NDArray[np.float64]

_SQRT2, _SQRT3 = math.sqrt(2), math.sqrt(3)
_GUMBEL_STD = math.pi / math.sqrt(6)  # of the standard Gumbel distribution, whose mean is Euler's constant


class _Density(NamedTuple):
    """The density of one kind of noise; less than 1e-10 of its mass lies outside ``low`` and ``high``."""

    log_density: Callable[[Array], Array]  # -inf outside the support
    low: float
    high: float


def _gaussian(u: Array) -> Array:
    return np.asarray(-0.5 * (u * u + np.log(2 * np.pi)))


def _uniform(u: Array) -> Array:
    return np.where(np.abs(u) <= _SQRT3, -np.log(2 * _SQRT3), -np.inf)


def _laplace(u: Array) -> Array:
    return np.asarray(-0.5 * np.log(2) - _SQRT2 * np.abs(u))


def _gumbel(u: Array) -> Array:
    z = _GUMBEL_STD * u + np.euler_gamma
    with np.errstate(over="ignore"):  # far to the left the density is zero
        return np.asarray(np.log(_GUMBEL_STD) - z - np.exp(-z))


_DENSITIES: Final[dict[str, _Density]] = {
    "gaussian": _Density(_gaussian, -6.5, 6.5),
    "uniform": _Density(_uniform, -_SQRT3, _SQRT3),
    "laplace": _Density(_laplace, -16.5, 16.5),
    "gumbel": _Density(_gumbel, -3.0, 18.0),
}


_GRID: Final = 512  # points per row
_LEAST: Final = _GRID // 3  # minimum number of points within the density; with fewer, the grid is narrowed around it
_ROUNDS: Final = 8  # each narrows the grid, up to eighty times
_FEWEST: Final = 8  # points within all peaks together; with fewer in 1 % of the rows, the shape is not resolved
_NEGLIGIBLE: Final = 16.0  # e^-16 of the highest density, a ten-millionth


class _NumericChild(NamedTuple):
    """A numeric child of the target: its standardized noise, shape (rows,), and the target's effect on it."""

    noise: Array
    weights: Array  # of the target's features, in units of the noise's standard deviation
    kind: _Density

    def log_likelihood(self, change: Array) -> Array:
        """Return the log-density after a change of the target's features, of shape (rows, points, features)."""
        return self.kind.log_density(self.noise[:, None] - change @ self.weights)


class _CategoricalChild(NamedTuple):
    """A categorical child: scores of its levels, shape (levels, rows), its level, and the target's effect."""

    scores: Array
    level: NDArray[np.intp]
    weights: Array  # (levels, features)

    def log_likelihood(self, change: Array) -> Array:
        """Return the log-probability of the level after a change of the target's features."""
        scores = self.scores.T[:, None] + change @ self.weights.T
        logs = np.take_along_axis(log_softmax(scores, axis=-1), self.level[:, None, None], axis=-1)
        return np.asarray(logs[..., 0])


_Child = _NumericChild | _CategoricalChild


def _merged(children: list[_Child]) -> list[_Child]:
    """Replace numeric children with Gaussian noise by one equivalent child, if the target has a single feature.

    With ``e_c`` the noise and ``w_c`` the weight of child c, ``sum (e_c - w_c t)^2`` depends on t as
    ``(sum w_c e_c / w - w t)^2`` with ``w^2 = sum w_c^2``.
    """
    gaussian = [
        child
        for child in children
        if isinstance(child, _NumericChild) and child.kind is _DENSITIES["gaussian"] and len(child.weights) == 1
    ]
    if len(gaussian) < 2:
        return children
    weights = np.concatenate([child.weights for child in gaussian])
    size = float(np.sqrt(np.sum(weights**2)))
    noise = np.sum([w / size * child.noise for w, child in zip(weights, gaussian, strict=True)], axis=0)
    equivalent = _NumericChild(noise, np.array([size]), _DENSITIES["gaussian"])
    return [equivalent, *(child for child in children if not any(child is other for other in gaussian))]


def _level_posterior(prior: Array, levels: NDArray[np.intp], features: Features, children: list[_Child]) -> Array:
    """Return the log-probability of each level of a categorical target given the other columns."""
    by_level = features.apply(np.arange(len(prior), dtype=np.float64)).T
    change = by_level - by_level[levels][:, None]
    total = prior.T.copy()
    for child in children:
        total += child.log_likelihood(change)
    return np.asarray(log_softmax(total, axis=1))


def _conditional_variance(
    values: Array, noise: Array, noise_std: float, kind: _Density, features: Features, children: list[_Child]
) -> Array:
    """Return the variance of a numeric target given the other columns.

    Raises
    ------
    ValueError
        If the density has several peaks that are too narrow for the grid.

    Examples
    --------
    A child with the same noise and an edge weight of 1 halves the variance:

    >>> import numpy as np
    >>> from castlereg.causal.worlds import node_features
    >>> rng = np.random.default_rng(0)
    >>> y = rng.standard_normal(5)
    >>> child = _NumericChild(rng.standard_normal(5), np.ones(1), _DENSITIES["gaussian"])
    >>> _conditional_variance(y, y, 1.0, _DENSITIES["gaussian"], node_features("linear", 0, rng), [child]).round(6)
    array([0.5, 0.5, 0.5, 0.5, 0.5])
    """
    children = _merged(children)

    def log_density(shift: Array) -> Array:
        """Return the log-density of the target at its true value plus a shift; both have shape (rows, points)."""
        total = kind.log_density((noise[:, None] + shift) / noise_std)
        moved = features.apply((values[:, None] + shift).ravel()).reshape(features.size, *shift.shape)
        change = moved - features.apply(values)[:, :, None]
        for child in children:
            total = total + child.log_likelihood(np.moveaxis(change, 0, -1))
        return total

    return _grid_variance(log_density, noise_std * kind.low - noise, noise_std * kind.high - noise)


def _grid_variance(log_density: Callable[[Array], Array], low: Array, high: Array) -> Array:
    """Return the variance of densities between bounds; the density at 0 is positive.

    A density whose support is narrower than a cell may lie between the points of the first grid. Because its support
    contains 0, the next grid is centred on 0.
    """
    at_zero = log_density(np.zeros((len(low), 1)))[:, 0]
    cells = np.arange(_GRID)
    for _ in range(_ROUNDS):
        step = (high - low) / _GRID
        points = low[:, None] + step[:, None] * (cells + 0.5)
        logs = log_density(points)
        relevant = logs > np.maximum(logs.max(axis=1), at_zero)[:, None] - _NEGLIGIBLE
        count = relevant.sum(axis=1)
        first, last = relevant.argmax(axis=1), _GRID - 1 - relevant[:, ::-1].argmax(axis=1)
        if ((count > 0) & (last - first >= _LEAST)).all():
            break
        inner_low = np.where(count, low + (first - 1) * step, 0)
        inner_high = np.where(count, low + (last + 2) * step, 0)
        low, high = (np.maximum(low, np.minimum(inner_low, -step)), np.minimum(high, np.maximum(inner_high, step)))
    if np.mean(count < _FEWEST) > 0.01:  # narrow peaks far apart: no grid around all of them is fine enough
        raise ValueError(
            "given the other columns, the density of the target has several peaks too narrow for a grid, so its "
            "best error cannot be computed; use smaller weights or more noise"
        )
    density = np.exp(logs - logs.max(axis=1, keepdims=True))
    density /= density.sum(axis=1, keepdims=True)
    mean = (density * points).sum(axis=1, keepdims=True)
    return np.asarray((density * (points - mean) ** 2).sum(axis=1))


# Estimating the variance of a target needs more rows than averaging its conditional variance, which varies little.
_VARIANCE_DRAWS: Final = 10
# When a value exceeds this number of standard deviations of its noise, rounding hides the noise.
_LARGEST: Final = 1e10
# Numbers in the grids of one block of rows: as many as fit into the cache.
_PIECE: Final = 2**18


class BestError(NamedTuple):
    """The lowest mean squared error of any predictor: as a share of the target's variance, and in its own unit."""

    standardized: float
    raw: float


class BestClassification(NamedTuple):
    """The lowest mean log loss (natural logarithm) and the lowest share of wrong levels of any predictor."""

    log_loss: float
    error_rate: float


def best_error(
    model: KnownWorld, target: str, n_rows: int = 10_000, random_state: int | np.random.Generator = 0
) -> BestError:
    """Return the lowest mean squared error of any predictor of a numeric node from all other columns.

    Parameters
    ----------
    model : KnownWorld
    target : str
    n_rows : int
        Number of rows to average the conditional variance of the target over; each is exact, see
        the notes of this module. The variance of the target is estimated on ten times as many rows.
    random_state : int or Generator
        Seed for drawing the rows.

    Raises
    ------
    ValueError
        If a child of the target has no noise, if values are so large that rounding hides the noise, or if the density
        of the target given the others has several peaks that are too narrow for the grid.

    Notes
    -----
    With ``1 + exp(-x)`` and Laplace noise of standard deviation 0.71 or more the target may have infinite variance:
    then only the raw error is meaningful, not the standardized one.

    Examples
    --------
    >>> from castlereg_paper import best_error
    >>> from castlereg.causal import KnownWorld, example_dag
    >>> round(best_error(KnownWorld(example_dag()), "Y").standardized, 2)
    0.87
    >>> round(best_error(KnownWorld(example_dag(), function="linear", noise_std=0.5), "Y", n_rows=1000).raw, 4)
    0.0833
    """
    node = _numeric(model, target)
    children = _children(model, node)
    rng = np.random.default_rng(random_state)
    rows = model.drawn(n_rows, rng)
    variance = _variance(model, node, rows, rng)
    std, kind = model.noise_stds[node], _DENSITIES[model.noise_kinds[node]]
    gaussian = all(model.noise_kinds[k] == "gaussian" for k in (node, *children))
    if std == 0:
        raw = 0.0
    elif model.function == "linear" and gaussian and not any(model.system.n_levels[k] for k in children):
        slopes = [model.edge_weights[node, child] / model.noise_stds[child] for child in children]
        raw = 1 / (1 / std**2 + float(np.sum(np.square(slopes))))  # one over the precision of a normal distribution
    else:
        _check_size(model, children, rows)
        features = model.system.node_features[node]
        variances = []
        for piece in _pieces(rows, _GRID * features.size):
            values = piece[node]
            noise = values - model.system.given(node, piece)[0]
            variances.append(_conditional_variance(values, noise, std, kind, features, _described(model, node, piece)))
        raw = float(np.concatenate(variances).mean())
    return BestError(raw / variance, raw)


def parents_only_error(
    model: KnownWorld, target: str, n_rows: int = 10_000, random_state: int | np.random.Generator = 0
) -> BestError:
    """Return the lowest mean squared error of any predictor of a numeric node from its parents: the noise variance.

    The variance of the target is estimated on ``10 * n_rows`` rows, see :func:`best_error`.

    Examples
    --------
    >>> from castlereg.causal import KnownWorld, example_dag
    >>> model = KnownWorld(example_dag(), function="linear")
    >>> round(parents_only_error(model, "Y").standardized, 2)
    0.14
    """
    node = _numeric(model, target)
    rng = np.random.default_rng(random_state)
    raw = model.noise_stds[node] ** 2
    return BestError(raw / _variance(model, node, model.drawn(n_rows, rng), rng), raw)


def best_classification(
    model: KnownWorld, target: str, n_rows: int = 10_000, random_state: int | np.random.Generator = 0
) -> BestClassification:
    """Return the lowest errors of any classifier of a categorical node from all other columns.

    The expected errors are averaged over ``n_rows`` rows; the probabilities of each row are exact.

    Raises
    ------
    ValueError
        Under the same conditions as :func:`best_error`.

    Examples
    --------
    >>> from castlereg.causal import KnownWorld, example_dag
    >>> best = best_classification(KnownWorld(example_dag(), categorical={"Y": 2}), "Y")
    >>> best.log_loss < 0.69, best.error_rate < 0.5
    (True, True)
    """
    node = _index(model, target)
    if target not in model.categorical:
        raise ValueError(f"target={target!r} is numeric: use best_error")
    _check_free(model, target)
    children = _children(model, node)
    rows = model.drawn(n_rows, np.random.default_rng(random_state))
    _check_size(model, children, rows)
    system = model.system
    losses, wrong = [], []
    for piece in _pieces(rows, system.n_levels[node] ** 2):
        levels = piece[node].astype(np.intp)
        prior, children_of_piece = system.given(node, piece), _described(model, node, piece)
        logs = _level_posterior(prior, levels, system.node_features[node], children_of_piece)
        losses.append(-np.sum(np.exp(logs) * np.maximum(logs, -700), axis=1))  # 0 where the probability is 0
        wrong.append(1 - np.exp(logs.max(axis=1)))
    return BestClassification(float(np.concatenate(losses).mean()), float(np.concatenate(wrong).mean()))


def _described(model: KnownWorld, node: int, rows: Array) -> list[_Child]:
    """Describe the children of a node by their noise in these rows."""
    system = model.system
    children: list[_Child] = []
    for child in _children(model, node):
        given, values = system.given(child, rows), rows[child]
        weights = system.weights[system.signals[child], system.feature_slices[node]]
        if system.n_levels[child]:
            children.append(_CategoricalChild(given, values.astype(np.intp), weights))
        else:
            std = model.noise_stds[child]
            density = _DENSITIES[model.noise_kinds[child]]
            children.append(_NumericChild((values - given[0]) / std, weights[0] / std, density))
    return children


def _children(model: KnownWorld, node: int) -> list[int]:
    """Return the children of a node; raise for a child without noise."""
    children: list[int] = np.flatnonzero(model.edge_weights[node]).tolist()
    for child in children:
        if not model.system.n_levels[child] and model.noise_stds[child] == 0:
            raise ValueError(
                f"noise_std of {model.names[child]!r} is 0: a child without noise determines the target up to solving "
                "its equation, and the best error is not computed for this case; pass a noise_std above 0"
            )
    return children


def _pieces(rows: Array, numbers_per_row: int) -> Iterator[Array]:
    size = max(1, _PIECE // numbers_per_row)
    for start in range(0, rows.shape[1], size):
        yield rows[:, start : start + size]


def _variance(model: KnownWorld, node: int, rows: Array, rng: np.random.Generator) -> float:
    """Return the variance of a numeric node: exact for its noise, estimated for the effects of its parents."""
    given = [model.system.given(node, rows)[0]]
    if model.edge_weights[:, node].any():
        for _ in range(_VARIANCE_DRAWS - 1):
            given.append(model.system.given(node, model.drawn(rows.shape[1], rng))[0])
    values = np.concatenate(given)
    variance = model.noise_stds[node] ** 2 + float(values.var())
    if variance <= (1e-12 * float(np.abs(values).max())) ** 2:  # only rounding errors
        raise ValueError(
            f"target={model.names[node]!r} is constant, so there is nothing to predict: choose another target"
        )
    return variance


def _index(model: KnownWorld, name: str) -> int:
    if name not in model.names:
        raise ValueError(f"{name!r} is not a node; the nodes are {', '.join(map(str, model.names))}")
    return model.names.index(name)


def _numeric(model: KnownWorld, target: str) -> int:
    node = _index(model, target)
    if target in model.categorical:
        raise ValueError(f"target={target!r} is categorical: use best_classification")
    _check_free(model, target)
    return node


def _check_free(model: KnownWorld, target: str) -> None:
    if target in model.fixed:
        value = model.fixed[target]
        raise ValueError(
            f"target={target!r} is fixed at {value!r}, so there is nothing to predict: choose another target"
        )


def _check_size(model: KnownWorld, children: list[int], rows: Array) -> None:
    for child in children:
        if not model.system.n_levels[child]:
            largest = float(np.abs(rows[child]).max())
            if largest > _LARGEST * model.noise_stds[child]:
                raise ValueError(
                    f"node {model.names[child]!r} reaches {largest:.3g}: rounding hides its noise, and the best error "
                    "cannot be computed; use smaller weights or fewer edges"
                )
