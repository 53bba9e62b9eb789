"""Trained networks that predict, and the graph that they have learned."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import jax
import numpy as np
from numpy.typing import NDArray

from castlereg.acyclicity.cut import acyclic_cut, weakest_strong_weight
from castlereg.data.preprocessing import Preprocessing
from castlereg.data.rows import Rows
from castlereg.data.table import Standardization, Table, drawn_in
from castlereg.data.targets import ClassTarget, Target
from castlereg.fitted.strengths import edge_strengths, enough_rows
from castlereg.graph.causal_graph import CausalGraph
from castlereg.graph.sortability import ColumnTraits
from castlereg.layout import EdgeRules, Layout
from castlereg.losses import Batch, as_batch, cell_losses, mean_losses, node_scores
from castlereg.network import Parameters, edge_weights, forward, select
from castlereg.regularizers import Regularizer
from castlereg.regularizers.castle import castle_of
from castlereg.training import TrainedStack

# Rows are predicted in blocks of these sizes. Filling up to a multiple of 16 keeps a lone row on the same matrix kernel
# as a full block, so a prediction never depends on how many rows were asked for.
_BLOCK = 4096
_MULTIPLE = 16


@dataclass(frozen=True)
class Networks:
    """Networks with the preprocessing that they share.

    Prediction runs only the targets' sub-networks, on the host, in float64: no compilation, and results that do not
    depend on the other rows of a call.
    """

    preprocessing: Preprocessing  # of all networks
    parameters: Parameters  # with a leading member axis; of all sub-networks of CASTLE
    standardization: Standardization  # of each member

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
        """Predict every target from cells, see :meth:`castlereg.data.preprocessing.Preprocessing.cells`.

        Values have shape (members, rows), probabilities (members, rows, classes).
        """
        outputs = self.target_outputs(cells)
        return [target.decode(outputs[:, :, k]) for k, target in enumerate(self.preprocessing.targets)]

    def target_outputs(self, cells: NDArray[np.float64]) -> NDArray[np.float64]:
        """Run the targets' sub-networks on cells, shape (rows, features) to (members, rows, targets, outputs).

        Outputs of numeric targets are in the encoded unit of the table; those of classes are logits.
        """
        return self.outputs_of_blocks(self.encoded_blocks(cells), len(cells))

    def encoded_blocks(self, cells: NDArray[np.float64]) -> Iterator[tuple[slice, NDArray[np.float64]]]:
        """Encode cells block by block: the rows of each, and their channels, filled up with rows of no meaning."""
        for start in range(0, len(cells), _BLOCK):
            rows = cells[start : start + _BLOCK]
            block = self.preprocessing.encode(rows, room=-(-len(rows) // _MULTIPLE) * _MULTIPLE)
            yield slice(start, start + len(rows)), block

    def outputs_of_blocks(
        self, blocks: Iterable[tuple[slice, NDArray[np.float64]]], n_rows: int
    ) -> NDArray[np.float64]:
        """Run the targets' sub-networks on encoded blocks; see :meth:`target_outputs`."""
        outputs = np.empty((self.n_members, n_rows, len(self.layout.targets), self.layout.output_width))
        for rows, block in blocks:
            for member, network in enumerate(self.target_networks):
                seen = self._as_seen(block, member)
                outputs[member, rows] = forward(network, seen)[: rows.stop - rows.start]  # type: ignore[arg-type]
        factor, offset = (array[:, None, :, None] for array in self.output_scales)
        outputs *= factor
        outputs += offset
        return outputs

    def _as_seen(self, block: NDArray[np.float64], member: int) -> NDArray[np.float64]:
        """Draw clipped channels in, and fill missing values with the member's own means."""
        if not self.layout.has_missing and self.standardization.clip_center is None:
            return block
        by = self.standardization.of_member(member)
        seen: NDArray[np.float64] = drawn_in(block, by.clip_center, by.clip_rate, self.layout)
        return np.where(np.isnan(seen), by.shift[: block.shape[1]], seen) if self.layout.has_missing else seen

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
        weight = np.ones(len(table.inputs)) if table.weight is None else table.weight.astype(np.float64)
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


def learned_graph(
    networks: Networks,
    names: Sequence[str],
    regularizers: Sequence[Regularizer],
    *,
    held_out: HeldOut,
    some_rows: Callable[[int], Table],
    traits: ColumnTraits | None,
    edges: EdgeRules | None,
    agreement_of: str = "",
) -> CausalGraph:
    """Make one graph of the edges of networks with the sub-networks of all columns.

    The weight of an edge is the norm of its input weights, as in the paper; for the graph objective it is the edge
    strength, on as many rows as ``some_rows`` is asked for. The threshold is the highest that costs no accuracy, or the
    least weight of a strong edge, whichever is lower. Names and edges are in the user's order.
    """
    castle = castle_of(regularizers)
    if castle is not None and castle.objective == "graph":
        widest = max(networks.hidden_layer_sizes, default=1)
        weights = networks.edge_strengths(some_rows(enough_rows(networks.layout, widest)))
    else:
        weights = networks.edge_weights()
    mean = np.asarray(weights.mean(axis=0))
    required = None if edges is None else edges.required
    threshold = min(sparsest_threshold(networks, mean, held_out), weakest_strong_weight(acyclic_cut(mean, required)))
    return CausalGraph.from_members(
        weights,
        names,
        target=list(names[networks.layout.n_features :]),
        threshold=threshold,
        required=required,
        traits=traits,
        agreement_of=agreement_of,
    )


_MOST_THRESHOLDS = 32
_MOST_ROWS = 20_000  # enough to know a mean loss; of more, evenly spaced ones are used


