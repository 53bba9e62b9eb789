"""A table seen piece by piece has the schema and the scales of the whole."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from castlereg.table.preprocessing import Preprocessing
from castlereg.table.reading import read_columns
from castlereg.table.rows import Rows
from castlereg.table.schema import KindChanged, schema_of
from castlereg.table.survey import TableSurvey
from castlereg.table.targets import NumericTarget


def surveyed(frame: pd.DataFrame, categorical: list[bool], size: int) -> TableSurvey:
    survey = TableSurvey(list(map(str, frame.columns)), categorical)
    for start in range(0, len(frame), size):
        survey.add(read_columns(frame[start : start + size]))
    return survey


@pytest.fixture
def odd(rng: np.random.Generator) -> pd.DataFrame:
    n = 600
    frame = pd.DataFrame(
        {
            "number": rng.normal(1e6, 1e-2, n),
            "constant": 4.5,
            "none": np.nan,
            "binary": rng.choice([-2.0, 7.5], n),
            "ordinal": rng.integers(0, 5, n),
            "code": rng.integers(0, 4, n),
            "pair of codes": rng.choice([3, 7], n),
            "when": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, n), "D"),
            "written": (pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900 * 24, n), "h")).strftime(
                "%d/%m/%Y %H:%M"
            ),
            "took": pd.to_timedelta(rng.integers(1, 900, n), "h"),
            "id": rng.permutation(5 * n)[:n],
            "two": rng.choice(["yes", "no"], n),
            "many": [f"level {i}" for i in rng.integers(0, 150, n)],
            "size": pd.Categorical(rng.choice(["S", "M", "L"], n), ["S", "M", "L"], ordered=True),
            "marked": [*map(str, rng.normal(size=n - 1).round(1)), "?"],
        }
    )
    frame.loc[:50, ["number", "ordinal", "two", "many"]] = None
    frame.loc[:50, "when"] = pd.NaT
    return frame


@pytest.mark.filterwarnings("ignore:.*(constant columns|joined|read as numbers|more than 100 levels|no information)")
@pytest.mark.parametrize("size", [97, 600])
def test_schema_and_scales_are_those_of_the_whole(odd: pd.DataFrame, size: int) -> None:
    categorical = ["code" in name for name in odd]
    target = NumericTarget("y", 0.0, 1.0)
    rows = Rows(read_columns(odd), (np.arange(len(odd)),))
    whole, _ = Preprocessing.fit(rows, None, lambda _: (target,), categorical=categorical)
    pieces = surveyed(odd, categorical, size).preprocessing("X", {}, (target,), clipped=False)
    assert (pieces.schema, pieces.layout) == (whole.schema, whole.layout)
    ours, theirs = np.argsort(pieces.order), np.argsort(whole.order)
    np.testing.assert_allclose(pieces.center[ours], whole.center[theirs], rtol=1e-7)
    np.testing.assert_allclose(pieces.spread[ours], whole.spread[theirs], rtol=1e-7)


def test_a_column_that_changes_its_kind_raises_with_its_name() -> None:
    with pytest.raises(KindChanged, match="'a' holds numbers in one part of the table and text in another"):
        survey = TableSurvey(["a"], [False])
        survey.add(read_columns(pd.DataFrame({"a": [1.0, 2.0]})))
        survey.add(read_columns(pd.DataFrame({"a": ["x", "y"]})))


def test_free_text_raises_as_in_memory() -> None:
    frame = pd.DataFrame({"id": [f"person {i}" for i in range(60)]})
    with pytest.raises(ValueError, match=r"'id' \(an identifier: 60 different values in 60 rows"):
        schema_of(surveyed(frame, [False], 25).columns, "X", {})


@pytest.mark.filterwarnings("ignore:the table has text that is read as missing")
def test_more_texts_than_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("castlereg.table.survey._MOST_VALUES", 100)
    when = pd.Series(pd.date_range("2020-01-01", periods=500, freq="50h"))
    frame = pd.DataFrame({"when": when.dt.strftime("%m/%d/%Y %H:%M"), "id": [f"person {i}" for i in range(500)]})
    frame.loc[3, "when"], frame.loc[400, "when"] = "-", None
    survey = surveyed(frame, [False, False], 60)
    target = NumericTarget("y", 0.0, 1.0)
    with pytest.warns(UserWarning, match=r"not used: 'id' \(an identifier: more than 120 different values"):
        pieces = survey.preprocessing("the table", {}, (target,), clipped=False, drop_unusable=True)
    typed = frame.assign(when=when.where(~when.index.isin([3, 400])), id=0)
    with pytest.warns(UserWarning, match="constant"):
        whole, _ = Preprocessing.fit(
            Rows(read_columns(typed), (np.arange(500),)), None, lambda _: (target,), categorical=[False, False]
        )
    assert pieces.schema[0] == replace(whole.schema[0], reading="month first")
    assert pieces.layout == whole.layout
    at = [pieces.order.index(0), whole.order.index(0)]
    np.testing.assert_allclose(pieces.center[at[0]], whole.center[at[1]], rtol=1e-12)
    np.testing.assert_allclose(pieces.spread[at[0]], whole.spread[at[1]], rtol=1e-12)
