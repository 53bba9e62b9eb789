"""What is particular to the spectral radius; tests/test_acyclicity_contract.py has what it shares with the others."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg

from castlereg.paper.acyclicity import spectral_radius


def test_spectral_radius_of_several_groups_is_that_of_the_strongest() -> None:
    groups = scipy.linalg.block_diag(0.5 * np.roll(np.eye(3), 1, axis=1), 0.2 * (np.ones((2, 2)) - np.eye(2)), [[0.0]])
    groups[0, 3] = 7.0  # an edge between groups is on no cycle
    groups[4, 5] = 100.0
    value, gradient = jax.value_and_grad(spectral_radius)(jnp.asarray(groups, jnp.float32))
    assert float(value) == pytest.approx(0.5, rel=1e-4)
    np.testing.assert_allclose(np.asarray(gradient)[:3, :3] * (groups[:3, :3] > 0), (groups[:3, :3] > 0) / 3, rtol=1e-2)
    np.testing.assert_allclose(np.asarray(gradient)[3:5, 3:5], 0, atol=1e-3)


def test_spectral_radius_next_to_a_graph_without_cycles() -> None:
    """The root of a product of weights, 24 orders of magnitude apart."""
    loop = np.array([[0, 1.0, 1.0], [1e-24, 0, 1.0], [0, 0, 0]])
    value, gradient = jax.value_and_grad(spectral_radius)(jnp.asarray(loop, jnp.float32))
    assert float(value) == pytest.approx(1e-12, rel=1e-3)
    assert float(gradient[0, 1]) == pytest.approx(0.5e-12, rel=1e-3)
    assert np.isfinite(gradient).all()
