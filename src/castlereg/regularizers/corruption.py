"""Corruption: replace some cells of every step by cells of other rows."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from castlereg.layout import Layout
from castlereg.losses import Batch
from castlereg.options import check_share
from castlereg.regularizers.protocol import Regularizer, key, random_words


@dataclass(frozen=True)
class Corruption(Regularizer):
    """Replace each input cell with probability ``rate`` by that of another row of the batch, new in every step.

    All channels of a cell are replaced together; the values to predict stay unchanged. Networks then cannot rely on a
    single column, which helps on some tables with redundant columns and harms on others.

    Parameters
    ----------
    rate : float
        Probability, at least 0 and below 1.

    Examples
    --------
    >>> from castlereg import NetworkRegressor
    >>> model = NetworkRegressor([Corruption(0.1)], max_epochs=2, random_state=0)
    >>> model.fit([[0], [1], [2], [3]], [0, 1, 2, 3]).predict([[1], [2]]).shape
    (2,)
    """

    rate: float = 0.1

    def __post_init__(self) -> None:
        check_share("Corruption's rate", self.rate)

    def draw(self, rng: np.random.Generator, steps: int, hidden_layer_sizes: tuple[int, ...]) -> NDArray[np.uint32]:
        """Draw a key for every step."""
        return random_words(rng, steps)

    def on_batch(self, batch: Batch, drawn: Array, layout: Layout) -> Batch:
        """Replace cells by those of the next row; rows that only pad the batch stay unchanged."""
        position = jnp.arange(len(batch.weight), dtype=jnp.int32)
        present = jnp.maximum(jnp.sum(batch.weight > 0), 1).astype(position.dtype)  # they come first
        donor = jnp.where(position < present, (position + 1) % present, position)
        replaced = jax.random.bernoulli(key(drawn), self.rate, (len(position), layout.n_nodes))
        by_channel = jnp.take(replaced, jnp.asarray(layout.channel_nodes, jnp.int32), axis=1)
        return batch._replace(inputs=jnp.where(by_channel, jnp.take(batch.inputs, donor, axis=0), batch.inputs))
