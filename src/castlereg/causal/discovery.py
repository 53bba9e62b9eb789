"""Find the graph that rows support, for any kind of column, from two kinds of evidence.

The judge scores a column given others on left-out rows; a search climbs to the graph with the best score, and the
losses of other graphs, without an edge or with it reversed, say how sure it is. This evidence uses the shapes of
functions and noise, which real tables often contradict. The other kind are independences in bootstrap samples, which
cannot see shapes. How far shapes are believed depends on the kinds of columns, and on how often the two agree in this
table. Columns and rows are sorted by their values first, so that the graph does not depend on their order, bit for bit.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit
from threadpoolctl import threadpool_limits
from tqdm.auto import tqdm

from castlereg.causal.graph import CausalGraph
from castlereg.causal.independences import N_SAMPLES, Independences, independences
from castlereg.causal.judge import Column, Judge
from castlereg.causal.knowledge import with_priors
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

# Logistic regressions on random worlds of every kind of column, see docs/decisions/0029-two-kinds-of-evidence.md and
# ``python -m benchmarks.discovery_constants``, which prints them.
_EDGE = (2.85, 1.95, 1.14, -0.79)  # constant, log(1 + loss), share of samples that join the pair, log(rows)
_NO_EDGE = (-2.54, 0.21, 2.22)  # constant, gain, share of samples that join the pair
_HIDDEN = (-1.66, 0.86, -0.22)  # with an edge: constant, share of samples compelling the rarer direction, reversal
_HIDDEN_ONLY = (-3.91, 6.57)  # without an edge: the first two of these
_NOT_NEAR = 0.03  # probability of an edge for a pair that was not examined
_MOST_LOSS, _LEAST_GAIN, _MOST_REVERSAL = 20.0, -10.0, 6.0
_REVERSAL = 0.8  # a direction is right with probability expit(this x standard errors), where shapes can be believed
_AGREES, _CONTRADICTS, _MOST_ODDS = 0.6, -1.0, 4.0  # log odds that shapes can be believed, for each arrow of the table
_CLEARLY = 0.5  # difference of the shares of samples that compel the two directions
# The only constants that were set on real data, the odd-numbered cause-effect pairs: the probability, before agreement
# within the table is counted, that shapes can be believed for a pair of numbers with many values, and for others.
_BELIEF_NUMBERS, _BELIEF = 0.75, 0.5
_STAYS = 1.1  # log odds from which a direction of the judge's best graph is reversed: a probability of 0.75
_KEPT, _JOINED = 0.3, 0.5  # least probability of an edge of the judge's best graph, and of another edge
_SILENT, _INDEPENDENCES = 0.5, 0.7  # bootstrap samples added for each direction, and weight of the log odds


class Discovery(NamedTuple):
    """An acyclic graph and the probabilities of its edges, arrays of shape (columns, columns) with causes in rows."""

    edges: Edges
    joined: Array  # probability of an edge between two columns, in either direction
    direction: Array  # probability that it points from row to column; NaN without an edge
    strength: Array  # from 0 to 1: how much less likely the effect is without the cause
    hidden: Array  # probability that an unobserved cause joins the two
    independences: Array  # probability of the direction by independences only; NaN without an edge
    shapes: Array  # and by shapes of functions and noise only


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
    source = Source.of(preprocessing, rows, edges, seed)
    found, names = source.discover(progress=progress, keep=keep), tuple(source.table.names)
    return CausalGraph(
        names, names[len(names) - len(preprocessing.targets) :], found.strength, found.joined, found.direction,
        hidden_array=found.hidden, independences_array=found.independences, shapes_array=found.shapes,
        prior_array=source.prior,  # type: ignore[arg-type]  # None for none
    ).discovered_from(source)  # fmt: skip


def discover(
    table: Variables,
    allowed: Edges | None = None,
    required: Edges | None = None,
    *,
    prior: Array | None = None,
    seed: int = 0,
    progress: bool = False,
    keep: bool = False,
) -> Discovery:
    """Find the graph that rows support, and the probabilities of its edges.

    ``allowed`` and ``required`` have shape (columns, columns); by default, all edges are allowed and none is required.
    ``prior`` has the user's probabilities of edges, and NaN. See :func:`discover_graph` for the other parameters.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> rng = np.random.default_rng(0)
    >>> cause = rng.normal(size=500)
    >>> other = rng.normal(size=500)
    >>> frame = pd.DataFrame({"effect": cause + other + 0.3 * rng.normal(size=500), "cause": cause, "other": other})
    >>> found = discover(Variables.of_frame(frame))
    >>> found.edges.astype(int).tolist(), bool(found.direction[1, 0] > 0.9)
    ([[0, 0, 0], [1, 0, 0], [1, 0, 0]], True)
    """
    searched = search(table, allowed, required, seed=seed, progress=progress, keep=keep)
    order = searched.order
    found = _combined(searched, None if prior is None else prior[np.ix_(order, order)])
    strength = _strength(searched.judge, found[0])
    position = np.argsort(order)
    arrays = (*found[:3], strength, *found[3:])
    return Discovery(*(array[np.ix_(position, position)] for array in arrays))  # type: ignore[arg-type]


class Search(NamedTuple):
    """A judge of the columns, sorted by their values, and the evidence for edges among them."""

    judge: Judge
    evidence: Evidence
    allowed: Edges
    required: Edges
    order: NDArray[np.int64]  # of the columns: their positions in the table


def search(
    table: Variables,
    allowed: Edges | None = None,
    required: Edges | None = None,
    *,
    seed: int = 0,
    progress: bool = False,
    keep: bool = False,
) -> Search:
    """Find the best graph under the judge, and the evidence of both kinds; see :func:`discover` for the parameters."""
    n = len(table.columns)
    allowed = ~np.eye(n, dtype=bool) if allowed is None else allowed
    required = np.zeros((n, n), dtype=bool) if required is None else required
    columns, order = _prepared(table, seed)
    varies = np.array([np.ptp(column.values) > 0 for column in columns])
    in_order = np.ix_(order, order)
    with (
        threadpool_limits(1, "blas"),  # matrices are too small for threads, which would compete for the cores
        tqdm(desc="graph", unit=" graphs", leave=False, disable=not progress) as bar,
    ):
        judge, required = Judge(columns, seed), required[in_order]
        allowed = (allowed[in_order] & varies & varies[:, None]) | required
        # Only columns that depend on each other can be joined.
        near = _strongest(judge.dependence()) | _strongest(_partial_correlations(_values(columns)))
        climb = Climb(judge, (allowed & near) | required, required, _PENALTY * float(np.log(judge.n_rows)))
        said = independences(columns, allowed, required, seed=seed)
        edges = _best_graph(climb, [linear_order(_values(columns)), said.order], bar, keep)
        evidence = _evidence(climb, edges, said, bar)
    return Search(judge, evidence, allowed, required, order)


@dataclass(frozen=True)
class Source:
    """What a graph was discovered from, to discover it again from some of the rows."""

    table: Variables
    allowed: Edges
    required: Edges
    prior: Array | None
    seed: int

    @classmethod
    def of(cls, preprocessing: Preprocessing, rows: Rows, edges: EdgeRules | None, seed: int) -> Source:
        """Read coded rows under the user's rules; there are no edges of constant columns, nor between targets."""
        table, n_targets = Variables.of_rows(preprocessing, rows), len(preprocessing.targets)
        n = len(table.columns)
        allowed, required, prior = ~np.eye(n, dtype=bool), np.zeros((n, n), dtype=bool), None
        allowed[n - n_targets :, n - n_targets :] = False
        constant = [j for j, column in enumerate(preprocessing.schema) if column.constant]
        allowed[constant, :] = allowed[:, constant] = False
        if edges is not None:
            allowed, required, prior = allowed & edges.allowed, edges.required, edges.prior
        return cls(table, allowed, required, prior, seed)

    def discover(self, rows: NDArray[np.int64] | None = None, **options: Any) -> Discovery:
        """Discover the graph of some rows, by default of all."""
        table = self.table if rows is None else self.table.take(rows)
        return discover(table, self.allowed, self.required, prior=self.prior, seed=self.seed, **options)

    def arrows(self, share: float, n: int, progress: bool = False) -> NDArray[np.bool_]:
        """Return the arrows found in samples of a share of the rows, shape (samples, columns, columns)."""
        rng, n_rows = np.random.default_rng(self.seed), len(self.table.values)
        size = max(1, round(share * n_rows))
        samples = [np.sort(rng.choice(n_rows, size, replace=False)) for _ in range(n)]
        bar = tqdm(samples, "stability", unit=" graphs", leave=False, disable=not progress)
        return np.stack([self.discover(rows).edges for rows in bar])


