"""The trace of the exponential against SciPy, closed forms and finite differences."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg
import scipy.special
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from castlereg.acyclicity import trace_exponential
from castlereg.castle import acyclicity_loss
from castlereg.layout import Layout, Node
from castlereg.network import squared_adjacency


def random_graph(rng: np.random.Generator, p: int, radius: float, density: float = 1.0) -> NDArray[np.float64]:
    a = rng.random((p, p)) * (rng.random((p, p)) < density)
    np.fill_diagonal(a, 0)
    return a * radius / np.abs(np.linalg.eigvals(a)).max()


@pytest.mark.parametrize("radius", [1e-6, 1e-3, 0.1, 0.5, 1, 3, 8, 20])
@pytest.mark.parametrize(("p", "density"), [(2, 1.0), (10, 1.0), (10, 0.4), (60, 1.0), (60, 0.1)])
def test_trace_exponential_equals_scipy(rng: np.random.Generator, p: int, density: float, radius: float) -> None:
    a = random_graph(rng, p, radius, density)
    if radius < 0.1:  # tr expm(A) - p would cancel to nothing in float64; its series does not
        powers, term = a.copy(), a.copy()
        for i in range(2, 30):
            term = term @ a / i
            powers += term
        expected = np.trace(powers)
    else:
        expected = np.trace(scipy.linalg.expm(a)) - p
    np.testing.assert_allclose(trace_exponential(jnp.asarray(a, jnp.float32)), expected, rtol=1e-5)


@pytest.mark.parametrize("radius", [0.01, 0.5, 3, 20])
def test_gradient_is_the_transposed_exponential(rng: np.random.Generator, radius: float) -> None:
    a = random_graph(rng, 12, radius)
    gradient = jax.grad(trace_exponential)(jnp.asarray(a, jnp.float32))
    np.testing.assert_allclose(gradient, scipy.linalg.expm(a).T, rtol=2e-5)


@settings(deadline=None, max_examples=50)
@given(st.sampled_from([2, 3, 17, 40]), st.integers(0, 2**32 - 1), st.floats(0, 1e6))
def test_zero_exactly_for_any_dag(p: int, seed: int, scale: float) -> None:
    rng = np.random.default_rng(seed)
    order = rng.permutation(p)
    dag = np.triu(rng.random((p, p)), k=1)[np.ix_(order, order)] * scale
    assert float(trace_exponential(jnp.asarray(dag, jnp.float32))) == 0.0


@pytest.mark.parametrize("weight", [0.3, 1.0, 2.0, 20.0])
@pytest.mark.parametrize("length", [2, 3, 9, 10, 11, 17, 30, 60])
def test_a_cycle_of_any_length_counts(length: int, weight: float) -> None:
    ring = np.roll(np.eye(length), 1, axis=1) * weight
    # Closed walks on a ring go round it a whole number of times.
    rounds = np.arange(length, 400, length)
    expected = length * np.exp(rounds * np.log(weight) - scipy.special.gammaln(rounds + 1)).sum()
    value = float(trace_exponential(jnp.asarray(ring, jnp.float32)))
    if expected > np.finfo(np.float32).tiny:
        np.testing.assert_allclose(value, expected, rtol=1e-5)


def test_both_sides_of_each_seam_agree() -> None:
    """At the norm where squaring begins, and where h goes on as a logarithm."""
    loop = np.array([[0, 1], [1, 0]], np.float32)
    for weight in (0.84, 27.2, 28.0):
        below, above = (trace_exponential(loop * w) for w in (weight * (1 - 1e-5), weight * (1 + 1e-5)))
        assert below < above
        np.testing.assert_allclose(below, above, rtol=1e-3)
        slopes = [jax.grad(trace_exponential)(loop * w)[0, 1] for w in (weight * (1 - 1e-5), weight * (1 + 1e-5))]
        np.testing.assert_allclose(*slopes, rtol=1e-3)


def test_gradient_equals_finite_differences_beyond_the_exact_range() -> None:
    with jax.enable_x64(True):
        a = jnp.asarray(np.random.default_rng(1).random((5, 5)) * (1 - np.eye(5)) * 60)
        gradient = jax.grad(trace_exponential)(a)
        for j, k in ((0, 1), (3, 2)):
            step = jnp.zeros_like(a).at[j, k].set(1e-3)
            slope = (trace_exponential(a + step) - trace_exponential(a - step)) / 2e-3
            np.testing.assert_allclose(gradient[j, k], slope, rtol=1e-6)


@pytest.mark.parametrize("scale", [1e-30, 1e-3, 0.3, 1.0, 30.0, 1e4, 1e12, 1e30, 3e38])
@pytest.mark.parametrize("kind", ["dense", "dag", "one loop in a dag"])
def test_loss_and_gradient_are_finite_for_any_finite_weights(scale: float, kind: str) -> None:
    p, width = 30, 30
    layout = Layout((*(Node() for _ in range(p - 1)), Node(target=True)))
    weights = np.random.default_rng(0).uniform(-1, 1, (p, p, width)).astype(np.float32) * np.float32(scale)
    if kind != "dense":
        weights *= np.triu(np.ones((p, p), np.float32), k=1)[:, :, None]
    if kind == "one loop in a dag":
        weights[1, 0] = 0.1
    value, gradient = jax.value_and_grad(lambda w: acyclicity_loss(w, layout))(jnp.asarray(weights))
    assert np.isfinite(value)
    assert np.isfinite(gradient).all()
    if kind == "dag":
        assert value == 0
    elif (kind == "dense" and scale >= 1e-3) or scale in (0.3, 1.0):
        assert value > 0


def test_adjacency_sums_over_channels_and_width(mixed_layout: Layout, rng: np.random.Generator) -> None:
    weights = rng.normal(size=(mixed_layout.n_channels, mixed_layout.n_nodes, 4))
    expected = np.zeros((5, 5))
    for channel, node in enumerate(mixed_layout.channel_nodes):
        expected[node] += (weights[channel] ** 2).sum(axis=1)
    np.testing.assert_allclose(squared_adjacency(weights, mixed_layout), expected)  # type: ignore[arg-type]
