"""Errors that no predictor can beat, for a structural model with known equations and noise."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from castlereg.causal.synthetic import KnownWorld
from castlereg.causal.synthetic.equations import Equations
from castlereg.paper.densities import DENSITIES
from castlereg.paper.posterior import (
    GRID,
    CategoricalChild,
    Child,
    NumericChild,
    conditional_variance,
    level_posterior,
)

Array = NDArray[np.float64]

# Estimating the variance of a target needs more rows than averaging its conditional variance, which varies little.
VARIANCE_DRAWS: Final = 10
# When a value exceeds this number of standard deviations of its noise, rounding hides the noise.
LARGEST: Final = 1e10
# Numbers in the grids of one block of rows: as many as fit into the cache.
PIECE: Final = 2**18


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
        :mod:`castlereg.paper.posterior`. The variance of the target is estimated on ten times as many rows.
    random_state : int or Generator
        Seed for drawing the rows.

    Returns
    -------
    BestError

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
    >>> from castlereg.paper import best_error
    >>> from castlereg.causal.synthetic import KnownWorld, example_dag
    >>> round(best_error(KnownWorld(example_dag()), "Y").standardized, 2)
    0.87
    >>> round(best_error(KnownWorld(example_dag(), function="linear", noise_std=0.5), "Y", n_rows=1000).raw, 4)
    0.0833
    """
    node = _numeric(model, target)
    children = _children(model, node)
    rng = np.random.default_rng(random_state)
    signals = model.signals(n_rows, rng)
    variance = _variance(model, node, signals, rng)
    std, kind = model.noise_stds[node], DENSITIES[model.noise_kinds[node]]
    gaussian = all(model.noise_kinds[k] == "gaussian" for k in (node, *children))
    if std == 0:
        raw = 0.0
    elif model.function == "linear" and gaussian and not any(model.equations.n_levels[k] for k in children):
        slopes = [model.edge_weights[node, child] / model.noise_stds[child] for child in children]
        raw = 1 / (1 / std**2 + float(np.sum(np.square(slopes))))  # one over the precision of a normal distribution
    else:
        _check_size(model, children, signals)
        features = model.equations.features[node]
        variances = []
        for piece in _pieces(signals, GRID * features.size):
            values = model.equations.values(node, piece)
            noise = values - _given(model.equations, node, piece)[0]
            variances.append(conditional_variance(values, noise, std, kind, features, _described(model, node, piece)))
        raw = float(np.concatenate(variances).mean())
    return BestError(raw / variance, raw)


def parents_only_error(
    model: KnownWorld, target: str, n_rows: int = 10_000, random_state: int | np.random.Generator = 0
) -> BestError:
    """Return the lowest mean squared error of any predictor of a numeric node from its parents: the noise variance.

    Parameters
    ----------
    model : KnownWorld
    target : str
    n_rows : int
        The variance of the target is estimated on ten times as many rows.
    random_state : int or Generator
        Seed for drawing the rows.

    Returns
    -------
    BestError

    Examples
    --------
    >>> from castlereg.causal.synthetic import KnownWorld, example_dag
    >>> model = KnownWorld(example_dag(), function="linear")
    >>> round(parents_only_error(model, "Y").standardized, 2)
    0.14
    """
    node = _numeric(model, target)
    rng = np.random.default_rng(random_state)
    raw = model.noise_stds[node] ** 2
    return BestError(raw / _variance(model, node, model.signals(n_rows, rng), rng), raw)


