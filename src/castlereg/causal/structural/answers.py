"""Averages over rows, with error bars for the variation of the rows and of the graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t

from castlereg.causal.structural.fitting import Draw
from castlereg.causal.structural.system import System

Array = NDArray[np.float64]
Outcomes = Callable[[System, NDArray[np.int64]], Array]  # outcomes of rows under a system, (questions, rows)

_ROWS_OF_DRAWS = 2000  # number of rows on which draws are compared with the main equations
_BISECTIONS = 50


class Answer(NamedTuple):
    """Averages with error bars, each of shape (questions,)."""

    estimate: Array  # mean over the graphs
    low: Array
    high: Array
    within: Array  # standard deviation from the rows, given a graph
    between: Array  # standard deviation between graphs


def averaged(
    main: System, draws: Sequence[Draw], outcomes: Outcomes, rows: NDArray[np.int64], weight: Array, coverage: float
) -> tuple[Answer, Array]:
    """Average the outcomes of rows; also return those under the main equations, shape (questions, rows).

    The spread within a graph is the deviation of averages of resampled rows, with equations fitted to these, from the
    average of all rows, with equations fitted to all. The spread between graphs is that of the latter averages. Low and
    high are quantiles of a mixture of t distributions, one around the average of each graph. Without draws there are
    no error bars.

    For long tables, the equations of the draws are evaluated for some rows only. The difference from the main equations
    on these rows is added to the average of the main equations over all rows.
    """
    of_main = outcomes(main, rows)
    share = weight[rows] / weight[rows].sum()
    estimate = of_main @ share
    if not draws:
        nothing = np.full(len(estimate), np.nan)
        return Answer(estimate, nothing, nothing, nothing, nothing), of_main
    at = np.arange(len(rows))
    if len(rows) > _ROWS_OF_DRAWS:
        at = np.sort(np.random.default_rng(0).permutation(len(rows))[:_ROWS_OF_DRAWS])
    some = rows[at]
    of_some = of_main if len(at) == len(rows) else outcomes(main, some)  # with the same noise as for the draws
    by_graph: dict[int, Array] = {id(main): of_some}
    centers: list[Array] = []
    apart: list[Array] = []
    for draw in draws:
        if id(draw.whole) not in by_graph:
            by_graph[id(draw.whole)] = outcomes(draw.whole, some)
        of_graph = by_graph[id(draw.whole)]
        centers.append(estimate + (of_graph - of_some) @ _shares(share[at]))
        drawn = draw.weight[rows]
        if not drawn[at].any():
            continue
        differences = outcomes(draw.resampled, some) - of_some
        apart.append(of_main @ _shares(drawn) + differences @ _shares(drawn[at]) - centers[-1])
    within = np.sqrt(np.mean(np.square(apart), axis=0)) if apart else np.full(len(estimate), np.nan)
    of_graphs = np.array(centers)
    low, high = (
        _mixture_quantile(of_graphs, within, tail, len(apart)) for tail in ((1 - coverage) / 2, (1 + coverage) / 2)
    )
    differences = of_graphs - estimate  # exactly zero if there is only one graph
    return Answer(estimate + differences.mean(axis=0), low, high, within, differences.std(axis=0)), of_main


def _shares(weight: Array) -> Array:
    return weight / weight.sum()


def _mixture_quantile(centers: Array, scale: Array, share: float, freedom: int) -> Array:
    """Return a quantile of the mixture of t distributions around centers, shape (draws, questions)."""
    if np.ptp(centers, axis=0).max(initial=0.0) == 0:
        return np.asarray(centers[0] + t.ppf(share, freedom) * scale)
    width = np.maximum(scale, 1e-9 * (np.abs(centers).max(axis=0) + 1e-300))
    low, high = centers.min(axis=0) - 50 * width, centers.max(axis=0) + 50 * width
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        below = t.cdf((middle - centers) / width, freedom).mean(axis=0) < share
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return np.asarray((low + high) / 2)
