"""Tables of all makes become the same columns, and odd columns raise with their names."""

from __future__ import annotations

import datetime
import re
from dataclasses import replace
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.sparse import csr_matrix

from castlereg.layout import Node
from castlereg.table.encoding import Preprocessing, Rows
from castlereg.table.reading import (
    FEW,
    PERIODS,
    are_codes,
    as_dates,
    as_numbers,
    check_range,
    first_few,
    read_columns,
    seasons_of,
    sum_of_squares,
    what_is_wrong,
)
from castlereg.table.schema import ColumnSchema, coded_columns, infer_schema
from castlereg.table.targets import NumericTarget


def test_numbers_of_any_dtype_are_the_same_cells() -> None:
    values = [3, 1, 2]
    for column in (
        pd.Series(values),
        pd.Series(values, dtype=float),
        pd.Series(values, dtype="Int64"),
        pd.Series(values, dtype=object),
        pd.Series([Decimal(v) for v in values]),
        pl.Series(values),
        pl.Series(values, dtype=pl.UInt8),
    ):
        frame = pl.DataFrame({"a": column}) if isinstance(column, pl.Series) else pd.DataFrame({"a": column})
        columns = read_columns(frame)
        np.testing.assert_array_equal(columns.cells[:, 0], values)
        assert columns.types[0].levels is None
        assert columns.names == ["a"]
    np.testing.assert_array_equal(read_columns([[3], [1], [2]]).cells[:, 0], values)
    np.testing.assert_array_equal(read_columns(np.array([[3], [1], [2]], object)).cells[:, 0], values)


def test_text_of_any_dtype_is_the_same_levels() -> None:
    values = ["b", "a", None, "b"]
    series: list[Any] = [
        pd.Series(values, dtype=object),
        pd.Series(values, dtype="str"),
        pd.Series(values, dtype="string"),
        pd.Series(values, dtype="category"),
        pd.Series(values).astype(pd.CategoricalDtype(["b", "never", "a"])),
        pl.Series(values),
        pl.Series(values, dtype=pl.Categorical),
        pl.Series(values, dtype=pl.Enum(["b", "a"])),
    ]
    for column in series:
        frame = pl.DataFrame({"a": column}) if isinstance(column, pl.Series) else pd.DataFrame({"a": column})
        columns = read_columns(frame)
        levels = columns.types[0].levels
        assert levels is not None
        assert [None if np.isnan(c) else levels[int(c)] for c in columns.cells[:, 0]] == values
        assert list(levels) == sorted(levels, key=str)


@pytest.mark.parametrize("missing", [None, np.nan, pd.NA, pd.NaT])
def test_missing_values_of_any_kind_are_missing(missing: Any) -> None:
    frame = pd.DataFrame(
        {"n": [1.5, missing, 2.0], "t": ["x", missing, "y"], "b": [True, missing, False]}, dtype=object
    )
    np.testing.assert_array_equal(np.isnan(read_columns(frame).cells), [[False] * 3, [True] * 3, [False] * 3])


def test_booleans_are_numbers() -> None:
    for column in (pd.Series([True, False]), pd.Series([True, False], dtype="boolean"), pl.Series([True, False])):
        frame = pl.DataFrame({"a": column}) if isinstance(column, pl.Series) else pd.DataFrame({"a": column})
        np.testing.assert_array_equal(read_columns(frame).cells[:, 0], [1, 0])


def test_dates_are_days() -> None:
    days = [datetime.date(1970, 1, 2), datetime.date(2000, 1, 1), None]
    frames: list[Any] = [
        pd.DataFrame({"d": days}),
        pd.DataFrame({"d": pd.to_datetime(pd.Series(days))}),
        pd.DataFrame({"d": pd.to_datetime(pd.Series(days)).dt.tz_localize("UTC").dt.tz_convert("Asia/Tokyo")}),
        pl.DataFrame({"d": days}),
        pd.DataFrame({"d": pd.Series(days, dtype=pd.ArrowDtype(pa.date32()))}),
    ]
    for frame in frames:
        columns = read_columns(frame)
        np.testing.assert_allclose(columns.cells[:, 0], [1, 10957, np.nan])
        assert columns.types[0].holds == "dates"
    spans = read_columns(pd.DataFrame({"d": pd.to_timedelta(["12h", "36h"])}))
    np.testing.assert_allclose(spans.cells[:, 0], [0.5, 1.5])
    assert spans.types[0].holds == "durations"


