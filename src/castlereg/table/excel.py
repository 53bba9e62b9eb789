"""Sheets of Excel workbooks, with the values that the spreadsheet program stored; formulas are never evaluated."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd

from castlereg.notices import warn_user
from castlereg.options import did_you_mean
from castlereg.table.byte_streams import check_zip
from castlereg.table.text_format import column_names
from castlereg.table.texts import ALWAYS_MISSING

SUFFIXES = (".xlsx", ".xlsm")
_ERRORS = ("#DIV/0!", "#REF!", "#VALUE!", "#NAME?", "#NUM!", "#NULL!")


def read(path: Path, sheet: str | None) -> pd.DataFrame:
    """Read one sheet, by default the first, with a warning if there are others; its first row has the column names."""
    what = f"file {str(path)!r}"
    with _book(path, stored_values=True) as book:
        sheets = {page.title: page for page in book.worksheets}
        name = sheet if sheet is not None and sheet in sheets else next(iter(sheets))
        rows = [(k, list(row)) for k, row in enumerate(_all_rows(sheets[name], values_only=True), 1)]
    _check_sheet(list(sheets), sheet, what)
    rows = [(number, row) for number, row in rows if any(cell is not None for cell in row)]
    if not rows:
        raise ValueError(f"sheet {name!r} of {what} cannot be read as a table: it is empty")
    width = max(j + 1 for _, row in rows for j, cell in enumerate(row) if cell is not None)
    (first, header), *body = [(number, [*row, *[None] * width][:width]) for number, row in rows]
    names = column_names(["" if cell is None else str(cell) for cell in header], what, f"row {first} of sheet {name!r}")
    for number, row in body:
        for column, cell in zip(names, row, strict=True):
            if cell in _ERRORS:
                raise ValueError(f"row {number} of {what} has {cell} in column {column!r}: fix or clear the cell")
    _check_formulas(path, name, names, body, what)
    columns = zip(*(row for _, row in body), strict=True) if body else ([] for _ in names)
    return pd.DataFrame({column: _column(cells) for column, cells in zip(names, columns, strict=True)})


def _column(cells: Sequence[Any]) -> pd.Series:
    return pd.Series([None if isinstance(cell, str) and cell in ALWAYS_MISSING else cell for cell in cells])


def _all_rows(sheet: Any, **options: Any) -> Iterator[Any]:
    """Iterate over the rows that exist, regardless of the size that the sheet claims; rows may be short."""
    sheet.reset_dimensions()
    rows: Iterator[Any] = sheet.iter_rows(**options)
    return rows


def _check_sheet(names: Sequence[str], sheet: str | None, what: str) -> None:
    if sheet is not None and sheet not in names:
        hint = did_you_mean(sheet, names) or f"; its sheets are {', '.join(map(repr, names))}"
        raise ValueError(f"{what} has no sheet {sheet!r}{hint}")
    if sheet is None and len(names) > 1:
        warn_user(
            f"{what} has {len(names)} sheets, and only the first, {names[0]!r}, is read: to read another, append its "
            f"name, such as '...xlsx#{names[1]}'"
        )


def _check_formulas(
    path: Path, sheet: str, names: Sequence[str], body: Sequence[tuple[int, list[Any]]], what: str
) -> None:
    """Raise for a formula without a stored value, which is not a missing value."""
    missing = {(number, j) for number, row in body for j, cell in enumerate(row) if cell is None}
    if not missing:
        return
    with _book(path, stored_values=False) as book:
        rows = enumerate(_all_rows(book[sheet]), 1)
        cells = ((number, j) for number, row in rows for j, cell in enumerate(row) if cell.data_type == "f")
        formula = next((cell for cell in cells if cell in missing), None)
    if formula is not None:
        raise ValueError(
            f"row {formula[0]} of {what} has a formula without a stored value in column {names[formula[1]]!r}: open "
            "and save the file in a spreadsheet program"
        )


@contextmanager
def _book(path: Path, *, stored_values: bool) -> Iterator[Any]:
    try:
        from openpyxl import load_workbook
    except ImportError:
        raise ImportError("reading Excel needs the package openpyxl: pip install 'castlereg[excel]'") from None
    check_zip(path)
    try:
        book = load_workbook(path, read_only=True, data_only=stored_values, keep_links=False)
        try:
            yield book
        finally:
            book.close()
    except Exception as error:  # openpyxl does not validate files and may raise anything
        reason = " ".join(str(error).split())
        raise ValueError(f"file {str(path)!r} cannot be read as an Excel workbook ({reason})") from None
