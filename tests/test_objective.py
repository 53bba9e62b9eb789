"""The objective against finite differences, the paper's matrix formulas and hand computations."""

from __future__ import annotations

import itertools
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg
import scipy.stats
from castlereg.objective import (
    Batch,
    cell_losses,
    group_norm,
    l1_norm,
    log_likelihood_loss,
    node_losses,
    regularized_loss,
    trained_nodes,
)
from numpy.typing import NDArray

from castlereg.data.scaling import null_losses
from castlereg.layout import Layout, Node
from castlereg.network import Parameters, forward, initialize, mask_inputs
from castlereg.paper.released import ReleasedCastle
from castlereg.regularizers import L1, L2, Castle


def numeric_layout(d: int) -> Layout:
    return Layout((*(Node() for _ in range(d)), Node(target=True)))


def random_batch(layout: Layout, rng: np.random.Generator, rows: int = 7, dtype: Any = np.float32) -> Batch:
    x = rng.normal(size=(rows, layout.n_channels))
    truth = np.zeros((rows, layout.n_nodes, layout.output_width))
    for k, node in enumerate(layout.nodes):
        if node.kind == "numeric":
            truth[:, k, 0] = x[:, layout.output_channels[k, 0]]
        elif node.kind == "binary":
            truth[:, k, 0] = rng.integers(0, 2, rows)
        else:
            truth[np.arange(rows), k, rng.integers(0, node.levels, rows)] = 1
    return Batch(*(jnp.asarray(a, dtype) for a in (x, truth, np.full(rows, 1 / rows))))


def random_parameters(layout: Layout, sizes: tuple[int, ...], rng: np.random.Generator, dtype: Any) -> Parameters:
    start = initialize(layout, sizes, seed=0)
    drawn: Parameters = jax.tree.map(lambda a: jnp.asarray(rng.normal(scale=0.4, size=a.shape), dtype), start)
    return mask_inputs(drawn, jnp.asarray(layout.edge_mask(), dtype))


EXACT = partial(Castle, acyclicity_schedule="exact")


MAKES = [Castle, partial(Castle, sparsity="group", capacity=True), ReleasedCastle]
SIZES: list[tuple[int, ...]] = [(), (4,), (4, 3), (4, 3, 5)]


@pytest.mark.parametrize(
    ("make", "sizes"), [*itertools.product(MAKES, SIZES), *itertools.product([EXACT], [(), (4, 3)])]
)
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


def test_linear_form_equals_the_matrix_formula(rng: np.random.Generator) -> None:
    """Eq. 1 and 2, written out with NumPy; the target is the last column here, the first in the paper."""
    d, lam, beta = 5, 0.8, 0.2
    layout = numeric_layout(d)
    with jax.enable_x64(True):
        batch = random_batch(layout, rng, rows=11, dtype=np.float64)
        w = rng.normal(scale=0.4, size=(d + 1, d + 1)) * (1 - np.eye(d + 1))
        parameters = Parameters(jnp.asarray(w)[:, :, None], jnp.zeros((d + 1, 1)), (), None, None)
        total, (terms, _) = regularized_loss(parameters, batch, [Castle(beta, lam)], layout)
    x = np.asarray(batch.inputs)
    supervised = ((x[:, -1] - x @ w[:, -1]) ** 2).sum() / len(x)
    reconstruction = np.linalg.norm(x - x @ w, "fro") ** 2 / len(x)
    acyclicity = (np.trace(scipy.linalg.expm(w * w)) - d - 1) ** 2
    sparsity = np.abs(w).sum()
    np.testing.assert_allclose(
        [terms[name] for name in ("supervised", "reconstruction", "acyclicity", "sparsity")],
        [supervised, reconstruction, acyclicity, sparsity],
        rtol=1e-6,
    )
    np.testing.assert_allclose(total, supervised + lam * (reconstruction + acyclicity + beta * sparsity), rtol=1e-6)


