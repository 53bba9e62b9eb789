"""The supervised autoencoder against a separate small implementation."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import optax

from castlereg.layout import Layout, Node
from castlereg.network import initialize
from castlereg.random_streams import OfNetwork, named_stream
from castlereg.regularizers import Autoencoder
from castlereg.regularizers.engine import regularized_loss
from castlereg.table.table import Table
from castlereg.training import Member, Phase, Plan, train
from tests.regularizers.cases import problem

D, SIZES = 3, (5, 4)
LAYOUT = Layout((*(Node() for _ in range(D)), Node(target=True)))


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
        Table(rows.astype(np.float32), LAYOUT),
        [member],
        Plan(SIZES, (Phase(10),), batch_size=32, learning_rate=0.01),
    )
    start = initialize(LAYOUT, SIZES, seed, nodes=(D,))
    stream = named_stream(seed, OfNetwork.REGULARIZER_START, "Autoencoder")
    head = Autoencoder().start(LAYOUT, SIZES, 1, stream).trained
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
    one = problem(Autoencoder(), LAYOUT, rng)
    weight = jnp.asarray([1.0, 0.0, 1.0, 1.0])
    arguments = one.arguments | {"node_weight": weight}
    first, second = (
        regularized_loss(one.parameters, batch, [Autoencoder()], LAYOUT, **arguments)[1][0]["autoencoder"]
        for batch in (one.batch, one.batch._replace(truth=one.batch.truth.at[:, 1].set(9.0)))
    )
    assert float(first) == float(second)
