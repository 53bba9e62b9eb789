"""CASTLE for PyTorch: the terms of the objective, the paper's network, and CASTLE around your own network.

Needs ``castlereg[torch]``. Guide: ``docs/torch.md``. The terms are the PyTorch counterpart of :mod:`castlereg.castle`:

==============  ==========================================================  ============  ============================
term            what it measures                                            in the paper  function
==============  ==========================================================  ============  ============================
supervised      loss of the target                                          eq. 1, 5      :func:`supervised_loss`
reconstruction  losses of all nodes, the target's included                  eq. 2, 6: L   :func:`reconstruction_loss`
acyclicity      square of h(A), zero when the graph has no cycle            eq. 2, 7: R   :func:`acyclicity_loss`
sparsity        l1 norm of the input layers                                 eq. 2, 6: V   :func:`l1_norm`
==============  ==========================================================  ============  ============================

:func:`castle_loss` is their sum, ``supervised + lambda * (reconstruction + acyclicity + beta * sparsity)``. Functions,
arguments, values and gradients are those of the JAX functions.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

try:
    import torch
    from torch import Tensor, nn
except ImportError:
    raise ImportError("castlereg.torch needs the package torch: pip install 'castlereg[torch]'") from None

from castlereg.acyclicity.functions import LARGEST_WEIGHT
from castlereg.layout import Layout, Node
from castlereg.losses import as_batch
from castlereg.network import ActivationName, InputInit, edge_weights, initialize
from castlereg.options import check_choice, check_integer, check_sizes
from castlereg.table.encoding import Encoded, Standardization, measure

# --- rows ----------------------------------------------------------------------------------------------


class Batch(NamedTuple):
    """Rows of a table, as inputs of a network.

    Examples
    --------
    Standardized rows of numbers, the target last:

    >>> rows = torch.randn(8, 3, generator=torch.Generator().manual_seed(0))
    >>> batch = Batch.of_numbers(rows)
    >>> batch.truth.shape, float(batch.weight.sum())
    (torch.Size([8, 3, 1]), 1.0)
    >>> float(batch.take([0, 1]).weight[0])
    0.5
    """

    inputs: Tensor  # (rows, channels), standardized
    truth: Tensor  # (rows, nodes, outputs), what the sub-networks should predict
    weight: Tensor  # (rows,), 1 / rows for a plain mean
    observed: Tensor | None = None  # (rows, nodes), 0 for missing values and 1 elsewhere; None if nothing is missing

    @classmethod
    def of_numbers(cls, x: Tensor) -> Batch:
        """Create a batch from standardized columns without missing values, shape (rows, nodes), targets last."""
        return cls(x, x[:, :, None], torch.full_like(x[:, 0], 1 / len(x)))

    @classmethod
    def of_table(
        cls, table: ArrayLike, layout: Layout, standardization: Standardization, *, dtype: torch.dtype | None = None
    ) -> Batch:
        """Create a batch from a table, which is standardized with :func:`standardization` of the training rows.

        The table has shape (rows, channels), in the order of the layout: numbers, 0 or 1 for binary columns and for
        each level of categorical ones, NaN for missing values (with 1 in the indicator that follows, otherwise 0).
        """
        encoded = _checked(table, layout)
        weight: Any = np.full(len(encoded), 1 / max(len(encoded), 1))
        arrays = as_batch(encoded, weight, standardization, layout)
        return cls(*(None if array is None else _as_tensor(array, dtype) for array in arrays))

    def take(self, rows: Tensor | Sequence[int]) -> Batch:
        """Return some rows, with weights scaled so that a weighted sum over the rows is again a mean."""
        weight = self.weight[rows] * (len(self.weight) / len(rows))
        observed = None if self.observed is None else self.observed[rows]
        return Batch(self.inputs[rows], self.truth[rows], weight, observed)


def standardization(table: ArrayLike, layout: Layout) -> Standardization:
    """Compute the standardization of training rows, and the units of their losses.

    Parameters
    ----------
    table : array-like of shape (rows, channels)
        As in :meth:`Batch.of_table`.
    layout : Layout

    Returns
    -------
    Standardization
        NumPy arrays; its ``null_loss`` is that of :class:`castlereg.torch.CastleNetwork`.

    Examples
    --------
    >>> from castlereg.layout import Layout, Node
    >>> layout = Layout((Node("binary"), Node(target=True)))
    >>> table = [[0, 2.0], [1, 4.0], [1, 6.0]]
    >>> batch = Batch.of_table(table, layout, standardization(table, layout))
    >>> batch.inputs[:, 1], batch.truth[:, 0, 0]
    (tensor([-1.2247,  0.0000,  1.2247]), tensor([0., 1., 1.]))
    """
    encoded = _checked(table, layout)
    return measure(Encoded(encoded, layout), [np.arange(len(encoded))])[0].take(0)


def _checked(table: ArrayLike, layout: Layout) -> np.ndarray[Any, np.dtype[np.float64]]:
    encoded = np.asarray(table, np.float64)
    if encoded.ndim != 2 or encoded.shape[1] != layout.n_channels:
        raise ValueError(f"the table has shape {encoded.shape}, but the layout has {layout.n_channels} channels")
    return encoded


def _as_tensor(array: Any, dtype: torch.dtype | None = None, device: torch.device | None = None) -> Tensor:
    """Copy a NumPy or JAX array into a tensor, by default of PyTorch's default dtype."""
    return torch.tensor(np.asarray(array), dtype=dtype or torch.get_default_dtype(), device=device)


