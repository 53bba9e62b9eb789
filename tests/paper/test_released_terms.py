"""The terms of the released code's objective, and its starting weights."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special

from castlereg.layout import Layout, Node
from castlereg.network import forward
from castlereg.paper.released import ReleasedCastle, released_start
from castlereg.regularizers.engine import regularized_loss
from tests.small_problems import numeric_layout, random_batch, random_parameters


def test_released_setting_weighs_terms_as_the_released_code(rng: np.random.Generator) -> None:
    layout, rows, lam, beta = numeric_layout(3), 6, 0.5, 5.0
    batch = random_batch(layout, rng, rows)
    parameters = random_parameters(layout, (4, 4), rng, np.float32)
    total, (terms, _) = regularized_loss(parameters, batch, [ReleasedCastle(beta, lam)], layout)
    w = np.asarray(parameters.input_weights, np.float64) * layout.edge_mask()[:, :, None]
    a = (w**2).sum(axis=-1)
    h = sum(np.trace(np.linalg.matrix_power(a, i)) / scipy.special.factorial(i) for i in range(1, 10))
    outputs = np.asarray(forward(parameters._replace(input_weights=jnp.asarray(w, jnp.float32)), batch.inputs))
    squares = (outputs - np.asarray(batch.truth))[..., 0] ** 2
    expected = lam * squares[:, -1].mean() + squares.sum() + h + h**2 / 2 + beta * np.sqrt(a).sum()
    np.testing.assert_allclose(total, expected, rtol=1e-5)
    np.testing.assert_allclose(terms["acyclicity"], h + h**2 / 2, rtol=1e-5)


def test_released_start_is_alike_for_all_nodes() -> None:
    layout = Layout((*(Node() for _ in range(29)), Node(target=True)))
    released = released_start(layout, (32, 32), np.random.SeedSequence(0), tuple(range(30)))
    np.testing.assert_array_equal(released.input_weights[5, 0], released.input_weights[5, 1])
    assert np.std(released.output_weights) == pytest.approx(1.0, rel=0.1)
