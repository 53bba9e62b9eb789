"""Cells of a table: as text, in a normalized spelling for comparisons, and as numbers and levels for training.

Files are read as text first, so the checks see the exact content of the file.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from castlereg.table.texts import ALWAYS_MISSING

_NUMBER = re.compile(r"[-+]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?")


def read_cells(path: Path) -> pd.DataFrame:
    """Read a comma-separated file with a header.

    Parameters
    ----------
    path : Path

    Returns
    -------
    DataFrame
        Text cells; short rows are filled with empty cells.
    """
    try:
        lines = pd.read_csv(path, header=None, dtype=object, na_filter=False, encoding="utf-8-sig")
    except (pd.errors.ParserError, pd.errors.EmptyDataError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is not a comma-separated table: {str(error).strip()}") from None
    body = lines.iloc[1:].reset_index(drop=True)
    body.columns = pd.Index([str(name) for name in lines.iloc[0]], dtype=object)
    return body


def as_cells(frame: pd.DataFrame) -> pd.DataFrame:
    """Convert the numbers and text of a frame to text.

    Numbers keep 15 digits, the digits of a decimal number in a file, regardless of how it was read.

    Parameters
    ----------
    frame : DataFrame

    Returns
    -------
    DataFrame
        Text cells, empty for missing values.

    Examples
    --------
    >>> as_cells(pd.DataFrame({"a": [0.1 + 0.2, None], "b": ["x", "y"]})).to_numpy().tolist()
    [['0.3', 'x'], ['', 'y']]
    """
    columns = [["" if pd.isna(cell) else _written(cell) for cell in frame.iloc[:, j]] for j in range(frame.shape[1])]
    return _of_columns(columns, frame.columns)


def _written(cell: object) -> str:
    return f"{cell:.15g}" if isinstance(cell, float | np.floating) else str(cell)


def in_one_spelling(cells: pd.DataFrame) -> pd.DataFrame:
    """Normalize the spelling of cells: ``18.00`` and ``18`` become equal, and so do ``?`` and an empty cell.

    Only twelve digits are compared, so numbers read by programs that differ in the sixteenth digit are equal.

    Parameters
    ----------
    cells : DataFrame
        Text cells.

    Returns
    -------
    DataFrame
        Text cells.

    Examples
    --------
    >>> in_one_spelling(pd.DataFrame({"a": ["18.00", "?", "1e3", "-0", "1_000"]}))["a"].tolist()
    ['18', '', '1000', '0', '1_000']
    """
    columns = []
    for j in range(cells.shape[1]):
        column = cells.iloc[:, j]
        spelled = {cell: _spelled(cell) for cell in column.unique()}
        columns.append([spelled[cell] for cell in column])
    return _of_columns(columns, cells.columns)


def _spelled(cell: str) -> str:
    if cell in ALWAYS_MISSING:
        return ""
    return f"{float(cell) + 0.0:.12g}" if _NUMBER.fullmatch(cell) else cell  # + 0.0 turns -0 into 0


def _of_columns(columns: list[list[str]], names: pd.Index) -> pd.DataFrame:
    frame = pd.DataFrame(dict(enumerate(columns)), dtype=object)
    frame.columns = names
    return frame


def numbers_in(column: pd.Series) -> NDArray[np.float64] | None:
    """Convert a text column to numbers, NaN for missing values; return None if a cell is neither."""
    values: dict[str, float] = {}
    for cell in column.unique():
        if cell not in ALWAYS_MISSING and not _NUMBER.fullmatch(cell):
            return None
        values[cell] = np.nan if cell in ALWAYS_MISSING else float(cell)
    return np.array([values[cell] for cell in column], np.float64)


def typed(cells: pd.DataFrame) -> pd.DataFrame:
    """Convert text columns to integers, numbers with NaN for missing values, or categories.

    Parameters
    ----------
    cells : DataFrame
        Text cells.

    Returns
    -------
    DataFrame

    Examples
    --------
    >>> typed(pd.DataFrame({"a": ["1", "2.0"], "b": ["0.5", "?"], "c": ["x", ""]})).dtypes.astype(str).tolist()
    ['int64', 'float64', 'category']
    """
    return pd.DataFrame({name: _typed(cells[name]) for name in cells.columns})


def _typed(column: pd.Series) -> pd.Series:
    numbers = numbers_in(column)
    if numbers is None:
        return column.mask(column.isin(ALWAYS_MISSING)).astype("category")
    whole = bool(np.all(numbers == np.floor(numbers)))  # False with missing values
    return pd.Series(numbers.astype(np.int64) if whole else numbers, index=column.index)