# --- losses of cells -----------------------------------------------------------------------------------


def cell_losses(
    outputs: Tensor,
    batch: Batch,
    layout: Layout,
    nodes: Sequence[int] | None = None,
    null_loss: Tensor | None = None,
) -> Tensor:
    """Return the loss of every cell, shape (rows, nodes), in a unit shared by all kinds, and 0 for missing values.

    The loss is the squared error for numeric nodes, and the logistic or softmax loss for binary and categorical ones.

    Parameters
    ----------
    outputs : tensor of shape (rows, nodes, outputs)
        From a network.
    batch : Batch
        With the truth of all nodes.
    layout : Layout
    nodes : sequence of int, optional
        Nodes of ``outputs``; all by default.
    null_loss : tensor of shape (all nodes,), optional
        Entropy of the binary and categorical nodes, 1 for numeric ones; ones by default. Losses are divided by it: 1 is
        then the loss of a constant prediction, for every kind.
    """
    at = list(range(layout.n_nodes)) if nodes is None else list(nodes)
    truth, losses = batch.truth[:, at], torch.empty_like(outputs[..., 0])
    for kind, levels in sorted({(layout.nodes[k].kind, layout.nodes[k].levels) for k in at}):
        alike = [i for i, k in enumerate(at) if (layout.nodes[k].kind, layout.nodes[k].levels) == (kind, levels)]
        z, y = outputs[:, alike, :levels], truth[:, alike, :levels]
        if kind == "categorical":
            losses[:, alike] = torch.logsumexp(z, dim=-1) - (y * z).sum(dim=-1)
        elif kind == "binary":
            losses[:, alike] = (torch.logaddexp(z, torch.zeros_like(z)) - y * z)[..., 0]
        else:
            losses[:, alike] = ((z - y) ** 2)[..., 0]
    if null_loss is not None:
        losses = losses / null_loss[at]
    return losses if batch.observed is None else losses * batch.observed[:, at]


# --- terms ---------------------------------------------------------------------------------------------


def supervised_loss(losses: Tensor, batch: Batch) -> Tensor:
    """Return the mean over rows of the loss of the targets, shape (rows, targets): the first term of eq. 1 and 5."""
    return (batch.weight[:, None] * losses).sum()


def reconstruction_loss(losses: Tensor, batch: Batch, node_weight: Tensor) -> Tensor:
    """Return the mean over rows of the summed losses of all nodes, ``L_N`` of eq. 6 and ``L_W`` of eq. 2.

    ``losses`` has shape (rows, nodes), ``node_weight`` is 1 for each node and 0 for a constant column.
    """
    return (batch.weight[:, None] * losses * node_weight).sum()


def squared_adjacency(input_weights: Tensor, layout: Layout) -> Tensor:
    """Return the squared weight of every edge, ``A = M * M`` (eq. 7), shape (inputs, nodes, width) to (nodes, nodes).

    ``A[j, k]`` is the sum of the squares of all weights from the inputs of node j into the sub-network of node k.
    """
    by_input = (input_weights * input_weights).sum(dim=-1).clamp(max=1e24)
    nodes = torch.as_tensor(layout.input_nodes, device=by_input.device)
    return by_input.new_zeros(layout.n_nodes, by_input.shape[1]).index_add(0, nodes, by_input)


_TAYLOR_NORM = 0.5  # at which ten terms are precise in single precision, and 18 in double precision
_LARGEST_LOG_VALUE = 28.0  # beyond it, h grows with its logarithm, as that of castlereg.acyclicity does


