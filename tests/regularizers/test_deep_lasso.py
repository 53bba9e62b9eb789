"""Deep Lasso against loops over rows and channels, and a closed form."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from castlereg import NetworkClassifier, NetworkRegressor, Recipe
from castlereg.layout import Layout, Node
from castlereg.losses import Batch
from castlereg.network import Activation, Parameters, forward
from castlereg.regularizers import Castle, DeepLasso
from castlereg.regularizers.deep_lasso import loss_gradient_norms
from castlereg.regularizers.engine import regularized_loss
from tests.regularizers.cases import Problem, problem

LAYOUTS = {
    "mixed": Layout((Node(), Node(missing=True), Node("binary"), Node("categorical", 3), Node(target=True))),
    "embedded": Layout((Node(), Node("categorical", 2), Node(), Node("binary", target=True)), embedding=2),
    "two targets": Layout((Node(), Node(), Node("categorical", 3, target=True), Node(target=True))),
}


def row_loss(outputs: np.ndarray, truth: np.ndarray, node: Node) -> float:
    if node.kind == "numeric":
        return float((outputs[0] - truth[0]) ** 2)
    if node.kind == "binary":
        return float(np.log1p(np.exp(outputs[0])) - truth[0] * outputs[0])
    levels = outputs[: node.levels]
    return float(np.log(np.exp(levels).sum()) - levels @ truth[: node.levels])


def reference(parameters: Parameters, batch: Batch, layout: Layout, null_loss: Any) -> np.ndarray:
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


def terms_of(one: Problem, **changes: Any) -> tuple[float, dict[str, float]]:
    batch = one.batch._replace(**changes)
    total, (terms, _) = regularized_loss(one.parameters, batch, [one.regularizer], one.layout, **one.arguments)
    return float(total), {name: float(value) for name, value in terms.items()}


@pytest.mark.parametrize(("sizes", "activation"), [((4, 3), "relu"), ((4, 3), "silu"), ((), "relu")])
@pytest.mark.parametrize("name", LAYOUTS)
def test_equals_loops(name: str, sizes: tuple[int, ...], activation: Any, rng: np.random.Generator) -> None:
    layout = LAYOUTS[name]
    null_loss = rng.uniform(0.3, 1.0, layout.n_nodes)
    with jax.enable_x64(True):
        one = problem(DeepLasso(0.3), layout, rng, sizes, rows=5, dtype=np.float64)
        one.parameters = one.parameters._replace(activation=Activation(activation))
        batch = one.batch._replace(weight=jnp.asarray([0.3, 0.0, 0.2, 0.4, 0.1]))
        norms = loss_gradient_norms(one.parameters, batch, layout, jnp.asarray(null_loss))
        total, (terms, _) = regularized_loss(
            one.parameters, batch, [one.regularizer], layout, null_loss=jnp.asarray(null_loss)
        )
        expected = reference(one.parameters, batch, layout, null_loss)
    assert (expected[: layout.n_features] > 1e-3).all()
    assert (expected[layout.n_features :] == 0).all()
    np.testing.assert_allclose(norms, expected, rtol=1e-5, atol=1e-9)
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


def test_only_the_targets_count_beside_castle_with_and_without_sampled_features(rng: np.random.Generator) -> None:
    layout = LAYOUTS["mixed"]
    one = problem(Castle(), layout, rng)
    expected = reference(one.parameters, one.batch, layout, np.ones(5)).sum()
    for sampled in (None, jnp.asarray([2, 0, 4])):
        _, (terms, _) = regularized_loss(one.parameters, one.batch, [Castle(), DeepLasso()], layout, sampled=sampled)
        np.testing.assert_allclose(terms["deep_lasso"], expected, rtol=1e-3)


def test_the_order_of_rows_and_rows_without_weight_do_not_matter(rng: np.random.Generator) -> None:
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


def test_columns_that_are_not_used_have_norm_zero_and_a_finite_slope(rng: np.random.Generator) -> None:
    layout = LAYOUTS["mixed"]
    one = problem(DeepLasso(), layout, rng)
    weights = one.parameters.input_weights.at[np.flatnonzero(layout.channel_nodes == 3)].set(0.0)
    parameters = one.parameters._replace(input_weights=weights)
    norms = loss_gradient_norms(parameters, one.batch, layout)
    assert norms[3] == 0.0
    assert (norms[:3] > 0).all()
    gradient = jax.jit(jax.grad(lambda p: regularized_loss(p, one.batch, [one.regularizer], layout)[0]))(parameters)
    assert all(np.isfinite(a).all() for a in jax.tree.leaves(gradient))


def test_it_keeps_noise_columns_out(rng: np.random.Generator) -> None:
    X = rng.normal(size=(150, 12))
    y = X[:, 0] - X[:, 1] + 0.5 * rng.normal(size=150)
    shares = []
    for strength in (0.0, 1.0):
        model = NetworkRegressor([DeepLasso(strength)], hidden_layer_sizes=(8,), max_epochs=60, random_state=0)
        predict = model.fit(X, y).predict
        slopes = [np.abs(predict(X + step) - predict(X - step)).mean() for step in 0.1 * np.eye(12)]
        shares.append(sum(slopes[2:]) / sum(slopes))
    assert shares[1] < 0.5 * shares[0]


def test_fits_classes_categories_missing_values_embeddings_and_weights(rng: np.random.Generator) -> None:
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