@dataclass(frozen=True)
class HeldOut:
    """Validation rows of networks."""

    cells: NDArray[np.float64]  # (rows, features), coded by the schema
    truth: Sequence[NDArray[Any]]  # (rows,), of each target
    spread: Sequence[float]  # standard deviation of each numeric target over all rows; not used for classes
    by_member: Sequence[NDArray[np.int64]]  # which of the rows were each network's validation rows, each once

    @classmethod
    def of(cls, targets: Sequence[Target], parts: Sequence[Rows], by_member: Sequence[NDArray[Any]]) -> HeldOut:
        """Collect coded rows of parts, one below the other, by the indices of every member's validation rows."""
        indices = [np.unique(rows).astype(np.int64) for rows in by_member]
        chosen = evenly(np.unique(np.concatenate(indices)), _MOST_ROWS)
        cells, first = [], 0
        for part in parts:
            of_part = chosen[(chosen >= first) & (chosen < first + len(part))] - first
            cells.append(part.take(of_part).columns.cells)
            first += len(part)
        truth = [np.concatenate(columns) for columns in zip(*(part.targets for part in parts), strict=True)]
        spread = [
            1.0 if isinstance(target, ClassTarget) else float(values.std())
            for target, values in zip(targets, truth, strict=True)
        ]
        positions = [np.searchsorted(chosen, np.intersect1d(rows, chosen)) for rows in indices]
        return cls(np.concatenate(cells), [values[chosen] for values in truth], spread, positions)


@dataclass(frozen=True)
class HeldOutPredictions:
    """True values of held-out rows, and the mean prediction of the networks that were not trained on them.

    Each target has values of shape (rows,), and predictions of shape (rows,) or (rows, classes).
    """

    truth: Sequence[NDArray[Any]]
    predicted: Sequence[NDArray[np.float64]]

    @classmethod
    def of(cls, networks: Networks, held_out: HeldOut) -> HeldOutPredictions:
        """Predict the held-out rows of every network."""
        n_rows = len(held_out.cells)
        totals = [
            np.zeros((n_rows, len(target.classes)) if isinstance(target, ClassTarget) else n_rows)
            for target in networks.preprocessing.targets
        ]
        counts = np.zeros(n_rows)
        for member, rows in enumerate(held_out.by_member):
            counts[rows] += 1
            predictions = networks.of_members(np.array([member])).predict(held_out.cells[rows])
            for total, predicted in zip(totals, predictions, strict=True):
                total[rows] += predicted[0]
        means = [total / counts.reshape(-1, *[1] * (total.ndim - 1)) for total in totals]
        return cls(list(held_out.truth), means)


def sparsest_threshold(networks: Networks, weights: NDArray[np.float64], held_out: HeldOut) -> float:
    """Choose the highest threshold at which the targets are still predicted nearly as well as at the best one.

    At a threshold, inputs whose mean learned weight into every target is below it are removed from the targets'
    sub-networks. Nearly is within one standard error of the mean loss of held-out rows.
    """
    n_features = networks.layout.n_features
    into_targets = weights[:n_features, n_features:].max(axis=1)
    # Zero, and weights at which one more feature is left out.
    thresholds = np.r_[0.0, evenly(np.unique(into_targets[into_targets > 0]), _MOST_THRESHOLDS)]
    losses = _losses(networks, [into_targets >= threshold for threshold in thresholds], held_out)
    means = losses.mean(axis=1)
    best = int(np.argmin(means))
    error = losses[best].std(ddof=1) / np.sqrt(losses.shape[1]) if losses.shape[1] > 1 else 0.0
    return float(thresholds[np.flatnonzero(means <= means[best] + error)[-1]])


def evenly(rows: NDArray[np.int64], most: int) -> NDArray[np.int64]:
    """Keep at most ``most`` rows, evenly spaced.

    Examples
    --------
    >>> import numpy as np
    >>> evenly(np.arange(10), 4)
    array([0, 3, 6, 9])
    """
    return rows if len(rows) <= most else rows[np.linspace(0, len(rows) - 1, most).astype(np.int64)]


def _losses(networks: Networks, kept: Sequence[NDArray[np.bool_]], held_out: HeldOut) -> NDArray[np.float64]:
    """Return the loss of every held-out row when only some features are kept, shape (choices of features, rows).

    Losses are summed over targets and averaged over the members that the row was held out for. Rows are encoded once,
    whatever the number of choices, and once for all members in a row that share them.
    """
    total, count = np.zeros((len(kept), len(held_out.cells))), np.zeros(len(held_out.cells))
    encoded_rows: NDArray[np.int64] | None = None
    for member, rows in enumerate(held_out.by_member):
        count[rows] += 1
        if encoded_rows is None or not np.array_equal(rows, encoded_rows):
            encoded_rows, blocks = rows, list(networks.encoded_blocks(held_out.cells[rows]))
        network = networks.of_members(np.array([member]))
        for of_choice, features in zip(total, kept, strict=True):
            (outputs,) = network.of_features(features).outputs_of_blocks(blocks, len(rows))
            for k, target in enumerate(networks.preprocessing.targets):
                predicted, values = target.decode(outputs[:, k]), held_out.truth[k][rows]
                if isinstance(target, ClassTarget):
                    likely = predicted[np.arange(len(rows)), target.codes(values)]
                    of_choice[rows] -= np.log(np.maximum(likely, 1e-12))
                else:
                    of_choice[rows] += ((predicted - values) / held_out.spread[k]) ** 2
    counted = count > 0
    return np.stack([of_choice[counted] / count[counted] for of_choice in total])
