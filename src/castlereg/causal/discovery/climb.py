"""Search for the most likely graph: add, remove or reverse single edges while the score rises."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from castlereg.causal.discovery.judge import Scores

Edges = NDArray[np.bool_]  # (columns, columns), from cause to effect

_MOST_CAUSES = 8
_ROUNDS = 3  # maximum number of rounds of perturbations
_MOST_SCORES = 20_000  # scores of columns given others; after this many, perturbations stop


@dataclass
class Climb:
    """Searches with one judge, which share its scores."""

    judge: Scores
    allowed: Edges  # edges that the search may add
    required: Edges  # edges that must be in the graph
    penalty: float  # of an edge, in log density of all rows
    _totals: dict[tuple[int, frozenset[int]], float] = field(default_factory=dict)
    _gains: dict[tuple[int, frozenset[int]], NDArray[np.float64]] = field(default_factory=dict)

    def score(self, edges: Edges) -> float:
        """Return the log density of all rows under a graph, minus the penalty of its edges."""
        return sum(self._total(k, causes_of(edges, k)) for k in range(len(edges)))

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
                gains[:, effect] = self._gains_of(effect, causes_of(edges, effect))

    def gains(self, edges: Edges) -> NDArray[np.float64]:
        """Return the gain of the score for adding each edge, even in a cycle, or for removing an existing one."""
        return np.stack([self._gains_of(k, causes_of(edges, k)) for k in range(len(edges))], axis=1)

    def _gains_of(self, effect: int, causes: frozenset[int]) -> NDArray[np.float64]:
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
                causes = causes_of(edges, effect)
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


def causes_of(edges: Edges, effect: int) -> frozenset[int]:
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
