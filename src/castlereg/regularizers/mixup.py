"""MixUp: train on mixtures of two rows."""

from __future__ import annotations

from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from castlereg.layout import Layout
from castlereg.losses import Batch
from castlereg.options import check_number
from castlereg.regularizers.protocol import Regularizer


@dataclass(frozen=True)
class MixUp(Regularizer):
    """Replace every row of a batch by a mixture with another row, in the inputs and in the values to predict.

    The share ``m`` of the first row is drawn from Beta(alpha, alpha) for each step. Classes become shares of classes.
    The partners are rows of the same batch, shifted by a random number of positions: batches are already in random
    order.

    Parameters
    ----------
    alpha : float
        Small values leave most rows nearly unchanged; 1 makes all mixtures equally likely. The paper does not state its
        value.

    Examples
    --------
    >>> from castlereg import NetworkRegressor
    >>> model = NetworkRegressor([MixUp(0.2)], max_epochs=2, random_state=0)
    >>> model.fit([[0], [1], [2], [3]], [0, 1, 2, 3]).predict([[1], [2]]).shape
    (2,)
    """

    alpha: float = 0.2

    def __post_init__(self) -> None:
        check_number("MixUp's alpha", self.alpha, above=0)

    def draw(self, rng: np.random.Generator, steps: int, hidden_layer_sizes: tuple[int, ...]) -> NDArray[np.float32]:
        """Draw for every step the share of the first row, and the shift of the partners as a share of the batch."""
        return np.column_stack([rng.beta(self.alpha, self.alpha, steps), rng.random(steps)]).astype(np.float32)

    def on_batch(self, batch: Batch, drawn: Array, layout: Layout) -> Batch:
        """Mix the rows, except those that only pad the batch."""
        share, turn = drawn[0], drawn[1]
        position = jnp.arange(len(batch.weight))
        present = jnp.sum(batch.weight > 0)  # they come first
        offset = jnp.minimum((turn * present).astype(position.dtype), present - 1)
        partner = jnp.where(position < present, (position + offset) % jnp.maximum(present, 1), position)

        def mixed(array: Array) -> Array:
            return share * array + (1 - share) * array[partner]

        # A mixture with a missing value is missing.
        observed = None if batch.observed is None else batch.observed * batch.observed[partner]
        return Batch(mixed(batch.inputs), mixed(batch.truth), mixed(batch.weight), observed)