def best_classification(
    model: KnownWorld, target: str, n_rows: int = 10_000, random_state: int | np.random.Generator = 0
) -> BestClassification:
    """Return the lowest errors of any classifier of a categorical node from all other columns.

    Parameters
    ----------
    model : KnownWorld
    target : str
    n_rows : int
        Number of rows to average the expected errors over; the probabilities of each row are exact.
    random_state : int or Generator
        Seed for drawing the rows.

    Returns
    -------
    BestClassification

    Raises
    ------
    ValueError
        Under the same conditions as :func:`best_error`.

    Examples
    --------
    >>> from castlereg.causal.synthetic import KnownWorld, example_dag
    >>> best = best_classification(KnownWorld(example_dag(), categorical={"Y": 2}), "Y")
    >>> best.log_loss < 0.69, best.error_rate < 0.5
    (True, True)
    """
    node = _index(model, target)
    if target not in model.categorical:
        raise ValueError(f"target={target!r} is numeric: use best_error")
    _check_free(model, target)
    children = _children(model, node)
    signals = model.signals(n_rows, random_state)
    _check_size(model, children, signals)
    system = model.equations
    losses, wrong = [], []
    for piece in _pieces(signals, system.n_levels[node] ** 2):
        levels = system.values(node, piece).astype(np.intp)
        logs = level_posterior(
            _given(system, node, piece), levels, system.features[node], _described(model, node, piece)
        )
        losses.append(-np.sum(np.exp(logs) * np.maximum(logs, -700), axis=1))  # 0 where the probability is 0
        wrong.append(1 - np.exp(logs.max(axis=1)))
    return BestClassification(float(np.concatenate(losses).mean()), float(np.concatenate(wrong).mean()))


def _described(model: KnownWorld, node: int, signals: Array) -> list[Child]:
    """Describe the children of a node by their noise in these rows."""
    system = model.equations
    children: list[Child] = []
    for child in _children(model, node):
        given, values = _given(system, child, signals), system.values(child, signals)
        weights = system.weights[system.signal_slices[child], system.feature_slices[node]]
        if system.n_levels[child]:
            children.append(CategoricalChild(given, values.astype(np.intp), weights))
        else:
            std = model.noise_stds[child]
            density = DENSITIES[model.noise_kinds[child]]
            children.append(NumericChild((values - given[0]) / std, weights[0] / std, density))
    return children


def _given(system: Equations, node: int, signals: Array) -> Array:
    """Return the summed effects of the parents on the signals of a node, shape (signals of the node, rows)."""
    weights = system.weights[system.signal_slices[node]]
    total = np.zeros((len(weights), signals.shape[1]))
    for parent, columns in enumerate(system.feature_slices):
        if weights[:, columns].any():
            total += np.asarray(weights[:, columns] @ system.features[parent].apply(system.values(parent, signals)))
    return total


def _children(model: KnownWorld, node: int) -> list[int]:
    """Return the children of a node; raise for a child without noise."""
    children: list[int] = np.flatnonzero(model.edge_weights[node]).tolist()
    for child in children:
        if not model.equations.n_levels[child] and model.noise_stds[child] == 0:
            raise ValueError(
                f"noise_std of {model.names[child]!r} is 0: a child without noise determines the target up to solving "
                "its equation, and the best error is not computed for this case; pass a noise_std above 0"
            )
    return children


def _pieces(signals: Array, numbers_per_row: int) -> Iterator[Array]:
    rows = max(1, PIECE // numbers_per_row)
    for start in range(0, signals.shape[1], rows):
        yield signals[:, start : start + rows]


def _variance(model: KnownWorld, node: int, signals: Array, rng: np.random.Generator) -> float:
    """Return the variance of a numeric node: exact for its noise, estimated for the effects of its parents."""
    given = [_given(model.equations, node, signals)[0]]
    if model.edge_weights[:, node].any():
        for _ in range(VARIANCE_DRAWS - 1):
            given.append(_given(model.equations, node, model.signals(signals.shape[1], rng))[0])
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


def _check_size(model: KnownWorld, children: list[int], signals: Array) -> None:
    for child in children:
        if not model.equations.n_levels[child]:
            largest = float(np.abs(model.equations.values(child, signals)).max())
            if largest > LARGEST * model.noise_stds[child]:
                raise ValueError(
                    f"node {model.names[child]!r} reaches {largest:.3g}: rounding hides its noise, and the best error "
                    "cannot be computed; use smaller weights or fewer edges"
                )
