"""Logarithm of a determinant, the acyclicity function of DAGMA, for any weights."""

from __future__ import annotations

from typing import Final

import jax
import jax.numpy as jnp
from jax import Array, lax

from castlereg.acyclicity.exponential import LARGEST_WEIGHT, multiplied, norm

# The determinant has its zero at spectral radius 1, where h has a pole and its slope is infinite. Up to this norm h is
# exact; entries of the gradient are at most 1 / (1 - 0.99).
_LARGEST_NORM: Final = 0.99
# Nodes that are eliminated together. Products of a slice this thin are nearly as fast as square ones.
_BLOCK: Final = 32


@jax.custom_vjp
def log_determinant(adjacency: Array) -> Array:
    """Return the negative log-determinant, ``h(A) = -log det(I - A)`` (Bello et al. 2022), for any weights.

    Closed walks of length k weigh ``1 / k`` instead of the ``1 / k!`` of the trace exponential: long cycles count more.
    The value and the gradient ``(I - A)^-1``, transposed, come from one elimination with the operations of a single
    matrix product.

    Parameters
    ----------
    adjacency : array of shape (p, p)
        Non-negative edge weights.

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
    return _value_and_gradient(adjacency)[0]


def _value_and_gradient(adjacency: Array) -> tuple[Array, Array]:
    """Return h(A) and ``dh/dA`` for a constant s."""
    adjacency = jnp.minimum(jnp.asarray(adjacency), LARGEST_WEIGHT)
    s = jnp.maximum(norm(adjacency) / _LARGEST_NORM, 1.0)
    growth = 1 + jnp.log(s)
    walks, value = _all_walks(adjacency / s)
    identity = jnp.eye(len(adjacency), dtype=adjacency.dtype)
    return growth * value, (growth / s) * (walks.T + identity)


log_determinant.defvjp(_value_and_gradient, lambda gradient, cotangent: (cotangent * gradient,))


def _all_walks(adjacency: Array) -> tuple[Array, Array]:
    """Return ``(I - A)^-1 - I``, the weight of all walks between two nodes, and ``-log det(I - A)``.

    Blocks of nodes are eliminated one at a time. Before a block, an entry is the weight of the walks that pass only
    through eliminated nodes; after it, of those that may also pass through the block.
    """
    p = len(adjacency)
    if p <= _BLOCK:
        return _all_walks_of_block(adjacency)
    n_blocks = -(-p // _BLOCK)
    padding = n_blocks * _BLOCK - p  # nodes without edges

    def eliminate(k: Array, state: tuple[Array, Array]) -> tuple[Array, Array]:
        walks, value = state
        into = lax.dynamic_slice_in_dim(walks, k * _BLOCK, _BLOCK, axis=1)
        out_of = lax.dynamic_slice_in_dim(walks, k * _BLOCK, _BLOCK, axis=0)
        within, more = _all_walks_of_block(lax.dynamic_slice_in_dim(out_of, k * _BLOCK, _BLOCK, axis=1))
        return walks + multiplied(into, out_of + multiplied(within, out_of)), value + more

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
