"""Entries of the catalogue: size, task, columns, source and licence of a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from castlereg.paper.datasets.download import Origin

Task = Literal["regression", "classification"]


@dataclass(frozen=True)
class Variant:
    """One prediction problem on a table.

    Parameters
    ----------
    about : str
        Description.
    target : str, optional
        Target, if it differs from that of the table.
    task : {"regression", "classification"}, optional
        Task, if it differs from that of the table.
    drop : tuple of str
        Columns that are neither target nor features.
    positive : tuple of int, optional
        Values of the target that become 1; all others become 0.
    missing_codes : mapping of str to number
        Values that mean "missing", by column.
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
        Size of the file, including target and identifiers; for tables that users provide, the size in the paper.
    task : {"regression", "classification"}
        Task of the default variant.
    target : str, optional
        Target of the default variant; None if the user passes it.
    page : str
        Web page of the table.
    licence, citation : str
    origin : Origin, optional
        Source of downloads.
    place : {"file", "scikit-learn", "user"}
        Whether the table is a file, part of scikit-learn, or provided by the user.
    abbreviation : str
        Abbreviation in the paper.
    paper_size : (int, int), optional
        Rows and features as printed in the paper.
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
    """One table with a known graph, or the table of cause-effect pairs.

    Parameters
    ----------
    name, title : str
    rows, columns : int
    page, licence, citation : str
    file : str
    edges_file : str, optional
        File with columns ``cause`` and ``effect``; None for pairs.
    variants : mapping of str to str
        For each graph, the 0/1 column of the edges file that marks its edges; "" for all edges.
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
