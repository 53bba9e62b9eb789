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
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from castlereg.acyclicity import ACYCLICITY
from castlereg.layout import Layout
from castlereg.network import Parameters, forward, squared_adjacency

Sparsity = Literal["l1", "group"]


class Batch(NamedTuple):
    """Some rows of a table."""

    inputs: Array  # (rows, channels), standardized
    truth: Array  # (rows, nodes, outputs), what the sub-networks should say
    weight: Array  # (rows,), 1 / rows for a plain mean; 0 for rows that only fill up the batch


class Strengths(NamedTuple):
    """The two factors of eq. 5 and 6."""

    reg_lambda: Array
    reg_beta: Array


# --- the terms -----------------------------------------------------------------------------------


def supervised_loss(losses: Array, batch: Batch) -> Array:
    """Mean over rows of the loss of the targets, the first term of eq. 1 and 5.

    Parameters
    ----------
    losses : array of shape (rows, targets)
        From :func:`node_losses`.
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
        From :func:`node_losses`.
    batch : Batch
    node_weight : array of shape (nodes,)
        1 for each node, or what makes up for nodes that were not sampled.

    Returns
    -------
    array of shape ()
    """
    return jnp.sum(batch.weight[:, None] * losses * node_weight)


def acyclicity_loss(input_weights: Array, layout: Layout, acyclicity: str = "expm") -> Array:
    """Square of h(A), ``R`` of eq. 7 and 2.

    Parameters
    ----------
    input_weights : array of shape (channels, nodes, width)
    layout : Layout
    acyclicity : str
        Which h: a key of :data:`castlereg.acyclicity.ACYCLICITY`.

    Returns
    -------
    array of shape ()
    """
    return ACYCLICITY[acyclicity](squared_adjacency(input_weights, layout)) ** 2


def l1_norm(input_weights: Array) -> Array:
    """Sum of the absolute input weights, ``V`` of eq. 6 and 2.

    Parameters
    ----------
    input_weights : array of shape (channels, nodes, width)

    Returns
    -------
    array of shape ()
    """
    return jnp.sum(jnp.abs(input_weights))


def group_norm(input_weights: Array, layout: Layout) -> Array:
    """Sum over edges of the l2 norm of their weights, the group lasso of the released code.

    Parameters
    ----------
    input_weights : array of shape (channels, nodes, width)
    layout : Layout

    Returns
    -------
    array of shape ()
    """
    squares = squared_adjacency(input_weights, layout)
    present = squares > 0  # the root of a masked edge would have gradient 0/0
    return jnp.sum(jnp.where(present, jnp.sqrt(jnp.where(present, squares, 1.0)), 0.0))


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
    nodes = jnp.arange(layout.n_nodes) if nodes is None else nodes
    losses = (outputs[..., 0] - truth[..., 0]) ** 2
    is_binary, is_categorical = layout.is_kind("binary"), layout.is_kind("categorical")
    if is_binary.any():
        logistic = jax.nn.softplus(outputs[..., 0]) - truth[..., 0] * outputs[..., 0]
        losses = jnp.where(jnp.asarray(is_binary)[nodes], logistic, losses)
    if is_categorical.any():
        used = jnp.asarray(layout.output_used)[nodes]
        logits = jnp.where(used, outputs, -1e30)
        softmax = jax.nn.logsumexp(logits, axis=-1) - jnp.sum(jnp.where(used, truth * outputs, 0.0), axis=-1)
        losses = jnp.where(jnp.asarray(is_categorical)[nodes], softmax, losses)
    return losses


