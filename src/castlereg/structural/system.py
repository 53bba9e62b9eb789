"""What a structural model needs of its equations, whether they are known or learned."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from graphlib import TopologicalSorter
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

Array = NDArray[np.float64]


class System(Protocol):
    """One equation for each node of a graph, ``value = function(parents, noise)``.

    Values have shape (nodes, rows); those of levels are their numbers. Noise has shape (signals, rows), one signal for
    a number and one per level otherwise: a number is a function of its parents plus noise, and of levels the one with
    the highest score plus Gumbel noise is taken, which draws it from the softmax of the scores.
    """

    @property
    def edges(self) -> NDArray[np.bool_]:
        """Edges of the graph, shape (nodes, nodes), from cause to effect."""

    def draw(self, n_rows: int, rng: np.random.Generator) -> Array:
        """Draw noise."""

    def solve(self, noise: Array, values: Array, nodes: Sequence[int]) -> None:
        """Compute the values of nodes, causes first, from those of all others; in place."""

    def given(self, node: int, values: Array) -> Array:
        """Return what the parents give to a node, shape (signals, rows): a number, or a score for each level."""

    def abduct(self, values: Array, nodes: Sequence[int], seed: int) -> Array:
        """Return noise with which nodes have these values.

        It is the only one for numbers, and a draw of those possible for levels. Values that are missing get noise at
        random. The noise of other nodes is zero.
        """

    def log_densities(self, values: Array) -> Array:
        """Return the log density of every value given its parents, shape (nodes, rows); 0 where it is missing."""


def causal_order(edges: NDArray[np.bool_]) -> list[int]:
    """Order nodes, causes first."""
    parents = {k: np.flatnonzero(edges[:, k]).tolist() for k in range(len(edges))}
    return list(TopologicalSorter(parents).static_order())


def reached_from(edges: NDArray[np.bool_], nodes: Collection[int]) -> NDArray[np.bool_]:
    """Return which nodes have a path from one of these, without these; shape (nodes,)."""
    reached = np.zeros(len(edges), bool)
    ahead = list(nodes)
    while ahead:
        for child in np.flatnonzero(edges[ahead.pop()] & ~reached).tolist():
            reached[child] = True
            ahead.append(child)
    reached[list(nodes)] = False
    return reached


def between(edges: NDArray[np.bool_], causes: Collection[int], outcomes: Collection[int] | None = None) -> list[int]:
    """Return the nodes that an intervention on causes changes, causes first; only those that matter for outcomes."""
    changed = reached_from(edges, causes)
    if outcomes is not None:
        needed = reached_from(edges.T, outcomes)
        needed[list(outcomes)] = True
        changed &= needed
    return [k for k in causal_order(edges) if changed[k]]


def posterior_gumbel(scores: Array, chosen: NDArray[np.int64], rng: np.random.Generator) -> Array:
    """Draw Gumbel noise, shape (levels, rows), with which the chosen levels have the highest score plus noise.

    The highest sum is a Gumbel variable around the log of the sum of all exponentials; the other sums are Gumbel
    variables below it (Oberst and Sontag, ICML 2019).
    """
    top = rng.gumbel(size=scores.shape[1]) + logsumexp(scores, axis=0)
    free = rng.gumbel(size=scores.shape) + scores
    below = -np.logaddexp(-top, -free)  # truncated at the highest
    below[chosen, np.arange(len(chosen))] = top
    return np.asarray(below - scores)