def trace_exponential(adjacency: Tensor) -> Tensor:
    """Return the trace of the matrix exponential minus the number of nodes, ``h(A) = tr exp(A) - p`` (eq. 2 and 7).

    Exactly zero without cycles, and finite for any finite weights: past e^28, the value continues as a logarithm.

    Parameters
    ----------
    adjacency : tensor of shape (p, p)
        Non-negative edge weights, the square of the paper's ``M``.

    Examples
    --------
    >>> loop = torch.tensor([[0.0, 1.0], [1.0, 0.0]])
    >>> round(float(trace_exponential(loop)), 5)  # 2 cosh(1) - 2
    1.08616
    """
    # Scaling and squaring of F = exp(A) - I: all terms are products along walks, so there is no cancellation.
    adjacency = adjacency.clamp(max=LARGEST_WEIGHT)
    norm = float(torch.minimum(adjacency.sum(dim=0).max(), adjacency.sum(dim=1).max()).detach())
    squarings = max(math.ceil(math.log2(norm / _TAYLOR_NORM)), 0) if 0 < norm < math.inf else 0
    x = adjacency * 2.0**-squarings
    product, log_scale = x, 0.0
    for degree in range(18 if x.dtype == torch.float64 else 10, 1, -1):
        product = x + x @ product / degree
    for _ in range(squarings):  # (I + F)^2 - I = 2 F + F F
        product, log_scale = 2 * math.exp(-log_scale) * product + product @ product, 2 * log_scale
        largest = float(product.detach().max())
        if largest > 1e6:
            product, log_scale = product / largest, log_scale + math.log(largest)
    trace = product.trace()
    log_trace = log_scale + math.log(float(trace.detach())) if float(trace.detach()) > 0 else -math.inf
    if log_trace > _LARGEST_LOG_VALUE:
        return math.exp(_LARGEST_LOG_VALUE) * (1 + torch.log1p(trace.log() + (log_scale - _LARGEST_LOG_VALUE)))
    return trace * math.exp(log_scale)


def acyclicity_loss(input_weights: Tensor, layout: Layout, h: Callable[[Tensor], Tensor] = trace_exponential) -> Tensor:
    """Return the square of h(A), ``R`` of eq. 7 and 2; h is a function of a tensor of shape (nodes, nodes)."""
    return h(squared_adjacency(input_weights, layout)) ** 2


def l1_norm(input_weights: Tensor, penalized: Tensor | None = None) -> Tensor:
    """Return the sum of the absolute input weights, ``V`` of eq. 6 and 2.

    ``penalized``, shape (inputs, nodes), is 0 for required edges, which the sparsity term ignores; ones by default.
    """
    sizes = input_weights.abs()
    return (sizes if penalized is None else sizes * penalized[:, :, None]).sum()


def dag_loss(reconstruction: Tensor, acyclicity: Tensor, sparsity: Tensor, reg_beta: Tensor | float) -> Tensor:
    """Combine the three terms into ``R_DAG`` of eq. 6 and 2; all have shape ()."""
    return reconstruction + acyclicity + reg_beta * sparsity


class _SubNetworks(Protocol):
    """Networks for the objective: :class:`CastleNetwork`, :class:`WrappedNetwork`, or your own."""

    layout: Layout
    null_loss: Tensor | None  # units of the losses, shape (nodes,); None for ones

    @property
    def masked_input_weights(self) -> Tensor:
        """Weights of the input layers, shape (inputs, nodes, width), zero for forbidden edges."""

    def __call__(self, x: Tensor) -> Tensor:
        """Predict all nodes, shape (rows, channels) to (rows, nodes, outputs)."""


