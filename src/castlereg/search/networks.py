"""Trained networks that predict on the host, and blends of them.

Prediction runs only the targets' sub-networks: no compilation, and results that do not depend on the other rows of a
call.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any, NamedTuple

import jax
import joblib
import numpy as np
from numpy.typing import NDArray

from castlereg.layout import Layout
from castlereg.network import WAVES, Activation, Parameters, edge_weights, select
from castlereg.table.encoding import Preprocessing, Standardization, clip_smoothly
from castlereg.training import TrainedStack

_BLOCK = 1024  # rows that are predicted together, which stay in the processor's cache
_LONG = 256  # rows from which threads are faster
# Rows of every matrix product. All products have one shape, for any number of rows in a call, so that a prediction does
# not depend on the other rows. With 8 rows it does not depend on the position of the row either; with 16 it would, in
# float32 on AVX2. Except for wide tables, the products are too small for BLAS threads, which would slow them down.
_ROWS_OF_A_PRODUCT = 8
_LARGEST = 1e15  # size of encoded values that float32 multiplies without overflow; larger ones count as this

_n_cores = cache(joblib.cpu_count)  # which reads files of the system

_Floats = NDArray[np.floating[Any]]
_Repeated = dict[tuple[int, ...], NDArray[np.float64]]  # values of channels, once for each of their waves


class _TargetNetwork(NamedTuple):
    """The targets' sub-networks of one member, from encoded channels to outputs.

    The mix of an embedding is part of the first layer, and columns without weights have no waves. With an embedding all
    layers but the last are in float32, as its waves are; the last layer and other networks are in float64.
    """

    embedded: tuple[int, ...]  # channels with waves
    frequencies: NDArray[np.float64]  # (embedded channels * waves,)
    phases: NDArray[np.float64]  # (embedded channels * waves,)
    wave_weights: _Floats  # from waves to units of all targets side by side
    layers: tuple[tuple[_Floats, _Floats], ...]  # weights and biases: from channels to these units, then shared layers
    last: tuple[_Floats, _Floats] | None  # (targets, 1, in, outputs), (targets, outputs); None in the linear form
    n_targets: int
    activation: Activation

    @classmethod
    def of(cls, parameters: Parameters) -> _TargetNetwork:
        """Arrange parameters in float64 whose first layer takes encoded channels."""
        n_inputs, n_targets, width = parameters.input_weights.shape
        weights: Any = np.asarray(parameters.input_weights).reshape(n_inputs, n_targets * width)
        embedding = parameters.embedding
        dtype = np.float64 if embedding is None or parameters.output_weights is None else np.float32
        embedded, frequencies, phases, wave_weights = (), np.empty(0), np.empty(0), np.empty((0, n_targets * width))
        if embedding is not None:
            n_embedded, _, n_mixed = embedding.weights.shape
            weights, mixed_weights = np.split(weights, [n_inputs - n_embedded * n_mixed])
            by_column = np.matmul(embedding.weights, mixed_weights.reshape(n_embedded, n_mixed, n_targets * width))
            used = np.flatnonzero(by_column.any(axis=(1, 2)))
            embedded = tuple(np.array(embedding.channels.indices)[used].tolist())
            frequencies, phases = (np.asarray(a)[used].ravel() for a in (embedding.frequencies, embedding.phases))
            wave_weights = by_column[used].reshape(len(used) * WAVES, n_targets * width)
        layers: Any = [(weights, np.ravel(parameters.input_bias)), *parameters.hidden]
        last: Any = None
        if parameters.output_weights is not None:
            last = parameters.output_weights[:, None], parameters.output_bias
        return cls(
            embedded,
            frequencies,
            phases,
            wave_weights.astype(dtype),
            tuple((w.astype(dtype), b.astype(dtype)) for w, b in layers),
            last,
            n_targets,
            parameters.activation,
        )

    def outputs(self, x: NDArray[np.float64], repeated: _Repeated) -> _Floats:
        """Predict, shape (rows, channels) to (rows, targets, outputs); rows are a multiple of _ROWS_OF_A_PRODUCT.

        ``repeated`` caches values for networks that embed the same channels of the same rows.
        """
        (weights, bias), *hidden = self.layers
        inside = x if weights.dtype == x.dtype else np.clip(x, -_LARGEST, _LARGEST)
        z = _product(inside.astype(weights.dtype, copy=False), weights)
        if self.embedded:
            if self.embedded not in repeated:
                repeated[self.embedded] = x[:, np.repeat(self.embedded, WAVES)]
            z += _product(self._waves(repeated[self.embedded]), self.wave_weights)
        z += bias
        if self.last is None:
            return z.reshape(len(x), self.n_targets, -1)
        activation: Any = self.activation
        z = activation(z).reshape(len(x) * self.n_targets, -1)
        for weights, bias in hidden:
            z = _product(z, weights)
            z += bias
            z = activation(z)
        units = np.moveaxis(z.reshape(-1, _ROWS_OF_A_PRODUCT, self.n_targets, z.shape[1]), 2, 0)
        outputs = np.matmul(units.astype(np.float64, copy=False), self.last[0]).reshape(self.n_targets, len(x), -1)
        return np.moveaxis(outputs, 0, 1) + self.last[1]

    def _waves(self, values: NDArray[np.float64]) -> NDArray[np.float32]:
        """Return ``cos(2 pi (frequencies x + phases))``, shape (rows, waves) of repeated values to the same."""
        turns = values * self.frequencies
        turns += self.phases
        turns -= np.rint(turns)  # in float64, so that no digits are lost; the cosine of float32 is fast
        waves = turns.astype(np.float32)
        waves *= np.float32(2 * np.pi)
        return np.cos(waves, out=waves)


def _product(x: _Floats, weights: _Floats) -> _Floats:
    tiles = x.reshape(-1, _ROWS_OF_A_PRODUCT, x.shape[1])
    return np.matmul(tiles, weights).reshape(len(x), weights.shape[1])


@dataclass(frozen=True)
class Networks:
    """Networks of one candidate with the preprocessing that they share, one for each fold or member."""

    preprocessing: Preprocessing
    parameters: Parameters  # with a leading member axis; of all sub-networks of CASTLE
    standardization: Standardization  # of each member

    @classmethod
    def of(cls, preprocessing: Preprocessing, stack: TrainedStack) -> Networks:
        """Keep what prediction needs of a trained stack."""
        return cls(preprocessing, stack.parameters, stack.standardization)

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

    @property
    def _target_nodes(self) -> NDArray[np.int64]:
        return np.arange(self.parameters.input_bias.shape[1])[-len(self.layout.targets) :]

    def take(self, members: NDArray[np.int64]) -> Networks:
        """Keep some networks."""
        parameters: Parameters = jax.tree.map(lambda a: a[members], self.parameters)
        return Networks(self.preprocessing, parameters, self.standardization.take(members))

    def with_features(self, kept: NDArray[np.bool_]) -> Networks:
        """Keep only some features, shape (features,), as inputs of the targets' sub-networks."""
        n_targets = len(self.layout.targets)
        weights = np.array(self.parameters.input_weights)
        weights[:, ~np.r_[kept, np.ones(n_targets, bool)][self.layout.input_nodes], -n_targets:] = 0
        return replace(self, parameters=self.parameters._replace(input_weights=weights))  # type: ignore[arg-type]

    def targets_only(self) -> Networks:
        """Keep only the targets' sub-networks, which are sufficient for prediction."""
        n_targets = len(self.layout.targets)
        if self.parameters.input_bias.shape[1] == n_targets:
            return self
        members = [select(self.member(i), self._target_nodes) for i in range(self.n_members)]
        parameters: Parameters = jax.tree.map(lambda *arrays: np.stack(arrays), *members)
        return replace(self, parameters=parameters)

    def member(self, number: int) -> Parameters:
        """Return the weights of one network, as NumPy arrays."""
        parameters: Parameters = jax.tree.map(lambda a: np.asarray(a[number]), self.parameters)
        return parameters

    def edge_weights(self) -> NDArray[np.float64]:
        """Return the weights of every member's edges, shape (members, nodes, nodes); see eq. 7."""
        linear = self.parameters.output_weights is None
        weights: Any = self.parameters.input_weights
        return np.stack([edge_weights(w, self.layout, linear=linear) for w in weights])

    def target_edge_weights(self) -> NDArray[np.float64]:
        """Return the largest weight of each feature into a target, shape (members, features)."""
        layout, n_targets = self.layout, len(self.layout.targets)
        weights: Any = self.parameters.input_weights
        squares = np.zeros((layout.n_nodes, len(weights), n_targets))
        squared_norms = np.square(weights[:, :, -n_targets:].astype(np.float64)).sum(axis=-1)
        np.add.at(squares, layout.input_nodes, squared_norms.swapaxes(0, 1))
        return np.asarray(np.sqrt(squares[: layout.n_features]).max(axis=-1).T)

    def predict_values(self, cells: NDArray[np.float64]) -> list[NDArray[np.float64]]:
        """Predict every target from coded cells, shape (rows, features).

        Values have shape (members, rows), probabilities (members, rows, classes), and the outputs of a target with its
        own loss (members, rows, outputs).
        """
        outputs = self.outputs(self.encoded_blocks(cells), len(cells))
        return [target.decode(outputs[:, :, k]) for k, target in enumerate(self.preprocessing.targets)]

    def encoded_blocks(self, cells: NDArray[np.float64]) -> Iterator[tuple[slice, NDArray[np.float64]]]:
        """Encode cells block by block; yield the rows of each block, and their channels with padding rows."""
        for start in range(0, len(cells), _BLOCK):
            rows = cells[start : start + _BLOCK]
            block = self.preprocessing.encode(rows, -(-len(rows) // _ROWS_OF_A_PRODUCT) * _ROWS_OF_A_PRODUCT)
            yield slice(start, start + len(rows)), block

    def outputs(self, blocks: Iterable[tuple[slice, NDArray[np.float64]]], n_rows: int) -> NDArray[np.float64]:
        """Run the targets' sub-networks on encoded blocks; return shape (members, rows, targets, outputs).

        Outputs of numeric targets are in the encoded unit of the table; those of classes are logits.
        """
        outputs = np.empty((self.n_members, n_rows, len(self.layout.targets), self.layout.output_width))
        for rows, block in blocks:
            outputs[:, rows] = [member[: rows.stop - rows.start] for member in self._block_outputs(block)]
        factor, offset = (array[:, None, :, None] for array in self.output_scales)
        outputs *= factor
        outputs += offset
        return outputs

    def _block_outputs(self, block: NDArray[np.float64]) -> list[_Floats]:
        """Run every member's networks, with one thread per core if they take long."""
        shared: _Repeated = {}

        def run(member: int) -> _Floats:
            channels = self._member_channels(block, member)
            return self._arranged_networks[member].outputs(channels, shared if channels is block else {})

        members = range(len(self._arranged_networks))
        if len(block) < _LONG or self.parameters.embedding is None or self.n_members == 1:
            return [run(member) for member in members]
        try:
            with ThreadPoolExecutor(_n_cores()) as threads:
                calls = [threads.submit(run, member) for member in members]
        except RuntimeError:  # no thread can be started: Python is exiting, or a limit is reached
            return [run(member) for member in members]
        return [call.result() for call in calls]

    def _member_channels(self, block: NDArray[np.float64], member: int) -> NDArray[np.float64]:
        """Clip channels, and fill missing values with the member's own means."""
        if not self.layout.has_missing and self.standardization.clip_center is None:
            return block
        own = self.standardization.take(member)
        clipped: NDArray[np.float64] = clip_smoothly(block, own.clip_center, own.clip_rate, self.layout)
        return np.where(np.isnan(clipped), own.shift[: block.shape[1]], clipped) if self.layout.has_missing else clipped

    @cached_property
    def target_networks(self) -> list[Parameters]:
        """The targets' sub-networks of every member in float64, for features that are not yet standardized."""
        members = [select(self.member(i), self._target_nodes) for i in range(self.n_members)]
        return [_for_encoded(own, self.standardization.take(i), self.layout) for i, own in enumerate(members)]

    @cached_property
    def _arranged_networks(self) -> list[_TargetNetwork]:
        return [_TargetNetwork.of(network) for network in self.target_networks]

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

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what is derived from the weights."""
        return {name: getattr(self, name) for name in ("preprocessing", "parameters", "standardization")}


def _for_encoded(network: Parameters, own: Standardization, layout: Layout) -> Parameters:
    """Fold ``(encoded - shift) * scale`` of the features' channels into the first layer, and drop other channels."""
    network = jax.tree.map(lambda a: np.asarray(a, np.float64), network)
    n, after = layout.n_feature_channels, layout.n_channels
    shift, scale = (np.asarray(a[:n], np.float64) for a in (own.shift, own.scale))
    channel_weights, embedded_weights = network.input_weights[:n], network.input_weights[after:]
    embedding = network.embedding
    if embedding is not None:
        at = np.array(embedding.channels.indices, np.int64)
        frequencies = embedding.frequencies * scale[at, None]
        embedding = embedding._replace(frequencies=frequencies, phases=embedding.phases - frequencies * shift[at, None])
    weights: Any = np.concatenate([channel_weights * scale[:, None, None], embedded_weights])
    bias = network.input_bias - np.tensordot(shift * scale, channel_weights, axes=1)
    return network._replace(input_weights=weights, input_bias=bias, embedding=embedding)


@dataclass(frozen=True)
class Blend:
    """Candidates that predict together, each with its weight; a single candidate has the weight 1.

    Every part has one network for each fold, or for each member of a plain fit. A fold's prediction is the weighted
    mean of its networks' predictions, so intervals, class sets and held-out predictions are those of folds.
    """

    parts: tuple[Networks, ...]
    weights: NDArray[np.float64]  # (parts,), summing to 1
    names: tuple[str, ...]  # of the candidates

    @property
    def preprocessing(self) -> Preprocessing:
        """Preprocessing from rows to channels."""
        return self.parts[0].preprocessing

    @property
    def n_members(self) -> int:
        """Number of folds."""
        return self.parts[0].n_members

    def take(self, members: NDArray[np.int64]) -> Blend:
        """Keep some folds."""
        return replace(self, parts=tuple(part.take(members) for part in self.parts))

    def predict(self, cells: NDArray[np.float64]) -> list[NDArray[np.float64]]:
        """Predict every target from coded cells: values (folds, rows), probabilities (folds, rows, classes)."""
        targets = self.preprocessing.targets
        return [target.predicted(values) for target, values in zip(targets, self.predict_values(cells), strict=True)]

    def predict_values(self, cells: NDArray[np.float64]) -> list[NDArray[np.float64]]:
        """Predict every target like :meth:`predict`; all outputs, (folds, rows, outputs), if it has its own loss."""
        if len(self.parts) == 1:
            return self.parts[0].predict_values(cells)
        targets = self.preprocessing.targets
        shapes = [target.decode(np.zeros((1, self.parts[0].layout.output_width))).shape[1:] for target in targets]
        totals = [np.zeros((self.n_members, len(cells), *shape)) for shape in shapes]
        for rows, block in self.parts[0].encoded_blocks(cells):  # encoded once for all parts
            n_rows = rows.stop - rows.start
            for part, weight in zip(self.parts, self.weights, strict=True):
                outputs = part.outputs([(slice(0, n_rows), block)], n_rows)
                for k, (target, total) in enumerate(zip(targets, totals, strict=True)):
                    total[:, rows] += weight * target.decode(outputs[:, :, k])
        return totals


def mean_over_members(values: Sequence[NDArray[np.float64]] | NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the mean over the first axis, summed in its order; NumPy's order depends on the number of rows."""
    total: NDArray[np.float64] = sum(values[1:], start=values[0])
    return total / len(values)