# --- the whole -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class CastleObjective:
    """The objective of CASTLE, eq. 5 and 6 (without hidden layers: eq. 1 and 2).

    Parameters
    ----------
    layout : Layout
    acyclicity : str
        A key of :data:`castlereg.acyclicity.ACYCLICITY`.
    sparsity : {"l1", "group"}
        l1 norm (the paper) or group norm of the input layers.

    Examples
    --------
    One gradient of the whole objective, by hand:

    >>> import jax, numpy as np
    >>> from castlereg.layout import Layout, Node
    >>> from castlereg.network import initialize, mask_inputs
    >>> layout = Layout((Node(), Node(), Node(target=True)))
    >>> x = np.random.default_rng(0).normal(size=(8, 3)).astype(np.float32)
    >>> batch = Batch(x, x[:, :, None], np.full(8, 1 / 8, np.float32))
    >>> objective, strengths, node_weight = CastleObjective(layout), Strengths(1.0, 0.01), np.ones(3, np.float32)
    >>> def loss(parameters):
    ...     masked = mask_inputs(parameters, layout.edge_mask())
    ...     return objective(masked, batch, strengths, node_weight)[0]
    >>> gradient = jax.grad(loss)(initialize(layout, (3, 3), seed=0))
    >>> gradient.input_weights.shape
    (3, 3, 3)
    """

    layout: Layout
    acyclicity: str = "expm"
    sparsity: Sparsity = "l1"

    @property
    def nodes(self) -> tuple[int, ...]:
        """Nodes whose sub-networks are trained."""
        return tuple(range(self.layout.n_nodes))

    @property
    def terms(self) -> tuple[str, ...]:
        """Names of the terms."""
        return ("supervised", "reconstruction", "acyclicity", "sparsity")

    def __call__(
        self,
        parameters: Parameters,
        batch: Batch,
        strengths: Strengths,
        node_weight: Array,
        sampled: Array | None = None,
    ) -> tuple[Array, dict[str, Array]]:
        """Return the objective and its terms.

        Parameters
        ----------
        parameters : Parameters
            Of all sub-networks, with zeros where no edge may be. The trainer starts from such weights and masks their
            gradient; in a loop of your own pass them through :func:`castlereg.network.mask_inputs`.
        batch : Batch
        strengths : Strengths
        node_weight : array of shape (nodes,)
            Factor of each node's loss in the reconstruction term: 1, or 0 for constant columns.
        sampled : array of int, optional
            Nodes to train in this step, the targets last ("Managing computational
            complexity"); the others are not computed. All by default.

        Returns
        -------
        objective : array of shape ()
        terms : dict of str to array of shape ()
        """
        truth, input_weights = batch.truth, parameters.input_weights
        if sampled is not None:
            truth, node_weight = truth[:, sampled], self._make_up(node_weight, sampled)
        losses = node_losses(forward(parameters, batch.inputs, sampled), truth, self.layout, sampled)

        terms = {
            "supervised": supervised_loss(losses[:, -len(self.layout.targets) :], batch),
            "reconstruction": reconstruction_loss(losses, batch, node_weight),
            "acyclicity": self._acyclicity_loss(input_weights),
            "sparsity": l1_norm(input_weights) if self.sparsity == "l1" else group_norm(input_weights, self.layout),
        }
        return self._total(terms, batch, strengths), terms

    def _total(self, terms: dict[str, Array], batch: Batch, strengths: Strengths) -> Array:
        supervised, reconstruction, acyclicity, sparsity = (terms[name] for name in self.terms)
        return supervised + strengths.reg_lambda * (reconstruction + acyclicity + strengths.reg_beta * sparsity)

    def _acyclicity_loss(self, input_weights: Array) -> Array:
        return acyclicity_loss(input_weights, self.layout, self.acyclicity)

    def _make_up(self, node_weight: Array, sampled: Array) -> Array:
        """Weigh sampled features by d/s, so that the expected reconstruction term is the full one."""
        features = len(sampled) - len(self.layout.targets)
        is_target = jnp.arange(len(sampled)) >= features
        return node_weight[sampled] * jnp.where(is_target, 1.0, self.layout.n_features / features)


@dataclass(frozen=True)
class ReleasedObjective(CastleObjective):
    """The objective of the authors' released code, which departs from the paper.

    The reconstruction is summed over the rows of a batch where the supervised loss is a mean, lambda multiplies
    the supervised loss, the acyclicity term is ``h + h**2 / 2`` with a series that stops at the ninth power, and the
    sparsity term is a group norm.

    Parameters
    ----------
    layout : Layout
    """

    acyclicity: str = "series"
    sparsity: Sparsity = "group"

    def _total(self, terms: dict[str, Array], batch: Batch, strengths: Strengths) -> Array:
        supervised, reconstruction, acyclicity, sparsity = (terms[name] for name in self.terms)
        rows = jnp.sum(batch.weight > 0)
        return strengths.reg_lambda * supervised + rows * reconstruction + acyclicity + strengths.reg_beta * sparsity

    def _acyclicity_loss(self, input_weights: Array) -> Array:
        h = ACYCLICITY[self.acyclicity](squared_adjacency(input_weights, self.layout))
        return h + 0.5 * h**2


@dataclass(frozen=True)
class SupervisedObjective:
    """The loss of the targets alone: a plain network, which has the targets' sub-networks and no graph.

    Parameters
    ----------
    layout : Layout
    """

    layout: Layout

    @property
    def nodes(self) -> tuple[int, ...]:
        """Nodes whose sub-networks are trained."""
        return self.layout.targets

    @property
    def terms(self) -> tuple[str, ...]:
        """Names of the terms."""
        return ("supervised",)

    def __call__(
        self,
        parameters: Parameters,
        batch: Batch,
        strengths: Strengths,
        node_weight: Array,
        sampled: Array | None = None,
    ) -> tuple[Array, dict[str, Array]]:
        """Return the supervised loss; see :meth:`CastleObjective.__call__`."""
        targets = jnp.asarray(self.layout.targets)
        losses = node_losses(forward(parameters, batch.inputs), batch.truth[:, targets], self.layout, targets)
        supervised = supervised_loss(losses, batch)
        return supervised, {"supervised": supervised}


class Objective(Protocol):
    """What the trainer minimizes: hashable, because a compiled program belongs to it."""

    def __hash__(self) -> int: ...

    @property
    def layout(self) -> Layout:
        """The nodes of the table."""

    @property
    def nodes(self) -> tuple[int, ...]:
        """Nodes whose sub-networks are trained."""

    @property
    def terms(self) -> tuple[str, ...]:
        """Names of the terms."""

    def __call__(
        self,
        parameters: Parameters,
        batch: Batch,
        strengths: Strengths,
        node_weight: Array,
        sampled: Array | None = None,
    ) -> tuple[Array, dict[str, Array]]:
        """Return the number to minimize and its terms."""


def target_outputs(parameters: Parameters, x: Array, objective: Objective) -> Array:
    """Predict the targets with a network that an objective trains, shape (rows, targets, outputs)."""
    held = np.array([objective.nodes.index(k) for k in objective.layout.targets])
    return forward(parameters, x, held)
