"""CASTLE around your own network: its first layer is the target's input layer, the layers in between are shared."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from castlereg.layout import Layout
from castlereg.network import Activation, ActivationName, Dense, Parameters, initialize
from castlereg.torch.losses import as_tensor
from castlereg.torch.network import checked_names, layout_of, to_array


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
        Nodes of the table, with one target and without an embedding; by default the features are numeric columns, and
        the target is numeric.
    seed : int or SeedSequence
        Seed of the columns' layers; the weights of your network stay unchanged.
    names : sequence of str, optional
        Names of the nodes, for the graph.
    null_loss : array of shape (nodes,), optional
        Units of the losses of binary and categorical nodes, see :func:`castlereg.torch.losses.cell_losses`.

    Notes
    -----
    The layers in between must treat each row separately. Batch normalization, which would mix sub-networks, raises; use
    ``nn.LayerNorm``. Skip connections may bypass any of these layers, but not the first layer: a column that bypasses
    it has no edge.

    Your first layer starts at its usual scale, those of the columns at sd 0.01. To start as in the paper, multiply its
    weights by a small number before training.

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
    input_weights: nn.Parameter  # (channels, features, width), of the columns' sub-networks
    input_bias: nn.Parameter  # (features, width)
    output_weights: nn.Parameter  # (features, last width, outputs)
    output_bias: nn.Parameter  # (features, outputs)
    edge_mask: Tensor
    null_loss: Tensor | None
    is_linear = False

    def __init__(
        self,
        network: nn.Sequential,
        layout: Layout | None = None,
        *,
        seed: int | np.random.SeedSequence = 0,
        names: Sequence[str] | None = None,
        null_loss: NDArray[Any] | None = None,
    ) -> None:
        super().__init__()
        first, between, last, _ = _taken_apart(network)
        self.layout = layout_of(first.in_features) if layout is None else layout
        _check_fits(self.layout, first, last)
        self.network = network
        self.names = checked_names(names, self.layout)
        self._between, self._last = slice(1, 1 + len(between)), slice(1 + len(between), None)
        n_features, like = self.layout.n_features, first.weight
        start = initialize(self.layout, (first.out_features, last.in_features), seed)
        mask = self.layout.edge_mask()[:, :n_features]

        def made(array: Any) -> Tensor:
            return as_tensor(array, like.dtype, like.device)

        self.register_buffer("edge_mask", made(mask))
        self.register_buffer("null_loss", None if null_loss is None else made(null_loss))
        self.input_weights = nn.Parameter(made(np.asarray(start.input_weights)[:, :n_features]))
        self.input_bias = nn.Parameter(made(np.asarray(start.input_bias)[:n_features]))
        self.output_weights = nn.Parameter(made(np.asarray(start.output_weights)[:n_features]))
        self.output_bias = nn.Parameter(made(np.asarray(start.output_bias)[:n_features]))

    @property
    def masked_input_weights(self) -> Tensor:
        """Weights of the input layers, shape (channels, nodes, width), zero for forbidden edges."""
        columns = self.input_weights * self.edge_mask[:, :, None]
        of_target = self._first.weight.T  # none from the target's own channels
        of_target = nn.functional.pad(of_target, (0, 0, 0, len(columns) - len(of_target)))
        return torch.cat([columns, of_target[:, None]], dim=1)

    def forward(self, x: Tensor) -> Tensor:
        """Predict all nodes, shape (rows, channels) to (rows, nodes, outputs); channels are standardized."""
        weights = self.input_weights * self.edge_mask[:, :, None]
        columns = (x @ weights.flatten(1)).unflatten(1, weights.shape[1:]) + self.input_bias
        of_target = self._first(x[:, : self.layout.n_feature_channels])
        z = torch.cat([columns, of_target[:, None]], dim=1)
        units = self.network[self._between](z.flatten(0, 1)).unflatten(0, z.shape[:2])
        outputs = torch.einsum("rkw,kwo->rko", units[:, :-1], self.output_weights) + self.output_bias
        return torch.cat([outputs, self._padded(self.network[self._last](units[:, -1]))], dim=1)

    def target_outputs(self, x: Tensor) -> Tensor:
        """Run only your network, shape (rows, channels) to (rows, 1, outputs)."""
        return self._padded(self.network(x[:, : self.layout.n_feature_channels]))

    @property
    def _first(self) -> nn.Linear:
        first: Any = self.network[0]
        return first

    def _padded(self, outputs: Tensor) -> Tensor:
        """Pad the target's outputs to the width of all outputs, shape (rows, outputs) to (rows, 1, output width)."""
        return nn.functional.pad(outputs, (0, self.layout.output_width - outputs.shape[1]))[:, None]

    def to_parameters(self) -> Parameters:
        """Return the weights as NumPy arrays in float32, if the layers in between are linear with ReLU or SiLU.

        Dropout, which does nothing in prediction, may be anywhere; other layers raise.
        """
        _, between, last, _ = _taken_apart(self.network)
        layers: list[Any] = [module for module in between if not isinstance(module, _IDLE)]
        activations, linears = layers[::2], layers[1::2]
        name = next((name for cls, name in _ACTIVATIONS.items() if isinstance(next(iter(layers), None), cls)), None)
        alike = name is not None and all(isinstance(a, type(layers[0])) for a in activations)
        if not alike or len(layers) % 2 == 0 or not all(isinstance(linear, nn.Linear) for linear in linears):
            raise ValueError(
                "castlereg's parameters need linear layers with the same ReLU or SiLU after each except the last, but "
                f"the layers between the first and the last are {', '.join(map(str, between)) or 'none'}"
            )
        out = nn.functional.pad(last.weight.T, (0, self.layout.output_width - last.out_features))
        bias = nn.functional.pad(_bias(last), (0, self.layout.output_width - last.out_features))
        assert name is not None
        return Parameters(
            to_array(self.masked_input_weights),
            to_array(torch.cat([self.input_bias, _bias(self._first)[None]])),
            tuple(Dense(to_array(linear.weight.T), to_array(_bias(linear))) for linear in linears),
            to_array(torch.cat([self.output_weights, out[None]])),
            to_array(torch.cat([self.output_bias, bias[None]])),
            None,
            Activation(name),
        )


