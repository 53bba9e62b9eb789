"""Tables with a target, ready for ``fit``."""

from __future__ import annotations

import importlib
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd

from castlereg.options import check_choice
from castlereg.paper.datasets.catalogue import find_table
from castlereg.paper.datasets.catalogue_entry import CatalogueEntry, Task
from castlereg.paper.datasets.cells import typed
from castlereg.paper.datasets.stored import stored_table
from castlereg.table.files import TableFile, check_columns


@dataclass(frozen=True, eq=False)
class Dataset:
    """A table with a target.

    Parameters
    ----------
    X : DataFrame
        Features: numbers with NaN for missing values; text and nominal codes as categories.
    y : Series
        Target: numbers, or classes as whole numbers.
    task : {"regression", "classification"}
    name, variant : str
    source : str
        Path of the file, or another source.
    entry : CatalogueEntry
        Catalogue entry: licence, citation, kinds of columns, ...
    """

    X: pd.DataFrame = field(repr=False)
    y: pd.Series = field(repr=False)
    task: Task
    name: str
    variant: str
    source: str
    entry: CatalogueEntry = field(repr=False)


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

    Returns
    -------
    Dataset

    Examples
    --------
    >>> from castlereg.paper.datasets import load
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
        frame, source = _bundled(entry), "scikit-learn"
    elif entry.place == "user":
        frame, target = _of_user(entry, path, target)
        source = str(path)
    else:
        cells, source = stored_table(entry.file, page=entry.page, origin=entry.origin, path=path, download=download)
        frame = typed(cells)
    return _problem(entry, variant, frame, target, source)


def _bundled(entry: CatalogueEntry) -> pd.DataFrame:
    datasets = importlib.import_module("sklearn.datasets")
    frame: pd.DataFrame = getattr(datasets, f"load_{entry.name}")(as_frame=True).frame
    return frame


def _of_user(entry: CatalogueEntry, path: str | Path | None, target: str | None) -> tuple[pd.DataFrame, str]:
    if path is None or target is None:
        rows, columns = entry.paper_size or (entry.rows, entry.columns)
        raise ValueError(
            f"{entry.name} ({entry.abbreviation}) is not part of castlereg and cannot be downloaded: {entry.licence} "
            f"({entry.page}). If you have a file with one row per person and a header, call "
            f'load("{entry.abbreviation}", path="the file", target="the column to predict"). '
            f"The table of the paper has {rows} rows and {columns} features"
        )
    file = TableFile.open(path)
    check_columns([target], file.columns(), file)
    frame = file.read()
    text = [name for name in frame.columns if name != target and not pd.api.types.is_numeric_dtype(frame[name])]
    return frame.astype(dict.fromkeys(text, "category")), target


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
