"""Find the graph that rows support, for any kind of data: one judge, several starts, and edge probabilities.

The judge scores a column given others on left-out rows; a search climbs to the graph with the best score. The losses of
other graphs, without an edge or with it reversed, become probabilities. Columns and rows are sorted by their values
first, so that the graph does not depend on their order, bit for bit.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from tqdm.auto import tqdm

from castlereg.causal.graph import CausalGraph
from castlereg.causal.judge import Column, Judge, LinearJudge
from castlereg.causal.variables import Variables
from castlereg.layout import EdgeRules
from castlereg.table.encoding import Preprocessing, Rows

Array = NDArray[np.float64]
Edges = NDArray[np.bool_]  # (columns, columns), from cause to effect

MOST_ROWS = 2000  # enough to distinguish graphs; more would only take longer
_PENALTY = 0.75  # penalty of an edge, times the logarithm of the number of rows
_NEIGHBOURS = 10  # candidates for edges of each column, by marginal dependence and by partial correlation
_MOST_CAUSES = 8
_ROUNDS = 3  # maximum number of rounds of perturbations
_MOST_SCORES = 20_000  # scores of columns given others; after this many, perturbations stop

# Constants of probabilities come from logistic regressions on random graphs of seven kinds, see
# docs/decisions/0024-discovery.md. A direction is right with probability expit(z) if the reversed edge loses z standard
# errors.
_EDGE, _EDGE_SLOPE, _MOST_ERRORS = 1.1, 0.77, 5.0  # for an edge, from the loss of the graph without it
_NO_EDGE, _NO_EDGE_SLOPE, _LEAST_GAIN = -1.6, 0.2, -10.0  # for no edge, from the gain of the score with it
_NOT_NEAR = 0.005  # probability of an edge for a pair that was not examined


class Discovery(NamedTuple):
    """An acyclic graph and the probabilities of its edges, arrays of shape (columns, columns) with causes in rows."""

    edges: Edges
    joined: Array  # probability of an edge between two columns, in either direction
    direction: Array  # probability that it points from row to column; NaN without an edge
    strength: Array  # from 0 to 1: how much less likely the effect is without the cause


def discover_graph(
    preprocessing: Preprocessing,
    rows: Rows,
    *,
    edges: EdgeRules | None = None,
    seed: int = 0,
    progress: bool = False,
    keep: bool = False,
) -> CausalGraph:
    """Find the causal graph of the columns and targets of a table.

    Parameters
    ----------
    preprocessing, rows
        Rows that are coded by the preprocessing, in any order; at most 2,000 of them are used.
    edges : EdgeRules, optional
        Edges that are allowed or required. Constant columns have no edges, and there are none between targets.
    seed : int
        Seed for the rows that are used and for their folds.
    progress : bool
    keep : bool
        Whether Ctrl-C ends the search with the best graph so far.
    """
    table, n_targets = Variables.of_rows(preprocessing, rows), len(preprocessing.targets)
    n = len(table.columns)
    allowed = ~np.eye(n, dtype=bool)
    allowed[n - n_targets :, n - n_targets :] = False
    constant = [j for j, column in enumerate(preprocessing.schema) if column.constant]
    allowed[constant, :] = allowed[:, constant] = False
    required = None
    if edges is not None:
        allowed, required = allowed & edges.allowed, edges.required
    found, names = discover(table, allowed, required, seed=seed, progress=progress, keep=keep), tuple(table.names)
    return CausalGraph(names, names[n - n_targets :], found.strength, found.joined, found.direction)


def discover(
    table: Variables,
    allowed: Edges | None = None,
    required: Edges | None = None,
    *,
    seed: int = 0,
    progress: bool = False,
    keep: bool = False,
) -> Discovery:
    """Find the graph under which left-out rows are most likely, and the probabilities of its edges.

    ``allowed`` and ``required`` have shape (columns, columns); by default, all edges are allowed and none is required.
    See :func:`discover_graph` for the other parameters.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> rng = np.random.default_rng(0)
    >>> cause = rng.normal(size=500)
    >>> frame = pd.DataFrame({"effect": np.sin(2 * cause) + 0.3 * rng.normal(size=500), "cause": cause})
    >>> found = discover(Variables.of_frame(frame))
    >>> bool(found.edges[1, 0]), bool(found.direction[1, 0] > 0.9)
    (True, True)
    """
    n = len(table.columns)
    allowed = ~np.eye(n, dtype=bool) if allowed is None else allowed
    required = np.zeros((n, n), dtype=bool) if required is None else required
    columns, order = _prepared(table, seed)
    varies = np.array([np.ptp(column.values) > 0 for column in columns])
    in_order = np.ix_(order, order)
    with tqdm(desc="graph", unit=" graphs", leave=False, disable=not progress) as bar:
        judge, required = Judge(columns, seed), required[in_order]
        # Only columns that depend on each other can be joined.
        near = _strongest(judge.dependence()) | _strongest(_partial_correlations(_values(columns)))
        allowed = (allowed[in_order] & varies & varies[:, None] & near) | required
        climb = Climb(judge, allowed, required, _PENALTY * float(np.log(judge.n_rows)))
        edges = _best_graph(climb, columns, bar, keep)
        found = (edges, _joined(climb, judge, edges, bar), _directed(climb, judge, edges, bar), _strength(judge, edges))
    position = np.argsort(order)
    return Discovery(*(array[np.ix_(position, position)] for array in found))  # type: ignore[arg-type]


def _prepared(table: Variables, seed: int) -> tuple[list[Column], NDArray[np.int64]]:
    """Return the columns of some rows, sorted by digests of their values, and the order of the columns.

    The digests do not depend on the units of the columns, and that of a row is a sum over its cells, so it does not
    depend on their order. Columns with the same values are sorted by these values in the order of the rows; names only
    distinguish equal columns.
    """
    rows = np.flatnonzero(table.weight > 0)
    cells = [np.unique(values + 0.0, return_inverse=True) for values in table.values[rows].T]  # no negative zeros
    digests, row_digests = [], np.zeros(len(rows), np.uint64)
    for (values, codes), n_levels in zip(cells, table.n_levels, strict=True):
        counts = np.bincount(codes, minlength=len(values))
        present = np.where(np.isnan(values), 0, counts)
        mean = np.nansum(present * values) / max(present.sum(), 1)
        spread = np.sqrt(np.nansum(present * (values - mean) ** 2) / max(present.sum(), 1)) or 1.0
        content = np.r_[np.round((values - mean) / spread, 6), counts, n_levels]  # the same in other units
        digests.append(int.from_bytes(hashlib.blake2b(content.tobytes(), digest_size=16).digest()))
        row_digests += np.random.default_rng(digests[-1]).integers(2**64, size=len(values), dtype=np.uint64)[codes]
    chosen = np.argsort(row_digests, kind="stable")
    if len(rows) > MOST_ROWS:
        share = table.weight[rows[chosen]] / table.weight[rows].sum()
        chosen = chosen[np.sort(np.random.default_rng(seed).choice(len(rows), MOST_ROWS, replace=False, p=share))]
    described = zip(digests, cells, table.names, strict=True)
    keys = [(digest, codes[chosen].tobytes(), name) for digest, (_, codes), name in described]
    order = np.array(sorted(range(len(keys)), key=keys.__getitem__))
    values = table.values[rows[chosen]]
    return [Column.of(table.columns[k], values[:, k]) for k in order], order


def _strength(judge: Judge, edges: Edges) -> Array:
    """Return ``sqrt(1 - exp(-2 c))`` for each edge, where c is the log density per row that the effect owes to it.

    For a numeric effect, its square is the share of the squared error that disappears when the edge is added.
    """
    strength = np.zeros(edges.shape)
    for cause, effect in np.argwhere(edges).tolist():
        causes = _causes_of(edges, effect)
        gain = (judge.total(effect, causes) - judge.total(effect, causes - {cause})) / judge.n_rows
        strength[cause, effect] = max(np.sqrt(-np.expm1(-2 * max(gain, 0.0))), np.finfo(np.float32).tiny)
    return strength


# --- search -------------------------------------------------------------------------------------------


def _best_graph(climb: Climb, columns: Sequence[Column], bar: Any, keep: bool) -> Edges:
    """Climb from the empty graph, a linear order and the best linear graph, and perturb the best of the three."""
    linear = Climb(LinearJudge(columns), climb.allowed, climb.required, climb.penalty)
    in_order = climb.in_order(linear_order(_values(columns)))
    starts = [climb.required, in_order, linear.perturbed(linear.uphill(climb.required))]
    graphs = [climb.uphill(start) for start in starts]
    return climb.perturbed(max(graphs, key=climb.score), bar, keep)


def _values(columns: Sequence[Column]) -> Array:
    return np.stack([column.values for column in columns], axis=1)


def _strongest(weights: Array) -> NDArray[np.bool_]:
    """Return which pairs to examine: one of the two is among the strongest of the other."""
    strength = np.maximum(weights, weights.T)
    np.fill_diagonal(strength, -1)
    rank = np.argsort(np.argsort(-strength, axis=0, kind="stable"), axis=0)
    near = (rank < _NEIGHBOURS) & (strength >= 0)
    return near | near.T


def _partial_correlations(values: Array) -> Array:
    """Return absolute correlations given all other columns: zero for pairs without an edge or a common effect."""
    covariance = np.atleast_2d(np.cov(values.T))
    precision = np.linalg.inv(covariance + 1e-6 * np.diag(np.maximum(np.diag(covariance), 1e-9)))
    scale = np.sqrt(np.diag(precision))
    return np.asarray(np.abs(precision / np.outer(scale, scale)))


@dataclass
class Climb:
    """Searches with one judge, which share its scores."""

    judge: Judge | LinearJudge
    allowed: Edges  # edges that the search may add
    required: Edges  # edges that must be in the graph
    penalty: float  # of an edge, in log density of all rows
    _totals: dict[tuple[int, frozenset[int]], float] = field(default_factory=dict)
    _gains: dict[tuple[int, frozenset[int]], Array] = field(default_factory=dict)

    def score(self, edges: Edges) -> float:
        """Return the log density of all rows under a graph, minus the penalty of its edges."""
        return sum(self._total(k, _causes_of(edges, k)) for k in range(len(edges)))

    def _total(self, effect: int, causes: frozenset[int]) -> float:
        key = effect, causes
        if key not in self._totals:
            self._totals[key] = self.judge.total(effect, causes) - self.penalty * len(causes)
        return self._totals[key]

    def uphill(self, edges: Edges, free: Edges | None = None) -> Edges:
        """Change single edges while the score rises; only those in ``free``, if passed."""
        edges = edges.copy()
        free = self.allowed if free is None else self.allowed & free
        gains = self.gains(edges)
        while True:
            reach = paths(edges)
            added = np.where(free & ~edges & ~reach.T, gains, -np.inf)
            removed = np.where(free & edges & ~self.required, gains, -np.inf)
            detour = edges.astype(np.int64) @ reach > 1  # a second path, which would be a cycle with the edge reversed
            reversed_ = np.where(free.T & ~detour, removed + gains.T, -np.inf)
            moves = np.stack([added, removed, reversed_])
            move, j, k = np.unravel_index(int(np.argmax(moves)), moves.shape)
            if not moves[move, j, k] > 1e-6:
                return edges
            edges[j, k] = move == 0
            if move == 2:
                edges[k, j] = True
            for effect in {int(k), int(j)} if move == 2 else {int(k)}:
                gains[:, effect] = self._gains_of(effect, _causes_of(edges, effect))

    def gains(self, edges: Edges) -> Array:
        """Return the gain of the score for adding each edge, even in a cycle, or for removing an existing one."""
        return np.stack([self._gains_of(k, _causes_of(edges, k)) for k in range(len(edges))], axis=1)

    def _gains_of(self, effect: int, causes: frozenset[int]) -> Array:
        """Return the gain of the score of a column for adding each cause, or for removing an existing one."""
        key = effect, causes
        if key not in self._gains:
            now, gains = self._total(*key), np.full(len(self.allowed), -np.inf)
            for cause in np.flatnonzero(self.allowed[:, effect]).tolist():
                if cause in causes or len(causes) < _MOST_CAUSES:
                    gains[cause] = self._total(effect, causes ^ {cause}) - now
            self._gains[key] = gains
        return self._gains[key]

    def in_order(self, order: Sequence[int]) -> Edges:
        """Add causes to every column, from those before it in the order, one at a time while the score rises."""
        edges = self.required.copy()
        before = np.zeros(len(edges), bool)
        for effect in order:
            while True:
                causes = _causes_of(edges, effect)
                gains = np.where(before & ~edges[:, effect], self._gains_of(effect, causes), -np.inf)
                gains[paths(edges)[effect]] = -np.inf
                cause = int(np.argmax(gains))
                if not gains[cause] > 0:
                    break
                edges[cause, effect] = True
            before[effect] = True
        return edges

    def perturbed(self, edges: Edges, bar: Any = None, keep: bool = False) -> Edges:
        """Climb again from the graph with one column as a source or a sink, until no change raises the score.

        Every climb updates the progress bar. If ``keep``, Ctrl-C ends the search with the best graph so far.
        """
        best = self.score(edges)
        for _ in range(_ROUNDS):
            before = best
            for column, as_source in itertools.product(range(len(edges)), (True, False)):
                start = self._turned(edges, column, as_source)
                if len(self._totals) > _MOST_SCORES or np.array_equal(start, edges):
                    continue
                try:
                    other = self.uphill(start)
                except KeyboardInterrupt:
                    if not keep:
                        raise
                    return edges
                if bar is not None:
                    bar.update()
                if self.score(other) > best + 1e-6:
                    edges, best = other, self.score(other)
            if best == before:
                break
        return edges

    def _turned(self, edges: Edges, column: int, as_source: bool) -> Edges:
        """Reverse the edges into a column, or those out of it, and drop those that would close a cycle."""
        turned = edges.copy()
        ends = np.flatnonzero(edges[:, column] if as_source else edges[column]).tolist()
        pairs = [(end, column) if as_source else (column, end) for end in ends]
        pairs = [pair for pair in pairs if not self.required[pair]]
        for pair in pairs:
            turned[pair] = False
        for cause, effect in pairs:
            if self.allowed[effect, cause] and not paths(turned)[cause, effect]:
                turned[effect, cause] = True
        return turned


def _causes_of(edges: Edges, effect: int) -> frozenset[int]:
    """Return the causes of a column."""
    return frozenset(np.flatnonzero(edges[:, effect]).tolist())


def paths(edges: Edges) -> Edges:
    """Return which columns have a path to which others; every column has one to itself."""
    reach = edges | np.eye(len(edges), dtype=bool)
    while True:
        further = (reach.astype(np.float32) @ reach.astype(np.float32)) > 0
        if np.array_equal(further, reach):
            return reach
        reach = further


def linear_order(values: Array) -> list[int]:
    """Order columns, causes first, assuming linear equations with noise that is not normal (DirectLiNGAM).

    The first column is the one that depends least on the residuals of the others when they are regressed on it. The
    residuals take the place of the other columns, and the search repeats (Shimizu et al. 2011). Dependence is measured
    by approximate entropies.
    """
    remaining = (values - values.mean(axis=0)) / np.maximum(values.std(axis=0), 1e-9)
    columns, order = list(range(remaining.shape[1])), []
    while len(columns) > 1:
        correlation = np.clip(remaining.T @ remaining / len(remaining), -1, 1)
        entropy, entropy_given = _entropy(remaining), np.empty_like(correlation)
        for i in range(len(columns)):
            residuals = remaining - remaining[:, [i]] * correlation[i]
            entropy_given[i] = _entropy(residuals / np.maximum(residuals.std(axis=0), 1e-9))
        # How much simpler the noise is in the direction from row to column than in the reverse direction.
        simpler = (entropy[None, :] + entropy_given.T) - (entropy[:, None] + entropy_given)
        np.fill_diagonal(simpler, 0)
        first = int(np.argmax(-np.square(np.minimum(simpler, 0)).sum(axis=1)))
        order.append(columns.pop(first))
        remaining = np.delete(remaining - remaining[:, [first]] * correlation[first], first, axis=1)
        remaining /= np.maximum(remaining.std(axis=0), 1e-9)
    return order + columns


def _entropy(values: Array) -> Array:
    """Approximate the entropy of standardized columns (Hyvarinen 1998)."""
    cosh = np.abs(values) + np.log1p(np.exp(-2 * np.abs(values))) - np.log(2)
    first = np.square(cosh.mean(axis=0) - 0.37457)
    second = np.square((values * np.exp(-np.square(values) / 2)).mean(axis=0))
    return np.asarray((1 + np.log(2 * np.pi)) / 2 - 79.047 * first - 7.4129 * second)


# --- evidence -----------------------------------------------------------------------------------------


def _joined(climb: Climb, judge: Judge, best: Edges, bar: Any) -> Array:
    """Return the probability of an edge between each pair of columns, in either direction."""
    gains = climb.gains(best)
    gain = np.maximum(gains, gains.T)
    near = np.isfinite(gain)
    probability = expit(_NO_EDGE + _NO_EDGE_SLOPE * np.clip(np.where(near, gain, 0.0), _LEAST_GAIN, 0.0))
    probability = np.where(near, probability, np.where(climb.allowed | climb.allowed.T, _NOT_NEAR, 0.0))
    for cause, effect in np.argwhere(best).tolist():
        bar.update()
        if climb.required[cause, effect]:
            edge_probability = 1.0
        else:
            loss = _in_errors(climb, judge, best, _without(climb, best, cause, effect))
            edge_probability = float(expit(_EDGE + _EDGE_SLOPE * min(loss, _MOST_ERRORS)))
        probability[[cause, effect], [effect, cause]] = edge_probability
    np.fill_diagonal(probability, 0)
    return np.asarray(probability)


def _directed(climb: Climb, judge: Judge, best: Edges, bar: Any) -> Array:
    """Return the probability of the direction of each edge, and its complement for the reverse; NaN without an edge."""
    probability = np.full(best.shape, np.nan)
    for cause, effect in np.argwhere(best).tolist():
        bar.update()
        if climb.required[cause, effect] or not climb.allowed[effect, cause]:
            as_it_is = 1.0
        else:
            as_it_is = float(expit(_in_errors(climb, judge, best, _without(climb, best, cause, effect, turned=True))))
        probability[cause, effect], probability[effect, cause] = as_it_is, 1 - as_it_is
    return probability


def _in_errors(climb: Climb, judge: Judge, best: Edges, other: Edges) -> float:
    """Return the loss of a graph against the best one in standard errors, each of at least one nat."""
    by_row = np.zeros(judge.n_rows)
    for k in np.flatnonzero((best != other).any(axis=0)).tolist():
        by_row += judge.by_row(k, _causes_of(best, k)) - judge.by_row(k, _causes_of(other, k))
    error = float(by_row.std() * np.sqrt(judge.n_rows))
    return (climb.score(best) - climb.score(other)) / max(error, 1.0)


def _without(climb: Climb, best: Edges, cause: int, effect: int, turned: bool = False) -> Edges:
    """Return the best graph without an edge, or with it reversed, that a climb from the best graph finds."""
    start, free = best.copy(), np.ones_like(best)
    for array in (start, free):
        array[[cause, effect], [effect, cause]] = False
    if not turned:
        return climb.uphill(start, free)
    # Other paths would close a cycle: remove their last edges, or reverse them where possible.
    before = paths(start)[cause]
    last = [k for k in np.flatnonzero(start[:, effect]).tolist() if before[k] and not climb.required[k, effect]]
    start[last, effect] = False
    start[effect, cause] = True
    for k in last:
        if climb.allowed[effect, k] and not paths(start)[k, effect]:
            start[effect, k] = True
    return climb.uphill(start, free)
