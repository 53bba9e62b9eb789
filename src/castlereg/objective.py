"""The paper's objective, term by term: read this file first.

CASTLE trains one sub-network ``f_k`` per node (every column and the target), each predicting its
node from all the others, and adds to the target's loss what it takes to make the
network's input layers a sparse directed acyclic graph (eq. 5 and 6)::

    supervised + lambda * (reconstruction + acyclicity + beta * sparsity)

==============  ===============================================================  ============
term            what it measures                                                 in the paper
==============  ===============================================================  ============
supervised      loss of the target                                               eq. 1, 5
reconstruction  losses of all nodes, the target's included                       eq. 2, 6: L
acyclicity      square of h(A), zero when the graph has no cycle                 eq. 2, 7: R
sparsity        l1 norm of the input layers                                      eq. 2, 6: V
==============  ===============================================================  ============

Everything here is a pure function of arrays that can be used in any JAX training loop. Without
hidden layers the same functions are the linear form, eq. 1 and 2.

What follows the supervised term is one *regularizer* among others: :class:`castlereg.regularizers.Castle` puts these
terms together, and :func:`regularized_loss` adds any regularizers to the supervised loss.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from castlereg.acyclicity import ACYCLICITY, AcyclicityFunction, resolve_acyclicity
from castlereg.layout import Layout, Node
from castlereg.network import Parameters, forward, hidden_units, output_layer, select, squared_adjacency

if TYPE_CHECKING:
    from castlereg.regularizers.protocol import Regularizer

Sparsity = Literal["l1", "group"]


class Batch(NamedTuple):
    """Some rows of a table."""

    inputs: Array  # (rows, channels), standardized
    truth: Array  # (rows, nodes, outputs), what the sub-networks should say
    weight: Array  # (rows,), 1 / rows for a plain mean; 0 for rows that only fill up the batch
    observed: Array | None = None  # (rows, nodes), 0 where the cell is missing and 1 elsewhere; None for no gaps


# --- the terms -----------------------------------------------------------------------------------


def supervised_loss(losses: Array, batch: Batch) -> Array:
    """Mean over rows of the loss of the targets, the first term of eq. 1 and 5.

    Parameters
    ----------
    losses : array of shape (rows, targets)
        From :func:`cell_losses`.
    batch : Batch

    Returns
    -------
    array of shape ()
    """
    return jnp.sum(batch.weight[:, None] * losses)


def reconstruction_loss(losses: Array, batch: Batch, node_weight: Array) -> Array:
    """Mean over rows of the summed losses of all nodes, ``L_N`` of eq. 6 and ``L_W`` of eq. 2.

    Parameters
    ----------
    losses : array of shape (rows, nodes)
        From :func:`cell_losses`.
    batch : Batch
    node_weight : array of shape (nodes,)
        1 for each node, or what makes up for nodes that were not sampled.

    Returns
    -------
    array of shape ()
    """
    return jnp.sum(batch.weight[:, None] * losses * node_weight)


def log_likelihood_loss(losses: Array, batch: Batch, layout: Layout, node_weight: Array, null_loss: Array) -> Array:
    """Negative log-likelihood of the rows, summed over nodes: what tells directions apart.

    Half the logarithm of the mean squared error of numeric nodes, which is the Gaussian likelihood with a noise of its
    own for each; the log loss of all others. The sum of squared errors instead takes all nodes for equally noisy,
    which standardized columns are not, and then prefers arrows into the less noisy ones.

    Parameters
    ----------
    losses : array of shape (rows, nodes)
        From :func:`cell_losses`, of all nodes.
    batch : Batch
    layout : Layout
    node_weight : array of shape (nodes,)
        0 for constant columns.
    null_loss : array of shape (nodes,)
        Units of the losses.

    Returns
    -------
    array of shape ()
    """
    return jnp.sum(node_weight * node_scores(mean_losses(losses, batch), layout, null_loss))


def mean_losses(losses: Array, batch: Batch) -> Array:
    """Mean of every node's losses over the rows in which its cell is known, shape (rows, nodes) to (nodes,)."""
    seen = batch.weight[:, None] * (1.0 if batch.observed is None else batch.observed)
    return jnp.sum(seen * losses, axis=0) / jnp.maximum(jnp.sum(seen, axis=0), 1e-12)


