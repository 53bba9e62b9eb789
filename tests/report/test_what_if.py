"""What the panel says about setting columns, against the structural model and the model itself."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from castlereg import CastleClassifier, CastleRegressor, EdgeConstraints, NetworkRegressor
from castlereg.report import report_content
from castlereg.report.what_if import DRAWS, WhatIfContent, what_if_content

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
    world = model.structural_model(X=table.drop(columns="pay"), y=table["pay"], n_draws=DRAWS, random_state=3)
    city = next(column for column in panel.columns if column.name == "city")
    effect = world.effect("city", "pay")
    assert city.values == effect.values
    curve = city.curves[0]
    for mine, theirs in (
        (curve.caused, effect.estimate),
        (curve.low, effect.answer.low),
        (curve.high, effect.answer.high),
        (curve.associated, effect.associated),
        (curve.quantiles, effect.quantiles),
    ):
        np.testing.assert_array_equal(np.array(mine), theirs)
    assert (curve.share, curve.is_known) == (effect.direction.forward, effect.direction.is_known)
    assert {*curve.notes, *panel.caveats} == set(effect.notes)
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
    assert not next(column for column in panel.columns if column.name == "sex").positions


def test_more_columns_than_the_page_holds_are_counted() -> None:
    rng = np.random.default_rng(1)
    X = pd.DataFrame(rng.normal(size=(60, 15)), columns=[f"c{k}" for k in range(15)])
    y = pd.Series(X["c9"] * 3 + rng.normal(size=60), name="y")
    known = EdgeConstraints(required=[("c9", "y")])
    model = CastleRegressor(constraints=known, max_epochs=2, random_state=0).fit(X, y)
    panel = what_if_content(model, X, y, 60, seed=0)
    assert panel is not None
    assert (len(panel.columns), panel.n_columns, panel.columns[0].name) == (12, 15, "c9")
    assert panel.columns[0].curves[0].path == "The graph has a path from c9 to y."


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
        assert all(not curve.quantiles and 0 <= min(curve.low) <= max(curve.high) <= 1 for curve in column.curves)
    two = pd.Series(np.where(table["pay"] > 40, "yes", "no"), name="rich")
    of_two = CastleClassifier(max_epochs=2, random_state=0).fit(X, two)
    panel = what_if_content(of_two, X, two, ROWS, seed=0)
    assert panel is not None
    assert [outcome.text for outcome in panel.outcomes] == ["probability that rich is yes"]


def test_without_a_graph_or_rows_or_on_request_there_is_no_panel(model: CastleRegressor, table: pd.DataFrame) -> None:
    X, y = table.drop(columns="pay"), table["pay"]
    plain = NetworkRegressor(max_epochs=2, random_state=0).fit(X, y)
    assert what_if_content(plain, X, y, ROWS, seed=0) is None
    assert report_content(model, X[:40], y[:40], evaluate=False).what_if is None
    assert report_content(model, X, y, evaluate=False, what_if=False).what_if is None
    assert report_content(model, X, y, evaluate=False).what_if is not None


def test_long_tables_are_thinned(model: CastleRegressor, table: pd.DataFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("castlereg.report.what_if.MOST_ROWS", 60)
    panel = what_if_content(model, table.drop(columns="pay"), table["pay"], ROWS, seed=0)
    assert panel is not None
    assert (panel.n_rows, panel.n_all_rows) == (60, ROWS)
