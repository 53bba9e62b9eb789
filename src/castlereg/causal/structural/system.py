"""The protocol for the equations of a structural model, known or learned."""

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

    Values have shape (nodes, rows); levels are represented by their numbers. Noise has shape (signals, rows), with one
    signal for a numeric node and one per level for others. A number is a function of its parents plus noise. A level is
    the one with the highest score plus Gumbel noise, which draws it from the softmax of the scores.
    """

    @property
    def edges(self) -> NDArray[np.bool_]:
        """Edges of the graph, shape (nodes, nodes), from cause to effect."""

    def draw(self, n_rows: int, rng: np.random.Generator) -> Array:
        """Draw noise."""

    def solve(self, noise: Array, values: Array, nodes: Sequence[int]) -> None:
        """Compute the values of nodes, causes first, from those of all others; in place."""

    def given(self, node: int, values: Array) -> Array:
        """Return a number, or a score for each level, from the parents of a node; shape (signals, rows)."""

    def abduct(self, values: Array, nodes: Sequence[int], seed: int) -> Array:
        """Return noise for which nodes have these values.

        For numbers this noise is unique; for levels it is drawn from the noise that agrees with them. Missing values
        get random noise. The noise of other nodes is zero.
        """

    def log_densities(self, values: Array) -> Array:
        """Return the log density of every value given its parents, shape (nodes, rows); 0 where it is missing."""


def causal_order(edges: NDArray[np.bool_]) -> list[int]:
    """Return the nodes in an order with causes first."""
    parents = {k: np.flatnonzero(edges[:, k]).tolist() for k in range(len(edges))}
    return list(TopologicalSorter(parents).static_order())


def reached_from(edges: NDArray[np.bool_], nodes: Collection[int]) -> NDArray[np.bool_]:
    """Return which other nodes have a path from one of these; shape (nodes,)."""
    reached = np.zeros(len(edges), bool)
    ahead = list(nodes)
    while ahead:
        for child in np.flatnonzero(edges[ahead.pop()] & ~reached).tolist():
            reached[child] = True
            ahead.append(child)
    reached[list(nodes)] = False
    return reached


def between(edges: NDArray[np.bool_], causes: Collection[int], outcomes: Collection[int] | None = None) -> list[int]:
    """Return the nodes that an intervention changes, causes first; only those that affect the outcomes, if any."""
    changed = reached_from(edges, causes)
    if outcomes is not None:
        needed = reached_from(edges.T, outcomes)
        needed[list(outcomes)] = True
        changed &= needed
    return [k for k in causal_order(edges) if changed[k]]


def posterior_gumbel(scores: Array, chosen: NDArray[np.int64], rng: np.random.Generator) -> Array:
    """Draw Gumbel noise, shape (levels, rows), for which the chosen levels have the highest score plus noise.

    The highest sum is a Gumbel variable around the log of the sum of all exponentials; the other sums are Gumbel
    variables below it (Oberst and Sontag, ICML 2019).
    """
    top = rng.gumbel(size=scores.shape[1]) + logsumexp(scores, axis=0)
    free = rng.gumbel(size=scores.shape) + scores
    below = -np.logaddexp(-top, -free)  # truncated at the highest
    below[chosen, np.arange(len(chosen))] = top
    return np.asarray(below - scores)
