"""L1, L2, the autoencoder, TANGOS and Deep Lasso against loops, closed forms and separate implementations."""

from __future__ import annotations

import itertools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from castlereg import CastleRegressor, NetworkClassifier, NetworkRegressor, Recipe
from castlereg.layout import Layout, Node
from castlereg.losses import Batch
from castlereg.network import Activation, Dense, Parameters, forward, initialize
from castlereg.random_streams import OfNetwork, named_stream
from castlereg.regularizers import L1, L2, Autoencoder, Castle, DeepLasso, Tangos
from castlereg.regularizers.engine import regularized_loss
from castlereg.table.encoding import Encoded
from castlereg.training import Member, Phase, Plan, train
from tests.regularizers.cases import Problem, problem
from tests.small_problems import numeric_layout, random_batch, random_parameters

LAYOUTS = {
    "mixed": Layout((Node(), Node(missing=True), Node("binary"), Node("categorical", 3), Node(target=True))),
    "embedded": Layout((Node(), Node("categorical", 2), Node(), Node("binary", target=True)), embedding=2),
    "two targets": Layout((Node(), Node(), Node("categorical", 3, target=True), Node(target=True))),
}


def terms_of(one: Problem, **changes: Any) -> tuple[float, dict[str, float]]:
    batch = one.batch._replace(**changes)
    total, (terms, _) = regularized_loss(one.parameters, batch, [one.regularizer], one.layout, **one.arguments)
    return float(total), {name: float(value) for name, value in terms.items()}


# --- L1 and L2 ---

PAIR = Layout((Node(), Node(), Node(target=True)))
# One target, two hidden layers: weights that can be added up in the head. Biases are large, and free.
NETWORK = Parameters(
    input_weights=jnp.asarray([[[1.0, -2.0]], [[0.5, 0.0]], [[0.0, 0.0]]]),
    input_bias=jnp.asarray([[100.0, 100.0]]),
    hidden=(Dense(jnp.asarray([[3.0, 0.0], [0.0, -1.0]]), jnp.asarray([50.0, 50.0])),),
    output_weights=jnp.asarray([[[2.0], [-0.25]]]),
    output_bias=jnp.asarray([[7.0]]),
)
BATCH = Batch(jnp.ones((2, 3)), jnp.ones((2, 3, 1)), jnp.full(2, 0.5))


@pytest.mark.parametrize(
    ("regularizer", "name", "norm"),
    [
        (L1(0.1), "l1", 1 + 2 + 0.5 + 3 + 1 + 2 + 0.25),
        (L2(0.1), "l2", 1 + 4 + 0.25 + 9 + 1 + 4 + 0.0625),
    ],
)
def test_norm_of_every_dense_layer_without_biases(regularizer: L1 | L2, name: str, norm: float) -> None:
    total, (terms, _) = regularized_loss(NETWORK, BATCH, [regularizer], PAIR)
    np.testing.assert_allclose(terms[name], norm, rtol=1e-6)
    np.testing.assert_allclose(total, terms["supervised"] + 0.1 * norm, rtol=1e-6)


def test_composition_is_the_sum_of_the_parts(mixed_layout: Layout, rng: np.random.Generator) -> None:
    parts = [Castle(0.3, 0.7), L1(0.02), L2(0.05)]
    one = problem(parts[0], mixed_layout, rng)

    def loss(*regularizers: Castle | L1 | L2) -> float:
        # A Castle of strength zero asks for all sub-networks and adds nothing.
        all_nodes = [] if any(isinstance(r, Castle) for r in regularizers) else [Castle(0.0, 0.0)]
        return float(regularized_loss(one.parameters, one.batch, [*regularizers, *all_nodes], mixed_layout)[0])

    plain = loss()
    added = sum(loss(part) - plain for part in parts)
    np.testing.assert_allclose(loss(*parts) - plain, added, rtol=1e-5)


@pytest.mark.parametrize("make", [L1, L2])
def test_bad_strengths_are_named(make: type[L1] | type[L2]) -> None:
    with pytest.raises(ValueError, match=rf"{make.__name__}'s strength=-0.1 must be at least 0"):
        make(-0.1)


