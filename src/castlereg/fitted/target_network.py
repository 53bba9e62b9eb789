"""The targets' sub-networks of one member, arranged for prediction on the host."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from castlereg.network import WAVES, Activation, Parameters

# Rows of every matrix product. All products have one shape, for any number of rows in a call, so that a prediction does
# not depend on the other rows. With 8 rows it does not depend on the position of the row either; with 16 it would, in
# float32 on AVX2. Except for wide tables, the products are too small for BLAS threads, which would slow them down.
ROWS_OF_A_PRODUCT = 8
_LARGEST = 1e15  # size of encoded values that float32 multiplies without overflow; larger ones count as this

Floats = NDArray[np.floating[Any]]
Repeated = dict[tuple[int, ...], NDArray[np.float64]]  # values of channels, once for each of their waves


class TargetNetwork(NamedTuple):
    """Networks from encoded channels to the outputs of the targets.

    The mix of an embedding is part of the first layer, and columns without weights have no waves. With an embedding all
    layers but the last are in float32, as its waves are; the last layer and other networks are in float64.
    """

    embedded: tuple[int, ...]  # channels with waves
    frequencies: NDArray[np.float64]  # (embedded channels * waves,)
    phases: NDArray[np.float64]  # (embedded channels * waves,)
    of_waves: Floats  # weights from waves to units of all targets side by side
    layers: tuple[tuple[Floats, Floats], ...]  # weights and biases: from channels to these units, then shared layers
    last: tuple[Floats, Floats] | None  # (targets, 1, in, outputs), (targets, outputs); None in the linear form
    n_targets: int
    activation: Activation

    @classmethod
    def of(cls, parameters: Parameters) -> TargetNetwork:
        """Arrange parameters in float64 whose first layer takes encoded channels."""
        n_inputs, n_targets, width = parameters.input_weights.shape
        weights: Any = np.asarray(parameters.input_weights).reshape(n_inputs, n_targets * width)
        embedding = parameters.embedding
        dtype = np.float64 if embedding is None or parameters.output_weights is None else np.float32
        embedded, frequencies, phases, of_waves = (), np.empty(0), np.empty(0), np.empty((0, n_targets * width))
        if embedding is not None:
            n_embedded, _, n_mixed = embedding.weights.shape
            weights, of_mixed = np.split(weights, [n_inputs - n_embedded * n_mixed])
            by_column = np.matmul(embedding.weights, of_mixed.reshape(n_embedded, n_mixed, n_targets * width))
            used = np.flatnonzero(by_column.any(axis=(1, 2)))
            embedded = tuple(np.array(embedding.channels.indices)[used].tolist())
            frequencies, phases = (np.asarray(a)[used].ravel() for a in (embedding.frequencies, embedding.phases))
            of_waves = by_column[used].reshape(len(used) * WAVES, n_targets * width)
        layers: Any = [(weights, np.ravel(parameters.input_bias)), *parameters.hidden]
        last: Any = None
        if parameters.output_weights is not None:
            last = parameters.output_weights[:, None], parameters.output_bias
        return cls(
            embedded,
            frequencies,
            phases,
            of_waves.astype(dtype),
            tuple((w.astype(dtype), b.astype(dtype)) for w, b in layers),
            last,
            n_targets,
            parameters.activation,
        )

    def outputs(self, x: NDArray[np.float64], repeated: Repeated) -> Floats:
        """Predict, shape (rows, channels) to (rows, targets, outputs); rows are a multiple of ROWS_OF_A_PRODUCT.

        ``repeated`` caches values for networks that embed the same channels of the same rows.
        """
        (weights, bias), *hidden = self.layers
        inside = x if weights.dtype == x.dtype else np.clip(x, -_LARGEST, _LARGEST)
        z = _product(inside.astype(weights.dtype, copy=False), weights)
        if self.embedded:
            if self.embedded not in repeated:
                repeated[self.embedded] = x[:, np.repeat(self.embedded, WAVES)]
            z += _product(self._waves(repeated[self.embedded]), self.of_waves)
        z += bias
        if self.last is None:
            return z.reshape(len(x), self.n_targets, -1)
        z = self._activated(z).reshape(len(x) * self.n_targets, -1)
        for weights, bias in hidden:
            z = _product(z, weights)
            z += bias
            z = self._activated(z)
        units = np.moveaxis(z.reshape(-1, ROWS_OF_A_PRODUCT, self.n_targets, z.shape[1]), 2, 0)
        outputs = np.matmul(units.astype(np.float64, copy=False), self.last[0]).reshape(self.n_targets, len(x), -1)
        return np.moveaxis(outputs, 0, 1) + self.last[1]

    def _activated(self, z: Any) -> Floats:
        return self.activation(z)  # type: ignore[return-value]

    def _waves(self, values: NDArray[np.float64]) -> NDArray[np.float32]:
        """Return ``cos(2 pi (frequencies x + phases))``, shape (rows, waves) of repeated values to the same."""
        turns = values * self.frequencies
        turns += self.phases
        turns -= np.rint(turns)  # in float64, so that no digits are lost; the cosine of float32 is fast
        waves = turns.astype(np.float32)
        waves *= np.float32(2 * np.pi)
        return np.cos(waves, out=waves)


def _product(x: Floats, weights: Floats) -> Floats:
    tiles = x.reshape(-1, ROWS_OF_A_PRODUCT, x.shape[1])
    return np.matmul(tiles, weights).reshape(len(x), weights.shape[1])
