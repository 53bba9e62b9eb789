"""The network of the paper's Figure 2 as a PyTorch module: one sub-network per node, hidden layers shared by all."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from castlereg.layout import Layout, Node
from castlereg.network import (
    COSINE,
    Activation,
    ActivationName,
    Dense,
    Embedding,
    InputInit,
    Parameters,
    initialize,
    value_channels,
)
from castlereg.options import check_choice, check_integer, check_sizes
from castlereg.torch.losses import as_tensor


class CastleNetwork(nn.Module):
    """One sub-network per node, each predicting its node from the channels of all others (eq. 3).

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
    targets_only : bool
        Whether to create only the targets' sub-networks: a plain network, without a graph.
    names : sequence of str, optional
        Names of the nodes, for the graph.
    null_loss : array of shape (nodes,), optional
        Units of the losses of binary and categorical nodes, see :func:`castlereg.torch.losses.cell_losses`.
    start : Parameters, optional
        Starting weights of the same shapes; drawn with the seed by default.

    Attributes
    ----------
    layout : Layout
    input_weights : Parameter of shape (inputs, nodes, width)
        Eq. 3: ``W_1^k`` is ``[:, k, :]``.
    input_bias : Parameter of shape (nodes, width)
    hidden : ModuleList of Linear
        Eq. 3: ``W_m``, shared by all sub-networks.
    output_weights, output_bias : Parameter of shape (nodes, width, outputs) and (nodes, outputs), or None
        Eq. 3: ``W_M^k``; None in the linear form.
    embedding : WaveEmbedding or None
    edge_mask : Tensor of shape (inputs, nodes)
        0 for forbidden edges, 1 for all others.

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
    input_weights: nn.Parameter
    input_bias: nn.Parameter
    hidden: nn.ModuleList
    output_weights: nn.Parameter | None
    output_bias: nn.Parameter | None
    embedding: WaveEmbedding | None
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
        targets_only: bool = False,
        names: Sequence[str] | None = None,
        null_loss: NDArray[Any] | None = None,
        start: Parameters | None = None,
    ) -> None:
        super().__init__()
        self.layout = layout_of(layout)
        _check_covered(self.layout)
        sizes = _checked_sizes(hidden_layer_sizes)
        check_choice("activation", activation, ["relu", "silu"])
        check_choice("input_init", input_init, ["small", "glorot"])
        self.activation: ActivationName = activation
        self.names = checked_names(names, self.layout)
        nodes = self.layout.targets if targets_only else tuple(range(self.layout.n_nodes))
        if start is None:
            start = initialize(self.layout, sizes, seed, nodes=nodes, input_init=input_init, activation=self.activation)
        dtype = torch.get_default_dtype()

        def trained(array: Any) -> nn.Parameter | None:
            return None if array is None else nn.Parameter(as_tensor(array, dtype))

        mask = self.layout.edge_mask(allowed=allowed)[:, list(nodes)]
        self.register_buffer("edge_mask", as_tensor(mask, dtype))
        self.register_buffer("null_loss", None if null_loss is None else as_tensor(null_loss, dtype))
        self.register_parameter("input_weights", trained(np.asarray(start.input_weights) * mask[:, :, None]))
        self.register_parameter("input_bias", trained(start.input_bias))
        self.hidden = nn.ModuleList(map(_linear, start.hidden))
        self.register_parameter("output_weights", trained(start.output_weights))
        self.register_parameter("output_bias", trained(start.output_bias))
        self.embedding = None if start.embedding is None else WaveEmbedding(start.embedding)

    @classmethod
    def from_parameters(
        cls,
        parameters: Parameters,
        layout: Layout,
        *,
        names: Sequence[str] | None = None,
        null_loss: NDArray[Any] | None = None,
    ) -> CastleNetwork:
        """Create a network from trained weights; edges whose weights are all zero are forbidden.

        Parameters
        ----------
        parameters : Parameters
            NumPy or JAX arrays of one network, of all sub-networks or of only the targets'.
        layout : Layout
            With the embedding of the network, such as ``model.model_.networks.layout``.
        names : sequence of str, optional
        null_loss : array of shape (nodes,), optional
        """
        weights = np.asarray(parameters.input_weights)
        linear = parameters.output_weights is None
        targets_only = weights.shape[1] != layout.n_nodes
        present = np.zeros((layout.n_nodes, weights.shape[1]), bool)
        np.logical_or.at(present, layout.input_nodes, (weights != 0).any(axis=-1))
        allowed = np.ones((layout.n_nodes, layout.n_nodes), bool)
        allowed[:, list(layout.targets) if targets_only else slice(None)] = present
        sizes = () if linear else (weights.shape[-1], *(layer.bias.shape[-1] for layer in parameters.hidden))
        return cls(
            layout,
            sizes,
            activation=parameters.activation.name,
            allowed=allowed,
            targets_only=targets_only,
            names=names,
            null_loss=null_loss,
            start=parameters,
        )

    def to_parameters(self) -> Parameters:
        """Return the weights as NumPy arrays in float32, for :mod:`castlereg.network` and ``to_estimator``."""
        hidden = tuple(Dense(to_array(layer.weight.T), to_array(layer.bias)) for layer in self._hidden)
        return Parameters(
            to_array(self.masked_input_weights),
            to_array(self.input_bias),
            hidden,
            None if self.output_weights is None else to_array(self.output_weights),
            None if self.output_bias is None else to_array(self.output_bias),
            None if self.embedding is None else self.embedding.to_embedding(self.layout),
            Activation(self.activation),
        )

    @property
    def hidden_layer_sizes(self) -> tuple[int, ...]:
        """Widths of the hidden layers; empty in the linear form."""
        if self.output_weights is None:
            return ()
        return (self.input_bias.shape[-1], *(layer.out_features for layer in self._hidden))

    @property
    def _hidden(self) -> list[nn.Linear]:
        layers: Any = list(self.hidden)
        return layers

    @property
    def is_linear(self) -> bool:
        """Whether there are no hidden layers."""
        return self.output_weights is None

    @property
    def masked_input_weights(self) -> Tensor:
        """Weights of the input layers, shape (inputs, nodes, width), zero for forbidden edges."""
        return self.input_weights * self.edge_mask[:, :, None]

    def forward(self, x: Tensor, nodes: Sequence[int] | None = None) -> Tensor:
        """Predict nodes from the channels of all others (eq. 3).

        Parameters
        ----------
        x : tensor of shape (rows, channels)
            Standardized; those of the targets do not matter for the targets' outputs.
        nodes : sequence of int, optional
            Sub-networks to run, by their position among those of the network; all by default.

        Returns
        -------
        tensor of shape (rows, nodes, outputs)
            Predicted values of numeric nodes, logits of binary and categorical ones.
        """
        weights: Tensor = self.masked_input_weights
        bias: Tensor = self.input_bias
        output_weights: Tensor | None = self.output_weights
        output_bias: Tensor | None = self.output_bias
        if nodes is not None:
            at = list(nodes)
            weights, bias = weights[:, at], bias[at]
            output_weights = None if output_weights is None else output_weights[at]
            output_bias = None if output_bias is None else output_bias[at]
        if x.ndim != 2 or x.shape[1] != self.layout.n_channels:
            raise ValueError(
                f"x has shape {tuple(x.shape)}, but the network takes (rows, {self.layout.n_channels}); pass the "
                "channels of all nodes, the targets last"
            )
        inputs = x if self.embedding is None else self.embedding(x)
        z = (inputs @ weights.flatten(1)).unflatten(1, weights.shape[1:]) + bias
        if output_weights is None or output_bias is None:
            return z
        activate = torch.relu if self.activation == "relu" else nn.functional.silu
        z = activate(z)
        for layer in self.hidden:
            z = activate(layer(z))
        return torch.einsum("rkw,kwo->rko", z, output_weights) + output_bias

    def target_outputs(self, x: Tensor) -> Tensor:
        """Run only the targets' sub-networks, shape (rows, channels) to (rows, targets, outputs)."""
        n_nodes = self.input_bias.shape[0]
        return self.forward(x, range(n_nodes - len(self.layout.targets), n_nodes))

    def extra_repr(self) -> str:
        """Describe the nodes and the widths."""
        return f"nodes={self.layout.n_nodes}, hidden_layer_sizes={self.hidden_layer_sizes}"


