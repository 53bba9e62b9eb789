"""Norms of weights against hand computations."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from castlereg.regularizers.norms import capacity_norm, group_norm, weight_norm
from tests.small_problems import numeric_layout, random_parameters


def test_group_norm_has_no_nan_gradient_at_masked_edges(rng: np.random.Generator) -> None:
    layout = numeric_layout(3)
    weights = jnp.asarray(rng.normal(size=(4, 4, 2)) * layout.edge_mask()[:, :, None], jnp.float32)
    gradient = jax.grad(lambda w: group_norm(w, layout))(weights)
    assert np.isfinite(gradient).all()
    np.testing.assert_allclose(
        group_norm(weights, layout), np.sqrt((np.asarray(weights) ** 2).sum(axis=-1)).sum(), rtol=1e-6
    )


def test_group_norm_leaves_required_edges_alone(rng: np.random.Generator) -> None:
    layout = numeric_layout(2)
    weights = jnp.asarray(rng.normal(size=(3, 3, 4)), np.float32)
    penalized = np.ones((3, 3), np.float32)
    penalized[0, 2] = 0
    without = weights.at[0, 2].set(0)
    np.testing.assert_allclose(
        group_norm(weights, layout, jnp.asarray(penalized)), group_norm(without, layout), rtol=1e-6
    )


@pytest.mark.parametrize("sizes", [(), (4,), (4, 5)])
def test_shares_weigh_the_layers_of_each_sub_network_and_not_the_shared_ones(
    rng: np.random.Generator, sizes: tuple[int, ...]
) -> None:
    network = random_parameters(numeric_layout(2), sizes, rng, np.float32)
    share = jnp.asarray([2.0, 0.0, 1.0])
    own = [] if network.output_weights is None else [np.abs(network.output_weights).sum(axis=(1, 2))]
    own += [np.abs(network.input_weights).sum(axis=(0, 2))]
    shared = sum(np.abs(layer.weights).sum() for layer in network.hidden)
    np.testing.assert_allclose(weight_norm(network, jnp.abs, share), np.sum(own, axis=0) @ share + shared, rtol=1e-5)
    later = sum((np.asarray(layer.weights) ** 2).sum() for layer in network.hidden)
    if network.output_weights is not None:
        later += (np.asarray(network.output_weights) ** 2).sum(axis=(1, 2)) @ np.asarray(share)
    np.testing.assert_allclose(capacity_norm(network, share), later, rtol=1e-5)
