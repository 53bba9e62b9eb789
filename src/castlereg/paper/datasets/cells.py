"""Cells of a table: as text in files, in one spelling to compare them by, and as numbers and levels to learn from.

A file is read as text first, so that what is checked is what the file says.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from castlereg.data.texts import ALWAYS_MISSING

_NUMBER = re.compile(r"[-+]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?")


def read_cells(path: Path) -> pd.DataFrame:
    """Read a comma-separated file with a header.

    Parameters
    ----------
    path : Path

    Returns
    -------
    DataFrame
        Of text; a row that ends early is filled up with empty cells.
    """
    try:
        lines = pd.read_csv(path, header=None, dtype=object, na_filter=False, encoding="utf-8-sig")
    except (pd.errors.ParserError, pd.errors.EmptyDataError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is not a comma-separated table: {str(error).strip()}") from None
    body = lines.iloc[1:].reset_index(drop=True)
    body.columns = pd.Index([str(name) for name in lines.iloc[0]], dtype=object)
    return body


def as_cells(frame: pd.DataFrame) -> pd.DataFrame:
    """Write numbers and text of a frame as text.

    Numbers keep 15 digits: those that a decimal number in a file has, whichever way it was read.

    Parameters
    ----------
    frame : DataFrame

    Returns
    -------
    DataFrame
        Of text, empty for missing values.

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
    """Write equal cells equally: ``18.00`` and ``18``, ``?`` and nothing.

    Twelve digits count, so that a number read by another program, and off by one in the sixteenth, is the same number.

    Parameters
    ----------
    cells : DataFrame
        Of text.

    Returns
    -------
    DataFrame
        Of text.

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
    return f"{float(cell) + 0.0:.12g}" if _NUMBER.fullmatch(cell) else cell  # + 0.0: there is one zero


def _of_columns(columns: list[list[str]], names: pd.Index) -> pd.DataFrame:
    frame = pd.DataFrame(dict(enumerate(columns)), dtype=object)
    frame.columns = names
    return frame


def numbers_in(column: pd.Series) -> NDArray[np.float64] | None:
    """Read a column of text as numbers, NaN where missing; None when one cell is neither."""
    values: dict[str, float] = {}
    for cell in column.unique():
        if cell not in ALWAYS_MISSING and not _NUMBER.fullmatch(cell):
            return None
        values[cell] = np.nan if cell in ALWAYS_MISSING else float(cell)
    return np.array([values[cell] for cell in column], np.float64)


def typed(cells: pd.DataFrame) -> pd.DataFrame:
    """Turn text into whole numbers, numbers with NaN for missing values, and categories.

    Parameters
    ----------
    cells : DataFrame
        Of text.

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