class WaveEmbedding(nn.Module):
    """Inputs that a network computes from the values of numeric columns, see :class:`castlereg.network.Embedding`.

    Each value ``x`` becomes ``cos(2 pi (frequencies x + phases)) @ weights``, appended to the channels.
    """

    frequencies: nn.Parameter  # (embedded nodes, waves)
    phases: nn.Parameter  # (embedded nodes, waves)
    weights: nn.Parameter  # (embedded nodes, waves, inputs of a node)
    channels: Tensor  # of the values

    def __init__(self, start: Embedding) -> None:
        super().__init__()
        dtype = torch.get_default_dtype()
        for name in ("frequencies", "phases", "weights"):
            self.register_parameter(name, nn.Parameter(as_tensor(getattr(start, name), dtype)))
        self.register_buffer("channels", torch.tensor(start.channels.indices, dtype=torch.int64))

    def forward(self, x: Tensor) -> Tensor:
        """Append the embedded values to the channels, shape (rows, channels) to (rows, inputs)."""
        turns = x[:, self.channels, None] * self.frequencies + self.phases
        mixed = torch.einsum("rnf,nfe->rne", _wave(turns), self.weights)
        return torch.cat([x, mixed.flatten(1)], dim=1)

    def to_embedding(self, layout: Layout) -> Embedding:
        """Return the weights as NumPy arrays in float32."""
        return Embedding(
            to_array(self.frequencies), to_array(self.phases), to_array(self.weights), value_channels(layout)
        )