def test_released_setting_weighs_terms_as_the_released_code(rng: np.random.Generator) -> None:
    layout, rows, lam, beta = numeric_layout(3), 6, 0.5, 5.0
    batch = random_batch(layout, rng, rows)
    parameters = random_parameters(layout, (4, 4), rng, np.float32)
    total, (terms, _) = regularized_loss(parameters, batch, [ReleasedCastle(beta, lam)], layout)
    w = np.asarray(parameters.input_weights, np.float64) * layout.edge_mask()[:, :, None]
    a = (w**2).sum(axis=-1)
    h = sum(np.trace(np.linalg.matrix_power(a, i)) / scipy.special.factorial(i) for i in range(1, 10))
    outputs = np.asarray(forward(parameters._replace(input_weights=jnp.asarray(w, jnp.float32)), batch.inputs))
    squares = (outputs - np.asarray(batch.truth))[..., 0] ** 2
    expected = lam * squares[:, -1].mean() + squares.sum() + h + h**2 / 2 + beta * np.sqrt(a).sum()
    np.testing.assert_allclose(total, expected, rtol=1e-5)
    np.testing.assert_allclose(terms["acyclicity"], h + h**2 / 2, rtol=1e-5)


def test_supervised_counts_twice_as_much_as_a_feature(rng: np.random.Generator) -> None:
    """With lambda = 1 the target is in the supervised and in the reconstruction term."""
    layout = numeric_layout(2)
    batch = random_batch(layout, rng)
    zero = jax.tree.map(jnp.zeros_like, random_parameters(layout, (3,), rng, np.float32))
    total, _ = regularized_loss(zero, batch, [Castle(1.0)], layout)
    squares = (np.asarray(batch.inputs) ** 2).mean(axis=0)
    np.testing.assert_allclose(total, squares[0] + squares[1] + 2 * squares[2], rtol=1e-6)


def test_losses_by_kind(mixed_layout: Layout, rng: np.random.Generator) -> None:
    batch = random_batch(mixed_layout, rng)
    outputs = rng.normal(size=batch.truth.shape).astype(np.float32)
    losses = np.asarray(node_losses(jnp.asarray(outputs), batch.truth, mixed_layout))
    truth = np.asarray(batch.truth)
    np.testing.assert_allclose(losses[:, 0], (outputs[:, 0, 0] - truth[:, 0, 0]) ** 2, rtol=1e-5)
    p = 1 / (1 + np.exp(-outputs[:, 2, 0]))
    cross_entropy = -np.where(truth[:, 2, 0] == 1, np.log(p), np.log(1 - p))
    np.testing.assert_allclose(losses[:, 2], cross_entropy, rtol=1e-4)
    shares = np.exp(outputs[:, 3]) / np.exp(outputs[:, 3]).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(losses[:, 3], -np.log((shares * truth[:, 3]).sum(axis=1)), rtol=1e-4)


def test_losses_of_a_subset_are_those_of_the_whole(mixed_layout: Layout, rng: np.random.Generator) -> None:
    batch = random_batch(mixed_layout, rng)
    outputs = jnp.asarray(rng.normal(size=batch.truth.shape), jnp.float32)
    for chosen in (jnp.array([0, 3, 4]), jnp.arange(5)):
        part = node_losses(outputs[:, chosen], batch.truth[:, chosen], mixed_layout, chosen)
        np.testing.assert_allclose(part, node_losses(outputs, batch.truth, mixed_layout)[:, chosen], rtol=1e-6)


