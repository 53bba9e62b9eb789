"""Verify tables against their known figures.

For every file, ``figures.json`` contains the number of rows, the columns in order, their missing cells, means and
level counts, and a fingerprint of all cells that does not depend on the order of rows or the spelling of
numbers. The figures detect truncated, converted and mixed-up files, not forgery.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import pandas as pd

from castlereg.paper.datasets.cells import in_one_spelling, numbers_in

_MOST_LEVELS = 10
_SHOWN = 3  # differences in a message; one mistake often affects many columns


@dataclass(frozen=True)
class ColumnFigures:
    """Known figures of a column.

    Parameters
    ----------
    missing : int
        Number of missing cells.
    mean : float, optional
        Mean of a numeric column.
    levels : mapping of str to int, optional
        Counts of the values, if there are few.
    """

    missing: int = 0
    mean: float | None = None
    levels: Mapping[str, int] | None = None


@dataclass(frozen=True)
class Figures:
    """Known figures of a table.

    Parameters
    ----------
    rows : int
    columns : mapping of str to ColumnFigures
        In order.
    fingerprint : str
        Sum of the rows' SHA-256, modulo ``2**128``.
    """

    rows: int
    columns: Mapping[str, ColumnFigures]
    fingerprint: str


def figures_of(cells: pd.DataFrame) -> Figures:
    """Compute the figures of a table.

    Parameters
    ----------
    cells : DataFrame
        Text cells.

    Returns
    -------
    Figures

    Examples
    --------
    >>> figures = figures_of(pd.DataFrame({"a": ["1.0", "2", "?"], "b": ["x", "x", "y"]}))
    >>> figures.rows, figures.columns["a"].mean, dict(figures.columns["b"].levels)
    (3, 1.5, {'x': 2, 'y': 1})
    """
    spelled = in_one_spelling(cells)
    names = [str(name) for name in spelled.columns]
    columns = {name: _column_figures(spelled.iloc[:, j]) for j, name in enumerate(names)}
    return Figures(len(spelled), columns, _fingerprint(spelled))


def _column_figures(column: pd.Series) -> ColumnFigures:
    counts = Counter(column)
    missing = counts.pop("", 0)
    numbers = numbers_in(pd.Series(list(counts), dtype=object))
    mean = None
    if numbers is not None and counts:
        total = math.fsum(value * count for value, count in zip(numbers, counts.values(), strict=True))
        mean = float(f"{total / counts.total():.12g}")
    levels = {level: counts[level] for level in sorted(counts)} if len(counts) <= _MOST_LEVELS else None
    return ColumnFigures(missing, mean, levels)


def _fingerprint(spelled: pd.DataFrame) -> str:
    rows = spelled.to_numpy(dtype=object).tolist()
    total = sum(int.from_bytes(hashlib.sha256(json.dumps(row).encode()).digest()[:16], "big") for row in rows)
    return f"{total % 2**128:032x}"


def differences(actual: Figures, known: Figures) -> list[str]:
    """List the differences between a table and its known figures.

    Parameters
    ----------
    actual, known : Figures

    Returns
    -------
    list of str
        Empty if the tables are the same up to the order of rows.

    Examples
    --------
    >>> table = pd.DataFrame({"a": ["1", "2", "3"]})
    >>> differences(figures_of(table.iloc[:2]), figures_of(table))
    ['2 rows instead of 3']
    >>> differences(figures_of(table.iloc[::-1]), figures_of(table))
    []
    """
    remarks = _differences_of_names(list(actual.columns), list(known.columns))
    if actual.rows != known.rows:
        remarks.append(f"{actual.rows} rows instead of {known.rows}")
    if remarks:
        return remarks  # the means of other rows or columns add no information
    for name, column in known.columns.items():
        remark = _difference_of_columns(actual.columns[name], column)
        if remark:
            remarks.append(f"column {name!r} has {remark}")
    if len(remarks) > _SHOWN:
        remarks = [*remarks[:_SHOWN], f"{len(remarks) - _SHOWN} more columns differ"]
    if not remarks and actual.fingerprint != known.fingerprint:
        remarks = ["counts and means match, but some cells have other values or are in other rows"]
    return remarks


def _differences_of_names(actual: list[str], known: list[str]) -> list[str]:
    if actual == known:
        return []
    if sorted(actual) == sorted(known):
        wrong, right = next((a, b) for a, b in zip(actual, known, strict=True) if a != b)
        return [f"columns in another order: {_short(wrong)} instead of {right!r}"]
    remarks = [] if len(actual) == len(known) else [f"{len(actual)} columns instead of {len(known)}"]
    for names, others, problem in ((known, actual, "no column"), (actual, known, "an unknown column")):
        only = [name for name in names if name not in others]
        if only:
            remarks.append(f"{problem} {', '.join(map(_short, only[:_SHOWN]))}{', ...' * (len(only) > _SHOWN)}")
    return remarks or ["duplicated columns"]


def _short(name: str) -> str:
    return repr(name if len(name) <= 40 else name[:37] + "...")


def _difference_of_columns(actual: ColumnFigures, known: ColumnFigures) -> str | None:
    if actual.missing != known.missing:
        return f"{actual.missing} missing values instead of {known.missing}"
    if (actual.mean is None) != (known.mean is None):
        return "text instead of numbers" if actual.mean is None else "numbers instead of text"
    if actual.mean is not None and known.mean is not None and not math.isclose(actual.mean, known.mean, rel_tol=1e-9):
        return f"mean {actual.mean:.9g} instead of {known.mean:.9g}"
    if actual.levels != known.levels:
        return "other counts of its values"
    return None


@cache
def known_figures() -> Mapping[str, Figures]:
    """Read the figures in the package, by file name."""
    text = files("castlereg.paper.datasets").joinpath("figures.json").read_text(encoding="utf-8")
    return {file: from_json(content) for file, content in json.loads(text).items()}


def to_json(figures: Figures) -> dict[str, Any]:
    """Convert figures to JSON types, without defaults."""
    defaults = vars(ColumnFigures())
    columns = {
        name: {k: v for k, v in vars(column).items() if v != defaults[k]} for name, column in figures.columns.items()
    }
    return {"rows": figures.rows, "fingerprint": figures.fingerprint, "columns": columns}


def from_json(content: dict[str, Any]) -> Figures:
    """Convert JSON content to figures."""
    columns = {name: ColumnFigures(**values) for name, values in content["columns"].items()}
    return Figures(content["rows"], columns, content["fingerprint"])
