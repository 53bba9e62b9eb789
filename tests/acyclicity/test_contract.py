"""What every acyclicity function keeps: one contract, against closed forms."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from math import factorial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg
from numpy.typing import NDArray

from castlereg.acyclicity import ACYCLICITY, log_determinant, trace_exponential
from castlereg.castle import acyclicity_loss
from castlereg.layout import Layout, Node
from castlereg.losses import Batch
from castlereg.network import Parameters
from castlereg.regularizers import Castle
from castlereg.regularizers.castle import acyclicity_of
from castlereg.regularizers.engine import regularized_loss
from tests.acyclicity.test_exponential import random_graph

P = 40  # of all graphs that are compared, so that each function is compiled once: two blocks of the log-determinant

Floats = NDArray[np.float64]


def _powers(a: Floats, weights: Callable[[int], float], longest: int) -> float:
    """Sum of ``weight(k) tr A^k``, which does not cancel for small A as closed forms do."""
    total, product = 0.0, np.eye(len(a))
    for k in range(1, longest + 1):
        product = product @ a
        total += weights(k) * np.trace(product)
    return total


@dataclass(frozen=True)
class Case:
    """An acyclicity function, its closed form, and where both hold."""

    expected: Callable[[Floats], float]
    walks: Callable[[int, int], float]  # weight of closed walks of length k among p nodes
    radii: tuple[float, ...]  # of graphs whose closed form is compared


def _exponential(a: Floats) -> float:
    return float(np.trace(scipy.linalg.expm(a)) - len(a))


CASES = {
    "expm": Case(_exponential, lambda k, p: 1 / factorial(k), (0.1, 0.5, 3.0, 15.0)),
    "logdet": Case(lambda a: -float(np.linalg.slogdet(np.eye(len(a)) - a)[1]), lambda k, p: 1 / k, (0.05, 0.1, 0.3)),
}
FUNCTIONS = ACYCLICITY

every = pytest.mark.parametrize("name", sorted(CASES))


@cache
def measure(name: str) -> Callable[[Any], tuple[Any, Any]]:
    """Value and gradient, compiled once for each shape."""
    return jax.jit(jax.value_and_grad(FUNCTIONS[name]))


def single(a: Floats) -> Any:
    return jnp.asarray(a, jnp.float32)


def padded(a: Floats) -> Any:
    """With nodes that have no edges, which change nothing."""
    return single(np.pad(a, (0, 60 - len(a))))


def test_every_function_has_a_row() -> None:
    assert set(CASES) == set(FUNCTIONS)


@every
def test_equals_the_closed_form(rng: np.random.Generator, name: str) -> None:
    for radius in CASES[name].radii:
        for density in (1.0, 0.3, 0.1):
            a = random_graph(rng, P, radius, density)
            np.testing.assert_allclose(measure(name)(single(a))[0], CASES[name].expected(a), rtol=2e-5)


@every
@pytest.mark.parametrize("scale", [1e-12, 1e-3, 0.05, 1.0, 1e3])
def test_zero_exactly_for_graphs_without_cycles(name: str, scale: float) -> None:
    for seed in range(5):
        rng = np.random.default_rng(seed)
        order = rng.permutation(P)
        dag = np.triu(rng.random((P, P)) * (rng.random((P, P)) < [0.05, 0.2, 1.0, 1.0, 1.0][seed]), k=1)
        value, gradient = measure(name)(single(dag[np.ix_(order, order)] * scale))
        assert value == 0
        assert np.isfinite(gradient).all()


@every
def test_a_ring_of_any_length_counts(name: str) -> None:
    case = CASES[name]
    for weight in (0.3, 0.9, 2.0, 20.0):
        for length in (2, 3, 5, 9, 10, 11, 17, 30, 32, 33, 47, 60):
            if length * case.walks(length, 60) * weight**length < 1e-36:  # once round, which no float32 holds
                continue
            value = float(measure(name)(padded(np.roll(np.eye(length), 1, axis=1) * weight))[0])
            assert value > 0


@every
def test_grows_with_every_weight(rng: np.random.Generator, name: str) -> None:
    for radius in CASES[name].radii:
        a = random_graph(rng, P, radius, 0.5)
        more = a + 0.1 * radius / P * rng.random((P, P)) * (rng.random((P, P)) < 0.1)
        assert measure(name)(single(a))[0] < measure(name)(single(more))[0]
        gradient = measure(name)(single(a))[1]
        assert (gradient >= 0).all()


@every
def test_gradient_equals_finite_differences(name: str) -> None:
    rng = np.random.default_rng(1)
    with jax.enable_x64(True):
        function = jax.jit(jax.value_and_grad(FUNCTIONS[name]))
        for radius in (0.05, CASES[name].radii[-1]):
            a = random_graph(rng, 6, radius)
            gradient = function(a)[1]
            for j, k in ((0, 1), (5, 2), (3, 4)):
                step = np.zeros_like(a)
                step[j, k] = 1e-5 * radius
                slope = (function(a + step)[0] - function(a - step)[0]) / (2 * step[j, k])
                np.testing.assert_allclose(gradient[j, k], slope, rtol=1e-5)


@every
def test_batched_equals_one_by_one(rng: np.random.Generator, name: str) -> None:
    stack = single(np.stack([*(random_graph(rng, P, r) for r in (0.01, 0.3, 2.0)), np.triu(np.ones((P, P)), k=1)]))
    values, gradients = jax.jit(jax.vmap(jax.value_and_grad(FUNCTIONS[name])))(stack)
    for a, value, gradient in zip(stack, values, gradients, strict=True):
        alone, slope = measure(name)(a)
        np.testing.assert_allclose(value, alone, rtol=1e-5)
        np.testing.assert_allclose(gradient, slope, rtol=1e-4, atol=1e-6)


@every
def test_the_order_of_nodes_changes_nothing(rng: np.random.Generator, name: str) -> None:
    for radius in (0.05, 0.3, 3.0):
        a, order = random_graph(rng, P, radius, 0.3), rng.permutation(P)
        value, gradient = measure(name)(single(a))
        shuffled, moved = measure(name)(single(a[np.ix_(order, order)]))
        np.testing.assert_allclose(shuffled, value, rtol=1e-5)
        np.testing.assert_allclose(moved, gradient[np.ix_(order, order)], rtol=1e-3, atol=1e-4 * float(gradient.max()))


@every
def test_loss_and_gradient_are_finite_for_any_finite_weights(name: str) -> None:
    layout = Layout((*(Node() for _ in range(P - 1)), Node(target=True)))
    loss = jax.jit(jax.value_and_grad(lambda w: acyclicity_loss(w, layout, FUNCTIONS[name])))
    weights = np.random.default_rng(0).uniform(-1, 1, (P, P, 3)).astype(np.float32)
    upper = np.triu(np.ones((P, P), np.float32), k=1)[:, :, None]
    for scale in (1e-30, 1e-3, 0.3, 1.0, 30.0, 1e4, 1e12, 1e30, 3e38):
        dense = weights * np.float32(scale)
        loop = dense * upper
        loop[1, 0] = 0.1
        for w, positive in ((dense, scale >= 1e-3), (loop, scale in (0.3, 1.0)), (dense * upper, None)):
            value, gradient = loss(w)
            assert np.isfinite(value)
            assert np.isfinite(gradient).all()
            assert value == 0 if positive is None else value > 0 or not positive
        # The weights themselves, beyond those that the loss lets through.
        value, gradient = measure(name)(jnp.abs(dense[:, :, 0]))
        assert np.isfinite(value)
        assert np.isfinite(gradient).all()


# --- what is particular to one -------------------------------------------------------------------


def test_log_determinant_keeps_the_digits_of_small_values(rng: np.random.Generator) -> None:
    a = random_graph(rng, P, 1e-5)
    expected = _powers(a, lambda k: 1 / k, 8)
    np.testing.assert_allclose(log_determinant(single(a)), expected, rtol=1e-5)


def test_log_determinant_past_its_domain_is_continuous_and_leaves_edges_outside_of_cycles_alone() -> None:
    graph = np.zeros((3, 3))
    graph[0, 1], graph[1, 0], graph[1, 2] = 0.5, 0.5, 0.2
    graph /= min(graph.sum(axis=0).max(), graph.sum(axis=1).max())
    below, above = (measure("logdet")(single(graph * w)) for w in (0.99 * (1 - 1e-5), 0.99 * (1 + 1e-5)))
    np.testing.assert_allclose(below[0], above[0], rtol=1e-3)
    np.testing.assert_allclose(below[1], above[1], rtol=2e-3)
    values = [float(measure("logdet")(single(graph * w))[0]) for w in (0.5, 1, 2, 10, 1e3, 1e9, 1e20)]
    assert values == sorted(set(values))
    gradient = measure("logdet")(single(graph * 1e3))[1]
    assert gradient[1, 2] == 0 < gradient[0, 1]


def test_auto_is_the_papers_function_until_the_table_is_wide() -> None:
    chosen = [acyclicity_of([Castle(acyclicity="auto")], n) for n in (2, 100, 200, 201, 5000)]
    assert chosen == [trace_exponential] * 3 + [log_determinant] * 2
    choices = [*ACYCLICITY, jnp.trace, None]
    assert [acyclicity_of([Castle(acyclicity=h)], 5000) for h in choices] == [*ACYCLICITY.values(), jnp.trace, None]


def test_auto_is_resolved_by_the_layout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ACYCLICITY, "expm", lambda adjacency: jnp.full((), 2.0))
    monkeypatch.setitem(ACYCLICITY, "logdet", lambda adjacency: jnp.full((), 3.0))
    for n_nodes, expected in ((200, 4), (201, 9)):
        layout = Layout((*(Node() for _ in range(n_nodes - 1)), Node(target=True)))
        network = Parameters(jnp.zeros((n_nodes, n_nodes, 1)), jnp.zeros((n_nodes, 1)), (), None, None)
        batch = Batch(jnp.zeros((1, n_nodes)), jnp.zeros((1, n_nodes, 1)), jnp.ones(1))
        _, (terms, _) = regularized_loss(network, batch, [Castle(acyclicity="auto")], layout)
        assert terms["acyclicity"] == expected
