"""Tables with a known causal graph, and pairs with a known cause."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from castlereg.options import check_choice
from castlereg.paper.datasets.catalogue import GRAPHS, find_graph
from castlereg.paper.datasets.catalogue_entry import GraphEntry
from castlereg.paper.datasets.cells import typed
from castlereg.paper.datasets.stored import stored_table


@dataclass(frozen=True, eq=False)
class GraphData:
    """A table and its graph.

    Parameters
    ----------
    X : DataFrame
        Numbers, or levels as categories.
    dag : DataFrame
        0/1, ``dag.loc[cause, effect]``, in the order of the columns of ``X``.
    name, variant : str
    source : str
        Path of the table's file.
    entry : GraphEntry
        Licence, citation and so on.
    """

    X: pd.DataFrame = field(repr=False)
    dag: pd.DataFrame = field(repr=False)
    name: str
    variant: str
    source: str
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

    Returns
    -------
    GraphData

    Examples
    --------
    >>> from castlereg.paper.datasets import load_graph_data
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

    Parameters
    ----------
    path : path, optional
        File to read; by default, the catalogue's file is searched for.

    Returns
    -------
    tuple of CauseEffectPair
        Each with ``name``, ``cause`` and ``effect``.

    Examples
    --------
    >>> from castlereg.paper.datasets import load_pairs
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
