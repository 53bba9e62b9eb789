"""The other acyclicity functions against closed forms, by the contract of ``tests/acyclicity/test_contract.py``."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from math import factorial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg
from numpy.typing import NDArray

from castlereg.castle import acyclicity_loss
from castlereg.layout import Layout, Node
from castlereg_paper.acyclicity import _power, spectral_radius, trace_polynomial, truncated_series

P = 40  # nodes of all graphs that are compared, so that each function is compiled once
RADII = (0.1, 0.5, 3.0, 15.0)
Floats = NDArray[np.float64]


def _polynomial(a: Floats) -> float:
    m = _power(len(a))
    return float(np.trace(np.linalg.matrix_power(np.eye(len(a)) + a / m, m)) - len(a))


def _series(a: Floats) -> float:
    return sum(float(np.trace(np.linalg.matrix_power(a, k))) / factorial(k) for k in range(1, 10))


CLOSED_FORMS: dict[Any, Callable[[Floats], float]] = {
    truncated_series: _series,
    trace_polynomial: _polynomial,
    spectral_radius: lambda a: float(np.abs(np.linalg.eigvals(a)).max()),
}
every = pytest.mark.parametrize("function", CLOSED_FORMS, ids=["series", "polynomial", "spectral"])


@cache
def measure(function: Any) -> Callable[[Any], tuple[Any, Any]]:
    """Value and gradient, compiled once for each shape."""
    return jax.jit(jax.value_and_grad(function))


def single(a: Floats) -> Any:
    return jnp.asarray(a, jnp.float32)


def random_graph(rng: np.random.Generator, p: int, radius: float, density: float = 1.0) -> Floats:
    a = rng.random((p, p)) * (rng.random((p, p)) < density)
    np.fill_diagonal(a, 0)
    return a * radius / np.abs(np.linalg.eigvals(a)).max()


@every
def test_equals_the_closed_form_and_grows_with_every_weight(rng: np.random.Generator, function: Any) -> None:
    for radius in RADII:
        for density in (1.0, 0.3, 0.1):
            a = random_graph(rng, P, radius, density)
            value, gradient = measure(function)(single(a))
            np.testing.assert_allclose(value, CLOSED_FORMS[function](a), rtol=2e-5)
            assert (gradient >= 0).all()
            more = a + 0.1 * radius / P * rng.random((P, P)) * (rng.random((P, P)) < 0.1)
            assert value < measure(function)(single(more))[0]


@every
@pytest.mark.parametrize("scale", [1e-12, 0.05, 1.0, 1e3])
def test_zero_exactly_for_graphs_without_cycles(function: Any, scale: float) -> None:
    for seed in range(5):
        rng = np.random.default_rng(seed)
        order = rng.permutation(P)
        dag = np.triu(rng.random((P, P)) * (rng.random((P, P)) < [0.05, 0.2, 1.0, 1.0, 1.0][seed]), k=1)
        value, gradient = measure(function)(single(dag[np.ix_(order, order)] * scale))
        assert value == 0
        assert np.isfinite(gradient).all()


@every
def test_rings_count_and_those_of_ten_nodes_and_more_not_in_the_series(function: Any) -> None:
    for weight in (2.0, 20.0):  # with smaller weights, long rings underflow in float32
        for length in (2, 3, 9, 10, 17, 32, 33):
            ring = np.pad(np.roll(np.eye(length), 1, axis=1) * weight, (0, 60 - length))
            value = float(measure(function)(single(ring))[0])
            assert (value > 0) == (function is not truncated_series or length <= 9)
            if function is spectral_radius:
                assert value == pytest.approx(weight, rel=1e-5)


@every
def test_gradient_equals_finite_differences(function: Any) -> None:
    rng = np.random.default_rng(1)
    with jax.enable_x64(True):
        compiled = jax.jit(jax.value_and_grad(function))
        for radius in (0.05, 15.0):
            a = random_graph(rng, 6, radius)
            gradient = compiled(a)[1]
            for j, k in ((0, 1), (5, 2), (3, 4)):
                step = np.zeros_like(a)
                step[j, k] = 1e-5 * radius
                slope = (compiled(a + step)[0] - compiled(a - step)[0]) / (2 * step[j, k])
                np.testing.assert_allclose(gradient[j, k], slope, rtol=1e-5)


@every
def test_batched_equals_one_by_one_and_the_order_of_nodes_changes_nothing(
    rng: np.random.Generator, function: Any
) -> None:
    stack = single(np.stack([*(random_graph(rng, P, r) for r in (0.01, 0.3, 2.0)), np.triu(np.ones((P, P)), k=1)]))
    values, gradients = jax.jit(jax.vmap(jax.value_and_grad(function)))(stack)
    order = rng.permutation(P)
    for a, value, gradient in zip(stack, values, gradients, strict=True):
        alone, slope = measure(function)(a)
        np.testing.assert_allclose(value, alone, rtol=1e-5)
        np.testing.assert_allclose(gradient, slope, rtol=1e-4, atol=1e-6)
        shuffled, moved = measure(function)(a[np.ix_(order, order)])
        np.testing.assert_allclose(shuffled, alone, rtol=1e-5)
        np.testing.assert_allclose(moved, slope[np.ix_(order, order)], rtol=1e-3, atol=1e-4 * float(slope.max()))


@pytest.mark.parametrize("function", [trace_polynomial, spectral_radius])
def test_loss_and_gradient_are_finite_for_any_finite_weights(function: Any) -> None:
    layout = Layout((*(Node() for _ in range(P - 1)), Node(target=True)))
    loss = jax.jit(jax.value_and_grad(lambda w: acyclicity_loss(w, layout, function)))
    weights = np.random.default_rng(0).uniform(-1, 1, (P, P, 3)).astype(np.float32)
    for scale in (1e-30, 1e-3, 0.3, 1.0, 1e4, 1e12, 3e38):
        dense = weights * np.float32(scale)
        for value, gradient in (loss(dense), measure(function)(jnp.abs(dense[:, :, 0]))):
            assert np.isfinite(value)
            assert np.isfinite(gradient).all()


def test_spectral_radius_of_several_groups_is_that_of_the_strongest() -> None:
    groups = scipy.linalg.block_diag(0.5 * np.roll(np.eye(3), 1, axis=1), 0.2 * (np.ones((2, 2)) - np.eye(2)), [[0.0]])
    groups[0, 3] = 7.0  # an edge between groups is on no cycle
    groups[4, 5] = 100.0
    value, gradient = jax.value_and_grad(spectral_radius)(single(groups))
    assert float(value) == pytest.approx(0.5, rel=1e-4)
    np.testing.assert_allclose(np.asarray(gradient)[:3, :3] * (groups[:3, :3] > 0), (groups[:3, :3] > 0) / 3, rtol=1e-2)
    np.testing.assert_allclose(np.asarray(gradient)[3:5, 3:5], 0, atol=1e-3)


def test_spectral_radius_next_to_a_graph_without_cycles() -> None:
    """The root of a product of weights, 24 orders of magnitude apart."""
    value, gradient = jax.value_and_grad(spectral_radius)(single(np.array([[0, 1.0, 1.0], [1e-24, 0, 1.0], [0, 0, 0]])))
    assert float(value) == pytest.approx(1e-12, rel=1e-3)
    assert float(gradient[0, 1]) == pytest.approx(0.5e-12, rel=1e-3)
    assert np.isfinite(gradient).all()