def test_text_that_stands_for_missing_values_is_missing() -> None:
    for frame in (pd.DataFrame({"t": ["b", "NA", " ", "a", "?"]}), pl.DataFrame({"t": ["b", "NA", " ", "a", "?"]})):
        columns = read_columns(frame)
        np.testing.assert_array_equal(columns.cells[:, 0], [1, np.nan, np.nan, 0, np.nan])
        assert (columns.types[0].levels, columns.types[0].marks) == (("a", "b"), (" ", "?", "NA"))
    assert read_columns(pd.DataFrame({"t": ["?", ""]})).types[0].holds == "nothing"


def test_ignored_columns_are_zeros_whatever_they_hold() -> None:
    frame = pd.DataFrame({"a": [1.0, 2.0], "odd": [b"bytes", np.inf]}, dtype=object)
    for table in (
        frame,
        frame.to_numpy(),
        pd.DataFrame({"a": [1.0, 2.0], "odd": np.inf}),
        np.array([[1, np.inf], [2, 0]]),
    ):
        np.testing.assert_array_equal(read_columns(table, ignored=[1]).cells, [[1, 0], [2, 0]])


def test_codes_written_as_text_stay_text() -> None:
    assert read_columns(pd.DataFrame({"zip": ["01234", "94110"]})).types[0].levels == ("01234", "94110")


def test_ordered_categories_keep_their_order() -> None:
    sizes = pd.Categorical(["mid", "low", None], ["low", "mid", "high"], ordered=True)
    columns = read_columns(pd.DataFrame({"size": sizes}))
    np.testing.assert_array_equal(columns.cells[:, 0], [1, 0, np.nan])
    assert columns.types[0].ordered


@pytest.mark.parametrize("values", [[1, 2.5], [True, False], [datetime.date(2024, 1, 1), datetime.date(2024, 1, 2)]])
def test_marks_of_missing_values_among_numbers_and_dates(values: list[Any]) -> None:
    columns = read_columns(pd.DataFrame({"a": [*values, "-", " ", "-"]}))
    plain = read_columns(pd.DataFrame({"a": [*values, None, None, None]}))
    np.testing.assert_array_equal(columns.cells, plain.cells)
    assert columns.types[0] == replace(plain.types[0], marks=(" ", "-"))
    with pytest.warns(UserWarning, match="text that is read as missing values: ' ', '-' in 'a'"):
        assert infer_schema(columns, [False])[0].missing == 3


