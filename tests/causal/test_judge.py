"""The judge: likelihoods of every kind of column against known densities, missing cells, products of causes."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from castlereg.causal import judge as module
from castlereg.causal.judge import Column, Judge
from castlereg.causal.variables import Variable


def column(values: object) -> Column:
    return Column.of(Variable("x"), np.asarray(values, np.float64))


def gain(judge: Judge, effect: int, causes: set[int]) -> float:
    return judge.total(effect, frozenset(causes)) - judge.total(effect, frozenset())


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (np.random.default_rng(0).normal(size=500), "continuous"),
        (np.random.default_rng(0).normal(size=500).round(1), "rounded"),
        (np.random.default_rng(0).integers(1, 6, 500), "tied"),
        (np.random.default_rng(0).poisson(2, 500), "tied"),
        (np.maximum(np.random.default_rng(0).normal(size=500), 0), "tied"),
        (np.random.default_rng(0).integers(0, 2, 500), "levels"),
    ],
)
def test_kinds_are_chosen_from_the_values(values: np.ndarray, kind: str) -> None:
    assert column(values).kind == column(-3.5 * values + 7).kind == kind


def test_rounded_values_are_spread_within_their_cells() -> None:
    exact = np.random.default_rng(1).normal(size=2000)
    spread = column(exact.round(1)).spread_values
    assert len(np.unique(spread)) == 2000
    rounded = column(exact.round(1)).values
    assert np.abs(spread - rounded).max() < 0.6 * np.diff(np.unique(rounded)).max()
    np.testing.assert_array_equal(column(exact.round(1)).spread_values, spread)


def test_probabilities_of_all_cells_sum_to_one() -> None:
    counts = np.array([40, 120, 200, 90, 50])
    values = np.repeat(np.arange(5.0), counts)
    cells = column(values).cells
    first = np.searchsorted(values, np.arange(5))
    shares = np.log(counts / counts.sum())
    scores = module._of_cells(cells[:, first], np.full(5, 0.4), 0.7, shares)
    assert np.exp(scores).sum() == pytest.approx(1)
    ends = norm.ppf(np.r_[0, counts.cumsum() / counts.sum()])
    mass = np.diff(norm.cdf((ends - 0.4) / 0.7))
    np.testing.assert_allclose(np.exp(scores), 0.98 * mass + 0.02 * np.exp(shares), rtol=1e-9)


def test_latent_numbers_are_recovered_from_cells() -> None:
    """Cut in five, a normal number has the same regression on its cause as uncut (ordered probit)."""
    rng = np.random.default_rng(2)
    x = rng.normal(size=2000)
    latent = 0.8 * x + 0.6 * rng.normal(size=2000)
    answers = np.digitize(latent, [-1.2, -0.4, 0.4, 1.2]).astype(float)
    judge = Judge([column(x), column(answers)])
    fits = module._Fits(
        judge._features[:, : judge._at[0][-1] + 1], judge._penalties[: judge._at[0][-1] + 1], judge._fold
    )
    center, scale, _ = judge._expected(judge.columns[1].cells, fits, 20)
    assert np.corrcoef(center, x)[0, 1] > 0.99
    assert np.polyfit(x, center, 1)[0] == pytest.approx(0.8, abs=0.05) and scale == pytest.approx(0.6, abs=0.05)


@pytest.mark.parametrize("kind", ["survey", "counts", "zeros", "whole", "two_valued"])
def test_independent_tied_columns_gain_nothing_and_related_ones_do(kind: str) -> None:
    rng = np.random.default_rng(3)
    x, other = rng.normal(size=(2, 1000))
    cut = {
        "survey": lambda z: np.digitize(z, [-1, -0.3, 0.3, 1]),
        "counts": lambda z: np.floor(np.exp(0.7 * z + 0.5)),
        "zeros": lambda z: np.maximum(z, 0),
        "whole": lambda z: np.clip(np.rint(5.5 + 2 * z), 1, 10),
        "two_valued": lambda z: z > 0.5,
    }[kind]
    answers = cut(0.8 * x + 0.6 * rng.normal(size=1000)).astype(float)
    judge = Judge([column(cut(x)), column(cut(other)), column(answers)])
    assert gain(judge, 2, {1}) < 3 and gain(judge, 0, {1}) < 3
    assert gain(judge, 2, {0}) > 100 and gain(judge, 0, {2}) > 100


def test_rows_without_a_cause_are_scored_without_it() -> None:
    rng = np.random.default_rng(4)
    a, b = rng.normal(size=(2, 600))
    effect = a + b + 0.5 * rng.normal(size=600)
    lost = rng.random(600) < 0.3
    judge = Judge([column(np.where(lost, np.nan, a)), column(b), column(effect)])
    both, one = judge.by_row(2, frozenset({0, 1})), judge._simple_scores(2, frozenset({1}))
    np.testing.assert_array_equal(both[lost], one[lost])
    assert both[~lost].sum() > one[~lost].sum() + 100
    np.testing.assert_array_equal(judge.by_row(2, frozenset({0}))[lost], judge.by_row(2, frozenset())[lost])
    assert not judge.by_row(0, frozenset({1}))[lost].any()


def test_a_useless_cause_with_missing_cells_gains_nothing() -> None:
    rng = np.random.default_rng(5)
    cause, useless = rng.normal(size=(2, 1000))
    effect = np.sin(2 * cause) + 0.5 * rng.normal(size=1000)
    useless[rng.random(1000) < norm.cdf(cause)] = np.nan  # missing where the true cause is high
    judge = Judge([column(cause), column(useless), column(effect)])
    assert judge.total(2, frozenset({0, 1})) < judge.total(2, frozenset({0})) + 3


def test_products_of_causes_are_found() -> None:
    rng = np.random.default_rng(6)
    a, b = rng.normal(size=(2, 800))
    product = a * b + 0.3 * rng.normal(size=800)
    flag = (a * b + 0.3 * rng.normal(size=800) > 0).astype(float)
    answers = np.digitize(a * b + 0.3 * rng.normal(size=800), [-0.5, 0.5]).astype(float)
    judge = Judge([column(each) for each in (a, b, product, flag, answers)])
    for effect, least in ((2, 500), (3, 200), (4, 200)):
        assert gain(judge, effect, {0, 1}) > gain(judge, effect, {0}) + gain(judge, effect, {1}) + least


def test_rare_levels_count_as_one() -> None:
    codes = np.concatenate([np.repeat(np.arange(5.0), 100), np.arange(5.0, 405.0)])
    merged = Column.of(Variable("city", tuple(map(str, range(405)))), codes)
    assert merged.levels == module._MOST_LEVELS and merged.values.max() == module._MOST_LEVELS - 1
    assert len(np.unique(merged.values[:500])) == 5


def test_scores_do_not_depend_on_units() -> None:
    rng = np.random.default_rng(7)
    x = rng.normal(size=400)
    y = np.exp(x + 0.5 * rng.normal(size=400))
    plain, scaled = Judge([column(x), column(y)]), Judge([column(1e6 * x - 3), column(y / 1024)])
    assert gain(scaled, 1, {0}) == pytest.approx(gain(plain, 1, {0}), abs=1e-6)
