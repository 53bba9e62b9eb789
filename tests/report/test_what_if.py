"""What the panel says about setting columns, against the structural model and the model itself."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from castlereg import CastleClassifier, CastleRegressor, EdgeConstraints
from castlereg.causal.variables import Variable
from castlereg.report import report_content
from castlereg.report.what_if import (
    _DRAWS,
    _NOT_KNOWN,
    WhatIfContent,
    _as_asked,
    _as_text,
    _codes_to_set,
    what_if_content,
)

from .handmade import handmade_what_if

pytestmark = [
    pytest.mark.xdist_group("report"),
    pytest.mark.filterwarnings("ignore:constant columns have no edges"),
]

ROWS = 120


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    age = rng.integers(20, 60, ROWS).astype(float)
    city = rng.choice(["Oslo", "Bergen", "Tromsø"], ROWS)
    pay = age + 5 * (city == "Oslo") + rng.normal(size=ROWS)
    frame = pd.DataFrame({"age": age, "city": city, "sex": rng.choice([1, 2], ROWS), "fixed": 1.0, "pay": pay})
    frame.loc[::9, "city"] = None
    return frame


@pytest.fixture(scope="module")
def model(table: pd.DataFrame) -> CastleRegressor:
    known = EdgeConstraints(required=[("age", "pay"), ("city", "pay")], sinks=["pay"])
    fitted = CastleRegressor(constraints=known, n_members=2, max_epochs=3, random_state=0)
    return fitted.fit(table.drop(columns="pay"), table["pay"])


@pytest.fixture(scope="module")
def panel(model: CastleRegressor, table: pd.DataFrame) -> WhatIfContent:
    content = what_if_content(model, table.drop(columns="pay"), table["pay"], ROWS, seed=3)
    assert content is not None
    return content


def test_answers_are_those_of_the_structural_model(
    model: CastleRegressor, table: pd.DataFrame, panel: WhatIfContent
) -> None:
    world = model.structural_model(X=table.drop(columns="pay"), y=table["pay"], n_draws=_DRAWS, random_state=3)
    city = next(column for column in panel.columns if column.name == "city")
    effect = world.effect("city", "pay")
    assert city.values == effect.values
    shown = city.curves[0].effect
    np.testing.assert_array_equal(np.stack(shown.answer), np.stack(effect.answer))
    np.testing.assert_array_equal(shown.associated, effect.associated)
    np.testing.assert_array_equal(shown.quantiles, effect.quantiles)
    assert shown.direction == effect.direction and set(shown.notes) == set(effect.notes)
    assert panel.outcomes[0].now == pytest.approx(table["pay"].mean())


def test_predictions_are_means_with_the_column_set(
    model: CastleRegressor, table: pd.DataFrame, panel: WhatIfContent
) -> None:
    X = table.drop(columns="pay")
    for name, values in (("age", None), ("city", None), ("sex", [1, 2])):
        column = next(column for column in panel.columns if column.name == name)
        for text, predicted in zip(values or column.values, column.curves[0].predicted, strict=True):
            rows = X.assign(**{name: float(text) if name == "age" else text})
            assert predicted == pytest.approx(model.predict(rows).mean(), rel=1e-5)


def test_columns_that_do_not_vary_are_left_out_and_the_largest_effect_is_first(panel: WhatIfContent) -> None:
    assert {column.name for column in panel.columns} == {"age", "city", "sex"}
    assert panel.n_columns == 3
    assert panel.columns[0].name == "age"
    age = panel.columns[0]
    assert all(position == round(position) for position in age.positions) and len(age.positions) <= 20
    assert next(column for column in panel.columns if column.name == "sex").is_levels


def test_more_columns_than_the_page_holds_are_counted() -> None:
    rng = np.random.default_rng(1)
    X = pd.DataFrame(rng.normal(size=(60, 15)), columns=[f"c{k}" for k in range(15)])
    y = pd.Series(X["c9"] * 3 + rng.normal(size=60), name="y")
    known = EdgeConstraints(required=[("c9", "y")])
    model = CastleRegressor(constraints=known, max_epochs=2, random_state=0).fit(X, y)
    panel = what_if_content(model, X, y, 60, seed=0)
    assert panel is not None
    assert (len(panel.columns), panel.n_columns, panel.columns[0].name) == (12, 15, "c9")
    assert panel.columns[0].curves[0].effect.direction.forward == 1


def test_each_class_of_more_than_two_can_be_asked_for(table: pd.DataFrame) -> None:
    X, three = table.drop(columns="pay"), pd.Series(pd.cut(table["pay"], 3, labels=["a", "b", "c"]).astype(str))
    model = CastleClassifier(max_epochs=2, random_state=0).fit(X, three)
    panel = what_if_content(model, X, three, ROWS, seed=0)
    assert panel is not None
    shares = three.value_counts(normalize=True)
    assert [outcome.now for outcome in panel.outcomes] == pytest.approx(shares.tolist())
    assert all(outcome.is_probability for outcome in panel.outcomes)
    for column in panel.columns:
        assert len(column.curves) == 3
        np.testing.assert_allclose(np.sum([curve.predicted for curve in column.curves], axis=0), 1, rtol=1e-5)
        for answer in (curve.effect.answer for curve in column.curves):
            assert 0 <= answer.low.min() <= answer.high.max() <= 1
    two = pd.Series(np.where(table["pay"] > 40, "yes", "no"), name="rich")
    of_two = CastleClassifier(max_epochs=2, random_state=0).fit(X, two)
    panel = what_if_content(of_two, X, two, ROWS, seed=0)
    assert panel is not None
    assert [outcome.text for outcome in panel.outcomes] == ["probability that rich is yes"]


def test_without_rows_or_on_request_there_is_no_panel(model: CastleRegressor, table: pd.DataFrame) -> None:
    X, y = table.drop(columns="pay"), table["pay"]
    assert report_content(model, X[:40], y[:40], evaluate=False).what_if is None
    assert report_content(model, X, y, evaluate=False, what_if=False).what_if is None
    assert report_content(model, X, y, evaluate=False).what_if is not None


def test_long_tables_are_thinned(model: CastleRegressor, table: pd.DataFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("castlereg.report.what_if._MOST_ROWS", 60)
    panel = what_if_content(model, table.drop(columns="pay"), table["pay"], ROWS, seed=0)
    assert panel is not None
    assert (panel.n_rows, panel.n_all_rows) == (60, ROWS)


def test_numbers_leave_the_outer_rows_out() -> None:
    seen = np.random.default_rng(0).normal(size=1000)
    codes = _codes_to_set(Variable("x"), np.append(seen, np.nan))
    assert len(codes) == 20
    np.testing.assert_allclose([codes[0], codes[-1]], np.quantile(seen, [0.025, 0.975]), atol=0.05)


def test_whole_numbers_stay_whole() -> None:
    seen = np.random.default_rng(0).integers(0, 100, 500).astype(float)
    codes = _codes_to_set(Variable("age"), seen)
    assert (codes == codes.round()).all() and len(np.unique(codes)) == len(codes)
    assert all("." not in text for text in _as_text(Variable("age"), codes))


def test_a_column_that_is_nearly_always_the_same_has_its_other_values_too() -> None:
    assert _codes_to_set(Variable("x"), np.array([0.0] * 99 + [7.0])).tolist() == [0.0, 7.0]
    assert _codes_to_set(Variable("x"), np.zeros(9)).tolist() == [0.0]
    assert len(_codes_to_set(Variable("x"), np.full(3, np.nan))) == 0


def test_only_the_most_frequent_levels_that_occur() -> None:
    variable = Variable("city", tuple(f"city {k}" for k in range(30)))
    seen = np.repeat(np.arange(20.0), np.arange(20, 0, -1))
    assert _codes_to_set(variable, seen).tolist() == list(range(12))


def test_dates_and_durations_are_written_as_such() -> None:
    dates = Variable("start", None, "dates")
    days = np.arange(18262.0, 18662.0)
    codes = _codes_to_set(dates, days)
    assert _as_text(dates, codes)[0] == str(_as_asked(dates, codes)[0].date()) == "2020-01-10"
    durations = Variable("length", None, "durations")
    assert _as_text(durations, np.array([1.0, 2.0])) == ("1 days", "2 days")
    assert _as_asked(durations, np.array([1.0])) == [pd.Timedelta(days=1)]


def test_texts_differ_where_values_do() -> None:
    tiny = np.linspace(1e-9, 2e-9, 20)
    assert len(set(_as_text(Variable("x"), tiny))) == 20
    assert _as_text(Variable("sex", (1.0, 2.0)), np.array([0.0, 1.0])) == ("1", "2")
    assert _as_text(Variable("sex", (-0.0446416, 0.0506801)), np.array([0.0])) == ("\N{MINUS SIGN}0.04464",)


PANEL = handmade_what_if(tuple("abcdef"))
NUMBERS, LEVELS, UNKNOWN = PANEL.columns


def test_an_unknown_direction_has_no_number() -> None:
    answers = UNKNOWN.curves[0].answers(1)
    assert answers.caused == answers.distribution == _NOT_KNOWN
    assert (answers.associated, answers.predicted) == ("4.00", "3.00")


def test_answers_are_written_with_their_band() -> None:
    assert NUMBERS.curves[0].answers(0) == (
        "1.00 (0.50 to 1.50)",
        "no such rows",
        "1.50",
        "50% of the rows from 0.00 to 2.00, 90% from \N{MINUS SIGN}2.00 to 4.00",
    )
    assert NUMBERS.curves[1].answers(0).distribution == ""


def test_the_table_has_the_ends_and_the_extreme_levels() -> None:
    assert NUMBERS.table_rows(NUMBERS.curves[0]) == (0, 9)
    curve = LEVELS.curves[0]
    answer = curve.effect.answer._replace(estimate=np.array([3.0, 1.0, 9.0, 4.0, 5.0, 6.0]))
    assert LEVELS.table_rows(replace(curve, effect=replace(curve.effect, answer=answer))) == (1, 2)
    unknown = replace(curve, effect=replace(curve.effect, direction=UNKNOWN.curves[0].effect.direction))
    assert LEVELS.table_rows(unknown) == (1, 5)  # by the associated outcomes; the first level has no rows
