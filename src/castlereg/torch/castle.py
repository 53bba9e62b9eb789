"""CASTLE, term by term, for tensors: the PyTorch counterpart of :mod:`castlereg.castle`.

==============  ==========================================================  ============  ============================
term            what it measures                                            in the paper  function
==============  ==========================================================  ============  ============================
supervised      loss of the target                                          eq. 1, 5      :func:`supervised_loss`
reconstruction  losses of all nodes, the target's included                  eq. 2, 6: L   :func:`reconstruction_loss`
acyclicity      square of h(A), zero when the graph has no cycle            eq. 2, 7: R   :func:`acyclicity_loss`
sparsity        l1 norm of the input layers                                 eq. 2, 6: V   :func:`l1_norm`
==============  ==========================================================  ============  ============================

:func:`castle_loss` is their sum, ``supervised + lambda * (reconstruction + acyclicity + beta * sparsity)``. Values and
gradients are those of the JAX functions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from castlereg.layout import Layout
from castlereg.torch.exponential import trace_exponential
from castlereg.torch.losses import Batch, cell_losses


class SubNetworks(Protocol):
    """Networks for the objective, such as :class:`CastleNetwork` and :class:`WrappedNetwork`."""

    @property
    def layout(self) -> Layout:
        """Nodes, their channels and their losses."""

    @property
    def names(self) -> tuple[str, ...] | None:
        """Names of the nodes, if they are known."""

    @property
    def is_linear(self) -> bool:
        """Whether there are no hidden layers."""

    @property
    def masked_input_weights(self) -> Tensor:
        """Weights of the input layers, shape (inputs, nodes, width), zero for forbidden edges."""

    @property
    def null_loss(self) -> Tensor | None:
        """Units of the losses, shape (nodes,); None for ones."""

    def __call__(self, x: Tensor) -> Tensor:
        """Predict all nodes, shape (rows, channels) to (rows, nodes, outputs)."""

    def target_outputs(self, x: Tensor) -> Tensor:
        """Predict only the targets, shape (rows, channels) to (rows, targets, outputs)."""


def supervised_loss(losses: Tensor, batch: Batch) -> Tensor:
    """Return the mean over rows of the loss of the targets, the first term of eq. 1 and 5.

    Parameters
    ----------
    losses : tensor of shape (rows, targets)
        From :func:`castlereg.torch.losses.cell_losses`.
    batch : Batch
    """
    return (batch.weight[:, None] * losses).sum()


def reconstruction_loss(losses: Tensor, batch: Batch, node_weight: Tensor) -> Tensor:
    """Return the mean over rows of the summed losses of all nodes, ``L_N`` of eq. 6 and ``L_W`` of eq. 2.

    Parameters
    ----------
    losses : tensor of shape (rows, nodes)
        From :func:`castlereg.torch.losses.cell_losses`.
    batch : Batch
    node_weight : tensor of shape (nodes,)
        1 for each node; 0 for a constant column.
    """
    return (batch.weight[:, None] * losses * node_weight).sum()


def squared_adjacency(input_weights: Tensor, layout: Layout) -> Tensor:
    """Return the squared weight of every edge, ``A = M * M`` (eq. 7), shape (inputs, nodes, width) to (nodes, nodes).

    ``A[j, k]`` is the sum of the squares of all weights from the inputs of node j into the sub-network of node k.
    """
    by_input = (input_weights * input_weights).sum(dim=-1).clamp(max=1e24)
    if layout.n_inputs == layout.n_nodes:
        return by_input
    membership = layout.input_nodes == np.arange(layout.n_nodes)[:, None]
    return torch.as_tensor(membership, dtype=by_input.dtype, device=by_input.device) @ by_input


def acyclicity_loss(input_weights: Tensor, layout: Layout, h: Callable[[Tensor], Tensor] = trace_exponential) -> Tensor:
    """Return the square of h(A), ``R`` of eq. 7 and 2.

    Parameters
    ----------
    input_weights : tensor of shape (inputs, nodes, width)
    layout : Layout
    h : callable
        Acyclicity function of a tensor of shape (nodes, nodes).
    """
    return h(squared_adjacency(input_weights, layout)) ** 2


def l1_norm(input_weights: Tensor, penalized: Tensor | None = None) -> Tensor:
    """Return the sum of the absolute input weights, ``V`` of eq. 6 and 2.

    Parameters
    ----------
    input_weights : tensor of shape (inputs, nodes, width)
    penalized : tensor of shape (inputs, nodes), optional
        0 for required edges, which the sparsity term ignores; ones by default.
    """
    sizes = input_weights.abs()
    return (sizes if penalized is None else sizes * penalized[:, :, None]).sum()


def dag_loss(reconstruction: Tensor, acyclicity: Tensor, sparsity: Tensor, reg_beta: Tensor | float) -> Tensor:
    """Combine the three terms into ``R_DAG`` of eq. 6 and 2; all have shape ()."""
    return reconstruction + acyclicity + reg_beta * sparsity


def castle_loss(
    network: SubNetworks,
    batch: Batch,
    reg_beta: Tensor | float = 0.01,
    reg_lambda: Tensor | float = 1.0,
    null_loss: Tensor | None = None,
) -> tuple[Tensor, dict[str, Tensor]]:
    """Return the whole objective, eq. 5 (eq. 1 in the linear form), and its terms.

    Parameters
    ----------
    network : CastleNetwork or WrappedNetwork
        With the sub-networks of all nodes.
    batch : Batch
    reg_beta, reg_lambda : float
        Factor of the sparsity, and of the three terms together.
    null_loss : tensor of shape (nodes,), optional
        Units of the losses, see :func:`castlereg.torch.losses.cell_losses`; those of the network by default.

    Examples
    --------
    One step of a training loop:

    >>> from castlereg.torch import Batch, CastleNetwork, castle_loss
    >>> rows = torch.randn(8, 3, generator=torch.Generator().manual_seed(0))
    >>> network = CastleNetwork(2, (3, 3), seed=0)
    >>> optimizer = torch.optim.Adam(network.parameters())
    >>> loss, terms = castle_loss(network, Batch.of_numbers(rows))
    >>> loss.backward()
    >>> optimizer.step()
    >>> list(terms)
    ['supervised', 'reconstruction', 'acyclicity', 'sparsity']
    """
    layout, weights = network.layout, network.masked_input_weights
    if weights.shape[1] != layout.n_nodes:
        raise ValueError(
            f"the network has {weights.shape[1]} of {layout.n_nodes} sub-networks, but CASTLE trains all of them; "
            "create it without targets_only=True, or from a Castle estimator"
        )
    units = network.null_loss if null_loss is None else null_loss
    losses = cell_losses(network(batch.inputs), batch, layout, null_loss=units)
    terms = {
        "supervised": supervised_loss(losses[:, -len(layout.targets) :], batch),
        "reconstruction": reconstruction_loss(losses, batch, torch.ones_like(losses[0])),
        "acyclicity": acyclicity_loss(weights, layout),
        "sparsity": l1_norm(weights),
    }
    dag = dag_loss(terms["reconstruction"], terms["acyclicity"], terms["sparsity"], reg_beta)
    return terms["supervised"] + reg_lambda * dag, terms
