"""The method against the paper's matrix formulas, hand computations, and the trainer."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg
from numpy.typing import NDArray

from castlereg.castle import acyclicity_loss, castle_loss, l1_norm
from castlereg.layout import Layout, Node
from castlereg.losses import Batch, as_batch, cell_losses
from castlereg.network import Parameters, forward, initialize, mask_inputs
from castlereg.regularizers import Castle
from castlereg.regularizers.engine import regularized_loss
from castlereg.table.encoding import Encoded, measure
from castlereg.training import Member, Phase, Plan, train
from castlereg.training.loop import BatchStream
from tests.small_problems import numeric_layout, random_batch, random_parameters

SIZES: list[tuple[int, ...]] = [(), (4,), (4, 3)]
TERMS = ("supervised", "reconstruction", "acyclicity", "sparsity")


def test_linear_form_equals_the_matrix_formula(rng: np.random.Generator) -> None:
    """Eq. 1 and 2, written out with NumPy; the target is the last column here, the first in the paper."""
    d, lam, beta = 5, 0.8, 0.2
    layout = numeric_layout(d)
    with jax.enable_x64(True):
        batch = random_batch(layout, rng, rows=11, dtype=np.float64)
        w = rng.normal(scale=0.4, size=(d + 1, d + 1)) * (1 - np.eye(d + 1))
        parameters = Parameters(jnp.asarray(w)[:, :, None], jnp.zeros((d + 1, 1)), (), None, None)
        total, terms = castle_loss(parameters, batch, layout, beta, lam)
    x = np.asarray(batch.inputs)
    supervised = ((x[:, -1] - x @ w[:, -1]) ** 2).sum() / len(x)
    reconstruction = np.linalg.norm(x - x @ w, "fro") ** 2 / len(x)
    acyclicity = (np.trace(scipy.linalg.expm(w * w)) - d - 1) ** 2
    sparsity = np.abs(w).sum()
    np.testing.assert_allclose(
        [terms[name] for name in TERMS], [supervised, reconstruction, acyclicity, sparsity], rtol=1e-6
    )
    np.testing.assert_allclose(total, supervised + lam * (reconstruction + acyclicity + beta * sparsity), rtol=1e-6)


@pytest.mark.parametrize("sizes", [(4,), (4, 3)])
def test_network_form_equals_the_formulas_node_by_node(rng: np.random.Generator, sizes: tuple[int, ...]) -> None:
    """Eq. 3 and 5 to 7, one sub-network at a time."""
    d, lam, beta = 4, 0.6, 0.3
    layout = numeric_layout(d)
    with jax.enable_x64(True):
        batch = random_batch(layout, rng, rows=9, dtype=np.float64)
        parameters = random_parameters(layout, sizes, rng, np.float64)
        total, terms = castle_loss(parameters, batch, layout, beta, lam)
    parameters = jax.tree.map(np.asarray, parameters)
    x, errors, m = np.asarray(batch.inputs), np.zeros(d + 1), np.zeros((d + 1, d + 1))
    for k in range(d + 1):
        units = np.maximum(x @ parameters.input_weights[:, k] + parameters.input_bias[k], 0)
        for layer in parameters.hidden:
            units = np.maximum(units @ layer.weights + layer.bias, 0)
        outputs = units @ parameters.output_weights[k] + parameters.output_bias[k]
        errors[k] = ((x[:, k] - outputs[:, 0]) ** 2).mean()
        m[:, k] = np.linalg.norm(parameters.input_weights[:, k], axis=1)
    acyclicity = (np.trace(scipy.linalg.expm(m * m)) - d - 1) ** 2
    sparsity = np.abs(parameters.input_weights).sum()
    expected = [errors[-1], errors.sum(), acyclicity, sparsity]
    np.testing.assert_allclose([terms[name] for name in TERMS], expected, rtol=1e-6)
    np.testing.assert_allclose(total, errors[-1] + lam * (errors.sum() + acyclicity + beta * sparsity), rtol=1e-6)


@pytest.mark.parametrize("sizes", SIZES)
def test_the_regularizer_is_the_method(mixed_layout: Layout, rng: np.random.Generator, sizes: tuple[int, ...]) -> None:
    with jax.enable_x64(True):
        batch = random_batch(mixed_layout, rng, dtype=np.float64)
        batch = batch._replace(observed=jnp.asarray(rng.random((7, 5)) < 0.8, float))
        parameters = random_parameters(mixed_layout, sizes, rng, np.float64)
        units = jnp.asarray([1.0, 1.0, 0.6, 1.1, 1.0])
        total, terms = castle_loss(parameters, batch, mixed_layout, 0.3, 0.7, units)
        as_regularizer = regularized_loss(parameters, batch, [Castle(0.3, 0.7)], mixed_layout, null_loss=units)
    np.testing.assert_allclose(as_regularizer[0], total, rtol=1e-12)
    assert set(as_regularizer[1][0]) == set(terms) == set(TERMS)
    for name in TERMS:
        np.testing.assert_allclose(as_regularizer[1][0][name], terms[name], rtol=1e-12)


def test_supervised_counts_twice_as_much_as_a_feature(rng: np.random.Generator) -> None:
    """With lambda = 1 the target is in the supervised and in the reconstruction term."""
    layout = numeric_layout(2)
    batch = random_batch(layout, rng)
    zero = jax.tree.map(jnp.zeros_like, random_parameters(layout, (3,), rng, np.float32))
    total, _ = castle_loss(zero, batch, layout, 1.0)
    squares = (np.asarray(batch.inputs) ** 2).mean(axis=0)
    np.testing.assert_allclose(total, squares[0] + squares[1] + 2 * squares[2], rtol=1e-6)


def test_missing_values_do_not_count(mixed_layout: Layout, rng: np.random.Generator) -> None:
    """Whatever number fills them; a node that is known in half of the rows has half of its loss."""
    parameters = random_parameters(mixed_layout, (4,), rng, np.float32)
    batch = random_batch(mixed_layout, rng, rows=6)
    observed = np.ones((6, 5), np.float32)
    observed[:3, 3] = observed[5, 1] = 0
    missing = batch._replace(observed=jnp.asarray(observed))
    other = missing._replace(truth=batch.truth + 7 * (1 - observed)[:, :, None])
    one, two = (castle_loss(parameters, b, mixed_layout, 0.3, null_loss=jnp.arange(1.0, 6.0)) for b in (missing, other))
    np.testing.assert_allclose(one[0], two[0], rtol=1e-6)
    by_node = np.asarray(cell_losses(forward(parameters, batch.inputs), batch, mixed_layout)) / np.arange(1, 6)
    np.testing.assert_allclose(one[1]["reconstruction"], (by_node * observed).sum() / 6, rtol=1e-5)


def test_the_target_is_never_an_input_of_its_own_sub_network(rng: np.random.Generator) -> None:
    layout = Layout((Node(), Node(), Node("categorical", 3, target=True)))
    parameters, batch = initialize(layout, (4, 4), seed=1), random_batch(layout, rng)
    poisoned = batch._replace(inputs=batch.inputs.at[:, 2:].set(1e6))
    clean, dirty = (castle_loss(parameters, b, layout)[1]["supervised"] for b in (batch, poisoned))
    assert float(clean) == float(dirty)


def test_weights_of_rows_weigh_the_loss(rng: np.random.Generator) -> None:
    layout = numeric_layout(2)
    batch = random_batch(layout, rng, rows=4)
    parameters = random_parameters(layout, (3,), rng, np.float32)
    weight: NDArray[np.float32] = np.array([2, 0, 1, 1], np.float32) / 4
    weighted = castle_loss(parameters, batch._replace(weight=jnp.asarray(weight)), layout, 0.1)[0]
    rows = jnp.array([0, 0, 2, 3])
    repeated = Batch(batch.inputs[rows], batch.truth[rows], jnp.full(4, 0.25))
    np.testing.assert_allclose(weighted, castle_loss(parameters, repeated, layout, 0.1)[0], rtol=1e-6)


def test_sparsity_leaves_required_edges_alone(rng: np.random.Generator) -> None:
    weights = jnp.asarray(rng.normal(size=(3, 3, 4)), np.float32)
    penalized = np.ones((3, 3), np.float32)
    penalized[0, 2] = 0
    np.testing.assert_allclose(l1_norm(weights, jnp.asarray(penalized)), l1_norm(weights.at[0, 2].set(0)), rtol=1e-6)


def test_any_acyclicity_function_can_be_given(rng: np.random.Generator) -> None:
    weights = jnp.asarray(rng.normal(size=(3, 3, 4)), np.float32)
    found = acyclicity_loss(weights, numeric_layout(2), lambda adjacency: adjacency[0, 1])
    np.testing.assert_allclose(found, (np.asarray(weights[0, 1]) ** 2).sum() ** 2, rtol=1e-5)


# --- the trainer ---------------------------------------------------------------------------------

RATE, BATCH, EPOCHS, STEPS = 0.01, 8, 4, 5
BETA, LAMBDA = 0.05, 0.7


def trained_by_hand(table: Encoded, rows: NDArray[np.int64], plan: Plan, seed: int) -> Parameters:
    """Adam on :func:`castle_loss` for all epochs, one step after the other."""
    layout, key = replace(table.layout, embedding=plan.embedding), np.random.SeedSequence(seed)
    start = initialize(layout, plan.hidden_layer_sizes, key, activation=plan.activation)
    decay = plan.weight_decay or 0.0
    by = measure(table, [rows])[0].take(0)
    stream = BatchStream(rows.astype(np.int32), BATCH, key)
    mask = jnp.asarray(layout.edge_mask(), np.float64)
    weights = mask_inputs(jax.tree.map(lambda a: jnp.asarray(a, np.float64), start), mask)
    first = second = jax.tree.map(np.zeros_like, weights)

    @jax.jit
    def gradient(weights: Parameters, batch: Batch) -> Parameters:
        return jax.grad(lambda w: castle_loss(w, batch, layout, BETA, LAMBDA, by.null_loss)[0])(weights)

    step = 0
    for _ in range(EPOCHS):
        batches = np.full((1, STEPS, BATCH), -1, np.int32)
        stream.fill_rows(batches)
        for drawn in batches[0]:
            step += 1
            present = drawn[drawn >= 0]  # the last batch of an epoch is what is left
            batch = as_batch(jnp.asarray(table.inputs[present]), np.full(len(present), 1 / len(present)), by, layout)
            slope = mask_inputs(gradient(weights, batch), mask)
            first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, first, slope)
            second = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g**2, second, slope)
            weights = jax.tree.map(
                lambda w, m, v, t=step: (
                    w - RATE * ((m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.999**t)) + 1e-8) + decay * w)
                ),
                *(weights, first, second),
            )
    assert step == EPOCHS * STEPS == 20
    return jax.tree.map(np.asarray, weights)


MODERN: dict[str, Any] = {"embedding": 3, "activation": "silu", "weight_decay": 0.1}


@pytest.mark.parametrize("kind", ["numeric", "categorical"])
@pytest.mark.parametrize(("sizes", "recipe"), [((), {}), ((5, 4), {}), ((5, 4), MODERN)])
def test_the_trainer_is_adam_on_the_method(kind: str, sizes: tuple[int, ...], recipe: dict[str, Any]) -> None:
    """Twenty steps in float64: every weight to nine digits."""
    rng = np.random.default_rng(2)
    x = rng.normal(2, 3, size=(37, 3))
    y = 5 * np.tanh(x[:, 0]) - x[:, 1] + rng.normal(size=37)
    target, channels = Node(target=True), y[:, None]
    if kind == "categorical":
        target, channels = Node("categorical", 3, target=True), np.eye(3)[np.digitize(y, [-3, 1])]
    table = Encoded(np.hstack([x, channels]), Layout((Node(), Node(), Node(), target)))
    rows = np.arange(37)  # also for validation, so that the last epoch is the best
    plan = Plan(sizes, (Phase(EPOCHS),), learning_rate=RATE, batch_size=BATCH, patience=100, **recipe)
    with jax.enable_x64(True):
        trained = train(table, [Member(rows, rows, np.random.SeedSequence(7), (Castle(BETA, LAMBDA),))], plan)
        by_hand = trained_by_hand(table, rows, plan, seed=7)
    assert trained.best_epoch[0] == EPOCHS
    assert {a.dtype for a in jax.tree.leaves(trained.parameters)} == {np.dtype(np.float64)}
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a[0], b, rtol=1e-9, atol=1e-9), trained.parameters, by_hand)
    layout = replace(table.layout, embedding=plan.embedding)
    start = initialize(layout, sizes, np.random.SeedSequence(7))
    assert np.abs(by_hand.input_weights - start.input_weights).max() > 0.1, "the steps should have gone somewhere"
