"""The network against a loop over sub-networks."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import logistic

from castlereg.layout import Layout, Node
from castlereg.network import (
    Activation,
    Form,
    edge_weights,
    forward,
    initialize,
    mask_inputs,
    pack,
    select,
    squared_adjacency,
    target_outputs,
    unpack,
)

SIZES = [(), (6,), (5, 7), (4, 3, 2)]


@pytest.mark.parametrize("sizes", SIZES)
def test_forward_equals_a_loop_over_sub_networks(
    mixed_layout: Layout, rng: np.random.Generator, sizes: tuple[int, ...]
) -> None:
    """Eq. 3, one sub-network at a time."""
    parameters = jax.tree.map(
        lambda a: rng.normal(size=a.shape).astype(np.float32), initialize(mixed_layout, sizes, seed=0)
    )
    x = rng.normal(size=(9, mixed_layout.n_channels)).astype(np.float32)
    together = forward(parameters, jnp.asarray(x))
    for k in range(mixed_layout.n_nodes):
        z = x @ parameters.input_weights[:, k] + parameters.input_bias[k]
        if sizes:
            z = np.maximum(z, 0)
            for layer in parameters.hidden:
                z = np.maximum(z @ layer.weights + layer.bias, 0)
            z = z @ parameters.output_weights[k] + parameters.output_bias[k]
        np.testing.assert_allclose(together[:, k], z, rtol=2e-4, atol=2e-4)


@pytest.mark.parametrize("sizes", SIZES)
def test_a_subset_equals_the_whole(mixed_layout: Layout, rng: np.random.Generator, sizes: tuple[int, ...]) -> None:
    parameters = initialize(mixed_layout, sizes, seed=0)
    x = jnp.asarray(rng.normal(size=(9, mixed_layout.n_channels)), jnp.float32)
    nodes = np.array([1, 4])
    np.testing.assert_allclose(forward(parameters, x, nodes), forward(parameters, x)[:, nodes], rtol=1e-5, atol=1e-7)
    np.testing.assert_array_equal(forward(select(parameters, nodes), x), forward(parameters, x, nodes))


def test_numpy_and_jax_agree(mixed_layout: Layout, rng: np.random.Generator) -> None:
    parameters = initialize(mixed_layout, (5, 5), seed=0, input_init="glorot")
    x = rng.normal(size=(9, mixed_layout.n_channels)).astype(np.float32)
    on_host = forward(parameters, x)  # type: ignore[arg-type]
    assert isinstance(on_host, np.ndarray)
    np.testing.assert_allclose(on_host, forward(parameters, jnp.asarray(x)), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("sizes", SIZES)
def test_own_channels_never_reach_the_output(
    mixed_layout: Layout, rng: np.random.Generator, sizes: tuple[int, ...]
) -> None:
    parameters = jax.tree.map(lambda a: rng.normal(size=a.shape), initialize(mixed_layout, sizes, seed=0))
    masked = mask_inputs(parameters, jnp.asarray(mixed_layout.edge_mask()))
    x = rng.normal(size=(4, mixed_layout.n_channels)).astype(np.float32)
    for k in range(mixed_layout.n_nodes):
        other = x.copy()
        other[:, mixed_layout.channel_nodes == k] = 1e3
        np.testing.assert_array_equal(forward(masked, jnp.asarray(other))[:, k], forward(masked, jnp.asarray(x))[:, k])


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("input_init", ["small", "glorot"])
def test_plain_network_and_castle_start_from_the_same_target_weights(sizes: tuple[int, ...], input_init: str) -> None:
    layout = Layout((*(Node() for _ in range(6)), Node(target=True)))
    castle = initialize(layout, sizes, seed=3, input_init=input_init)  # type: ignore[arg-type]
    plain = initialize(layout, sizes, seed=3, nodes=layout.targets, input_init=input_init)  # type: ignore[arg-type]
    jax.tree.map(np.testing.assert_array_equal, select(castle, np.array(layout.targets)), plain)


def test_nodes_start_differently_and_seeds_matter() -> None:
    layout = Layout((Node(), Node(), Node(), Node(target=True)))
    one = initialize(layout, (5, 5), seed=0)
    assert not np.array_equal(one.input_weights[2, 0], one.input_weights[2, 1])
    assert not np.array_equal(one.input_weights, initialize(layout, (5, 5), seed=1).input_weights)
    np.testing.assert_array_equal(one.input_weights, initialize(layout, (5, 5), seed=0).input_weights)


def test_start_has_the_stated_scales() -> None:
    layout = Layout((*(Node() for _ in range(49)), Node(target=True)))
    small = initialize(layout, (60, 80), seed=0)
    free = layout.edge_mask() > 0
    assert np.asarray(small.input_weights)[free].std() == pytest.approx(0.01, rel=0.02)
    assert not np.asarray(small.input_weights)[~free].any()
    glorot = initialize(layout, (60, 80), seed=0, input_init="glorot")
    assert np.abs(glorot.input_weights).max() == pytest.approx(np.sqrt(6 / (50 + 60)), rel=0.01)
    assert np.abs(small.hidden[0].weights).max() == pytest.approx(np.sqrt(6 / (60 + 80)), rel=0.01)
    assert small.output_weights is not None
    assert np.abs(small.output_weights).max() == pytest.approx(np.sqrt(6 / (80 + 1)), rel=0.01)


@pytest.mark.parametrize("n_targets", [1, 2])
def test_the_targets_are_predicted_by_all_sub_networks_or_only_their_own(
    n_targets: int, rng: np.random.Generator
) -> None:
    layout = Layout((Node(), Node(), *(Node(target=True) for _ in range(n_targets))))
    every = initialize(layout, (5, 5), seed=0, input_init="glorot")
    x = jnp.asarray(rng.normal(size=(6, layout.n_channels)), jnp.float32)
    expected = forward(every, x)[:, 2:]
    for parameters in (every, select(every, np.array(layout.targets))):
        np.testing.assert_allclose(target_outputs(parameters, x, layout), expected, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("sizes", SIZES)
def test_unpack_undoes_pack(mixed_layout: Layout, sizes: tuple[int, ...]) -> None:
    parameters = initialize(mixed_layout, sizes, seed=0, input_init="glorot")
    back = unpack(pack(parameters), Form(sizes), mixed_layout)
    jax.tree.map(np.testing.assert_array_equal, back, parameters)


@pytest.mark.parametrize(("linear", "unit"), [(True, logistic.std()), (False, np.sqrt(logistic.std()))])
def test_edges_into_logits_are_in_units_of_their_noise(
    mixed_layout: Layout, rng: np.random.Generator, linear: bool, unit: float
) -> None:
    weights = rng.normal(size=(mixed_layout.n_channels, 5, 4)).astype(np.float32)
    found = edge_weights(weights, mixed_layout, linear=linear)
    for cause in range(5):
        channels = weights[mixed_layout.channel_nodes == cause].astype(np.float64)
        norms = np.linalg.norm(channels, axis=(0, 2))
        np.testing.assert_allclose(found[cause], norms / [1, 1, unit, unit, 1])


EMBEDDED = Layout((Node(), Node("categorical", 3), Node("binary"), Node(missing=True), Node(target=True)), embedding=3)


def test_all_inputs_of_a_number_belong_to_its_node(rng: np.random.Generator) -> None:
    parameters = mask_inputs(initialize(EMBEDDED, (5, 5), seed=0, input_init="glorot"), EMBEDDED.edge_mask())
    assert parameters.input_weights.shape[0] == EMBEDDED.n_inputs == EMBEDDED.n_channels + 2 * 3
    np.testing.assert_array_equal(EMBEDDED.input_nodes[-6:], [0, 0, 0, 3, 3, 3])
    x = rng.normal(size=(4, EMBEDDED.n_channels)).astype(np.float32)
    other = x.copy()
    other[:, 0] += 1
    changed = np.abs(np.asarray(forward(parameters, jnp.asarray(other)) - forward(parameters, jnp.asarray(x)))).max(
        axis=0
    )
    assert changed[0, 0] == 0 and (changed[1:, 0] > 0).all()
    by_hand = np.zeros((5, 5))
    for row, node in zip(np.asarray(parameters.input_weights), EMBEDDED.input_nodes, strict=True):
        by_hand[node] += np.square(row).sum(axis=-1)
    np.testing.assert_allclose(squared_adjacency(parameters.input_weights, EMBEDDED), by_hand, rtol=1e-5)


def test_waves_are_cosines_on_the_host_and_nearly_so_in_programs(rng: np.random.Generator) -> None:
    embedding = initialize(EMBEDDED, (5, 5), seed=0).embedding
    assert embedding is not None
    embedding = embedding._replace(frequencies=np.asarray(embedding.frequencies) * 20)  # several turns
    x = rng.normal(size=(50, EMBEDDED.n_channels))
    n, start = EMBEDDED.n_inputs, initialize(EMBEDDED, (), seed=0)
    as_outputs = start._replace(input_weights=np.eye(n)[:, None], input_bias=np.zeros((1, n)), embedding=embedding)
    inputs = forward(as_outputs, x)[:, 0]
    for i, channel in enumerate((0, 5)):
        waves = np.cos(2 * np.pi * (x[:, [channel]] * embedding.frequencies[i] + embedding.phases[i]))
        at = EMBEDDED.n_channels + 3 * i
        np.testing.assert_allclose(inputs[:, at : at + 3], waves @ embedding.weights[i], atol=1e-6)
    np.testing.assert_allclose(forward(as_outputs, jnp.asarray(x, jnp.float32))[:, 0], inputs, atol=2e-5)


def test_embedded_networks_survive_packing(rng: np.random.Generator) -> None:
    parameters = initialize(EMBEDDED, (5, 4), seed=0, activation="silu")
    back = unpack(pack(parameters), Form((5, 4), "silu"), EMBEDDED)
    assert jax.tree.structure(back) == jax.tree.structure(parameters)
    jax.tree.map(np.testing.assert_array_equal, back, parameters)
    x = rng.normal(size=(6, EMBEDDED.n_channels)).astype(np.float32)
    on_host = forward(parameters, x)  # type: ignore[arg-type]
    assert isinstance(on_host, np.ndarray)
    np.testing.assert_allclose(on_host, forward(parameters, jnp.asarray(x)), rtol=1e-4, atol=1e-5)


def test_silu_is_the_input_times_its_logistic() -> None:
    z = np.linspace(-5, 5, 11)
    np.testing.assert_allclose(Activation("silu")(z), z / (1 + np.exp(-z)))  # type: ignore[arg-type]
    np.testing.assert_allclose(Activation("silu")(jnp.asarray(z)), z / (1 + np.exp(-z)), rtol=1e-5)
