"""Input noise: add fresh noise to the inputs in every step."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import numpy as np
from jax import Array
from numpy.typing import NDArray

from castlereg.layout import Layout
from castlereg.losses import Batch
from castlereg.options import check_number
from castlereg.regularizers.protocol import Regularizer, key, random_words


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
    >>> model = NetworkRegressor([InputNoise(0.1)], max_epochs=2, random_state=0)
    >>> model.fit([[0], [1], [2], [3]], [0, 1, 2, 3]).predict([[1], [2]]).shape
    (2,)
    """

    sigma: float = 0.1

    def __post_init__(self) -> None:
        check_number("InputNoise's sigma", self.sigma, least=0)

    def draw(self, rng: np.random.Generator, steps: int, hidden_layer_sizes: tuple[int, ...]) -> NDArray[np.uint32]:
        """Draw a key for every step."""
        return random_words(rng, steps)

    def on_batch(self, batch: Batch, drawn: Array, layout: Layout) -> Batch:
        """Add the noise."""
        noise = jax.random.normal(key(drawn), batch.inputs.shape, batch.inputs.dtype)
        return batch._replace(inputs=batch.inputs + self.sigma * noise)