def _prepared(table: Variables, seed: int) -> tuple[list[Column], NDArray[np.int64]]:
    """Return the columns of some rows, sorted by digests of their values, and the order of the columns.

    The digests do not depend on the units of the columns, and that of a row is a sum over its cells, so it does not
    depend on their order. Columns with the same values are sorted by these values in the order of the rows; names only
    distinguish columns with the same shares of the same values.
    """
    rows = np.flatnonzero(table.weight > 0)
    if not len(rows):
        raise ValueError("a graph needs rows: the table has none of positive weight")
    table = replace(table, values=np.where(np.isinf(table.values), np.nan, table.values))
    cells = [np.unique(values + 0.0, return_inverse=True) for values in table.values[rows].T]  # no negative zeros
    digests: list[int] = []
    for (values, codes), n_levels in zip(cells, table.n_levels, strict=True):
        counts, values = np.bincount(codes, minlength=len(values)), values / (np.nanmax(np.abs(values), initial=0) or 1)
        present = np.where(np.isnan(values), 0, counts)
        mean = np.nansum(present * values) / max(present.sum(), 1)
        spread = np.sqrt(np.nansum(present * (values - mean) ** 2) / max(present.sum(), 1)) or 1.0
        content = np.r_[np.round((values - mean) / spread, 6) + 0.0, counts, n_levels]  # the same in other units
        digests.append(int.from_bytes(hashlib.blake2b(content.tobytes(), digest_size=16).digest()))
    row_digests = np.zeros(len(rows), np.uint64)
    for digest, (values, codes), name in zip(digests, cells, table.names, strict=True):
        # Columns with the same shares of the same values need different numbers, or different rows would be equal.
        seed_of_column = digest if digests.count(digest) == 1 else [digest, *name.encode()]
        row_digests += np.random.default_rng(seed_of_column).integers(2**64, size=len(values), dtype=np.uint64)[codes]
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


