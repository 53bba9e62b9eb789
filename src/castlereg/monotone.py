"""Predictions that never fall, or never rise, as a column grows: which signs the weights may have.

Every hidden unit has a sign, + and - in turn. A weight from one unit to another may only have the product of their
signs, a weight from a unit to an output of a target the sign of the unit (the opposite if the output is
subtracted, as distances of lower quantiles are), and a weight from a monotone column into a
target's sub-network the sign of the column times that of the unit. Activations that never fall keep this up from layer
to layer, so that each unit's value rises or falls with the column, as its sign says, and the target rises or falls with
it. Columns without a direction enter with weights of any sign: units of both signs together make any function of them.

Training sets a weight that a step takes across zero to zero. The promise is therefore exact, at every step.
"""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
from jax import Array
from numpy.typing import NDArray

from castlereg.layout import Layout
from castlereg.network import Dense, Parameters

Signs = NDArray[np.int8]


def unit_signs(width: int) -> Signs:
    """Return the signs of the units of a hidden layer.

    >>> unit_signs(3)
    array([ 1, -1,  1], dtype=int8)
    """
    return np.where(np.arange(width) % 2 == 0, 1, -1).astype(np.int8)


def weight_signs(parameters: Parameters, layout: Layout) -> Parameters:
    """Return the sign that every weight must have, 0 where it may have any; shaped like the parameters.

    The parameters are those of all sub-networks or of some, the targets' last.
    """
    signs: Any = jax.tree.map(lambda a: np.zeros(a.shape, np.int8), parameters)
    of_inputs = np.zeros(layout.n_inputs, np.int8)
    of_inputs[: layout.n_channels] = np.where(
        layout.is_input_only, 0, np.array([node.monotone for node in layout.nodes])[layout.channel_nodes]
    )
    first = -len(layout.targets)
    of_outputs = np.zeros((len(layout.targets), layout.output_width), np.int8)
    for row, k in zip(of_outputs, layout.targets, strict=True):
        loss = layout.nodes[k].loss
        row[: layout.nodes[k].outputs] = 1 if loss is None else loss.output_signs
    if parameters.output_weights is None:
        signs.input_weights[:, first:] = of_inputs[:, None, None] * of_outputs
        return signs
    units = unit_signs(parameters.input_weights.shape[-1])
    signs.input_weights[:, first:] = (of_inputs[:, None] * units)[:, None]
    hidden = []
    for layer in parameters.hidden:
        following = unit_signs(layer.bias.shape[-1])
        hidden.append(Dense(units[:, None] * following, np.zeros(len(following), np.int8)))  # type: ignore[arg-type]
        units = following
    signs.output_weights[first:] = units[:, None] * of_outputs[:, None]
    return signs._replace(hidden=tuple(hidden))


def with_signs(parameters: Parameters, layout: Layout) -> Parameters:
    """Turn round the weights that have a wrong sign, at the start; NumPy arrays."""
    if not layout.is_monotone:
        return parameters
    turned: Parameters = jax.tree.map(
        lambda weights, signs: np.where(signs == 0, weights, np.abs(weights) * signs).astype(weights.dtype),
        parameters,
        weight_signs(parameters, layout),
    )
    return turned


def keep_signs(parameters: Parameters, layout: Layout) -> Parameters:
    """Set the weights that have a wrong sign to zero, after a step; JAX arrays."""
    if not layout.is_monotone:
        return parameters

    def kept(weights: Array, signs: Signs) -> Array:
        if not signs.any():
            return weights
        return jax.numpy.where(weights * signs < 0, 0, weights)

    projected: Parameters = jax.tree.map(kept, parameters, weight_signs(parameters, layout))
    return projected
