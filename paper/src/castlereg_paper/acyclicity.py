"""Other acyclicity functions, for comparison with that of the paper; pass them as ``Castle(acyclicity=...)``.

They take non-negative edge weights of shape (p, p) and follow the contract of :mod:`castlereg.acyclicity`, except that
:func:`truncated_series` misses cycles of ten or more nodes and overflows together with ``A^9``. :func:`spectral_radius`
documents where its gradient is not exact.

========================  ==========================  ==================================  ==================
function                  h(A)                        weight of closed walks of length k  used by
========================  ==========================  ==================================  ==================
:func:`truncated_series`  terms of expm up to A^9     ``1 / k!``, none from 10 on         the released code
:func:`trace_polynomial`  ``tr (I + A/m)^m - p``      ``C(m, k) / m^k``                   DAG-GNN
:func:`spectral_radius`   ``rho(A)``                  of another order, see its notes         NO-BEARS
========================  ==========================  ==================================  ==================
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from castlereg.acyclicity.functions import LARGEST_LOG_VALUE, continued, past_the_exact_range, rescaled, squared

__all__ = ["spectral_radius", "trace_polynomial", "truncated_series"]


@jax.custom_vjp
def trace_polynomial(adjacency: Array) -> Array:
    """Return the trace of a matrix power minus the number of nodes, ``h(A) = tr (I + A/m)^m - p`` (Yu et al. 2019).

    Closed walks of length k have the weight ``C(m, k) / m^k``, slightly less than ``1 / k!`` in
    :func:`castlereg.acyclicity.trace_exponential`, which is the limit for large m.

    Notes
    -----
    Yu et al. use ``m = p``; any ``m >= p`` detects cycles of all lengths. Here m is one more than a power of two: the
    gradient, ``(I + A/m)^(m - 1)`` transposed, needs only squarings, and the value follows from it. The identity is
    never added, so nothing cancels and an acyclic graph gives exactly zero.
    Above e^28 it continues in the same way as :func:`castlereg.acyclicity.trace_exponential`.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> loop = jnp.array([[0.0, 1.0], [1.0, 0.0]])
    >>> float(trace_polynomial(loop))  # m is 2: tr (I + A + A A / 4) - 2
    0.5
    """
    return _polynomial_and_gradient(adjacency)[0]


def _power(n_nodes: int) -> int:
    """Return the smallest ``2^q + 1`` that is at least the number of nodes.

    Examples
    --------
    >>> [_power(n) for n in (2, 3, 4, 17, 18)]
    [2, 3, 5, 17, 33]
    """
    return int(2 ** math.ceil(math.log2(max(n_nodes - 1, 1)))) + 1


def _polynomial_and_gradient(adjacency: Array) -> tuple[Array, Array]:
    """Return h(A) and ``dh/dA``."""
    adjacency = jnp.asarray(adjacency)
    m = _power(len(adjacency))
    one, log_one = rescaled(adjacency / m, jnp.zeros((), adjacency.dtype))
    product, log_scale = one, log_one
    for _ in range(int(math.log2(m - 1))):
        product, log_scale = squared(product, log_scale)
    # (I + F)(I + X) - I = F + X + F X, for F = e^c product and X = e^a one, in units of e^(c + a).
    trace = jnp.sum(product * one.T) + jnp.exp(-log_one) * jnp.trace(product) + jnp.exp(-log_scale) * jnp.trace(one)
    return continued(trace, jnp.exp(-log_one) * product, log_scale + log_one)


trace_polynomial.defvjp(_polynomial_and_gradient, lambda gradient, cotangent: (cotangent * gradient,))


def truncated_series(adjacency: Array) -> Array:
    """Return the sum of ``tr A^k / k!`` for k = 1..9, as in the authors' released code.

    It does not penalize cycles of ten or more nodes. It exists for comparison with that code.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> ring = jnp.roll(jnp.eye(10), 1, axis=1)
    >>> float(truncated_series(ring))
    0.0
    """
    square = _product(adjacency, adjacency)
    cube = _product(square, adjacency)
    # Nine terms with four matrix products: A^3 times the last three terms, then A^3 times the last six.
    last_three = adjacency / 5040 + square / 40320 + cube / 362880
    last_six = adjacency / 24 + square / 120 + cube / 720 + _product(cube, last_three)
    return jnp.trace(adjacency + square / 2 + cube / 6 + _product(cube, last_six))


def _product(left: Array, right: Array) -> Array:
    """Multiply in full precision; by default, accelerators may round the factors to 10 bits."""
    return jnp.matmul(left, right, precision=lax.Precision.HIGHEST)


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
    return _radius_and_gradient(adjacency)[0]


def _radius_and_gradient(adjacency: Array) -> tuple[Array, Array]:
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


spectral_radius.defvjp(_radius_and_gradient, lambda gradient, cotangent: (cotangent * gradient,))


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
    """Mix an old vector with a new one, and scale the largest entry to 1."""
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
