"""Where tables are downloaded from: a class per kind of origin, each with ``fetch``.

What comes back is brought to the columns of the catalogue and checked like any file; nothing here is trusted.
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
    """A place on the network that has a table."""

    @property
    def title(self) -> str:
        """Name of the place in messages."""

    def fetch(self) -> pd.DataFrame:
        """Download the table, with the origin's own names of columns or the catalogue's."""


@dataclass(frozen=True)
class UciImport:
    """A table of the UCI repository that ``ucimlrepo`` can import.

    Parameters
    ----------
    number : int
        Number of the table in the repository.
    rows : (str, str), optional
        Column and value of the rows that belong to the table.
    renamed : mapping of str to str
        Columns whose names differ by more than spelling, from the origin's to ours.
    """

    number: int
    rows: tuple[str, str] | None = None
    renamed: Mapping[str, str] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """Name of the place in messages."""
        return f"UCI's dataset {self.number}"

    def fetch(self) -> pd.DataFrame:
        """Download the table through ``ucimlrepo``."""
        try:
            ucimlrepo = importlib.import_module("ucimlrepo")
        except ImportError:
            raise ImportError("it needs ucimlrepo: pip install 'castlereg[datasets]'") from None
        with contextlib.redirect_stdout(io.StringIO()):  # a failure prints a list of all datasets
            table: pd.DataFrame = ucimlrepo.fetch_ucirepo(id=self.number).data.original
        if self.rows is not None:
            column, value = self.rows
            table = table[table[column] == value].reset_index(drop=True)
        return table.rename(columns=dict(self.renamed))


@dataclass(frozen=True)
class UciArchive:
    """A table of the UCI repository that is a file in an archive, which ``ucimlrepo`` does not import.

    Parameters
    ----------
    number : int
    archive : str
        Name of the archive, without ``.zip``.
    member : str
        Name of the file in it.
    separator, decimal : str
        How the file is written.
    """

    number: int
    archive: str
    member: str
    separator: str = ","
    decimal: str = "."

    @property
    def title(self) -> str:
        """Name of the place in messages."""
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
        Columns whose names differ by more than spelling, from the origin's to ours.
    recoded : mapping of str to mapping
        By our names of columns: what the origin's values are in ours.
    """

    number: int
    renamed: Mapping[str, str] = field(default_factory=dict)
    recoded: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """Name of the place in messages."""
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
    """Pick and order columns whose names differ from ours by case, spaces and signs at most.

    Parameters
    ----------
    table : DataFrame
    columns : sequence of str
        Our names.
    title : str
        Of the table's origin, for messages.

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
    absent = [name for name in columns if _letters(name) not in theirs]
    if absent:
        raise ValueError(f"{title} has no column {absent[0]!r}; it has {', '.join(map(str, table.columns))}")
    picked = table[[theirs[_letters(name)] for name in columns]]
    return picked.set_axis(list(columns), axis=1)


def _letters(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())
