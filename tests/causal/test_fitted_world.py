"""Structural models learned from rows, against worlds whose equations are known."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import castlereg
from castlereg.acyclicity.cut import find_cycle
from castlereg.causal import CausalGraph, FittedWorld, KnownWorld
from castlereg.causal.fitted_world import _graph_draws
from castlereg.causal.variables import Variable, Variables
from tests.causal.fitted import CHAIN, fitted_to, linear_world, mixed_world, with_missing


def test_effects_of_one_unit_are_sums_over_paths() -> None:
    """a -> b -> c is 1 * 2, a -> c is -1: together 1; half of that reaches d."""
    _, _, world = linear_world()
    for cause, outcome, truth in (("a", "b", 1.0), ("b", "c", 2.0), ("a", "c", 1.0), ("a", "d", 0.5)):
        answer = world.effect(cause, outcome, by=1.0).answer
        assert answer.estimate[0] == pytest.approx(truth, abs=0.12)
        assert answer.low[0] - 0.05 < truth < answer.high[0] + 0.05
    assert world.effect("d", "a", by=1.0).estimate[0] == 0


def test_curves_are_near_those_of_the_known_world() -> None:
    known, rows, fitted = mixed_world()
    spread = rows["c"].std()
    for cause in ("a", "b"):
        values = ["L0", "L1", "L2"] if cause == "b" else [-1.0, 0.0, 1.0]
        truth, found = (model.effect(cause, "c", values=values).estimate for model in (known, fitted))
        assert np.abs(found - truth).max() < 0.2 * spread
    truth, found = (model.effect("c", "d", values=[-2.0, 2.0], level="L1").estimate for model in (known, fitted))
    assert np.abs(found - truth).max() < 0.1


def test_association_is_not_effect() -> None:
    """a confounds b and c: rows with a high b have a high a, which lowers c."""
    _, rows, fitted = linear_world()
    effect = fitted.effect("b", "c", values=[2.0])
    assert effect.estimate[0] == pytest.approx(4.0, abs=0.3)
    near = rows[(rows["b"] - 2).abs() <= (rows["b"] - 2).abs().quantile(0.1)]
    assert effect.associated[0] == pytest.approx(near["c"].mean())
    assert effect.associated[0] < 3.6


def test_several_columns_at_once_and_given_rows() -> None:
    _, rows, world = linear_world()
    answer = world.what_if({"a": 1.0, "b": 1.0}, "c")
    assert answer.after.estimate[0] == pytest.approx(1.0, abs=0.15)
    assert answer.before == pytest.approx(rows["c"].mean())
    assert answer.change.estimate[0] == pytest.approx(answer.after.estimate[0] - answer.before)
    # among rows with a high a, c is what b makes of it less a
    high = world.effect("b", "c", values=[0.0], given={"a": (1.0, 9.0)})
    assert high.estimate[0] == pytest.approx(-rows["a"][rows["a"] >= 1].mean(), abs=0.2)


def test_an_intervention_stays_in_the_model() -> None:
    _, _, world = linear_world()
    held = world.do(b=1.0)
    assert (held.sample(10, random_state=0)["b"] == 1).all()
    assert held.effect("a", "c", by=1.0).estimate[0] == pytest.approx(-1.0, abs=0.1)  # only the direct path is left
    assert repr(held) == "<FittedWorld: 4 columns, 4 edges, b=1.0 held>"


def test_counterfactuals_of_known_equations_are_exact() -> None:
    """Noise that is drawn again with the column held gives the same rows."""
    for function in ("linear", "sine", "smooth"):
        world = KnownWorld(CHAIN, function=function, random_state=2)
        rows, truth = world.sample(500, random_state=4), world.do(b=0.7).sample(500, random_state=4)
        pd.testing.assert_frame_equal(world.counterfactual(rows, {"b": 0.7}), truth, atol=1e-9, rtol=1e-9)


def test_counterfactuals_of_fitted_equations_are_near() -> None:
    world = KnownWorld(CHAIN, function="sine", random_state=2)
    rows = world.sample(1500, random_state=4)
    truth = world.do(b=0.7).sample(1500, random_state=4)
    found = fitted_to(rows, CHAIN, n_draws=0).counterfactual(rows, {"b": 0.7})
    assert np.abs(found["c"] - truth["c"]).mean() < 0.11
    pd.testing.assert_series_equal(found["a"], rows["a"])


def test_counterfactuals_change_nothing_if_the_value_is_what_it_was() -> None:
    _, rows, world = mixed_world()
    some = rows[:50]
    pd.testing.assert_frame_equal(world.counterfactual(some, {"a": some["a"]}), some, atol=1e-9)


def test_root_causes_add_up_and_find_the_odd_column() -> None:
    known, rows, world = linear_world()
    odd = known.counterfactual(rows[:3], {"b": rows["b"][:3].to_numpy() + np.array([6.0, 0.0, 0.0])})
    contributions = world.root_causes(odd, "d", n_permutations=60)
    assert list(contributions) == ["a", "b", "c", "d"]
    assert contributions.iloc[0].abs().idxmax() == "b"
    before = world.root_causes(rows[:3], "d", n_permutations=60)  # b reaches d with a factor of 2 * 0.5
    assert contributions.loc[0, "b"] - before.loc[0, "b"] == pytest.approx(6.0, abs=0.6)
    np.testing.assert_allclose(contributions[1:], before[1:], atol=1e-9)
    usual = odd["d"] - contributions.sum(axis=1)
    assert usual.std() < 0.5  # the mean outcome of random noise


def test_rows_with_missing_values_are_learned_from_and_asked_about() -> None:
    known, _, _ = linear_world()
    rows = with_missing(known.sample(1500, random_state=2))
    world = fitted_to(rows, CHAIN)
    assert world.effect("a", "d", by=1.0).estimate[0] == pytest.approx(0.5, abs=0.15)
    assert not world.sample(100, random_state=0).isna().any().any()
    changed = world.counterfactual(rows[:20], {"a": 1.0})
    assert changed["d"].notna().all() and (changed["a"] == 1).all()
    assert np.isfinite(world.log_likelihood(rows))


def test_samples_have_the_moments_of_the_rows() -> None:
    _, rows, world = mixed_world()
    drawn = world.sample(20_000, random_state=0)
    assert list(drawn.dtypes) == list(rows.dtypes)
    np.testing.assert_allclose(drawn[["a", "c"]].mean(), rows[["a", "c"]].mean(), atol=0.12)
    np.testing.assert_allclose(drawn[["a", "c"]].std(), rows[["a", "c"]].std(), rtol=0.1)
    np.testing.assert_allclose(
        drawn["b"].value_counts(normalize=True, sort=False),
        rows["b"].value_counts(normalize=True, sort=False),
        atol=0.03,
    )


def test_likelihood_prefers_the_graph_that_made_the_rows() -> None:
    known, rows, world = linear_world()
    new = known.sample(2000, random_state=9)
    without = CHAIN.copy()
    without.loc["b", "c"] = 0.0
    assert world.log_likelihood(new) > fitted_to(rows, without, n_draws=0).log_likelihood(new) + 0.3
    assert abs(world.log_likelihood(new) - known.log_likelihood(new)) < 0.1


def test_a_seed_gives_the_same_bits() -> None:
    _, rows, world = mixed_world()
    again = fitted_to(rows, CHAIN)
    for first, second in zip(world.effect("a", "c").answer, again.effect("a", "c").answer, strict=True):
        np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("make", [linear_world, mixed_world])
def test_files_hold_everything(make: Any, tmp_path: Path) -> None:
    _, rows, world = make()
    castlereg.save(world.do(a=0.5), tmp_path / "world.castle")
    loaded = castlereg.load(tmp_path / "world.castle")
    assert isinstance(loaded, FittedWorld) and loaded.fixed == {"a": 0.5}
    for first, second in zip(world.do(a=0.5).effect("b", "d").answer, loaded.effect("b", "d").answer, strict=True):
        np.testing.assert_array_equal(first, second)
    pd.testing.assert_frame_equal(loaded.to_frame(), world.to_frame())
    pd.testing.assert_frame_equal(loaded.counterfactual(rows[:5], {}), world.do(a=0.5).counterfactual(rows[:5], {}))


@pytest.mark.parametrize(
    ("ask", "error", "message"),
    [
        (lambda w: w.effect("A", "c"), KeyError, "unknown column 'A'; .*did you mean 'a'"),
        (lambda w: w.effect("a", "a"), ValueError, "'a' is the outcome and cannot be set as well"),
        (lambda w: w.effect("a", "c", coverage=1.5), ValueError, "coverage=1.5"),
        (lambda w: w.effect("a", "c", values=[]), ValueError, "a list with at least one value"),
        (lambda w: w.effect("a", "c", values=["tall"]), ValueError, "'a' must be a number, got 'tall'"),
        (lambda w: w.effect("b", "c", by=1.0), ValueError, "'b' has levels; pass values"),
        (lambda w: w.effect("a", "c", by=1.0, values=[2]), ValueError, "either values or by"),
        (lambda w: w.effect("a", "c", level="L0"), ValueError, "'c' is numeric"),
        (lambda w: w.effect("a", "c", given={"c": 1.0}), ValueError, r"must be a range \(low, high\)"),
        (lambda w: w.effect("a", "c", given={"c": (50, 60)}), ValueError, "only 0 rows fulfil the conditions in given"),
        (lambda w: w.what_if({"b": "L7"}, "c"), ValueError, "'b' has no level 'L7'; its levels are 'L0', 'L1', 'L2'"),
        (lambda w: w.do(nothing=1), KeyError, "unknown column 'nothing'"),
        (lambda w: w.root_causes(mixed_world()[1][:2], "d"), ValueError, "'d' has levels"),
        (lambda w: w.counterfactual(mixed_world()[1][["a"]], {"a": 1}), ValueError, "the rows have no column 'b'"),
        (lambda w: w.effect("a", "c", by=1.0).plot(), ValueError, "a single number"),
    ],
)
def test_bad_questions_are_rejected(ask: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        ask(mixed_world()[2])


def test_answers_say_what_to_keep_in_mind() -> None:
    _, _, world = linear_world()
    far = world.what_if({"a": 50.0}, "c")
    assert re.search("98 % of the rows have a between .*extrapolated", far.summary())
    assert "taken as known" in world.effect("a", "c").summary()


def test_labels_of_numbers_and_dates_are_read_back() -> None:
    day = Variable("day", None, "dates")
    assert day.code("1970-01-11") == 10
    assert pd.Series(day.decode(np.array([10.0]))).tolist() == [pd.Timestamp("1970-01-11")]
    code = Variable("code", (0.0, 1.0))
    assert code.codes([1, 0, None]).tolist()[:2] == [1.0, 0.0]
    np.testing.assert_array_equal(code.decode(np.array([1.0, 0.0])), [1.0, 0.0])


def test_only_a_known_graph_says_that_an_effect_is_zero() -> None:
    known, rows, world = linear_world()
    for model in (known, world):
        effect = model.effect("d", "a", by=1.0)
        assert effect.direction.backward == 1 and effect.direction.is_known
        assert "so the effect is zero" in effect.summary() and "not known" not in effect.summary()
    edges = CHAIN.to_numpy() != 0
    likely, forward = np.where(edges | edges.T, 0.99, 0.005), np.where(edges, 0.999, np.where(edges.T, 0.001, np.nan))
    table = Variables.of_frame(rows)
    probable = CausalGraph(tuple("abcd"), ("d",), edges.astype(float), likely, forward)
    drawn = FittedWorld.fit(table, probable, n_draws=20).effect("d", "a", by=1.0).summary()
    assert "None of the 20 graphs that may be true has a path from d" in drawn
    unknown = CausalGraph.from_weights(edges.astype(float), list("abcd"), "d")
    for world in (FittedWorld.fit(table, unknown, n_draws=5), FittedWorld.fit(table, probable, n_draws=0)):
        effect = world.effect("d", "a", by=1.0)
        assert not effect.direction.is_known and "It is not known whether there is an effect" in effect.summary()
        assert "zero" not in drawn + effect.summary() and "changes" not in effect.summary()
        assert world.effect("a", "d", by=1.0).direction.is_known


def test_rows_whose_cause_is_missing_are_not_shifted() -> None:
    known, _, _ = linear_world()
    rows = known.sample(1200, random_state=3)
    rows.loc[:599, "a"] = np.nan
    effect = fitted_to(rows, CHAIN, n_draws=0).effect("a", "b", by=1.0)
    assert effect.estimate[0] == pytest.approx(1.0, abs=0.1)
    assert "600 rows without a value of a are left out" in effect.summary()


def test_rows_in_a_rhythm_do_not_bias_the_equations() -> None:
    """Every fourth row has the same level; folds must not leave a level out."""
    quarter = np.tile(np.arange(4.0), 150)
    rng = np.random.default_rng(0)
    sold = (rng.random(600) < np.array([0.05, 0.9, 0.3, 0.6])[quarter.astype(int)]).astype(float)
    dag = pd.DataFrame([[0, 1], [0, 0]], index=["quarter", "sold"], columns=["quarter", "sold"])
    rows = pd.DataFrame({"quarter": pd.Categorical(quarter.astype(int).astype(str)), "sold": pd.Categorical(sold)})
    effect = fitted_to(rows, dag, n_draws=0).effect("quarter", "sold")
    shares = [sold[quarter == q].mean() for q in range(4)]
    np.testing.assert_allclose(effect.estimate, shares, atol=0.04)


def test_long_tables_have_the_spread_of_all_rows_for_levels_too(monkeypatch: pytest.MonkeyPatch) -> None:
    _, _, world = mixed_world()
    whole = world.effect("a", "d", values=[0.0, 1.0]).answer
    monkeypatch.setattr("castlereg.causal.effects._ROWS_OF_DRAWS", 700)
    some = world.effect("a", "d", values=[0.0, 1.0]).answer
    np.testing.assert_allclose(some.within, whole.within, rtol=0.4)


def test_weightless_rows_do_not_narrow_the_bands() -> None:
    known, rows, _ = linear_world()
    both = pd.concat([rows[:300], rows[300:600]])
    weight = np.r_[np.ones(300), np.zeros(300)]
    first = fitted_to(both, CHAIN, weight=weight, n_draws=100).effect("a", "b", by=1.0).answer
    second = fitted_to(rows[:300], CHAIN, n_draws=100).effect("a", "b", by=1.0).answer
    assert first.within[0] == pytest.approx(second.within[0], rel=0.3)
    heavy = np.r_[np.full(30, 20.0), np.full(570, 1.0)]
    assert fitted_to(both, CHAIN, weight=heavy).draws[0].weight.sum() == pytest.approx(
        heavy.sum() ** 2 / (heavy**2).sum(), abs=1
    )
    assert len(known.names) == 4


def test_columns_with_hardly_any_values_are_no_obstacle() -> None:
    known, _, _ = linear_world()
    rows = known.sample(100, random_state=0)
    rows.loc[2:, "d"] = np.nan
    assert np.isfinite(fitted_to(rows, CHAIN, n_draws=30).effect("a", "c", by=1.0).estimate).all()


def test_held_models_are_consistent() -> None:
    _, _, world = linear_world()
    answer = world.do(a=2.0).what_if({"b": 0.0}, "c")
    assert answer.before + answer.change.estimate[0] == pytest.approx(answer.after.estimate[0])
    assert world.do(b=1.0).effect("b", "d").direction.forward == 1
    assert world.do(c=1.0).effect("b", "d", by=1.0).direction.forward == 0
    assert world.do(c=1.0).graph().parents("c") == []


def test_a_series_goes_by_its_index() -> None:
    known, rows, _ = linear_world()
    some = rows[:5]
    turned = known.counterfactual(some, {"a": (some["a"] + 1)[::-1]})
    pd.testing.assert_frame_equal(turned, known.counterfactual(some, {"a": some["a"] + 1}))
    with pytest.raises(ValueError, match="do has 3 values for 'a', but there are 5 rows"):
        known.counterfactual(some, {"a": [1, 2, 3]})


def test_open_ranges_and_names_of_figures() -> None:
    _, rows, world = linear_world()
    assert world.effect("b", "c", given={"a": (0, None)}, values=[0.0]).estimate[0] < 0
    prices = rows.rename(columns={"a": "low"})
    dag = CHAIN.rename(index={"a": "low"}, columns={"a": "low"})
    assert list(fitted_to(prices, dag, n_draws=2).effect("low", "c").to_frame())[:2] == ["low (set to)", "estimate"]


def test_rows_in_a_rhythm_do_not_bias_the_sample_of_a_long_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every fifth row is high, the mean is 20; evenly spaced rows would miss the rhythm or meet it each time."""
    monkeypatch.setattr("castlereg.causal.fitted_world.MOST_ROWS", 1000)
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"x": rng.normal(size=5000), "y": np.tile([100.0, 0, 0, 0, 0], 1000)})
    dag = pd.DataFrame([[0, 0], [0, 0]], index=["x", "y"], columns=["x", "y"])
    world = fitted_to(rows, dag, n_draws=0)
    assert world.population.values.shape == (2, 1000)
    assert world.what_if({"x": 0.0}, "y").before == pytest.approx(20.0, abs=5.0)  # four standard errors


