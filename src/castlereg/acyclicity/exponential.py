"""Trace of the matrix exponential, the paper's acyclicity function."""

from __future__ import annotations

import math
from typing import Final

import jax
import jax.numpy as jnp
import numpy as np
import scipy.special
from jax import Array, lax

# The Taylor polynomial of degree 9 is exact to float32 rounding up to this norm: 0.84**9 / 10! < 6e-8.
TAYLOR_NORM: Final = 0.84
# The polynomial covers walks up to length 9. Squaring it s times reaches length 9 * 2**s, and walks up to 2**s have
# five digits. Walks longer than 2**7 are below float32's smallest number while the spectral radius is below 20:
# 20**128 / 128! = 1e-49.
MORE_SQUARINGS: Final = (4, 5, 6, 7)
# From here on h grows like a logarithm, so that h, h**2 and their gradients stay inside float32.
# tr exp(A) of a dense graph of 1000 nodes with spectral radius 20 is e**26.9: still exact.
LARGEST_LOG_VALUE: Final = 28.0
# Products above this are rescaled, so that squaring cannot overflow.
RESCALE_ABOVE: Final = 1e6
# Larger weights are replaced by this one, so that their sums stay inside float32.
LARGEST_WEIGHT: Final = 1e30


@jax.custom_vjp
def trace_exponential(adjacency: Array) -> Array:
    """Return the trace of the matrix exponential minus the number of nodes, ``h(A) = tr exp(A) - p`` (eq. 2 and 7).

    The weight of every closed walk of any length counts, so every cycle is penalized. The value and the gradient
    ``exp(A)^T`` come from one exponential.

    Parameters
    ----------
    adjacency : array of shape (p, p)
        Non-negative edge weights, the square of the paper's ``M``.

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
    return _value_and_gradient(adjacency)[0]


def _value_and_gradient(adjacency: Array) -> tuple[Array, Array]:
    """Return h(A) and ``dh/dA``, both from one exponential."""
    product, log_scale = _exponential_minus_identity(jnp.minimum(jnp.asarray(adjacency), LARGEST_WEIGHT))
    return continued(jnp.trace(product), product, log_scale)


trace_exponential.defvjp(_value_and_gradient, lambda gradient, cotangent: (cotangent * gradient,))


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
    halvings = jnp.maximum(jnp.ceil(jnp.log2(norm(adjacency) / TAYLOR_NORM)), 0.0)
    x = adjacency * jnp.exp2(-halvings)
    x2 = multiplied(x, x)
    x3 = multiplied(x2, x)
    squarings = jnp.maximum(halvings, _squarings_for_long_walks(x, x2, x3, halvings))
    shrink = jnp.exp2(halvings - squarings)

    def square(state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        left, product, log_scale = state
        return left - 1, *squared(product, log_scale)

    start = (squarings, _taylor9(x * shrink, x2 * shrink**2, x3 * shrink**3), jnp.zeros_like(squarings))
    _, product, log_scale = lax.while_loop(lambda state: state[0] > 0, square, start)
    return product, log_scale


def norm(matrix: Array) -> Array:
    """Return a bound of the spectral radius of a non-negative matrix."""
    return jnp.minimum(matrix.sum(axis=0).max(), matrix.sum(axis=1).max())


def squared(product: Array, log_scale: Array) -> tuple[Array, Array]:
    """Return ``(I + F)^2 - I = 2 F + F F`` for ``F = e^c product``, in the same form."""
    product = 2 * jnp.exp(-log_scale) * product + multiplied(product, product)
    return rescaled(product, 2 * log_scale)


def rescaled(product: Array, log_scale: Array) -> tuple[Array, Array]:
    """Return the same ``e^c product`` with a product that can be squared without overflow."""
    largest = product.max()
    rescale = jnp.where(largest > RESCALE_ABOVE, largest, 1.0)
    return product / rescale, log_scale + jnp.log(rescale)


def _squarings_for_long_walks(x: Array, x2: Array, x3: Array, halvings: Array) -> Array:
    """Return the number of squarings after which the omitted closed walks are below a millionth of h, or none remain.

    Closed walks of length k weigh at most ``p radius^k / k!`` together, and h is at least the weight of those of two
    and three nodes. The radius is at most the norm, and the third root of the third power's norm. ``x`` is
    ``A / 2^halvings``, ``x2`` and ``x3`` are its powers.
    """
    n_nodes = len(x)
    lengths = np.array([9.0, *(2.0**s for s in MORE_SQUARINGS if 2.0 ** (s - 1) < n_nodes and n_nodes > 9)])
    enough = np.array([0.0, *MORE_SQUARINGS])[: len(lengths)]
    log_2 = halvings * np.log(2.0)
    log_radius = jnp.log(jnp.minimum(norm(x), jnp.cbrt(norm(x3)))) + log_2
    at_most = np.log(2.0 * n_nodes) + (lengths + 1) * log_radius - scipy.special.gammaln(lengths + 2)
    at_least = jnp.logaddexp(jnp.log(jnp.trace(x2) / 2) + 2 * log_2, jnp.log(jnp.trace(x3) / 6) + 3 * log_2)
    negligible = at_most <= at_least + np.log(1e-6)
    return jnp.where(negligible.any(), jnp.asarray(enough)[jnp.argmax(negligible)], enough[-1]).astype(x.dtype)


def _taylor9(x: Array, x2: Array, x3: Array) -> Array:
    """Return the sum of ``x**i / i!`` for i = 1..9 with two more products."""
    tail = x / 5040 + x2 / 40320 + x3 / 362880
    middle = x / 24 + x2 / 120 + x3 / 720 + multiplied(x3, tail)
    return x + x2 / 2 + x3 / 6 + multiplied(x3, middle)


def multiplied(left: Array, right: Array) -> Array:
    """Multiply two matrices in full precision: accelerators would otherwise round the factors to 10 bits."""
    return jnp.matmul(left, right, precision=lax.Precision.HIGHEST)
