"""The catalogue: the paper's 13 tables, tables with a known graph, and tables of scikit-learn.

``catalogue.toml`` has one entry per table. The variants cover choices that the paper leaves open; each default is the
sound choice, or the one that the printed figures require. Sizes in the paper sometimes include the target and
identifiers and sometimes do not.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import re
import tomllib
import urllib.request
import zipfile
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from types import MappingProxyType
from typing import Any, ClassVar, Final, Literal, NoReturn

import pandas as pd

from castlereg.options import did_you_mean

Task = Literal["regression", "classification"]

# --- origins of downloads ------------------------------------------------------------------------------

_SECONDS = 60


@dataclass(frozen=True)
class Origin(ABC):
    """A source on the network that has a table, by its number there."""

    number: int
    host: ClassVar[str] = "UCI"

    @property
    def title(self) -> str:
        """Name of the source in messages."""
        return f"{self.host}'s dataset {self.number}"

    @abstractmethod
    def fetch(self) -> pd.DataFrame:
        """Download the table, with the column names of the origin or of the catalogue."""


@dataclass(frozen=True)
class UciImport(Origin):
    """A table of the UCI repository that ``ucimlrepo`` can import."""

    rows: tuple[str, str] | None = None  # column and value that select the rows of the table
    renamed: Mapping[str, str] = field(default_factory=dict)  # names that differ by more than spelling, theirs to ours

    def fetch(self) -> pd.DataFrame:
        """Download the table through ``ucimlrepo``."""
        try:
            ucimlrepo = importlib.import_module("ucimlrepo")
        except ImportError:
            raise ImportError("it needs ucimlrepo: pip install ucimlrepo") from None
        with contextlib.redirect_stdout(io.StringIO()):  # ucimlrepo prints a list of all datasets on failure
            table: pd.DataFrame = ucimlrepo.fetch_ucirepo(id=self.number).data.original
        if self.rows is not None:
            column, value = self.rows
            table = table[table[column] == value].reset_index(drop=True)
        return table.rename(columns=dict(self.renamed))


@dataclass(frozen=True)
class UciArchive(Origin):
    """A table of the UCI repository in an archive that ``ucimlrepo`` cannot import."""

    archive: str  # without ".zip"
    member: str  # name of the file in it
    separator: str = ","
    decimal: str = "."

    def fetch(self) -> pd.DataFrame:
        """Download the archive and read the file in it, in memory."""
        address = f"https://archive.ics.uci.edu/static/public/{self.number}/{self.archive}.zip"
        with urllib.request.urlopen(address, timeout=_SECONDS) as answer:
            packed = io.BytesIO(answer.read())
        with zipfile.ZipFile(packed) as archive, archive.open(self.member) as file:
            return pd.read_csv(file, sep=self.separator, decimal=self.decimal, keep_default_na=False)


@dataclass(frozen=True)
class OpenMl(Origin):
    """A table of OpenML."""

    host = "OpenML"
    renamed: Mapping[str, str] = field(default_factory=dict)  # names that differ by more than spelling, theirs to ours
    recoded: Mapping[str, Mapping[str, int]] = field(default_factory=dict)  # our value for each of theirs, by column

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


_ORIGINS: Final = {kind.__name__: kind for kind in (UciImport, UciArchive, OpenMl)}


def with_columns(table: pd.DataFrame, columns: Sequence[str], title: str) -> pd.DataFrame:
    """Select and order the columns of an origin; names match ours up to case, spaces and punctuation.

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
    """Return the letters and digits of a name, in lower case."""
    return re.sub(r"[^a-z0-9]", "", name.lower())


# --- entries -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Variant:
    """One prediction problem on a table."""

    about: str
    target: str | None = None  # if it differs from that of the table
    task: Task | None = None  # if it differs from that of the table
    drop: tuple[str, ...] = ()  # columns that are neither target nor features
    positive: tuple[int, ...] | None = None  # values of the target that become 1; all others become 0
    missing_codes: Mapping[str, float] = field(default_factory=dict)  # values that mean "missing", by column


@dataclass(frozen=True)
class CatalogueEntry:
    """One table with a target."""

    name: str
    title: str
    rows: int  # of the file; for tables that users provide, in the paper
    columns: int  # including target and identifiers
    task: Task  # of the default variant
    page: str
    licence: str
    citation: str
    target: str | None = None  # of the default variant; None if the user passes it
    origin: Origin | None = None  # source of downloads
    place: Literal["file", "scikit-learn", "user"] = "file"
    abbreviation: str = ""  # in the paper
    paper_size: tuple[int, int] | None = None  # rows and features as printed in the paper
    binary: tuple[str, ...] = ()  # columns of this kind; those of no kind are numeric
    nominal: tuple[str, ...] = ()
    ordinal: tuple[str, ...] = ()
    variants: Mapping[str, Variant] = field(default_factory=lambda: {"default": Variant("all columns")})

    @property
    def file(self) -> str:
        """Name of the table's file."""
        return f"{self.name}.csv"

    @property
    def kinds(self) -> str:
        """Number of features of each kind in the default variant; empty if unknown."""
        if self.place == "user":
            return ""
        dropped = {*self.variants["default"].drop, self.target}
        counts = {
            kind: len(set(names) - dropped)
            for kind, names in (("binary", self.binary), ("nominal", self.nominal), ("ordinal", self.ordinal))
        }
        numeric = self.columns - len(dropped) - sum(counts.values())
        return ", ".join(f"{n} {kind}" for kind, n in {"numeric": numeric, **counts}.items() if n)