@pytest.mark.parametrize(
    ("column", "error", "message"),
    [
        (["a", 1.5], ValueError, r"'odd', which mixes text \('a' in row 0\) and numbers \(1.5 in row 1\)"),
        ([True, "a"], ValueError, "'odd', which mixes booleans .* and text"),
        ([1, "0-"], ValueError, r"'odd', which mixes numbers .* and text \('0-' in row 1\)"),
        ([[1], "-"], TypeError, "of type list in row 0"),
        ([datetime.date(2020, 1, 1), 3], ValueError, "'odd', which mixes dates .* and numbers"),
        ([b"a", b"b"], TypeError, "of type bytes in row 0 of column 'odd'"),
        ([[1], [2]], TypeError, r"\[1\] of type list in row 0 of column 'odd'"),
        ([{"a": 1}, 2], TypeError, "of type dict in row 0 of column 'odd'"),
        ([1 + 2j, 1j], ValueError, "complex numbers in column 'odd'"),
        ([1.0, np.inf], ValueError, "X contains infinity: inf in row 1 of column 'odd'"),
        ([1, 10**400], ValueError, "row 1 of column 'odd'"),
        ([0.0, -1e39], ValueError, r"X has -1e\+39 in row 1 of column 'odd', beyond the range"),
    ],
)
def test_odd_columns_raise_with_the_name(column: list[Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        read_columns(pd.DataFrame({"fine": [1, 2], "odd": column}))


def test_intervals_raise_with_the_name() -> None:
    frame = pd.DataFrame({"a": pd.interval_range(0, 3)})
    with pytest.raises(ValueError, match=r"'a' of dtype interval"):
        read_columns(frame)


@pytest.mark.parametrize("empty", [pd.DataFrame({"a": []}), pd.DataFrame(index=[0, 1]), np.empty((0, 3)), []])
def test_empty_tables_raise(empty: Any) -> None:
    with pytest.raises(ValueError, match=r"0 sample|0 feature|1D array"):
        read_columns(empty)


def test_sparse_and_ragged_tables_raise() -> None:
    with pytest.raises(TypeError, match="dense"):
        read_columns(csr_matrix(np.eye(3)))
    with pytest.raises(ValueError, match="X is not a table"):
        read_columns([[1, 2], [3]])


def test_lists_of_polars_raise_with_the_name() -> None:
    with pytest.raises(ValueError, match="X has lists in column 'a'"):
        read_columns(pl.DataFrame({"a": pl.Series([[1, 2], [3, 4]], dtype=pl.Array(pl.Int64, 2))}))


def test_text_that_no_file_can_hold_raises() -> None:
    odd = pd.DataFrame({"a": pd.Series(["\ud800", "\U0001f600"], dtype=object)})
    with pytest.raises(ValueError, match=r"column 'a' of X has '\\ud800', which is not valid Unicode"):
        read_columns(odd)
    with pytest.raises(ValueError, match="column 'x0' of X has"):
        read_columns(odd.to_numpy())
    with pytest.raises(ValueError, match="the column names of X"):
        read_columns(pd.DataFrame([[1.0]], columns=pd.Index(["\ud800"], dtype=object)))


def test_repeated_names_raise() -> None:
    with pytest.raises(ValueError, match="X has 2 columns named '1': rename them"):
        read_columns(pd.DataFrame([[1.0, 2.0]], columns=pd.Index([1, "1"], dtype=object)))
    with pytest.raises(ValueError, match="X has 2 columns named 'a': rename them"):
        read_columns(pd.DataFrame([[1.0, "x", 2.0]], columns=["a", "b", "a"]))


def test_columns_know_whether_they_are_complete() -> None:
    cells = np.array([[1.0, 2.0], [3.0, 4.0]])
    assert read_columns(cells).complete
    assert not read_columns(pd.DataFrame({"city": ["Rome", "Oslo"]})).complete  # missing where a schema has numbers
    assert not read_columns(pd.DataFrame({"city": ["Rome", None]})).complete
    cells[1, 0] = np.nan
    assert not read_columns(cells).complete
    with pytest.raises(ValueError, match="contains infinity: inf in row 1 of column 'x0'"):
        read_columns(np.where(np.isnan(cells), np.inf, cells))


def test_check_range_names_row_and_column() -> None:
    with pytest.raises(ValueError, match=r"X has -1e\+39 in row 1 of column 'b'"):
        check_range(np.array([[0.0, np.nan], [0.0, -1e39]]), ["a", "b"], "X")
    check_range(np.array([[0.0, np.nan], [0.0, -3e38]]), ["a", "b"], "X")
    check_range(np.full((2, 1), np.nan), ["a"], "X")


def test_long_values_are_cut() -> None:
    with pytest.raises(TypeError, match=r"X has \[0, 1, .*\.\.\. of type list in row 1 of column 'a'"):
        read_columns(pd.DataFrame({"a": ["x", list(range(99))]}))


def test_many_names_are_counted() -> None:
    assert first_few(list("ab")) == "a, b"
    assert first_few(list("abcdefgh")) == "a, b, c, d, e and 3 more columns"


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_quick_look_sees_every_cell_of_any_layout(dtype: type, rng: np.random.Generator) -> None:
    wide = rng.normal(size=(9000, 6)).astype(dtype)
    for cells in (wide, np.asfortranarray(wide), wide[:, 1:4], wide[::2], wide[:, ::-1]):
        np.testing.assert_allclose(sum_of_squares(cells), (cells.astype(np.float64) ** 2).sum(), rtol=1e-4)
        for row in (0, 4095, len(cells) - 1):
            odd = cells[row, 1]
            cells[row, 1] = np.nan
            assert np.isnan(sum_of_squares(cells))
            cells[row, 1] = -1e30
            assert sum_of_squares(cells) > 1e59  # of float32: infinite
            cells[row, 1] = odd
    assert sum_of_squares(np.empty((0, 3))) == 0


# --- texts ---

NUMBERS = np.random.default_rng(0).uniform(0, 9000, 40).round(2)


@pytest.mark.parametrize(
    ("texts", "reason"),
    [
        ([f"{x:.2f}".replace(".", ",") for x in NUMBERS], r"decimal commas, such as '.*': read them with decimal=','"),
        (
            [f"{x:,.2f}" for x in NUMBERS],
            "thousands separators or units, such as .*: remove these marks, then convert with pd.to_numeric",
        ),
        ([f"{x:,.2f}".translate(str.maketrans(",.", ".,")) for x in NUMBERS], "decimal commas"),
        ([f"${x:,.0f}" for x in NUMBERS], "units, such as .*: remove these marks"),
        ([f"{x:.0f} %" for x in NUMBERS], "units"),
        ([f"{x}%" for x in NUMBERS], "units"),
        ([f"{x} kg" for x in NUMBERS], "units"),
        ([f"{x}kg" for x in NUMBERS], "units"),
        ([f"{x} EUR" for x in NUMBERS], "units"),
        ([f"-{x} €" for x in NUMBERS], "units"),
        ([*map(str, NUMBERS), "<5", "n.v."], "numbers except for '<5', 'n.v.': replace these"),
        ([*map(str, NUMBERS), "unknown", "-"], "numbers except for 'unknown': replace these"),
        ([f"2024-01-{d:02}" for d in range(1, 31)] + ["soon"], "dates except for 'soon': write them all as 2024-01-31"),
        ([f"2024-01-{d:02}" for d in range(1, 20)] + [f"{d}.2.2024" for d in range(1, 20)], "dates in several formats"),
        ([f"{d:02}.01.24" for d in range(1, 31)], "dates with two-digit years, such as '01.01.24'"),
    ],
)
def test_numbers_and_dates_that_cannot_be_read_are_found(texts: list[str], reason: str) -> None:
    assert re.search(reason, what_is_wrong(texts) or "")


@pytest.mark.parametrize(
    "texts",
    [
        [f"{i},5" for i in range(FEW)],  # few
        [f"{10 * i}-{10 * i + 9}" for i in range(30)],  # bands
        [f"{i}+" for i in range(30)],
        [f"{i:05}" for i in range(30)],  # postal codes
        [f"SKU{i}" for i in range(30)],
        [f"{i}X" for i in range(100, 130)],  # codes of products
        [f"{i}{'ABCDEFGH'[i % 8]}" for i in range(30)],
        [f"10.0.0.{i}" for i in range(30)],
        [f"{i} {'ABCDEFGH'[i % 8]}C" for i in range(1000, 1030)],
        [f"{i}{['st', 'nd', 'rd', 'th'][i % 4]}" for i in range(30)],
        [f"{i:x}" for i in range(1000, 5000, 97)],
        [f"12:{i}" for i in range(10, 50)],
        [f"word {i}" for i in range(30)],
        ["Oslo", "Rome"],
    ],
)
def test_codes_bands_and_words_are_left_alone(texts: list[str]) -> None:
    assert what_is_wrong(texts) is None


def test_plain_numbers_are_read_as_pandas_reads_a_file() -> None:
    numbers = as_numbers(["1", " 2.5 ", "-3e2", "?", "-", ".5"])
    assert numbers is not None
    np.testing.assert_array_equal(numbers, [1, 2.5, -300, np.nan, np.nan, 0.5])
    for texts in (["1_000"], ["1", "True"], ["1,5"], ["x"]):
        assert as_numbers(texts) is None
    booleans = as_numbers(["True", "false", "NA"])
    assert booleans is not None
    np.testing.assert_array_equal(booleans, [1, 0, np.nan])
    assert are_codes(["10", "007"])
    assert not are_codes(["10", "0", "0.5"])


# --- dates ---

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
    assert seasons_of(days) == seasons


def test_durations_have_no_seasons() -> None:
    schema = schema_of(pd.to_timedelta(np.arange(900) * 1.3, "D"))
    assert (schema.holds, schema.seasons, schema.note) == ("durations", (), "")


def test_channels_of_seasons_are_sines_and_cosines() -> None:
    dates = pd.Series(pd.date_range("2020-01-01", periods=400, freq="53h"))
    dates[7] = pd.NaT
    rows = Rows(read_columns(pd.DataFrame({"when": dates})), (np.arange(400.0),))
    preprocessing = Preprocessing.fit(rows, (NumericTarget("y", 0.0, 1.0),), categorical=[False])
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
