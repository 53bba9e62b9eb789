"""MixUp's mixtures."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

from castlereg.layout import Layout, Node
from castlereg.losses import Batch, node_losses
from castlereg.regularizers import MixUp

PAIR = Layout((Node(), Node(target=True)))


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
    own = node_losses(outputs, batch.truth, layout)[:, 1]
    partners = node_losses(outputs, batch.truth[jnp.array([1, 2, 3, 0])], layout)[:, 1]
    np.testing.assert_allclose(node_losses(outputs, mixed.truth, layout)[:, 1], 0.6 * own + 0.4 * partners, rtol=1e-5)


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
