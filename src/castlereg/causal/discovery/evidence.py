"""The probability of every edge, from the loss of the best graph without it or with it reversed.

The loss is a difference of log density over all rows; in units of its standard error, it becomes a probability. The
constants come from logistic regressions on random graphs of seven kinds, see docs/decisions/0024-discovery.md.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from castlereg.causal.discovery.climb import Climb, Edges, causes_of, paths
from castlereg.causal.discovery.judge import Judge

# A direction is right with probability expit(z) if the reversed edge loses z standard errors.
_EDGE, _EDGE_SLOPE, _MOST_ERRORS = 1.1, 0.77, 5.0  # for an edge, from the loss of the graph without it
_NO_EDGE, _NO_EDGE_SLOPE, _LEAST_GAIN = -1.6, 0.2, -10.0  # for no edge, from the gain of the score with it
_NOT_NEAR = 0.005  # probability of an edge for a pair that was not examined


def joined(climb: Climb, judge: Judge, best: Edges, bar: Any) -> NDArray[np.float64]:
    """Return the probability of an edge between each pair of columns, in either direction."""
    gains = climb.gains(best)
    gain = np.maximum(gains, gains.T)
    near = np.isfinite(gain)
    probability = expit(_NO_EDGE + _NO_EDGE_SLOPE * np.clip(np.where(near, gain, 0.0), _LEAST_GAIN, 0.0))
    probability = np.where(near, probability, np.where(climb.allowed | climb.allowed.T, _NOT_NEAR, 0.0))
    for cause, effect in np.argwhere(best).tolist():
        bar.update()
        if climb.required[cause, effect]:
            of_edge = 1.0
        else:
            loss = in_errors(climb, judge, best, without(climb, best, cause, effect))
            of_edge = float(expit(_EDGE + _EDGE_SLOPE * min(loss, _MOST_ERRORS)))
        probability[[cause, effect], [effect, cause]] = of_edge
    np.fill_diagonal(probability, 0)
    return np.asarray(probability)


def directed(climb: Climb, judge: Judge, best: Edges, bar: Any) -> NDArray[np.float64]:
    """Return the probability of the direction of each edge, and its complement for the reverse; NaN without an edge."""
    probability = np.full(best.shape, np.nan)
    for cause, effect in np.argwhere(best).tolist():
        bar.update()
        if climb.required[cause, effect] or not climb.allowed[effect, cause]:
            as_it_is = 1.0
        else:
            as_it_is = float(expit(in_errors(climb, judge, best, turned(climb, best, cause, effect))))
        probability[cause, effect], probability[effect, cause] = as_it_is, 1 - as_it_is
    return probability


def in_errors(climb: Climb, judge: Judge, best: Edges, other: Edges) -> float:
    """Return the loss of a graph against the best one in standard errors, each of at least one nat."""
    by_row = np.zeros(judge.n_rows)
    for k in np.flatnonzero((best != other).any(axis=0)).tolist():
        by_row += judge.by_row(k, causes_of(best, k)) - judge.by_row(k, causes_of(other, k))
    error = float(by_row.std() * np.sqrt(judge.n_rows))
    return (climb.score(best) - climb.score(other)) / max(error, 1.0)


def without(climb: Climb, best: Edges, cause: int, effect: int) -> Edges:
    """Return the best graph without an edge between two columns that a climb from the best graph finds."""
    start, free = best.copy(), np.ones_like(best)
    for array in (start, free):
        array[[cause, effect], [effect, cause]] = False
    return climb.uphill(start, free)


def turned(climb: Climb, best: Edges, cause: int, effect: int) -> Edges:
    """Return the best graph with an edge reversed that a climb from the best graph finds."""
    start, free = best.copy(), np.ones_like(best)
    for array in (start, free):
        array[[cause, effect], [effect, cause]] = False
    # Other paths would close a cycle: remove their last edges, or reverse them where possible.
    before = paths(start)[cause]
    last = [k for k in np.flatnonzero(start[:, effect]).tolist() if before[k] and not climb.required[k, effect]]
    start[last, effect] = False
    start[effect, cause] = True
    for k in last:
        if climb.allowed[effect, k] and not paths(start)[k, effect]:
            start[effect, k] = True
    return climb.uphill(start, free)
