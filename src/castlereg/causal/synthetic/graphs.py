"""Directed acyclic graphs to sample from: DataFrames whose ``dag.loc[cause, effect]`` is the weight, 0 for no edge.

Random graphs have weights of 1 and nodes named ``X0``, ``X1``, ...
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from castlereg.acyclicity.cut import find_cycle
from castlereg.options import check_fraction, check_integer, check_number


def example_dag() -> pd.DataFrame:
    """Return the paper's example graph (Figure 1): nine features and the target ``Y``, with 1 where row causes column.

    Examples
    --------
    >>> dag = example_dag()
    >>> list(dag.index[dag["Y"] == 1])
    ['X2', 'X3']
    """
    names = [*(f"X{i}" for i in range(1, 10)), "Y"]
    dag = pd.DataFrame(0, index=names, columns=names)
    edges = "X1-X2 X1-X3 X1-X4 X2-X5 X2-Y X3-Y X3-X6 X3-X7 X6-X9 Y-X8 Y-X9"
    for edge in edges.split():
        dag.loc[*edge.split("-")] = 1
    return dag


def random_dag(
    n_nodes: int,
    n_edges: int | None = None,
    random_state: int | np.random.Generator = 0,
    *,
    branching: float | None = None,
) -> pd.DataFrame:
    """Draw a number of edges along a random order of the nodes; all edges are equally likely.

    Parameters
    ----------
    n_nodes : int
    n_edges : int, optional
        At most ``n_nodes * (n_nodes - 1) / 2``.
    random_state : int or Generator
    branching : float, optional
        Edges per node, instead of ``n_edges``: ``n_nodes * branching`` edges, or as many as possible.

    Notes
    -----
    Without ``n_edges`` and ``branching``, the branching factor is a random whole number from 1 to ``n_nodes``, all
    equally likely, as in the paper's appendix: "a randomly sampled branching factor up to the number of nodes", edges
    being added "until either the branching factor was met or no more edges can be added". A factor of
    ``(n_nodes - 1) / 2`` or more gives a complete graph, so in about half of the paper's graphs every node is a cause
    of all later ones.

    Examples
    --------
    >>> int(random_dag(5, 7, random_state=0).to_numpy().sum())
    7
    >>> int(random_dag(10, branching=2, random_state=0).to_numpy().sum())
    20
    """
    check_integer("n_nodes", n_nodes)
    most = n_nodes * (n_nodes - 1) // 2
    rng = np.random.default_rng(random_state)
    if n_edges is None:
        if branching is None:
            branching = int(rng.integers(1, n_nodes, endpoint=True))
        check_number("branching", branching, least=0)
        n_edges = min(round(n_nodes * branching), most)
    elif branching is not None:
        raise ValueError(f"n_edges={n_edges} and branching={branching} both set the number of edges; pass one of them")
    check_integer("n_edges", n_edges, least=0)
    if n_edges > most:
        raise ValueError(f"n_edges={n_edges} is too large: {n_nodes} nodes have at most {most} edges without a cycle")
    return _along(rng.permutation(n_nodes), rng.choice(most, n_edges, replace=False))


def erdos_renyi_dag(
    n_nodes: int,
    probability: float | None = None,
    random_state: int | np.random.Generator = 0,
    *,
    expected_edges: float | None = None,
) -> pd.DataFrame:
    """Draw every edge along a random order of the nodes independently, with the same probability.

    Parameters
    ----------
    n_nodes : int
    probability : float, optional
        Probability of an edge between two nodes, from 0 to 1.
    random_state : int or Generator
    expected_edges : float, optional
        Mean number of edges, instead of the probability; ``2 * n_nodes`` gives "ER2" graphs.

    Examples
    --------
    >>> erdos_renyi_dag(20, expected_edges=40, random_state=0).shape
    (20, 20)
    """
    check_integer("n_nodes", n_nodes)
    most = n_nodes * (n_nodes - 1) // 2
    if (probability is None) == (expected_edges is None):
        raise ValueError(f"probability={probability} and expected_edges={expected_edges}: pass exactly one of them")
    if expected_edges is not None:
        check_number("expected_edges", expected_edges, least=0)
        if expected_edges > most:
            raise ValueError(f"expected_edges={expected_edges} is too large: {n_nodes} nodes have at most {most} edges")
        probability = expected_edges / max(most, 1)
    if probability not in (0, 1):
        check_fraction("probability", probability)
    rng = np.random.default_rng(random_state)
    return _along(rng.permutation(n_nodes), rng.random(most) < float(probability))  # type: ignore[arg-type]


def scale_free_dag(n_nodes: int, edges_per_node: int = 2, random_state: int | np.random.Generator = 0) -> pd.DataFrame:
    """Draw a graph with a few hubs (Barabási and Albert): most nodes have few effects, and some have very many.

    Parameters
    ----------
    n_nodes : int
        More than ``edges_per_node``.
    edges_per_node : int
        Number of causes of each new node, drawn in proportion to the edges that they already have.
    random_state : int or Generator

    Examples
    --------
    >>> dag = scale_free_dag(100, 2, random_state=0)
    >>> int(dag.to_numpy().sum()), bool(dag.sum(axis=1).max() > 10)
    (196, True)
    """
    import networkx as nx

    check_integer("n_nodes", n_nodes)
    check_integer("edges_per_node", edges_per_node)
    if edges_per_node >= n_nodes:
        raise ValueError(f"edges_per_node={edges_per_node} must be less than n_nodes={n_nodes}")
    rng = np.random.default_rng(random_state)
    edges = np.array(nx.barabasi_albert_graph(n_nodes, edges_per_node, seed=rng).edges)
    new_number = rng.permutation(n_nodes)
    values = np.zeros((n_nodes, n_nodes), np.int64)
    values[new_number[edges.min(axis=1)], new_number[edges.max(axis=1)]] = (
        1  # nodes are numbered in the order in which they were added
    )
    return _named(values)


def weighted_dag(
    dag: pd.DataFrame, low: float = 0.5, high: float = 2.0, random_state: int | np.random.Generator = 0
) -> pd.DataFrame:
    """Draw a weight for every edge: its size is uniform between two bounds, its sign is random.

    Parameters
    ----------
    dag : DataFrame
        A graph; entries that are not 0 are edges.
    low, high : float
        Bounds of the size, ``0 < low <= high``.
    random_state : int or Generator

    Examples
    --------
    >>> weights = weighted_dag(example_dag(), random_state=0)
    >>> sizes = weights.abs().to_numpy()
    >>> float(sizes.max()) <= 2, float(sizes[sizes > 0].min()) >= 0.5
    (True, True)
    """
    check_number("low", low, above=0)
    check_number("high", high, least=low)
    edges = edge_weights(dag) != 0
    rng = np.random.default_rng(random_state)
    signs = rng.choice([-1.0, 1.0], edges.shape)
    return pd.DataFrame(edges * signs * rng.uniform(low, high, edges.shape), index=dag.index, columns=dag.columns)


def edge_weights(dag: pd.DataFrame) -> NDArray[np.float64]:
    """Return the weights as an array, after checking that the DataFrame is a directed acyclic graph."""
    if not isinstance(dag, pd.DataFrame):
        raise TypeError(f"the graph must be a DataFrame with dag.loc[cause, effect], got {type(dag).__name__}")
    if list(dag.index) != list(dag.columns) or not dag.columns.is_unique:
        raise ValueError(
            "the index and the columns of the graph must have the same unique names in the same order; "
            f"the index is {list(dag.index)}, the columns are {list(dag.columns)}"
        )
    weights = dag.to_numpy(np.float64)
    if not np.isfinite(weights).all():
        raise ValueError("the graph has weights that are not finite; use 0 for no edge")
    cycle = find_cycle(weights != 0)
    if cycle is not None:
        raise ValueError(f"the edges form a cycle: {' -> '.join(str(dag.columns[k]) for k in cycle)}")
    return weights


def _along(order: NDArray[np.intp], chosen: NDArray[Any]) -> pd.DataFrame:
    """Return the graph of the chosen edges, among all from earlier to later nodes of an order."""
    earlier, later = np.triu_indices(len(order), k=1)
    values = np.zeros((len(order), len(order)), np.int64)
    values[order[earlier[chosen]], order[later[chosen]]] = 1
    return _named(values)


def _named(values: NDArray[np.int64]) -> pd.DataFrame:
    names = [f"X{i}" for i in range(len(values))]
    return pd.DataFrame(values, index=names, columns=names)