def _wave(turns: Tensor) -> Tensor:
    """Return ``cos(2 pi turns)`` by the polynomial that :mod:`castlereg.network` is trained with."""
    square = (turns - torch.round(turns)) ** 2
    value = torch.full_like(square, COSINE[0])
    for coefficient in COSINE[1:]:
        value = value * square + coefficient
    return value


def _check_covered(layout: Layout) -> None:
    """Raise if a module does not support the nodes of a layout."""
    loss = next((node.loss for node in layout.nodes if node.loss is not None), None)
    if loss is not None:
        raise ValueError(f"modules support only the squared error of numeric targets, not {loss}; use loss='squared'")
    if layout.is_monotone:
        raise ValueError("modules do not support monotone columns; fit without monotone")


def layout_of(layout: Layout | int) -> Layout:
    """Return a layout; for a number n, that of n numeric columns and a numeric target."""
    if isinstance(layout, Layout):
        return layout
    check_integer("layout", layout)
    return Layout((*itertools.repeat(Node(), int(layout)), Node(target=True)))


def checked_names(names: Sequence[str] | None, layout: Layout) -> tuple[str, ...] | None:
    """Check that there is a name for each node."""
    if names is not None and (len(names) != layout.n_nodes or len(set(names)) != layout.n_nodes):
        raise ValueError(f"names must be {layout.n_nodes} different names, one for each node, got {list(names)}")
    return None if names is None else tuple(map(str, names))


def _checked_sizes(sizes: Sequence[int]) -> tuple[int, ...]:
    if isinstance(sizes, str):
        raise ValueError(f"hidden_layer_sizes={sizes!r} must be a sequence of widths such as (32, 32)")
    check_sizes("hidden_layer_sizes", sizes)
    return tuple(map(int, sizes))


def _linear(layer: Dense) -> nn.Linear:
    """Create a hidden layer with these weights, without drawing random ones."""
    made = nn.utils.skip_init(nn.Linear, *layer.weights.shape)
    with torch.no_grad():
        made.weight.copy_(as_tensor(layer.weights, made.weight.dtype).T)
        made.bias.copy_(as_tensor(layer.bias, made.bias.dtype))
    linear: nn.Linear = made
    return linear


def to_array(tensor: Tensor) -> Any:
    """Copy a tensor into a NumPy array of float32."""
    return np.ascontiguousarray(tensor.detach().cpu().numpy(), dtype=np.float32)
