"""Dropout: set hidden units to zero at random."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from castlereg.options import check_share
from castlereg.regularizers.protocol import Regularizer, key, random_words


@dataclass(frozen=True)
class Dropout(Regularizer):
    """Set each hidden unit to zero with probability ``rate`` in each step, and scale the others up to make up for it.

    It acts after the ReLU of every hidden layer, separately on each row and sub-network. Predictions use all units.

    Parameters
    ----------
    rate : float
        Probability, at least 0 and below 1; the paper uses 0.2 and 0.5.

    Examples
    --------
    >>> from castlereg import NetworkRegressor
    >>> model = NetworkRegressor([Dropout(0.2)], max_epochs=2, random_state=0)
    >>> model.fit([[0], [1], [2], [3]], [0, 1, 2, 3]).predict([[1], [2]]).shape
    (2,)
    """

    rate: float = 0.2

    needs_hidden_layers = True

    def __post_init__(self) -> None:
        check_share("Dropout's rate", self.rate)

    def draw(self, rng: np.random.Generator, steps: int, hidden_layer_sizes: tuple[int, ...]) -> NDArray[np.uint32]:
        """Draw a key for every step and hidden layer."""
        return random_words(rng, steps, len(hidden_layer_sizes))

    def on_hidden(self, z: Array, layer: int, drawn: Array) -> Array:
        """Drop units."""
        keep = 1 - self.rate
        return jnp.where(jax.random.bernoulli(key(drawn[layer]), keep, z.shape), z / keep, 0.0)
