"""Tables from files, and what their target asks for."""

from __future__ import annotations

import difflib
import io
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import pandas as pd

Task = Literal["regression", "classification"]

_TEXT_SUFFIXES = {".csv": ",", ".tsv": "\t", ".tab": "\t", ".txt": None}
_PARQUET_SUFFIXES = (".parquet", ".pq")
_PACKED = (".gz", ".bz2", ".xz", ".zst")
_MOST_CLASSES = 10  # whole numbers with at most so many values that come back are taken for classes


def read_table(path: Path) -> pd.DataFrame:
    """Read CSV, TSV or Parquet by its suffix; ``-`` is CSV from standard input.

    Parameters
    ----------
    path : Path

    Returns
    -------
    DataFrame
    """
    if str(path) == "-":
        return _read_text(io.StringIO(sys.stdin.read()), ",", "standard input")
    if not path.exists():
        near = difflib.get_close_matches(path.name, [p.name for p in path.parent.glob("*")], n=1)
        raise ValueError(f"{path}: there is no such file{f'; did you mean {near[0]!r}?' if near else ''}")
    suffixes = [suffix.lower() for suffix in path.suffixes if suffix.lower() not in _PACKED]
    suffix = suffixes[-1] if suffixes else ""
    if suffix in _PARQUET_SUFFIXES:
        return _read_parquet(path)
    if suffix not in _TEXT_SUFFIXES:
        known = ", ".join([*_TEXT_SUFFIXES, *_PARQUET_SUFFIXES])
        raise ValueError(f"{path}: no table by its name; tables end in {known}")
    return _read_text(path, _TEXT_SUFFIXES[suffix], str(path))


def _read_text(source: Path | io.StringIO, separator: str | None, name: str) -> pd.DataFrame:
    try:
        if separator is None:
            frame = pd.read_csv(source, sep=None, engine="python")
        else:
            frame = pd.read_csv(source, sep=separator, low_memory=False)
            if separator == "," and frame.shape[1] == 1 and ";" in str(frame.columns[0]):
                if isinstance(source, io.StringIO):
                    source.seek(0)
                frame = pd.read_csv(source, sep=";", low_memory=False)
    except (pd.errors.EmptyDataError, pd.errors.ParserError, UnicodeDecodeError) as error:
        raise ValueError(f"{name}: cannot be read as a table ({error}); is it CSV with a header, in UTF-8?") from error
    if frame.empty:
        raise ValueError(f"{name}: has no rows")
    return frame


def _read_parquet(path: Path) -> pd.DataFrame:
    try:
        return pd.read_parquet(path, engine="pyarrow")
    except ImportError as error:
        raise ImportError('Parquet needs pyarrow: pip install "castlereg[arrow]"') from error
    except Exception as error:  # pyarrow has errors of its own
        raise ValueError(f"{path}: cannot be read as Parquet ({error})") from error


def read_problem(
    path: Path, targets: Sequence[str], left_out: Sequence[str] | None
) -> tuple[pd.DataFrame, pd.DataFrame, int]:
    """Read a table, leave columns out, and part features and targets as :func:`split_target` does."""
    frame = read_table(path)
    check_columns(frame, [*targets, *(left_out or [])], path)
    return split_target(frame.drop(columns=list(left_out or [])), targets)


def check_columns(frame: pd.DataFrame, names: Sequence[str], path: Path) -> None:
    """Refuse names that the table does not have; suggest the nearest."""
    for name in names:
        if name not in frame.columns:
            columns = [str(column) for column in frame.columns]
            near = difflib.get_close_matches(name, columns, n=1, cutoff=0.5)
            same = [column for column in columns if column.lower().strip() == name.lower().strip()]
            hint = f"did you mean {(same or near)[0]!r}?" if same or near else f"it has {_listed(columns)}"
            raise ValueError(f"{path} has no column {name!r}; {hint}")


def split_target(frame: pd.DataFrame, targets: Sequence[str]) -> tuple[pd.DataFrame, pd.DataFrame, int]:
    """Part features and targets; leave rows out whose target is missing.

    Returns
    -------
    X, y : DataFrame
    dropped : int
        Rows left out.
    """
    known = frame[list(targets)].notna().all(axis=1)
    rows = frame[known]
    if rows.empty:
        raise ValueError(f"no row has a value of {', '.join(map(repr, targets))}: there is nothing to learn from")
    features = rows.drop(columns=list(targets))
    if features.shape[1] == 0:
        raise ValueError("the table has no column beside the target: there is nothing to predict from")
    return features, rows[list(targets)], int((~known).sum())


def inferred_task(target: pd.Series) -> tuple[Task, str]:
    """Tell what a target asks for, and why.

    Examples
    --------
    >>> inferred_task(pd.Series(["yes", "no", "yes"]))
    ('classification', '2 classes')
    >>> inferred_task(pd.Series([1.5, 2.0, 7.25]))
    ('regression', 'numbers')
    >>> inferred_task(pd.Series([0, 1, 1, 0]))
    ('classification', '2 classes')
    >>> inferred_task(pd.Series([3, 8, 4, 9, 4]))
    ('regression', 'numbers')
    """
    values = target.dropna()
    distinct = values.nunique()
    if not pd.api.types.is_numeric_dtype(values) or pd.api.types.is_bool_dtype(values):
        return "classification", f"{distinct} classes"
    few = min(_MOST_CLASSES, max(2, len(values) // 2))  # each comes twice in the mean
    if distinct <= few and (values == values.round()).all():
        return "classification", f"{distinct} classes"
    return "regression", "numbers"


def _listed(names: Sequence[str], most: int = 20) -> str:
    shown = ", ".join(map(repr, names[:most]))
    return f"{shown} and {len(names) - most} more" if len(names) > most else shown
