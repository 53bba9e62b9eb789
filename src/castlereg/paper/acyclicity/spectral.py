"""Spectral radius by power iteration, the acyclicity function of NO-BEARS."""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from castlereg.acyclicity.exponential import LARGEST_LOG_VALUE, past_the_exact_range

# Maximum number of steps. Each halves the error for dense graphs and graphs dominated by cycles of two or three nodes.
_STEPS: Final = 100
# Share of the old vector in each step. One half is optimal for eigenvalues anywhere on the circle.
_DAMPING: Final = 0.5
# Near an acyclic graph, the slope is nearly infinite.
_STEEPEST: Final = 1e12


class _Iteration(NamedTuple):
    left: Array  # (p,), largest entry 1
    right: Array  # (p,), largest entry 1
    radius: Array  # ()
    change: Array  # (), of the vectors and, relatively, of the radius
    step: Array  # ()


@jax.custom_vjp
def spectral_radius(adjacency: Array) -> Array:
    """Return the largest absolute eigenvalue, ``h(A) = rho(A)`` (Lee et al. 2019), by power iteration.

    It needs only matrix-vector products, so its cost grows with p^2 instead of p^3.

    Parameters
    ----------
    adjacency : array of shape (p, p)
        Non-negative edge weights.

    Returns
    -------
    array of shape ()

    Notes
    -----
    Power iteration from the right and from the left gives vectors v and u, ``rho = u^T A v / u^T v`` and the gradient
    ``u v^T / u^T v``. Every step keeps half of the old vector: on a ring, the plain iteration would cycle forever.
    First, nodes without parents or without children are removed repeatedly. An acyclic graph has no nodes left, which
    gives exactly zero with a zero gradient. Every remaining node has parents and children, so no step divides by zero.
    The iteration starts with equal weights on the remaining nodes, and stops when nothing changes or after 100 steps.

    Limitations:

    - It is of another order than the other functions: a loop of two small weights a has ``rho = a``, while the others
      give ``a^2``.
    - The gradient covers only the strongest of several separate groups of cycles. When two groups are equally strong,
      the gradient jumps between them.
    - The slope is unbounded at an acyclic graph (like the root of a product at zero); it is clipped at 1e12.
    - Absent edges that would close a cycle through removed nodes have no gradient.
    - Long cycles with unequal weights, and groups of nearly equal strength, converge slowly; after 100 steps the value
      is an estimate.
    - Above e^28 it continues in the same way as :func:`castlereg.acyclicity.trace_exponential`.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> ring = 0.5 * jnp.roll(jnp.eye(7), 1, axis=1)
    >>> round(float(spectral_radius(ring)), 5)
    0.5
    >>> float(spectral_radius(jnp.triu(jnp.ones((7, 7)), k=1)))
    0.0
    """
    return _value_and_gradient(adjacency)[0]


def _value_and_gradient(adjacency: Array) -> tuple[Array, Array]:
    """Return h(A) and ``dh/dA``."""
    adjacency = jnp.asarray(adjacency)
    nodes = _between_cycles(adjacency)
    edges = jnp.where(nodes[:, None] & nodes, adjacency, 0.0)
    largest = edges.max()
    final = _iterated(edges / jnp.where(largest > 0, largest, 1.0), nodes.astype(edges.dtype))

    positive = final.radius > 0
    radius = jnp.where(positive, final.radius, 1.0)
    excess, far = past_the_exact_range(jnp.where(positive, jnp.log(largest) + jnp.log(radius), -jnp.inf))
    value = jnp.where(excess > 0, far, largest * final.radius)
    flattened = jnp.where(excess > 0, math.exp(LARGEST_LOG_VALUE) / (radius * (1 + excess)) / largest, 1.0)
    overlap = jnp.maximum(jnp.sum(final.left * final.right), 1 / _STEEPEST)
    return value, jnp.outer(final.left * (flattened / overlap), final.right)


spectral_radius.defvjp(_value_and_gradient, lambda gradient, cotangent: (cotangent * gradient,))


def _iterated(adjacency: Array, start: Array) -> _Iteration:
    """Return the result of power iteration, for a matrix whose largest entry is 1."""
    tolerance = float(np.finfo(adjacency.dtype).eps) ** 0.7  # 1e-5 for float32

    def step(old: _Iteration) -> _Iteration:
        ahead = adjacency @ old.right
        left, right = _damped(old.left, adjacency.T @ old.left), _damped(old.right, ahead)
        overlap = jnp.sum(old.left * old.right)
        radius = jnp.sum(old.left * ahead) / jnp.where(overlap > 0, overlap, 1.0)
        moved = jnp.maximum(jnp.abs(left - old.left).max(), jnp.abs(right - old.right).max())
        change = jnp.maximum(moved, jnp.abs(radius - old.radius) / jnp.where(radius > 0, radius, 1.0))
        return _Iteration(left, right, radius, change, old.step + 1)

    nothing = jnp.zeros((), adjacency.dtype)
    return lax.while_loop(
        lambda state: (state.change > tolerance) & (state.step < _STEPS),
        step,
        _Iteration(start, start, nothing, nothing + 1, jnp.zeros((), jnp.int32)),
    )


def _damped(old: Array, new: Array) -> Array:
    largest = new.max()
    mixed = (1 - _DAMPING) * new / jnp.where(largest > 0, largest, 1.0) + _DAMPING * old
    largest = mixed.max()
    return mixed / jnp.where(largest > 0, largest, 1.0)


def _between_cycles(adjacency: Array) -> Array:
    """Return which nodes are on a cycle or on a path between cycles; none in an acyclic graph."""
    edges = (adjacency > 0).astype(adjacency.dtype)

    def without_ends(state: tuple[Array, Array]) -> tuple[Array, Array]:
        nodes, _ = state
        present = nodes.astype(edges.dtype)
        remaining = nodes & (edges @ present > 0) & (edges.T @ present > 0)
        return remaining, jnp.any(remaining != nodes)

    everything = (jnp.ones(len(adjacency), dtype=bool), jnp.asarray(True))
    return lax.while_loop(lambda state: state[1], without_ends, everything)[0]
