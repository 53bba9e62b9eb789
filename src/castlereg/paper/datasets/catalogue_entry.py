"""What is known of a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from castlereg.paper.datasets.download import Origin

Task = Literal["regression", "classification"]


@dataclass(frozen=True)
class Variant:
    """One way to make a problem of a table.

    Parameters
    ----------
    about : str
    target : str, optional
        When it is not the table's usual one.
    task : {"regression", "classification"}, optional
        When it is not the table's usual one.
    drop : tuple of str
        Columns that are neither target nor features.
    positive : tuple of int, optional
        Values of the target that become 1; all others become 0.
    missing_codes : mapping of str to number
        Values that stand for a missing cell, by column.
    """

    about: str
    target: str | None = None
    task: Task | None = None
    drop: tuple[str, ...] = ()
    positive: tuple[int, ...] | None = None
    missing_codes: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class CatalogueEntry:
    """One table with a target.

    Parameters
    ----------
    name : str
    title : str
    rows, columns : int
        Size of the file, target and identifiers included; for a table that users bring, the size in the paper.
    task : {"regression", "classification"}
        Of the default variant.
    target : str, optional
        Of the default variant; None where the user says it.
    page : str
        Where it comes from.
    licence, citation : str
    origin : Origin, optional
        Where it can be downloaded.
    place : {"file", "scikit-learn", "user"}
        Who has it.
    abbreviation : str
        Of the paper.
    paper_size : (int, int), optional
        Rows and features that the paper prints.
    binary, nominal, ordinal : tuple of str
        Columns of these kinds; the others are numeric.
    variants : mapping of str to Variant
    """

    name: str
    title: str
    rows: int
    columns: int
    task: Task
    target: str | None
    page: str
    licence: str
    citation: str
    origin: Origin | None = None
    place: Literal["file", "scikit-learn", "user"] = "file"
    abbreviation: str = ""
    paper_size: tuple[int, int] | None = None
    binary: tuple[str, ...] = ()
    nominal: tuple[str, ...] = ()
    ordinal: tuple[str, ...] = ()
    variants: Mapping[str, Variant] = field(default_factory=lambda: {"default": Variant("all columns")})

    @property
    def file(self) -> str:
        """Name of the table's file."""
        return f"{self.name}.csv"

    @property
    def kinds(self) -> str:
        """How many features of which kind the default variant has; empty where that is not known."""
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
    """One table with a known graph, or the table of cause-effect pairs.

    Parameters
    ----------
    name, title : str
    rows, columns : int
    page, licence, citation : str
    file : str
    edges_file : str, optional
        With columns ``cause`` and ``effect``; None for pairs.
    variants : mapping of str to str
        For every graph the 0/1 column of the edges' file that marks its edges; "" for all edges.
    """

    name: str
    title: str
    rows: int
    columns: int
    page: str
    licence: str
    citation: str
    file: str
    edges_file: str | None = None
    variants: Mapping[str, str] = field(default_factory=lambda: {"default": ""})
