"""The values that columns are set to."""

from __future__ import annotations

import numpy as np
import pandas as pd

from castlereg.causal.structural.variables import Variable
from castlereg.report.set_values import MOST_LEVELS, as_asked, as_text, codes_to_set


def test_numbers_leave_the_outer_rows_out() -> None:
    seen = np.random.default_rng(0).normal(size=1000)
    codes = codes_to_set(Variable("x"), np.append(seen, np.nan))
    assert len(codes) == 20
    np.testing.assert_allclose([codes[0], codes[-1]], np.quantile(seen, [0.025, 0.975]), atol=0.05)


def test_whole_numbers_stay_whole() -> None:
    seen = np.random.default_rng(0).integers(0, 100, 500).astype(float)
    codes = codes_to_set(Variable("age"), seen)
    assert (codes == codes.round()).all() and len(np.unique(codes)) == len(codes)
    assert all("." not in text for text in as_text(Variable("age"), codes))


def test_a_column_that_is_nearly_always_the_same_has_its_other_values_too() -> None:
    assert codes_to_set(Variable("x"), np.array([0.0] * 99 + [7.0])).tolist() == [0.0, 7.0]
    assert codes_to_set(Variable("x"), np.zeros(9)).tolist() == [0.0]
    assert len(codes_to_set(Variable("x"), np.full(3, np.nan))) == 0


def test_only_the_most_frequent_levels_that_occur() -> None:
    variable = Variable("city", tuple(f"city {k}" for k in range(30)))
    seen = np.repeat(np.arange(20.0), np.arange(20, 0, -1))
    assert codes_to_set(variable, seen).tolist() == list(range(MOST_LEVELS))


def test_dates_and_durations_are_written_as_such() -> None:
    dates = Variable("start", None, "dates")
    days = np.arange(18262.0, 18662.0)
    codes = codes_to_set(dates, days)
    assert as_text(dates, codes)[0] == str(as_asked(dates, codes)[0].date()) == "2020-01-10"
    durations = Variable("length", None, "durations")
    assert as_text(durations, np.array([1.0, 2.0])) == ("1 days", "2 days")
    assert as_asked(durations, np.array([1.0])) == [pd.Timedelta(days=1)]


def test_texts_differ_where_values_do() -> None:
    tiny = np.linspace(1e-9, 2e-9, 20)
    assert len(set(as_text(Variable("x"), tiny))) == 20
    assert as_text(Variable("sex", (1.0, 2.0)), np.array([0.0, 1.0])) == ("1", "2")
    assert as_text(Variable("sex", (-0.0446416, 0.0506801)), np.array([0.0])) == ("\N{MINUS SIGN}0.04464",)
