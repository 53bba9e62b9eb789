"""Systems of equations: order, what an intervention changes, and the noise behind levels."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from scipy.special import softmax

from castlereg.causal.structural.system import between, causal_order, posterior_gumbel, reached_from
from castlereg.causal.synthetic import KnownWorld
from tests.causal.structural.worlds import CHAIN, linear_world, mixed_world

EDGES = CHAIN.to_numpy() != 0


def test_order_and_paths() -> None:
    assert causal_order(EDGES) == [0, 1, 2, 3]
    assert reached_from(EDGES, [1]).tolist() == [False, False, True, True]
    assert between(EDGES, [1], [2]) == [2]
    assert between(EDGES, [3]) == []
    assert between(EDGES, [0, 2], [3]) == [1, 3]  # a -> b does not matter for d once c is held


def test_noise_behind_levels_gives_these_levels_and_is_gumbel_noise() -> None:
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(3, 1))
    chosen = rng.choice(3, 40_000, p=softmax(scores[:, 0]))
    noise = posterior_gumbel(np.repeat(scores, 40_000, axis=1), chosen, rng)
    np.testing.assert_array_equal((scores + noise).argmax(axis=0), chosen)
    for of_level in noise:  # over levels that follow the scores, it is what was drawn
        assert stats.kstest(of_level, stats.gumbel_r.cdf).pvalue > 0.001


@pytest.mark.parametrize("make", [linear_world, mixed_world])
def test_the_noise_of_rows_gives_the_rows_again(make) -> None:  # type: ignore[no-untyped-def]
    known, _, fitted = make()
    for model in (known, fitted):
        values = model.population.values[:, :200]
        noise = model.system.abduct(values, range(4), seed=0)
        again = np.zeros_like(values)
        model.system.solve(noise, again, causal_order(model.system.edges))
        np.testing.assert_allclose(again, values, atol=1e-9)


def test_known_equations_node_by_node_are_those_that_rows_are_drawn_by() -> None:
    world = KnownWorld(CHAIN, function="smooth", categorical={"b": 3}, random_state=1)
    values = np.zeros((4, 300))
    world.system.solve(world.system.draw(300, np.random.default_rng(5)), values, causal_order(world.system.edges))
    np.testing.assert_allclose(values, world.drawn(300, np.random.default_rng(5)), atol=1e-10)


def test_log_densities_of_a_known_world_are_those_of_its_noise() -> None:
    world, rows, _ = linear_world()
    expected = stats.laplace(scale=1 / np.sqrt(2)).logpdf(rows["c"] + rows["a"] - 2 * rows["b"])
    np.testing.assert_allclose(world.system.log_densities(rows.to_numpy().T)[2], expected, rtol=1e-9)
