"""Structural models learned from rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from castlereg.causal.graph.causal_graph import FOR_CONFIDENCE, LEFT_OUT_ROWS, CausalGraph
from castlereg.causal.structural.fitting import Draw, Fitting, rows_by_weight
from castlereg.causal.structural.graph_draws import graph_draws
from castlereg.causal.structural.learned import LearnedSystem
from castlereg.causal.structural.model import HIDDEN_CAUSES, Population, StructuralModel
from castlereg.causal.structural.variables import Variable, fixed_codes
from castlereg.options import check_integer

_AGREEMENT_ONLY = (
    "Graphs are drawn by the agreement of networks on each arrow, which is weak evidence that it is right; bands may "
    "be too narrow. With objective='graph', arrows have calibrated probabilities."
)
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
        variables: Sequence[Variable],
        values: NDArray[np.float64],
        graph: CausalGraph,
        *,
        weight: NDArray[np.float64] | None = None,
        is_graph_given: bool = False,
        n_draws: int = 50,
        random_state: int | np.random.Generator = 0,
        progress: bool = False,
    ) -> FittedWorld:
        """Learn the equations of a graph from rows.

        Parameters
        ----------
        variables : sequence of Variable
            In the order of the graph's nodes.
        values : array of shape (variables, rows)
            Numbers, and levels as their numbers; NaN where they are missing.
        graph : CausalGraph
        weight : array of shape (rows,), optional
            Weights of the rows.
        is_graph_given : bool
            Whether to take the graph as known. Otherwise graphs are drawn from its confidence.
        n_draws : int
            Number of graphs and samples of the rows for the error bars; 0 for no error bars.
        random_state : int or Generator
        progress : bool
            Show a progress bar.
        """
        check_integer("n_draws", n_draws, least=0)
        rng = np.random.default_rng(random_state)
        weight = np.ones(values.shape[1]) if weight is None else weight
        rows = np.flatnonzero(weight > 0)
        if len(rows) > MOST_ROWS:
            rows = np.sort(rng.choice(rows, MOST_ROWS, replace=False))
        values, weight = values[:, rows], weight[rows]
        values[np.isnan(values).all(axis=1)] = 0.0  # the edges of a column without values do not matter
        fitting = Fitting(tuple(variables), values, weight, int(rng.integers(2**31)))
        graphs = [graph.edge_array] * n_draws if is_graph_given else graph_draws(graph, n_draws, rng)
        system, draws = fitting.fit(graph.edge_array, graphs, rng, progress)
        return cls(tuple(variables), system, tuple(draws), Population(fitting.values, weight), graph, is_graph_given)

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
            return ("The graph is taken as known; the bands do not account for errors in it.", HIDDEN_CAUSES)
        if not self.draws:
            return ("No graphs were drawn (n_draws=0), so answers have no error bars.", HIDDEN_CAUSES)
        if np.isfinite(self.causal_graph.confidence_array[self.causal_graph.edge_array]).all():
            is_calibrated = self.causal_graph.agreement_of == LEFT_OUT_ROWS
            return (HIDDEN_CAUSES,) if is_calibrated else (_AGREEMENT_ONLY, HIDDEN_CAUSES)
        return (
            "The confidence of the graph is not known, and the bands do not account for errors in it: fit with "
            f"objective='graph', or {FOR_CONFIDENCE}.",
            HIDDEN_CAUSES,
        )

    def to_frame(self) -> pd.DataFrame:
        """Return a row for each equation.

        ``explained`` is the share of the variance, or of the entropy of levels, that the parents explain in the
        training rows of the equation; ``noise`` is the standard deviation of the residuals of left-out rows.
        """
        densities, weight = self.system.log_densities(self.population.values), self.population.weight
        rows = []
        for k, (variable, equation) in enumerate(zip(self.variables, self.system.equations, strict=True)):
            values = self.population.values[k]
            if variable.levels is None:
                assert equation.residuals is not None
                present = np.isfinite(values) & (weight > 0)
                drawn = values[present][rows_by_weight(weight[present])]  # as the residuals are
                noise, spread = float(equation.residuals.std()), float(drawn.std())
                explained = 1 - (noise / spread) ** 2 if spread else 0.0
            else:
                present, weight = np.isfinite(values), self.population.weight
                counts = np.bincount(values[present].astype(np.int64), weight[present], equation.n_levels)
                shares = counts[counts > 0] / counts.sum()
                entropy, noise = float(-shares @ np.log(shares)), np.nan
                likely = float(np.average(densities[k][present], weights=weight[present]))
                explained = 1 + likely / entropy if entropy else 0.0
            rows.append(
                {
                    "column": variable.name,
                    "kind": "numbers" if variable.levels is None else f"{len(variable.levels)} levels",
                    "parents": ", ".join(self.names[parent] for parent in equation.parents),
                    "form": equation.form if equation.parents else "",
                    "explained": max(float(explained), 0.0) if equation.parents else 0.0,
                    "noise": noise,
                }
            )
        return pd.DataFrame(rows)
