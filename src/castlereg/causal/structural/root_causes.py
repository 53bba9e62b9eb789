"""Explain an unusual row by its causes: how much the noise of each column adds to the outcome."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from castlereg.causal.structural.system import System, causal_order, reached_from

Array = NDArray[np.float64]


def noise_contributions(
    system: System, signals: tuple[slice, ...], values: Array, outcome: int, n_permutations: int, seed: int
) -> tuple[Array, list[int]]:
    """Return how much the noise of each node adds to the outcome, shape (nodes, rows), and the nodes that affect it.

    These are Shapley values of the outcome as a function of the noise: the noise of nodes replaces random noise, one
    node at a time in random orders, and each node gets the change of the outcome. Contributions add up to the outcome
    minus its mean over the draws.
    """
    needed = reached_from(system.edges.T, [outcome])
    needed[outcome] = True
    nodes = [k for k in causal_order(system.edges) if needed[k]]
    observed = system.abduct(values, nodes, seed)
    n_rows, rng = values.shape[1], np.random.default_rng(seed)
    contributions = np.zeros(values.shape)
    for _ in range(n_permutations):
        noise = system.draw(n_rows, rng)
        state = np.zeros(values.shape)
        system.solve(noise, state, nodes)
        before = state[outcome].copy()
        for node in rng.permutation(nodes).tolist():
            noise[signals[node]] = observed[signals[node]]
            system.solve(noise, state, nodes)
            contributions[node] += state[outcome] - before
            before = state[outcome].copy()
    return contributions / n_permutations, nodes
