"""Losses of cells: squared error, logistic or softmax by the kind of node, on a common scale.

A numeric target may have another loss, see :mod:`castlereg.target_losses`. Arrays are JAX arrays in training, and NumPy
arrays once a model is fitted.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy.special
from jax import Array

from castlereg.layout import Layout, Node
from castlereg.table.encoding import Standardization, standardize
from castlereg.target_losses import Huber as Huber
from castlereg.target_losses import Poisson as Poisson
from castlereg.target_losses import Quantiles as Quantiles


class Batch(NamedTuple):
    """Standardized rows of a table, ready for a network."""

    inputs: Array  # (rows, channels), standardized
    truth: Array  # (rows, nodes, outputs), what the sub-networks should predict
    weight: Array  # (rows,), 1 / rows for a plain mean; 0 for padding rows
    observed: Array | None = None  # (rows, nodes), 0 for missing values, otherwise 1; None if no value is missing


def cell_losses(
    outputs: Array, batch: Batch, layout: Layout, nodes: Array | None = None, null_loss: Array | None = None
) -> Array:
    """Return the loss of every cell, shape (rows, nodes), on a common scale; 0 for missing values.

    The squared error of a standardized column is 1 for a model that predicts its mean. The losses of binary and
    categorical nodes are divided by the loss of predicting their base rates, the entropy. For nodes of every kind, a
    loss of 1 is then that of a constant prediction, and all kinds have the same weight.

    Parameters
    ----------
    outputs : array of shape (rows, nodes, outputs)
        From :func:`castlereg.network.forward`, for ``nodes``, by default all.
    batch : Batch
    layout : Layout
    nodes : array of int, optional
    null_loss : array of shape (all nodes,), optional
        Entropy of the binary and categorical nodes, 1 for numeric ones; ones by default.
    """
    losses = _node_losses(outputs, batch.truth if nodes is None else batch.truth[:, nodes], layout, nodes)
    if null_loss is not None:
        losses = losses / (null_loss if nodes is None else null_loss[nodes])
    if batch.observed is None:
        return losses
    return losses * (batch.observed if nodes is None else batch.observed[:, nodes])


def _node_losses(outputs: Array, truth: Array, layout: Layout, nodes: Array | None = None) -> Array:
    """Return the loss of every row and node by the node's kind, shape (rows, nodes, outputs) to (rows, nodes)."""
    if nodes is None:  # each node's kind is known when the program is compiled: compute only its loss
        if len(layout.alike) == 1:
            return _losses_of_kind(layout.nodes[0], outputs, truth)
        parts = [_losses_of_kind(node, outputs[:, at], truth[:, at]) for node, at in layout.alike]
        position = np.argsort(np.concatenate([at for _, at in layout.alike]))
        return outputs.__array_namespace__().concat(parts, axis=1)[:, position]
    losses = squared_error(outputs[..., 0], truth[..., 0])
    is_binary, is_categorical = layout.is_kind("binary"), layout.is_kind("categorical")
    if is_binary.any():
        losses = jnp.where(jnp.asarray(is_binary)[nodes], logistic_loss(outputs[..., 0], truth[..., 0]), losses)
    if is_categorical.any():
        used = jnp.asarray(layout.output_used)[nodes]
        softmax = softmax_loss(jnp.where(used, outputs, -1e30), jnp.where(used, truth, 0.0))
        losses = jnp.where(jnp.asarray(is_categorical)[nodes], softmax, losses)
    for loss in {node.loss: None for node in layout.nodes if node.loss is not None}:
        has_loss = jnp.asarray([node.loss == loss for node in layout.nodes])[nodes]
        used_outputs = outputs[..., : loss.n_outputs]
        own = loss.losses(jnp.where(has_loss[:, None], used_outputs, 0.0), jnp.where(has_loss, truth[..., 0], 0.0))
        losses = jnp.where(has_loss, own, losses)
    return losses


def squared_error(outputs: Array, truth: Array) -> Array:
    """Return the loss of numeric nodes; arrays of any shape."""
    return (outputs - truth) ** 2


def logistic_loss(logits: Array, truth: Array) -> Array:
    """Return the loss of binary nodes; arrays of any shape, with truth between 0 and 1."""
    return logits.__array_namespace__().logaddexp(logits, 0.0) - truth * logits


def softmax_loss(logits: Array, truth: Array) -> Array:
    """Return the loss of categorical nodes, shape (..., levels) to (...); the truth is one-hot or shares."""
    log_sum_exp = jax.nn.logsumexp if isinstance(logits, Array) else scipy.special.logsumexp
    return log_sum_exp(logits, axis=-1) - (truth * logits).sum(axis=-1)


def _losses_of_kind(node: Node, outputs: Array, truth: Array) -> Array:
    if node.loss is not None:
        return node.loss.losses(outputs[..., : node.outputs], truth[..., 0])
    if node.kind == "categorical":
        return softmax_loss(outputs[..., : node.levels], truth[..., : node.levels])
    loss = squared_error if node.kind == "numeric" else logistic_loss
    return loss(outputs[..., 0], truth[..., 0])


def as_batch(encoded: Any, weight: Any, standardization: Standardization, layout: Layout) -> Batch:
    """Standardize rows by one member, and arrange the values that the sub-networks should predict.

    ``encoded`` is a NumPy or JAX array of shape (rows, channels); ``weight``, shape (rows,), is the weight in a mean.
    """
    xp = encoded.__array_namespace__()
    x = standardize(encoded, standardization, layout)
    squared = layout.is_squared[layout.channel_nodes]
    truth = x if squared.all() else xp.where(squared, x, encoded)
    truth = truth[..., None] if layout.n_channels == layout.n_nodes else truth[..., layout.output_channels]
    if not layout.has_missing:
        return Batch(x, truth, weight)
    # The mean of standardized values is zero, so missing values are filled with zero.
    missing = xp.isnan(truth[..., 0])
    x, truth = xp.where(xp.isnan(x), 0.0, x), xp.where(missing[..., None], 0.0, truth)
    return Batch(x, truth, weight, (~missing).astype(x.dtype))
