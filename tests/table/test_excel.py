"""Sheets of workbooks."""

from __future__ import annotations

import datetime
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from castlereg.table.files import TableFile

openpyxl = pytest.importorskip("openpyxl")


def book(path: Path, *sheets: list[list[Any]]) -> Path:
    workbook = openpyxl.Workbook()
    workbook.remove(workbook.active)
    for k, rows in enumerate(sheets, 1):
        sheet = workbook.create_sheet(f"Sheet {k}")
        for row in rows:
            sheet.append(row)
    workbook.save(path)
    return path


def test_kinds_of_cells(tmp_path: Path) -> None:
    day = datetime.datetime(2024, 2, 1)
    rows = [[], ["n", "text", "day", "flag"], [1, "x", day, True], [None, "N/A", day, False], [2.5, "z", None, True]]
    frame = TableFile.open(book(tmp_path / "a.xlsx", [*rows, [None] * 6])).read()
    expected = pd.DataFrame({"n": [1, np.nan, 2.5], "text": ["x", None, "z"], "day": [day, day, None]})
    pd.testing.assert_frame_equal(frame, expected.assign(flag=[True, False, True]), check_dtype=False)


def test_the_first_sheet_or_the_one_that_is_named(tmp_path: Path) -> None:
    path = book(tmp_path / "a.xlsx", [["a"], [1]], [["b"], [2], [3]])
    with pytest.warns(UserWarning, match="has 2 sheets, and only the first, 'Sheet 1', is read: to read another"):
        assert TableFile.open(path).columns() == ["a"]
    file = TableFile.open(f"{path}#Sheet 2")
    assert [frame["b"].tolist() for frame in file.frames(["b"], 1)] == [[2], [3]]
    with pytest.raises(ValueError, match="has no sheet 'Sheet'; did you mean"):
        TableFile.open(f"{path}#Sheet")


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], "is empty"),
        ([["a", "b"], [1, "=1+1"]], "row 2 of .* has a formula without a stored value in column 'b': open and save"),
        ([["a", "b"], [1, "#DIV/0!"]], "row 2 of .* has #DIV/0! in column 'b'"),
        ([["a", "a"], [1, 2]], r"2 columns named 'a' \(1 and 2\): rename them in row 1 of sheet 'Sheet 1'"),
        ([["Report"], ["a", "b", "c"], [1, 2, 3]], "row 1 of sheet .* names 1 of 3 columns"),
        ([[1, 2], [3, 4]], "has only numbers"),
        ([["a", "b"]], "has no rows"),
    ],
)
def test_what_is_not_a_table_is_rejected(tmp_path: Path, rows: list[list[Any]], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        TableFile.open(book(tmp_path / "a.xlsx", rows)).read()


@pytest.mark.parametrize("last", [3, "=1+1"])
def test_sheets_that_claim_to_be_smaller_are_read_whole(tmp_path: Path, last: Any) -> None:
    path = book(tmp_path / "a.xlsx", [["a", "b"], [1], [None, None], [2, last]])
    claims = tmp_path / "b.xlsx"
    with zipfile.ZipFile(path) as whole, zipfile.ZipFile(claims, "w") as changed:
        for name in whole.namelist():
            changed.writestr(name, whole.read(name).replace(b'<dimension ref="A1:B4"', b'<dimension ref="A1:A2"'))
    assert claims.read_bytes() != path.read_bytes()
    if last == 3:
        assert TableFile.open(claims).read().to_csv(index=False) == "a,b\n1,\n2,3.0\n"
    else:
        with pytest.raises(ValueError, match=r"row 4 of .* has a formula without a stored value in column 'b'"):
            TableFile.open(claims)


def test_damaged_workbooks_are_rejected(tmp_path: Path) -> None:
    whole = book(tmp_path / "a.xlsx", [["a"], [1]]).read_bytes()
    for content in (b"a,b\n", whole[:-100]):
        (tmp_path / "b.xlsx").write_bytes(content)
        with pytest.raises(ValueError, match="is not a"):
            TableFile.open(tmp_path / "b.xlsx")
