"""The paper's tables, and tables with a known graph: read from files or downloaded, and checked.

A file is searched for in the folder that the environment variable ``CASTLEREG_DATA`` names, then in the user's data
folder, and downloaded otherwise. Files are read as text first, so the checks see their exact content. Downloads are
converted to the columns of the catalogue and checked like any file; none is trusted.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import math
import os
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from platformdirs import user_data_path

from castlereg.atomic_write import atomic_write
from castlereg.notices import warn_user
from castlereg.options import check_choice, did_you_mean
from castlereg_paper.catalogue import (
    GRAPHS,
    CatalogueEntry,
    GraphEntry,
    Origin,
    Task,
    all_files,
    catalogue,
    find_graph,
    find_table,
    with_columns,
)

__all__ = ["CauseEffectPair", "Dataset", "GraphData", "catalogue", "load", "load_graph_data", "load_pairs"]

# --- cells: as text, in a normalized spelling for comparisons, and as numbers and levels for training ---

_MISSING: Final = frozenset(
    [
        *("", "?", "NA", "N/A", "n/a", "#N/A", "#NA", "#N/A N/A", "<NA>", "NaN", "nan", "-NaN", "-nan"),
        *("NULL", "null", "None", "1.#IND", "-1.#IND", "1.#QNAN", "-1.#QNAN"),
    ]
)
_NUMBER: Final = re.compile(r"[-+]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?")


def read_cells(path: Path) -> pd.DataFrame:
    """Read a comma-separated file with a header."""
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

    Examples
    --------
    >>> as_cells(pd.DataFrame({"a": [0.1 + 0.2, None], "b": ["x", "y"]})).to_numpy().tolist()
    [['0.3', 'x'], ['', 'y']]
    """
    columns = [["" if pd.isna(cell) else _written(cell) for cell in frame.iloc[:, j]] for j in range(frame.shape[1])]
    return _of_columns(columns, frame.columns)


def _written(cell: object) -> str:
    """Return a cell as text; numbers have 15 digits."""
    return f"{cell:.15g}" if isinstance(cell, float | np.floating) else str(cell)


def in_one_spelling(cells: pd.DataFrame) -> pd.DataFrame:
    """Normalize the spelling of cells: ``18.00`` and ``18`` become equal, and so do ``?`` and an empty cell.

    Only twelve digits are compared, so numbers read by programs that differ in the sixteenth digit are equal.

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
    """Return the normalized spelling of a cell."""
    if cell in _MISSING:
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
        if cell not in _MISSING and not _NUMBER.fullmatch(cell):
            return None
        values[cell] = np.nan if cell in _MISSING else float(cell)
    return np.array([values[cell] for cell in column], np.float64)


def typed(cells: pd.DataFrame) -> pd.DataFrame:
    """Convert text columns to integers, numbers with NaN for missing values, or categories.

    Examples
    --------
    >>> typed(pd.DataFrame({"a": ["1", "2.0"], "b": ["0.5", "?"], "c": ["x", ""]})).dtypes.astype(str).tolist()
    ['int64', 'float64', 'category']
    """
    return pd.DataFrame({name: _typed(cells[name]) for name in cells.columns})


def _typed(column: pd.Series) -> pd.Series:
    numbers = numbers_in(column)
    if numbers is None:
        return column.mask(column.isin(_MISSING)).astype("category")
    whole = bool(np.all(numbers == np.floor(numbers)))  # False with missing values
    return pd.Series(numbers.astype(np.int64) if whole else numbers, index=column.index)


# --- verification: figures.json has the rows of every file, the missing cells, means and level counts of its columns in
# order, and a fingerprint of all cells that does not depend on the order of rows or the spelling of numbers. They
# detect truncated, converted and mixed-up files, not forgery.

_MOST_LEVELS = 10
_SHOWN = 3  # differences in a message; one mistake often affects many columns


@dataclass(frozen=True)
class ColumnFigures:
    """Known figures of a column."""

    missing: int = 0
    mean: float | None = None  # of numbers
    levels: Mapping[str, int] | None = None  # counts of the values, if there are few


@dataclass(frozen=True)
class Figures:
    """Known figures of a table."""

    rows: int
    columns: Mapping[str, ColumnFigures]  # in order
    fingerprint: str  # sum of the rows' SHA-256, modulo 2**128


def figures_of(cells: pd.DataFrame) -> Figures:
    """Compute the figures of a table.

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
    text = files("castlereg_paper").joinpath("figures.json").read_text(encoding="utf-8")
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