@pytest.mark.parametrize("sizes", [(), (4,), (4, 5)])
def test_norms_weigh_the_layers_of_sampled_sub_networks_and_not_the_shared_ones(
    rng: np.random.Generator, sizes: tuple[int, ...]
) -> None:
    """One of two features is sampled, so it counts twice."""
    layout = numeric_layout(2)
    network, batch = random_parameters(layout, sizes, rng, np.float32), random_batch(layout, rng)
    regularizers = [L1(), L2(), Castle(capacity=True)]
    _, (terms, _) = regularized_loss(network, batch, regularizers, layout, sampled=jnp.array([0, 2]))
    share = np.array([2.0, 0.0, 1.0])
    for size, name in ((np.abs, "l1"), (np.square, "l2")):
        own = size(np.asarray(network.input_weights)).sum(axis=(0, 2))
        later = sum(size(np.asarray(layer.weights)).sum() for layer in network.hidden)
        if network.output_weights is not None:
            later += size(np.asarray(network.output_weights)).sum(axis=(1, 2)) @ share
        np.testing.assert_allclose(terms[name], own @ share + later, rtol=1e-5)
    np.testing.assert_allclose(terms["capacity"], later, rtol=1e-5)


# --- autoencoder ---

D, SIZES = 3, (5, 4)
FEATURES = Layout((*(Node() for _ in range(D)), Node(target=True)))


def separate_loss(weights: list[jax.Array], x: jax.Array, y: jax.Array, strength: float) -> jax.Array:
    """Two ReLU layers, a prediction and a reconstruction, on features only."""
    w1, b1, w2, b2, w3, b3, v, c = weights
    units = jax.nn.relu(jax.nn.relu(x @ w1 + b1) @ w2 + b2)
    predicted, features = (units @ w3 + b3)[:, 0], units @ v + c
    return jnp.mean((predicted - y) ** 2) + strength * jnp.mean((features - x) ** 2)


