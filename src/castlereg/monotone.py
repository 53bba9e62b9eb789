"""Predictions that never fall, or never rise, as a column increases: constraints on the signs of the weights.

Every hidden unit has a sign, + and - alternately. The allowed signs of weights are:

- from one unit to another, the product of their signs;
- from a unit to an output of a target, the sign of the unit (the opposite if the output is subtracted, as are the
  distances of lower quantiles);
- from a monotone column into a target's sub-network, the sign of the column times that of the unit.

With non-decreasing activations, each unit's value then rises or falls with the column according to its sign, and the
target rises or falls with the column. Weights of columns without a direction may have any sign: units of both signs
together can represent any function of them.

After each step, training sets weights that crossed zero to zero. The constraint therefore holds exactly at every step.
"""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
from jax import Array
from numpy.typing import NDArray

from castlereg.layout import Layout
from castlereg.network import Dense, Parameters

_Signs = NDArray[np.int8]


def _unit_signs(width: int) -> _Signs:
    """Return the signs of the units of a hidden layer: 1, -1, 1, ..."""
    return np.where(np.arange(width) % 2 == 0, 1, -1).astype(np.int8)


def weight_signs(parameters: Parameters, layout: Layout) -> Parameters:
    """Return the required sign of every weight, 0 for no constraint, in the structure of the parameters.

    The parameters are those of all sub-networks or of some, with those of the targets last.
    """
    signs: Any = jax.tree.map(lambda a: np.zeros(a.shape, np.int8), parameters)
    input_signs = np.zeros(layout.n_inputs, np.int8)
    input_signs[: layout.n_channels] = np.where(
        layout.is_input_only, 0, np.array([node.monotone for node in layout.nodes])[layout.channel_nodes]
    )
    first = -len(layout.targets)
    target_signs = np.zeros((len(layout.targets), layout.output_width), np.int8)
    for row, k in zip(target_signs, layout.targets, strict=True):
        loss = layout.nodes[k].loss
        row[: layout.nodes[k].outputs] = 1 if loss is None else loss.output_signs
    if parameters.output_weights is None:
        signs.input_weights[:, first:] = input_signs[:, None, None] * target_signs
        return signs
    units = _unit_signs(parameters.input_weights.shape[-1])
    signs.input_weights[:, first:] = (input_signs[:, None] * units)[:, None]
    hidden = []
    for layer in parameters.hidden:
        following = _unit_signs(layer.bias.shape[-1])
        hidden.append(Dense(units[:, None] * following, np.zeros(len(following), np.int8)))  # type: ignore[arg-type]
        units = following
    signs.output_weights[first:] = units[:, None] * target_signs[:, None]
    return signs._replace(hidden=tuple(hidden))


def with_signs(parameters: Parameters, layout: Layout) -> Parameters:
    """Flip the signs of starting weights that have the wrong sign; for NumPy arrays."""
    if not layout.is_monotone:
        return parameters
    flipped: Parameters = jax.tree.map(
        lambda weights, signs: np.where(signs == 0, weights, np.abs(weights) * signs).astype(weights.dtype),
        parameters,
        weight_signs(parameters, layout),
    )
    return flipped


def keep_signs(parameters: Parameters, layout: Layout) -> Parameters:
    """Set weights with the wrong sign to zero after a step; for JAX arrays."""
    if not layout.is_monotone:
        return parameters

    def projection(weights: Array, signs: _Signs) -> Array:
        if not signs.any():
            return weights
        return jax.numpy.where(weights * signs < 0, 0, weights)

    projected: Parameters = jax.tree.map(projection, parameters, weight_signs(parameters, layout))
    return projected
