"""From columns to a graph: several starting graphs, one judge, and probabilities of the edges."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from tqdm.auto import tqdm

from castlereg.causal.discovery.climb import Climb, Edges
from castlereg.causal.discovery.columns import Column
from castlereg.causal.discovery.evidence import directed, joined
from castlereg.causal.discovery.judge import Judge, LinearJudge
from castlereg.causal.discovery.orders import linear_order

MOST_ROWS = 2000  # enough to distinguish graphs; more would only take longer
_PENALTY = 0.75  # penalty of an edge, times the logarithm of the number of rows
_NEIGHBOURS = 10  # candidates for edges of each column, by marginal dependence and by partial correlation


class Discovery(NamedTuple):
    """An acyclic graph and the probabilities of its edges, arrays of shape (columns, columns) with causes in rows."""

    edges: Edges
    joined: NDArray[np.float64]  # probability of an edge between two columns, in either direction
    direction: NDArray[np.float64]  # probability that it points from row to column; NaN without an edge


def discover(
    columns: Sequence[Column],
    allowed: Edges | None = None,
    required: Edges | None = None,
    *,
    seed: int = 0,
    progress: bool = False,
    keep: bool = False,
) -> Discovery:
    """Find the graph under which left-out rows are most likely, and the probabilities of its edges.

    Parameters
    ----------
    columns : sequence of Column
        See :func:`castlereg.causal.discovery.columns.number`.
    allowed, required : array of bool, shape (columns, columns), optional
        Edges that are allowed, and edges that are required; by default all and none.
    seed : int
        Seed for the folds of the rows.
    progress : bool
        Show a progress bar.
    keep : bool
        Whether Ctrl-C ends the search with the best graph so far.

    Examples
    --------
    >>> import numpy as np
    >>> from castlereg.causal.discovery.columns import number
    >>> rng = np.random.default_rng(0)
    >>> cause = rng.normal(size=500)
    >>> found = discover([number(np.sin(2 * cause) + 0.3 * rng.normal(size=500)), number(cause)])
    >>> bool(found.edges[1, 0]), bool(found.direction[1, 0] > 0.9)
    (True, True)
    """
    n = len(columns)
    allowed = ~np.eye(n, dtype=bool) if allowed is None else allowed
    required = np.zeros((n, n), dtype=bool) if required is None else required
    with tqdm(desc="graph", unit=" graphs", leave=False, disable=not progress) as bar:
        climb = climber(columns, allowed, required, seed)
        edges = best_graph(climb, columns, bar, keep)
        judge = climb.judge
        assert isinstance(judge, Judge)
        return Discovery(edges, joined(climb, judge, edges, bar), directed(climb, judge, edges, bar))


def climber(columns: Sequence[Column], allowed: Edges, required: Edges, seed: int) -> Climb:
    """Prepare a search over the edges between columns that depend on each other."""
    judge = Judge(columns, seed)
    near = _strongest(judge.dependence()) | _strongest(_partial_correlations(_values(columns)))
    return Climb(judge, (allowed & near) | required, required, _PENALTY * float(np.log(judge.n_rows)))


def best_graph(climb: Climb, columns: Sequence[Column], bar: Any, keep: bool) -> Edges:
    """Climb from the empty graph, a linear order and the best linear graph, and perturb the best of the three."""
    linear = Climb(LinearJudge(columns), climb.allowed, climb.required, climb.penalty)
    starts = [
        climb.required,
        climb.in_order(linear_order(_values(columns))),
        linear.perturbed(linear.uphill(climb.required)),
    ]
    graphs = [climb.uphill(start) for start in starts]
    return climb.perturbed(max(graphs, key=climb.score), bar, keep)


def _values(columns: Sequence[Column]) -> NDArray[np.float64]:
    return np.stack([column.values for column in columns], axis=1)


def _strongest(weights: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return which pairs to examine: one of the two is among the strongest of the other."""
    strength = np.maximum(weights, weights.T)
    np.fill_diagonal(strength, -1)
    rank = np.argsort(np.argsort(-strength, axis=0, kind="stable"), axis=0)
    near = (rank < _NEIGHBOURS) & (strength >= 0)
    return near | near.T


def _partial_correlations(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return absolute correlations given all other columns: zero for pairs without an edge or a common effect."""
    covariance = np.atleast_2d(np.cov(values.T))
    precision = np.linalg.inv(covariance + 1e-6 * np.diag(np.maximum(np.diag(covariance), 1e-9)))
    scale = np.sqrt(np.diag(precision))
    return np.asarray(np.abs(precision / np.outer(scale, scale)))