def test_training_equals_a_separate_implementation(rng: np.random.Generator) -> None:
    """Ten steps of Adam on all rows at once."""
    rows = rng.normal(size=(24, D + 1))
    rows = (rows - rows.mean(axis=0)) / rows.std(axis=0)
    seed, everything = np.random.SeedSequence(4), np.arange(24)
    member = Member(everything, everything, seed, (Autoencoder(0.7),))
    trained = train(
        Encoded(rows.astype(np.float32), FEATURES),
        [member],
        Plan(SIZES, (Phase(10),), batch_size=32, learning_rate=0.01),
    )
    start = initialize(FEATURES, SIZES, seed, nodes=(D,))
    stream = named_stream(seed, OfNetwork.REGULARIZER_START, "Autoencoder")
    head = Autoencoder().start(FEATURES, SIZES, 1, stream).trained
    weights = [
        *(start.input_weights[:D, 0], start.input_bias[0], *start.hidden[0]),
        *(start.output_weights[0], start.output_bias[0], head["weights"][0], head["bias"][0]),
    ]
    adam = optax.adam(0.01)
    state = adam.init(weights)
    x, y = jnp.asarray(rows[:, :D], jnp.float32), jnp.asarray(rows[:, D], jnp.float32)
    for _ in range(10):
        updates, state = adam.update(jax.grad(separate_loss)(weights, x, y, 0.7), state)
        weights = optax.apply_updates(weights, updates)
    assert trained.best_epoch[0] == 10
    np.testing.assert_allclose(trained.parameters.input_weights[0, :D, 0], weights[0], rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(trained.parameters.output_weights[0, 0], weights[4], rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(trained.validation_loss[0], separate_loss(weights, x, y, 0.0), rtol=1e-4)


def test_each_feature_has_the_loss_of_its_kind(mixed_layout: Layout, rng: np.random.Generator) -> None:
    one = problem(Autoencoder(), mixed_layout, rng, sizes=(4,))
    _, (terms, _) = regularized_loss(one.parameters, one.batch, [Autoencoder()], mixed_layout, **one.arguments)
    units = np.maximum(
        np.asarray(one.batch.inputs) @ np.asarray(one.parameters.input_weights[:, 0])
        + np.asarray(one.parameters.input_bias[0]),
        0,
    )
    outputs = (units @ np.asarray(one.own[0].trained["weights"][0])).reshape(-1, 4, 3)
    truth = np.asarray(one.batch.truth)
    numeric = ((outputs[:, :2, 0] - truth[:, :2, 0]) ** 2).mean(axis=0)
    logistic = np.mean(np.log1p(np.exp(outputs[:, 2, 0])) - truth[:, 2, 0] * outputs[:, 2, 0])
    softmax = np.mean(np.log(np.exp(outputs[:, 3]).sum(axis=1)) - (truth[:, 3] * outputs[:, 3]).sum(axis=1))
    np.testing.assert_allclose(terms["autoencoder"], np.mean([*numeric, logistic, softmax]), rtol=1e-5)


def test_constant_features_count_for_nothing(rng: np.random.Generator) -> None:
    one = problem(Autoencoder(), FEATURES, rng)
    weight = jnp.asarray([1.0, 0.0, 1.0, 1.0])
    arguments = one.arguments | {"node_weight": weight}
    first, second = (
        regularized_loss(one.parameters, batch, [Autoencoder()], FEATURES, **arguments)[1][0]["autoencoder"]
        for batch in (one.batch, one.batch._replace(truth=one.batch.truth.at[:, 1].set(9.0)))
    )
    assert float(first) == float(second)


# --- TANGOS ---


def units_as_outputs(parameters: Parameters) -> Parameters:
    """Return a network whose outputs are the units of the last hidden layer."""
    assert parameters.output_weights is not None
    nodes, width, _ = parameters.output_weights.shape
    return parameters._replace(
        output_weights=jnp.broadcast_to(jnp.eye(width), (nodes, width, width)), output_bias=jnp.zeros((nodes, width))
    )


def spread_and_cosine(parameters: Parameters, batch: Batch, layout: Layout) -> tuple[float, float]:
    """Loop over targets, rows, units and pairs, with central differences for the attributions, in float64."""
    rows, weight = np.asarray(batch.inputs, np.float64), np.asarray(batch.weight, np.float64)
    steps = 1e-5 * np.eye(rows.shape[1])
    with jax.enable_x64(True):
        latent = units_as_outputs(jax.tree.map(lambda a: jnp.asarray(a, np.float64), parameters))
        units = [np.asarray(forward(latent, jnp.asarray(np.concatenate([x + steps, x - steps])))) for x in rows]
    spread = total = 0.0
    for target in range(-len(layout.targets), 0):
        for of_row, w in zip(units, weight, strict=True):
            above, below = np.split(of_row[:, target], 2)  # (channels, width)
            attributions = (above - below).T / 2e-5
            spread += w * np.mean([np.abs(a).sum() for a in attributions])
            cosines = []
            for a, b in itertools.combinations(attributions, 2):
                norms = np.linalg.norm(a) * np.linalg.norm(b)
                cosines.append(abs(a @ b) / norms if norms > 1e-9 else 0.0)
            total += w * np.mean(cosines)
    return spread, total


@pytest.mark.parametrize("activation", ["relu", "silu"])
@pytest.mark.parametrize("name", LAYOUTS)
def test_tangos_equals_loops(name: str, activation: Any, rng: np.random.Generator) -> None:
    layout = LAYOUTS[name]
    with jax.enable_x64(True):
        one = problem(Tangos(0.3, 0.7), layout, rng, (6, 5), rows=5, dtype=np.float64)
        one.parameters = one.parameters._replace(activation=Activation(activation))
        weight = jnp.asarray([0.3, 0.0, 0.2, 0.4, 0.1])
        total, terms = terms_of(one, weight=weight)
        spread, cosine = spread_and_cosine(one.parameters, one.batch._replace(weight=weight), layout)
    assert min(spread, cosine) > 0.01
    np.testing.assert_allclose(terms["specialization"], spread, rtol=1e-5)
    np.testing.assert_allclose(terms["orthogonalization"], cosine, rtol=1e-5)
    np.testing.assert_allclose(total, terms["supervised"] + 0.3 * spread + 0.7 * cosine, rtol=1e-5)


def test_of_tangos_only_the_targets_count_with_and_without_sampled_features(rng: np.random.Generator) -> None:
    layout = LAYOUTS["mixed"]
    one = problem(Castle(), layout, rng)
    expected = spread_and_cosine(one.parameters, one.batch, layout)
    for sampled in (None, jnp.asarray([2, 0, 4])):
        _, (terms, _) = regularized_loss(one.parameters, one.batch, [Castle(), Tangos()], layout, sampled=sampled)
        found = [terms["specialization"], terms["orthogonalization"]]
        np.testing.assert_allclose(found, expected, rtol=1e-3)


def test_drawn_pairs_are_two_units_and_every_pair_is_equally_likely(rng: np.random.Generator) -> None:
    drawn = Tangos(pairs=8).draw(rng, 20_000, (9, 5))
    assert drawn.shape == (20_000, 8, 2)
    assert drawn.dtype == np.int32
    pairs, counts = np.unique(np.sort(drawn.reshape(-1, 2), axis=1), axis=0, return_counts=True)
    np.testing.assert_array_equal(pairs, list(itertools.combinations(range(5), 2)))
    np.testing.assert_allclose(counts / counts.sum(), 0.1, atol=0.005)
    assert Tangos(pairs=10).draw(rng, 3, (9, 5)) == ()


def test_drawn_pairs_give_the_mean_over_all_pairs_on_average(rng: np.random.Generator) -> None:
    """And each step uses the pairs it drew."""
    every, drawn = problem(Tangos(), LAYOUTS["mixed"], rng, (6,)), jnp.asarray(Tangos(pairs=4).draw(rng, 4000, (6,)))

    @jax.jit
    @jax.vmap
    def cosine(pairs: jax.Array) -> jax.Array:
        _, (terms, _) = regularized_loss(every.parameters, every.batch, [Tangos()], every.layout, drawn=(pairs,))
        return terms["orthogonalization"]

    by_step = cosine(drawn)
    expected = terms_of(every)[1]["orthogonalization"]
    assert abs(by_step.mean() - expected) < 4 * by_step.std() / np.sqrt(4000)
    single = cosine(jnp.asarray(list(itertools.combinations(range(6), 2)), jnp.int32)[:, None])
    np.testing.assert_allclose(single.mean(), expected, rtol=1e-5)
    assert by_step.std() > 0.01 and single.std() > 0.01


def test_the_order_of_rows_does_not_matter_and_a_repeated_row_is_one_of_twice_the_weight(
    rng: np.random.Generator,
) -> None:
    one = problem(Tangos(0.3, 0.7), LAYOUTS["mixed"], rng)
    total, _ = terms_of(one)
    order = rng.permutation(8)
    shuffled, _ = terms_of(one, inputs=one.batch.inputs[order], truth=one.batch.truth[order])
    np.testing.assert_allclose(shuffled, total, rtol=1e-5)
    twice = jnp.asarray([0, 1, 2, 3, 4, 5, 6, 6])
    repeated, _ = terms_of(one, inputs=one.batch.inputs[twice], truth=one.batch.truth[twice])
    weighted, _ = terms_of(one, weight=jnp.asarray([*[1 / 8] * 6, 2 / 8, 0]))
    np.testing.assert_allclose(repeated, weighted, rtol=1e-5)


def test_units_that_are_off_and_a_single_unit_have_no_cosine(rng: np.random.Generator) -> None:
    layout = LAYOUTS["mixed"]
    off = problem(Tangos(), layout, rng)
    off.parameters = off.parameters._replace(input_bias=jnp.full_like(off.parameters.input_bias, -100.0))
    narrow = problem(Tangos(), layout, rng, sizes=(4, 1))
    for one in (off, narrow):
        assert terms_of(one)[1]["orthogonalization"] == 0.0

        @jax.jit
        @jax.grad
        def gradient_of(parameters: Parameters, one: Problem = one) -> jax.Array:
            return regularized_loss(parameters, one.batch, [one.regularizer], layout, **one.arguments)[0]

        gradient = gradient_of(one.parameters)
        assert all(np.isfinite(a).all() for a in jax.tree.leaves(gradient))


def test_training_lowers_what_tangos_penalizes(rng: np.random.Generator) -> None:
    X = rng.normal(size=(120, 6))
    y = X[:, 0] * X[:, 1] + X[:, 2]
    options: dict[str, Any] = {"hidden_layer_sizes": (16, 16), "max_epochs": 40, "random_state": 0}
    last = {
        strengths: NetworkRegressor([Tangos(*strengths)], **options).fit(X, y).history_.iloc[-1]
        for strengths in [(0.0, 0.0), (10.0, 0.0), (0.0, 10.0)]
    }
    assert last[10.0, 0.0]["specialization"] < 0.5 * last[0.0, 0.0]["specialization"]
    assert last[0.0, 10.0]["orthogonalization"] < 0.7 * last[0.0, 0.0]["orthogonalization"]


def test_fits_classes_categories_missing_values_embeddings_weights_and_several_targets(
    rng: np.random.Generator,
) -> None:
    X = rng.normal(size=(60, 3)).astype(object)
    X[::7, 0] = None
    X[:, 2] = rng.choice(["a", "b", "c"], 60)
    classes, weight = rng.integers(0, 3, 60), rng.integers(0, 3, 60).astype(float)
    recipe = Recipe(embedding=4, activation="silu")
    model = NetworkClassifier([Tangos()], recipe=recipe, max_epochs=3, random_state=0)
    probabilities = model.fit(X, classes, sample_weight=weight).predict_proba(X)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0, rtol=1e-5)
    several = CastleRegressor(regularizers=[Tangos()], max_epochs=3, random_state=0)
    targets = np.column_stack([classes, weight])
    assert np.asarray(several.fit(X, targets).predict(X)).shape == (60, 2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"specialization": -1}, "Tangos's specialization=-1 must be at least 0"),
        ({"orthogonalization": float("nan")}, "Tangos's orthogonalization=nan must be a finite number"),
        ({"pairs": 0}, "Tangos's pairs=0 must be a whole number of at least 1"),
    ],
)
def test_wrong_options_of_tangos_are_rejected(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Tangos(**options)


# --- Deep Lasso ---


def row_loss(outputs: np.ndarray, truth: np.ndarray, node: Node) -> float:
    if node.kind == "numeric":
        return float((outputs[0] - truth[0]) ** 2)
    if node.kind == "binary":
        return float(np.log1p(np.exp(outputs[0])) - truth[0] * outputs[0])
    levels = outputs[: node.levels]
    return float(np.log(np.exp(levels).sum()) - levels @ truth[: node.levels])


def gradient_norms(parameters: Parameters, batch: Batch, layout: Layout, null_loss: Any) -> np.ndarray:
    """Loop over rows and channels, with central differences of the loss, in float64."""
    rows, truth, weight = (np.asarray(a, np.float64) for a in (batch.inputs, batch.truth, batch.weight))
    steps = 1e-5 * np.eye(rows.shape[1])
    with jax.enable_x64(True):
        network = jax.tree.map(lambda a: jnp.asarray(a, np.float64), parameters)
        outputs = [np.asarray(forward(network, jnp.asarray(np.concatenate([x + steps, x - steps])))) for x in rows]

    squares = np.zeros(layout.n_nodes)
    for row, channel in np.ndindex(*rows.shape):
        above, below = (
            sum(
                weight[row] * row_loss(of_targets[t], truth[row, k], layout.nodes[k]) / null_loss[k]
                for t, k in enumerate(layout.targets)
            )
            for of_targets in outputs[row][[channel, channel + rows.shape[1]], -len(layout.targets) :]
        )
        squares[layout.channel_nodes[channel]] += ((above - below) / 2e-5) ** 2
    return np.sqrt(squares)


@pytest.mark.parametrize(("sizes", "activation"), [((4, 3), "relu"), ((4, 3), "silu"), ((), "relu")])
@pytest.mark.parametrize("name", LAYOUTS)
def test_deep_lasso_equals_loops(name: str, sizes: tuple[int, ...], activation: Any, rng: np.random.Generator) -> None:
    layout = LAYOUTS[name]
    null_loss = rng.uniform(0.3, 1.0, layout.n_nodes)
    with jax.enable_x64(True):
        one = problem(DeepLasso(0.3), layout, rng, sizes, rows=5, dtype=np.float64)
        one.parameters = one.parameters._replace(activation=Activation(activation))
        batch = one.batch._replace(weight=jnp.asarray([0.3, 0.0, 0.2, 0.4, 0.1]))
        total, (terms, _) = regularized_loss(
            one.parameters, batch, [one.regularizer], layout, null_loss=jnp.asarray(null_loss)
        )
        expected = gradient_norms(one.parameters, batch, layout, null_loss)
    assert (expected[: layout.n_features] > 1e-3).all()
    assert (expected[layout.n_features :] == 0).all()
    np.testing.assert_allclose(terms["deep_lasso"], expected.sum(), rtol=1e-5)
    np.testing.assert_allclose(float(total), float(terms["supervised"]) + 0.3 * expected.sum(), rtol=1e-5)


def test_of_a_linear_model_it_is_the_lasso_times_the_norm_of_the_residuals(rng: np.random.Generator) -> None:
    """The gradient of the mean squared error in column j is ``2 / n * residuals * weight_j``."""
    layout = Layout((*(Node() for _ in range(4)), Node(target=True)))
    one = problem(DeepLasso(), layout, rng, sizes=())
    weights = np.asarray(one.parameters.input_weights)[:, 0, 0]
    residuals = np.asarray(forward(one.parameters, one.batch.inputs)[:, 0, 0] - one.batch.truth[:, -1, 0])
    expected = 2 / 8 * np.linalg.norm(residuals) * np.abs(weights).sum()
    np.testing.assert_allclose(terms_of(one)[1]["deep_lasso"], expected, rtol=1e-5)


def test_of_deep_lasso_only_the_targets_count_with_and_without_sampled_features(rng: np.random.Generator) -> None:
    layout = LAYOUTS["mixed"]
    one = problem(Castle(), layout, rng)
    expected = gradient_norms(one.parameters, one.batch, layout, np.ones(5)).sum()
    for sampled in (None, jnp.asarray([2, 0, 4])):
        _, (terms, _) = regularized_loss(one.parameters, one.batch, [Castle(), DeepLasso()], layout, sampled=sampled)
        np.testing.assert_allclose(terms["deep_lasso"], expected, rtol=1e-3)


def test_of_deep_lasso_the_order_of_rows_and_rows_without_weight_do_not_matter(rng: np.random.Generator) -> None:
    one = problem(DeepLasso(), LAYOUTS["mixed"], rng)
    total, _ = terms_of(one)
    order = rng.permutation(8)
    shuffled, _ = terms_of(one, inputs=one.batch.inputs[order], truth=one.batch.truth[order])
    np.testing.assert_allclose(shuffled, total, rtol=1e-5)
    longer, _ = terms_of(
        one,
        inputs=jnp.concatenate([one.batch.inputs, 5 * one.batch.inputs]),
        truth=jnp.concatenate([one.batch.truth, -one.batch.truth]),
        weight=jnp.concatenate([one.batch.weight, jnp.zeros(8)]),
    )
    np.testing.assert_allclose(longer, total, rtol=1e-5)


def test_a_column_that_is_not_used_has_norm_zero_and_a_finite_slope(rng: np.random.Generator) -> None:
    layout = LAYOUTS["mixed"]
    one = problem(DeepLasso(), layout, rng)
    weights = one.parameters.input_weights.at[np.flatnonzero(layout.channel_nodes == 3)].set(0.0)
    one.parameters = one.parameters._replace(input_weights=weights)
    expected = gradient_norms(one.parameters, one.batch, layout, np.ones(5))
    assert expected[3] == 0.0
    np.testing.assert_allclose(terms_of(one)[1]["deep_lasso"], expected.sum(), rtol=1e-3)

    def loss(parameters: Parameters) -> jax.Array:
        return regularized_loss(parameters, one.batch, [one.regularizer], layout)[0]

    assert all(np.isfinite(a).all() for a in jax.tree.leaves(jax.jit(jax.grad(loss))(one.parameters)))


def test_deep_lasso_keeps_noise_columns_out(rng: np.random.Generator) -> None:
    X = rng.normal(size=(150, 12))
    y = X[:, 0] - X[:, 1] + 0.5 * rng.normal(size=150)
    shares = []
    for strength in (0.0, 1.0):
        model = NetworkRegressor([DeepLasso(strength)], hidden_layer_sizes=(8,), max_epochs=60, random_state=0)
        predict = model.fit(X, y).predict
        slopes = [np.abs(predict(X + step) - predict(X - step)).mean() for step in 0.1 * np.eye(12)]
        shares.append(sum(slopes[2:]) / sum(slopes))
    assert shares[1] < 0.5 * shares[0]


def test_deep_lasso_fits_classes_categories_missing_values_embeddings_and_weights(rng: np.random.Generator) -> None:
    X = rng.normal(size=(60, 3)).astype(object)
    X[::7, 0] = None
    X[:, 2] = rng.choice(["a", "b", "c"], 60)
    classes, weight = rng.integers(0, 3, 60), rng.integers(0, 3, 60).astype(float)
    for options in ({"recipe": Recipe(embedding=4, activation="silu")}, {"hidden_layer_sizes": ()}):
        model = NetworkClassifier([DeepLasso()], max_epochs=3, random_state=0, **options)
        probabilities = model.fit(X, classes, sample_weight=weight).predict_proba(X)
        np.testing.assert_allclose(probabilities.sum(axis=1), 1.0, rtol=1e-5)


def test_a_wrong_strength_is_rejected() -> None:
    with pytest.raises(ValueError, match="DeepLasso's strength=-1 must be at least 0"):
        DeepLasso(-1)
