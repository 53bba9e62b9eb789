"""Random graphs with data for structure recovery: four kinds of structural equations, standardized."""

from __future__ import annotations

from collections.abc import Callable
from graphlib import TopologicalSorter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from castlereg.synthetic import random_dag


class Recovery(NamedTuple):
    """A graph and standardized rows."""

    truth: NDArray[np.bool_]  # (nodes, nodes), truth[j, k] for j -> k
    values: NDArray[np.float64]  # (rows, nodes)


Equation = Callable[[NDArray[np.float64], np.random.Generator], NDArray[np.float64]]


def _signed(rng: np.random.Generator, low: float, high: float) -> float:
    return float(rng.uniform(low, high) * rng.choice([-1, 1]))


def _smooth(x: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.float64]:
    """Draw a function from a Gaussian process with unit length scale, by random Fourier features."""
    frequencies, phases, weights = rng.normal(size=100), rng.uniform(0, 2 * np.pi, 100), rng.normal(size=100)
    return np.asarray(np.sqrt(2 / 100) * np.cos(np.outer(x, frequencies) + phases) @ weights)


FAMILIES: dict[str, tuple[Equation, Callable[[np.random.Generator, int], NDArray[np.float64]]]] = {
    "sigmoid": (lambda x, rng: np.asarray(expit(x)), lambda rng, n: rng.normal(size=n)),
    "sine": (lambda x, rng: np.sin(x), lambda rng, n: rng.normal(size=n)),
    "linear": (lambda x, rng: _signed(rng, 0.5, 2.0) * x, lambda rng, n: rng.laplace(size=n)),
    "smooth": (_smooth, lambda rng, n: rng.normal(size=n)),
}


def recovery_problem(family: str, n_nodes: int, n_rows: int, seed: int) -> Recovery:
    """Draw a graph of five edges for every three nodes, and rows of it.

    Parameters
    ----------
    family : {"sigmoid", "sine", "linear", "smooth"}
        Every node is a sum over its parents of a sigmoid, a sine, a random multiple or a random smooth function, plus
        noise of variance one (Laplace noise of scale one for the linear one).
    n_nodes, n_rows, seed : int
    """
    equation, noise = FAMILIES[family]
    rng = np.random.default_rng([seed, list(FAMILIES).index(family)])
    truth = random_dag(n_nodes, 5 * n_nodes // 3, rng).to_numpy() != 0
    values = np.zeros((n_rows, n_nodes))
    parents = {k: np.flatnonzero(truth[:, k]).tolist() for k in range(n_nodes)}
    for k in TopologicalSorter(parents).static_order():
        values[:, k] = noise(rng, n_rows) + sum(equation(values[:, j], rng) for j in parents[k])
    return Recovery(truth, (values - values.mean(axis=0)) / values.std(axis=0))
