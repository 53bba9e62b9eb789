"""Directed acyclic graphs to sample from, as 0/1 frames with ``dag.loc[cause, effect]``."""

from __future__ import annotations

import numpy as np
import pandas as pd


def example_dag() -> pd.DataFrame:
    """Return the paper's example graph (Figure 1): nine features and the target ``Y``.

    Returns
    -------
    DataFrame
        1 where row causes column.

    Examples
    --------
    >>> dag = example_dag()
    >>> list(dag.index[dag["Y"] == 1])
    ['X2', 'X3']
    """
    names = [*(f"X{i}" for i in range(1, 10)), "Y"]
    edges = "X1-X2 X1-X3 X1-X4 X2-X5 X2-Y X3-Y X3-X6 X3-X7 X6-X9 Y-X8 Y-X9"
    dag = pd.DataFrame(0, index=names, columns=names)
    for edge in edges.split():
        cause, effect = edge.split("-")
        dag.loc[cause, effect] = 1
    return dag


def random_dag(n_nodes: int, n_edges: int, random_state: int | np.random.Generator) -> pd.DataFrame:
    """Draw a graph of ``n_edges`` different edges along a random order of the nodes.

    Parameters
    ----------
    n_nodes : int
    n_edges : int
        At most ``n_nodes * (n_nodes - 1) / 2``.
    random_state : int or Generator

    Returns
    -------
    DataFrame
        With nodes named ``X0``, ``X1``, ...

    Examples
    --------
    >>> int(random_dag(5, 7, random_state=0).to_numpy().sum())
    7
    """
    most = n_nodes * (n_nodes - 1) // 2
    if not 0 <= n_edges <= most:
        raise ValueError(f"n_edges={n_edges}: {n_nodes} nodes have room for 0 to {most} edges without a cycle")
    rng = np.random.default_rng(random_state)
    order = rng.permutation(n_nodes)
    earlier, later = np.triu_indices(n_nodes, k=1)
    chosen = rng.choice(most, n_edges, replace=False)
    values = np.zeros((n_nodes, n_nodes), np.int64)
    values[order[earlier[chosen]], order[later[chosen]]] = 1
    names = [f"X{i}" for i in range(n_nodes)]
    return pd.DataFrame(values, index=names, columns=names)
