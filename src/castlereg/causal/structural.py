"""Structural models: sample rows, intervene on columns, and estimate the consequences."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import softmax

from castlereg.causal.effects import QUANTILES, Answer, Direction, Effect, WhatIf, averaged, shown_value
from castlereg.causal.equations import Draw, LearnedSystem, System, between, causal_order, reached_from, rows_by_weight
from castlereg.causal.variables import Variable, as_frame, fixed_codes, from_frame, index_of
from castlereg.options import check_fraction, check_integer, check_number

if TYPE_CHECKING:
    import networkx as nx

    from castlereg.causal.graph import CausalGraph

Array = NDArray[np.float64]
_Rows = NDArray[np.int64]
_Scenario = Mapping[int, float]  # columns, and the values that they are set to or changed by

_VALUES = 20  # number of values of an effect, by default
_OUTER = 0.025  # share of the rows outside the default values, at either end
_MOSTLY = 2.0  # ratio of the spread between graphs to that within, above which the graph is the main uncertainty
_FEW = 0.01  # share of the rows, at either end, outside which answers are extrapolated
_FEWEST_ROWS = 30  # rows that an average needs
_NEAR = 0.1  # share of the rows that count as near a value
_CELLS, _CELLS_PER_ROW = 2_000_000, 1000  # values that are computed together, and those of a drawn row at most
_LARGEST_TABLE = 10_000_000  # maximum number of probabilities of one node, for pgmpy
HIDDEN_CAUSES = "This assumes that no common cause is missing from the table."


class Population(NamedTuple):
    """The rows over which answers are averaged."""

    values: Array  # (columns, rows)
    weight: Array  # (rows,)


class StructuralModel(ABC):
    """A graph with an equation for every column, which answers what would happen if columns were set to values.

    The equations of a :class:`castlereg.causal.KnownWorld` are known. Those of a :class:`castlereg.causal.FittedWorld`,
    which ``estimator.structural_model()`` returns, are learned from rows; its answers have error bars, which cover the
    rows and the graphs that may be true.
    """

    fixed: Mapping[str, Any]  # columns that are held, and their values
    variables: tuple[Variable, ...]
    system: System
    draws: Sequence[Draw]  # other graphs and equations that may be true; none in a known world
    population: Population

    @abstractmethod
    def graph(self, target: str | None = None) -> CausalGraph:
        """Return the graph of the equations."""

    @abstractmethod
    def to_frame(self) -> pd.DataFrame:
        """Return a row for each equation."""

    @property
    def names(self) -> list[str]:
        """Names of the columns."""
        return [variable.name for variable in self.variables]

    # --- rows ---------------------------------------------------------------------------------------

    def do(self, values: Mapping[str, Any] | None = None, /, **named: Any) -> Self:
        """Return the model under an intervention: columns held at values, whatever their causes.

        Examples
        --------
        >>> from castlereg.causal import KnownWorld, example_dag
        >>> world = KnownWorld(example_dag(), function="linear")
        >>> rows = world.do(X2=3.0).sample(1000, random_state=0)
        >>> bool((rows["X2"] == 3).all()), round(float(rows["Y"].mean()))
        (True, 3)
        """
        held = {**(values or {}), **named}
        return replace(self, fixed={**self.fixed, **held})  # type: ignore[type-var]

    def sample(
        self, n_rows: int, random_state: int | np.random.Generator, *, do: Mapping[str, Any] | None = None
    ) -> pd.DataFrame:
        """Draw rows, with columns held as in :meth:`do`; models that differ only in ``do`` draw the same noise.

        Examples
        --------
        >>> from castlereg.causal import KnownWorld, example_dag
        >>> world = KnownWorld(example_dag(), categorical={"X1": 3})
        >>> world.sample(5, random_state=0)["X1"].cat.categories.tolist()
        ['L0', 'L1', 'L2']
        """
        model = self.do(do) if do else self
        return as_frame(model.drawn(n_rows, np.random.default_rng(random_state)), self.variables)

    def drawn(self, n_rows: int, rng: np.random.Generator) -> Array:
        """Draw rows as numbers, shape (columns, rows)."""
        check_integer("n_rows", n_rows)
        fixed, values = fixed_codes(self.fixed, self.variables), np.zeros((len(self.variables), n_rows))
        for node, value in fixed.items():
            values[node] = value
        noise, nodes = self.system.draw(n_rows, rng), [k for k in causal_order(self.system.edges) if k not in fixed]
        for some in _pieces(n_rows, _CELLS_PER_ROW):
            self.system.solve(noise[:, some], values[:, some], nodes)
        return values

    def log_likelihood(self, rows: pd.DataFrame) -> float:
        """Return the mean over rows of the log density of all columns, each given its causes.

        Missing values and columns that are held do not count.
        """
        densities = self.system.log_densities(self.coded(rows))
        free = [k for k, name in enumerate(self.names) if name not in self.fixed]
        return float(densities[free].sum(axis=0).mean())

    # --- questions ----------------------------------------------------------------------------------

    def effect(
        self,
        cause: str,
        outcome: str,
        *,
        values: Sequence[Any] | None = None,
        by: float | None = None,
        given: Mapping[str, Any] | None = None,
        level: Any = None,
        coverage: float = 0.9,
    ) -> Effect:
        """Estimate an outcome when a column is set to values, on average over the rows.

        Parameters
        ----------
        cause, outcome : str
            Two columns.
        values : sequence, optional
            Values of the cause, the same in every row; by default 20 values between the 2.5 % and 97.5 % quantiles, or
            all levels.
        by : float, optional
            Amount to add to the cause in each row, in days for dates; use it instead of ``values``. The answer is then
            the change of the outcome. Rows in which the cause is missing are left out.
        given : mapping of column to level or (low, high), optional
            Average only over rows in which columns have this level, or lie in this range, before the intervention.
            None is an open end.
        level : object, optional
            Level of the outcome whose probability is estimated, by default the last; not for a numeric outcome.
        coverage : float
            Coverage of the bands.

        Examples
        --------
        >>> from castlereg.causal import KnownWorld, example_dag
        >>> world = KnownWorld(example_dag(), function="linear")
        >>> world.effect("X2", "Y", values=[0.0, 1.0]).to_frame()["estimate"].diff().round(6).tolist()[1]
        1.0
        >>> world.effect("Y", "X2", by=1.0).estimate.tolist()  # X2 is a cause of Y, not an effect
        [0.0]
        """
        node, out = index_of(cause, self.variables), index_of(outcome, self.variables)
        rows = self._rows(given, [] if by is None else [node])
        if by is not None:
            check_number("by", by)
            if values is not None:
                raise ValueError("pass either values or by, not both")
            if self.variables[node].levels is not None:
                raise ValueError(f"{cause!r} has levels; pass values=[...] instead of by={by!r}")
            codes, labels = np.array([float(by)]), (float(by),)
        else:
            codes, labels = self._codes(node, values, rows)
        scenarios = [{node: code} for code in codes.tolist()]
        averages = self._averages(scenarios, out, level, rows, coverage, shift=by is not None)
        if by is None:
            answer, associated = averages.after, self._associated(node, out, level, codes, rows)
            notes = self._notes([node], {node: codes}, rows, averages.direction, answer)
        else:
            answer, associated = averages.change, np.full(1, np.nan)
            notes = self._notes([node], {}, rows, averages.direction, answer)
            if missing := int(np.isnan(self.population.values[node]).sum()):
                notes = (f"{missing} rows without a value of {cause} are left out.", *notes)
        return Effect(
            cause, outcome, averages.level, labels, answer, averages.quantiles,
            associated, averages.direction, coverage, notes, by,
        )  # fmt: skip

    def what_if(
        self,
        do: Mapping[str, Any],
        outcome: str,
        *,
        given: Mapping[str, Any] | None = None,
        level: Any = None,
        coverage: float = 0.9,
    ) -> WhatIf:
        """Estimate an outcome when one or several columns are set together.

        Parameters
        ----------
        do : mapping of column to value
        outcome, given, level, coverage
            As in :meth:`effect`.

        Examples
        --------
        >>> from castlereg.causal import KnownWorld, example_dag
        >>> world = KnownWorld(example_dag(), function="linear")
        >>> answer = world.what_if({"X2": 1.0, "X3": -1.0}, "Y")
        >>> bool(abs(answer.after.estimate[0]) < 0.05)  # they cancel out
        True
        """
        if not do:
            raise ValueError("do is empty: pass at least one column and its value")
        scenario, out = fixed_codes(do, self.variables), index_of(outcome, self.variables)
        rows = self._rows(given)
        averages = self._averages([scenario], out, level, rows, coverage)
        codes = {node: np.array([value]) for node, value in scenario.items()}
        notes = self._notes(list(scenario), codes, rows, averages.direction, averages.change)
        return WhatIf(
            dict(do), outcome, averages.level, averages.before, averages.after, averages.change,
            averages.quantiles_before, averages.quantiles[0], averages.direction, coverage, notes,
        )  # fmt: skip

    def counterfactual(self, rows: pd.DataFrame, do: Mapping[str, Any], *, random_state: int = 0) -> pd.DataFrame:
        """Return what these rows would have been if columns had been set, to one value or to one for each row.

        The noise of every row is inferred from its values (abduction), columns are set, and their effects are computed
        again with that noise. Noise of levels is drawn at random, so that it agrees with the levels in the rows.

        Examples
        --------
        >>> from castlereg.causal import KnownWorld, example_dag
        >>> world = KnownWorld(example_dag(), function="linear")
        >>> rows = world.sample(3, random_state=0)
        >>> changed = world.counterfactual(rows, {"X2": rows["X2"] + 1})
        >>> (changed["Y"] - rows["Y"]).round(6).tolist()
        [1.0, 1.0, 1.0]
        """
        values = self.coded(rows)
        after, nodes = values.copy(), {}
        for name, value in {**self.fixed, **do}.items():
            node = nodes[name] = index_of(name, self.variables)
            after[node] = _values_set(self.variables[node], value, rows.index)
        changed = between(self.system.edges, nodes.values())
        self.system.solve(self.system.abduct(values, changed, random_state), after, changed)
        return as_frame(after, self.variables, rows.index)

    def root_causes(
        self, rows: pd.DataFrame, outcome: str, *, n_permutations: int = 100, random_state: int = 0
    ) -> pd.DataFrame:
        """Explain an unusual outcome by the noise of each column: return how much it adds, row by row.

        The noise of a column is the part that its causes do not explain. Contributions are Shapley values: the noise of
        the row replaces random noise, one column at a time, in random orders. They add up to the outcome minus its
        usual value; look at the largest first. The result has a column for the outcome, which must be numeric, and for
        each column that may cause it.

        Examples
        --------
        >>> from castlereg.causal import KnownWorld, example_dag
        >>> world = KnownWorld(example_dag(), function="linear")
        >>> odd = world.sample(1, random_state=0).assign(X3=8.0)
        >>> odd = world.counterfactual(odd, {"X3": 8.0})
        >>> world.root_causes(odd, "Y").iloc[0].idxmax()
        'X3'
        """
        out = index_of(outcome, self.variables)
        check_integer("n_permutations", n_permutations)
        if self.fixed:
            raise ValueError("root_causes needs a model without held columns; call it on the model before do(...)")
        if self.variables[out].levels is not None:
            raise ValueError(f"the outcome {outcome!r} has levels; root_causes needs a numeric outcome")
        values = self.coded(rows)
        contributions, nodes = _noise_contributions(self.system, values, out, n_permutations, random_state)
        return pd.DataFrame({self.names[k]: contributions[k] for k in sorted(nodes)}, index=rows.index)

    # --- for other packages -------------------------------------------------------------------------

    def to_dowhy(self) -> Any:
        """Return a structural causal model of DoWhy (``dowhy.gcm``) with this graph and these equations.

        Its mechanisms need no ``gcm.fit``; if it is called, they keep their equations. Dates and durations are numbers
        of days. The model is an ``InvertibleStructuralCausalModel``, which ``gcm.counterfactual_samples`` needs, unless
        levels have causes.
        """
        try:
            from dowhy import gcm
            from dowhy.gcm.causal_models import PARENTS_DURING_FIT
            from dowhy.graph import get_ordered_predecessors
        except ImportError:
            raise ImportError("to_dowhy needs the package DoWhy: pip install dowhy") from None
        variables, system, names = self.variables, self.system, list(map(str, self.names))
        graph = _bare_graph(self)
        parents = {k: get_ordered_predecessors(graph, name) for k, name in enumerate(names)}
        is_invertible = all(variables[k].levels is None for k in parents if parents[k])
        causal_model = (gcm.InvertibleStructuralCausalModel if is_invertible else gcm.StructuralCausalModel)(graph)
        held = fixed_codes(self.fixed, variables)
        for k, name in enumerate(names):
            equation = _Equation(system, variables, k, tuple(names.index(parent) for parent in parents[k]))
            values, drawn = self.population.values, gcm.EmpiricalDistribution()
            if not parents[k]:
                present = np.isfinite(values[k])
                by_weight = values[k, present][rows_by_weight(self.population.weight[present])]
                drawn.fit(_cells(variables[k], np.array([held[k]]) if k in held else by_weight))
                mechanism = drawn
            elif variables[k].levels is None:
                if isinstance(system, LearnedSystem):
                    drawn.fit(system.residuals(k))
                else:
                    drawn.fit(system.abduct(values, [k], seed=0)[system.signals[k].start])
                mechanism = gcm.AdditiveNoiseModel(equation, drawn)
            else:
                mechanism = gcm.ClassifierFCM(equation)
            causal_model.set_causal_mechanism(name, mechanism)
            graph.nodes[name][PARENTS_DURING_FIT] = parents[k]  # as gcm.fit sets it
        return causal_model

    def to_pgmpy(self) -> Any:
        """Return a ``DiscreteBayesianNetwork`` of pgmpy if all columns have levels, otherwise a ``DAG``."""
        try:
            from pgmpy.base import DAG
            from pgmpy.factors.discrete import TabularCPD
            from pgmpy.models import DiscreteBayesianNetwork
        except ImportError:
            raise ImportError("to_pgmpy needs the package pgmpy: pip install pgmpy") from None
        graph, variables = _bare_graph(self), self.variables
        is_discrete = all(variable.levels is not None for variable in variables)
        network = (DiscreteBayesianNetwork if is_discrete else DAG)()
        network.add_nodes_from(graph.nodes)
        network.add_edges_from(graph.edges)
        if not is_discrete:
            return network
        names = list(graph.nodes)
        states = {name: _cells(variable).tolist() for name, variable in zip(names, variables, strict=True)}
        for k, name in enumerate(names):
            parents = list(graph.predecessors(name))
            shares = _probabilities(self, k, [names.index(parent) for parent in parents])
            node_states = {node: states[node] for node in (name, *parents)}
            sizes = [len(states[parent]) for parent in parents]
            network.add_cpds(TabularCPD(name, len(states[name]), shares, parents, sizes, state_names=node_states))
        return network

    def to_networkx(self) -> nx.DiGraph:
        """Return the graph for networkx; nodes have ``target``, ``kind``, ``parents``, ``explained`` and ``held``.

        Examples
        --------
        >>> from castlereg.causal import KnownWorld, example_dag
        >>> graph = KnownWorld(example_dag()).do(X2=1.0).to_networkx()
        >>> graph.nodes["Y"]["parents"], graph.nodes["X2"]["held"]
        (['X2', 'X3'], 1.0)
        """
        graph, frame = self.graph().to_networkx(), self.to_frame()
        for row in frame.to_dict("records"):
            attributes = graph.nodes[str(row["column"])]
            attributes |= {name: row[name] for name in ("kind", "explained") if name in frame}
        for name, value in self.fixed.items():
            graph.nodes[name]["held"] = value
        for name, attributes in graph.nodes(data=True):
            attributes["parents"] = list(graph.predecessors(name))
        return graph

    # --- computation --------------------------------------------------------------------------------

    def coded(self, rows: pd.DataFrame) -> Array:
        """Return a table with every column of the model as numbers, shape (columns, rows)."""
        return from_frame(rows, self.variables)

    def _averages(
        self, scenarios: Sequence[_Scenario], out: int, level: Any, rows: _Rows, coverage: float, shift: bool = False
    ) -> _Averages:
        """Average the outcome over rows in every scenario."""
        check_fraction("coverage", coverage)
        changed = {node for scenario in scenarios for node in scenario}
        if out in changed:
            raise ValueError(f"{self.names[out]!r} is the outcome and cannot be set as well; choose another column")
        code, held = self._level_code(out, level), fixed_codes(self.fixed, self.variables)
        values, weight = self.population

        def outcomes(system: System, row_numbers: _Rows) -> Array:
            outcome = _measured(_outcomes_of(system, values[:, row_numbers], [{}, *scenarios], held, out, shift), code)
            return np.concatenate([outcome[1:], outcome[1:] - outcome[0], outcome[:1]])

        answer, main_outcomes = averaged(self.system, self.draws, outcomes, rows, weight, coverage)
        n = len(scenarios)
        if code is not None:  # probabilities
            lowest = np.r_[np.zeros(n), -np.ones(n), 0]
            answer = answer._replace(low=np.maximum(answer.low, lowest), high=np.minimum(answer.high, 1))
        after, change = (Answer(*(part[at] for part in answer)) for at in (slice(n), slice(n, 2 * n)))
        label = None if code is None else (self.variables[out].levels or ())[code]
        quantiles = np.full((n + 1, len(QUANTILES)), np.nan)
        if code is None:
            quantiles[:] = [_weighted_quantiles(main_outcomes[i], QUANTILES, weight[rows]) for i in (*range(n), -1)]
        before, direction = float(answer.estimate[-1]), self._direction(changed, out, held)
        return _Averages(before, after, change, quantiles[-1], quantiles[:-1], direction, label)

    def _level_code(self, out: int, level: Any) -> int | None:
        variable = self.variables[out]
        if variable.levels is None:
            if level is not None:
                raise ValueError(
                    f"level={level!r} needs an outcome with levels, but {variable.name!r} is numeric; drop level"
                )
            return None
        return len(variable.levels) - 1 if level is None else int(variable.code(level))

    def _direction(self, causes: set[int], out: int, held: _Scenario) -> Direction:
        """Return the shares of graphs with a path from a cause to the outcome, and with one in the other direction."""
        paths, systems = [], list[System](draw.whole for draw in self.draws)
        for system in systems or [self.system]:
            edges = system.edges.copy()
            edges[:, list(held)] = False
            paths.append((reached_from(edges, causes)[out], reached_from(edges, [out])[list(causes)].any()))
        forward, backward = np.mean(paths, axis=0)
        return Direction(float(forward), float(backward), self._is_evidence)

    def _rows(self, given: Mapping[str, Any] | None, present: Sequence[int] = ()) -> _Rows:
        """Return the rows that fulfil ``given`` and have no missing values in the columns ``present``."""
        values, weight = self.population
        is_selected = (weight > 0) & ~np.isnan(values[list(present)]).any(axis=0)
        for name, wanted in (given or {}).items():
            node = index_of(name, self.variables)
            if self.variables[node].levels is not None:
                is_selected &= values[node] == self.variables[node].code(wanted)
                continue
            if not isinstance(wanted, tuple | list) or len(wanted) != 2:
                raise ValueError(f"given[{name!r}]={wanted!r} must be a range (low, high), because {name!r} is numeric")
            low, high = (
                open_end if end is None or end in (-np.inf, np.inf) else self.variables[node].code(end)
                for end, open_end in zip(wanted, (-np.inf, np.inf), strict=True)
            )
            is_selected &= (low <= values[node]) & (values[node] <= high)
        rows = np.flatnonzero(is_selected)
        if len(rows) < _FEWEST_ROWS:
            reason = "fulfil the conditions in given" if given else "can be averaged"
            raise ValueError(f"only {len(rows)} rows {reason}, but an average needs at least {_FEWEST_ROWS}")
        return rows

    def _codes(self, node: int, values: Sequence[Any] | None, rows: _Rows) -> tuple[Array, tuple[Any, ...]]:
        """Return the values of a column that is set, as numbers and in the units of the table."""
        variable = self.variables[node]
        if values is not None:
            if isinstance(values, str) or not hasattr(values, "__len__") or not len(values):
                raise ValueError(f"values={values!r} must be a list with at least one value")
            return np.array([variable.code(value) for value in values]), tuple(values)
        if variable.levels is not None:
            return np.arange(len(variable.levels), dtype=np.float64), variable.levels
        present = self.population.values[node, rows]
        if np.isnan(present).all():
            raise ValueError(f"all values of {variable.name!r} are missing in these rows; pass values=[...]")
        low, high = _weighted_quantiles(present, (_OUTER, 1 - _OUTER), self.population.weight[rows])
        codes = np.linspace(low, high, _VALUES)
        return codes, _labels_of(variable, codes)

    def _associated(self, node: int, out: int, level: Any, codes: Array, rows: _Rows) -> Array:
        """Return the mean outcome in the rows nearest to each value."""
        values, weight = self.population.values[:, rows], self.population.weight[rows]
        outcomes = _measured(values[out], self._level_code(out, level))
        is_level = self.variables[node].levels is not None
        means = []
        for code in codes:
            distance = np.abs(values[node] - code)
            limit = 0.0 if is_level else _weighted_quantiles(distance, (_NEAR,), weight)[0]
            near = (distance <= limit) & np.isfinite(outcomes)
            means.append(np.average(outcomes[near], weights=weight[near]) if near.any() else np.nan)
        return np.array(means)

    def _notes(
        self, causes: Sequence[int], codes: Mapping[int, Array], rows: _Rows, direction: Direction, answer: Answer
    ) -> tuple[str, ...]:
        """Return what to keep in mind about an answer."""
        notes = [note for node, set_to in codes.items() for note in self._unsupported(node, set_to, rows)]
        if direction.forward == 0 and direction.is_known:
            notes.append(self._note_without_path(" or ".join(self.names[k] for k in causes)))
        elif direction.is_known and (answer.between > _MOSTLY * answer.within).any():
            notes.append(
                "The graphs that may be true give different answers: the bands are wide because the graph is "
                "uncertain, not because there are few rows."
            )
        return (*notes, *self.caveats)

    def _unsupported(self, node: int, set_to: Array, rows: _Rows) -> list[str]:
        variable, values = self.variables[node], self.population.values[node, rows]
        values = values[np.isfinite(values)]
        if variable.levels is not None:
            rare = [variable.levels[int(code)] for code in set_to if (values == code).sum() < _FEWEST_ROWS]
            return [f"Few rows have {variable.name} = {', '.join(map(str, rare))}."] if rare else []
        if not len(values):
            return [f"{variable.name} is missing in all rows; the answer is extrapolated."]
        low, high = np.quantile(values, [_FEW, 1 - _FEW])
        margin = 1e-9 * max(abs(low), abs(high))
        if (set_to >= low - margin).all() and (set_to <= high + margin).all():
            return []
        first, last = map(shown_value, _labels_of(variable, np.array([low, high])))
        return [
            f"98 % of the rows have {variable.name} between {first} and {last}; answers outside this range are "
            "extrapolated, and their bands may be too narrow."
        ]

    @property
    def _is_evidence(self) -> bool:
        """Whether the graph is known, or drawn by its probabilities."""
        return True

    def _note_without_path(self, causes: str) -> str:
        """Return a note for causes from which no path leads to the outcome; only a known graph says that it is zero."""
        return f"No path leads from {causes} to the outcome, so the effect is zero."

    @property
    def caveats(self) -> tuple[str, ...]:
        """What to keep in mind about every answer."""
        return ()


class _Averages(NamedTuple):
    before: float
    after: Answer
    change: Answer
    quantiles_before: Array  # (quantiles,)
    quantiles: Array  # (scenarios, quantiles)
    direction: Direction
    level: Any


def _outcomes_of(
    system: System, values: Array, scenarios: Sequence[_Scenario], held: _Scenario, out: int, shift: bool = False
) -> Array:
    """Return the outcome of rows in every scenario, each row with its own noise; shape (scenarios, rows).

    Columns are set to the values of a scenario, or changed by them; ``held`` columns are the same in all scenarios.
    Missing outcomes are drawn.
    """
    nodes = between(system.edges, sorted({*held, *(node for scenario in scenarios for node in scenario)}), [out])
    if out not in nodes and np.isnan(values[out]).any():
        nodes = [*nodes, out]
    if not nodes and out not in held:  # no path leads to the outcome
        return np.tile(values[out], (len(scenarios), 1))
    noise, n_rows = system.abduct(values, nodes, seed=0), values.shape[1]
    outcomes = np.empty((len(scenarios), n_rows))
    for piece in _pieces(len(scenarios), n_rows * len(values)):
        some = scenarios[piece]
        after = np.tile(values, len(some))
        for i, scenario in enumerate(some):
            scenario_values = after[:, i * n_rows : (i + 1) * n_rows]
            for node, code in held.items():
                scenario_values[node] = code
            for node, code in scenario.items():
                scenario_values[node] = scenario_values[node] + code if shift else code
        system.solve(np.tile(noise, len(some)), after, nodes)
        outcomes[piece] = after[out].reshape(len(some), n_rows)
    return outcomes


def _pieces(count: int, cells: int) -> list[slice]:
    """Return pieces of something of which each item needs this number of values in memory."""
    at_once = max(1, _CELLS // cells)
    return [slice(start, start + at_once) for start in range(0, count, at_once)]


def _measured(values: Array, code: int | None) -> Array:
    """Return numbers unchanged, and levels as 1 or 0 for those that match ``code``; NaN where they are missing."""
    return values if code is None else np.where(np.isnan(values), np.nan, values == code)


def _weighted_quantiles(values: Array, shares: Sequence[float], weight: Array) -> Array:
    """Return quantiles of the values that are not missing."""
    present = np.isfinite(values)
    if (weight == weight[0]).all():
        return np.asarray(np.quantile(values[present], shares))
    return np.asarray(np.quantile(values[present], shares, weights=weight[present], method="inverted_cdf"))


def _labels_of(variable: Variable, codes: Array) -> tuple[Any, ...]:
    """Return values in the units of the table, and levels by name."""
    return tuple(pd.Series(variable.decode(codes)).tolist())


def _values_set(variable: Variable, value: Any, index: pd.Index) -> float | Array:
    """Return the number or numbers that a column is set to: one for all rows, or one each; a Series is aligned."""
    if isinstance(value, str) or not hasattr(value, "__len__"):
        return variable.code(value)
    if isinstance(value, pd.Series) and not value.index.equals(index):
        if not value.index.is_unique or set(value.index) != set(index):
            raise ValueError(
                f"the index of the values of {variable.name!r} differs from that of the rows; align it or pass an array"
            )
        value = value.reindex(index)
    if len(value) != len(index):
        raise ValueError(
            f"do has {len(value)} values for {variable.name!r}, but there are {len(index)} rows; pass one per row"
        )
    return variable.codes(value)


def _noise_contributions(
    system: System, values: Array, outcome: int, n_permutations: int, seed: int
) -> tuple[Array, list[int]]:
    """Return how much the noise of each node adds to the outcome, shape (nodes, rows), and the nodes that affect it."""
    needed = reached_from(system.edges.T, [outcome])
    needed[outcome] = True
    nodes = [k for k in causal_order(system.edges) if needed[k]]
    observed = system.abduct(values, nodes, seed)
    n_rows, rng = values.shape[1], np.random.default_rng(seed)
    contributions = np.zeros(values.shape)
    for _ in range(n_permutations):
        noise = system.draw(n_rows, rng)
        state = np.zeros(values.shape)
        system.solve(noise, state, nodes)
        before = state[outcome].copy()
        for node in rng.permutation(nodes).tolist():
            noise[system.signals[node]] = observed[system.signals[node]]
            system.solve(noise, state, nodes)
            contributions[node] += state[outcome] - before
            before = state[outcome].copy()
    return contributions / n_permutations, nodes


# --- for DoWhy and pgmpy ------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Equation:
    """The equation of one column as a function of its causes, in the units of the user's table.

    It has the methods that DoWhy needs of a prediction model. The equation is already learned, so ``fit`` does nothing.
    """

    system: System = field(repr=False)
    variables: tuple[Variable, ...] = field(repr=False)
    node: int
    parents: tuple[int, ...]  # in the order of the columns of X

    def fit(self, X: Any, Y: Any) -> None:
        """Do nothing."""

    def clone(self) -> _Equation:
        """Return the equation itself, because it is immutable."""
        return self

    def predict(self, X: NDArray[Any]) -> NDArray[Any]:
        """Return the number without its noise, or the most likely level, for each row of causes; shape (rows, 1)."""
        outputs = self._outputs(X)
        return outputs.T if self.variables[self.node].levels is None else self.classes[outputs.argmax(axis=0)][:, None]

    def predict_probabilities(self, X: NDArray[Any]) -> Array:
        """Return the probability of each level for each row of causes, shape (rows, levels)."""
        return np.asarray(softmax(self._outputs(X), axis=0).T)

    @property
    def classes(self) -> NDArray[Any]:
        """The levels, as in the user's table."""
        return _cells(self.variables[self.node])

    def _outputs(self, X: NDArray[Any]) -> Array:
        """Return a number, or a score for each level, from the causes; shape (signals, rows)."""
        values = np.zeros((len(self.variables), len(X)))
        for parent, column in zip(self.parents, np.asarray(X).T, strict=True):
            variable = self.variables[parent]
            values[parent] = column.astype(np.float64) if variable.levels is None else variable.codes(column)
        return self.system.given(self.node, values)