_IDLE = (nn.Dropout, nn.AlphaDropout, nn.Identity)  # do nothing in prediction
_ACTIVATIONS: dict[type[nn.Module], ActivationName] = {nn.ReLU: "relu", nn.SiLU: "silu"}
_BATCH_NORMS = (nn.BatchNorm1d, nn.LazyBatchNorm1d, nn.SyncBatchNorm)


def _bias(linear: nn.Linear) -> Tensor:
    return linear.weight.new_zeros(linear.out_features) if linear.bias is None else linear.bias


def _taken_apart(network: nn.Sequential) -> tuple[nn.Linear, list[nn.Module], nn.Linear, list[nn.Module]]:
    """Return the first linear layer of a network, the layers in between, the last one, and the layers after it."""
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
    first, last = modules[0], modules[linear[-1]]
    between, after = modules[1 : linear[-1]], modules[linear[-1] + 1 :]
    for module in after:
        if not isinstance(module, _IDLE):
            raise ValueError(f"the network ends with {module}; end it with nn.Linear, because the loss takes logits")
    for module in (inner for outer in between for inner in outer.modules()):
        if isinstance(module, _BATCH_NORMS):
            raise ValueError(f"{module} would mix the rows of all sub-networks; use nn.LayerNorm, or no normalization")
    assert isinstance(first, nn.Linear)
    assert isinstance(last, nn.Linear)
    return first, between, last, after


def _check_fits(layout: Layout, first: nn.Linear, last: nn.Linear) -> None:
    if len(layout.targets) != 1:
        raise ValueError(f"the layout has {len(layout.targets)} targets, but a wrapped network predicts one")
    if layout.embedding:
        raise ValueError("the layout has an embedding, which wrapped networks do not support; set its embedding to 0")
    levels = layout.nodes[-1].levels
    if first.in_features != layout.n_feature_channels or last.out_features != levels:
        raise ValueError(
            f"the network maps {first.in_features} channels to {last.out_features} outputs, but the layout has "
            f"{layout.n_feature_channels} feature channels and {levels} target outputs"
        )
