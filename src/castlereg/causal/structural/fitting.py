"""Fit systems of equations to rows and graphs: to all rows, and to resampled rows for the error bars."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from tqdm.auto import tqdm

from castlereg.causal.structural import subnetworks
from castlereg.causal.structural.learned import NETWORK, SMOOTH_SUM, Function, LearnedEquation, LearnedSystem
from castlereg.causal.structural.smooth import Basis, Design, Position
from castlereg.causal.structural.variables import Variable

Array = NDArray[np.float64]
Edges = NDArray[np.bool_]
Key = tuple[int, tuple[int, ...]]  # a node and its parents

_VALIDATION = 0.1  # share of the rows for early stopping of a network
_FEWEST_ROWS = 100  # rows that a network needs


@dataclass(frozen=True)
class Draw:
    """A graph that may be true, and equations fitted to all rows and to resampled rows."""

    whole: LearnedSystem  # fitted to all rows
    resampled: LearnedSystem  # fitted to rows drawn with replacement
    weight: Array  # (rows,), how often each row was drawn


class _Known(NamedTuple):
    """An equation fitted to all rows, and what is needed to fit it to resampled rows."""

    equation: LearnedEquation
    ridge: float
    losses: Array  # (rows,), of each row when left out: squared errors or log losses


@dataclass(frozen=True)
class Fitting:
    """Equations of columns given their parents, fitted to different weights of the rows."""

    variables: tuple[Variable, ...]
    values: Array  # (nodes, rows)
    weight: Array  # (rows,)
    seed: int = 0

    @cached_property
    def bases(self) -> tuple[Basis, ...]:
        """Basis functions of every column."""
        return tuple(
            Basis.of_numbers(values) if variable.levels is None else Basis.of_levels(len(variable.levels))
            for variable, values in zip(self.variables, self.values, strict=True)
        )

    @cached_property
    def positions(self) -> list[Position]:
        """Positions of the rows' values among the knots of their column."""
        return [basis.locate(values) for basis, values in zip(self.bases, self.values, strict=True)]

    def fit(
        self, main: Edges, graphs: Sequence[Edges], rng: np.random.Generator, progress: bool = False
    ) -> tuple[LearnedSystem, list[Draw]]:
        """Fit the main graph to all rows, and every other graph to all rows and to rows drawn with replacement."""
        keys = dict.fromkeys(key for edges in (main, *graphs) for key in keys_of(edges))
        known = {key: self._smooth_sum(key) for key in keys}
        share = self.weight / self.weight.sum()
        n_rows = round(1 / np.square(share).sum())  # the effective number of rows; all rows if weights are equal
        weights = [rng.multinomial(n_rows, share).astype(np.float64) for _ in graphs]
        networks = self._networks(known, main, graphs, weights, progress)
        whole = {key: networks.get((key, -1), of_key.equation) for key, of_key in known.items()}
        systems: dict[bytes, LearnedSystem] = {}
        for edges in (main, *graphs):
            if edges.tobytes() not in systems:
                systems[edges.tobytes()] = LearnedSystem(tuple(whole[key] for key in keys_of(edges)), self.bases)
        draws = []
        bar = tqdm(list(zip(graphs, weights, strict=True)), "equations", unit="draw", leave=False, disable=not progress)
        for number, (edges, weight) in enumerate(bar):
            equations = [
                networks.get((key, number)) or self._solved(key, weight, known[key].ridge, whole[key].residuals)
                for key in keys_of(edges)
            ]
            resampled = LearnedSystem(tuple(equations), self.bases)
            draws.append(Draw(systems[edges.tobytes()], resampled, weight))
        return systems[main.tobytes()], draws

    # --- sums of functions --------------------------------------------------------------------------

    def _smooth_sum(self, key: Key) -> _Known:
        """Fit an equation to all rows, with the penalty strength that predicts left-out rows best."""
        design, values, weight = self._design(key, self.weight)
        n_levels = self._n_levels(key[0])
        if n_levels:
            ridge, losses = design.best_ridge_of_levels(values.astype(np.int64), n_levels, weight)
            return _Known(self._solved(key, self.weight, ridge), ridge, losses)
        ridge, residuals = design.best_ridge(values, weight)
        losses = np.square(residuals)
        if not key[1]:  # a column without causes is drawn from its values
            residuals = values - np.average(values, weights=weight)
        residuals = residuals[rows_by_weight(weight)]
        return _Known(self._solved(key, self.weight, ridge, residuals), ridge, losses)

    def _solved(self, key: Key, weight: Array, ridge: float, residuals: Array | None = None) -> LearnedEquation:
        """Fit an equation with a given penalty strength; for a number, its residuals are passed."""
        design, values, weight = self._design(key, weight)
        if not len(values):  # the column has few values, and the draw contains none of them
            design, values, weight = self._design(key, self.weight)
        n_levels = self._n_levels(key[0])
        if n_levels:
            weights = design.solve_levels(values.astype(np.int64), n_levels, weight, ridge)
            return LearnedEquation(key[1], design.equation(weights), None, n_levels, SMOOTH_SUM)
        return LearnedEquation(key[1], design.equation(design.solve(values, weight, ridge)), residuals, 0, SMOOTH_SUM)

    def _design(self, key: Key, weight: Array) -> tuple[Design, Array, Array]:
        """Return the features of the parents, and the values and weights of rows in which the node is present."""
        node, parents = key
        rows = np.flatnonzero(~np.isnan(self.values[node]) & (weight > 0))
        at = [self.positions[parent].take(rows) for parent in parents]
        return (
            Design.of([self.bases[parent] for parent in parents], at, len(rows)),
            self.values[node, rows],
            weight[rows],
        )

    def _n_levels(self, node: int) -> int:
        return len(self.variables[node].levels or ())

    # --- networks -----------------------------------------------------------------------------------

    def _networks(
        self, known: dict[Key, _Known], main: Edges, graphs: Sequence[Edges], weights: Sequence[Array], progress: bool
    ) -> dict[tuple[Key, int], LearnedEquation]:
        """Train networks for equations that they predict better, by key and number of the draw (-1 for all rows).

        Only columns whose causes interact in the main graph get networks, but then for all their sets of causes.
        """
        networks: dict[tuple[Key, int], LearnedEquation] = {}
        for key in keys_of(main):
            if self._acts_together(key):
                others = [
                    other for other in known if other[0] == key[0] and other != key and self._acts_together(other)
                ]
                networks |= self._networks_of(key[0], [key, *others], known, graphs, weights, progress)
        return networks

    def _acts_together(self, key: Key) -> bool:
        design, values, weight = self._design(key, self.weight)
        enough = len(values) >= _FEWEST_ROWS
        return enough and subnetworks.acts_together(design, values, weight, self._n_levels(key[0]))

    def _networks_of(
        self,
        node: int,
        keys: Sequence[Key],
        known: dict[Key, _Known],
        graphs: Sequence[Edges],
        weights: Sequence[Array],
        progress: bool,
    ) -> Iterable[tuple[tuple[Key, int], LearnedEquation]]:
        """Train networks for one column, for the sets of parents for which networks are clearly better."""
        rows = np.flatnonzero(~np.isnan(self.values[node]) & (self.weight > 0))
        values = self.values[:, rows]
        encoding = subnetworks.Encoding.of(self.variables, values, node)
        left_out = subnetworks.left_out(encoding, values, [parents for _, parents in keys], self.seed)
        better = {
            key: residuals
            for key, (losses, residuals) in zip(keys, left_out, strict=True)
            if subnetworks.is_clearly_lower(losses, known[key].losses, self.weight[rows])
        }
        jobs = {(key, -1): self._job(key, self.weight[rows], -1) for key in better}
        for number, (edges, weight) in enumerate(zip(graphs, weights, strict=True)):
            key = keys_of(edges)[node]
            if key in better:
                jobs[key, number] = self._job(key, weight[rows], number)
        if not jobs:
            return
        networks = subnetworks.trained(encoding, values, list(jobs.values()), self.seed, progress)
        n_levels, drawn = self._n_levels(node), rows_by_weight(self.weight[rows])
        for (key, number), network in zip(jobs, networks, strict=True):
            function: Function = network
            residuals = None if n_levels else better[key][drawn]
            yield (key, number), LearnedEquation(key[1], function, residuals, n_levels, NETWORK)

    def _job(self, key: Key, weight: Array, number: int) -> subnetworks.Job:
        """Train on the rows of a draw; use the other rows, or a tenth of all rows, for early stopping."""
        rng = np.random.default_rng([self.seed, key[0], number + 1])
        rows = np.repeat(np.arange(len(weight)), weight.astype(np.int64))
        validation = np.flatnonzero(weight == 0)
        if number < 0:
            held, others = np.split(rng.permutation(len(weight)), [max(1, round(_VALIDATION * len(weight)))])
            validation, rows = np.sort(held), np.sort(others)
            rows = rows[rows_by_weight(weight[rows])]
        return subnetworks.Job(key[1], rows, validation)


def rows_by_weight(weight: Array) -> NDArray[np.int64]:
    """Repeat n rows in proportion to their weights, n in total; each appears once if weights are equal.

    Examples
    --------
    >>> rows_by_weight(np.array([1.0, 1.0, 1.0])).tolist(), rows_by_weight(np.array([1.0, 4.0, 1.0])).tolist()
    ([0, 1, 2], [0, 1, 1])
    """
    shares = (np.arange(len(weight)) + 0.5) / len(weight)
    return np.searchsorted(np.cumsum(weight) / weight.sum(), shares)


def keys_of(edges: Edges) -> list[Key]:
    """Return every node with its parents."""
    return [(k, tuple(np.flatnonzero(edges[:, k]).tolist())) for k in range(len(edges))]