def _cells(variable: Variable, codes: Array | None = None) -> NDArray[Any]:
    """Return numbers unchanged, and levels by name, by default all; dates and durations remain numbers of days."""
    codes = np.arange(variable.n_signals, dtype=np.float64) if codes is None else codes
    if variable.levels is None:
        return codes
    is_text = any(isinstance(level, str) for level in variable.levels)
    levels = np.array([str(level) if is_text else level for level in variable.levels], object if is_text else None)
    return np.asarray(levels[codes.astype(np.int64)])


def _bare_graph(model: StructuralModel) -> nx.DiGraph:
    """Return the nodes, and the edges except those into held columns."""
    import networkx as nx

    names, graph = list(map(str, model.names)), nx.DiGraph()
    graph.add_nodes_from(names)
    edges = np.argwhere(model.system.edges).tolist()
    graph.add_edges_from((names[j], names[k]) for j, k in edges if names[k] not in model.fixed)
    return graph


def _probabilities(model: StructuralModel, node: int, parents: list[int]) -> Array:
    """Return the probability of each level for each combination of the parents' levels, the last varying fastest."""
    variables, held = model.variables, fixed_codes(model.fixed, model.variables)
    if node in held:
        return (np.arange(variables[node].n_signals) == held[node]).astype(np.float64)[:, None]
    counts = [variables[parent].n_signals for parent in parents]
    if prod(counts, start=variables[node].n_signals) > _LARGEST_TABLE:
        raise ValueError(
            f"the causes of {variables[node].name!r} have {prod(counts):,} combinations of levels, too many for a "
            "table of probabilities; use to_networkx(), which exports the graph only"
        )
    values = np.zeros((len(variables), prod(counts)))
    values[parents] = np.indices(counts).reshape(len(parents), prod(counts))
    return np.asarray(softmax(model.system.given(node, values), axis=0))
