"""Error bars, against closed forms."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import t

from castlereg.causal.effects import averaged
from castlereg.causal.equations import Draw
from tests.causal.fitted import fitted_to, linear_world


def test_the_spread_of_a_mean_is_its_standard_error() -> None:
    """Nothing of ``d`` reaches ``a``, so that the answer is the mean of ``a``."""
    _, rows, _ = linear_world()
    world = fitted_to(rows, linear_world()[0].dag, n_draws=400)
    answer = world.effect("d", "a", values=[0.0]).answer
    assert answer.estimate[0] == pytest.approx(rows["a"].mean())
    assert answer.within[0] == pytest.approx(rows["a"].std() / np.sqrt(1000), rel=0.1)
    assert answer.between[0] == 0
    half = t.ppf(0.95, 400) * answer.within[0]
    assert answer.high[0] - answer.low[0] == pytest.approx(2 * half)


def test_the_spread_of_a_slope_is_that_of_least_squares() -> None:
    """An edge between two columns: ``by=1`` is the slope, its error sigma over the root of n and the cause's spread."""
    _, rows, _ = linear_world()
    pair = linear_world()[0].dag.loc[["a", "b"], ["a", "b"]]
    world = fitted_to(rows[["a", "b"]], pair, n_draws=300)
    answer = world.effect("a", "b", by=1.0).answer
    slope, intercept = np.polyfit(rows["a"], rows["b"], 1)
    error = (rows["b"] - slope * rows["a"] - intercept).std() / (rows["a"].std() * np.sqrt(1000))
    assert answer.estimate[0] == pytest.approx(slope, abs=1.5 * error)
    assert answer.within[0] == pytest.approx(error, rel=0.5)


class Fixed:
    """A system whose rows all have one outcome."""

    def __init__(self, value: float) -> None:
        self.value = value


def test_bands_cover_both_of_two_graphs_that_disagree() -> None:
    ones = np.ones(50)
    draws = [Draw(Fixed(0.0), Fixed(0.0 + e), ones) for e in (-0.1, 0.1)] * 5  # type: ignore[arg-type]
    draws += [Draw(Fixed(4.0), Fixed(4.0 + e), ones) for e in (-0.1, 0.1)] * 5  # type: ignore[arg-type]
    outcomes = lambda system, rows: np.full((1, len(rows)), system.value)  # noqa: E731
    answer, _ = averaged(Fixed(0.0), draws, outcomes, np.arange(50), ones, 0.9)  # type: ignore[arg-type]
    assert answer.estimate[0] == pytest.approx(2.0)
    assert answer.between[0] == pytest.approx(2.0)
    assert answer.within[0] == pytest.approx(0.1)
    assert answer.low[0] < 0 and answer.high[0] > 4
    assert answer.low[0] > -0.5 and answer.high[0] < 4.5


def test_long_tables_have_the_answer_of_all_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    _, _, world = linear_world()
    whole = world.effect("a", "d").answer
    monkeypatch.setattr("castlereg.causal.effects._ROWS_OF_DRAWS", 300)
    some = world.effect("a", "d").answer
    np.testing.assert_allclose(some.estimate, whole.estimate, rtol=1e-9)
    np.testing.assert_allclose(some.within, whole.within, rtol=0.3)