def castle_loss(
    network: _SubNetworks,
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
        Units of the losses, see :func:`cell_losses`; those of the network by default.

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


# --- modules -------------------------------------------------------------------------------------------


class CastleNetwork(nn.Module):
    """One sub-network per node, each predicting its node from the channels of all others (eq. 3).

    Hidden layers are shared by all sub-networks.

    Parameters
    ----------
    layout : Layout or int
        Nodes of the table, or the number of features: they and the target are then numeric.
    hidden_layer_sizes : tuple of int
        Widths; empty for the linear form (eq. 1).
    seed : int or SeedSequence
        The same seed gives the same weights as :func:`castlereg.network.initialize`. PyTorch's own random state is
        neither used nor changed.
    activation : {"relu", "silu"}
        Activation of the hidden units.
    input_init : {"small", "glorot"}
        Starting weights of the input layers: normal with sd 0.01, which CASTLE needs, or at the usual scale.
    allowed : array of bool, shape (nodes, nodes), optional
        Which edges are allowed, ``allowed[j, k]`` for j -> k; all by default. A node is never an input of its own
        sub-network, and a target is never an input of another target's.
    null_loss : array of shape (nodes,), optional
        Units of the losses of binary and categorical nodes, see :func:`castlereg.torch.cell_losses`.

    Attributes
    ----------
    input_weights, input_bias : Parameter of shape (inputs, nodes, width) and (nodes, width)
        Eq. 3: ``W_1^k`` is ``input_weights[:, k, :]``.
    hidden : ModuleList of Linear
        Eq. 3: ``W_m``, shared by all sub-networks.
    output_weights, output_bias : Parameter of shape (nodes, width, outputs) and (nodes, outputs), or None
        Eq. 3: ``W_M^k``; None in the linear form.

    Examples
    --------
    >>> network = CastleNetwork(10, (11, 11), seed=0)
    >>> x = torch.zeros(5, 11)  # ten features and the target, standardized
    >>> network(x).shape
    torch.Size([5, 11, 1])
    >>> network.target_outputs(x).shape
    torch.Size([5, 1, 1])
    """

    layout: Layout
    edge_mask: Tensor
    null_loss: Tensor | None

    def __init__(
        self,
        layout: Layout | int,
        hidden_layer_sizes: Sequence[int],
        *,
        seed: int | np.random.SeedSequence = 0,
        activation: ActivationName = "relu",
        input_init: InputInit = "small",
        allowed: NDArray[np.bool_] | None = None,
        null_loss: NDArray[Any] | None = None,
    ) -> None:
        super().__init__()
        self.layout = _layout_of(layout)
        if isinstance(hidden_layer_sizes, str):
            raise ValueError(f"hidden_layer_sizes={hidden_layer_sizes!r} must be a sequence of widths such as (32, 32)")
        check_sizes("hidden_layer_sizes", hidden_layer_sizes)
        check_choice("activation", activation, ["relu", "silu"])
        check_choice("input_init", input_init, ["small", "glorot"])
        self.hidden_layer_sizes, self.activation = tuple(map(int, hidden_layer_sizes)), activation
        start = initialize(self.layout, self.hidden_layer_sizes, seed, input_init=input_init)
        mask = self.layout.edge_mask(allowed=allowed)
        self.register_buffer("edge_mask", _as_tensor(mask))
        self.register_buffer("null_loss", None if null_loss is None else _as_tensor(null_loss))
        self.input_weights = nn.Parameter(_as_tensor(np.asarray(start.input_weights) * mask[:, :, None]))
        self.input_bias = nn.Parameter(_as_tensor(start.input_bias))
        self.hidden = nn.ModuleList()
        for layer in start.hidden:
            linear = nn.utils.skip_init(nn.Linear, *layer.weights.shape)  # does not draw random weights
            linear.weight.data, linear.bias.data = _as_tensor(layer.weights).T.contiguous(), _as_tensor(layer.bias)
            self.hidden.append(linear)
        for name in ("output_weights", "output_bias"):
            array = getattr(start, name)
            self.register_parameter(name, None if array is None else nn.Parameter(_as_tensor(array)))

    @property
    def masked_input_weights(self) -> Tensor:
        """Weights of the input layers, shape (inputs, nodes, width), zero for forbidden edges."""
        return self.input_weights * self.edge_mask[:, :, None]

    def forward(self, x: Tensor) -> Tensor:
        """Predict all nodes, shape (rows, channels) to (rows, nodes, outputs): values, or logits of levels.

        Channels are standardized; those of the targets do not matter for the targets' outputs.
        """
        return self._outputs(x, slice(None))

    def target_outputs(self, x: Tensor) -> Tensor:
        """Run only the targets' sub-networks, shape (rows, channels) to (rows, targets, outputs)."""
        return self._outputs(x, slice(-len(self.layout.targets), None))

    def _outputs(self, x: Tensor, nodes: slice) -> Tensor:
        if x.ndim != 2 or x.shape[1] != self.layout.n_channels:
            raise ValueError(
                f"x has shape {tuple(x.shape)}, but the network takes (rows, {self.layout.n_channels}); pass the "
                "channels of all nodes, the targets last"
            )
        weights = self.masked_input_weights[:, nodes]
        z = (x @ weights.flatten(1)).unflatten(1, weights.shape[1:]) + self.input_bias[nodes]
        if self.output_weights is None or self.output_bias is None:
            return z
        activate = torch.relu if self.activation == "relu" else nn.functional.silu
        z = activate(z)
        for layer in self.hidden:
            z = activate(layer(z))
        return torch.einsum("rkw,kwo->rko", z, self.output_weights[nodes]) + self.output_bias[nodes]

    def edge_weights(self) -> NDArray[np.float64]:
        """Return the weight of every edge, the paper's ``M``; see :func:`castlereg.network.edge_weights`."""
        weights = self.masked_input_weights.detach().cpu().numpy()
        return edge_weights(weights, self.layout, linear=not self.hidden_layer_sizes)


class WrappedNetwork(nn.Module):
    """Your network as the target's sub-network, together with one sub-network for each column.

    The network is an ``nn.Sequential`` that takes the features and predicts the target. Its first layer must be an
    ``nn.Linear``, and so must its last one (dropout may follow). As in the paper's Figure 2, every node has its own
    input layer and output layer, and all nodes share the layers in between: your first and last layers belong to the
    target, those of the columns are added, and your layers in between run for each node.

    Your modules are used, not copied: training with :func:`castlereg.torch.castle_loss` trains your network.

    Parameters
    ----------
    network : nn.Sequential
        From the features' channels, shape (rows, channels), to the outputs of the target: one value, one logit for two
        classes, or one logit per class for more classes.
    layout : Layout, optional
        Nodes of the table, with one target; by default all are numeric.
    seed : int or SeedSequence
        Seed of the columns' layers; the weights of your network stay unchanged.
    null_loss : array of shape (nodes,), optional
        Units of the losses of binary and categorical nodes, see :func:`castlereg.torch.cell_losses`.

    Notes
    -----
    The layers in between must treat each row separately. Batch normalization, which would mix sub-networks, raises; use
    ``nn.LayerNorm``. Skip connections may bypass any of these layers, but not the first layer: a column that bypasses
    it has no edge.

    Your first layer starts at its usual scale. To start as in the paper, multiply its weights by a small number.

    Examples
    --------
    >>> from castlereg.torch import Batch, castle_loss
    >>> mlp = nn.Sequential(nn.Linear(3, 16), nn.ReLU(), nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 1))
    >>> wrapped = WrappedNetwork(mlp)
    >>> rows = torch.randn(8, 4, generator=torch.Generator().manual_seed(0))  # three features and the target
    >>> loss, terms = castle_loss(wrapped, Batch.of_numbers(rows))
    >>> loss.backward()
    >>> bool((wrapped.target_outputs(rows)[:, 0] == mlp(rows[:, :3])).all())
    True
    """

    layout: Layout
    edge_mask: Tensor
    null_loss: Tensor | None

    def __init__(
        self,
        network: nn.Sequential,
        layout: Layout | None = None,
        *,
        seed: int | np.random.SeedSequence = 0,
        null_loss: NDArray[Any] | None = None,
    ) -> None:
        super().__init__()
        last = _last_linear(network)
        first, final = network[0], network[last]
        assert isinstance(first, nn.Linear) and isinstance(final, nn.Linear)
        self.layout = _layout_of(first.in_features if layout is None else layout)
        _check_fits(self.layout, first, final)
        self.network, self._between, self._end = network, slice(1, last), slice(last, None)
        n_features, like = self.layout.n_features, first.weight
        start: Any = initialize(self.layout, (first.out_features, final.in_features), seed)

        def columns_first(array: NDArray[Any]) -> nn.Parameter:
            return nn.Parameter(_as_tensor(array, like.dtype, like.device))

        self.register_buffer("edge_mask", _as_tensor(self.layout.edge_mask()[:, :n_features], like.dtype, like.device))
        self.register_buffer("null_loss", None if null_loss is None else _as_tensor(null_loss, like.dtype, like.device))
        self.input_weights = columns_first(start.input_weights[:, :n_features])  # (channels, features, width)
        self.input_bias = columns_first(start.input_bias[:n_features])  # (features, width)
        self.output_weights = columns_first(start.output_weights[:n_features])  # (features, last width, outputs)
        self.output_bias = columns_first(start.output_bias[:n_features])  # (features, outputs)

    @property
    def masked_input_weights(self) -> Tensor:
        """Weights of the input layers, shape (channels, nodes, width), zero for forbidden edges."""
        columns = self.input_weights * self.edge_mask[:, :, None]
        target: Any = self.network[0].weight.T  # none from the target's own channels
        return torch.cat([columns, nn.functional.pad(target, (0, 0, 0, len(columns) - len(target)))[:, None]], dim=1)

    def forward(self, x: Tensor) -> Tensor:
        """Predict all nodes, shape (rows, channels) to (rows, nodes, outputs); channels are standardized."""
        weights = self.input_weights * self.edge_mask[:, :, None]
        columns = (x @ weights.flatten(1)).unflatten(1, weights.shape[1:]) + self.input_bias
        target = self.network[0](x[:, : self.layout.n_feature_channels])
        z = torch.cat([columns, target[:, None]], dim=1)
        units = self.network[self._between](z.flatten(0, 1)).unflatten(0, z.shape[:2])
        outputs = torch.einsum("rkw,kwo->rko", units[:, :-1], self.output_weights) + self.output_bias
        return torch.cat([outputs, self._padded(self.network[self._end](units[:, -1]))], dim=1)

    def target_outputs(self, x: Tensor) -> Tensor:
        """Run only your network, shape (rows, channels) to (rows, 1, outputs)."""
        return self._padded(self.network(x[:, : self.layout.n_feature_channels]))

    def edge_weights(self) -> NDArray[np.float64]:
        """Return the weight of every edge, the paper's ``M``; see :func:`castlereg.network.edge_weights`."""
        return edge_weights(self.masked_input_weights.detach().cpu().numpy(), self.layout)

    def _padded(self, outputs: Tensor) -> Tensor:
        """Pad the target's outputs to the width of all outputs, shape (rows, outputs) to (rows, 1, output width)."""
        return nn.functional.pad(outputs, (0, self.layout.output_width - outputs.shape[1]))[:, None]


_IDLE = (nn.Dropout, nn.AlphaDropout, nn.Identity)  # do nothing in prediction
_BATCH_NORMS = (nn.BatchNorm1d, nn.LazyBatchNorm1d, nn.SyncBatchNorm)


def _last_linear(network: nn.Sequential) -> int:
    """Return the position of the last linear layer, after a check of all layers."""
    if not isinstance(network, nn.Sequential):
        raise TypeError(
            f"a {type(network).__name__} cannot be wrapped; pass nn.Sequential(first, ..., last), which may contain "
            "your own modules"
        )
    modules = list(network)
    linear = [i for i, module in enumerate(modules) if isinstance(module, nn.Linear)]
    if len(linear) < 2 or linear[0] != 0:
        raise ValueError(
            "the network must begin with nn.Linear and have another nn.Linear as its last layer, got "
            f"{', '.join(map(str, modules)) or 'no layers'}; for a linear model use CastleNetwork(layout, ())"
        )
    for module in modules[linear[-1] + 1 :]:
        if not isinstance(module, _IDLE):
            raise ValueError(f"the network ends with {module}; end it with nn.Linear, because the loss takes logits")
    for module in network.modules():
        if isinstance(module, _BATCH_NORMS):
            raise ValueError(f"{module} would mix the rows of all sub-networks; use nn.LayerNorm, or no normalization")
    return linear[-1]


def _check_fits(layout: Layout, first: nn.Linear, last: nn.Linear) -> None:
    if len(layout.targets) != 1:
        raise ValueError(f"the layout has {len(layout.targets)} targets, but a wrapped network predicts one")
    levels = layout.nodes[-1].levels
    if first.in_features != layout.n_feature_channels or last.out_features != levels:
        raise ValueError(
            f"the network maps {first.in_features} channels to {last.out_features} outputs, but the layout has "
            f"{layout.n_feature_channels} feature channels and {levels} target outputs"
        )


def _layout_of(layout: Layout | int) -> Layout:
    """Return a layout that modules support; for a number n, that of n numeric columns and a numeric target."""
    if not isinstance(layout, Layout):
        check_integer("layout", layout)
        return Layout((*itertools.repeat(Node(), int(layout)), Node(target=True)))
    loss = next((node.loss for node in layout.nodes if node.loss is not None), None)
    if loss is not None:
        raise ValueError(f"modules support only the squared error of numeric targets, not {loss}; use loss='squared'")
    if layout.is_monotone or layout.embedding:
        what = "monotone columns" if layout.is_monotone else "embeddings"
        raise ValueError(f"modules do not support {what}; use an estimator, or a layout without them")
    return layout
