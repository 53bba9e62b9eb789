"""Whether a table is the one that it should be, by figures that are known of it.

``figures.json`` holds, for every file, the number of rows, the columns in order, their missing cells, means and
counts of levels, and a fingerprint of all cells that does not depend on the order of rows or on the spelling of
numbers. The figures guard against cut, converted and mixed-up files, not against forgery.
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
_SHOWN = 3  # one wrong column makes the same remark in many places


@dataclass(frozen=True)
class ColumnFigures:
    """What is known of a column.

    Parameters
    ----------
    missing : int
        Missing cells.
    mean : float, optional
        Of a column of numbers.
    levels : mapping of str to int, optional
        Counts of the values, where they are few.
    """

    missing: int = 0
    mean: float | None = None
    levels: Mapping[str, int] | None = None


@dataclass(frozen=True)
class Figures:
    """What is known of a table.

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
        Of text.

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


def differences(seen: Figures, known: Figures) -> list[str]:
    """Tell how a table differs from the one that it should be.

    Parameters
    ----------
    seen, known : Figures

    Returns
    -------
    list of str
        Empty when the tables are the same, but for the order of rows.

    Examples
    --------
    >>> table = pd.DataFrame({"a": ["1", "2", "3"]})
    >>> differences(figures_of(table.iloc[:2]), figures_of(table))
    ['2 rows where 3 belong']
    >>> differences(figures_of(table.iloc[::-1]), figures_of(table))
    []
    """
    found = _differences_of_names(list(seen.columns), list(known.columns))
    if seen.rows != known.rows:
        found.append(f"{seen.rows} rows where {known.rows} belong")
    if found:
        return found  # means of other rows or columns say nothing more
    for name, column in known.columns.items():
        remark = _difference_of_columns(seen.columns[name], column)
        if remark:
            found.append(f"column {name!r} has {remark}")
    if len(found) > _SHOWN:
        found = [*found[:_SHOWN], f"{len(found) - _SHOWN} more columns differ"]
    if not found and seen.fingerprint != known.fingerprint:
        found = ["counts and means are right, but cells have other values or stand in other rows"]
    return found


def _differences_of_names(seen: list[str], known: list[str]) -> list[str]:
    if seen == known:
        return []
    if sorted(seen) == sorted(known):
        wrong, right = next((a, b) for a, b in zip(seen, known, strict=True) if a != b)
        return [f"columns in another order: {_short(wrong)} where {right!r} belongs"]
    found = [] if len(seen) == len(known) else [f"{len(seen)} columns where {len(known)} belong"]
    for names, others, what in ((known, seen, "no column"), (seen, known, "an unknown column")):
        only = [name for name in names if name not in others]
        if only:
            found.append(f"{what} {', '.join(map(_short, only[:_SHOWN]))}{', ...' * (len(only) > _SHOWN)}")
    return found or ["columns that occur twice"]


def _short(name: str) -> str:
    return repr(name if len(name) <= 40 else name[:37] + "...")


def _difference_of_columns(seen: ColumnFigures, known: ColumnFigures) -> str | None:
    if seen.missing != known.missing:
        return f"{seen.missing} missing cells where {known.missing} belong"
    if (seen.mean is None) != (known.mean is None):
        return "text where numbers belong" if seen.mean is None else "numbers where text belongs"
    if seen.mean is not None and known.mean is not None and not math.isclose(seen.mean, known.mean, rel_tol=1e-9):
        return f"mean {seen.mean:.9g} where {known.mean:.9g} belongs"
    if seen.levels != known.levels:
        return "other counts of its values"
    return None


@cache
def known_figures() -> Mapping[str, Figures]:
    """Read the figures that come with the package, by name of file."""
    text = files("castlereg.paper.datasets").joinpath("figures.json").read_text(encoding="utf-8")
    return {file: from_json(content) for file, content in json.loads(text).items()}


def to_json(figures: Figures) -> dict[str, Any]:
    """Turn figures into what JSON can hold, leaving out what is not there."""
    absent = vars(ColumnFigures())
    columns = {name: {k: v for k, v in vars(one).items() if v != absent[k]} for name, one in figures.columns.items()}
    return {"rows": figures.rows, "fingerprint": figures.fingerprint, "columns": columns}


def from_json(content: dict[str, Any]) -> Figures:
    """Turn the content of JSON into figures."""
    columns = {name: ColumnFigures(**one) for name, one in content["columns"].items()}
    return Figures(content["rows"], columns, content["fingerprint"])
