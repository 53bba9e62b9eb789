"""Batch normalization against a NumPy reference, in training and in prediction."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from numpy.typing import NDArray

from castlereg.layout import Layout, Node
from castlereg.network import forward, initialize
from castlereg.regularizers import BatchNorm, Own
from castlereg.regularizers.batch_norm import _EPSILON

LAYOUT = Layout((Node(), Node(), Node(), Node(target=True)))
SIZES = (4, 5)


def start(n_nodes: int, rng: np.random.Generator) -> Own:
    own = BatchNorm().start(LAYOUT, SIZES, n_nodes, rng)
    trained = tuple(
        affine._replace(
            **{f: jnp.asarray(rng.uniform(0.5, 1.5, a.shape), jnp.float32) for f, a in affine._asdict().items()}
        )
        for affine in own.trained
    )
    return own._replace(trained=trained)


def weighted_moments(z: NDArray[np.float64], weight: NDArray[np.float64], axes: Any) -> tuple[Any, Any]:
    weights = np.broadcast_to(weight[:, None, None], z.shape)
    mean = (z * weights).sum(axis=axes) / weights.sum(axis=axes)
    return mean, ((z - mean) ** 2 * weights).sum(axis=axes) / weights.sum(axis=axes)


@pytest.mark.parametrize(("layer", "axes"), [(0, (0,)), (1, (0, 1))])
def test_training_equals_a_numpy_reference(layer: int, axes: Any, rng: np.random.Generator) -> None:
    """Over three batches, the last rows of which only fill up: normalized units and running statistics."""
    norm, own = BatchNorm(0.9), start(3, rng)
    mean, variance = 0.0, 1.0
    for batch in range(3):
        z = rng.normal(2, 3, size=(8, 3, SIZES[layer]))
        weight = np.array([1, 2, 1, 1, 1, 1, 0, 0]) / 7
        out, own = norm.on_dense(jnp.asarray(z, jnp.float32), layer, jnp.asarray(weight), None, own)
        here_mean, here_variance = weighted_moments(z, weight, axes)
        gamma, beta = (np.asarray(a, np.float64) for a in own.trained[layer])
        expected = gamma * (z - here_mean) / np.sqrt(here_variance + _EPSILON) + beta
        np.testing.assert_allclose(out, expected, rtol=1e-4, atol=1e-5)
        keep = min(0.9, batch / (batch + 1))
        mean, variance = keep * mean + (1 - keep) * here_mean, keep * variance + (1 - keep) * here_variance
        np.testing.assert_allclose(own.running[layer].mean, mean, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(own.running[layer].variance, variance, rtol=1e-4)


def test_prediction_equals_a_numpy_reference(rng: np.random.Generator) -> None:
    norm, own = BatchNorm(), start(1, rng)
    for layer in (0, 1):
        z = jnp.asarray(rng.normal(1, 2, size=(8, 1, SIZES[layer])), jnp.float32)
        _, own = norm.on_dense(z, layer, jnp.full(8, 1 / 8), None, own)
    network = initialize(LAYOUT, SIZES, seed=0, nodes=(3,), input_init="glorot")
    x = rng.normal(size=(6, 4))

    def normalized(z: NDArray[np.float64], layer: int) -> NDArray[np.float64]:
        (gamma, beta), (mean, variance, _) = own.trained[layer], own.running[layer]
        scaled = (z - np.asarray(mean).ravel()) / np.sqrt(np.asarray(variance).ravel() + _EPSILON)
        return np.maximum(scaled * np.asarray(gamma).ravel() + np.asarray(beta).ravel(), 0)

    units = normalized(x @ network.input_weights[:, 0] + network.input_bias[0], 0)
    units = normalized(units @ network.hidden[0].weights + network.hidden[0].bias, 1)
    expected = units @ network.output_weights[0] + network.output_bias[0]
    folded = norm.folded(network, own)
    np.testing.assert_allclose(forward(folded, jnp.asarray(x, jnp.float32))[:, 0], expected, rtol=1e-4, atol=1e-5)


def test_only_sampled_sub_networks_move_their_statistics(rng: np.random.Generator) -> None:
    norm, before = BatchNorm(), start(4, rng)
    z = jnp.asarray(rng.normal(1, 2, size=(8, 2, 4)), jnp.float32)
    out, after = norm.on_dense(z, 0, jnp.full(8, 1 / 8), jnp.array([1, 3]), before)
    np.testing.assert_array_equal(after.running[0].batches, [0, 1, 0, 1])
    np.testing.assert_array_equal(after.running[0].mean[0], before.running[0].mean[0])
    of_node = start(1, rng)._replace(
        trained=(type(before.trained[0])(*(a[1:2] for a in before.trained[0])), before.trained[1])
    )
    alone, _ = norm.on_dense(z[:, :1], 0, jnp.full(8, 1 / 8), None, of_node)
    np.testing.assert_allclose(out[:, :1], alone, rtol=1e-6)


def test_a_single_row_is_normalized_by_what_was_seen_before(rng: np.random.Generator) -> None:
    norm, own = BatchNorm(), start(1, rng)
    weight = jnp.asarray([1.0] + [0.0] * 7)
    z = jnp.asarray(rng.normal(1, 2, size=(8, 1, 4)), jnp.float32)
    _, own = norm.on_dense(z, 0, jnp.full(8, 1 / 8), None, own)
    out, after = norm.on_dense(z, 0, weight, None, own)
    (gamma, beta), (mean, variance, _) = own.trained[0], own.running[0]
    expected = (z[0] - mean) / np.sqrt(variance + _EPSILON)
    np.testing.assert_allclose(out[0], gamma * expected + beta, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(after.running[0].variance, variance, rtol=1e-6)
