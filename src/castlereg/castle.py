"""CASTLE, term by term: read this file first.

CASTLE trains one sub-network ``f_k`` per node (every column and the target), which predicts this node from all the
others. It adds terms to the target's loss that turn the input layers into a sparse directed acyclic graph (eq. 5 and
6)::

    supervised + lambda * (reconstruction + acyclicity + beta * sparsity)

==============  ==========================================================  ============  ============================
term            what it measures                                            in the paper  function
==============  ==========================================================  ============  ============================
supervised      loss of the target                                          eq. 1, 5      :func:`supervised_loss`
reconstruction  losses of all nodes, the target's included                  eq. 2, 6: L   :func:`reconstruction_loss`
acyclicity      square of h(A), zero if the graph has no cycle            eq. 2, 7: R   :func:`acyclicity_loss`
sparsity        l1 norm of the input layers                                 eq. 2, 6: V   :func:`l1_norm`
==============  ==========================================================  ============  ============================

:func:`castle_loss` is their sum. All are pure functions of the arrays of one network, for use in any JAX training loop.
``forward`` (eq. 3) and the adjacency matrix ``A`` (eq. 7) are in :mod:`castlereg.network`, and the losses of cells by
kind of column in :mod:`castlereg.losses`. Without hidden layers, the same functions give the linear form, eq. 1 and 2.
Estimators train these terms as one of several regularizers, :class:`castlereg.regularizers.Castle`.
"""

from __future__ import annotations

from collections.abc import Callable

import jax.numpy as jnp
from jax import Array

from castlereg.acyclicity import trace_exponential
from castlereg.layout import Layout
from castlereg.losses import Batch, cell_losses
from castlereg.network import Parameters, absolute, forward, squared_adjacency


def supervised_loss(losses: Array, batch: Batch) -> Array:
    """Return the mean loss of the targets over rows, the first term of eq. 1 and 5.

    Parameters
    ----------
    losses : array of shape (rows, targets)
        From :func:`castlereg.losses.cell_losses`.
    batch : Batch
    """
    return jnp.sum(batch.weight[:, None] * losses)


def reconstruction_loss(losses: Array, batch: Batch, node_weight: Array) -> Array:
    """Return the mean over rows of the summed losses of all nodes, ``L_N`` of eq. 6 and ``L_W`` of eq. 2.

    Parameters
    ----------
    losses : array of shape (rows, nodes)
        From :func:`castlereg.losses.cell_losses`.
    batch : Batch
    node_weight : array of shape (nodes,)
        1 for each node; 0 for constant columns; larger than 1 for a sampled node that represents several.
    """
    return jnp.sum(batch.weight[:, None] * losses * node_weight)


def acyclicity_loss(input_weights: Array, layout: Layout, h: Callable[[Array], Array] = trace_exponential) -> Array:
    """Return the square of h(A), ``R`` of eq. 7 and 2.

    Parameters
    ----------
    input_weights : array of shape (channels, nodes, width)
    layout : Layout
    h : callable
        Acyclicity function, see :mod:`castlereg.acyclicity`.
    """
    return h(squared_adjacency(input_weights, layout)) ** 2


def l1_norm(input_weights: Array, penalized: Array | None = None) -> Array:
    """Return the sum of the absolute input weights, ``V`` of eq. 6 and 2.

    Parameters
    ----------
    input_weights : array of shape (channels, nodes, width)
    penalized : array of shape (channels, nodes), optional
        0 for required edges, which are not penalized; by default 1 for all.
    """
    sizes = absolute(input_weights)
    return jnp.sum(sizes if penalized is None else sizes * penalized[:, :, None])


def dag_loss(reconstruction: Array, acyclicity: Array, sparsity: Array, reg_beta: Array | float) -> Array:
    """Combine the three terms into ``R_DAG`` of eq. 6 and 2; all have shape ()."""
    return reconstruction + acyclicity + reg_beta * sparsity


def castle_loss(
    parameters: Parameters,
    batch: Batch,
    layout: Layout,
    reg_beta: Array | float = 0.01,
    reg_lambda: Array | float = 1.0,
    null_loss: Array | None = None,
) -> tuple[Array, dict[str, Array]]:
    """Return the objective, eq. 5 (eq. 1 in the linear form), and its terms.

    Parameters
    ----------
    parameters : Parameters
        Weights of all sub-networks, zero for forbidden edges, see :func:`castlereg.network.mask_inputs`.
    batch : Batch
    layout : Layout
    reg_beta, reg_lambda : float
        Strength of the sparsity term, and of all three terms together.
    null_loss : array of shape (nodes,), optional
        Units of the losses, see :func:`castlereg.losses.cell_losses`.

    Examples
    --------
    The gradient of the objective:

    >>> import jax, numpy as np
    >>> from castlereg.layout import Layout, Node
    >>> from castlereg.network import initialize, mask_inputs
    >>> layout = Layout((Node(), Node(), Node(target=True)))
    >>> x = np.random.default_rng(0).normal(size=(8, 3)).astype(np.float32)
    >>> batch = Batch(x, x[:, :, None], np.full(8, 1 / 8, np.float32))
    >>> def loss(parameters):
    ...     return castle_loss(mask_inputs(parameters, layout.edge_mask()), batch, layout)[0]
    >>> jax.grad(loss)(initialize(layout, (3, 3), seed=0)).input_weights.shape
    (3, 3, 3)
    """
    losses = cell_losses(forward(parameters, batch.inputs), batch, layout, null_loss=null_loss)
    terms = {
        "supervised": supervised_loss(losses[:, -len(layout.targets) :], batch),
        "reconstruction": reconstruction_loss(losses, batch, jnp.ones(layout.n_nodes, losses.dtype)),
        "acyclicity": acyclicity_loss(parameters.input_weights, layout),
        "sparsity": l1_norm(parameters.input_weights),
    }
    dag = dag_loss(terms["reconstruction"], terms["acyclicity"], terms["sparsity"], reg_beta)
    return terms["supervised"] + reg_lambda * dag, terms
