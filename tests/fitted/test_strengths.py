"""Edge strengths against closed forms, and the network without the edge."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest
from sklearn.metrics import log_loss

from castlereg.fitted.strengths import edge_strengths, enough_rows
from castlereg.layout import Layout, Node
from castlereg.losses import Batch, cell_losses, mean_losses, node_scores
from castlereg.network import Parameters, forward
from tests.small_problems import random_batch, random_parameters


def as_numpy(tree: Any) -> Any:
    return jax.tree.map(np.asarray, tree)


def linear_network(weights: np.ndarray) -> Parameters:
    return Parameters(weights[:, :, None], np.zeros((weights.shape[1], 1)), (), None, None)  # type: ignore[arg-type]


def plain_batch(x: np.ndarray, truth: np.ndarray | None = None, observed: np.ndarray | None = None) -> Batch:
    weight = np.full(len(x), 1 / len(x))
    return Batch(x, (x if truth is None else truth)[:, :, None], weight, observed)  # type: ignore[arg-type]


def uncorrelated(rng: np.random.Generator, columns: int, rows: int = 400) -> np.ndarray:
    """Draw columns of mean 0 and variance 1 that are exactly uncorrelated."""
    x = rng.normal(size=(rows, columns))
    return np.linalg.qr(x - x.mean(axis=0))[0] * np.sqrt(rows)


def test_strength_of_uncorrelated_causes_is_their_partial_correlation(rng: np.random.Generator) -> None:
    *causes, noise = uncorrelated(rng, 3).T
    y = 0.6 * causes[0] - 0.3 * causes[1] + 0.5 * noise
    weights = np.zeros((3, 3))
    weights[:2, 2] = 0.6, -0.3
    layout = Layout((Node(), Node(), Node(target=True)))
    found = edge_strengths(linear_network(weights), plain_batch(np.c_[causes[0], causes[1], y]), layout)
    inverse = np.linalg.inv(np.corrcoef([*causes, y]))
    partial = np.abs(inverse[:2, 2]) / np.sqrt(np.diag(inverse)[:2] * inverse[2, 2])
    np.testing.assert_allclose(found[:2, 2], partial, rtol=1e-5)
    assert (found[:, :2] == 0).all()


def test_strength_of_a_cause_of_classes_is_the_log_loss_it_saves(rng: np.random.Generator) -> None:
    cause = uncorrelated(rng, 1)[:, 0]
    y = (rng.random(400) < 1 / (1 + np.exp(-2 * cause))).astype(float)
    layout = Layout((Node(), Node("binary", target=True)))
    weights = np.array([[0.0, 2.0], [0.0, 0.0]])
    x = np.c_[cause, np.zeros(400)]
    null = np.array([1.0, 0.69])  # units change nothing
    found = edge_strengths(linear_network(weights), plain_batch(x, np.c_[cause, y]), layout, null)
    saved = log_loss(y, np.full(400, 0.5)) - log_loss(y, 1 / (1 + np.exp(-2 * cause)))
    np.testing.assert_allclose(found[0, 1], np.sqrt(1 - np.exp(-2 * saved)), rtol=1e-5)


@pytest.mark.parametrize("sizes", [(), (4,), (4, 3)])
def test_leaving_out_is_setting_the_causes_weights_to_zero(
    mixed_layout: Layout, rng: np.random.Generator, sizes: tuple[int, ...]
) -> None:
    with jax.enable_x64(True):
        batch = as_numpy(random_batch(mixed_layout, rng, 50, np.float64))
        parameters = as_numpy(random_parameters(mixed_layout, sizes, rng, np.float64))
        null = np.array([1.0, 1.0, 0.7, 1.1, 1.0])

        def scores(of: Parameters) -> np.ndarray:
            losses = cell_losses(forward(of, batch.inputs), batch, mixed_layout, None, null)
            return np.asarray(node_scores(mean_losses(losses, batch), mixed_layout, null))

        found = edge_strengths(parameters, batch, mixed_layout, null)
        for cause in range(5):
            weights = parameters.input_weights.copy()
            weights[mixed_layout.channel_nodes == cause] = 0
            cost = scores(parameters._replace(input_weights=weights)) - scores(parameters)
            expected = np.sqrt(1 - np.exp(-2 * np.maximum(cost, 0)))
            np.testing.assert_allclose(
                found[cause], np.where(np.arange(5) == cause, 0, expected), rtol=1e-9, atol=1e-12
            )


def test_an_edge_that_carries_nothing_is_still_an_edge(rng: np.random.Generator) -> None:
    x = uncorrelated(rng, 3)
    weights = np.zeros((3, 3))
    weights[0, 2] = 0.5  # and yet the two are uncorrelated: worse than nothing
    found = edge_strengths(linear_network(weights), plain_batch(x), Layout((Node(), Node(), Node(target=True))))
    assert 0 < found[0, 2] < 1e-30
    assert np.count_nonzero(found) == 1


def test_missing_values_do_not_count(rng: np.random.Generator) -> None:
    layout = Layout((Node(), Node(gaps=True), Node(target=True)))
    weights = rng.normal(size=(4, 3)) * layout.edge_mask()
    x = np.insert(uncorrelated(rng, 3), 2, 0.0, axis=1)
    observed = np.ones((400, 3))
    observed[250:, 1] = 0
    truth = x[:, [0, 1, 3]].copy()
    truth[250:, 1] = 9.0
    found = edge_strengths(linear_network(weights), plain_batch(x, truth, observed), layout)
    known = edge_strengths(linear_network(weights), plain_batch(x[:250], truth[:250], observed[:250]), layout)
    np.testing.assert_allclose(found[:, 1], known[:, 1], rtol=1e-5)


def test_fewer_rows_are_enough_in_wide_tables() -> None:
    rows = [enough_rows(Layout((*[Node()] * d, Node(target=True))), d + 1) for d in (10, 100, 200, 400)]
    assert rows[0] == 2000
    assert rows == sorted(rows, reverse=True)
    assert rows[-1] == 128
