"""Equations of a structural model: the protocol, equations learned from rows, and how they are fitted.

An equation is a sum of smooth functions of the causes, or also a joint function of all of them where this clearly
predicts left-out rows better. Equations are fitted to all rows, and to resampled rows for the error bars.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from graphlib import TopologicalSorter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax, logsumexp
from tqdm.auto import tqdm

from castlereg.causal.judge import log_density
from castlereg.causal.smooth import Basis, Design, JointBasis, SmoothFunction
from castlereg.causal.variables import Variables

Array = NDArray[np.float64]
Edges = NDArray[np.bool_]
_Key = tuple[int, tuple[int, ...]]  # a node and its parents

_FEWEST_ROWS, _MOST_ROWS = 100, 2000  # for the choice of the form
_CLEARLY, _MARGIN = 2.0, 0.005  # a joint function must be better by this many standard errors, and share of the loss


class System:
    """One equation for each node of a graph, ``value = function(parents, noise)``.

    Values have shape (nodes, rows); levels are represented by their numbers. Noise has shape (signals, rows), with one
    signal for a numeric node and one per level for others. A number is a function of its parents plus noise. A level is
    the one with the highest score plus Gumbel noise, which draws it from the softmax of the scores.
    """

    edges: Edges  # (nodes, nodes), from cause to effect
    n_levels: Sequence[int]  # of each node; 0 for numbers

    def features(self, node: int, values: Array) -> Any:
        """Return what the children of a node use of its values."""
        raise NotImplementedError

    def outputs(self, node: int, parents: Mapping[int, Any], n_rows: int) -> Array:
        """Return a number, or a score for each level, from the features of the parents; shape (signals, rows)."""
        raise NotImplementedError

    def numeric_noise(self, node: int, n_rows: int, rng: np.random.Generator) -> Array:
        """Draw the noise of a number."""
        raise NotImplementedError

    def noise_density(self, node: int, noise: Array) -> Array:
        """Return the log density of the noise of a number."""
        raise NotImplementedError

    @cached_property
    def signals(self) -> tuple[slice, ...]:
        """Indices of the noise signals of every node."""
        return slices([max(n, 1) for n in self.n_levels])

    def given(self, node: int, values: Array, features: dict[int, Any] | None = None) -> Array:
        """Return a number, or a score for each level, from the parents of a node; shape (signals, rows).

        Features of parents are taken from ``features``, or added to it.
        """
        features = {} if features is None else features
        for parent in np.flatnonzero(self.edges[:, node]).tolist():
            if parent not in features:
                features[parent] = self.features(parent, values[parent])
        return self.outputs(node, features, values.shape[1])

    def draw(self, n_rows: int, rng: np.random.Generator) -> Array:
        """Draw noise, separately for each node."""
        noise = np.empty((self.signals[-1].stop, n_rows))
        for node, at in enumerate(self.signals):
            noise[at] = self._noise(node, n_rows, rng)
        return noise

    def _noise(self, node: int, n_rows: int, rng: np.random.Generator) -> Array:
        n_levels = self.n_levels[node]
        return rng.gumbel(size=(n_levels, n_rows)) if n_levels else self.numeric_noise(node, n_rows, rng)

    def solve(self, noise: Array, values: Array, nodes: Sequence[int]) -> None:
        """Compute the values of nodes, causes first, from those of all others; in place."""
        features: dict[int, Any] = {}
        for node in nodes:
            signals = self.given(node, values, features) + noise[self.signals[node]]
            values[node] = signals.argmax(axis=0) if self.n_levels[node] else signals[0]

    def abduct(self, values: Array, nodes: Sequence[int], seed: int) -> Array:
        """Return noise for which nodes have these values.

        For numbers this noise is unique; for levels it is drawn from the noise that agrees with them. Missing values
        get random noise. The noise of other nodes is zero.
        """
        noise = np.zeros((self.signals[-1].stop, values.shape[1]))
        features: dict[int, Any] = {}
        for node in nodes:
            at, rng, missing = self.signals[node], np.random.default_rng([seed, node]), np.isnan(values[node])
            outputs = self.given(node, values, features)
            if self.n_levels[node]:
                noise[at] = _posterior_gumbel(outputs, np.where(missing, 0, values[node]).astype(np.int64), rng)
            else:
                noise[at] = values[node] - outputs[0]
            if missing.any():
                noise[at, missing] = self._noise(node, int(missing.sum()), rng)
        return noise

    def log_densities(self, values: Array) -> Array:
        """Return the log density of every value given its parents, shape (nodes, rows); 0 where it is missing."""
        densities, features = np.zeros(values.shape), dict[int, Any]()
        for node, column in enumerate(values):
            outputs, present = self.given(node, values, features), ~np.isnan(column)
            if self.n_levels[node]:
                codes = column[present].astype(np.int64)
                densities[node, present] = log_softmax(outputs[:, present], axis=0)[codes, np.arange(len(codes))]
            else:
                densities[node, present] = self.noise_density(node, column[present] - outputs[0, present])
        return densities


def slices(sizes: Sequence[int]) -> tuple[slice, ...]:
    """Return the indices of blocks of these sizes, one after the other."""
    ends = np.cumsum(sizes).tolist()
    return tuple(slice(a, b) for a, b in zip([0, *ends], ends, strict=False))


def causal_order(edges: NDArray[np.bool_]) -> list[int]:
    """Return the nodes in an order with causes first."""
    parents = {k: np.flatnonzero(edges[:, k]).tolist() for k in range(len(edges))}
    return list(TopologicalSorter(parents).static_order())


def reached_from(edges: NDArray[np.bool_], nodes: Collection[int]) -> NDArray[np.bool_]:
    """Return which other nodes have a path from one of these; shape (nodes,)."""
    reached = np.zeros(len(edges), bool)
    ahead = list(nodes)
    while ahead:
        for child in np.flatnonzero(edges[ahead.pop()] & ~reached).tolist():
            reached[child] = True
            ahead.append(child)
    reached[list(nodes)] = False
    return reached


def between(edges: NDArray[np.bool_], causes: Collection[int], outcomes: Collection[int] | None = None) -> list[int]:
    """Return the nodes that an intervention changes, causes first; only those that affect the outcomes, if any."""
    changed = reached_from(edges, causes)
    if outcomes is not None:
        needed = reached_from(edges.T, outcomes)
        needed[list(outcomes)] = True
        changed &= needed
    return [k for k in causal_order(edges) if changed[k]]


def _posterior_gumbel(scores: Array, chosen: NDArray[np.int64], rng: np.random.Generator) -> Array:
    """Draw Gumbel noise, shape (levels, rows), for which the chosen levels have the highest score plus noise.

    The highest sum is a Gumbel variable around the log of the sum of all exponentials; the other sums are Gumbel
    variables below it (Oberst and Sontag, ICML 2019).
    """
    top = rng.gumbel(size=scores.shape[1]) + logsumexp(scores, axis=0)
    free = rng.gumbel(size=scores.shape) + scores
    below = -np.logaddexp(-top, -free)  # truncated at the highest
    below[chosen, np.arange(len(chosen))] = top
    return np.asarray(below - scores)


@dataclass(frozen=True)
class LearnedEquation:
    """One equation: a function of the parents, and its residuals."""

    parents: tuple[int, ...]
    function: SmoothFunction  # outputs of shape (rows, 1) for a number, scores of shape (rows, levels) otherwise
    residuals: Array | None  # (rows,), for a number; repeated in proportion to the weights of rows
    n_levels: int  # 0 for a number


@dataclass(frozen=True)
class LearnedSystem(System):
    """An equation for every node of one graph, fitted to one weighting of the rows."""

    equations: tuple[LearnedEquation, ...]
    bases: tuple[Basis, ...]

    @cached_property
    def edges(self) -> Edges:  # type: ignore[override]  # read-only
        """Edges of the graph, shape (nodes, nodes)."""
        edges = np.zeros((len(self.equations),) * 2, bool)
        for k, equation in enumerate(self.equations):
            edges[list(equation.parents), k] = True
        return edges

    @cached_property
    def n_levels(self) -> Sequence[int]:  # type: ignore[override]  # read-only
        """Number of levels of each node; 0 for numbers."""
        return [equation.n_levels for equation in self.equations]

    def features(self, node: int, values: Array) -> Array:
        """Return the values; functions look them up in tables."""
        return values

    def outputs(self, node: int, parents: Mapping[int, Any], n_rows: int) -> Array:
        """Return a number, or a score for each level; shape (signals, rows)."""
        equation = self.equations[node]
        return equation.function([parents[parent] for parent in equation.parents], n_rows).T

    def numeric_noise(self, node: int, n_rows: int, rng: np.random.Generator) -> Array:
        """Draw residuals."""
        return rng.choice(self.residuals(node), n_rows)

    def noise_density(self, node: int, noise: Array) -> Array:
        """Return the log density of the residuals at some noise."""
        return log_density(self.residuals(node), noise)

    def residuals(self, node: int) -> Array:
        """Return the residuals of a number, repeated in proportion to the weights of rows."""
        residuals = self.equations[node].residuals
        assert residuals is not None
        return residuals


# --- fitting ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Draw:
    """A graph that may be true, and equations fitted to all rows and to resampled rows."""

    whole: LearnedSystem  # fitted to all rows
    resampled: LearnedSystem  # fitted to rows drawn with replacement
    weight: Array  # (rows,), how often each row was drawn


@dataclass(frozen=True)
class Fitting:
    """Equations of columns given their parents, fitted to different weights of the rows."""

    table: Variables

    @cached_property
    def values(self) -> Array:
        """Values of the rows, shape (nodes, rows)."""
        return self.table.values.T

    @cached_property
    def bases(self) -> tuple[Basis, ...]:
        """Basis functions of every column."""
        return tuple(
            Basis.of_levels(n_levels) if n_levels else Basis.of_numbers(values)
            for n_levels, values in zip(self.table.n_levels, self.values, strict=True)
        )

    @cached_property
    def expanded(self) -> list[Array]:
        """Features of every column, each of shape (rows, features)."""
        return [basis.expand(values) for basis, values in zip(self.bases, self.values, strict=True)]

    def fit(
        self, main: Edges, graphs: Sequence[Edges], rng: np.random.Generator, progress: bool = False
    ) -> tuple[LearnedSystem, list[Draw]]:
        """Fit the main graph to all rows, and every other graph to all rows and to rows drawn with replacement.

        Only columns whose causes act jointly in the main graph have joint functions, in the other graphs too.
        """
        weight = self.table.weight
        are_joint = {node for node, parents in _keys_of(main) if self._joint_basis((node, parents)) is not None}
        keys = dict.fromkeys(key for edges in (main, *graphs) for key in _keys_of(edges))
        forms = {key: self._form(key, key[0] in are_joint) for key in keys}
        systems: dict[bytes, LearnedSystem] = {}
        for edges in (main, *graphs):
            if edges.tobytes() not in systems:
                equations = tuple(forms[key][0] for key in _keys_of(edges))
                systems[edges.tobytes()] = LearnedSystem(equations, self.bases)
        share = weight / weight.sum()
        n_rows = round(1 / np.square(share).sum())  # the effective number of rows; all rows if weights are equal
        draws = []
        for edges in tqdm(graphs, "equations", unit="draw", leave=False, disable=not progress):
            drawn = rng.multinomial(n_rows, share).astype(np.float64)
            resampled = []
            for key in _keys_of(edges):
                equation, ridge, joint = forms[key]
                resampled.append(self._solved(key, drawn, ridge, joint, equation.residuals))
            draws.append(Draw(systems[edges.tobytes()], LearnedSystem(tuple(resampled), self.bases), drawn))
        return systems[main.tobytes()], draws

    def _form(self, key: _Key, may_be_joint: bool) -> tuple[LearnedEquation, float, JointBasis | None]:
        """Fit an equation to all rows, in the form and with the penalty strength that predict left-out rows best."""
        joint, n_levels = self._joint_basis(key) if may_be_joint else None, self.table.n_levels[key[0]]
        design, values, weight = self._design(key, self.table.weight, joint)
        if n_levels:
            ridge = design.best_ridge_of_levels(values.astype(np.int64), n_levels, weight)
            return self._solved(key, self.table.weight, ridge, joint), ridge, joint
        ridge, residuals = design.best_ridge(values, weight)
        if not key[1]:  # a column without causes is drawn from its values
            residuals = values - np.average(values, weights=weight)
        residuals = residuals[rows_by_weight(weight)]
        return self._solved(key, self.table.weight, ridge, joint, residuals), ridge, joint

    def _joint_basis(self, key: _Key) -> JointBasis | None:
        """Return products of the causes, or products and waves, if they predict left-out rows clearly better than sums.

        Levels count as one number each.
        """
        node, parents = key
        n_levels, present = self.table.n_levels[node], ~np.isnan(self.values[node]) & (self.table.weight > 0)
        values, weight = self.values[node, present], self.table.weight[present]
        if len(parents) < 2 or len(values) < _FEWEST_ROWS:
            return None
        some = np.sort(np.random.default_rng(0).permutation(len(values))[:_MOST_ROWS])
        values, weight = values[some], weight[some]
        columns = [values] if not n_levels else [(values == level).astype(np.float64) for level in range(n_levels)]

        def losses(joint: JointBasis | None) -> Array:
            design = self._design(key, self.table.weight, joint, some)[0]
            return np.sum([np.square(design.best_ridge(column, weight)[1]) for column in columns], axis=0)

        bases = [self.bases[parent] for parent in parents]
        products, joint = JointBasis.draw(bases, n_waves=0), JointBasis.draw(bases)
        product_losses = losses(products)
        if not _is_clearly_lower(product_losses, losses(None), weight):
            return None
        return joint if _is_clearly_lower(losses(joint), product_losses, weight) else products

    def _solved(
        self, key: _Key, weight: Array, ridge: float, joint: JointBasis | None, residuals: Array | None = None
    ) -> LearnedEquation:
        """Fit an equation with a given penalty strength; for a number, its residuals are passed."""
        design, values, weight = self._design(key, weight, joint)
        if not len(values):  # the column has few values, and the draw contains none of them
            design, values, weight = self._design(key, self.table.weight, joint)
        n_levels = self.table.n_levels[key[0]]
        if n_levels:
            weights = design.solve_levels(values.astype(np.int64), n_levels, weight, ridge)
        else:
            weights = design.solve(values, weight, ridge)
        return LearnedEquation(key[1], design.function(weights), residuals, n_levels)

    def _design(
        self, key: _Key, weight: Array, joint: JointBasis | None, some: NDArray[np.int64] | None = None
    ) -> tuple[Design, Array, Array]:
        """Return the features of the parents, and the values and weights of the rows in which the node is present."""
        node, parents = key
        rows = np.flatnonzero(~np.isnan(self.values[node]) & (weight > 0))
        rows = rows if some is None else rows[some]
        expanded = [self.expanded[parent][rows] for parent in parents]
        design = Design.of([self.bases[parent] for parent in parents], expanded, len(rows), joint)
        return design, self.values[node, rows], weight[rows]


def _is_clearly_lower(losses: Array, than: Array, weight: Array) -> bool:
    """Return whether the losses of rows are lower than others by a clear margin."""
    share = weight / weight.sum()
    gain = than - losses
    mean = float(gain @ share)
    error = float(np.sqrt(np.square(gain - mean) @ share / len(gain)))
    return mean > max(_CLEARLY * error, _MARGIN * float(than @ share))


def rows_by_weight(weight: Array) -> NDArray[np.int64]:
    """Repeat n rows in proportion to their weights, n in total; each appears once if weights are equal."""
    shares = (np.arange(len(weight)) + 0.5) / len(weight)
    return np.searchsorted(np.cumsum(weight) / weight.sum(), shares)


def _keys_of(edges: Edges) -> list[_Key]:
    """Return every node with its parents."""
    return [(k, tuple(np.flatnonzero(edges[:, k]).tolist())) for k in range(len(edges))]
