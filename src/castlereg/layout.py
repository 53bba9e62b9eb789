"""Nodes, their channels and their losses.

A *node* is one variable: a column of the table, or a target. A *channel* is one number that enters the network: a
numeric or binary node has one, a categorical node one per level. They are followed by channels that are inputs only and
never predicted: the seasons of a date, and the missing indicator of a node with missing values. A :class:`Layout`
defines which channels belong to which node and which loss each node has. It contains no names and no data, so two
tables with the same kinds of columns share one layout and one compiled program.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from castlereg.target_losses import TargetLoss

Kind = Literal["numeric", "binary", "categorical"]


@dataclass(frozen=True)
class Node:
    """One variable."""

    kind: Kind = "numeric"  # its loss: squared error, logistic, softmax
    levels: int = 1  # of a categorical node; 1 for the other kinds
    target: bool = False  # never an input of a target's sub-network
    missing: bool = False  # whether a missing indicator follows its other channels; missing values have no loss
    clipped: bool = False  # whether extreme values are clipped, see castlereg.table.encoding.smooth_clip
    extra: int = 0  # additional input channels, computed from the value of a numeric node
    loss: TargetLoss | None = None  # of a numeric target, instead of the squared error
    monotone: int = 0  # the targets never fall (1) or never rise (-1) with this feature, see castlereg.monotone

    def __post_init__(self) -> None:
        if self.kind not in get_args(Kind):
            raise ValueError(f"kind={self.kind!r} is not one of {', '.join(get_args(Kind))}")
        if self.kind == "categorical" and self.levels < 2:
            raise ValueError(f"a categorical node needs at least 2 levels, got levels={self.levels}")
        if self.kind != "categorical" and self.levels != 1:
            raise ValueError(f"a {self.kind} node must have levels=1, got levels={self.levels}")
        if self.target and (self.missing or self.clipped):
            raise ValueError("a target cannot have missing values or be clipped")
        if self.clipped and self.kind != "numeric":
            raise ValueError(f"only numeric nodes can be clipped, not {self.kind} ones")
        if self.extra < 0 or (self.extra and (self.target or self.kind != "numeric")):
            raise ValueError(f"only numeric features can have extra channels, got extra={self.extra}")
        if self.loss is not None and not (self.target and self.kind == "numeric"):
            raise ValueError(f"only numeric targets can have their own loss, got loss={self.loss}")
        if self.monotone and (self.target or self.kind == "categorical" or self.monotone not in (1, -1)):
            raise ValueError(f"only features whose values have an order can be monotone, got monotone={self.monotone}")

    @property
    def outputs(self) -> int:
        """Number of outputs of the node's sub-network."""
        return self.levels if self.loss is None else self.loss.n_outputs

    @property
    def channels(self) -> int:
        """Number of channels: one per level, extra ones, and the missing indicator."""
        return self.levels + self.extra + self.missing