def _best_graph(climb: Climb, orders: Sequence[Sequence[int]], bar: Any, keep: bool) -> Edges:
    """Climb from the empty graph and along each order, and perturb the best of the graphs."""
    starts = [climb.required, *(climb.in_order(order) for order in orders)]
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

    judge: Judge
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


class Evidence(NamedTuple):
    """What speaks for edges and directions; arrays of shape (columns, columns) with causes in rows."""

    edges: Edges  # the best graph under the judge
    loss: Array  # of the best graph without an edge, in standard errors; NaN without an edge
    gain: Array  # of the score with an edge that the graph does not have; -inf for pairs that were not examined
    reversal: Array  # loss of the best graph with an edge reversed, in standard errors; NaN without an edge
    compelled: Array  # share of bootstrap samples in which independences compel the edge
    either: Array  # in which they allow both directions
    n_rows: int

    @property
    def share(self) -> Array:
        """Share of the samples in which two columns are joined."""
        return np.asarray(self.compelled + self.compelled.T + self.either)

    @property
    def agreement(self) -> tuple[int, int]:
        """Number of edges of the best graph whose direction independences clearly support, and clearly contradict."""
        preference = (self.compelled - self.compelled.T)[self.edges & np.isfinite(self.reversal)]
        return int((preference >= _CLEARLY).sum()), int((preference <= -_CLEARLY).sum())


def _evidence(climb: Climb, best: Edges, said: Independences, bar: Any) -> Evidence:
    """Compare the best graph with those without each edge, or with it reversed."""
    gains = climb.gains(best)
    loss, reversal = np.full((2, *best.shape), np.nan)
    for cause, effect in np.argwhere(best).tolist():
        bar.update()
        if not climb.required[cause, effect]:
            loss[cause, effect] = _in_errors(climb, best, _without(climb, best, cause, effect))
            if climb.allowed[effect, cause]:
                turned = _without(climb, best, cause, effect, turned=True)
                reversal[cause, effect] = _in_errors(climb, best, turned)
    gain = np.where(best | best.T, np.nan, np.maximum(gains, gains.T))
    return Evidence(best, loss, gain, reversal, said.compelled, said.either, climb.judge.n_rows)


def _combined(searched: Search, prior: Array | None) -> tuple[Edges, Array, Array, Array, Array, Array]:
    """Return the graph, and the probabilities of edges, directions, hidden causes, and of directions by each kind."""
    judge, evidence, allowed, required, _ = searched
    joined = _joined(evidence)
    joined = np.where(required | required.T, 1.0, np.where(allowed | allowed.T, joined, 0.0))
    by_independences, by_shapes = _by_independences(evidence), _by_shapes(evidence, judge.columns)
    direction = expit(logit(by_independences) + logit(by_shapes))
    for known, value in ((allowed & ~allowed.T, 1.0), (allowed.T & ~allowed, 0.0), (required, 1.0), (required.T, 0.0)):
        direction[known] = value
    if prior is not None:
        joined, direction = with_priors(joined, direction, prior)
    best = evidence.edges | evidence.edges.T
    probable = joined >= np.where(best, _KEPT, _JOINED)
    in_favour = expit(logit(np.clip(direction, 1e-9, 1 - 1e-9)) + _STAYS * (evidence.edges * 1.0 - evidence.edges.T))
    edges = _oriented(joined, probable, in_favour, allowed, required)
    is_joined = edges | edges.T
    hidden = np.where(allowed | allowed.T, _hidden(evidence), 0.0)
    is_open = is_joined & allowed & allowed.T & ~required & ~required.T  # knowledge settles other directions
    direction = np.where(is_joined, direction, np.nan)
    by_independences, by_shapes = (np.where(is_open, array, np.nan) for array in (by_independences, by_shapes))
    return edges, joined, direction, hidden, by_independences, by_shapes


