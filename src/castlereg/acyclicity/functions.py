"""The trace of the matrix exponential, the paper's acyclicity function, and the log-determinant of DAGMA."""

from __future__ import annotations

import math
from typing import Final

import jax
import jax.numpy as jnp
import numpy as np
import scipy.special
from jax import Array, lax

# The Taylor polynomial of degree 9 is exact to float32 rounding up to this norm: 0.84**9 / 10! < 6e-8.
_TAYLOR_NORM: Final = 0.84
# The polynomial covers walks up to length 9. Squaring it s times reaches length 9 * 2**s, and walks up to 2**s have
# five digits. Walks longer than 2**7 are below float32's smallest number while the spectral radius is below 20:
# 20**128 / 128! = 1e-49.
_MORE_SQUARINGS: Final = (4, 5, 6, 7)
# From here on h grows like a logarithm, so that h, h**2 and their gradients stay inside float32.
# tr exp(A) of a dense graph of 1000 nodes with spectral radius 20 is e**26.9: still exact.
LARGEST_LOG_VALUE: Final = 28.0
# Products above this are rescaled, so that squaring cannot overflow.
_RESCALE_ABOVE: Final = 1e6
# Larger weights are replaced by this one, so that their sums stay inside float32.
LARGEST_WEIGHT: Final = 1e30
# The determinant has its zero at spectral radius 1, where h has a pole and its slope is infinite. Up to this norm h is
# exact; entries of the gradient are at most 1 / (1 - 0.99).
_LOG_DETERMINANT_NORM: Final = 0.99
# Nodes that are eliminated together. Products of a slice this thin are nearly as fast as square ones.
_ELIMINATED_TOGETHER: Final = 32


@jax.custom_vjp
def trace_exponential(adjacency: Array) -> Array:
    """Return the trace of the matrix exponential minus the number of nodes, ``h(A) = tr exp(A) - p`` (eq. 2 and 7).

    The weight of every closed walk of any length counts, so every cycle is penalized. The value and the gradient
    ``exp(A)^T`` come from one exponential. ``adjacency`` is the square of the paper's ``M``.

    Notes
    -----
    ``exp(A) - I`` is built only from non-negative products, without ever adding the identity: nothing cancels, small
    values keep their digits, and a graph without cycles gives exactly zero.

    ``tr exp(A)`` overflows float32 when the spectral radius exceeds 88, as it does for a dense graph with ordinary
    starting weights. Above ``log tr exp(A) = 28``, ``h`` continues as ``e^28 (1 + log(1 + log tr exp(A) - 28))``, with
    the same value and slope at that point: still growing, and finite for any finite ``A``. It may round to zero only if
    edges outside of cycles outweigh those in cycles by more than the precision of float32.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> loop = jnp.array([[0.0, 1.0], [1.0, 0.0]])
    >>> round(float(trace_exponential(loop)), 5)  # 2 cosh(1) - 2
    1.08616
    """
    return _exponential_and_gradient(adjacency)[0]


def _exponential_and_gradient(adjacency: Array) -> tuple[Array, Array]:
    """Return h(A) and ``dh/dA``, both from one exponential."""
    product, log_scale = _exponential_minus_identity(jnp.minimum(jnp.asarray(adjacency), LARGEST_WEIGHT))
    return continued(jnp.trace(product), product, log_scale)


trace_exponential.defvjp(_exponential_and_gradient, lambda gradient, cotangent: (cotangent * gradient,))


def continued(trace: Array, product: Array, log_scale: Array) -> tuple[Array, Array]:
    """Return ``h = e^c trace`` and its gradient ``(e^c product + I)^T``, past e^28 as a logarithm; c is log_scale."""
    positive = trace > 0
    log_trace = jnp.where(positive, log_scale + jnp.log(jnp.where(positive, trace, 1.0)), -jnp.inf)
    excess, far = past_the_exact_range(log_trace)

    exact = jnp.where(log_scale == 0, trace, jnp.exp(jnp.minimum(log_trace, LARGEST_LOG_VALUE)))
    value = jnp.where(excess > 0, far, exact)

    identity = jnp.eye(len(product), dtype=product.dtype)
    inside = jnp.exp(jnp.minimum(log_scale, LARGEST_LOG_VALUE)) * product + identity
    beyond = product * (math.exp(LARGEST_LOG_VALUE) / (jnp.where(positive, trace, 1.0) * (1 + excess)))
    return value, jnp.where(excess > 0, beyond, inside).T


