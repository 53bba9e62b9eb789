"""The loss that training minimizes: its gradient, and steps that train some sub-networks."""

from __future__ import annotations

import itertools
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from castlereg.layout import Layout, Node
from castlereg.network import initialize, mask_inputs
from castlereg.regularizers import L1, L2, Castle, Dropout
from castlereg.regularizers.engine import regularized_loss, trained_nodes
from castlereg.regularizers.protocol import check_regularizers
from tests.small_problems import numeric_layout, random_batch, random_parameters

MAKES = [Castle, partial(Castle, sparsity="group", capacity=True)]
SIZES: list[tuple[int, ...]] = [(), (4,), (4, 3), (4, 3, 5)]


@pytest.mark.parametrize(("make", "sizes"), [*itertools.product(MAKES, SIZES)])
def test_gradient_equals_finite_differences(
    mixed_layout: Layout, rng: np.random.Generator, make: Any, sizes: tuple[int, ...]
) -> None:
    with jax.enable_x64(True):
        batch = random_batch(mixed_layout, rng, dtype=np.float64)
        parameters = random_parameters(mixed_layout, sizes, rng, np.float64)
        flat, unravel = jax.flatten_util.ravel_pytree(parameters)

        def loss(vector: jax.Array) -> jax.Array:
            masked = mask_inputs(unravel(vector), jnp.asarray(mixed_layout.edge_mask(), np.float64))
            return regularized_loss(masked, batch, [make(0.3, 0.7)], mixed_layout)[0]

        gradient = jax.jit(jax.grad(loss))(flat)
        compiled = jax.jit(loss)
        for i in rng.choice(len(flat), 25, replace=False):
            step = jnp.zeros_like(flat).at[i].set(1e-6)
            slope = (compiled(flat + step) - compiled(flat - step)) / 2e-6
            np.testing.assert_allclose(gradient[i], slope, rtol=2e-6, atol=2e-7)


def test_sub_networks_are_trained_if_a_regularizer_needs_them() -> None:
    layout = numeric_layout(3)
    assert trained_nodes([], layout) == trained_nodes([L2(), L1()], layout) == (3,)
    assert trained_nodes([L2(), Castle()], layout) == (0, 1, 2, 3)
    assert trained_nodes([Castle(reconstruction=False, acyclicity=None)], layout) == (3,)


@pytest.mark.parametrize("sampled", [[1, 3, 4], [0, 4]])
def test_missing_values_of_sampled_nodes_do_not_count(
    mixed_layout: Layout, rng: np.random.Generator, sampled: list[int]
) -> None:
    parameters = random_parameters(mixed_layout, (4,), rng, np.float32)
    batch = random_batch(mixed_layout, rng, rows=6)
    observed = np.ones((6, 5), np.float32)
    observed[:3, 3] = observed[5, 1] = 0
    one, two = (
        regularized_loss(
            parameters,
            batch._replace(observed=jnp.asarray(observed), truth=batch.truth + filling * (1 - observed)[:, :, None]),
            [Castle(0.3)],
            mixed_layout,
            sampled=jnp.array(sampled),
            null_loss=jnp.arange(1.0, 6.0),
        )
        for filling in (0, 7)
    )
    np.testing.assert_allclose(one[0], two[0], rtol=1e-6)


def test_sampling_all_features_equals_the_whole_objective(rng: np.random.Generator) -> None:
    layout = numeric_layout(6)
    batch, parameters = random_batch(layout, rng), random_parameters(layout, (5, 5), rng, np.float32)
    arguments: Any = (parameters, batch, [Castle()], layout)
    sampled = regularized_loss(*arguments, sampled=jnp.arange(7))
    np.testing.assert_allclose(sampled[0], regularized_loss(*arguments)[0], rtol=1e-6)


def test_sampling_features_is_right_on_average(rng: np.random.Generator) -> None:
    """The mean over all pairs of sampled features is the whole reconstruction term."""
    layout = numeric_layout(4)
    batch, parameters = random_batch(layout, rng), random_parameters(layout, (5,), rng, np.float32)

    def reconstruction(sampled: jax.Array | None) -> jax.Array:
        return regularized_loss(parameters, batch, [Castle()], layout, sampled=sampled)[1][0]["reconstruction"]

    pairs = [(i, j) for i in range(4) for j in range(i + 1, 4)]
    sampled = [reconstruction(jnp.array([i, j, 4])) for i, j in pairs]
    np.testing.assert_allclose(np.mean(sampled), reconstruction(None), rtol=1e-5)


@pytest.mark.parametrize("make", [Castle, lambda beta: Castle(beta, sparsity="group")])
def test_the_gradient_of_sampled_features_is_right_on_average(rng: np.random.Generator, make: Any) -> None:
    """Each draw moves the sampled sub-networks only; the mean over all draws is the whole objective's gradient."""
    layout = numeric_layout(4)
    batch, parameters = random_batch(layout, rng), random_parameters(layout, (5, 5), rng, np.float32)
    regularizers = [make(0.3), L1(0.2), L2(0.1)]

    @jax.jit
    def gradient(sampled: jax.Array | None) -> Any:
        return jax.grad(lambda p: regularized_loss(p, batch, regularizers, layout, sampled=sampled)[0])(parameters)

    draws = [gradient(jnp.array([i, j, 4])) for i in range(4) for j in range(i + 1, 4)]
    assert not np.any(draws[0].input_weights[:, 2:4])
    whole = gradient(None)
    mean = jax.tree.map(lambda *each: np.mean(each, axis=0), *draws)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=2e-4, atol=2e-5 * np.abs(b).max()), mean, whole)


def test_the_target_is_never_an_input_of_a_plain_network(rng: np.random.Generator) -> None:
    layout = Layout((Node(), Node(), Node("categorical", 3, target=True)))
    parameters = initialize(layout, (4, 4), seed=1, nodes=trained_nodes((), layout))
    batch = random_batch(layout, rng)
    poisoned = batch._replace(inputs=batch.inputs.at[:, 2:].set(1e6))
    clean, dirty = (regularized_loss(parameters, b, (), layout)[0] for b in (batch, poisoned))
    assert float(clean) == float(dirty)


@pytest.mark.parametrize(
    ("regularizers", "message"),
    [
        (L2(0.1), r"regularizers=L2\(strength=0.1\) must be a sequence"),
        ("dropout", "regularizers='dropout' must be a sequence"),
        (None, "regularizers=None must be a sequence"),
        ([L2], r"contains <class '.*L2'>, which is not a regularizer; pass an instance, L2\(\)"),
        ([0.1], "contains 0.1, which is not a regularizer"),
        ([L2(0.1), L1(0.1), L2(0.2)], "L2 more than once"),
    ],
)
def test_what_is_not_a_sequence_of_regularizers_is_rejected(regularizers: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check_regularizers(regularizers)


def test_hidden_layers_are_needed_by_what_acts_on_them() -> None:
    assert check_regularizers([L2(), Castle()], ()) == (L2(), Castle())
    with pytest.raises(ValueError, match=r"Dropout acts on hidden layers, but hidden_layer_sizes=\(\) has none"):
        check_regularizers([Dropout()], ())
