"""Sources of downloads: one class per kind of origin, each with ``fetch``.

Downloads are converted to the columns of the catalogue and checked like any file; none is trusted.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import re
import urllib.request
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import pandas as pd

_SECONDS = 60


class Origin(Protocol):
    """A source on the network that has a table."""

    @property
    def title(self) -> str:
        """Name of the source in messages."""

    def fetch(self) -> pd.DataFrame:
        """Download the table, with the column names of the origin or of the catalogue."""


@dataclass(frozen=True)
class UciImport:
    """A table of the UCI repository that ``ucimlrepo`` can import.

    Parameters
    ----------
    number : int
        Number of the table in the repository.
    rows : (str, str), optional
        Column and value that select the rows of the table.
    renamed : mapping of str to str
        Columns whose names differ by more than spelling, from the origin's names to ours.
    """

    number: int
    rows: tuple[str, str] | None = None
    renamed: Mapping[str, str] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """Name of the source in messages."""
        return f"UCI's dataset {self.number}"

    def fetch(self) -> pd.DataFrame:
        """Download the table through ``ucimlrepo``."""
        try:
            ucimlrepo = importlib.import_module("ucimlrepo")
        except ImportError:
            raise ImportError("it needs ucimlrepo: pip install 'castlereg[datasets]'") from None
        with contextlib.redirect_stdout(io.StringIO()):  # ucimlrepo prints a list of all datasets on failure
            table: pd.DataFrame = ucimlrepo.fetch_ucirepo(id=self.number).data.original
        if self.rows is not None:
            column, value = self.rows
            table = table[table[column] == value].reset_index(drop=True)
        return table.rename(columns=dict(self.renamed))


@dataclass(frozen=True)
class UciArchive:
    """A table of the UCI repository in an archive that ``ucimlrepo`` cannot import.

    Parameters
    ----------
    number : int
    archive : str
        Name of the archive, without ``.zip``.
    member : str
        Name of the file in it.
    separator, decimal : str
        Format of the file.
    """

    number: int
    archive: str
    member: str
    separator: str = ","
    decimal: str = "."

    @property
    def title(self) -> str:
        """Name of the source in messages."""
        return f"UCI's dataset {self.number}"

    def fetch(self) -> pd.DataFrame:
        """Download the archive and read the file in it, in memory."""
        address = f"https://archive.ics.uci.edu/static/public/{self.number}/{self.archive}.zip"
        with urllib.request.urlopen(address, timeout=_SECONDS) as answer:
            packed = io.BytesIO(answer.read())
        with zipfile.ZipFile(packed) as archive, archive.open(self.member) as file:
            return pd.read_csv(file, sep=self.separator, decimal=self.decimal, keep_default_na=False)


@dataclass(frozen=True)
class OpenMl:
    """A table of OpenML.

    Parameters
    ----------
    number : int
    renamed : mapping of str to str
        Columns whose names differ by more than spelling, from the origin's names to ours.
    recoded : mapping of str to mapping
        For each column, by our name: our value for each value of the origin.
    """

    number: int
    renamed: Mapping[str, str] = field(default_factory=dict)
    recoded: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """Name of the source in messages."""
        return f"OpenML's dataset {self.number}"

    def fetch(self) -> pd.DataFrame:
        """Download the table through scikit-learn."""
        datasets = importlib.import_module("sklearn.datasets")
        table: pd.DataFrame = datasets.fetch_openml(
            data_id=self.number, as_frame=True, cache=False, n_retries=1, parser="liac-arff"
        ).frame
        table = table.rename(columns=dict(self.renamed))
        for column, values in self.recoded.items():
            table[column] = table[column].astype(object).map(values)
        return table


def with_columns(table: pd.DataFrame, columns: Sequence[str], title: str) -> pd.DataFrame:
    """Select and order columns; names match ours up to case, spaces and punctuation.

    Parameters
    ----------
    table : DataFrame
    columns : sequence of str
        Our column names.
    title : str
        Name of the origin, for messages.

    Returns
    -------
    DataFrame

    Examples
    --------
    >>> table = pd.DataFrame({"ph": [3], "fixed_acidity": [7]})
    >>> with_columns(table, ["fixed acidity", "pH"], "a test").columns.tolist()
    ['fixed acidity', 'pH']
    """
    theirs = {_letters(str(name)): name for name in table.columns}
    missing = [name for name in columns if _letters(name) not in theirs]
    if missing:
        raise ValueError(f"{title} has no column {missing[0]!r}; its columns are {', '.join(map(str, table.columns))}")
    picked = table[[theirs[_letters(name)] for name in columns]]
    return picked.set_axis(list(columns), axis=1)


def _letters(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())