def past_the_exact_range(log_value: Array) -> tuple[Array, Array]:
    """Return how far ``log h`` is past 28, at least 0, and the continuation of h: ``e^28 (1 + log(1 + excess))``.

    The slope of the continuation is that of h times ``e^28 / (h (1 + excess))``.
    """
    excess = jnp.maximum(log_value - LARGEST_LOG_VALUE, 0.0)
    return excess, math.exp(LARGEST_LOG_VALUE) * (1 + jnp.log1p(excess))


def _exponential_minus_identity(adjacency: Array) -> tuple[Array, Array]:
    """Return ``F`` and ``c`` with ``exp(A) - I = e^c F``, by scaling and squaring.

    Trained networks nearly always have a small A and no long cycles that matter: four products, no squaring.
    """
    halvings = jnp.maximum(jnp.ceil(jnp.log2(_norm(adjacency) / _TAYLOR_NORM)), 0.0)
    x = adjacency * jnp.exp2(-halvings)
    x2 = _multiplied(x, x)
    x3 = _multiplied(x2, x)
    squarings = jnp.maximum(halvings, _squarings_for_long_walks(x, x2, x3, halvings))
    shrink = jnp.exp2(halvings - squarings)

    def square(state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        left, product, log_scale = state
        return left - 1, *squared(product, log_scale)

    start = (squarings, _taylor9(x * shrink, x2 * shrink**2, x3 * shrink**3), jnp.zeros_like(squarings))
    _, product, log_scale = lax.while_loop(lambda state: state[0] > 0, square, start)
    return product, log_scale


def _norm(matrix: Array) -> Array:
    """Return a bound of the spectral radius of a non-negative matrix."""
    return jnp.minimum(matrix.sum(axis=0).max(), matrix.sum(axis=1).max())


def squared(product: Array, log_scale: Array) -> tuple[Array, Array]:
    """Return ``(I + F)^2 - I = 2 F + F F`` for ``F = e^c product``, in the same form."""
    product = 2 * jnp.exp(-log_scale) * product + _multiplied(product, product)
    return rescaled(product, 2 * log_scale)


def rescaled(product: Array, log_scale: Array) -> tuple[Array, Array]:
    """Return the same ``e^c product`` with a product that can be squared without overflow."""
    largest = product.max()
    rescale = jnp.where(largest > _RESCALE_ABOVE, largest, 1.0)
    return product / rescale, log_scale + jnp.log(rescale)


def _squarings_for_long_walks(x: Array, x2: Array, x3: Array, halvings: Array) -> Array:
    """Return the number of squarings after which the omitted closed walks are below a millionth of h, or none remain.

    Closed walks of length k weigh at most ``p radius^k / k!`` together, and h is at least the weight of those of two
    and three nodes. The radius is at most the norm, and the third root of the third power's norm. ``x`` is
    ``A / 2^halvings``, ``x2`` and ``x3`` are its powers.
    """
    n_nodes = len(x)
    lengths = np.array([9.0, *(2.0**s for s in _MORE_SQUARINGS if 2.0 ** (s - 1) < n_nodes and n_nodes > 9)])
    enough = np.array([0.0, *_MORE_SQUARINGS])[: len(lengths)]
    log_2 = halvings * np.log(2.0)
    log_radius = jnp.log(jnp.minimum(_norm(x), jnp.cbrt(_norm(x3)))) + log_2
    at_most = np.log(2.0 * n_nodes) + (lengths + 1) * log_radius - scipy.special.gammaln(lengths + 2)
    at_least = jnp.logaddexp(jnp.log(jnp.trace(x2) / 2) + 2 * log_2, jnp.log(jnp.trace(x3) / 6) + 3 * log_2)
    negligible = at_most <= at_least + np.log(1e-6)
    return jnp.where(negligible.any(), jnp.asarray(enough)[jnp.argmax(negligible)], enough[-1]).astype(x.dtype)


def _taylor9(x: Array, x2: Array, x3: Array) -> Array:
    """Return the sum of ``x**i / i!`` for i = 1..9 with two more products."""
    tail = x / 5040 + x2 / 40320 + x3 / 362880
    middle = x / 24 + x2 / 120 + x3 / 720 + _multiplied(x3, tail)
    return x + x2 / 2 + x3 / 6 + _multiplied(x3, middle)


def _multiplied(left: Array, right: Array) -> Array:
    """Multiply two matrices in full precision: accelerators would otherwise round the factors to 10 bits."""
    return jnp.matmul(left, right, precision=lax.Precision.HIGHEST)


@jax.custom_vjp
def log_determinant(adjacency: Array) -> Array:
    """Return the negative log-determinant, ``h(A) = -log det(I - A)`` (Bello et al. 2022), for any weights.

    Closed walks of length k weigh ``1 / k`` instead of the ``1 / k!`` of the trace exponential: long cycles count more.
    The value and the gradient ``(I - A)^-1``, transposed, come from one elimination with the operations of a single
    matrix product.

    Notes
    -----
    DAGMA's h is ``-log det(sI - A) + p log s``, for spectral radii below s. Here s is 1 while the norm of A (the
    largest row or column sum, whichever is less, which the spectral radius cannot pass) is at most 0.99.
    For a larger norm, ``s = norm / 0.99`` and ``h = -(1 + log s) log det(I - A/s)``: always inside the domain, with the
    same value and slope at norm 0.99, growing with the scale of A, finite for any finite A. The gradient treats s as a
    constant, as DAGMA does. The slope of s would reward larger weights outside of cycles, which raise s and so hide
    cycles. The gradient is therefore not the exact slope there, but it is never negative, and zero for edges outside of
    cycles. The value there grows with the scale of A as a whole, and not always with a single weight.

    The elimination only adds and multiplies non-negative numbers (it sums walks through more and more nodes), so that
    small values keep their digits and a graph without cycles gives exactly zero.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> loop = jnp.array([[0.0, 0.5], [0.5, 0.0]])
    >>> round(float(log_determinant(loop)), 5)  # -log(1 - 0.25)
    0.28768
    """
    return _log_determinant_and_gradient(adjacency)[0]


def _log_determinant_and_gradient(adjacency: Array) -> tuple[Array, Array]:
    """Return h(A) and ``dh/dA`` for a constant s."""
    adjacency = jnp.minimum(jnp.asarray(adjacency), LARGEST_WEIGHT)
    s = jnp.maximum(_norm(adjacency) / _LOG_DETERMINANT_NORM, 1.0)
    growth = 1 + jnp.log(s)
    walks, value = _all_walks(adjacency / s)
    identity = jnp.eye(len(adjacency), dtype=adjacency.dtype)
    return growth * value, (growth / s) * (walks.T + identity)


log_determinant.defvjp(_log_determinant_and_gradient, lambda gradient, cotangent: (cotangent * gradient,))


def _all_walks(adjacency: Array) -> tuple[Array, Array]:
    """Return ``(I - A)^-1 - I``, the weight of all walks between two nodes, and ``-log det(I - A)``.

    Blocks of nodes are eliminated one at a time. Before a block, an entry is the weight of the walks that pass only
    through eliminated nodes; after it, of those that may also pass through the block.
    """
    p = len(adjacency)
    if p <= _ELIMINATED_TOGETHER:
        return _all_walks_of_block(adjacency)
    n_blocks = -(-p // _ELIMINATED_TOGETHER)
    padding = n_blocks * _ELIMINATED_TOGETHER - p  # nodes without edges

    def eliminate(k: Array, state: tuple[Array, Array]) -> tuple[Array, Array]:
        walks, value = state
        into = lax.dynamic_slice_in_dim(walks, k * _ELIMINATED_TOGETHER, _ELIMINATED_TOGETHER, axis=1)
        out_of = lax.dynamic_slice_in_dim(walks, k * _ELIMINATED_TOGETHER, _ELIMINATED_TOGETHER, axis=0)
        within, more = _all_walks_of_block(
            lax.dynamic_slice_in_dim(out_of, k * _ELIMINATED_TOGETHER, _ELIMINATED_TOGETHER, axis=1)
        )
        return walks + _multiplied(into, out_of + _multiplied(within, out_of)), value + more

    start = (jnp.pad(adjacency, (0, padding)), jnp.zeros((), adjacency.dtype))
    walks, value = lax.fori_loop(0, n_blocks, eliminate, start)
    return walks[:p, :p], value


def _all_walks_of_block(adjacency: Array) -> tuple[Array, Array]:
    """Return the same as :func:`_all_walks`, node by node."""

    def eliminate(i: Array, state: tuple[Array, Array]) -> tuple[Array, Array]:
        walks, value = state
        loops = walks[i, i]  # below 1, as the spectral radius is
        return walks + walks[:, i, None] * (walks[i] / (1 - loops)), value - jnp.log1p(-loops)

    return lax.fori_loop(0, len(adjacency), eliminate, (adjacency, jnp.zeros((), adjacency.dtype)))
