"""The objective that training minimizes: the supervised loss and the terms of regularizers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from castlereg.castle import supervised_loss
from castlereg.layout import Layout
from castlereg.losses import Batch, cell_losses
from castlereg.network import Parameters, hidden_units, input_layer, output_layer, select, squared_adjacency
from castlereg.regularizers.castle import acyclicity_of
from castlereg.regularizers.protocol import Cycles, Own, Pass, Regularizer, trained_nodes


def _node_shares(n_run: int, layout: Layout) -> NDArray[np.float32]:
    """Return factors of the nodes that a step runs, so that sums over nodes are right on average.

    Each of s sampled features out of d counts d / s times; the targets run in every step.
    """
    n_sampled = n_run - len(layout.targets)
    shares = np.ones(n_run, np.float32)
    shares[:n_sampled] = layout.n_features / max(n_sampled, 1)
    return shares


def regularized_loss(
    parameters: Parameters,
    batch: Batch,
    regularizers: Sequence[Regularizer],
    layout: Layout,
    *,
    node_weight: Array | None = None,
    null_loss: Array | None = None,
    penalized: Array | None = None,
    sampled: Array | None = None,
    cycles: Cycles | None = None,
    own: Sequence[Own] | None = None,
    drawn: Sequence[Any] | None = None,
) -> tuple[Array, tuple[dict[str, Array], tuple[Own, ...]]]:
    """Return the loss of the targets plus the terms of regularizers.

    Parameters
    ----------
    parameters : Parameters
        Of the sub-networks of :func:`trained_nodes`, with zero weights for forbidden edges. The trainer starts from
        such weights and masks their gradient; in a custom loop, use :func:`castlereg.network.mask_inputs`.
    batch : Batch
    regularizers : sequence of Regularizer
        Empty for a plain network; ``[Castle()]`` for the paper's objective, :func:`castlereg.castle.castle_loss`.
    layout : Layout
    node_weight, null_loss, penalized : array, optional
        See :class:`castlereg.regularizers.protocol.Pass`.
    sampled : array of int, optional
        Nodes to train in this step, the targets last ("Managing computational complexity"); the others are not computed
        and get no gradient. All by default.
    cycles : Cycles, optional
        h(A) of the whole graph if nodes are sampled and it is known. ``parameters`` may then be only those of the
        sampled sub-networks.
    own, drawn : sequence, optional
        For each regularizer, its own state and its random numbers for this step.

    Returns
    -------
    total, (terms, own)
        The loss, the value of each term, and the regularizers' states after the step.
    """
    own, drawn = own or (Own(),) * len(regularizers), drawn or ((),) * len(regularizers)
    node_weight = jnp.ones(layout.n_nodes, batch.inputs.dtype) if node_weight is None else node_weight
    for regularizer, numbers in zip(regularizers, drawn, strict=True):
        batch = regularizer.on_batch(batch, numbers, layout)
    if sampled is not None and parameters.input_weights.shape[1] == layout.n_nodes:  # of all sub-networks
        h = acyclicity_of(regularizers, layout.n_nodes)
        if cycles is None and h is not None:
            adjacency = jax.lax.stop_gradient(squared_adjacency(parameters.input_weights, layout))
            value, slope = jax.value_and_grad(h)(adjacency)
            cycles = Cycles(value, slope[:, sampled])
        parameters = select(parameters, sampled)

    states, network = list(own), parameters  # penalties use the unchanged weights
    for regularizer, numbers in zip(regularizers, drawn, strict=True):
        network = regularizer.on_parameters(network, numbers)

    def activate(layer: int, z: Array) -> Array:
        for i, regularizer in enumerate(regularizers):
            z, states[i] = regularizer.on_dense(z, layer, batch.weight, sampled, states[i])
        z = network.activation(z)
        for regularizer, numbers in zip(regularizers, drawn, strict=True):
            z = regularizer.on_hidden(z, layer, numbers)
        return z

    z, units = input_layer(network, batch.inputs), None
    if network.output_weights is not None:
        units = hidden_units(network, z, activate)
    outputs = z if units is None else output_layer(network, units)
    trained = trained_nodes(regularizers, layout)
    run = jnp.asarray(trained) if sampled is None and len(trained) < layout.n_nodes else sampled
    losses = cell_losses(outputs, batch, layout, run, null_loss)
    supervised = supervised_loss(losses[:, -len(layout.targets) :], batch)
    shares = jnp.asarray(_node_shares(outputs.shape[1], layout), batch.inputs.dtype)
    seen = Pass(
        parameters, batch, units, losses, supervised, sampled, shares, cycles, node_weight, null_loss, penalized, layout
    )
    total, terms = supervised, {"supervised": supervised}
    for regularizer, state, numbers in zip(regularizers, own, drawn, strict=True):
        penalty, its_terms = regularizer.penalty(seen._replace(drawn=numbers), state)
        total, terms = total + penalty, terms | its_terms
    return total, (terms, tuple(states))