def node_scores(mean: Array, layout: Layout, null_loss: Array) -> Array:
    """Negative log-likelihood of every node, less what no network can change.

    Parameters
    ----------
    mean : array of shape (nodes,)
        From :func:`mean_losses`.
    layout : Layout
    null_loss : array of shape (nodes,)
        Units of the losses.

    Returns
    -------
    array of shape (nodes,)
        In natural units of information for each row.
    """
    numeric = layout.is_kind("numeric")
    # A batch may be fitted exactly, or have no cell of a node.
    return jnp.where(numeric, 0.5 * jnp.log(jnp.maximum(mean, 1e-6)), mean * null_loss)


def acyclicity_loss(input_weights: Array, layout: Layout, acyclicity: str | AcyclicityFunction = "expm") -> Array:
    """Square of h(A), ``R`` of eq. 7 and 2.

    Parameters
    ----------
    input_weights : array of shape (channels, nodes, width)
    layout : Layout
    acyclicity : str or callable
        Which h, as in :func:`cycle_measure`.

    Returns
    -------
    array of shape ()
    """
    return cycle_measure(squared_adjacency(input_weights, layout), acyclicity) ** 2


def cycle_measure(adjacency: Array, acyclicity: str | AcyclicityFunction = "expm") -> Array:
    """Return h(A) itself, of which eq. 7 has the square.

    Parameters
    ----------
    adjacency : array of shape (nodes, nodes)
        From :func:`castlereg.network.squared_adjacency`.
    acyclicity : str or callable
        Which h: a key of :data:`castlereg.acyclicity.ACYCLICITY`, ``"auto"`` (see
        :func:`castlereg.acyclicity.resolve_acyclicity`) or a JAX function of the adjacency.

    Returns
    -------
    array of shape ()
    """
    chosen = resolve_acyclicity(acyclicity, len(adjacency))
    return (ACYCLICITY[chosen] if isinstance(chosen, str) else chosen)(adjacency)


def l1_norm(input_weights: Array, penalized: Array | None = None) -> Array:
    """Sum of the absolute input weights, ``V`` of eq. 6 and 2.

    Parameters
    ----------
    input_weights : array of shape (channels, nodes, width)
    penalized : array of shape (channels, nodes), optional
        0 for edges that are not to be made sparse, 1 for all others; all count by default.

    Returns
    -------
    array of shape ()
    """
    sizes = jnp.abs(input_weights)
    return jnp.sum(sizes if penalized is None else sizes * penalized[:, :, None])


def group_norm(input_weights: Array, layout: Layout, penalized: Array | None = None) -> Array:
    """Sum over edges of the l2 norm of their weights, the group lasso of the released code.

    Parameters
    ----------
    input_weights : array of shape (channels, nodes, width)
    layout : Layout
    penalized : array of shape (channels, nodes), optional
        As in :func:`l1_norm`.

    Returns
    -------
    array of shape ()
    """
    if penalized is not None:
        input_weights = input_weights * penalized[:, :, None]
    squares = squared_adjacency(input_weights, layout)
    present = squares > 0  # the root of a masked edge would have gradient 0/0
    return jnp.sum(jnp.where(present, jnp.sqrt(jnp.where(present, squares, 1.0)), 0.0))


def capacity_norm(parameters: Parameters, node_share: Array | float = 1.0) -> Array:
    """Sum of the squared weights of the shared hidden and the output layers, ``V_Theta2`` of Theorem 1.

    The theorem's text calls it an l2 norm; the KL step of its proof (eq. 12) has the squared Frobenius norms.

    Parameters
    ----------
    parameters : Parameters
    node_share : array of shape (nodes,)
        Factor of each node's own layer, see :func:`node_shares`.

    Returns
    -------
    array of shape ()
    """
    nothing = jnp.zeros((), parameters.input_weights.dtype)
    shared = sum((jnp.sum(layer.weights**2) for layer in parameters.hidden), nothing)
    if parameters.output_weights is None:
        return shared
    return shared + jnp.sum(node_share * jnp.sum(parameters.output_weights**2, axis=(1, 2)))


def weight_norm(parameters: Parameters, of_weight: Callable[[Array], Array], node_share: Array) -> Array:
    """Sum of something over the weights of every dense layer, without biases.

    Parameters
    ----------
    parameters : Parameters
    of_weight : callable
        Such as ``jnp.abs``.
    node_share : array of shape (nodes,)
        Factor of each node's own layers, see :func:`node_shares`.

    Returns
    -------
    array of shape ()
    """
    own = jnp.sum(of_weight(parameters.input_weights), axis=(0, 2))
    if parameters.output_weights is not None:
        own = own + jnp.sum(of_weight(parameters.output_weights), axis=(1, 2))
    shared = [jnp.sum(of_weight(layer.weights)) for layer in parameters.hidden]
    return sum(shared, jnp.sum(node_share * own))


