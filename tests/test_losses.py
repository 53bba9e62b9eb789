"""Losses by kind of node, and their likelihood."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.stats

from castlereg.layout import Layout, Node
from castlereg.losses import Batch, cell_losses, log_likelihood_loss, mean_losses, node_losses, node_scores
from castlereg.table.table import null_losses
from tests.small_problems import random_batch


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


def test_arrays_of_numpy_need_no_program(mixed_layout: Layout, rng: np.random.Generator) -> None:
    """JAX would compile every operation for every number of rows, and keep it."""
    batch = random_batch(mixed_layout, rng)
    outputs = jnp.asarray(rng.normal(size=batch.truth.shape), jnp.float32)
    units = jnp.asarray([1, 1, 0.6, 1.1, 1], jnp.float32)

    def scores(outputs: Any, batch: Batch, units: Any) -> Any:
        losses = cell_losses(outputs, batch, mixed_layout, None, units)
        return node_scores(mean_losses(losses, batch), mixed_layout, units)

    on_host = jax.tree.map(np.asarray, (outputs, batch, units))
    with jax.transfer_guard("disallow"):
        found = scores(*on_host)
    assert isinstance(found, np.ndarray)
    np.testing.assert_allclose(found, scores(outputs, batch, units), rtol=1e-5)


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


def test_log_likelihood_counts_only_known_values(rng: np.random.Generator) -> None:
    layout = Layout((Node(missing=True), Node(target=True)))
    losses = rng.random((6, 2))
    observed = np.ones((6, 2))
    observed[[1, 4], 0] = 0
    batch = Batch(jnp.zeros((6, 3)), jnp.zeros((6, 2, 1)), jnp.full(6, 1 / 6), jnp.asarray(observed))
    found = log_likelihood_loss(jnp.asarray(losses * observed), batch, layout, jnp.ones(2), jnp.ones(2))
    expected = 0.5 * np.log(losses[observed[:, 0] > 0, 0].mean()) + 0.5 * np.log(losses[:, 1].mean())
    np.testing.assert_allclose(found, expected, rtol=1e-5)
