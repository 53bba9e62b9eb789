"""Systems of equations: order, what an intervention changes, and the noise behind levels."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.special import softmax

from castlereg.causal import KnownWorld
from castlereg.causal.equations import _posterior_gumbel, between, causal_order, reached_from
from tests.causal.fitted import CHAIN, fitted_to, linear_world, mixed_world

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
    noise = _posterior_gumbel(np.repeat(scores, 40_000, axis=1), chosen, rng)
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


AND = pd.DataFrame(0, index=list("aby"), columns=list("aby"))
AND.loc[["a", "b"], "y"] = 1


def test_causes_that_act_together_get_a_joint_function() -> None:
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"a": rng.normal(size=800), "b": rng.normal(size=800)})
    rows["y"] = 2 * rows["a"] * rows["b"] + 0.3 * rng.normal(size=800)
    world = fitted_to(rows, AND, n_draws=4)
    assert world.to_frame().set_index("column").loc["y", "form"] == "joint function"
    for a in (-1.0, 1.0):
        assert world.what_if({"a": a, "b": 1.0}, "y").after.estimate[0] == pytest.approx(2 * a, abs=0.2)
    rows["y"] = 2 * rows["a"] + np.sin(rows["b"]) + 0.3 * rng.normal(size=800)
    assert (fitted_to(rows, AND, n_draws=0).to_frame()["form"] != "joint function").all()


def test_levels_and_slopes_act_together_too() -> None:
    rng = np.random.default_rng(1)
    rows = pd.DataFrame({"a": rng.normal(size=1000), "b": pd.Categorical(rng.choice(["u", "v"], 1000))})
    sign = np.where(rows["b"] == "u", 2.0, -2.0)
    rows["y"] = pd.Categorical(np.where(sign * rows["a"] + rng.logistic(size=1000) > 0, "yes", "no"))
    world = fitted_to(rows, AND, n_draws=0)
    assert world.to_frame()["form"].tolist() == ["", "", "joint function"]
    for level, a in (("u", 1.0), ("v", -1.0), ("u", -1.0)):
        truth = 1 / (1 + np.exp(-2.0 * a if level == "u" else 2.0 * a))
        found = world.what_if({"a": a, "b": level}, "y", level="yes").after.estimate[0]
        assert found == pytest.approx(truth, abs=0.08)


def test_samples_have_the_weighted_distribution() -> None:
    rng = np.random.default_rng(0)
    cause = np.r_[rng.normal(0, 1, 1000), rng.normal(5, 1, 1000)]
    effect = cause + np.r_[rng.normal(0, 0.2, 1000), rng.normal(0, 2, 1000)]
    weight = np.repeat([1.0, 9.0], 1000)
    dag = pd.DataFrame([[0, 1], [0, 0]], index=["a", "b"], columns=["a", "b"])
    world = fitted_to(pd.DataFrame({"a": cause, "b": effect}), dag, weight, n_draws=0)
    rows = world.sample(50_000, random_state=0)
    for name, values in (("a", cause), ("b", effect)):
        assert rows[name].mean() == pytest.approx(np.average(values, weights=weight), abs=0.1)
        assert rows[name].std() == pytest.approx(np.sqrt(np.cov(values, aweights=weight)), rel=0.05)
    explained = world.to_frame().set_index("column")["explained"]["b"]
    assert explained == pytest.approx(1 - 3.604 / float(np.cov(effect, aweights=weight)), abs=0.05)
