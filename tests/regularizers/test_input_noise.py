"""Input noise: how much, and on what."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from castlereg.layout import Layout, Node
from castlereg.losses import Batch
from castlereg.regularizers import InputNoise


def test_inputs_get_noise_of_the_stated_size_and_nothing_else_does(rng: np.random.Generator) -> None:
    noise, steps = InputNoise(0.1), 500
    words = jnp.asarray(noise.draw(rng, steps, ()))
    batch = Batch(*(jnp.asarray(rng.normal(size=shape), jnp.float32) for shape in ((16, 3), (16, 3, 1), (16,))))
    noisy = jax.vmap(lambda w: noise.on_batch(batch, w, Layout((Node(), Node(target=True)))))(words)
    added = np.asarray(noisy.inputs - batch.inputs)
    n = added.size
    assert abs(added.mean()) < 5 * 0.1 / np.sqrt(n)
    assert abs(added.std() - 0.1) < 5 * 0.1 / np.sqrt(2 * n)
    assert np.abs(np.corrcoef(added.reshape(steps, -1).T) - np.eye(48)).max() < 5.5 / np.sqrt(steps)
    np.testing.assert_array_equal(noisy.truth[7], batch.truth)
    np.testing.assert_array_equal(noisy.weight[7], batch.weight)