@dataclass(frozen=True)
class Layout:
    """The nodes of a table in order: at least one feature, and at least one target after all features.

    A network computes ``embedding`` inputs from the value of each numeric feature, in addition to its channels, see
    :class:`castlereg.network.Embedding`.

    Examples
    --------
    >>> layout = Layout((Node(), Node("categorical", 3), Node("binary", target=True)))
    >>> layout.n_channels
    5
    >>> layout.channel_nodes
    array([0, 1, 1, 1, 2])
    >>> layout.edge_mask()[:, 1]  # a node's own channels are not inputs of its sub-network
    array([1., 0., 0., 0., 1.], dtype=float32)
    >>> Layout(layout.nodes, embedding=2).input_nodes  # two more inputs of the numeric feature, after all channels
    array([0, 1, 1, 1, 2, 0, 0])
    """

    nodes: tuple[Node, ...]
    embedding: int = 0

    def __post_init__(self) -> None:
        kinds = [node.target for node in self.nodes]
        if kinds != sorted(kinds):
            raise ValueError("targets must come after all features")
        if not any(kinds) or all(kinds):
            raise ValueError(f"a layout needs a feature and a target, got {len(kinds)} nodes with {sum(kinds)} targets")

    @property
    def n_nodes(self) -> int:
        """Number of nodes, the paper's ``d + 1``."""
        return len(self.nodes)

    @cached_property
    def targets(self) -> tuple[int, ...]:
        """Indices of the targets."""
        return tuple(k for k, node in enumerate(self.nodes) if node.target)

    @property
    def n_features(self) -> int:
        """Number of nodes that are not targets, the paper's ``d``."""
        return self.n_nodes - len(self.targets)

    @cached_property
    def channel_nodes(self) -> NDArray[np.int64]:
        """Node of each channel, shape (channels,)."""
        return np.repeat(np.arange(self.n_nodes), [node.channels for node in self.nodes])

    @property
    def n_channels(self) -> int:
        """Number of channels."""
        return len(self.channel_nodes)

    @cached_property
    def embedded_nodes(self) -> NDArray[np.int64]:
        """Nodes whose values are embedded: numeric features, if the network has an embedding."""
        numbers = [k for k, node in enumerate(self.nodes) if node.kind == "numeric" and not node.target]
        return np.array(numbers if self.embedding else [], np.int64)

    @cached_property
    def input_nodes(self) -> NDArray[np.int64]:
        """Node of each input of the network: all channels, then the embedded inputs; shape (inputs,)."""
        return np.r_[self.channel_nodes, np.repeat(self.embedded_nodes, self.embedding)]

    @property
    def n_inputs(self) -> int:
        """Number of inputs of the network: channels, and the inputs computed from them."""
        return len(self.input_nodes)

    @property
    def n_feature_channels(self) -> int:
        """Number of channels that belong to features; they come first."""
        return int(sum(node.channels for node in self.nodes if not node.target))

    @cached_property
    def is_input_only(self) -> NDArray[np.bool_]:
        """Which channels are never predicted, extra ones and missing indicators, shape (channels,)."""
        return np.concatenate([np.arange(node.channels) >= node.levels for node in self.nodes])

    @cached_property
    def is_clipped(self) -> NDArray[np.bool_]:
        """Which channels are clipped smoothly, shape (channels,)."""
        return np.array([node.clipped for node in self.nodes])[self.channel_nodes] & ~self.is_input_only

    @cached_property
    def has_missing(self) -> bool:
        """Whether any node may have missing values."""
        return any(node.missing for node in self.nodes)

    @cached_property
    def output_width(self) -> int:
        """Number of outputs of each sub-network: the maximum over nodes."""
        return max(node.outputs for node in self.nodes)

    @cached_property
    def output_channels(self) -> NDArray[np.int64]:
        """Channel that each output predicts, shape (nodes, output_width); see :attr:`output_used`."""
        first = np.searchsorted(self.channel_nodes, np.arange(self.n_nodes))
        is_level = np.arange(self.output_width) < np.array([node.levels for node in self.nodes])[:, None]
        return np.where(is_level, first[:, None] + np.arange(self.output_width), first[:, None])

    @cached_property
    def output_used(self) -> NDArray[np.bool_]:
        """Which outputs are used, shape (nodes, output_width); nodes with few levels leave some unused."""
        outputs = np.array([node.outputs for node in self.nodes])
        return np.arange(self.output_width) < outputs[:, None]

    @cached_property
    def alike(self) -> tuple[tuple[Node, NDArray[np.int64]], ...]:
        """Groups of nodes with the same loss and number of levels: the first node and the indices of each group."""
        groups: dict[Any, list[int]] = {}
        for k, node in enumerate(self.nodes):
            groups.setdefault((node.kind, node.levels, node.loss), []).append(k)
        return tuple((self.nodes[indices[0]], np.array(indices)) for indices in groups.values())

    @cached_property
    def is_squared(self) -> NDArray[np.bool_]:
        """Whether each node has the squared error as its loss, shape (nodes,)."""
        return np.array([node.kind == "numeric" and node.loss is None for node in self.nodes])

    @cached_property
    def is_monotone(self) -> bool:
        """Whether the targets must rise or fall with any feature."""
        return any(node.monotone for node in self.nodes)

    def is_kind(self, kind: Kind) -> NDArray[np.bool_]:
        """Whether each node is of this kind, shape (nodes,)."""
        return np.array([node.kind == kind for node in self.nodes])

    def edge_mask(self, without: tuple[int, ...] = (), allowed: NDArray[np.bool_] | None = None) -> NDArray[np.float32]:
        """Return 1.0 for the inputs allowed in each sub-network and 0.0 for others, shape (inputs, nodes).

        For a monotone feature, only its value and its missing indicator are inputs of the targets' sub-networks, since
        waves and seasons are not monotone.
        """
        mask = self.possible_edges(without, allowed)[self.input_nodes]
        if self.is_monotone:
            position = np.concatenate([np.arange(node.channels) - node.levels for node in self.nodes])
            extra, monotone = np.array([(node.extra, node.monotone) for node in self.nodes])[self.input_nodes].T
            waves = np.ones(self.n_inputs, bool)  # the embedded inputs, and the extra channels
            waves[: self.n_channels] = (position >= 0) & (position < extra[: self.n_channels])
            mask[np.flatnonzero(waves & (monotone != 0))[:, None], list(self.targets)] = False
        return mask.astype(np.float32)

    def possible_edges(
        self, without: tuple[int, ...] = (), allowed: NDArray[np.bool_] | None = None
    ) -> NDArray[np.bool_]:
        """Return which edges are possible, shape (nodes, nodes).

        There are no edges from a node to itself, and none between targets, which are unknown in prediction. Nodes in
        ``without`` (constant columns) have no edges, and edges that are not ``allowed``, shape (nodes, nodes), are
        excluded.
        """
        is_target = np.array([node.target for node in self.nodes])
        possible = ~np.eye(self.n_nodes, dtype=bool) & ~(is_target[:, None] & is_target)
        possible[list(without), :] = possible[:, list(without)] = False
        if allowed is not None:
            possible &= allowed
        return possible


@dataclass(frozen=True)
class EdgeRules:
    """Allowed, required and believed edges: arrays of shape (nodes, nodes), with ``[j, k]`` for an edge j -> k."""

    allowed: NDArray[np.bool_]
    required: NDArray[np.bool_]  # not penalized by sparsity, not cut; must be allowed and acyclic
    prior: NDArray[np.float64] | None = None  # beliefs in edges, NaN where there are none; training ignores them
