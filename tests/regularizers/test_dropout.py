"""Dropout's expectation."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from castlereg.regularizers import Dropout


@pytest.mark.parametrize("rate", [0.2, 0.5, 0.9])
def test_share_dropped_and_expectation(rate: float, rng: np.random.Generator) -> None:
    dropout, n = Dropout(rate), 4000
    words = jnp.asarray(dropout.draw(rng, n, (3,)))
    z = jnp.asarray(rng.uniform(1, 2, size=(5, 2, 3)), jnp.float32)
    dropped = np.asarray(jax.vmap(lambda w: dropout.on_hidden(z, 0, w))(words))
    share = (dropped == 0).mean(axis=0)
    error = np.sqrt(rate * (1 - rate) / n)
    assert np.abs(share - rate).max() < 5 * error
    np.testing.assert_allclose(dropped[dropped != 0].min(), z.min() / (1 - rate), rtol=1e-5)
    # The mean over steps is the unit itself, within five standard errors.
    spread = np.asarray(z) * np.sqrt(rate / (1 - rate) / n)
    assert (np.abs(dropped.mean(axis=0) - np.asarray(z)) < 5 * spread).all()


def test_units_rows_layers_and_steps_are_dropped_independently(rng: np.random.Generator) -> None:
    dropout = Dropout(0.5)
    words = jnp.asarray(dropout.draw(rng, 2000, (4, 4)))
    z = jnp.ones((3, 1, 4))
    masks = np.stack(
        [np.asarray(jax.vmap(lambda w, layer=layer: dropout.on_hidden(z, layer, w))(words)) for layer in (0, 1)], axis=1
    )
    together = np.corrcoef((masks > 0).reshape(2000, -1).T) - np.eye(24)
    assert np.abs(together).max() < 5 / np.sqrt(2000)
    assert np.abs(np.corrcoef((masks[1:, 0, 0, 0, 0] > 0), (masks[:-1, 0, 0, 0, 0] > 0))[0, 1]) < 5 / np.sqrt(2000)


@pytest.mark.parametrize("rate", [1.0, -0.1, "half", True])
def test_bad_rates_are_named(rate: float) -> None:
    with pytest.raises(ValueError, match=f"Dropout's rate={rate!r} must be at least 0 and below 1"):
        Dropout(rate)
