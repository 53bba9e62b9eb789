"""Structural models learned from rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from castlereg.causal.equations import Draw, Edges, Fitting, LearnedSystem, reached_from, rows_by_weight
from castlereg.causal.graph import CausalGraph
from castlereg.causal.structural import HIDDEN_CAUSES, Population, StructuralModel
from castlereg.causal.variables import Variable, Variables, fixed_codes
from castlereg.options import check_integer
from castlereg.table.encoding import Preprocessing, Rows

_UNLIKELY = 0.02  # pairs with a lower probability of an edge never have one
_FIRST_SWEEPS, _SWEEPS = 5, 2  # sweeps over all pairs, before the first graph and between graphs
MOST_ROWS = 20_000  # equations are fitted to at most this many rows, drawn at random


@dataclass(frozen=True, eq=False, repr=False)
class FittedWorld(StructuralModel):
    """A structural model with learned equations; ``estimator.structural_model()`` returns it.

    Attributes
    ----------
    causal_graph : CausalGraph
        The graph of the equations.
    is_graph_given : bool
        Whether the graph is taken as known. Otherwise answers are averaged over graphs that may be true.
    """

    variables: tuple[Variable, ...]
    system: LearnedSystem
    draws: tuple[Draw, ...]
    population: Population
    causal_graph: CausalGraph
    is_graph_given: bool
    fixed: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        fixed_codes(self.fixed, self.variables)

    @classmethod
    def fit(
        cls,
        table: Variables,
        graph: CausalGraph,
        *,
        is_graph_given: bool = False,
        n_draws: int = 50,
        random_state: int | np.random.Generator = 0,
        progress: bool = False,
    ) -> FittedWorld:
        """Learn the equations of a graph from rows, with the variables in the order of its nodes.

        Unless the graph is given, which takes it as known, ``n_draws`` graphs are drawn from its probabilities. Each
        draw has its own sample of the rows, for the error bars; there are none if ``n_draws`` is 0.
        """
        check_integer("n_draws", n_draws, least=0)
        # Another stream than that of the same number elsewhere, which may have drawn the rows.
        rng = np.random.default_rng(np.random.default_rng(random_state).integers(2**63))
        rows = np.flatnonzero(table.weight > 0)
        if len(rows) > MOST_ROWS:
            rows = np.sort(rng.choice(rows, MOST_ROWS, replace=False))
        table = table.take(rows)
        table.values[:, np.isnan(table.values).all(axis=0)] = 0.0  # edges of a column without values do not matter
        graphs = [graph.edge_array] * n_draws if is_graph_given else _graph_draws(graph, n_draws, rng)
        system, draws = Fitting(table).fit(graph.edge_array, graphs, rng, progress)
        population = Population(table.values.T, table.weight)
        return cls(table.columns, system, tuple(draws), population, graph, is_graph_given)

    def __repr__(self) -> str:
        held = f", {', '.join(f'{name}={value!r}' for name, value in self.fixed.items())} held" if self.fixed else ""
        return f"<FittedWorld: {len(self.variables)} columns, {int(self.system.edges.sum())} edges{held}>"

    def graph(self, target: str | None = None) -> CausalGraph:
        """Return the graph of the equations without edges into held columns; by default, with its own target."""
        graph = self.causal_graph if target is None else replace(self.causal_graph, targets=(target,))
        for name in self.fixed:
            for parent in graph.parents(name):
                graph = graph.without_edge(parent, name)
        return graph

    @property
    def caveats(self) -> tuple[str, ...]:
        """What to keep in mind about every answer."""
        if self.is_graph_given:
            caveat = "The graph is taken as known; the bands do not account for errors in it."
        elif not self.draws:
            caveat = "No graphs were drawn (n_draws=0), so answers have no error bars."
        elif self._is_evidence:
            return (HIDDEN_CAUSES,)
        else:
            caveat = "The probabilities of the edges are not known; the bands do not account for errors in the graph."
        return (caveat, HIDDEN_CAUSES)

    @property
    def _is_evidence(self) -> bool:
        has_probabilities = np.isfinite(self.causal_graph.confidence_array[self.causal_graph.edge_array]).all()
        return self.is_graph_given or (bool(self.draws) and bool(has_probabilities))

    def _note_without_path(self, causes: str) -> str:
        """Return a note for causes from which no path leads to the outcome; only a given graph says that it is zero."""
        if self.is_graph_given:
            return f"No path of the given graph leads from {causes} to the outcome, so the effect is zero."
        return f"None of the {len(self.draws)} graphs that may be true has a path from {causes} to the outcome."

    def to_frame(self) -> pd.DataFrame:
        """Return a row for each equation.

        ``explained`` is the share of the variance, or of the entropy of levels, that the parents explain in the
        training rows of the equation; ``noise`` is the standard deviation of the residuals of left-out rows.
        """
        densities, rows = self.system.log_densities(self.population.values), []
        for k, (variable, equation) in enumerate(zip(self.variables, self.system.equations, strict=True)):
            present = np.isfinite(self.population.values[k])
            values, weight = self.population.values[k, present], self.population.weight[present]
            explained, noise = 0.0, np.nan
            if equation.residuals is not None:
                drawn = values[rows_by_weight(weight)]  # as the residuals are
                noise = float(equation.residuals.std())
                explained = 1 - (noise / float(drawn.std())) ** 2 if drawn.std() else 0.0
            elif (entropy := _entropy(np.bincount(values.astype(np.int64), weight))) > 0:
                explained = 1 + float(np.average(densities[k][present], weights=weight)) / entropy
            form = "sum of functions" if equation.function.joint is None else "joint function"
            form, explained = (form, max(explained, 0.0)) if equation.parents else ("", 0.0)
            kind = "numbers" if variable.levels is None else f"{len(variable.levels)} levels"
            parents = ", ".join(self.names[parent] for parent in equation.parents)
            rows.append((variable.name, kind, parents, form, explained, noise))
        return pd.DataFrame(rows, columns=["column", "kind", "parents", "form", "explained", "noise"])


def _entropy(counts: NDArray[Any]) -> float:
    shares = counts[counts > 0] / counts.sum()
    return float(-shares @ np.log(shares))


def _graph_draws(graph: CausalGraph, n_draws: int, rng: np.random.Generator) -> list[Edges]:
    """Draw acyclic graphs in which each pair has an edge, and each edge its direction, with the graph's probabilities.

    Pairs are independent, given that the graph is acyclic: one pair at a time is drawn again, without directions that
    would close a cycle (Gibbs sampling). If probabilities are not known, all draws are the graph itself.
    """
    joined = graph.confidence_array
    pairs = [(j, k) for j, k in np.argwhere(np.triu(joined >= _UNLIKELY, 1)).tolist()]
    if not n_draws or not pairs or not np.isfinite(joined[graph.edge_array]).all():
        return [graph.edge_array] * n_draws
    forward = np.nan_to_num(graph.direction_array, nan=0.5)
    edges, drawn = graph.edge_array & (joined >= _UNLIKELY), []
    for sweep in range(_FIRST_SWEEPS + _SWEEPS * n_draws):
        for index in rng.permutation(len(pairs)):
            j, k = pairs[index]
            edges[j, k] = edges[k, j] = False
            shares = joined[j, k] * np.array([forward[j, k], 1 - forward[j, k], 0.0])
            shares[2] = 1 - joined[j, k]
            for way, (cause, effect) in enumerate(((j, k), (k, j))):
                if shares[way] and reached_from(edges, [effect])[cause]:
                    shares[way] = 0.0
            total = shares.sum()
            choice = 2 if total <= 0 else int(np.searchsorted(np.cumsum(shares / total), rng.random()))
            if choice < 2:
                edges[(j, k) if choice == 0 else (k, j)] = True
        if sweep >= _FIRST_SWEEPS and (sweep - _FIRST_SWEEPS) % _SWEEPS == 0:
            drawn.append(edges.copy())
    return drawn


def structural_model(preprocessing: Preprocessing, rows: Rows, graph: CausalGraph, **options: Any) -> FittedWorld:
    """Learn the equations of a graph, with nodes in any order, from coded rows; see :meth:`FittedWorld.fit`."""
    if not isinstance(graph, CausalGraph):
        raise ValueError(f"graph={graph!r} must be a CausalGraph, such as graph_ of a fitted model")
    table = Variables.of_rows(preprocessing, rows)
    return FittedWorld.fit(table, graph.in_order_of(table.names), **options)
