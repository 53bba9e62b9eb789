"""Losses by kind of node."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import scipy.stats

from castlereg.layout import Layout, Node
from castlereg.losses import Batch, cell_losses
from castlereg.table.encoding import _null_losses
from tests.small_problems import random_batch


def test_losses_by_kind(mixed_layout: Layout, rng: np.random.Generator) -> None:
    batch = random_batch(mixed_layout, rng)
    outputs = rng.normal(size=batch.truth.shape).astype(np.float32)
    losses = np.asarray(cell_losses(jnp.asarray(outputs), batch, mixed_layout))
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
    on_host = jax.tree.map(np.asarray, (outputs, batch, units))
    with jax.transfer_guard("disallow"):
        found = cell_losses(on_host[0], on_host[1], mixed_layout, None, on_host[2])
    assert isinstance(found, np.ndarray)
    np.testing.assert_allclose(found, cell_losses(outputs, batch, mixed_layout, None, units), rtol=1e-5)


def test_losses_of_a_subset_are_those_of_the_whole(mixed_layout: Layout, rng: np.random.Generator) -> None:
    batch = random_batch(mixed_layout, rng)
    outputs = jnp.asarray(rng.normal(size=batch.truth.shape), jnp.float32)
    for chosen in (jnp.array([0, 3, 4]), jnp.arange(5)):
        part = cell_losses(outputs[:, chosen], batch, mixed_layout, chosen)
        np.testing.assert_allclose(part, cell_losses(outputs, batch, mixed_layout)[:, chosen], rtol=1e-6)


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
        null_loss = _null_losses(np.array([0, rare, *shares, 0]), layout)
        losses = np.asarray(cell_losses(jnp.asarray(outputs), batch, layout, null_loss=jnp.asarray(null_loss)))
    np.testing.assert_allclose(losses.mean(axis=0), np.ones(4), rtol=1e-9)
