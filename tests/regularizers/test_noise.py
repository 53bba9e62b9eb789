"""Dropout, input noise, corruption and MixUp: how much they change, and what they leave alone."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

from castlereg.layout import Layout, Node
from castlereg.losses import Batch, cell_losses
from castlereg.regularizers import Corruption, Dropout, InputNoise, MixUp

PAIR = Layout((Node(), Node(target=True)))


@pytest.mark.parametrize("rate", [0.2, 0.5, 0.9])
def test_share_dropped_and_expectation(rate: float, rng: np.random.Generator) -> None:
    dropout, n = Dropout(rate), 4000
    words = jnp.asarray(dropout.draw(rng, n, (3,)))
    z = jnp.asarray(rng.uniform(1, 2, size=(5, 2, 3)), jnp.float32)
    dropped = np.asarray(jax.vmap(lambda w: dropout.on_hidden(z, 0, w))(words))
    share = (dropped == 0).mean(axis=0)
    error = np.sqrt(rate * (1 - rate) / n)
    assert np.abs(share - rate).max() < 5 * error
    np.testing.assert_allclose(dropped[dropped != 0].min(), z.min() / (1 - rate), rtol=1e-5)
    # The mean over steps is the unit itself, within five standard errors.
    spread = np.asarray(z) * np.sqrt(rate / (1 - rate) / n)
    assert (np.abs(dropped.mean(axis=0) - np.asarray(z)) < 5 * spread).all()


def test_units_rows_layers_and_steps_are_dropped_independently(rng: np.random.Generator) -> None:
    dropout = Dropout(0.5)
    words = jnp.asarray(dropout.draw(rng, 2000, (4, 4)))
    z = jnp.ones((3, 1, 4))
    masks = np.stack(
        [np.asarray(jax.vmap(lambda w, layer=layer: dropout.on_hidden(z, layer, w))(words)) for layer in (0, 1)], axis=1
    )
    together = np.corrcoef((masks > 0).reshape(2000, -1).T) - np.eye(24)
    assert np.abs(together).max() < 5 / np.sqrt(2000)
    assert np.abs(np.corrcoef((masks[1:, 0, 0, 0, 0] > 0), (masks[:-1, 0, 0, 0, 0] > 0))[0, 1]) < 5 / np.sqrt(2000)


@pytest.mark.parametrize("rate", [1.0, -0.1, "half", True])
def test_bad_rates_are_named(rate: float) -> None:
    with pytest.raises(ValueError, match=f"Dropout's rate={rate!r} must be at least 0 and below 1"):
        Dropout(rate)


def test_inputs_get_noise_of_the_stated_size_and_nothing_else_does(rng: np.random.Generator) -> None:
    noise, steps = InputNoise(0.1), 500
    words = jnp.asarray(noise.draw(rng, steps, ()))
    batch = Batch(*(jnp.asarray(rng.normal(size=shape), jnp.float32) for shape in ((16, 3), (16, 3, 1), (16,))))
    noisy = jax.vmap(lambda w: noise.on_batch(batch, w, Layout((Node(), Node(target=True)))))(words)
    added = np.asarray(noisy.inputs - batch.inputs)
    n = added.size
    assert abs(added.mean()) < 5 * 0.1 / np.sqrt(n)
    assert abs(added.std() - 0.1) < 5 * 0.1 / np.sqrt(2 * n)
    assert np.abs(np.corrcoef(added.reshape(steps, -1).T) - np.eye(48)).max() < 5.5 / np.sqrt(steps)
    np.testing.assert_array_equal(noisy.truth[7], batch.truth)
    np.testing.assert_array_equal(noisy.weight[7], batch.weight)


def test_cells_come_from_other_rows_with_all_their_channels() -> None:
    rows, present = 400, 390
    inputs = np.zeros((rows, 5), np.float32)
    inputs[:, 0] = np.arange(rows)
    inputs[np.arange(rows), 1 + np.arange(rows) % 3] = 1
    weight = np.where(np.arange(rows) < present, 1 / present, 0.0).astype(np.float32)
    batch = Batch(jnp.asarray(inputs), jnp.zeros((rows, 3, 3)), jnp.asarray(weight))
    changed = Corruption(0.3).on_batch(
        batch, jnp.asarray([1, 2], jnp.uint32), Layout((Node(), Node("categorical", 3), Node(target=True)))
    )
    after = np.asarray(changed.inputs)
    differs = after[:, 0] != inputs[:, 0]
    assert 0.22 < differs[:present].mean() < 0.38
    assert not differs[present:].any()
    donor = np.flatnonzero(differs)
    np.testing.assert_array_equal(after[donor, 0], (donor + 1) % present)
    np.testing.assert_array_equal(after[:, 1:4].sum(axis=1), 1)  # a level stays one level
    assert (after[:, 1:4] != inputs[:, 1:4]).any(axis=1)[~differs].any()  # columns by themselves
    np.testing.assert_array_equal(changed.truth, batch.truth)


def test_rate_is_a_share() -> None:
    with pytest.raises(ValueError, match=r"Corruption's rate=1\.0 must be at least 0 and below 1"):
        Corruption(1.0)


def test_inputs_and_targets_are_mixed_alike(rng: np.random.Generator) -> None:
    x = rng.normal(size=(6, 2)).astype(np.float32)
    weight = np.array([1, 1, 2, 1, 0, 0], np.float32) / 4
    mixed = MixUp().on_batch(
        Batch(jnp.asarray(x), jnp.asarray(x)[:, :, None], jnp.asarray(weight)), jnp.asarray([0.7, 0.6]), PAIR
    )
    partner = np.array([2, 3, 0, 1])  # 0.6 of four rows: two places on; the last two rows only fill up
    np.testing.assert_allclose(mixed.inputs[:4], 0.7 * x[:4] + 0.3 * x[partner], rtol=1e-6)
    np.testing.assert_allclose(mixed.truth[:4, :, 0], mixed.inputs[:4], rtol=1e-6)
    np.testing.assert_allclose(mixed.weight, [*(0.7 * weight[:4] + 0.3 * weight[partner]), 0, 0], rtol=1e-6)


def test_a_mixture_with_a_missing_cell_is_missing() -> None:
    observed = jnp.asarray([[1, 1], [0, 1], [1, 0], [1, 1.0]])
    batch = Batch(jnp.zeros((4, 2)), jnp.zeros((4, 2, 1)), jnp.full(4, 0.25), observed)
    mixed = MixUp().on_batch(batch, jnp.asarray([0.7, 0.3]), PAIR)  # partners are one place on
    np.testing.assert_array_equal(mixed.observed, [[0, 1], [0, 0], [1, 0], [1, 1]])


def test_the_loss_of_a_mixed_class_is_the_mixture_of_losses(rng: np.random.Generator) -> None:
    layout = Layout((Node(), Node("categorical", 3, target=True)))
    truth = np.zeros((4, 2, 3), np.float32)
    truth[np.arange(4), 1, [0, 1, 2, 1]] = 1
    outputs = jnp.asarray(rng.normal(size=(4, 2, 3)), jnp.float32)
    batch = Batch(jnp.zeros((4, 4)), jnp.asarray(truth), jnp.full(4, 0.25))
    mixed = MixUp().on_batch(batch, jnp.asarray([0.6, 0.3]), layout)
    own = cell_losses(outputs, batch, layout)[:, 1]
    partners = cell_losses(outputs, batch._replace(truth=batch.truth[jnp.array([1, 2, 3, 0])]), layout)[:, 1]
    np.testing.assert_allclose(cell_losses(outputs, mixed, layout)[:, 1], 0.6 * own + 0.4 * partners, rtol=1e-5)


@pytest.mark.parametrize("alpha", [0.2, 1.0, 4.0])
def test_shares_follow_a_beta_distribution_and_turns_are_uniform(alpha: float, rng: np.random.Generator) -> None:
    drawn = MixUp(alpha).draw(rng, 4000, ()).astype(np.float64)
    assert scipy.stats.kstest(drawn[:, 0], scipy.stats.beta(alpha, alpha).cdf).pvalue > 1e-4
    assert scipy.stats.kstest(drawn[:, 1], "uniform").pvalue > 1e-4


def test_every_turn_pairs_each_row_with_one_partner() -> None:
    n = 5
    batch = Batch(jnp.arange(8.0)[:, None], jnp.zeros((8, 1, 1)), jnp.asarray([1.0] * n + [0.0] * 3))
    for turn in (0.0, 0.19, 0.5, 0.999999, 1.0):
        partners = np.asarray(MixUp().on_batch(batch, jnp.asarray([0.0, turn]), PAIR).inputs[:n, 0])
        assert sorted(partners) == list(range(n))
