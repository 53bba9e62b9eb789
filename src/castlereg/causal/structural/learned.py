"""Equations learned from rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax

from castlereg.causal.discovery.density import log_density
from castlereg.causal.structural.smooth import Basis, Position
from castlereg.causal.structural.system import posterior_gumbel

Array = NDArray[np.float64]
SMOOTH_SUM, NETWORK = "sum of functions", "network"
Function = Callable[[Sequence[Position], Array], Array]  # from positions and values of the parents to outputs


@dataclass(frozen=True)
class LearnedEquation:
    """One equation: a function of the parents, and its residuals."""

    parents: tuple[int, ...]
    function: Function  # outputs of shape (rows, 1) for a number, scores of shape (rows, levels) otherwise
    residuals: Array | None  # (rows,), for a number; repeated in proportion to the weights of rows
    n_levels: int  # 0 for a number
    form: str  # SMOOTH_SUM or NETWORK


@dataclass(frozen=True)
class LearnedSystem:
    """An equation for every node of one graph, fitted to one weighting of the rows."""

    equations: tuple[LearnedEquation, ...]
    bases: tuple[Basis, ...]

    @cached_property
    def edges(self) -> NDArray[np.bool_]:
        """Edges of the graph, shape (nodes, nodes)."""
        edges = np.zeros((len(self.equations),) * 2, bool)
        for k, equation in enumerate(self.equations):
            edges[list(equation.parents), k] = True
        return edges

    @cached_property
    def signals(self) -> tuple[slice, ...]:
        """Positions of the noise signals of every node."""
        ends = np.cumsum([max(equation.n_levels, 1) for equation in self.equations]).tolist()
        return tuple(slice(a, b) for a, b in zip([0, *ends], ends, strict=False))

    def draw(self, n_rows: int, rng: np.random.Generator) -> Array:
        """Draw noise: residuals, separately for each node, and Gumbel noise."""
        noise = np.empty((self.signals[-1].stop, n_rows))
        for equation, at in zip(self.equations, self.signals, strict=True):
            noise[at] = self._drawn(equation, n_rows, rng)
        return noise

    def solve(self, noise: Array, values: Array, nodes: Sequence[int]) -> None:
        """Compute the values of nodes, causes first, from those of all others; in place."""
        positions: dict[int, Position] = {}
        for k in nodes:
            outputs = self._outputs(k, values, positions)
            of_node = noise[self.signals[k]]
            values[k] = (
                outputs[:, 0] + of_node[0] if not self.equations[k].n_levels else (outputs.T + of_node).argmax(0)
            )

    def given(self, node: int, values: Array) -> Array:
        """Return a number, or a score for each level, from the parents of a node; shape (signals, rows)."""
        return self._outputs(node, values, {}).T

    def abduct(self, values: Array, nodes: Sequence[int], seed: int) -> Array:
        """Return noise for which nodes have these values; see :class:`castlereg.causal.structural.system.System`."""
        noise = np.zeros((self.signals[-1].stop, values.shape[1]))
        positions: dict[int, Position] = {}
        for k in nodes:
            equation, at, rng = self.equations[k], self.signals[k], np.random.default_rng([seed, k])
            outputs, missing = self._outputs(k, values, positions), np.isnan(values[k])
            if equation.n_levels:
                noise[at] = posterior_gumbel(outputs.T, np.where(missing, 0, values[k]).astype(np.int64), rng)
            else:
                noise[at] = values[k] - outputs[:, 0]
            if missing.any():
                noise[at, missing] = self._drawn(equation, int(missing.sum()), rng)
        return noise

    def log_densities(self, values: Array) -> Array:
        """Return the log density of every value given its parents, shape (nodes, rows); 0 where it is missing."""
        densities = np.zeros(values.shape)
        positions: dict[int, Position] = {}
        for k, equation in enumerate(self.equations):
            outputs, present = self._outputs(k, values, positions), ~np.isnan(values[k])
            if equation.n_levels:
                codes = values[k, present].astype(np.int64)
                densities[k, present] = log_softmax(outputs[present], axis=1)[np.arange(len(codes)), codes]
            else:
                assert equation.residuals is not None
                densities[k, present] = log_density(equation.residuals, values[k, present] - outputs[present, 0])
        return densities

    @staticmethod
    def _drawn(equation: LearnedEquation, n_rows: int, rng: np.random.Generator) -> Array:
        if equation.n_levels:
            return rng.gumbel(size=(equation.n_levels, n_rows))
        assert equation.residuals is not None
        return rng.choice(equation.residuals, n_rows)

    def _outputs(self, k: int, values: Array, positions: dict[int, Position]) -> Array:
        """Evaluate an equation; positions of values among knots are cached for other children."""
        equation = self.equations[k]
        for parent in equation.parents:
            if parent not in positions:
                positions[parent] = self.bases[parent].locate(values[parent])
        return equation.function([positions[parent] for parent in equation.parents], values)
