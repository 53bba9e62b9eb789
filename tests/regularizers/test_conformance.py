"""What every regularizer has to do, whatever it does."""

from __future__ import annotations

import pickle
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.base import clone

from castlereg import NetworkRegressor, Recipe
from castlereg.layout import Layout, Node
from castlereg.network import Form, initialize, mask_inputs, unpack
from castlereg.regularizers import Castle, Dropout, Own, Regularizer
from castlereg.regularizers.engine import regularized_loss, trained_nodes
from castlereg.table.encoding import Encoded
from castlereg.training import Member, Phase, Plan, train
from castlereg.training.state import Setup, initial_states
from tests.regularizers.cases import STRATEGIES, VARIANTS, problem

SIZES = (5, 4)
QUICK = Plan(SIZES, (Phase(6),), patience=6, batch_size=16)
every = pytest.mark.parametrize("name", STRATEGIES)
every_variant = pytest.mark.parametrize("name", VARIANTS)


def table() -> Encoded:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(90, 4))
    y = x[:, 0] - np.tanh(x[:, 1]) + 0.3 * rng.normal(size=90)
    layout = Layout((*(Node() for _ in range(4)), Node(target=True)))
    return Encoded(np.column_stack([x, y]).astype(np.float32), layout)


def member(regularizer: Regularizer, seed: int = 0) -> Member:
    rows = np.arange(90)
    return Member(rows[rows % 5 != seed], rows[rows % 5 == seed], np.random.SeedSequence(seed), (regularizer,))


def assert_same_networks(one: Any, other: Any, rtol: float) -> None:
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol), one, other)


@every_variant
def test_is_a_tree_of_its_strengths(name: str) -> None:
    first, second = VARIANTS[name]
    assert jax.tree.structure(first) == jax.tree.structure(second)
    leaves, structure = jax.tree.flatten(first)
    assert all(isinstance(leaf, float) for leaf in leaves)
    assert jax.tree.unflatten(structure, leaves) == first
    assert jax.tree.unflatten(structure, jax.tree.leaves(second)) == second
    assert hash(structure) == hash(jax.tree.structure(second))


@every_variant
def test_survives_clone_pickle_and_print(name: str) -> None:
    regularizer = VARIANTS[name][0]
    model = NetworkRegressor([regularizer])
    assert clone(model).regularizers == [regularizer]
    assert pickle.loads(pickle.dumps(regularizer)) == regularizer
    assert type(regularizer).__name__ in repr(model)


@every_variant
def test_terms_are_those_it_names(name: str, mixed_layout: Layout, rng: np.random.Generator) -> None:
    regularizer = VARIANTS[name][0]
    one = problem(regularizer, mixed_layout, rng)
    _, (terms, own) = regularized_loss(one.parameters, one.batch, [regularizer], mixed_layout, **one.arguments)
    assert set(terms) == {"supervised", *regularizer.terms}
    assert jax.tree.structure(own) == jax.tree.structure(one.own)


@every
def test_gradient_equals_finite_differences(name: str, mixed_layout: Layout, rng: np.random.Generator) -> None:
    """Of the network's weights and of the regularizer's own, for one draw of its random numbers."""
    regularizer = STRATEGIES[name][1]
    with jax.enable_x64(True):
        one = problem(regularizer, mixed_layout, rng, dtype=np.float64)
        flat, unravel = jax.flatten_util.ravel_pytree((one.parameters, one.own[0].trained))
        nodes = list(trained_nodes([regularizer], mixed_layout))
        mask = jnp.asarray(mixed_layout.edge_mask()[:, nodes], np.float64)

        def loss(vector: jax.Array) -> jax.Array:
            parameters, trained = unravel(vector)
            masked = mask_inputs(parameters, mask)
            arguments = one.arguments | {"own": (Own(trained, one.own[0].running),)}
            return regularized_loss(masked, one.batch, [regularizer], mixed_layout, **arguments)[0]

        gradient, compiled = jax.jit(jax.grad(loss))(flat), jax.jit(loss)
        assert np.isfinite(gradient).all()
        for i in rng.choice(len(flat), 20, replace=False):
            step = jnp.zeros_like(flat).at[i].set(1e-6)
            slope = (compiled(flat + step) - compiled(flat - step)) / 2e-6
            np.testing.assert_allclose(gradient[i], slope, rtol=5e-6, atol=5e-7)


