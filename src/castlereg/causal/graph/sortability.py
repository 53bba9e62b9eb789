"""Whether the arrows of a graph merely follow the scale or the predictability of the columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from castlereg.acyclicity.cut import find_cycle
from castlereg.table.table import Moments


def square_matrix(name: str, matrix: ArrayLike) -> NDArray[np.float64]:
    """Return a square matrix without NaN, which would otherwise count as an edge."""
    values = np.asarray(matrix, dtype=np.float64)
    if values.ndim != 2 or values.shape[0] != values.shape[1]:
        raise ValueError(f"{name} must be a square matrix, got shape {values.shape}")
    if np.isnan(values).any():
        raise ValueError(f"{name} contains NaN at {tuple(np.argwhere(np.isnan(values))[0].tolist())}")
    return values


def edge_matrix(name: str, matrix: ArrayLike, *, acyclic: bool = True) -> NDArray[np.bool_]:
    """Return which entries are edges; raise for an edge from a node to itself and, by default, for any cycle."""
    present = square_matrix(name, matrix) != 0
    if np.diag(present).any():
        raise ValueError(f"{name} has a cycle: an edge from node {int(np.diag(present).argmax())} to itself")
    cycle = find_cycle(present) if acyclic else None
    if cycle is not None:
        raise ValueError(f"{name} has a cycle: {' -> '.join(map(str, cycle))}")
    return present


Array = NDArray[np.float64]

_TELLING = 0.8  # remark on an order that more than this share of the paths follow, or less than 1 minus this share
_MOST_COLUMNS = 150  # each needs a separate regression if some are sums of others


def varsortability(values: ArrayLike, graph: ArrayLike) -> float:
    """Return the share of directed paths that lead to a column with more variance than the one where they start.

    This is the measure of Reisach, Seiler and Weichwald (2021). Noise adds up along the arrows of many simulated
    graphs, so the order of the variances reveals the arrows; the units of real columns are arbitrary.

    Parameters
    ----------
    values : array of shape (rows, nodes)
        The data. Missing values are NaN and are ignored.
    graph : array of shape (nodes, nodes)
        An acyclic graph: ``graph[j, k]`` is not zero for an edge j -> k.

    Returns
    -------
    float
        Near 1, sorting the columns by variance gives the order of the graph: a method that finds these arrows may have
        read them off the scale, and would lose them if the columns were scaled differently. Near 0 the same holds for
        the reverse order. Near 0.5 the variance carries no information about the arrows. NaN for a graph without
        edges.

    Notes
    -----
    For every length, each pair of nodes that a path of this length joins counts once; equal variances count half.
    Variances that differ by less than a billionth are equal: columns scaled to variance 1 differ by rounding errors.

    Examples
    --------
    >>> import numpy as np
    >>> values = np.array([[0.0, 0.0, 0.0], [1.0, 2.0, 1.5]])
    >>> round(varsortability(values, [[0, 1, 0], [0, 0, 1], [0, 0, 0]]), 2)
    0.67
    """
    columns, edges = _columns_and_edges(values, graph)
    return _share_of_paths_upwards(_variance_and_explained(lambda: [columns])[0], edges)


def r2_sortability(values: ArrayLike, graph: ArrayLike) -> float:
    """Return the share of directed paths whose end is better explained by all other columns than their start.

    This is the measure of Reisach, Tami, Seiler, Chambaz and Weichwald (2023). How well a column is explained is R²,
    the share of its variance that a linear regression on all other columns explains. Unlike the variance it does not
    depend on the scale, so standardizing the data does not hide the order.

    Parameters
    ----------
    values : array of shape (rows, nodes)
        As for :func:`varsortability`, but missing values are filled with the mean of their column. There should be many
        more rows than columns; with few rows, a regression explains almost any column.
    graph : array of shape (nodes, nodes)

    Returns
    -------
    float
        As for :func:`varsortability`, but for the order by R². R² of a constant column is 0.

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
    return _share_of_paths_upwards(_variance_and_explained(lambda: [columns])[1], edges)


def share_of_arrows_upwards(criterion: ArrayLike, graph: ArrayLike) -> float:
    """Return the share of edges whose effect has a larger value of some criterion than its cause.

    Parameters
    ----------
    criterion : array of shape (nodes,)
        A number for each node, such as the variance, the number of levels or the position in the table.
    graph : array of shape (nodes, nodes)
        As for :func:`varsortability`.

    Returns
    -------
    float
        Near 1 all arrows point to larger values, near 0 to smaller ones: the criterion could have determined them. Near
        0.5 they are unrelated to it. Equal values count half. NaN for a graph without edges.

    Examples
    --------
    >>> share_of_arrows_upwards([1.0, 2.0, 2.0], [[0, 1, 1], [0, 0, 1], [0, 0, 0]])
    0.8333333333333334
    """
    edges = edge_matrix("graph", graph)
    levels = np.asarray(criterion, dtype=np.float64)
    if levels.shape != edges.shape[:1]:
        raise ValueError(
            f"criterion has shape {levels.shape}, but graph has {len(edges)} nodes; pass one number per node"
        )
    if np.isnan(levels).any():
        raise ValueError(f"criterion is NaN for node {int(np.isnan(levels).argmax())}")
    return float(_upwards(levels)[edges].mean()) if edges.any() else np.nan


