"""Norms of the weights of a network."""

from __future__ import annotations

from collections.abc import Callable

import jax.numpy as jnp
from jax import Array

from castlereg.layout import Layout
from castlereg.network import Parameters, squared_adjacency


def weight_norm(parameters: Parameters, of_weight: Callable[[Array], Array], node_share: Array) -> Array:
    """Return the sum of a function such as ``jnp.square`` over the weights of every dense layer, without biases.

    ``node_share`` has shape (nodes,): the factor of each sub-network's own layers, see
    :func:`castlereg.regularizers.engine.node_shares`.
    """
    by_node = jnp.sum(of_weight(parameters.input_weights), axis=(0, 2))
    if parameters.output_weights is not None:
        by_node = by_node + jnp.sum(of_weight(parameters.output_weights), axis=(1, 2))
    shared = [jnp.sum(of_weight(layer.weights)) for layer in parameters.hidden]
    return sum(shared, jnp.sum(node_share * by_node))


def group_norm(input_weights: Array, layout: Layout, penalized: Array | None = None) -> Array:
    """Return the sum over edges of the l2 norm of their weights (group lasso); see :func:`castlereg.castle.l1_norm`."""
    if penalized is not None:
        input_weights = input_weights * penalized[:, :, None]
    return jnp.sum(root(squared_adjacency(input_weights, layout)))


def root(squares: Array) -> Array:
    """Return square roots, of any shape, with slope zero at zero, where that of a masked edge would be 0/0."""
    present = squares > 0
    return jnp.where(present, jnp.sqrt(jnp.where(present, squares, 1.0)), 0.0)


def capacity_norm(parameters: Parameters, node_share: Array | float = 1.0) -> Array:
    """Return the sum of the squared weights of shared hidden and output layers, ``V_Theta2`` of Theorem 1.

    The theorem's text calls it an l2 norm; the KL step of its proof (eq. 12) has the squared Frobenius norms.
    """
    shared = sum(
        (jnp.sum(layer.weights**2) for layer in parameters.hidden), jnp.zeros((), parameters.input_weights.dtype)
    )
    if parameters.output_weights is None:
        return shared
    return shared + jnp.sum(node_share * jnp.sum(parameters.output_weights**2, axis=(1, 2)))
