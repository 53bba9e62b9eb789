"""The catalogue: the paper's 13 tables, tables with a known graph, and tables of scikit-learn.

The variants cover choices that the paper leaves open; each default is the sound choice, or the one that the printed
figures require. Sizes in the paper sometimes include the target and identifiers and sometimes do not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NoReturn

import pandas as pd

from castlereg.options import did_you_mean
from castlereg.paper.datasets.catalogue_entry import CatalogueEntry, GraphEntry
from castlereg.paper.datasets.entries import GRAPH_ENTRIES, TABLE_ENTRIES

TABLES: Mapping[str, CatalogueEntry] = MappingProxyType({entry.name: entry for entry in TABLE_ENTRIES})
GRAPHS: Mapping[str, GraphEntry] = MappingProxyType({entry.name: entry for entry in GRAPH_ENTRIES})


def find_table(name: Any) -> CatalogueEntry:
    """Find a table with a target by its name or its abbreviation in the paper, in any case.

    Parameters
    ----------
    name : str

    Returns
    -------
    CatalogueEntry

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
    for entry in TABLE_ENTRIES:
        if key and key in (entry.name, entry.abbreviation.lower()):
            return entry
    if key is not None and key in GRAPHS:
        call = "load_pairs()" if GRAPHS[key].edges_file is None else f"load_graph_data({key!r})"
        raise ValueError(f"name={name!r} has no target: load it with castlereg.paper.datasets.{call}")
    _reject_name(name, "table", [*TABLES, *(entry.abbreviation for entry in TABLE_ENTRIES if entry.abbreviation)])


def find_graph(name: Any) -> GraphEntry:
    """Find a table with a known graph by its name, in any case.

    Parameters
    ----------
    name : str

    Returns
    -------
    GraphEntry
    """
    known = {key: entry for key, entry in GRAPHS.items() if entry.edges_file is not None}
    if isinstance(name, str) and name.lower() in known:
        return known[name.lower()]
    _reject_name(name, "table with a known graph", list(known))


def _reject_name(name: Any, kind: str, known: Sequence[str]) -> NoReturn:
    hint = did_you_mean(name, known, cutoff=0.5) if isinstance(name, str) else ""
    hint = hint or f"; choose from {', '.join(known)}"
    raise ValueError(f"name={name!r} is not a {kind} of the catalogue{hint}")


def all_files() -> set[str]:
    """Return the names of all files of the catalogue."""
    edges = {entry.edges_file for entry in GRAPH_ENTRIES if entry.edges_file is not None}
    return {entry.file for entry in TABLE_ENTRIES if entry.place == "file"} | {e.file for e in GRAPH_ENTRIES} | edges


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
    rows = [
        {
            "name": entry.name,
            "abbreviation": entry.abbreviation,
            "title": entry.title,
            "rows": entry.rows,
            "columns": entry.columns,
            "paper_size": "" if entry.paper_size is None else " x ".join(map(str, entry.paper_size)),
            "task": entry.task,
            "target": entry.target or "",
            "kinds": entry.kinds,
            "dropped": entry.variants["default"].drop,
            "variants": tuple(entry.variants),
            "place": entry.place,
            "page": entry.page,
            "licence": entry.licence,
            "citation": entry.citation,
        }
        for entry in TABLE_ENTRIES
    ]
    graphs = [
        {
            "name": entry.name,
            "abbreviation": "",
            "title": entry.title,
            "rows": entry.rows,
            "columns": entry.columns,
            "paper_size": "",
            "task": "causal discovery",
            "target": "",
            "kinds": "",
            "dropped": (),
            "variants": tuple(entry.variants),
            "place": "file",
            "page": entry.page,
            "licence": entry.licence,
            "citation": entry.citation,
        }
        for entry in GRAPH_ENTRIES
    ]
    return pd.DataFrame(rows + graphs).set_index("name")
