"""Whether the arrows of a graph merely follow the scale or the predictability of the columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from castlereg.data.table import Moments
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


_TELLING = 0.8  # a remark is made if more than this share of the paths, or less than the rest of it, follow an order
_MOST_COLUMNS = 150  # a regression for each, where some are sums of others


@dataclass(frozen=True)
class ColumnTraits:
    """Variance and predictability of the nodes of a graph.

    Parameters
    ----------
    variance : tuple of float
        Of each node, in the units of the table; NaN for nodes that are not numeric.
    explained : tuple of float
        R², the share of each node's variance that a linear regression on the others explains; NaN as above.
    """

    variance: tuple[float, ...]
    explained: tuple[float, ...]

    @classmethod
    def of(cls, values: NDArray[np.float64], is_number: NDArray[np.bool_]) -> ColumnTraits | None:
        """Measure the numeric ones of the columns, shape (rows, nodes); None when there are too many.

        Examples
        --------
        >>> import numpy as np
        >>> values = np.array([[0.0, 0.0, 7.0], [1.0, 2.0, 9.0], [2.0, 4.1, 8.0]])
        >>> traits = ColumnTraits.of(values, np.array([True, True, False]))
        >>> np.round(traits.variance, 2)
        array([0.67, 2.8 ,  nan])
        """
        if is_number.sum() > _MOST_COLUMNS:
            return None
        numbers = values[:, is_number]
        variance, explained = np.full((2, len(is_number)), np.nan)
        if is_number.any():
            size = np.nanmax(np.abs(numbers), axis=0)
            scaled = numbers / np.where(size > 0, size, 1.0)  # squares of very large numbers would not be numbers
            with np.errstate(over="ignore"):
                variance[is_number] = column_variances(scaled) * size * size
            explained[is_number] = explained_by_the_others(scaled)
        return cls(tuple(map(float, variance)), tuple(map(float, explained)))

    @classmethod
    def of_blocks(
        cls, blocks: Callable[[], Iterable[NDArray[np.float64]]], is_number: NDArray[np.bool_]
    ) -> ColumnTraits | None:
        """Measure columns of a long table, given as a function that iterates over its blocks; see :meth:`of`.

        Examples
        --------
        >>> import numpy as np
        >>> values = np.array([[0.0, 0.0], [1.0, 2.0], [2.0, 4.1], [3.0, 5.0]])
        >>> whole = ColumnTraits.of(values, np.array([True, True]))
        >>> parts = ColumnTraits.of_blocks(lambda: [values[:1], values[1:]], np.array([True, True]))
        >>> np.allclose(parts.variance, whole.variance), np.allclose(parts.explained, whole.explained)
        (True, True)
        """
        if is_number.sum() > _MOST_COLUMNS:
            return None
        variance, explained = np.full((2, len(is_number)), np.nan)
        width = int(is_number.sum())
        if width == 0:
            return cls(tuple(variance), tuple(explained))
        lowest, highest = np.full(width, np.inf), np.full(width, -np.inf)
        for block in blocks():
            lowest = np.fmin(lowest, np.fmin.reduce(block[:, is_number], axis=0))
            highest = np.fmax(highest, np.fmax.reduce(block[:, is_number], axis=0))
        size, varies = np.maximum(np.abs(lowest), np.abs(highest)), lowest < highest
        size = np.where(size > 0, size, 1.0)
        scaled = ((block[:, is_number] / size) for block in blocks())
        moments = Moments.joined([Moments.of(block, np.ones(len(block)), True) for block in scaled])
        products = np.zeros((width, width))
        for block in blocks():
            centred = np.nan_to_num(block[:, is_number] / size - moments.mean)
            products += np.einsum("ij,ik->jk", centred, centred)  # too small for threads, which wait for each other
        with np.errstate(over="ignore"):
            variance[is_number] = np.where(varies, moments.variance, 0.0) * size * size
        lengths = np.where(varies, np.sqrt(np.diag(products)), 1.0)
        squares, directions = np.linalg.eigh(products / np.outer(lengths, lengths))
        factor = np.sqrt(np.maximum(squares, 0.0))[:, None] * directions.T
        explained[is_number] = explained_by_factor(factor, varies)
        return cls(tuple(map(float, variance)), tuple(map(float, explained)))

    def sortability(self, weights: NDArray[np.float64]) -> dict[str, float]:
        """Return the varsortability and the R²-sortability of a graph, over paths between numeric nodes."""
        numbers = ~np.isnan(self.variance)
        edges = weights[np.ix_(numbers, numbers)] != 0
        return {
            "varsortability": share_of_paths_upwards(np.array(self.variance)[numbers], edges),
            "r2_sortability": share_of_paths_upwards(np.array(self.explained)[numbers], edges),
        }

    def remarks(self, weights: NDArray[np.float64]) -> list[str]:
        """Say whether the arrows merely follow the scale or the predictability of the columns."""
        reasons = (
            ("variance", "columns were standardized, so it had no influence, but it may have a cause"),
            ("predictability", "this alone may have set the arrows, so trust them less"),
        )
        lines = []
        for share, (trait, reason) in zip(self.sortability(weights).values(), reasons, strict=True):
            if not np.isnan(share) and not 1 - _TELLING < share < _TELLING:
                order = "higher" if share > 0.5 else "lower"
                lines.append(f"{max(share, 1 - share):.0%} of the paths lead to columns of {order} {trait}: {reason}.")
        return lines

    def to_dict(self) -> dict[str, Any]:
        """Return plain lists, None for NaN."""
        return {
            name: [None if np.isnan(v) else v for v in values]
            for name, values in (("variance", self.variance), ("explained", self.explained))
        }

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> ColumnTraits:
        """Undo :meth:`to_dict`."""
        variance, explained = (
            tuple(np.nan if v is None else float(v) for v in content[name]) for name in ("variance", "explained")
        )
        return cls(variance, explained)