def dag_loss(reconstruction: Array, acyclicity: Array, sparsity: Array, reg_beta: Array | float) -> Array:
    """Put the three terms together, ``R_DAG`` of eq. 6 and 2.

    Parameters
    ----------
    reconstruction, acyclicity, sparsity : array of shape ()
    reg_beta : float

    Returns
    -------
    array of shape ()
    """
    return reconstruction + acyclicity + reg_beta * sparsity


def node_losses(outputs: Array, truth: Array, layout: Layout, nodes: Array | None = None) -> Array:
    """Loss of every row and node by the node's kind: squared error, logistic, softmax.

    Parameters
    ----------
    outputs : array of shape (rows, nodes, outputs)
        From :func:`castlereg.network.forward`.
    truth : array of shape (rows, nodes, outputs)
        Standardized values of numeric nodes, 0 or 1 for binary ones and for each level of categorical ones.
    layout : Layout
    nodes : array of int, optional
        Which nodes the second axis holds; all by default.

    Returns
    -------
    array of shape (rows, nodes)
    """
    if nodes is None:  # which node is which is known beforehand: compute for each what its kind asks
        parts = [_losses_of(node, outputs[:, at], truth[:, at]) for node, at in layout.alike]
        return jnp.concatenate(parts, axis=1) if len(parts) > 1 else parts[0]
    losses = squared_error(outputs[..., 0], truth[..., 0])
    is_binary, is_categorical = layout.is_kind("binary"), layout.is_kind("categorical")
    if is_binary.any():
        losses = jnp.where(jnp.asarray(is_binary)[nodes], logistic_loss(outputs[..., 0], truth[..., 0]), losses)
    if is_categorical.any():
        used = jnp.asarray(layout.output_used)[nodes]
        softmax = softmax_loss(jnp.where(used, outputs, -1e30), jnp.where(used, truth, 0.0))
        losses = jnp.where(jnp.asarray(is_categorical)[nodes], softmax, losses)
    return losses


def squared_error(outputs: Array, truth: Array) -> Array:
    """Loss of numeric nodes, of any shape."""
    return (outputs - truth) ** 2


def logistic_loss(logits: Array, truth: Array) -> Array:
    """Loss of binary nodes, of any shape; the truth is 0, 1 or a share between."""
    return jax.nn.softplus(logits) - truth * logits


def softmax_loss(logits: Array, truth: Array) -> Array:
    """Loss of categorical nodes, shape (..., levels) to (...); the truth is one-hot or shares."""
    return jax.nn.logsumexp(logits, axis=-1) - jnp.sum(truth * logits, axis=-1)


def _losses_of(node: Node, outputs: Array, truth: Array) -> Array:
    if node.kind == "categorical":
        return softmax_loss(outputs[..., : node.levels], truth[..., : node.levels])
    loss = squared_error if node.kind == "numeric" else logistic_loss
    return loss(outputs[..., 0], truth[..., 0])


def cell_losses(
    outputs: Array, batch: Batch, layout: Layout, nodes: Array | None = None, null_loss: Array | None = None
) -> Array:
    """Loss of every cell in units that all kinds share, and 0 for missing cells.

    A squared error of a standardized column is 1 for whoever predicts its mean. Losses of binary and categorical nodes
    are therefore divided by the loss of whoever predicts their base rates, the entropy: 1 means "knows
    nothing" for every kind, and a node weighs the same whichever kind it is.

    Parameters
    ----------
    outputs : array of shape (rows, nodes, outputs)
    batch : Batch
        With what is to be predicted of all nodes.
    layout : Layout
    nodes : array of int, optional
        Which nodes ``outputs`` holds; all by default.
    null_loss : array of shape (all nodes,), optional
        Entropy of the binary and categorical nodes, 1 for numeric ones; see
        :func:`castlereg.training.standardization.null_losses`. Ones by default.

    Returns
    -------
    array of shape (rows, nodes)
    """
    truth = batch.truth if nodes is None else batch.truth[:, nodes]
    losses = node_losses(outputs, truth, layout, nodes)
    if null_loss is not None:
        losses = losses / (null_loss if nodes is None else null_loss[nodes])
    if batch.observed is None:
        return losses
    return losses * (batch.observed if nodes is None else batch.observed[:, nodes])