# --- graphs that may be true ------------------------------------------------------------------------


def graph_with(joined: np.ndarray, direction: np.ndarray) -> CausalGraph:
    weights = np.triu(np.ones_like(joined), 1)
    names = tuple(f"x{i}" for i in range(len(joined)))
    return CausalGraph(names, names[-1:], weights, joined, direction)


def test_draws_have_no_cycles_and_differ() -> None:
    joined, direction = np.full((6, 6), 0.8), np.full((6, 6), 0.5)
    draws = _graph_draws(graph_with(joined, direction), 100, np.random.default_rng(0))
    assert all(find_cycle(edges) is None for edges in draws)
    assert len({edges.tobytes() for edges in draws}) > 90


def test_shares_are_those_of_independent_pairs_without_a_cycle() -> None:
    """Three nodes, all pairs joined, directions of 1/2: six of eight graphs have no cycle, each as likely."""
    draws = _graph_draws(graph_with(np.ones((3, 3)), np.full((3, 3), 0.5)), 3000, np.random.default_rng(0))
    counts = np.unique([edges.tobytes() for edges in draws], return_counts=True)[1]
    assert len(counts) == 6
    assert np.abs(counts / 3000 - 1 / 6).max() < 0.03


def test_sure_edges_stay_and_unlikely_ones_never_come() -> None:
    joined, direction = np.full((3, 3), 0.01), np.full((3, 3), 0.5)
    joined[0, 1] = joined[1, 0] = 1.0
    direction[0, 1], direction[1, 0] = 1.0, 0.0
    for edges in _graph_draws(graph_with(joined, direction), 20, np.random.default_rng(0)):
        assert np.argwhere(edges).tolist() == [[0, 1]]


def test_without_probabilities_there_is_only_the_graph() -> None:
    graph = CausalGraph.from_weights(np.array([[0.0, 1.0], [0.0, 0.0]]), ["a", "b"], "b")
    draws = _graph_draws(graph, 5, np.random.default_rng(0))
    assert len(draws) == 5 and all((edges == graph.edge_array).all() for edges in draws)
