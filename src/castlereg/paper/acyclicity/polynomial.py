"""Trace of a matrix polynomial, the acyclicity function of DAG-GNN."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
from jax import Array

from castlereg.acyclicity.exponential import continued, rescaled, squared


@jax.custom_vjp
def trace_polynomial(adjacency: Array) -> Array:
    """Return the trace of a matrix power minus the number of nodes, ``h(A) = tr (I + A/m)^m - p`` (Yu et al. 2019).

    Closed walks of length k have the weight ``C(m, k) / m^k``, slightly less than ``1 / k!`` in
    :func:`castlereg.acyclicity.trace_exponential`, which is the limit for large m.

    Parameters
    ----------
    adjacency : array of shape (p, p)
        Non-negative edge weights.

    Returns
    -------
    array of shape ()

    Notes
    -----
    Yu et al. use ``m = p``; any ``m >= p`` detects cycles of all lengths. Here m is :func:`power`, one more than a
    power of two: the gradient, ``(I + A/m)^(m - 1)`` transposed, needs only squarings, and the value follows from it.
    The identity is never added, so nothing cancels and an acyclic graph gives exactly zero.
    Above e^28 it continues in the same way as :func:`castlereg.acyclicity.trace_exponential`.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> loop = jnp.array([[0.0, 1.0], [1.0, 0.0]])
    >>> float(trace_polynomial(loop))  # m is 2: tr (I + A + A A / 4) - 2
    0.5
    """
    return _value_and_gradient(adjacency)[0]


def power(n_nodes: int) -> int:
    """Return the smallest ``2^q + 1`` that is at least the number of nodes.

    Examples
    --------
    >>> [power(n) for n in (2, 3, 4, 17, 18)]
    [2, 3, 5, 17, 33]
    """
    return int(2 ** math.ceil(math.log2(max(n_nodes - 1, 1)))) + 1


def _value_and_gradient(adjacency: Array) -> tuple[Array, Array]:
    """Return h(A) and ``dh/dA``."""
    adjacency = jnp.asarray(adjacency)
    m = power(len(adjacency))
    one, log_one = rescaled(adjacency / m, jnp.zeros((), adjacency.dtype))
    product, log_scale = one, log_one
    for _ in range(int(math.log2(m - 1))):
        product, log_scale = squared(product, log_scale)
    # (I + F)(I + X) - I = F + X + F X, for F = e^c product and X = e^a one, in units of e^(c + a).
    trace = jnp.sum(product * one.T) + jnp.exp(-log_one) * jnp.trace(product) + jnp.exp(-log_scale) * jnp.trace(one)
    return continued(trace, jnp.exp(-log_one) * product, log_scale + log_one)


trace_polynomial.defvjp(_value_and_gradient, lambda gradient, cotangent: (cotangent * gradient,))