# --- the whole -----------------------------------------------------------------------------------


class Cycles(NamedTuple):
    """The measure of cycles of a whole graph, of which a step trains some columns."""

    value: Array  # (), h(A)
    slope: Array  # (nodes, nodes run), of h(A) in the edges into the nodes that the step runs


class Pass(NamedTuple):
    """One pass of a batch through the network: what a regularizer may look at when it adds to the loss."""

    parameters: Parameters  # of every sub-network that was run
    batch: Batch  # as the network saw it
    units: Array | None  # (rows, nodes run, width), last hidden layer; None in the linear form
    losses: Array  # (rows, nodes run), the targets last
    supervised: Array  # ()
    nodes: Array | None  # (nodes run,), which nodes were run; None for all that are trained
    node_share: Array  # (nodes run,), what makes up for nodes that were not sampled, see node_shares
    cycles: Cycles | None  # of the whole graph where some nodes were sampled and a penalty measures cycles
    node_weight: Array  # (nodes,), 1, or 0 for constant columns
    null_loss: Array | None  # (nodes,), see cell_losses
    penalized: Array | None  # (channels, trained nodes), see l1_norm
    progress: Array  # (), from 0 to 1 while the graph is made acyclic, see Regularizer.ends_acyclic
    layout: Layout


def trained_nodes(regularizers: Sequence[Regularizer], layout: Layout) -> tuple[int, ...]:
    """Return the nodes whose sub-networks are trained: the targets, or all when a regularizer asks for them."""
    if any(regularizer.needs_all_nodes for regularizer in regularizers):
        return tuple(range(layout.n_nodes))
    return layout.targets


def node_shares(n_run: int, layout: Layout) -> NDArray[np.float32]:
    """Return what a sampled node's terms are multiplied by, so that sums over nodes are right in the mean.

    Each of s sampled features out of d stands for d / s of them; the targets are run in every step.

    Parameters
    ----------
    n_run : int
        Nodes that a step runs, the targets among them.
    layout : Layout

    Returns
    -------
    array of shape (n_run,)

    Examples
    --------
    >>> from castlereg.layout import Layout, Node
    >>> node_shares(3, Layout((Node(), Node(), Node(), Node(), Node(target=True))))
    array([2., 2., 1.], dtype=float32)
    """
    n_targets = len(layout.targets)
    n_sampled = n_run - n_targets
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
    progress: Array | float = 1.0,
    sampled: Array | None = None,
    cycles: Cycles | None = None,
    heads: Sequence[Any] | None = None,
    states: Sequence[Any] | None = None,
    drawn: Sequence[Any] | None = None,
) -> tuple[Array, tuple[dict[str, Array], tuple[Any, ...]]]:
    """Loss of the targets and what the regularizers add to it: the number that training minimizes.

    Parameters
    ----------
    parameters : Parameters
        Of the sub-networks of :func:`trained_nodes`, with zeros where no edge may be. The trainer starts from such
        weights and masks their gradient; in a loop of your own pass them through
        :func:`castlereg.network.mask_inputs`.
    batch : Batch
    regularizers : sequence of Regularizer
        None: a plain network. ``[Castle()]``: the paper's objective, eq. 5.
    layout : Layout
    node_weight : array of shape (nodes,), optional
        Factor of each node's loss in reconstructions: 1 by default, 0 for constant columns.
    null_loss : array of shape (nodes,), optional
        Units of the losses, see :func:`cell_losses`; 1 by default.
    penalized : array of shape (channels, nodes), optional
        Which weights the sparsity of :class:`castlereg.regularizers.Castle` counts, see :func:`l1_norm`.
    progress : float
        How far training has come with making the graph acyclic, from 0 to 1.
    sampled : array of int, optional
        Nodes to train in this step, the targets last ("Managing computational
        complexity"); the others are not computed and get no gradient. All by default.
    cycles : Cycles, optional
        Where nodes are sampled, the measure of cycles of the whole graph, if known. ``parameters`` may then be those of
        the sampled sub-networks alone.
    heads, states, drawn : sequence, optional
        For each regularizer its own trained arrays, its state, and what it drew for this step.

    Returns
    -------
    total : array of shape ()
    terms : dict of str to array of shape ()
    states : tuple
        For each regularizer its state after the step.

    Examples
    --------
    One gradient of the whole objective, by hand:

    >>> import jax, numpy as np
    >>> from castlereg.layout import Layout, Node
    >>> from castlereg.network import initialize, mask_inputs
    >>> from castlereg.regularizers import Castle
    >>> layout = Layout((Node(), Node(), Node(target=True)))
    >>> x = np.random.default_rng(0).normal(size=(8, 3)).astype(np.float32)
    >>> batch = Batch(x, x[:, :, None], np.full(8, 1 / 8, np.float32))
    >>> def loss(parameters):
    ...     masked = mask_inputs(parameters, layout.edge_mask())
    ...     return regularized_loss(masked, batch, [Castle(reg_beta=0.01)], layout)[0]
    >>> gradient = jax.grad(loss)(initialize(layout, (3, 3), seed=0))
    >>> gradient.input_weights.shape
    (3, 3, 3)
    """
    nothing = ((),) * len(regularizers)
    heads, drawn = heads or nothing, drawn or nothing
    node_weight = jnp.ones(layout.n_nodes, batch.inputs.dtype) if node_weight is None else node_weight
    for regularizer, numbers in zip(regularizers, drawn, strict=True):
        batch = regularizer.on_batch(batch, numbers)
    if sampled is not None and parameters.input_weights.shape[1] == layout.n_nodes:  # of all sub-networks
        cycles = _cycles(parameters, regularizers, layout, sampled) if cycles is None else cycles
        parameters = select(parameters, sampled)

    units, outputs, states = _run(parameters, batch, regularizers, sampled, heads, states or nothing, drawn)
    held = trained_nodes(regularizers, layout)
    everything = sampled is None and len(held) == layout.n_nodes
    run = None if everything else (jnp.asarray(held) if sampled is None else sampled)
    losses = cell_losses(outputs, batch, layout, run, null_loss)
    supervised = supervised_loss(losses[:, -len(layout.targets) :], batch)

    total, terms = supervised, {"supervised": supervised}
    seen = Pass(
        parameters,
        batch,
        units,
        losses,
        supervised,
        sampled,
        jnp.asarray(node_shares(outputs.shape[1], layout), batch.inputs.dtype),
        cycles,
        node_weight,
        null_loss,
        penalized,
        jnp.asarray(progress),
        layout,
    )
    for regularizer, own_heads in zip(regularizers, heads, strict=True):
        penalty, own_terms = regularizer.penalty(seen, own_heads)
        total, terms = total + penalty, terms | own_terms
    return total, (terms, states)


