"""A trained stack that predicts: what an estimator keeps after fitting."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax
import numpy as np
from numpy.typing import NDArray

from castlereg.data.encoding import Encoder
from castlereg.edge_strength import edge_strengths
from castlereg.layout import Layout
from castlereg.network import Parameters, edge_weights, forward, select
from castlereg.objective import Batch, cell_losses, mean_losses, node_scores
from castlereg.training import Table, TrainedStack
from castlereg.training.standardization import Standardization, as_batch, smooth_clip

# Rows are predicted in blocks of these sizes. Filling up to a multiple of 16 keeps a lone row on the
# same matrix kernel as a full block, so a prediction never depends on how many rows were asked for.
_BLOCK = 4096
_MULTIPLE = 16


@dataclass(frozen=True)
class FittedNetwork:
    """Networks with what surrounds them.

    Prediction runs the targets' sub-networks alone, on the host, in float64: no compilation, and results that
    do not depend on the other rows of a call.

    Parameters
    ----------
    layout : Layout
    parameters : Parameters
        With a leading member axis; of all sub-networks of CASTLE.
    standardization : Standardization
        Of each member.
    encoder : Encoder
        Of the features, before the members' own standardization.
    """

    layout: Layout
    parameters: Parameters
    standardization: Standardization
    encoder: Encoder

    @classmethod
    def from_stack(cls, stack: TrainedStack, layout: Layout, encoder: Encoder) -> FittedNetwork:
        """Keep what prediction needs of a trained stack."""
        return cls(layout, stack.parameters, stack.standardization, encoder)

    @property
    def n_members(self) -> int:
        """Number of networks."""
        return len(self.standardization.shift)

    def of_members(self, members: NDArray[np.int64]) -> FittedNetwork:
        """Keep some networks."""
        parameters: Parameters = jax.tree.map(lambda a: a[members], self.parameters)
        return FittedNetwork(self.layout, parameters, self.standardization.of_member(members), self.encoder)

    def of_features(self, kept: NDArray[np.bool_]) -> FittedNetwork:
        """Take features out of the targets' sub-networks; the mask is in the user's order of columns."""
        by_node = np.r_[kept[list(self.encoder.order)], np.ones(len(self.layout.targets), bool)]
        weights = self._input_weights().copy()
        weights[:, ~by_node[self.layout.channel_nodes], -len(self.layout.targets) :] = 0
        parameters = self.parameters._replace(input_weights=weights)  # type: ignore[arg-type]
        return FittedNetwork(self.layout, parameters, self.standardization, self.encoder)

    @property
    def has_all_nodes(self) -> bool:
        """Whether the sub-networks of all columns were trained, or the targets' alone."""
        return self._input_weights().shape[2] == self.layout.n_nodes

    def target_outputs(self, cells: NDArray[np.float64]) -> NDArray[np.float64]:
        """Run the targets' sub-networks.

        Parameters
        ----------
        cells : array of shape (rows, features)
            As the encoder numbers them.

        Returns
        -------
        array of shape (members, rows, targets, outputs)
            Of numeric targets in the encoded unit of the table; logits of classes.
        """
        n_targets = len(self.layout.targets)
        outputs = np.empty((self.n_members, len(cells), n_targets, self.layout.output_width))
        for start in range(0, len(cells), _BLOCK):
            rows = cells[start : start + _BLOCK]
            block = self.encoder.centred(rows, room=-(-len(rows) // _MULTIPLE) * _MULTIPLE)
            for member, network in enumerate(self._target_networks):
                seen = self._as_seen(block, member)
                outputs[member, start : start + len(rows)] = forward(network, seen)[: len(rows)]  # type: ignore[arg-type]
        return self._destandardized(outputs)

    def edge_weights(self) -> NDArray[np.float64]:
        """Return the weights of every member's edges, shape (members, nodes, nodes), columns in the user's order."""
        linear = self.parameters.output_weights is None
        own = np.stack([edge_weights(weights, self.layout, linear=linear) for weights in self._input_weights()])
        return self._in_users_order(own)

    def edge_strengths(self, table: Table) -> NDArray[np.float64]:
        """Return what every member's edges are worth on the rows of a table, see :mod:`castlereg.edge_strength`.

        Parameters
        ----------
        table : Table
            Of the network's coding.

        Returns
        -------
        array of shape (members, nodes, nodes)
            Columns in the user's order.
        """
        return self._in_users_order(np.stack([edge_strengths(*seen) for seen in self._members_with(table)]))

    def log_likelihoods(self, table: Table) -> NDArray[np.float64]:
        """Return how well every member tells the rows of a table, all columns but constant ones added up.

        Parameters
        ----------
        table : Table
            Of the network's coding.

        Returns
        -------
        array of shape (members,)
            Mean over rows.
        """
        found = []
        for parameters, batch, layout, units in self._members_with(table):
            losses = cell_losses(forward(parameters, batch.inputs), batch, layout, None, units)
            scores = np.asarray(node_scores(mean_losses(losses, batch), layout, units), np.float64)
            found.append(-np.delete(scores, list(table.constant)).sum())
        return np.array(found)

    def _members_with(self, table: Table) -> Iterator[tuple[Parameters, Batch, Layout, Any]]:
        """Go through the members: what each has learned, the rows as it sees them, the layout, units of the losses."""
        weight = np.ones(len(table.inputs), np.float32) if table.weight is None else table.weight
        for member in range(self.n_members):
            parameters: Parameters = jax.tree.map(lambda a, member=member: np.asarray(a[member]), self.parameters)
            by = self.standardization.of_member(member)
            units = np.ones(self.layout.n_nodes, np.float32) if by.null_loss is None else by.null_loss
            yield parameters, as_batch(table.inputs, weight / weight.sum(), by, self.layout), self.layout, units

    def _in_users_order(self, by_edge: NDArray[np.float64]) -> NDArray[np.float64]:
        place = np.argsort(self.encoder.node_order(len(self.layout.targets)))
        return by_edge[:, place[:, None], place]

    def _input_weights(self) -> NDArray[np.float32]:
        return np.asarray(self.parameters.input_weights)

    def _as_seen(self, block: NDArray[np.float64], member: int) -> NDArray[np.float64]:
        """Fill gaps with the member's own means, and draw clipped channels in."""
        if not (self.layout.has_gaps or self._clipped.any()):
            return block
        by, channels = self.standardization, block.shape[1]
        seen = block.copy()
        if by.clip_center is not None and by.clip_rate is not None:
            center, rate = (a[member, :channels].astype(np.float64) for a in (by.clip_center, by.clip_rate))
            drawn_in = smooth_clip((block / self.encoder.spread - center) * rate)
            seen[:, self._clipped] = drawn_in[:, self._clipped]
        if self.layout.has_gaps:
            # The shift is what standardizes to zero; weights below expect channels not yet divided by their spread.
            mean = by.shift[member, :channels].astype(np.float64) * self._spread
            seen = np.where(np.isnan(seen), mean, seen)
        return seen

    @cached_property
    def _clipped(self) -> NDArray[np.bool_]:
        return self.layout.is_clipped[: self.layout.n_feature_channels]

    @cached_property
    def _spread(self) -> NDArray[np.float64]:
        """What the channels that the networks see are still to be divided by."""
        return np.where(self._clipped, 1.0, self.encoder.spread)

    @cached_property
    def _target_networks(self) -> list[Parameters]:
        """Cut out the targets' sub-networks of every member, with the scales of the features taken into the weights."""
        return [self._target_network(member) for member in range(self.n_members)]

    def _target_network(self, member: int) -> Parameters:
        d = self.layout.n_feature_channels
        n_targets = len(self.layout.targets)
        nodes = self._input_weights().shape[2] - n_targets + np.arange(n_targets)  # they stand last
        one = select(jax.tree.map(lambda a: a[member], self.parameters), nodes)
        one = jax.tree.map(lambda a: np.asarray(a, np.float64), one)
        # Standardized features are (centred / spread - shift) * scale; only the centring is left to do for each row.
        by = self.standardization
        shift, scale = by.shift[member, :d].astype(np.float64), by.scale[member, :d].astype(np.float64)
        weights = one.input_weights[:d]
        network: Parameters = one._replace(
            input_weights=weights * (scale / self._spread)[:, None, None],
            input_bias=one.input_bias - np.tensordot(shift * scale, weights, axes=1),
        )
        return network

    def _destandardized(self, outputs: NDArray[np.float64]) -> NDArray[np.float64]:
        """Undo the members' standardization of numeric targets."""
        by = self.standardization
        for place, target in enumerate(self.layout.targets):
            if self.layout.nodes[target].kind != "numeric":
                continue
            channel = self.layout.output_channels[target, 0]
            scale = by.scale[:, channel].astype(np.float64)
            spread = np.where(scale > 0, 1 / np.where(scale > 0, scale, 1.0), 0.0)
            outputs[:, :, place] = outputs[:, :, place] * spread[:, None, None] + by.shift[:, channel, None, None]
        return outputs
