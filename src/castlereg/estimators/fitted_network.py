"""A trained stack that predicts: what an estimator keeps after fitting."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax
import numpy as np
from numpy.typing import NDArray

from castlereg.data.preprocessing import Preprocessing
from castlereg.data.scaling import Standardization, drawn_in
from castlereg.data.table import Table
from castlereg.edge_strength import edge_strengths
from castlereg.layout import Layout
from castlereg.network import Parameters, edge_weights, forward, select
from castlereg.objective import Batch, cell_losses, mean_losses, node_scores
from castlereg.training import TrainedStack
from castlereg.training.batch import as_batch

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
    parameters : Parameters
        With a leading member axis; of all sub-networks of CASTLE.
    standardization : Standardization
        Of each member.
    preprocessing : Preprocessing
        Before the members' own standardization.
    """

    parameters: Parameters
    standardization: Standardization
    preprocessing: Preprocessing

    @classmethod
    def from_stack(cls, stack: TrainedStack, preprocessing: Preprocessing) -> FittedNetwork:
        """Keep what prediction needs of a trained stack."""
        return cls(stack.parameters, stack.standardization, preprocessing)

    @property
    def layout(self) -> Layout:
        """Nodes of the features and the targets."""
        return self.preprocessing.layout

    @property
    def n_members(self) -> int:
        """Number of networks."""
        return len(self.standardization.shift)

    def of_members(self, members: NDArray[np.int64]) -> FittedNetwork:
        """Keep some networks."""
        parameters: Parameters = jax.tree.map(lambda a: a[members], self.parameters)
        return FittedNetwork(parameters, self.standardization.of_member(members), self.preprocessing)

    def of_features(self, kept: NDArray[np.bool_]) -> FittedNetwork:
        """Take features out of the targets' sub-networks; the mask is in the user's order of columns."""
        by_node = np.r_[kept[list(self.preprocessing.order)], np.ones(len(self.layout.targets), bool)]
        weights = self._input_weights().copy()
        weights[:, ~by_node[self.layout.channel_nodes], -len(self.layout.targets) :] = 0
        parameters = self.parameters._replace(input_weights=weights)  # type: ignore[arg-type]
        return FittedNetwork(parameters, self.standardization, self.preprocessing)

    @property
    def has_all_nodes(self) -> bool:
        """Whether the sub-networks of all columns were trained, or the targets' alone."""
        return self._input_weights().shape[2] == self.layout.n_nodes

    def target_outputs(self, cells: NDArray[np.float64]) -> NDArray[np.float64]:
        """Run the targets' sub-networks.

        Parameters
        ----------
        cells : array of shape (rows, features)
            From :meth:`castlereg.data.preprocessing.Preprocessing.cells`.

        Returns
        -------
        array of shape (members, rows, targets, outputs)
            Of numeric targets in the encoded unit of the table; logits of classes.
        """
        n_targets = len(self.layout.targets)
        outputs = np.empty((self.n_members, len(cells), n_targets, self.layout.output_width))
        for start in range(0, len(cells), _BLOCK):
            rows = cells[start : start + _BLOCK]
            block = self.preprocessing.encode(rows, room=-(-len(rows) // _MULTIPLE) * _MULTIPLE)
            for member, network in enumerate(self.target_networks):
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
        place = np.argsort(self.preprocessing.node_order())
        return by_edge[:, place[:, None], place]

    def _input_weights(self) -> NDArray[np.float32]:
        return np.asarray(self.parameters.input_weights)

    def _as_seen(self, block: NDArray[np.float64], member: int) -> NDArray[np.float64]:
        """Draw clipped channels in, and fill missing values with the member's own means."""
        by, layout = self.standardization.of_member(member), self.layout
        seen: NDArray[np.float64] = drawn_in(block, by.clip_center, by.clip_rate, layout)
        return np.where(np.isnan(seen), by.shift[: block.shape[1]], seen) if layout.has_gaps else seen

    @cached_property
    def target_networks(self) -> list[Parameters]:
        """The targets' sub-networks of every member in float64, for features that are not yet standardized."""
        n_targets = len(self.layout.targets)
        nodes = self._input_weights().shape[2] - n_targets + np.arange(n_targets)  # they stand last
        networks = []
        for member in range(self.n_members):
            network = select(jax.tree.map(lambda a, member=member: a[member], self.parameters), nodes)
            by = self.standardization.of_member(member)
            networks.append(_for_encoded(network, by, self.layout.n_feature_channels))
        return networks

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


def _for_encoded(network: Parameters, by: Standardization, n_channels: int) -> Parameters:
    """Fold ``(encoded - shift) * scale`` of the features' channels into the first layer, and drop other channels."""
    network = jax.tree.map(lambda a: np.asarray(a, np.float64), network)
    shift, scale = (np.asarray(a[:n_channels], np.float64) for a in (by.shift, by.scale))
    weights = network.input_weights[:n_channels]
    return network._replace(
        input_weights=weights * scale[:, None, None],
        input_bias=network.input_bias - np.tensordot(shift * scale, weights, axes=1),
    )
