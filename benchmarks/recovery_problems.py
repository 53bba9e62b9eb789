"""Random graphs with data for structure recovery: seven kinds of structural equations, standardized."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from graphlib import TopologicalSorter
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import expit

from castlereg.causal import KnownWorld, random_dag


class Recovery(NamedTuple):
    """A graph and standardized rows."""

    truth: NDArray[np.bool_]  # (nodes, nodes), truth[j, k] for j -> k
    values: NDArray[np.float64]  # (rows, nodes)
    levels: NDArray[np.bool_] | None = None  # which columns are numbers of levels; None for none


Values = NDArray[np.float64]
Equation = Callable[[Values, np.random.Generator], Values]


def _signed(rng: np.random.Generator, low: float, high: float) -> float:
    return float(rng.uniform(low, high) * rng.choice([-1, 1]))


def _smooth(x: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.float64]:
    """Draw a function from a Gaussian process with unit length scale, by random Fourier features."""
    frequencies, phases, weights = rng.normal(size=100), rng.uniform(0, 2 * np.pi, 100), rng.normal(size=100)
    return np.asarray(np.sqrt(2 / 100) * np.cos(np.outer(x, frequencies) + phases) @ weights)


def _linear(x: Values, rng: np.random.Generator) -> Values:
    return _signed(rng, 0.5, 2.0) * x


def _gaussian(rng: np.random.Generator, n: int) -> Values:
    return rng.normal(size=n)


@dataclass(frozen=True)
class Family:
    """How a node comes from its parents: a sum of functions, plus noise, and what is done to these."""

    equation: Equation  # of one parent
    noise: Callable[[np.random.Generator, int], Values] = _gaussian
    scale: Equation | None = None  # log of the noise's scale, a sum over the parents
    bent: bool = False  # whether the sum and its noise go through a monotone function


def _bend(z: Values, rng: np.random.Generator) -> Values:
    """Apply one of two monotone functions: a steep one or a flat one."""
    return np.sinh(z / 2) if rng.random() < 0.5 else z / np.sqrt(1 + z**2) + 0.1 * z


FAMILIES = {
    "sigmoid": Family(lambda x, rng: np.asarray(expit(x))),
    "sine": Family(lambda x, rng: np.sin(x)),
    "linear": Family(_linear, lambda rng, n: rng.laplace(size=n)),
    "smooth": Family(_smooth),
    "gaussian": Family(_linear),
    "scale": Family(_smooth, scale=lambda x, rng: 0.5 * _smooth(x, rng)),
    "bent": Family(_smooth, bent=True),
}
SPARSE, DENSE = 5 / 3, 3.0  # edges for every node


def recovery_problem(family: str, n_nodes: int, n_rows: int, seed: int, edges_per_node: float = SPARSE) -> Recovery:
    """Draw a graph and rows of it.

    Parameters
    ----------
    family : {"sigmoid", "sine", "linear", "smooth", "gaussian", "scale", "bent"}
        Every node is a sum over its parents of a sigmoid, a sine, a random multiple or a random smooth function, plus
        noise of variance one. Noise of the linear family is Laplace noise of scale one, that of ``gaussian`` is normal.
        In ``scale`` the noise's scale depends on the parents, in ``bent`` a monotone function follows the sum.
    n_nodes, n_rows, seed : int
    edges_per_node : float
    """
    how = FAMILIES[family]
    rng = np.random.default_rng([seed, list(FAMILIES).index(family)])
    truth = random_dag(n_nodes, int(edges_per_node * n_nodes), rng).to_numpy() != 0
    values = np.zeros((n_rows, n_nodes))
    parents = {k: np.flatnonzero(truth[:, k]).tolist() for k in range(n_nodes)}
    for k in TopologicalSorter(parents).static_order():
        noise = how.noise(rng, n_rows)
        if how.scale is not None:
            noise *= np.exp(np.sum([how.scale(values[:, j], rng) for j in parents[k]], axis=0))
        values[:, k] = noise + sum(how.equation(values[:, j], rng) for j in parents[k])
        if how.bent:
            values[:, k] = _bend(values[:, k], rng)
    return Recovery(truth, (values - values.mean(axis=0)) / values.std(axis=0))


def mixed_problem(seed: int) -> Recovery:
    """Draw a graph of 12 nodes, seven numbers and five columns of two or three levels, and 1000 rows of it."""
    rng = np.random.default_rng([seed, 78])
    dag = random_dag(12, 20, rng)
    names = list(dag.columns)
    chosen = rng.choice(names[:-1], 5, replace=False)
    function = ("sigmoid", "sine", "smooth")[seed % 3]
    levels = dict(zip(chosen, (2, 2, 2, 3, 3), strict=True))
    rows = KnownWorld(2.0 * dag, function=function, categorical=levels).sample(1000, random_state=seed)[names]
    values = rows.apply(lambda column: pd.factorize(column, sort=True)[0] if column.name in levels else column)
    values = values.to_numpy(float)
    numbers = ~np.isin(names, chosen)
    values[:, numbers] = (values[:, numbers] - values[:, numbers].mean(axis=0)) / values[:, numbers].std(axis=0)
    return Recovery(dag.to_numpy() != 0, values, ~numbers)