@dataclass(frozen=True)
class ColumnTraits:
    """Variance and predictability of the nodes of a graph.

    Parameters
    ----------
    variance : tuple of float
        Variance of each node, in the units of the table; NaN for nodes that are not numeric.
    explained : tuple of float
        R², the share of each node's variance that a linear regression on the others explains; NaN for nodes that
        are not numeric.
    """

    variance: tuple[float, ...]
    explained: tuple[float, ...]

    @classmethod
    def of(cls, values: Array, is_number: NDArray[np.bool_]) -> ColumnTraits | None:
        """Measure the numeric columns of an array of shape (rows, nodes); None if there are too many.

        Examples
        --------
        >>> import numpy as np
        >>> values = np.array([[0.0, 0.0, 7.0], [1.0, 2.0, 9.0], [2.0, 4.1, 8.0]])
        >>> traits = ColumnTraits.of(values, np.array([True, True, False]))
        >>> np.round(traits.variance, 2)
        array([0.67, 2.8 ,  nan])
        """
        return cls.of_blocks(lambda: [values], is_number)

    @classmethod
    def of_blocks(cls, blocks: Callable[[], Iterable[Array]], is_number: NDArray[np.bool_]) -> ColumnTraits | None:
        """Measure the columns of a long table; ``blocks`` returns an iterator over its blocks. See :meth:`of`."""
        if is_number.sum() > _MOST_COLUMNS:
            return None
        traits = np.full((2, len(is_number)), np.nan)
        if is_number.any():
            traits[:, is_number] = _variance_and_explained(lambda: (block[:, is_number] for block in blocks()))
        variance, explained = traits.tolist()
        return cls(tuple(variance), tuple(explained))

    def sortability(self, weights: Array) -> dict[str, float]:
        """Return the varsortability and the R²-sortability of a graph, over paths between numeric nodes."""
        numbers = ~np.isnan(self.variance)
        edges = weights[np.ix_(numbers, numbers)] != 0
        return {
            "varsortability": _share_of_paths_upwards(np.array(self.variance)[numbers], edges),
            "r2_sortability": _share_of_paths_upwards(np.array(self.explained)[numbers], edges),
        }

    def remarks(self, weights: Array) -> list[str]:
        """Return remarks if the arrows merely follow the scale or the predictability of the columns."""
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


def _share_of_paths_upwards(criterion: Array, edges: NDArray[np.bool_]) -> float:
    """Return the share of directed paths whose end has a larger value of some criterion; see :func:`varsortability`."""
    upwards = _upwards(criterion)
    n_upwards, n_pairs = 0.0, 0
    joined = edges
    for _ in range(len(edges) - 1):  # the longest path without cycles goes through all nodes
        n_upwards += float(upwards[joined].sum())
        n_pairs += int(joined.sum())
        joined = joined @ edges
    return n_upwards / n_pairs if n_pairs else np.nan


def _upwards(criterion: Array) -> Array:
    """Return 1 where the node of the column has the larger value, 0 where that of the row has, 0.5 where equal."""
    equal = np.isclose(criterion[:, None], criterion, rtol=1e-9, atol=0)
    return np.where(equal, 0.5, criterion[:, None] < criterion)


def _variance_and_explained(blocks: Callable[[], Iterable[Array]]) -> tuple[Array, Array]:
    """Return the variance of each column, and its R² given the others, with missing values replaced by the mean."""
    extremes = np.array([(np.fmin.reduce(block), np.fmax.reduce(block)) for block in blocks()])
    lowest, highest = np.fmin.reduce(extremes[:, 0]), np.fmax.reduce(extremes[:, 1])
    varies = lowest < highest  # rounding errors around a constant such as 0.1 are not variance
    size = np.maximum(np.abs(lowest), np.abs(highest))
    size = np.where(size > 0, size, 1.0)  # squares of very large numbers would overflow
    moments = Moments.joined([Moments.of(block / size, np.ones(len(block)), True) for block in blocks()])
    with np.errstate(over="ignore"):
        variance = np.where(varies, moments.variance, 0.0) * size * size
    factor = np.zeros((0, len(size)))  # few rows, but columns of the same lengths and angles as the centred ones
    for block in blocks():
        factor = np.linalg.qr(np.vstack([factor, np.nan_to_num(block / size - moments.mean)])).R
    explained = np.zeros(len(size))
    if varies.any():
        explained[varies] = _explained(factor[:, varies] / np.linalg.norm(factor[:, varies], axis=0))
    return variance, explained


def _explained(factor: Array) -> Array:
    """Return R² of each column, from columns of length 1 with the same angles."""
    _, sizes, directions = np.linalg.svd(factor, full_matrices=False)
    if len(sizes) == factor.shape[1] and sizes[-1] > 1e-5 * sizes[0]:
        explained = 1 - 1 / ((directions.T / sizes) ** 2).sum(axis=1)  # the diagonal of the inverse correlations
    else:  # some columns are sums of others: the correlations have no inverse, so use the slower least squares
        explained = np.zeros(factor.shape[1])
        for k in range(factor.shape[1]):
            others = np.delete(factor, k, axis=1)
            explained[k] = np.linalg.norm(others @ np.linalg.lstsq(others, factor[:, k])[0]) ** 2
    return np.where(explained < 1e-12, 0.0, explained)  # smaller values are rounding errors


def _columns_and_edges(values: ArrayLike, graph: ArrayLike) -> tuple[Array, NDArray[np.bool_]]:
    columns, edges = np.asarray(values, dtype=np.float64), edge_matrix("graph", graph)
    if columns.ndim != 2 or columns.shape[1] != len(edges):
        raise ValueError(
            f"values has shape {columns.shape}, but graph has {len(edges)} nodes; pass one column per node"
        )
    if np.isinf(columns).any():
        raise ValueError(f"values contains infinity in column {int(np.isinf(columns).any(axis=0).argmax())}")
    unknown = np.isnan(columns).all(axis=0)
    if unknown.any():
        raise ValueError(f"values has only missing values in column {int(unknown.argmax())}")
    return columns, edges
