"""From rows and graphs to systems of equations: those of all rows, and those of resampled rows for the error bars."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from tqdm.auto import tqdm

from castlereg.structural.learned import LearnedEquation, LearnedSystem
from castlereg.structural.smooth import Basis, Design, Position
from castlereg.structural.variables import Variable

Array = NDArray[np.float64]
Edges = NDArray[np.bool_]
_Key = tuple[int, tuple[int, ...]]  # a node and its parents


@dataclass(frozen=True)
class Draw:
    """A graph that may be true, and rows that might have been seen."""

    whole: LearnedSystem  # fitted to all rows
    resampled: LearnedSystem  # fitted to rows drawn with replacement
    weight: Array  # (rows,), how often each was drawn


@dataclass
class Fitting:
    """Equations of nodes given their parents, each fitted once for a weighting of the rows."""

    variables: Sequence[Variable]
    values: Array  # (nodes, rows)
    weight: Array  # (rows,)
    bases: tuple[Basis, ...] = field(init=False)
    _positions: list[Position] = field(init=False)
    _ridges: dict[_Key, float] = field(default_factory=dict)
    _whole: dict[_Key, LearnedEquation] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.bases = tuple(
            Basis.of_numbers(values) if variable.levels is None else Basis.of_levels(len(variable.levels))
            for variable, values in zip(self.variables, self.values, strict=True)
        )
        self._positions = [basis.locate(values) for basis, values in zip(self.bases, self.values, strict=True)]

    def system(self, edges: Edges) -> LearnedSystem:
        """Fit the equations of a graph to all rows."""
        keys = [(k, tuple(np.flatnonzero(edges[:, k]).tolist())) for k in range(len(edges))]
        for key in keys:
            if key not in self._whole:
                self._whole[key] = self._fitted(key)
        return LearnedSystem(tuple(self._whole[key] for key in keys), self.bases)

    def resampled(self, edges: Edges, weight: Array) -> LearnedSystem:
        """Fit the equations of a graph to other weights of the rows, as strongly penalized as those of all rows."""
        whole = self.system(edges)
        equations = [self._solved((k, e.parents), weight, e) for k, e in enumerate(whole.equations)]
        return LearnedSystem(tuple(equations), self.bases)

    def _fitted(self, key: _Key) -> LearnedEquation:
        node, _ = key
        design, values, weight = self._design(key, self.weight)
        n_levels = self._n_levels(node)
        if n_levels:
            self._ridges[key], _ = design.best_ridge_of_levels(values.astype(np.int64), n_levels, weight)
            residuals = None
        else:
            self._ridges[key], residuals = design.best_ridge(values, weight)
            if not key[1]:  # a column without causes is drawn from its values
                residuals = values - np.average(values, weights=weight)
            residuals = residuals[rows_by_weight(weight)]
        return self._solved(key, self.weight, LearnedEquation(key[1], _nothing, residuals, n_levels))

    def _solved(self, key: _Key, weight: Array, known: LearnedEquation) -> LearnedEquation:
        """Fit an equation with its known strength of the penalty."""
        design, values, weight = self._design(key, weight)
        if known.n_levels:
            weights = design.solve_levels(values.astype(np.int64), known.n_levels, weight, self._ridges[key])
            return LearnedEquation(key[1], design.equation(weights), None, known.n_levels)
        weights = design.solve(values, weight, self._ridges[key])
        residuals = known.residuals
        if residuals is None:
            residuals = values - design.features @ weights[:, 0]
        return LearnedEquation(key[1], design.equation(weights), residuals)

    def _design(self, key: _Key, weight: Array) -> tuple[Design, Array, Array]:
        """Return the features of the parents, and the values and weights of rows in which the node is not missing."""
        node, parents = key
        rows = np.flatnonzero(~np.isnan(self.values[node]) & (weight > 0))
        at = [self._positions[parent].take(rows) for parent in parents]
        design = Design.of([self.bases[parent] for parent in parents], at, len(rows))
        return design, self.values[node, rows], weight[rows]

    def _n_levels(self, node: int) -> int:
        levels = self.variables[node].levels
        return 0 if levels is None else len(levels)


def rows_by_weight(weight: Array) -> NDArray[np.int64]:
    """Return as many rows as there are, each about as often as its share of the weight; all once if weights are equal.

    Examples
    --------
    >>> rows_by_weight(np.array([1.0, 1.0, 1.0])).tolist(), rows_by_weight(np.array([1.0, 4.0, 1.0])).tolist()
    ([0, 1, 2], [0, 1, 1])
    """
    shares = (np.arange(len(weight)) + 0.5) / len(weight)
    return np.searchsorted(np.cumsum(weight) / weight.sum(), shares)


def _nothing(positions: Sequence[Position], values: Array) -> Array:
    raise NotImplementedError


def fit_draws(
    fitting: Fitting, graphs: Sequence[Edges], rng: np.random.Generator, progress: bool = False
) -> list[Draw]:
    """Fit every graph to all rows and to rows drawn with replacement."""
    n_rows, share, draws = len(fitting.weight), fitting.weight / fitting.weight.sum(), []
    for edges in tqdm(graphs, desc="equations", unit="draw", leave=False, disable=not progress):
        weight = rng.multinomial(n_rows, share).astype(np.float64)
        draws.append(Draw(fitting.system(edges), fitting.resampled(edges, weight), weight))
    return draws