@every_variant
def test_rows_that_fill_up_a_batch_change_nothing(name: str, mixed_layout: Layout, rng: np.random.Generator) -> None:
    regularizer = VARIANTS[name][0]
    one = problem(regularizer, mixed_layout, rng)
    weight = jnp.asarray([0.2] * 5 + [0.0] * 3, jnp.float32)
    losses, own = [], []
    for junk in (0.0, 7.0):
        batch = one.batch._replace(
            inputs=one.batch.inputs.at[5:].set(junk), truth=one.batch.truth.at[5:].set(junk), weight=weight
        )
        total, (_, after) = regularized_loss(one.parameters, batch, [regularizer], mixed_layout, **one.arguments)
        losses.append(float(total))
        own.append(after)
    assert losses[0] == losses[1]
    assert_same_networks(*own, rtol=0.0)


@every
def test_a_stack_of_strengths_equals_its_members_one_by_one(name: str) -> None:
    first, second = STRATEGIES[name]
    members = [member(first, 0), member(second, 1), member(second, 0)]
    together = train(table(), members, QUICK)
    for i, one in enumerate(members):
        alone = train(table(), [one], QUICK)
        assert_same_networks(together.take(np.array([i])).parameters, alone.parameters, rtol=1e-5)
        np.testing.assert_allclose(together.validation_loss[i], alone.validation_loss[0], rtol=1e-5)


@every
def test_strength_matters_and_the_same_seed_gives_the_same_bits(name: str) -> None:
    """A regularizer that does nothing would pass many a test."""
    first, again, second, plain = (
        train(table(), [replace(member(Castle()), regularizers=chosen)], QUICK)
        for chosen in ((STRATEGIES[name][0],), (STRATEGIES[name][0],), (STRATEGIES[name][1],), ())
    )
    assert_same_networks(first.parameters, again.parameters, rtol=0.0)
    inputs, others, without = (run.parameters.input_weights for run in (first, second, plain))
    assert not np.array_equal(inputs, others)
    assert not np.array_equal(inputs[:, :, -1:], without)


@every_variant
@pytest.mark.parametrize("input_init", ["small", "glorot"])
def test_starts_from_the_target_weights_of_the_plain_network(name: str, input_init: Any) -> None:
    plan = replace(QUICK, input_init=input_init)
    states = initial_states(Setup(table(), [member(VARIANTS[name][0], seed=3)], plan))
    packed = jax.tree.map(lambda a: a[0], states.train.weights.network)
    start = unpack(packed, Form(SIZES), table().layout)
    plain = initialize(table().layout, SIZES, np.random.SeedSequence(3), nodes=(4,), input_init=input_init)
    np.testing.assert_array_equal(start.input_weights[:, -1:], plain.input_weights)
    np.testing.assert_array_equal(start.output_weights[-1:], plain.output_weights)
    jax.tree.map(np.testing.assert_array_equal, start.hidden, plain.hidden)


@every
def test_a_prediction_does_not_depend_on_other_rows(name: str) -> None:
    data = table().inputs.astype(np.float64)
    model = NetworkRegressor(
        [STRATEGIES[name][0]], hidden_layer_sizes=SIZES, recipe=Recipe(batch_size=16), random_state=0
    )
    model.fit(data[:, :4], data[:, 4])
    together = model.predict(data[:, :4])
    np.testing.assert_array_equal(together[40:41], model.predict(data[40:41, :4]))
    np.testing.assert_array_equal(together[::-1], model.predict(data[::-1, :4]))


@every
def test_works_beside_dropout_and_castle_with_sampled_features(name: str) -> None:
    regularizer = STRATEGIES[name][0]
    others = [one for one in (Dropout(0.1), Castle(features_per_step=2)) if not isinstance(regularizer, type(one))]
    chosen = replace(member(regularizer), regularizers=(regularizer, *others))
    result = train(table(), [chosen], QUICK)
    assert np.isfinite(result.validation_loss).all()
    assert set(result.history) >= {name for one in chosen.regularizers for name in one.terms}


@every
def test_training_under_x64_stays_float32(name: str) -> None:
    plain = train(table(), [member(STRATEGIES[name][0])], QUICK)
    with jax.enable_x64(True):
        other = train(table(), [member(STRATEGIES[name][0])], QUICK)
    assert {a.dtype for a in jax.tree.leaves(other.parameters)} == {np.dtype(np.float32)}
    assert_same_networks(plain.parameters, other.parameters, rtol=1e-4)