# --- files: found or downloaded, and always checked ---

VARIABLE: Final = "CASTLEREG_DATA"


def data_folder() -> Path:
    """Return the user's data folder for castlereg, the default of the platform; downloads are saved there.

    Examples
    --------
    >>> data_folder().name
    'castlereg'
    """
    return user_data_path("castlereg", appauthor=False)


def folders() -> dict[str, Path]:
    """Return the folders to search, in order, by their names in messages."""
    custom = os.environ.get(VARIABLE)
    first = {VARIABLE: Path(custom)} if custom else {}
    return {**first, "the user's data folder": data_folder()}


_MOST_COLUMNS: Final = 40  # listed in a message


def stored_table(
    file: str, *, page: str, origin: Origin | None = None, path: str | Path | None = None, download: bool = True
) -> tuple[pd.DataFrame, str]:
    """Read a file of the catalogue as text cells; return them and the path, or the origin of an unsaved download."""
    figures = known_figures()[file]
    if path is not None:
        if not Path(path).is_file():
            raise FileNotFoundError(f"path={str(path)!r} is not a file")
        return _checked_file(Path(path), figures), str(path)
    for folder in folders().values():
        if (folder / file).is_file():
            return _checked_file(folder / file, figures), str(folder / file)
    if origin is None:
        raise FileNotFoundError(_missing_file_message(file, figures, page, "it has to be placed there by hand"))
    if not download:
        raise FileNotFoundError(_missing_file_message(file, figures, page, "downloads are disabled"))
    try:
        fetched = origin.fetch()
    except Exception as error:  # the remedy is the same for all errors
        reason = f"it could not be downloaded from {origin.title}: {error or type(error).__name__}"
        raise FileNotFoundError(_missing_file_message(file, figures, page, reason)) from error
    return _saved(file, _checked_download(file, fetched, figures, page, origin), origin)


def _checked_file(path: Path, figures: Figures) -> pd.DataFrame:
    cells = read_cells(path)
    remarks = differences(figures_of(cells), figures)
    if remarks:
        raise ValueError(
            f"{path.name}: {'; '.join(remarks)}. The file {path} is not the table of the catalogue: "
            "delete it, or replace it with a complete copy"
        )
    return cells


def _checked_download(file: str, fetched: pd.DataFrame, figures: Figures, page: str, origin: Origin) -> pd.DataFrame:
    try:
        cells = as_cells(with_columns(fetched, list(figures.columns), origin.title))
        remarks = differences(figures_of(cells), figures)
    except ValueError as error:
        remarks = [str(error)]
    if remarks:
        reason = f"the download from {origin.title} is not the table of the catalogue: {'; '.join(remarks)}"
        raise ValueError(_missing_file_message(file, figures, page, reason))
    return cells


def _saved(file: str, cells: pd.DataFrame, origin: Origin) -> tuple[pd.DataFrame, str]:
    path = data_folder() / file
    try:
        write_whole(cells, path)
    except OSError as error:
        warn_user(f"{file} was downloaded but cannot be saved in {path.parent}: {error}")
        return cells, origin.title
    return cells, str(path)


