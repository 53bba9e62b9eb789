"""Tables of all makes become the same columns, and odd columns raise with their names."""

from __future__ import annotations

import datetime
from dataclasses import replace
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.sparse import csr_matrix

from castlereg.table.reading import read_columns
from castlereg.table.schema import infer_schema


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
    assert read_columns(pd.DataFrame({"city": ["Rome", "Oslo"]})).complete
    assert not read_columns(pd.DataFrame({"city": ["Rome", None]})).complete
    cells[1, 0] = np.nan
    assert not read_columns(cells).complete
    with pytest.raises(ValueError, match="contains infinity: inf in row 1 of column 'x0'"):
        read_columns(np.where(np.isnan(cells), np.inf, cells))