def _cycles(
    parameters: Parameters, regularizers: Sequence[Regularizer], layout: Layout, sampled: Array
) -> Cycles | None:
    """Measure the cycles of the whole graph by what the regularizers have, if any."""
    measure = next((one.measures_cycles_by for one in regularizers if one.measures_cycles_by is not None), None)
    if measure is None:
        return None
    adjacency = jax.lax.stop_gradient(squared_adjacency(parameters.input_weights, layout))
    value, slope = jax.value_and_grad(cycle_measure)(adjacency, measure)
    return Cycles(value, slope[:, sampled])


def _run(
    parameters: Parameters,
    batch: Batch,
    regularizers: Sequence[Regularizer],
    sampled: Array | None,
    heads: Sequence[Any],
    states: Sequence[Any],
    drawn: Sequence[Any],
) -> tuple[Array | None, Array, tuple[Any, ...]]:
    """Run the network with the regularizers between its layers: units of the last one, outputs, new states."""
    for regularizer, numbers in zip(regularizers, drawn, strict=True):
        parameters = regularizer.on_parameters(parameters, numbers)
    if parameters.output_weights is None:
        return None, forward(parameters, batch.inputs), tuple(states)
    now = list(states)

    def on_dense(layer: int, z: Array) -> Array:
        for i, regularizer in enumerate(regularizers):
            z, now[i] = regularizer.on_dense(z, layer, batch.weight, sampled, heads[i], now[i])
        return z

    def on_hidden(layer: int, z: Array) -> Array:
        for regularizer, numbers in zip(regularizers, drawn, strict=True):
            z = regularizer.on_hidden(z, layer, numbers)
        return z

    units = hidden_units(parameters, batch.inputs, on_dense, on_hidden)
    return units, output_layer(parameters, units), tuple(now)


def target_outputs(parameters: Parameters, x: Array, layout: Layout) -> Array:
    """Predict the targets with all sub-networks or the targets' alone, shape (rows, targets, outputs)."""
    first = parameters.input_weights.shape[1] - len(layout.targets)
    return forward(parameters, x, first + np.arange(len(layout.targets)))
