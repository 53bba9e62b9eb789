"""The acyclicity function against JAX's and PyTorch's own matrix exponential."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.typing import NDArray

from castlereg.acyclicity import trace_exponential as of_jax

torch = pytest.importorskip("torch")
from castlereg.torch import trace_exponential  # noqa: E402  # needs torch


def dense(p: int, scale: float) -> NDArray[np.float64]:
    return scale * np.random.default_rng(p).random((p, p)) * (1 - np.eye(p))


def ring(p: int, weight: float) -> NDArray[np.float64]:
    """One cycle through all nodes."""
    return weight * np.roll(np.eye(p), 1, axis=1)


MATRICES = {
    "none": np.zeros((20, 20)),
    "small": dense(20, 1e-3),
    "middling": dense(20, 0.2),
    "large": dense(20, 0.7),
    "long cycle": ring(20, 0.5),
    "far": dense(20, 20.0),
    "farther": dense(20, 1e20),
    "beyond": dense(20, 1.0) * 1e36,
}
OF_JAX = jax.jit(jax.value_and_grad(of_jax))


def value_and_gradient(matrix: NDArray[np.float64], dtype: Any) -> tuple[float, NDArray[np.float64]]:
    adjacency = torch.tensor(matrix, dtype=dtype, requires_grad=True)
    value = trace_exponential(adjacency)
    value.backward()
    return float(value.detach()), adjacency.grad.numpy().astype(np.float64)


@pytest.mark.parametrize("name", MATRICES)
def test_value_and_gradient_equal_those_of_jax(name: str) -> None:
    for precise, tolerance in ((False, 1e-5), (True, 1e-9)):
        with jax.enable_x64(precise):
            matrix = jnp.asarray(MATRICES[name])
            value, slope = OF_JAX(matrix)
        found, gradient = value_and_gradient(MATRICES[name], torch.float64 if precise else torch.float32)
        assert np.isfinite(found)
        np.testing.assert_allclose(found, value, rtol=tolerance)
        np.testing.assert_allclose(gradient, slope, rtol=tolerance, atol=tolerance * float(np.abs(slope).max()))


@pytest.mark.parametrize("name", ["small", "middling", "large"])
def test_value_and_gradient_equal_the_matrix_exponential(name: str) -> None:
    found, gradient = value_and_gradient(MATRICES[name], torch.float64)
    exact = torch.matrix_exp(torch.tensor(MATRICES[name]))
    assert found == pytest.approx(float(exact.trace()) - len(exact), rel=1e-6)
    np.testing.assert_allclose(gradient, exact.T, rtol=1e-6, atol=1e-8)


def test_a_graph_without_cycles_has_exactly_zero() -> None:
    assert value_and_gradient(np.triu(dense(12, 3.0), 1), torch.float32)[0] == 0


def test_a_long_cycle_counts() -> None:
    """20 nodes, weight 1/2: the only closed walks have lengths 20, 40, ..."""
    found = value_and_gradient(ring(20, 0.5), torch.float64)[0]
    assert found == pytest.approx(20 * 0.5**20 / math.factorial(20), rel=1e-4)


def test_weights_that_are_not_numbers_stay_so() -> None:
    found, gradient = value_and_gradient(np.full((3, 3), np.nan), torch.float32)
    assert np.isnan(found)
    assert np.isnan(gradient).all()


def test_a_second_derivative_raises() -> None:
    adjacency = torch.tensor(dense(3, 1.0), requires_grad=True)
    (slope,) = torch.autograd.grad(trace_exponential(adjacency) ** 2, adjacency, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        slope.sum().backward()
