"""Trained networks that predict."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import jax
import numpy as np
from numpy.typing import NDArray

from castlereg.fitted.strengths import edge_strengths
from castlereg.fitted.target_network import ROWS_OF_A_PRODUCT, Floats, Repeated, TargetNetwork
from castlereg.layout import Layout
from castlereg.losses import Batch, as_batch, cell_losses, mean_losses, node_scores
from castlereg.network import Parameters, edge_weights, forward, select
from castlereg.table.preprocessing import Preprocessing
from castlereg.table.table import Standardization, Table, drawn_in
from castlereg.training import TrainedStack
from castlereg.training.devices import available_cores

_BLOCK = 1024  # rows that are predicted together, which stay in the processor's cache
_LONG = 256  # rows from which threads are faster


@dataclass(frozen=True)
class Networks:
    """Networks with the preprocessing that they share.

    Prediction runs only the targets' sub-networks, on the host, in float64 (with an embedding in float32): no
    compilation, and results that do not depend on the other rows of a call.
    """

    preprocessing: Preprocessing  # of all networks
    parameters: Parameters  # with a leading member axis; of all sub-networks of CASTLE
    standardization: Standardization  # of each member

    @classmethod
    def of(cls, preprocessing: Preprocessing, stack: TrainedStack) -> Networks:
        """Keep what prediction needs of a trained stack."""
        return cls(preprocessing, stack.parameters, stack.standardization)

    @classmethod
    def stacked(
        cls, preprocessing: Preprocessing, members: Sequence[Parameters], standardization: Standardization
    ) -> Networks:
        """Put networks of one form together."""
        parameters: Parameters = jax.tree.map(lambda *arrays: np.stack(arrays), *members)
        return cls(preprocessing, parameters, standardization)

    @cached_property
    def layout(self) -> Layout:
        """Nodes of the features and the targets, with the networks' embedding."""
        embedding = self.parameters.embedding
        layout = self.preprocessing.layout
        return layout if embedding is None else replace(layout, embedding=embedding.weights.shape[-1])

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
        weights[:, ~by_node[self.layout.input_nodes], -len(self.layout.targets) :] = 0
        return replace(self, parameters=self.parameters._replace(input_weights=weights))  # type: ignore[arg-type]

    def member(self, number: int) -> Parameters:
        """Return the weights of one network, as NumPy arrays."""
        parameters: Parameters = jax.tree.map(lambda a: np.asarray(a[number]), self.parameters)
        return parameters

    def predict(self, cells: NDArray[np.float64]) -> list[NDArray[np.float64]]:
        """Predict every target from cells, see :meth:`castlereg.table.preprocessing.Preprocessing.cells`.

        Values have shape (members, rows), probabilities (members, rows, classes).
        """
        targets = self.preprocessing.targets
        return [target.predicted(values) for target, values in zip(targets, self.predict_values(cells), strict=True)]

    def predict_values(self, cells: NDArray[np.float64]) -> list[NDArray[np.float64]]:
        """Predict every target like :meth:`predict`; all outputs, (members, rows, outputs), if it has its own loss."""
        outputs = self.target_outputs(cells)
        return [target.decode(outputs[:, :, k]) for k, target in enumerate(self.preprocessing.targets)]

    def target_outputs(self, cells: NDArray[np.float64]) -> NDArray[np.float64]:
        """Run the targets' sub-networks on cells, shape (rows, features) to (members, rows, targets, outputs).

        Outputs of numeric targets are in the encoded unit of the table; those of classes are logits.
        """
        return self.outputs_of_blocks(self.encoded_blocks(cells), len(cells))

    def encoded_blocks(self, cells: NDArray[np.float64]) -> Iterator[tuple[slice, NDArray[np.float64]]]:
        """Encode cells block by block; yield the rows of each block, and their channels with padding rows."""
        for start in range(0, len(cells), _BLOCK):
            rows = cells[start : start + _BLOCK]
            block = self.preprocessing.encode(rows, room=-(-len(rows) // ROWS_OF_A_PRODUCT) * ROWS_OF_A_PRODUCT)
            yield slice(start, start + len(rows)), block

    def outputs_of_blocks(
        self, blocks: Iterable[tuple[slice, NDArray[np.float64]]], n_rows: int
    ) -> NDArray[np.float64]:
        """Run the targets' sub-networks on encoded blocks; see :meth:`target_outputs`."""
        outputs = np.empty((self.n_members, n_rows, len(self.layout.targets), self.layout.output_width))
        for rows, block in blocks:
            outputs[:, rows] = [of_member[: rows.stop - rows.start] for of_member in self._outputs_of_block(block)]
        factor, offset = (array[:, None, :, None] for array in self.output_scales)
        outputs *= factor
        outputs += offset
        return outputs

    def _outputs_of_block(self, block: NDArray[np.float64]) -> list[Floats]:
        """Run every member's networks, with one thread per core if they take long."""
        shared: Repeated = {}

        def run(member: int) -> Floats:
            channels = self._channels_of_member(block, member)
            return self._arranged_networks[member].outputs(channels, shared if channels is block else {})

        members = range(len(self._arranged_networks))
        if len(block) < _LONG or self.parameters.embedding is None or self.n_members == 1:
            return [run(member) for member in members]
        try:
            with ThreadPoolExecutor(available_cores()) as threads:
                calls = [threads.submit(run, member) for member in members]
        except RuntimeError:  # no thread can be started: Python is exiting, or a limit is reached
            return [run(member) for member in members]
        return [call.result() for call in calls]

    def _channels_of_member(self, block: NDArray[np.float64], member: int) -> NDArray[np.float64]:
        """Clip channels, and fill missing values with the member's own means."""
        if not self.layout.has_missing and self.standardization.clip_center is None:
            return block
        by = self.standardization.of_member(member)
        clipped: NDArray[np.float64] = drawn_in(block, by.clip_center, by.clip_rate, self.layout)
        return np.where(np.isnan(clipped), by.shift[: block.shape[1]], clipped) if self.layout.has_missing else clipped

    @cached_property
    def target_networks(self) -> list[Parameters]:
        """The targets' sub-networks of every member in float64, for features that are not yet standardized."""
        n_targets = len(self.layout.targets)
        nodes = self.parameters.input_bias.shape[1] - n_targets + np.arange(n_targets)  # they come last
        return [
            _for_encoded(select(self.member(i), nodes), self.standardization.of_member(i), self.layout)
            for i in range(self.n_members)
        ]

    @cached_property
    def _arranged_networks(self) -> list[TargetNetwork]:
        return [TargetNetwork.of(network) for network in self.target_networks]

    @cached_property
    def output_scales(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Factors and offsets, each of shape (members, targets), that convert outputs to the table's encoded unit.

        They undo the members' standardization of targets with the squared error; for other targets they are 1 and 0.
        """
        channels = self.layout.output_channels[list(self.layout.targets), 0]
        shift, scale = (
            a[:, channels].astype(np.float64) for a in (self.standardization.shift, self.standardization.scale)
        )
        is_squared = self.layout.is_squared[list(self.layout.targets)]
        spread = np.where(scale > 0, 1 / np.where(scale > 0, scale, 1.0), 0.0)
        return np.where(is_squared, spread, 1.0), np.where(is_squared, shift, 0.0)

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
        return self._in_users_order(np.stack([edge_strengths(*arguments) for arguments in self._members_with(table)]))

    def log_likelihoods(self, table: Table) -> NDArray[np.float64]:
        """Return the mean log-likelihood of rows over all columns except constant ones, shape (members,)."""
        likelihoods = []
        for parameters, batch, layout, units in self._members_with(table):
            losses = cell_losses(forward(parameters, batch.inputs), batch, layout, None, units)
            scores = np.asarray(node_scores(mean_losses(losses, batch), layout, units), np.float64)
            likelihoods.append(-np.delete(scores, list(table.constant)).sum())
        return np.array(likelihoods)

    def _members_with(self, table: Table) -> Iterator[tuple[Parameters, Batch, Layout, Any]]:
        """Yield for each member its weights, its standardized rows, the layout and the units of the losses."""
        weight = np.ones(len(table.inputs)) if table.weight is None else table.weight.astype(np.float64)
        for member in range(self.n_members):
            by = self.standardization.of_member(member)
            units = np.ones(self.layout.n_nodes, np.float32) if by.null_loss is None else by.null_loss
            batch = as_batch(table.inputs, weight / weight.sum(), by, self.layout)
            yield self.member(member), batch, self.layout, units

    def _in_users_order(self, by_edge: NDArray[np.float64]) -> NDArray[np.float64]:
        position = np.argsort(self.preprocessing.node_order())
        return by_edge[:, position[:, None], position]


def _for_encoded(network: Parameters, by: Standardization, layout: Layout) -> Parameters:
    """Fold ``(encoded - shift) * scale`` of the features' channels into the first layer, and drop other channels."""
    network = jax.tree.map(lambda a: np.asarray(a, np.float64), network)
    n, after = layout.n_feature_channels, layout.n_channels
    shift, scale = (np.asarray(a[:n], np.float64) for a in (by.shift, by.scale))
    of_channels, of_embedding = network.input_weights[:n], network.input_weights[after:]
    embedding = network.embedding
    if embedding is not None:
        at = np.array(embedding.channels.indices, np.int64)
        frequencies = embedding.frequencies * scale[at, None]
        embedding = embedding._replace(frequencies=frequencies, phases=embedding.phases - frequencies * shift[at, None])
    weights: Any = np.concatenate([of_channels * scale[:, None, None], of_embedding])
    bias = network.input_bias - np.tensordot(shift * scale, of_channels, axes=1)
    return network._replace(input_weights=weights, input_bias=bias, embedding=embedding)
