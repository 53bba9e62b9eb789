"""A trained stack that predicts: what an estimator keeps after fitting."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import jax
import numpy as np
from numpy.typing import NDArray

from castlereg.layout import Layout
from castlereg.network import Parameters, forward, select, squared_adjacency
from castlereg.tables.encoding import Scaling
from castlereg.training import TrainedStack

# Rows are predicted in blocks of these sizes. Filling up to a multiple of 16 keeps a lone row on the
# same matrix kernel as a full block, so a prediction never depends on how many rows were asked for.
_BLOCK = 4096
_MULTIPLE = 16


@dataclass(frozen=True)
class FittedNetwork:
    """Networks with what surrounds them.

    Prediction runs the target's sub-network alone, on the host, in float64: no compilation, and results that
    do not depend on the other rows of a call.

    Parameters
    ----------
    layout : Layout
    parameters : Parameters
        With a leading member axis; of all sub-networks of CASTLE.
    shift, scale : array of shape (members, channels)
        Each member's standardization.
    scaling : Scaling
        Of the features, before the members' own.
    """

    layout: Layout
    parameters: Parameters
    shift: NDArray[np.float32]
    scale: NDArray[np.float32]
    scaling: Scaling

    @classmethod
    def from_stack(cls, stack: TrainedStack, layout: Layout, scaling: Scaling) -> FittedNetwork:
        """Keep what prediction needs of a trained stack."""
        return cls(layout, stack.parameters, stack.shift, stack.scale, scaling)

    @property
    def n_members(self) -> int:
        """Number of networks."""
        return len(self.shift)

    def target_outputs(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """Run the target's sub-networks.

        Parameters
        ----------
        X : array of shape (rows, features)
            In the user's units.

        Returns
        -------
        array of shape (members, rows, outputs)
            Of numeric targets in the encoded unit of the table; logits of classes.
        """
        outputs = np.empty((self.n_members, len(X), self.layout.output_width))
        for start in range(0, len(X), _BLOCK):
            rows = X[start : start + _BLOCK]
            block = np.zeros((-(-len(rows) // _MULTIPLE) * _MULTIPLE, X.shape[1]))
            np.subtract(rows, self.scaling.center, out=block[: len(rows)])
            for member, network in enumerate(self._target_networks):
                outputs[member, start : start + len(rows)] = forward(network, block)[: len(rows), 0]  # type: ignore[arg-type]
        return self._destandardized(outputs)

    def edge_weights(self) -> NDArray[np.float64]:
        """Return the paper's ``M`` of every member, shape (members, nodes, nodes)."""
        return np.stack([np.sqrt(squared_adjacency(w.astype(np.float64), self.layout)) for w in self._input_weights()])

    def _input_weights(self) -> NDArray[np.float32]:
        return np.asarray(self.parameters.input_weights)

    @cached_property
    def _target_networks(self) -> list[Parameters]:
        """Cut out the target's sub-network of every member, with the scales of the features taken into its weights."""
        return [self._target_network(member) for member in range(self.n_members)]

    def _target_network(self, member: int) -> Parameters:
        d = self.layout.n_feature_channels
        (target,) = self.layout.targets
        held = self._input_weights().shape[2]
        node = np.array([target if held == self.layout.n_nodes else 0])
        one = select(jax.tree.map(lambda a: a[member], self.parameters), node)
        one = jax.tree.map(lambda a: np.asarray(a, np.float64), one)
        # Standardized features are ((X - center) / spread - shift) * scale; only X - center is left to do for each row.
        shift, scale = self.shift[member, :d].astype(np.float64), self.scale[member, :d].astype(np.float64)
        weights = one.input_weights[:d]
        network: Parameters = one._replace(
            input_weights=weights * (scale / self.scaling.spread)[:, None, None],
            input_bias=one.input_bias - np.tensordot(shift * scale, weights, axes=1),
        )
        return network

    def _destandardized(self, outputs: NDArray[np.float64]) -> NDArray[np.float64]:
        (target,) = self.layout.targets
        if self.layout.nodes[target].kind != "numeric":
            return outputs
        scale = self.scale[:, -1].astype(np.float64)
        spread = np.where(scale > 0, 1 / np.where(scale > 0, scale, 1.0), 0.0)
        return outputs * spread[:, None, None] + self.shift[:, -1, None, None]
