"""Whether the arrows of a graph merely follow the scale or the predictability of the columns."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from castlereg.graph.adjacency import edge_matrix


def varsortability(values: ArrayLike, graph: ArrayLike) -> float:
    """Return the share of directed paths that lead to a column with more variance than the one where they start.

    This is the measure of Reisach, Seiler and Weichwald (2021). Noise adds up along the arrows of many simulated
    graphs, so the order of the variances gives the arrows away; the units of real columns are arbitrary.

    Parameters
    ----------
    values : array of shape (rows, nodes)
        The data. Missing values are NaN and are left out of the variance.
    graph : array of shape (nodes, nodes)
        Without cycles: ``graph[j, k]`` is not zero for an edge j -> k.

    Returns
    -------
    float
        Near 1, sorting the columns by variance gives the order of the graph: a method that finds these arrows may have
        read them off the scale, and would lose them if the columns were scaled differently. Near 0 the same holds for
        the reverse order. Near 0.5 the variance says nothing about the arrows. NaN for a graph without edges.

    Notes
    -----
    For every length, each pair of nodes that a path of this length joins counts once; equal variances count half.
    Variances are equal within a billionth, since columns that were scaled to variance 1 differ by rounding.

    Examples
    --------
    >>> import numpy as np
    >>> values = np.array([[0.0, 0.0, 0.0], [1.0, 2.0, 1.5]])
    >>> round(varsortability(values, [[0, 1, 0], [0, 0, 1], [0, 0, 0]]), 2)
    0.67
    """
    columns, edges = _columns_and_edges(values, graph)
    return share_of_paths_upwards(column_variances(columns), edges)


def r2_sortability(values: ArrayLike, graph: ArrayLike) -> float:
    """Return the share of directed paths whose end is better explained by all other columns than their start.

    This is the measure of Reisach, Tami, Seiler, Chambaz and Weichwald (2023). How well a column is explained is R²,
    the share of its variance that a linear regression on all other columns explains. Unlike the variance it does not
    depend on the scale, so standardizing the data does not hide the order.

    Parameters
    ----------
    values : array of shape (rows, nodes)
        The data. Missing values are NaN and are filled with the mean of their column. There should be many more rows
        than columns; with few rows everything explains everything.
    graph : array of shape (nodes, nodes)
        Without cycles: ``graph[j, k]`` is not zero for an edge j -> k.

    Returns
    -------
    float
        As :func:`varsortability`, for the order by R².

    Notes
    -----
    Paths are counted as in :func:`varsortability`. R² of a constant column is 0.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> causes = rng.normal(size=(500, 2))
    >>> effect = causes.sum(axis=1) + rng.normal(size=500)
    >>> r2_sortability(np.column_stack([causes, effect]), [[0, 0, 1], [0, 0, 1], [0, 0, 0]])
    1.0
    """
    columns, edges = _columns_and_edges(values, graph)
    return share_of_paths_upwards(explained_by_the_others(columns), edges)


def share_of_arrows_upwards(criterion: ArrayLike, graph: ArrayLike) -> float:
    """Return the share of edges whose effect has a larger value of some criterion than its cause.

    Parameters
    ----------
    criterion : array of shape (nodes,)
        A number for each node, such as the variance, the number of levels or the position in the table.
    graph : array of shape (nodes, nodes)
        Without cycles: ``graph[j, k]`` is not zero for an edge j -> k.

    Returns
    -------
    float
        Near 1 all arrows point to larger values, near 0 to smaller ones: the criterion alone could have set them. Near
        0.5 they have nothing to do with it. Equal values count half. NaN for a graph without edges.

    Examples
    --------
    >>> share_of_arrows_upwards([1.0, 2.0, 2.0], [[0, 1, 1], [0, 0, 1], [0, 0, 0]])
    0.8333333333333334
    """
    edges = edge_matrix("graph", graph)
    levels = np.asarray(criterion, dtype=np.float64)
    if levels.shape != edges.shape[:1]:
        raise ValueError(f"criterion has shape {levels.shape}, and graph has {len(edges)} nodes")
    if np.isnan(levels).any():
        raise ValueError(f"criterion has NaN for node {int(np.isnan(levels).argmax())}")
    return float(_upwards(levels)[edges].mean()) if edges.any() else np.nan


def share_of_paths_upwards(criterion: NDArray[np.float64], edges: NDArray[np.bool_]) -> float:
    """Return the share of directed paths whose end has a larger value of some criterion; see :func:`varsortability`."""
    upwards = _upwards(criterion)
    n_upwards, n_pairs = 0.0, 0
    joined = edges
    for _ in range(len(edges) - 1):  # the longest path without cycles goes through all nodes
        n_upwards += float(upwards[joined].sum())
        n_pairs += int(joined.sum())
        joined = joined @ edges
    return n_upwards / n_pairs if n_pairs else np.nan


def _upwards(criterion: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return 1 where the column's node has the larger value, 0 where the row's has it, 0.5 where they are equal."""
    equal = np.isclose(criterion[:, None], criterion, rtol=1e-9, atol=0)
    return np.where(equal, 0.5, criterion[:, None] < criterion)


def column_variances(columns: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the variance of the known values of every column."""
    # Rounding errors around a constant such as 0.1 are not variance.
    return np.where(_varies(columns), np.nanvar(columns, axis=0), 0.0)


def explained_by_the_others(columns: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return R², the share of every column's variance that a linear regression on all others explains."""
    centred = np.nan_to_num(columns - np.nanmean(columns, axis=0))  # missing values are now at the mean
    varies = _varies(columns)
    unit = np.where(varies, centred / np.where(varies, np.linalg.norm(centred, axis=0), 1.0), 0.0)
    # The columns of this factor have the same lengths and angles, with as few rows as there are nodes.
    return explained_by_factor(np.linalg.qr(unit).R, varies)


def explained_by_factor(factor: NDArray[np.float64], varies: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return R² of columns from a factor whose columns have length one and the same angles."""
    explained = np.zeros(len(varies))
    factor = factor[:, varies]
    sizes = np.linalg.svd(factor, compute_uv=False)
    if len(sizes) == factor.shape[1] > 0 and sizes[-1] > 1e-5 * sizes[0]:
        explained[varies] = 1 - 1 / np.diag(np.linalg.inv(factor.T @ factor))
    else:  # some columns are sums of others: the correlations have no inverse, and least squares takes its time
        for k, node in enumerate(np.flatnonzero(varies)):
            others = np.delete(factor, k, axis=1)
            explained[node] = np.linalg.norm(others @ np.linalg.lstsq(others, factor[:, k])[0]) ** 2
    return np.where(explained < 1e-12, 0.0, explained)  # smaller values are rounding errors


def _varies(columns: NDArray[np.float64]) -> NDArray[np.bool_]:
    return np.nanmin(columns, axis=0) < np.nanmax(columns, axis=0)


def _columns_and_edges(values: ArrayLike, graph: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    columns, edges = np.asarray(values, dtype=np.float64), edge_matrix("graph", graph)
    if columns.ndim != 2 or columns.shape[1] != len(edges):
        raise ValueError(f"values has shape {columns.shape}, and graph has {len(edges)} nodes; they need a column each")
    if np.isinf(columns).any():
        raise ValueError(f"values has infinity in column {int(np.isinf(columns).any(axis=0).argmax())}")
    unknown = np.isnan(columns).all(axis=0)
    if unknown.any():
        raise ValueError(f"values has no known value in column {int(unknown.argmax())}")
    return columns, edges
