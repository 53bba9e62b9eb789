"""Trained networks that predict."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import jax
import numpy as np
from numpy.typing import NDArray

from castlereg.data.preprocessing import Preprocessing
from castlereg.data.scaling import Standardization, drawn_in
from castlereg.data.table import Table
from castlereg.fitted.strengths import edge_strengths
from castlereg.layout import Layout
from castlereg.losses import Batch, cell_losses, mean_losses, node_scores
from castlereg.network import Parameters, edge_weights, forward, select
from castlereg.training import TrainedStack
from castlereg.training.batch import as_batch

# Rows are predicted in blocks of these sizes. Filling up to a multiple of 16 keeps a lone row on the same matrix kernel
# as a full block, so a prediction never depends on how many rows were asked for.
_BLOCK = 4096
_MULTIPLE = 16


@dataclass(frozen=True)
class Networks:
    """Networks with the preprocessing that they share.

    Prediction runs only the targets' sub-networks, on the host, in float64: no compilation, and results that do not
    depend on the other rows of a call.

    Parameters
    ----------
    preprocessing : Preprocessing
        Of all networks.
    parameters : Parameters
        With a leading member axis; of all sub-networks of CASTLE.
    standardization : Standardization
        Of each member.
    """

    preprocessing: Preprocessing
    parameters: Parameters
    standardization: Standardization

    @classmethod
    def of(cls, preprocessing: Preprocessing, stack: TrainedStack) -> Networks:
        """Keep what prediction needs of a trained stack."""
        return cls(preprocessing, stack.parameters, stack.standardization)

    @property
    def layout(self) -> Layout:
        """Nodes of the features and the targets."""
        return self.preprocessing.layout

    @property
    def n_members(self) -> int:
        """Number of networks."""
        return len(self.standardization.shift)

    @property
    def hidden_layer_sizes(self) -> tuple[int, ...]:
        """Widths of the hidden layers; empty in the linear form."""
        if self.parameters.output_weights is None:
            return ()
        return (self.parameters.input_bias.shape[-1], *(layer.bias.shape[-1] for layer in self.parameters.hidden))

    @property
    def has_all_nodes(self) -> bool:
        """Whether the sub-networks of all columns were trained, or only the targets'."""
        return bool(self.parameters.input_bias.shape[1] == self.layout.n_nodes)

    def of_members(self, members: NDArray[np.int64]) -> Networks:
        """Keep some networks."""
        parameters: Parameters = jax.tree.map(lambda a: a[members], self.parameters)
        return Networks(self.preprocessing, parameters, self.standardization.of_member(members))

    def of_features(self, kept: NDArray[np.bool_]) -> Networks:
        """Remove features from the targets' sub-networks; the mask is in the user's order of columns."""
        by_node = np.r_[kept[list(self.preprocessing.order)], np.ones(len(self.layout.targets), bool)]
        weights = np.array(self.parameters.input_weights)
        weights[:, ~by_node[self.layout.channel_nodes], -len(self.layout.targets) :] = 0
        return replace(self, parameters=self.parameters._replace(input_weights=weights))  # type: ignore[arg-type]

    def member(self, number: int) -> Parameters:
        """Return the weights of one network, as NumPy arrays."""
        parameters: Parameters = jax.tree.map(lambda a: np.asarray(a[number]), self.parameters)
        return parameters

    def predict(self, cells: NDArray[np.float64]) -> list[NDArray[np.float64]]:
        """Predict with every network.

        Parameters
        ----------
        cells : array of shape (rows, features)
            From :meth:`castlereg.data.preprocessing.Preprocessing.cells`.

        Returns
        -------
        list of array
            For each target, values of shape (members, rows) or probabilities of shape (members, rows, classes).
        """
        outputs = self.target_outputs(cells)
        return [target.decode(outputs[:, :, k]) for k, target in enumerate(self.preprocessing.targets)]

    def target_outputs(self, cells: NDArray[np.float64]) -> NDArray[np.float64]:
        """Run the targets' sub-networks on cells, shape (rows, features).

        Returns
        -------
        array of shape (members, rows, targets, outputs)
            Of numeric targets in the encoded unit of the table; logits of classes.
        """
        outputs = np.empty((self.n_members, len(cells), len(self.layout.targets), self.layout.output_width))
        for start in range(0, len(cells), _BLOCK):
            rows = cells[start : start + _BLOCK]
            block = self.preprocessing.encode(rows, room=-(-len(rows) // _MULTIPLE) * _MULTIPLE)
            for member, network in enumerate(self.target_networks):
                seen = self._as_seen(block, member)
                outputs[member, start : start + len(rows)] = forward(network, seen)[: len(rows)]  # type: ignore[arg-type]
        factor, offset = (array[:, None, :, None] for array in self.output_scales)
        outputs *= factor
        outputs += offset
        return outputs

    def _as_seen(self, block: NDArray[np.float64], member: int) -> NDArray[np.float64]:
        """Draw clipped channels in, and fill missing values with the member's own means."""
        if not self.layout.has_gaps and self.standardization.clip_center is None:
            return block
        by = self.standardization.of_member(member)
        seen: NDArray[np.float64] = drawn_in(block, by.clip_center, by.clip_rate, self.layout)
        return np.where(np.isnan(seen), by.shift[: block.shape[1]], seen) if self.layout.has_gaps else seen

    @cached_property
    def target_networks(self) -> list[Parameters]:
        """The targets' sub-networks of every member in float64, for features that are not yet standardized."""
        n_targets = len(self.layout.targets)
        nodes = self.parameters.input_bias.shape[1] - n_targets + np.arange(n_targets)  # they stand last
        return [
            _for_encoded(
                select(self.member(i), nodes), self.standardization.of_member(i), self.layout.n_feature_channels
            )
            for i in range(self.n_members)
        ]

    @cached_property
    def output_scales(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """What takes outputs to the encoded unit of the table: factors and offsets, each of shape (members, targets).

        They undo the members' standardization of numeric targets; those of classes are 1 and 0.
        """
        channels = self.layout.output_channels[list(self.layout.targets), 0]
        shift, scale = (
            a[:, channels].astype(np.float64) for a in (self.standardization.shift, self.standardization.scale)
        )
        is_numeric = np.array([target.is_numeric for target in self.preprocessing.targets])
        spread = np.where(scale > 0, 1 / np.where(scale > 0, scale, 1.0), 0.0)
        return np.where(is_numeric, spread, 1.0), np.where(is_numeric, shift, 0.0)

    # --- the sub-networks of all columns ----------------------------------------------------------

    def edge_weights(self) -> NDArray[np.float64]:
        """Return the weights of every member's edges, shape (members, nodes, nodes), columns in the user's order."""
        linear = self.parameters.output_weights is None
        weights: Any = self.parameters.input_weights
        return self._in_users_order(
            np.stack([edge_weights(of_member, self.layout, linear=linear) for of_member in weights])
        )

    def edge_strengths(self, table: Table) -> NDArray[np.float64]:
        """Return the strengths of every member's edges on the rows of a table, shaped like :meth:`edge_weights`."""
        return self._in_users_order(np.stack([edge_strengths(*seen) for seen in self._members_with(table)]))

    def log_likelihoods(self, table: Table) -> NDArray[np.float64]:
        """Return the mean log-likelihood of rows over all columns but constant ones, shape (members,)."""
        found = []
        for parameters, batch, layout, units in self._members_with(table):
            losses = cell_losses(forward(parameters, batch.inputs), batch, layout, None, units)
            scores = np.asarray(node_scores(mean_losses(losses, batch), layout, units), np.float64)
            found.append(-np.delete(scores, list(table.constant)).sum())
        return np.array(found)

    def _members_with(self, table: Table) -> Iterator[tuple[Parameters, Batch, Layout, Any]]:
        """Go through the members: weights, the rows as each sees them, the layout, units of the losses."""
        weight = np.ones(len(table.inputs), np.float32) if table.weight is None else table.weight
        for member in range(self.n_members):
            by = self.standardization.of_member(member)
            units = np.ones(self.layout.n_nodes, np.float32) if by.null_loss is None else by.null_loss
            batch = as_batch(table.inputs, weight / weight.sum(), by, self.layout)
            yield self.member(member), batch, self.layout, units

    def _in_users_order(self, by_edge: NDArray[np.float64]) -> NDArray[np.float64]:
        position = np.argsort(self.preprocessing.node_order())
        return by_edge[:, position[:, None], position]


def _for_encoded(network: Parameters, by: Standardization, n_channels: int) -> Parameters:
    """Fold ``(encoded - shift) * scale`` of the features' channels into the first layer, and drop other channels."""
    network = jax.tree.map(lambda a: np.asarray(a, np.float64), network)
    shift, scale = (np.asarray(a[:n_channels], np.float64) for a in (by.shift, by.scale))
    weights = network.input_weights[:n_channels]
    return network._replace(
        input_weights=weights * scale[:, None, None],
        input_bias=network.input_bias - np.tensordot(shift * scale, weights, axes=1),
    )
