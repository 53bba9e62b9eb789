"""TANGOS: hidden units that depend on few inputs, and on different ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from castlereg.network import Parameters, absolute, hidden_units, input_layer, select
from castlereg.options import check_integer, check_number
from castlereg.regularizers.protocol import Own, Pass, Regularizer

_LEAST_NORM = 1e-6  # smallest divisor of attributions, which are zero for a unit whose ReLU is off


@dataclass(frozen=True)
class Tangos(Regularizer):
    """Add a penalty on hidden units that depend on many inputs, and on pairs of units that depend on the same ones.

    TANGOS [1]_ is newer than the CASTLE paper, which does not include it. The attribution ``a_i(x)`` of a unit ``h_i``
    of the last hidden layer is its gradient in the inputs of a row, ``d h_i(x) / d x``. With ``B`` rows, ``d`` units
    and ``C = d (d - 1) / 2`` pairs of units, the penalty is::

          specialization    / (B d)  sum_b  sum_i      ||a_i(x_b)||_1
        + orthogonalization / (B C)  sum_b  sum_{i<j}  |cos(a_i(x_b), a_j(x_b))|

    Parameters
    ----------
    specialization : float
        Factor of the first term.
    orthogonalization : float
        Factor of the second term.
    pairs : int
        Number of pairs of units whose cosines are averaged, drawn at random in each step with equal probability. All
        pairs if there are not more than this.

    Notes
    -----
    The units are those of the targets' sub-networks; with several targets the penalties add up, as their losses do.
    The inputs are the standardized channels: every level of a categorical column, and every missing indicator, is a
    separate input, and embeddings of numbers are differentiated through. Rows are weighted as in the loss.

    The gradients are those of the dense layers and activations on the rows of the step. They ignore what other
    regularizers do between the layers, such as dropout and batch norm.

    These are the paper's terms. The authors' code also divides the first one by the number of inputs: divide its
    ``lambda_1`` by that number to get ``specialization``. It omits both terms in the first epochs; here they act from
    the start. In the cosines, norms below 1e-6 count as 1e-6, so that units whose ReLU is off have cosine 0.

    References
    ----------
    .. [1] Jeffares, Liu, Crabbe, Imrie, van der Schaar: TANGOS: Regularizing Tabular Neural Networks through Gradient
       Orthogonalization and Specialization. ICLR 2023.

    Examples
    --------
    >>> from castlereg import NetworkRegressor
    >>> model = NetworkRegressor([Tangos(0.1, 0.1)], max_epochs=2, random_state=0)
    >>> model = model.fit([[0, 1], [1, 0], [2, 2], [3, 1]], [0, 1, 2, 3])
    >>> {"specialization", "orthogonalization"} <= set(model.history_)
    True
    """

    specialization: float = 0.1
    orthogonalization: float = 0.1
    pairs: int = 50

    needs_hidden_layers = True
    terms = ("specialization", "orthogonalization")

    def __post_init__(self) -> None:
        check_number("Tangos's specialization", self.specialization, least=0)
        check_number("Tangos's orthogonalization", self.orthogonalization, least=0)
        check_integer("Tangos's pairs", self.pairs)

    def draw(self, rng: np.random.Generator, steps: int, hidden_layer_sizes: tuple[int, ...]) -> Any:
        """Draw the pairs of units of every step, shape (steps, pairs, 2); nothing if all pairs are used."""
        units = hidden_layer_sizes[-1]
        if units * (units - 1) // 2 <= self.pairs:
            return ()
        first = rng.integers(0, units, (steps, self.pairs), np.int32)
        distance = rng.integers(1, units, (steps, self.pairs), np.int32)
        return np.stack([first, (first + distance) % units], axis=-1)

    def penalty(self, seen: Pass, own: Own) -> tuple[Array, dict[str, Array]]:
        """Return the weighted terms and the terms."""
        attributions = unit_attributions(seen.target_parameters, seen.batch.inputs)
        pairs = None if isinstance(seen.drawn, tuple) else seen.drawn
        specialization = specialization_loss(attributions, seen.batch.weight)
        orthogonalization = orthogonalization_loss(attributions, seen.batch.weight, pairs)
        total = self.specialization * specialization + self.orthogonalization * orthogonalization
        return total, {"specialization": specialization, "orthogonalization": orthogonalization}


def unit_attributions(parameters: Parameters, x: Array) -> Array:
    """Return the gradients of the units of the last hidden layer in the channels of each row.

    Parameters
    ----------
    parameters : Parameters
        With at least one hidden layer.
    x : array of shape (rows, channels)
        Standardized.

    Returns
    -------
    array of shape (nodes, width, rows, channels)
    """

    def of_node(position: Array) -> Array:
        network = select(parameters, position[None])
        units, pull_back = jax.vjp(lambda x: hidden_units(network, input_layer(network, x))[:, 0], x)

        def of_unit(unit: Array) -> Array:  # rows are independent: all rows in one call
            (gradient,) = pull_back(jnp.broadcast_to(unit, units.shape))
            return gradient

        return jax.vmap(of_unit)(jnp.eye(units.shape[1], dtype=units.dtype))

    return jax.vmap(of_node)(jnp.arange(parameters.input_weights.shape[1]))


def specialization_loss(attributions: Array, weight: Array) -> Array:
    """Return the mean over rows and units of the l1 norm of attributions, summed over nodes, shape ().

    ``attributions`` are from :func:`unit_attributions`; ``weight``, shape (rows,), has the weights of rows in a mean.
    """
    return jnp.sum(weight[:, None] * absolute(attributions)) / attributions.shape[1]


def orthogonalization_loss(attributions: Array, weight: Array, pairs: Array | None = None) -> Array:
    """Return the mean over rows and pairs of units of the absolute cosine of attributions, summed over nodes.

    ``pairs``, shape (pairs, 2), has the indices of units; all pairs by default.
    """
    units = attributions.shape[1]
    squares = jnp.sum(attributions**2, axis=-1, keepdims=True)
    least = _LEAST_NORM**2
    directions = attributions / jnp.sqrt(jnp.where(squares > least, squares, least))
    if pairs is not None:
        cosines = jnp.sum(directions[:, pairs[:, 0]] * directions[:, pairs[:, 1]], axis=-1)  # (nodes, pairs, rows)
        return jnp.sum(weight * absolute(cosines)) / len(pairs)
    by_row = directions.swapaxes(1, 2)
    cosines = by_row @ by_row.swapaxes(2, 3)  # (nodes, rows, width, width)
    is_pair = np.triu(np.ones((units, units), bool), k=1)
    return jnp.sum(weight[:, None, None] * jnp.where(is_pair, absolute(cosines), 0.0)) / max(is_pair.sum(), 1)