def _joined(evidence: Evidence) -> Array:
    """Return the probability of an edge between each pair of columns, in either direction."""
    share = evidence.share
    loss, gain = (np.fmax(array, array.T) for array in (evidence.loss, evidence.gain))
    constant, by_loss, by_share, by_rows = _EDGE
    size = by_loss * np.log1p(np.clip(loss, 0.0, _MOST_LOSS))
    with_edge = expit(constant + size + by_share * share + by_rows * np.log(evidence.n_rows))
    constant, by_gain, by_share = _NO_EDGE
    without = expit(constant + by_gain * np.clip(gain, _LEAST_GAIN, 0.0) + by_share * share)
    without = np.where(np.isneginf(gain) & (share < _CLEARLY), _NOT_NEAR, without)
    probability = np.where(np.isnan(loss), without, with_edge)
    np.fill_diagonal(probability, 0)
    return np.asarray(probability)


def _by_independences(evidence: Evidence) -> Array:
    """Return the share of samples that compel each direction; undirected ones count half."""
    silent = _SILENT / N_SAMPLES
    share = (evidence.compelled + evidence.either / 2 + silent) / (evidence.share + 2 * silent)
    return np.asarray(expit(_INDEPENDENCES * logit(share)))


def _by_shapes(evidence: Evidence, columns: Sequence[Column]) -> Array:
    """Return the probability of each direction by shapes, as far as they are believed; one half without an edge."""
    numbers = np.array([column.kind in ("continuous", "rounded") for column in columns])
    belief = np.where(numbers & numbers[:, None], _BELIEF_NUMBERS, _BELIEF)
    agreeing, contradicting = evidence.agreement
    odds = np.clip(_AGREES * agreeing + _CONTRADICTS * contradicting, -_MOST_ODDS, _MOST_ODDS)
    belief = expit(logit(belief) + odds)
    right = belief * expit(_REVERSAL * np.minimum(evidence.reversal, _MOST_REVERSAL)) + (1 - belief) / 2
    return np.where(np.isfinite(right), right, np.where(np.isfinite(right.T), 1 - right.T, 0.5))


def _hidden(evidence: Evidence) -> Array:
    """Return the probability that an unobserved cause joins each pair of columns."""
    reversal = np.fmax(evidence.reversal, evidence.reversal.T)
    rarer = np.minimum(evidence.compelled, evidence.compelled.T)
    constant, by_rarer, by_reversal = _HIDDEN
    size = np.clip(
        np.nan_to_num(reversal, nan=_MOST_REVERSAL / 2), 0, _MOST_REVERSAL
    )  # unknown if one way is forbidden
    with_edge = expit(constant + by_rarer * rarer + by_reversal * size)
    constant, by_rarer = _HIDDEN_ONLY
    probability = np.where(evidence.edges | evidence.edges.T, with_edge, expit(constant + by_rarer * rarer))
    np.fill_diagonal(probability, 0)
    return np.asarray(probability)


def _oriented(joined: Array, probable: Edges, direction: Array, allowed: Edges, required: Edges) -> Edges:
    """Join probable pairs, the surest directions first; the other way where one would close a cycle."""
    edges = required.copy()
    reach = paths(edges)
    pairs = np.argwhere(np.triu(probable, 1) & ~(required | required.T))
    sureness = np.array([joined[j, k] * abs(direction[j, k] - 0.5) for j, k in pairs])
    for j, k in pairs[np.argsort(-sureness, kind="stable")].tolist():
        for cause, effect in ((j, k), (k, j)) if direction[j, k] >= 0.5 else ((k, j), (j, k)):
            if allowed[cause, effect] and not reach[effect, cause]:
                edges[cause, effect] = True
                reach |= np.outer(reach[:, cause], reach[effect])
                break
    return edges


def _in_errors(climb: Climb, best: Edges, other: Edges) -> float:
    """Return the loss of a graph against the best one in standard errors, each of at least one nat."""
    judge, by_row = climb.judge, np.zeros(climb.judge.n_rows)
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