def test_predicting_the_base_rates_costs_one_for_every_kind(rng: np.random.Generator) -> None:
    layout = Layout((Node(), Node("binary"), Node("categorical", 4), Node(target=True)))
    rows, rare, shares = 1000, 0.03, np.array([0.7, 0.2, 0.09, 0.01])
    truth = np.zeros((rows, 4, 4))
    truth[:, [0, 3], 0] = scipy.stats.zscore(rng.normal(size=(rows, 2)))
    truth[: int(rare * rows), 1, 0] = 1
    truth[np.arange(rows), 2, np.repeat(np.arange(4), (shares * rows).round().astype(int))] = 1
    outputs = np.zeros((rows, 4, 4))
    outputs[:, 1, 0] = np.log(rare / (1 - rare))
    outputs[:, 2] = np.log(shares)
    with jax.enable_x64(True):
        batch = Batch(jnp.zeros((rows, 7)), jnp.asarray(truth), jnp.full(rows, 1 / rows))
        null_loss = null_losses(np.array([0, rare, *shares, 0]), layout)
        losses = np.asarray(cell_losses(jnp.asarray(outputs), batch, layout, null_loss=jnp.asarray(null_loss)))
    np.testing.assert_allclose(losses.mean(axis=0), np.ones(4), rtol=1e-9)


@pytest.mark.parametrize("sampled", [None, [1, 3, 4]])
def test_missing_cells_do_not_count(mixed_layout: Layout, rng: np.random.Generator, sampled: list[int] | None) -> None:
    """Whatever stands in their place; and a node that is there in half of the rows has half of its loss."""
    parameters = random_parameters(mixed_layout, (4,), rng, np.float32)
    batch = random_batch(mixed_layout, rng, rows=6)
    observed = np.ones((6, 5), np.float32)
    observed[:3, 3] = observed[5, 1] = 0
    gaps = batch._replace(observed=jnp.asarray(observed))
    other = gaps._replace(truth=batch.truth + 7 * (1 - observed)[:, :, None])
    nodes = None if sampled is None else jnp.array(sampled)
    castle = [Castle(0.3)]
    one, two = (
        regularized_loss(parameters, b, castle, mixed_layout, sampled=nodes, null_loss=jnp.arange(1.0, 6.0))
        for b in (gaps, other)
    )
    np.testing.assert_allclose(one[0], two[0], rtol=1e-6)
    outputs = forward(parameters, batch.inputs)
    by_hand = np.asarray(node_losses(outputs, batch.truth, mixed_layout)) / np.arange(1, 6) * observed
    if sampled is None:
        np.testing.assert_allclose(one[1][0]["reconstruction"], by_hand.sum() / 6, rtol=1e-5)


def test_group_norm_has_no_nan_gradient_at_masked_edges(rng: np.random.Generator) -> None:
    layout = numeric_layout(3)
    weights = jnp.asarray(rng.normal(size=(4, 4, 2)) * layout.edge_mask()[:, :, None], jnp.float32)
    gradient = jax.grad(lambda w: group_norm(w, layout))(weights)
    assert np.isfinite(gradient).all()
    np.testing.assert_allclose(
        group_norm(weights, layout), np.sqrt((np.asarray(weights) ** 2).sum(axis=-1)).sum(), rtol=1e-6
    )


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


@pytest.mark.parametrize("make", [Castle, lambda beta: Castle(beta, sparsity="group"), ReleasedCastle])
def test_the_gradient_of_sampled_features_is_right_on_average(rng: np.random.Generator, make: Any) -> None:
    """Each draw moves the sampled sub-networks alone; the mean over all draws is the whole objective's gradient."""
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


@pytest.mark.parametrize("regularizers", [(Castle(),), ()])
def test_the_target_is_never_an_input_of_its_own_sub_network(rng: np.random.Generator, regularizers: Any) -> None:
    layout = Layout((Node(), Node(), Node("categorical", 3, target=True)))
    parameters = initialize(layout, (4, 4), seed=1, nodes=trained_nodes(regularizers, layout))
    batch = random_batch(layout, rng)
    poisoned = batch._replace(inputs=batch.inputs.at[:, 2:].set(1e6))
    clean, dirty = (
        regularized_loss(parameters, b, regularizers, layout)[1][0]["supervised"] for b in (batch, poisoned)
    )
    assert float(clean) == float(dirty)


