"""TANGOS against loops over rows, units and pairs."""

from __future__ import annotations

import itertools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from castlereg import CastleMultiOutput, NetworkClassifier, NetworkRegressor, Recipe
from castlereg.layout import Layout, Node
from castlereg.losses import Batch
from castlereg.network import Activation, Parameters, forward
from castlereg.regularizers import Castle, Tangos
from castlereg.regularizers.engine import regularized_loss
from castlereg.regularizers.tangos import orthogonalization_loss, unit_attributions
from tests.regularizers.cases import Problem, problem

LAYOUTS = {
    "mixed": Layout((Node(), Node(missing=True), Node("binary"), Node("categorical", 3), Node(target=True))),
    "embedded": Layout((Node(), Node("categorical", 2), Node(), Node("binary", target=True)), embedding=2),
    "two targets": Layout((Node(), Node(), Node("categorical", 3, target=True), Node(target=True))),
}


def units_as_outputs(parameters: Parameters) -> Parameters:
    """Return a network whose outputs are the units of the last hidden layer."""
    assert parameters.output_weights is not None
    nodes, width, _ = parameters.output_weights.shape
    return parameters._replace(
        output_weights=jnp.broadcast_to(jnp.eye(width), (nodes, width, width)), output_bias=jnp.zeros((nodes, width))
    )


def reference(parameters: Parameters, batch: Batch, layout: Layout) -> tuple[float, float]:
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


def terms_of(one: Problem, **changes: Any) -> tuple[float, dict[str, float]]:
    batch = one.batch._replace(**changes)
    total, (terms, _) = regularized_loss(one.parameters, batch, [one.regularizer], one.layout, **one.arguments)
    return float(total), {name: float(value) for name, value in terms.items()}


@pytest.mark.parametrize("activation", ["relu", "silu"])
@pytest.mark.parametrize("name", LAYOUTS)
def test_equals_loops(name: str, activation: Any, rng: np.random.Generator) -> None:
    layout = LAYOUTS[name]
    with jax.enable_x64(True):
        one = problem(Tangos(0.3, 0.7), layout, rng, (6, 5), rows=5, dtype=np.float64)
        one.parameters = one.parameters._replace(activation=Activation(activation))
        weight = jnp.asarray([0.3, 0.0, 0.2, 0.4, 0.1])
        total, terms = terms_of(one, weight=weight)
        spread, cosine = reference(one.parameters, one.batch._replace(weight=weight), layout)
    assert min(spread, cosine) > 0.01
    np.testing.assert_allclose(terms["specialization"], spread, rtol=1e-5)
    np.testing.assert_allclose(terms["orthogonalization"], cosine, rtol=1e-5)
    np.testing.assert_allclose(total, terms["supervised"] + 0.3 * spread + 0.7 * cosine, rtol=1e-5)


def test_only_the_targets_count_beside_castle_with_and_without_sampled_features(rng: np.random.Generator) -> None:
    layout = LAYOUTS["mixed"]
    one = problem(Castle(), layout, rng)
    expected = reference(one.parameters, one.batch, layout)
    for sampled in (None, jnp.asarray([2, 0, 4])):
        _, (terms, _) = regularized_loss(one.parameters, one.batch, [Castle(), Tangos()], layout, sampled=sampled)
        found = [terms["specialization"], terms["orthogonalization"]]
        np.testing.assert_allclose(found, expected, rtol=1e-3)


def test_attributions_are_the_gradients_of_single_units(rng: np.random.Generator) -> None:
    layout = LAYOUTS["embedded"]
    one = problem(Tangos(), layout, rng)
    found = unit_attributions(one.parameters, one.batch.inputs)
    assert found.shape == (1, 3, 8, layout.n_channels)

    def unit(x: jax.Array, i: int) -> jax.Array:
        return forward(units_as_outputs(one.parameters), x[None])[0, 0, i]

    for i, row in itertools.product(range(3), range(8)):
        np.testing.assert_allclose(found[0, i, row], jax.grad(unit)(one.batch.inputs[row], i), rtol=1e-4, atol=1e-6)


def test_drawn_pairs_are_two_units_and_every_pair_is_equally_likely(rng: np.random.Generator) -> None:
    drawn = Tangos(pairs=8).draw(rng, 20_000, (9, 5))
    assert drawn.shape == (20_000, 8, 2)
    assert drawn.dtype == np.int32
    pairs, counts = np.unique(np.sort(drawn.reshape(-1, 2), axis=1), axis=0, return_counts=True)
    np.testing.assert_array_equal(pairs, list(itertools.combinations(range(5), 2)))
    np.testing.assert_allclose(counts / counts.sum(), 0.1, atol=0.005)
    assert Tangos(pairs=10).draw(rng, 3, (9, 5)) == ()


def test_drawn_pairs_give_the_mean_over_all_pairs_on_average(rng: np.random.Generator) -> None:
    attributions = jnp.asarray(rng.normal(size=(2, 6, 4, 3)), jnp.float32)
    weight = jnp.asarray([0.1, 0.2, 0.3, 0.4])
    drawn = jnp.asarray(Tangos(pairs=4).draw(rng, 4000, (6,)))
    by_step = jax.vmap(lambda pairs: orthogonalization_loss(attributions, weight, pairs))(drawn)
    expected = orthogonalization_loss(attributions, weight)
    assert abs(by_step.mean() - expected) < 4 * by_step.std() / np.sqrt(4000)
    assert by_step.std() > 0.01


def test_the_step_uses_the_pairs_it_drew(rng: np.random.Generator) -> None:
    one = problem(Tangos(pairs=1), LAYOUTS["mixed"], rng)
    attributions = unit_attributions(one.parameters, one.batch.inputs)
    for pair in itertools.combinations(range(3), 2):
        one.drawn = (jnp.asarray([pair], jnp.int32),)
        expected = orthogonalization_loss(attributions[:, jnp.asarray(pair)], one.batch.weight)
        np.testing.assert_allclose(terms_of(one)[1]["orthogonalization"], expected, rtol=1e-6)


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


def test_training_lowers_what_it_penalizes(rng: np.random.Generator) -> None:
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
    several = CastleMultiOutput(regularizers=[Tangos()], max_epochs=3, random_state=0)
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
def test_wrong_options_are_rejected(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Tangos(**options)
