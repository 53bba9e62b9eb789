"""Regularizers that change a step at random: dropout, input noise, corruption, MixUp."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from castlereg.layout import Layout
from castlereg.losses import Batch
from castlereg.options import check_number, check_share
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
    >>> model = NetworkRegressor([Dropout(0.2)], max_epochs=2, random_state=0).fit([[0], [1], [2], [3]], [0, 1, 2, 3])
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


@dataclass(frozen=True)
class InputNoise(Regularizer):
    """Add Gaussian noise to the standardized inputs, new in every step; the values to predict stay unchanged.

    Parameters
    ----------
    sigma : float
        Standard deviation, in standard deviations of the columns; the paper tries 0.1 and 0.01.

    Examples
    --------
    >>> from castlereg import NetworkRegressor
    >>> model = NetworkRegressor([InputNoise()], max_epochs=2, random_state=0).fit([[0], [1], [2], [3]], [0, 1, 2, 3])
    """

    sigma: float = 0.1

    def draw(self, rng: np.random.Generator, steps: int, hidden_layer_sizes: tuple[int, ...]) -> NDArray[np.uint32]:
        """Draw a key for every step."""
        return random_words(rng, steps)

    def on_batch(self, batch: Batch, drawn: Array, layout: Layout) -> Batch:
        """Add the noise."""
        noise = jax.random.normal(key(drawn), batch.inputs.shape, batch.inputs.dtype)
        return batch._replace(inputs=batch.inputs + self.sigma * noise)


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
    >>> model = NetworkRegressor([Corruption()], max_epochs=2, random_state=0).fit([[0], [1], [2], [3]], [0, 1, 2, 3])
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
    >>> model = NetworkRegressor([MixUp(0.2)], max_epochs=2, random_state=0).fit([[0], [1], [2], [3]], [0, 1, 2, 3])
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
