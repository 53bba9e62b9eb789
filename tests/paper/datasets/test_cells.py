"""Cells: what a file says, in one spelling, and as numbers and levels."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from castlereg.paper.datasets.cells import as_cells, in_one_spelling, numbers_in, read_cells, typed


def written(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def test_nothing_is_interpreted_when_a_file_is_read(tmp_path: Path) -> None:
    cells = read_cells(written(tmp_path / "a.csv", 'n,n,t\n1.50,NA,"x, y"\n007,,null\n'))
    assert list(cells.columns) == ["n", "n", "t"]  # a name that occurs twice stays as it is
    assert cells.to_numpy().tolist() == [["1.50", "NA", "x, y"], ["007", "", "null"]]


def test_line_ends_and_byte_order_mark_do_not_matter(tmp_path: Path) -> None:
    plain = read_cells(written(tmp_path / "a.csv", "a,b\n1,2\n"))
    windows = read_cells(written(tmp_path / "b.csv", b"\xef\xbb\xbfa,b\r\n1,2\r\n"))
    pd.testing.assert_frame_equal(plain, windows)


@pytest.mark.parametrize("content", ["", "a,b\n1,2\n1,2,3\n", b"\xff\xfe\x00a\x81", 'a,b\n"1,2\n'])
def test_what_is_not_a_table_raises_with_its_path(content: str | bytes, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"a\.csv is not a comma-separated table"):
        read_cells(written(tmp_path / "a.csv", content))


def test_a_row_that_ends_early_has_empty_cells(tmp_path: Path) -> None:
    assert read_cells(written(tmp_path / "a.csv", "a,b,c\n1,2,3\n4\n")).iloc[1].tolist() == ["4", "", ""]


def test_spelling_survives_writing_and_reading_by_pandas(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    numbers = [f"{value:.6g}" for value in rng.lognormal(sigma=8, size=500)]
    path = written(tmp_path / "a.csv", "a\n" + "\n".join(numbers))
    by_pandas = as_cells(pd.read_csv(path))
    assert in_one_spelling(read_cells(path))["a"].tolist() == in_one_spelling(by_pandas)["a"].tolist()


@pytest.mark.parametrize("text", ["inf", "1_000", "1,5", "0x10", "\u0663", " 1", "1e", "."])
def test_only_plain_decimal_numbers_are_numbers(text: str) -> None:
    assert numbers_in(pd.Series(["1", text], dtype=object)) is None


def test_typed_columns() -> None:
    cells = {
        "whole": ["1.0", "2", "-3"],
        "some": ["1", "?", "3"],
        "marked": ["1", "NA", "nan"],
        "text": ["a", "?", "b"],
        "none": ["", "?", "NULL"],
    }
    table = typed(pd.DataFrame(cells, dtype=object))
    assert table["whole"].dtype == np.int64
    np.testing.assert_array_equal(table["some"], [1, np.nan, 3])
    np.testing.assert_array_equal(table["marked"], [1, np.nan, np.nan])
    assert table["text"].cat.categories.tolist() == ["a", "b"]
    assert table["text"].isna().tolist() == [False, True, False]
    assert table["none"].isna().all()