def write_whole(cells: pd.DataFrame, path: Path) -> None:
    """Write a table atomically: readers never see a partial file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as file:
        file.write(cells.to_csv(index=False, lineterminator="\n").encode())


def _missing_file_message(file: str, figures: Figures, page: str, reason: str) -> str:
    searched = folders()
    listed = ", ".join(f"{folder} ({name})" for name, folder in searched.items())
    unset = "" if VARIABLE in searched else f" ({VARIABLE} can name another folder)"
    names = list(figures.columns)
    columns = ", ".join(names) if len(names) <= _MOST_COLUMNS else f"{names[0]}, {names[1]}, ..., {names[-1]}"
    return (
        f"{file} is not in {listed}{unset}, and {reason}.\n"
        f"Save it there as {file}: comma-separated, {figures.rows} rows and {len(names)} columns, with the header "
        f"{columns}.\nSource: {page}"
    )


@dataclass(frozen=True, eq=False)
class Dataset:
    """A table with a target."""

    X: pd.DataFrame = field(repr=False)  # numbers with NaN for missing values; text and nominal codes as categories
    y: pd.Series = field(repr=False)  # numbers, or classes as whole numbers
    task: Task
    name: str
    variant: str
    source: str  # path of the file, or another source
    entry: CatalogueEntry = field(repr=False)  # licence, citation, kinds of columns, ...


def load(
    name: str,
    *,
    variant: str = "default",
    path: str | Path | None = None,
    target: str | None = None,
    download: bool = True,
) -> Dataset:
    """Load a table of the catalogue.

    The file is searched for in the folder that the environment variable ``CASTLEREG_DATA`` names, then in the user's
    data folder (:func:`data_folder`). Otherwise the table is downloaded and saved there. Every table is checked: a
    file that is not the complete table raises, and is never overwritten.

    Parameters
    ----------
    name : str
        Name or abbreviation in the paper, in any case: "boston_housing" or "BH". :func:`catalogue` lists them.
    variant : str
        Prediction problem on the table; see ``catalogue()["variants"]``.
    path : path, optional
        File to read instead. Required for ME and MG, which are not public.
    target : str, optional
        Target column of the user's file for ME and MG; the other tables have a fixed target.
    download : bool
        Whether to download a missing table.

    Examples
    --------
    >>> from castlereg_paper.datasets import load
    >>> table = load("diabetes")
    >>> table
    Dataset(task='regression', name='diabetes', variant='default', source='scikit-learn')
    >>> table.X.shape, table.y.name
    ((442, 10), 'target')
    """
    entry = find_table(name)
    check_choice("variant", variant, entry.variants)
    if target is not None and entry.place != "user":
        raise ValueError(f"target={target!r}: {entry.name} has the fixed target {entry.target!r}: drop this argument")
    if entry.place == "scikit-learn":
        if path is not None:
            raise ValueError(
                f"path={str(path)!r}: {entry.name} is part of scikit-learn, so it is not read from a file: drop path"
            )
        datasets = importlib.import_module("sklearn.datasets")
        frame, source = getattr(datasets, f"load_{entry.name}")(as_frame=True).frame, "scikit-learn"
    elif entry.place == "user":
        frame, target = _of_user(entry, path, target)
        source = str(path)
    else:
        cells, source = stored_table(entry.file, page=entry.page, origin=entry.origin, path=path, download=download)
        frame = typed(cells)
    return _problem(entry, variant, frame, target, source)


def _of_user(entry: CatalogueEntry, path: str | Path | None, target: str | None) -> tuple[pd.DataFrame, str]:
    if path is None or target is None:
        rows, columns = entry.paper_size or (entry.rows, entry.columns)
        raise ValueError(
            f"{entry.name} ({entry.abbreviation}) is not part of castlereg and cannot be downloaded: {entry.licence} "
            f"({entry.page}). If you have a comma-separated file with one row per person and a header, call "
            f'load("{entry.abbreviation}", path="the file", target="the column to predict"). '
            f"The table of the paper has {rows} rows and {columns} features"
        )
    frame = typed(read_cells(Path(path)))
    if target not in frame:
        raise ValueError(f"{path} has no column {target!r}{did_you_mean(target, map(str, frame.columns))}")
    return frame, target


def _problem(entry: CatalogueEntry, name: str, frame: pd.DataFrame, target: str | None, source: str) -> Dataset:
    variant = entry.variants[name]
    target = target or variant.target or entry.target
    assert target is not None  # checked when the user passes it
    for column, code in variant.missing_codes.items():
        frame[column] = frame[column].mask(frame[column] == code)
    y = frame[target]
    if variant.positive is not None:
        y = y.isin(variant.positive).astype("int64")
    X = frame.drop(columns=[target, *variant.drop])
    X = X.astype({column: "category" for column in entry.nominal if column in X})
    return Dataset(X, y, variant.task or entry.task, entry.name, name, source, entry)


@dataclass(frozen=True, eq=False)
class GraphData:
    """A table and its graph."""

    X: pd.DataFrame = field(repr=False)  # numbers, or levels as categories
    dag: pd.DataFrame = field(repr=False)  # 0/1, ``dag.loc[cause, effect]``, in the order of the columns of ``X``
    name: str
    variant: str
    source: str  # path of the table's file
    entry: GraphEntry = field(repr=False)


class CauseEffectPair(NamedTuple):
    """Two variables; the first causes the second."""

    name: str
    cause: NDArray[np.float64]
    effect: NDArray[np.float64]


def load_graph_data(name: str, *, variant: str = "default") -> GraphData:
    """Load a table with a known causal graph.

    Files are found and checked in the same way as by :func:`load`, but they are not downloaded.

    Parameters
    ----------
    name : {"sachs", "sachs_observational", "asia", "alarm"}
        The proteins of Sachs et al., with interventions pooled or observational only; samples of two discrete networks.
    variant : str
        For Sachs: "default" is the conventional network of 17 edges, "20_edges" the network of 20.

    Examples
    --------
    >>> from castlereg_paper.datasets import load_graph_data
    >>> load_graph_data("alarms")
    Traceback (most recent call last):
    ...
    ValueError: name='alarms' is not a table with a known graph of the catalogue; did you mean 'alarm'?
    """
    entry = find_graph(name)
    check_choice("variant", variant, entry.variants)
    assert entry.edges_file is not None  # pairs are not found by find_graph
    cells, source = stored_table(entry.file, page=entry.page)
    edges, _ = stored_table(entry.edges_file, page=entry.page)
    mark = entry.variants[variant]
    if mark:
        edges = edges[edges[mark] == "1"]
    X = typed(cells)
    dag = pd.DataFrame(0, index=X.columns, columns=X.columns)
    for cause, effect in zip(edges["cause"], edges["effect"], strict=True):
        dag.loc[cause, effect] = 1
    return GraphData(X, dag, entry.name, variant, source, entry)


def load_pairs(*, path: str | Path | None = None) -> tuple[CauseEffectPair, ...]:
    """Load the Tuebingen cause-effect pairs.

    In every pair the first variable is the cause: swap pairs at random before scoring a method. The selection and
    numbering of the pairs are those of the catalogue's file, not of the database, and pairs have no weights.

    Examples
    --------
    >>> from castlereg_paper.datasets import load_pairs
    >>> load_pairs(path="nowhere.csv")
    Traceback (most recent call last):
    ...
    FileNotFoundError: path='nowhere.csv' is not a file
    """
    entry = GRAPHS["tuebingen_pairs"]
    cells, _ = stored_table(entry.file, page=entry.page, path=path)
    return tuple(
        CauseEffectPair(name, np.array(cause.split(), np.float64), np.array(effect.split(), np.float64))
        for name, cause, effect in zip(cells["SampleID"], cells["A"], cells["B"], strict=True)
    )


def write_figures(folder: Path, written: Path = Path(__file__).with_name("figures.json")) -> None:
    """Rewrite ``figures.json`` from a folder with all tables of the catalogue."""
    figures = {file: to_json(figures_of(read_cells(folder / file))) for file in sorted(all_files())}
    lines = (f" {json.dumps(file)}: {json.dumps(content)}" for file, content in figures.items())
    written.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
