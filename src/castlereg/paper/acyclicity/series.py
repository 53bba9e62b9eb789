"""Series of the trace exponential up to the ninth power, the acyclicity function of the released code."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array, lax


def truncated_series(adjacency: Array) -> Array:
    """Return the sum of ``tr A^k / k!`` for k = 1..9, as in the authors' released code.

    It does not penalize cycles of ten or more nodes. It exists for comparison with that code.

    Parameters
    ----------
    adjacency : array of shape (p, p)
        Non-negative edge weights.

    Returns
    -------
    array of shape ()

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