def test_weights_of_rows_weigh_the_loss(rng: np.random.Generator) -> None:
    layout = numeric_layout(2)
    batch = random_batch(layout, rng, rows=4)
    parameters = random_parameters(layout, (3,), rng, np.float32)
    arguments: Any = ([Castle(0.1)], layout)
    weight: NDArray[np.float32] = np.array([2, 0, 1, 1], np.float32) / 4
    weighted = regularized_loss(parameters, batch._replace(weight=jnp.asarray(weight)), *arguments)[0]
    rows = jnp.array([0, 0, 2, 3])
    repeated = Batch(batch.inputs[rows], batch.truth[rows], jnp.full(4, 0.25))
    np.testing.assert_allclose(weighted, regularized_loss(parameters, repeated, *arguments)[0], rtol=1e-6)


def test_log_likelihood_is_that_of_gaussian_noise_of_each_columns_own_size(rng: np.random.Generator) -> None:
    layout = Layout((Node(), Node("binary"), Node(target=True)))
    errors, logits = rng.normal(scale=[0.5, 2.0], size=(200, 2)), rng.normal(size=200)
    truth = (rng.random(200) < 0.5).astype(float)
    losses = np.c_[errors[:, 0] ** 2, np.log1p(np.exp(logits)) - truth * logits, errors[:, 1] ** 2]
    batch = Batch(jnp.zeros((200, 3)), jnp.zeros((200, 3, 1)), jnp.full(200, 1 / 200))
    null = np.array([1.0, 0.7, 1.0])
    found = log_likelihood_loss(jnp.asarray(losses / null), batch, layout, jnp.ones(3), jnp.asarray(null))
    gaussian = sum(-scipy.stats.norm.logpdf(e, scale=np.sqrt((e**2).mean())).mean() for e in errors.T)
    binary = -scipy.stats.bernoulli.logpmf(truth, 1 / (1 + np.exp(-logits))).mean()
    # Up to what does not depend on the network: half of log(2 pi e) for each numeric column.
    np.testing.assert_allclose(found, gaussian + binary - np.log(2 * np.pi * np.e), rtol=1e-5)


def test_log_likelihood_counts_known_cells_alone(rng: np.random.Generator) -> None:
    layout = Layout((Node(gaps=True), Node(target=True)))
    losses = rng.random((6, 2))
    observed = np.ones((6, 2))
    observed[[1, 4], 0] = 0
    batch = Batch(jnp.zeros((6, 3)), jnp.zeros((6, 2, 1)), jnp.full(6, 1 / 6), jnp.asarray(observed))
    found = log_likelihood_loss(jnp.asarray(losses * observed), batch, layout, jnp.ones(2), jnp.ones(2))
    expected = 0.5 * np.log(losses[observed[:, 0] > 0, 0].mean()) + 0.5 * np.log(losses[:, 1].mean())
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_sparsity_leaves_required_edges_alone(rng: np.random.Generator) -> None:
    layout = numeric_layout(2)
    weights = jnp.asarray(rng.normal(size=(3, 3, 4)), np.float32)
    penalized = np.ones((3, 3), np.float32)
    penalized[0, 2] = 0
    without = weights.at[0, 2].set(0)
    np.testing.assert_allclose(l1_norm(weights, jnp.asarray(penalized)), l1_norm(without), rtol=1e-6)
    np.testing.assert_allclose(
        group_norm(weights, layout, jnp.asarray(penalized)), group_norm(without, layout), rtol=1e-6
    )


def test_exact_grows_from_a_tenth_to_ten_times_h(mixed_layout: Layout, rng: np.random.Generator) -> None:
    batch = random_batch(mixed_layout, rng)
    parameters = random_parameters(mixed_layout, (4,), rng, np.float32)
    at = {p: regularized_loss(parameters, batch, [EXACT(0.0)], mixed_layout, progress=p) for p in (0.0, 0.5, 1.0)}
    h = float(at[0.0][1][0]["acyclicity"])
    np.testing.assert_allclose(float(at[1.0][0] - at[0.0][0]), (10 - 0.1) * h, rtol=1e-4)
    np.testing.assert_allclose(float(at[0.5][0] - at[0.0][0]), (1 - 0.1) * h, rtol=1e-4)