@dataclass(frozen=True)
class GraphEntry:
    """One table with a known graph, or the table of cause-effect pairs."""

    name: str
    title: str
    rows: int
    columns: int
    page: str
    licence: str
    citation: str
    file: str
    edges_file: str | None = None  # with columns cause and effect; None for pairs
    # For each graph, the 0/1 column of the edges file that marks its edges; "" for all edges.
    variants: Mapping[str, str] = field(default_factory=lambda: {"default": ""})


def _fixed(value: Any) -> Any:
    """Return a value of TOML with tuples in place of lists."""
    return tuple(value) if isinstance(value, list) else value


def _read_entries() -> tuple[tuple[CatalogueEntry, ...], tuple[GraphEntry, ...]]:
    """Read all entries of ``catalogue.toml``."""
    content = tomllib.loads(files("castlereg_paper").joinpath("catalogue.toml").read_text("utf-8"))
    tables = []
    for fields in content["table"]:
        made = {name: _fixed(value) for name, value in fields.items()}
        if "origin" in made:
            origin = {name: _fixed(value) for name, value in made["origin"].items()}
            made["origin"] = _ORIGINS[origin.pop("kind")](**origin)
        if "variants" in made:
            made["variants"] = {
                name: Variant(**{key: _fixed(value) for key, value in variant.items()})
                for name, variant in made["variants"].items()
            }
        tables.append(CatalogueEntry(**made))
    return tuple(tables), tuple(GraphEntry(**fields) for fields in content["graph"])


_TABLES, _GRAPHS = _read_entries()
TABLES: Final[Mapping[str, CatalogueEntry]] = MappingProxyType({entry.name: entry for entry in _TABLES})
GRAPHS: Final[Mapping[str, GraphEntry]] = MappingProxyType({entry.name: entry for entry in _GRAPHS})

# Rows and columns as printed in Table 8.
PAPER_SIZES: Final = {entry.abbreviation: entry.paper_size for entry in _TABLES if entry.paper_size}


def find_table(name: Any) -> CatalogueEntry:
    """Find a table with a target by its name or its abbreviation in the paper, in any case.

    Examples
    --------
    >>> find_table("bh").name
    'boston_housing'
    >>> find_table("boston_hosing")
    Traceback (most recent call last):
    ...
    ValueError: name='boston_hosing' is not a table of the catalogue; did you mean 'boston_housing'?
    """
    key = name.lower() if isinstance(name, str) else None
    for entry in TABLES.values():
        if key and key in (entry.name, entry.abbreviation.lower()):
            return entry
    if key is not None and key in GRAPHS:
        call = "load_pairs()" if GRAPHS[key].edges_file is None else f"load_graph_data({key!r})"
        raise ValueError(f"name={name!r} has no target: load it with castlereg_paper.datasets.{call}")
    _reject_name(name, "table", [*TABLES, *(entry.abbreviation for entry in _TABLES if entry.abbreviation)])


def find_graph(name: Any) -> GraphEntry:
    """Find a table with a known graph by its name, in any case."""
    known = {key: entry for key, entry in GRAPHS.items() if entry.edges_file is not None}
    if isinstance(name, str) and name.lower() in known:
        return known[name.lower()]
    _reject_name(name, "table with a known graph", list(known))


def _reject_name(name: Any, kind: str, known: Sequence[str]) -> NoReturn:
    """Raise for an unknown name, with the nearest known one."""
    hint = did_you_mean(name, known, cutoff=0.5) if isinstance(name, str) else ""
    hint = hint or f"; choose from {', '.join(known)}"
    raise ValueError(f"name={name!r} is not a {kind} of the catalogue{hint}")


def all_files() -> set[str]:
    """Return the names of all files of the catalogue."""
    edges = {entry.edges_file for entry in _GRAPHS if entry.edges_file is not None}
    return {entry.file for entry in _TABLES if entry.place == "file"} | {entry.file for entry in _GRAPHS} | edges


def catalogue() -> pd.DataFrame:
    """List the tables that can be loaded.

    Returns
    -------
    DataFrame
        One row per table, by name: ``abbreviation``, ``title``, ``rows`` and ``columns`` (including target
        and identifiers), ``paper_size``, ``task``, ``target``, ``kinds`` of the features and ``dropped`` columns of the
        default variant, ``variants``, ``place``, ``page``, ``licence`` and ``citation``. The task of tables for
        :func:`load_graph_data` and :func:`load_pairs` is "causal discovery".

    Examples
    --------
    >>> catalogue().loc[["boston_housing", "diabetes"], ["rows", "target", "kinds"]]
                    rows  target                            kinds
    name
    boston_housing   506    MEDV  11 numeric, 1 binary, 1 ordinal
    diabetes         442  target              9 numeric, 1 binary
    """
    shared = ("name", "title", "rows", "columns", "page", "licence", "citation")
    more = ("abbreviation", "task", "kinds", "place")
    rows = [
        {name: getattr(entry, name) for name in (*shared, *more)}
        | {"paper_size": "" if entry.paper_size is None else " x ".join(map(str, entry.paper_size))}
        | {"target": entry.target or "", "dropped": entry.variants["default"].drop, "variants": tuple(entry.variants)}
        for entry in _TABLES
    ]
    no_target = {"abbreviation": "", "task": "causal discovery", "kinds": "", "place": "file", "paper_size": ""}
    rows += [
        {name: getattr(entry, name) for name in shared}
        | no_target
        | {"target": "", "dropped": (), "variants": tuple(entry.variants)}
        for entry in _GRAPHS
    ]
    return pd.DataFrame(rows).set_index("name")
