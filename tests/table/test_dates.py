"""Dates written as text, and the seasons that a network sees of them."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import pandas as pd
import pytest

from castlereg.layout import Node
from castlereg.table.coding import coded_columns
from castlereg.table.dates import PERIODS, DateSurvey, as_dates
from castlereg.table.preprocessing import Preprocessing
from castlereg.table.reading import read_columns
from castlereg.table.rows import Rows
from castlereg.table.schema import ColumnSchema, infer_schema
from castlereg.table.targets import NumericTarget

MOMENTS = pd.Series(
    pd.to_datetime(["1999-12-31 23:59:58.25", "2024-02-29 00:00:00", "1969-07-20 20:17:40"], format="ISO8601")
)
EPOCH, DAY = pd.Timestamp("1970-01-01"), pd.Timedelta(days=1)


@pytest.mark.parametrize(
    ("form", "reading", "exact"),
    [
        ("%Y-%m-%d", "year first", "day"),
        ("%Y/%m/%d", "year first", "day"),
        ("%Y-%m-%dT%H:%M:%S.%fZ", "year first", "all"),
        ("%Y-%m-%d %H:%M:%S.%f+00:00", "year first", "all"),
        ("%Y-%m-%d %H:%M:%S", "year first", "second"),
        ("%Y-%m-%d %H:%M", "year first", "minute"),
        ("%d.%m.%Y", "day first", "day"),
        ("%d/%m/%Y %H:%M", "day first", "minute"),
        ("%m/%d/%Y", "month first", "day"),
        ("%m-%d-%Y %I:%M:%S %p", "month first", "second"),
        ("%b %d, %Y", "month name", "day"),
        ("%d %B %Y", "month name", "day"),
        ("%d-%b-%Y %H:%M", "month name", "minute"),
    ],
)
def test_formats(form: str, reading: Any, exact: str) -> None:
    unit = {"all": "us", "second": "s", "minute": "min", "day": "D"}[exact]
    expected = (MOMENTS.dt.floor(unit) - EPOCH) / DAY
    found = as_dates([*MOMENTS.dt.strftime(form), "?"], frozenset("?"))
    assert list(found) == [reading]
    np.testing.assert_allclose(found[reading], [*expected, np.nan], rtol=1e-14)


def test_offsets_and_months() -> None:
    (days,) = as_dates(["2024-01-31T01:00+02:00", "2024-01-30T18:00-0500", "2024-01-30 23:00"], frozenset()).values()
    assert len(set(days)) == 1
    (days,) = as_dates(["2024-01", "2024-02"], frozenset()).values()
    np.testing.assert_array_equal(np.diff(days), 31)


@pytest.mark.parametrize(
    "texts",
    [
        ["2024-02-30"],
        ["2024-01-01 25:00"],
        ["2024-01-01 10:61"],
        ["31/12/2024", "12/31/2024"],
        ["1234-05"],  # a code
        ["10-20"],
        ["10.0.0.1"],
        ["12:30"],
        ["31.12.24"],
        ["Foo 3, 2024"],
        ["2024-01-01", "soon"],
        ["?", "?"],
        [],
    ],
)
def test_other_texts_are_not_dates(texts: list[str]) -> None:
    assert not as_dates(texts, frozenset("?"))


def test_years_of_four_digits_are_read_as_python_does() -> None:
    days = [datetime.date(1, 1, 1), datetime.date(1582, 10, 15), datetime.date(9999, 12, 31)]
    (read,) = as_dates([day.isoformat() for day in days], frozenset()).values()
    np.testing.assert_array_equal(read, [(day - datetime.date(1970, 1, 1)).days for day in days])


def schema_of(column: Any) -> ColumnSchema:
    return infer_schema(read_columns(pd.DataFrame({"when": column})), [False])[0]


def test_the_values_decide_between_day_and_month() -> None:
    assert schema_of(["03/04/2024", "13/04/2024", "05/05/2024"]).reading == "day first"
    assert schema_of(["03/04/2024", "04/13/2024", "05/05/2024"]).reading == "month first"
    assert schema_of(["03.04.2024", "04.04.2024", "05.05.2024"]).reading == "day first"
    with pytest.raises(
        ValueError, match=r"X has dates in column 'when' that could be day/month or month/day, such as '03/"
    ):
        schema_of(["03/04/2024", "04/04/2024", "05/05/2024"])


def test_models_of_text_take_dates_and_models_of_dates_take_text() -> None:
    dates = pd.Series(pd.date_range("2024-01-01", periods=40, freq="9h"))
    texts = dates.dt.strftime("%d.%m.%Y %H:%M")
    with pytest.warns(UserWarning, match=r"text that is read as missing values: '-', '\?' in 'when'"):
        of_text = schema_of([*texts, "?", "-"])
    of_dates = schema_of(dates)
    assert of_text == ColumnSchema(
        "when", "numeric", "dates", None, 2, False, "dates (week, day)", "day first", ("week", "day")
    )
    assert of_dates.reading == ""
    exact, whole = (dates - EPOCH) / DAY, (dates.dt.floor("D") - EPOCH) / DAY
    for given, days in (
        *((column, exact) for column in (dates, texts, dates.astype(str), dates.dt.tz_localize("UTC"))),
        *((column, whole) for column in (dates.dt.date, dates.dt.strftime("%d.%m.%Y"), dates.dt.strftime("%d %b %Y"))),
    ):
        for schema in (of_text, of_dates):
            cells = coded_columns(read_columns(pd.DataFrame({"when": given})), [schema]).cells[:, 0]
            np.testing.assert_allclose(cells, days, rtol=1e-14)


def test_a_date_of_prediction_does_not_depend_on_those_beside_it() -> None:
    of_text, of_dates = schema_of(["13.04.2024", "14.04.2024", "05.05.2024"]), schema_of(pd.date_range("2024", None, 9))
    for schema, texts in (
        (of_text, ["31.01.2024", "2024-01-31", "Jan 31, 2024", "31/01/2024"]),
        (of_dates, ["31.01.2024", "2024-01-31", "01/31/2024", "31/01/2024"]),
    ):
        cells = coded_columns(read_columns(pd.DataFrame({"when": texts})), [schema]).cells
        np.testing.assert_array_equal(cells, (pd.Timestamp("2024-01-31") - EPOCH) / DAY)
    for beside in ("01/02/2024", "13/02/2024", "02/13/2024"):
        with pytest.raises(ValueError, match="could be day/month or month/day, such as '01/02/2024'"):
            coded_columns(read_columns(pd.DataFrame({"when": ["01/02/2024", beside]})), [of_dates])


def test_prediction_names_what_is_not_a_date() -> None:
    schema = schema_of(["13/04/2024", "14/04/2024", "05/05/2024"])
    missing = coded_columns(read_columns(pd.DataFrame({"when": ["-", "?", None, "NaT"]})), [schema])
    assert np.isnan(missing.cells).all()
    for text in ("soon", "04/13/2024"):
        with pytest.raises(
            ValueError, match=rf"X has '{text}' in column 'when', which is not a date in the format of .* \(day"
        ):
            coded_columns(read_columns(pd.DataFrame({"when": ["13/04/2024", text]})), [schema])
    with pytest.raises(ValueError, match="X has numbers in column 'when', but the training data had dates"):
        coded_columns(read_columns(pd.DataFrame({"when": [1.0, 2.0]})), [schema])


@pytest.mark.parametrize(
    ("days", "seasons"),
    [
        (np.arange(800.0), ("year", "week")),
        (np.arange(400.0), ("week",)),
        (np.arange(0, 7 * 300, 7.0), ("year",)),  # always the same weekday
        (np.arange(10.0), ()),
        (np.arange(0, 10, 0.25), ("day",)),
        (np.arange(0, 1, 0.25), ()),
        (np.arange(0, 800, 0.25), ("year", "week", "day")),
        ((pd.date_range("2000-01-01", periods=90, freq="MS") - pd.Timestamp(0)).days.to_numpy(float), ("year",)),
    ],
)
def test_seasons_follow_the_span(days: np.ndarray, seasons: tuple[str, ...]) -> None:
    survey = DateSurvey()
    for piece in np.array_split(days, 3):
        survey.add(piece)
    assert survey.seasons() == seasons


def test_durations_have_no_seasons() -> None:
    schema = schema_of(pd.to_timedelta(np.arange(900) * 1.3, "D"))
    assert (schema.holds, schema.seasons, schema.note) == ("durations", (), "")


def test_channels_of_seasons_are_sines_and_cosines() -> None:
    dates = pd.Series(pd.date_range("2020-01-01", periods=400, freq="53h"))
    dates[7] = pd.NaT
    rows = Rows(read_columns(pd.DataFrame({"when": dates})), (np.arange(400.0),))
    preprocessing, _ = Preprocessing.fit(rows, None, lambda _: (NumericTarget("y", 0.0, 1.0),), categorical=[False])
    assert preprocessing.nodes == (Node(extra=6, missing=True),)
    assert preprocessing.layout.is_input_only.tolist() == [False, *[True] * 7, False]
    encoded = preprocessing.encode(preprocessing.cells(rows.columns))
    days = rows.columns.cells[:, 0]
    present = ~np.isnan(days)
    for k, period in enumerate(PERIODS.values()):
        turn = 2 * np.pi * days[present] / period
        expected = np.column_stack([np.sin(turn), np.cos(turn)])
        np.testing.assert_allclose(encoded[present, 1 + 2 * k : 3 + 2 * k], expected, atol=1e-9)
    np.testing.assert_array_equal(encoded[7], [*[np.nan] * 7, 1])
