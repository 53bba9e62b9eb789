"""Structural models: sample rows, intervene on columns, and estimate the consequences."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from castlereg.causal.structural.answers import Answer, averaged
from castlereg.causal.structural.effects import QUANTILES, Direction, Effect, WhatIf
from castlereg.causal.structural.fitting import Draw
from castlereg.causal.structural.outcomes import (
    Scenario,
    labels_of,
    measured,
    outcomes_of,
    values_set,
    weighted_mean,
    weighted_quantiles,
)
from castlereg.causal.structural.root_causes import noise_contributions
from castlereg.causal.structural.system import System, between, causal_order, reached_from
from castlereg.causal.structural.variables import Variable, as_frame, fixed_codes, from_frame, index_of
from castlereg.options import check_fraction, check_integer, check_number

if TYPE_CHECKING:
    import networkx as nx

    from castlereg.causal.graph.causal_graph import CausalGraph

Array = NDArray[np.float64]

_VALUES = 20  # number of values of an effect, by default
_OUTER = 0.025  # share of the rows outside the default values, at either end
_MOSTLY = 2.0  # ratio of the spread between graphs to that within, above which the graph is the main uncertainty
_FEW = 0.01  # share of the rows, at either end, outside which answers are extrapolated
_FEWEST_ROWS = 30  # rows that an average needs
_NEAR = 0.1  # share of the rows that count as near a value
HIDDEN_CAUSES = "This assumes that no common cause is missing from the table."


class Population(NamedTuple):
    """The rows over which answers are averaged."""

    values: Array  # (columns, rows)
    weight: Array  # (rows,)


class StructuralModel(ABC):
    """A graph with an equation for every column, which answers what would happen if columns were set to values.

    There are two kinds. The equations of a :class:`castlereg.causal.synthetic.KnownWorld` are known. Those of a
    :class:`castlereg.causal.structural.FittedWorld`, which ``estimator.structural_model()`` returns, are learned from rows;
    its answers have error bars, which cover the rows and the graphs that may be true.
    """

    if TYPE_CHECKING:  # fields of one kind, properties of the other

        @property
        def fixed(self) -> Mapping[str, Any]:
            """Columns that are held, and their values."""

        @property
        def variables(self) -> tuple[Variable, ...]:
            """Columns of the model."""

        @property
        def system(self) -> System:
            """The equations."""

        @property
        def draws(self) -> Sequence[Draw]:
            """Other graphs and equations that may be true; none in a known world."""

        @property
        def population(self) -> Population:
            """The rows over which answers are averaged."""

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

        Parameters
        ----------
        values : mapping of column to value, optional
            Pass levels by name.
        **named
            The same, as keyword arguments.

        Examples
        --------
        >>> from castlereg.causal.synthetic import KnownWorld, example_dag
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
        """Draw rows.

        Parameters
        ----------
        n_rows : int
        random_state : int or Generator
            The same number gives the same bits. Models that differ only in ``do`` draw the same noise.
        do : mapping of column to value, optional
            Columns to hold, as in :meth:`do`.

        Returns
        -------
        DataFrame
            All columns of the model; text levels are categoricals.

        Examples
        --------
        >>> from castlereg.causal.synthetic import KnownWorld, example_dag
        >>> world = KnownWorld(example_dag(), categorical={"X1": 3})
        >>> world.sample(5, random_state=0)["X1"].cat.categories.tolist()
        ['L0', 'L1', 'L2']
        """
        check_integer("n_rows", n_rows)
        model = self.do(do) if do else self
        return as_frame(model.drawn(n_rows, np.random.default_rng(random_state)), self.variables)

    def drawn(self, n_rows: int, rng: np.random.Generator) -> Array:
        """Draw rows as numbers, shape (columns, rows)."""
        system, fixed = self.system, fixed_codes(self.fixed, self.variables)
        values = np.zeros((len(self.variables), n_rows))
        for node, value in fixed.items():
            values[node] = value
        system.solve(system.draw(n_rows, rng), values, [k for k in causal_order(system.edges) if k not in fixed])
        return values

    def log_likelihood(self, rows: pd.DataFrame) -> float:
        """Return the mean over rows of the log density of all columns, each given its causes.

        Missing values and columns that are held do not count.

        Parameters
        ----------
        rows : DataFrame
            Must have every column of the model.
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
        >>> from castlereg.causal.synthetic import KnownWorld, example_dag
        >>> world = KnownWorld(example_dag(), function="linear")
        >>> world.effect("X2", "Y", values=[0.0, 1.0]).to_frame()["estimate"].diff().round(6).tolist()[1]
        1.0
        >>> world.effect("Y", "X2", by=1.0).estimate.tolist()  # X2 is a cause of Y, not an effect
        [0.0]
        """
        node, out = index_of(cause, self.variables), index_of(outcome, self.variables)
        rows = self._rows(given, [] if by is None else [node])
        if by is not None:
            self._check_shift(node, by, values)
            codes, labels = np.array([float(by)]), (float(by),)
        else:
            codes, labels = self._codes(node, values, rows)
        scenarios = [{node: code} for code in codes.tolist()]
        averages = self._averages(scenarios, out, level, rows, coverage, shift=by is not None)
        associated = np.full(len(codes), np.nan) if by is not None else self._associated(node, out, level, codes, rows)
        answer = averages.after if by is None else averages.change
        notes = self._notes([node], {} if by is not None else {node: codes}, rows, averages.direction, answer)
        missing = int(np.isnan(self.population.values[node]).sum()) if by is not None else 0
        if missing:
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
        >>> from castlereg.causal.synthetic import KnownWorld, example_dag
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
        """Return what these rows would have been if columns had been set.

        The noise of every row is inferred from its values (abduction), columns are set, and their effects are computed
        again with that noise. Noise of levels is drawn at random, so that it agrees with the levels in the rows.

        Parameters
        ----------
        rows : DataFrame
            Must have every column of the model.
        do : mapping of column to value
            One value for all rows, or one for each row.
        random_state : int
            Seed for the noise of levels and of missing values.

        Examples
        --------
        >>> from castlereg.causal.synthetic import KnownWorld, example_dag
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
            after[node] = values_set(self.variables[node], value, rows.index)
        changed = between(self.system.edges, nodes.values())
        self.system.solve(self.system.abduct(values, changed, random_state), after, changed)
        return as_frame(after, self.variables, rows.index)

    def root_causes(
        self, rows: pd.DataFrame, outcome: str, *, n_permutations: int = 100, random_state: int = 0
    ) -> pd.DataFrame:
        """Explain an unusual outcome by the noise of each column: return how much it adds, row by row.

        The noise of a column is the part that its causes do not explain. Contributions are Shapley values: the noise of
        the row replaces random noise, one column at a time, in random orders. They add up to the outcome minus its
        usual value; look at the largest first.

        Parameters
        ----------
        rows : DataFrame
            Must have every column of the model.
        outcome : str
            A numeric column.
        n_permutations : int
            Number of random orders to average over.
        random_state : int

        Returns
        -------
        DataFrame
            A row for each of ``rows``, a column for the outcome and each column that may cause it.

        Examples
        --------
        >>> from castlereg.causal.synthetic import KnownWorld, example_dag
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
        ends = [0, *accumulate(variable.n_signals for variable in self.variables)]
        signals = tuple(slice(*pair) for pair in pairwise(ends))
        values = self.coded(rows)
        contributions, nodes = noise_contributions(self.system, signals, values, out, n_permutations, random_state)
        return pd.DataFrame({self.names[k]: contributions[k] for k in sorted(nodes)}, index=rows.index)

    # --- for other packages -------------------------------------------------------------------------

    def to_dowhy(self) -> Any:
        """Return a structural causal model of DoWhy (``dowhy.gcm``) with this graph and these equations.

        Its mechanisms need no ``gcm.fit``; if it is called, they keep their equations. Columns without causes are drawn
        from their values in the rows. Numeric columns are ``AdditiveNoiseModel`` with the residuals as noise, and
        columns of levels are ``ClassifierFCM``. Levels have the values of the table; dates and durations are numbers of
        days. The model is an ``InvertibleStructuralCausalModel``, which ``gcm.counterfactual_samples`` needs, unless
        levels have causes.

        It contains only the graph of the equations, not the other graphs that may be true.
        """
        from castlereg.causal.structural.hand_over import to_dowhy

        return to_dowhy(self)

    def to_pgmpy(self) -> Any:
        """Return a network of pgmpy with this graph.

        If all columns have levels, it is a ``DiscreteBayesianNetwork`` with a table of probabilities for every column.
        Otherwise it is a ``DAG``, the graph only.
        """
        from castlereg.causal.structural.hand_over import to_pgmpy

        return to_pgmpy(self)

    def to_networkx(self) -> nx.DiGraph:
        """Return the graph for networkx.

        Edges have ``weight``, ``confidence`` and ``direction``, if these are known. Nodes have ``target``, ``kind``,
        ``parents``, ``explained`` if the equations are learned, and ``held`` if the column is held.

        Examples
        --------
        >>> from castlereg.causal.synthetic import KnownWorld, example_dag
        >>> graph = KnownWorld(example_dag()).do(X2=1.0).to_networkx()
        >>> graph.nodes["Y"]["parents"], graph.nodes["X2"]["held"]
        (['X2', 'X3'], 1.0)
        """
        from castlereg.causal.structural.hand_over import to_networkx

        return to_networkx(self)

    # --- computation --------------------------------------------------------------------------------

    def coded(self, rows: pd.DataFrame) -> Array:
        """Return a table with every column of the model as numbers, shape (columns, rows)."""
        return from_frame(rows, self.variables)

    def _averages(
        self,
        scenarios: Sequence[Scenario],
        out: int,
        level: Any,
        rows: NDArray[np.int64],
        coverage: float,
        shift: bool = False,
    ) -> _Averages:
        """Average the outcome over rows in every scenario."""
        check_fraction("coverage", coverage)
        changed = {node for scenario in scenarios for node in scenario}
        if out in changed:
            raise ValueError(f"{self.names[out]!r} is the outcome and cannot be set as well; choose another column")
        code = self._level_code(out, level)
        values, weight = self.population
        held = fixed_codes(self.fixed, self.variables)

        def outcomes(system: System, row_numbers: NDArray[np.int64]) -> Array:
            outcome = measured(outcomes_of(system, values[:, row_numbers], [{}, *scenarios], held, out, shift), code)
            return np.concatenate([outcome[1:], outcome[1:] - outcome[0], outcome[:1]])

        answer, of_main = averaged(self.system, self.draws, outcomes, rows, weight, coverage)
        n = len(scenarios)
        if code is not None:  # probabilities
            lowest = np.r_[np.zeros(n), -np.ones(n), 0]
            answer = answer._replace(low=np.maximum(answer.low, lowest), high=np.minimum(answer.high, 1))
        after, change = (Answer(*(part[at] for part in answer)) for at in (slice(n), slice(n, 2 * n)))
        label = None if code is None else (self.variables[out].levels or ())[code]
        quantiles = self._quantiles(of_main[[*range(n), -1]], out, weight[rows])
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

    def _quantiles(self, outcomes: Array, out: int, weight: Array) -> Array:
        """Return quantiles of outcomes over rows; from shape (questions, rows) to (questions, 5)."""
        if self.variables[out].levels is not None:
            return np.full((len(outcomes), len(QUANTILES)), np.nan)
        return np.stack([weighted_quantiles(values, QUANTILES, weight) for values in outcomes])

    def _direction(self, causes: set[int], out: int, held: Scenario) -> Direction:
        """Return the shares of graphs with a path from a cause to the outcome, and with one in the other direction."""
        systems: list[System] = [draw.whole for draw in self.draws] or [self.system]
        known: dict[int, tuple[bool, bool]] = {}
        for system in systems:
            if id(system) not in known:
                edges = system.edges.copy()
                edges[:, list(held)] = False
                backward = reached_from(edges, [out])[list(causes)].any()
                known[id(system)] = bool(reached_from(edges, causes)[out]), bool(backward)
        forward, backward = np.mean([known[id(system)] for system in systems], axis=0)
        return Direction(float(forward), float(backward))

    def _rows(self, given: Mapping[str, Any] | None, present: Sequence[int] = ()) -> NDArray[np.int64]:
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

    def _codes(self, node: int, values: Sequence[Any] | None, rows: NDArray[np.int64]) -> tuple[Array, tuple[Any, ...]]:
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
        low, high = weighted_quantiles(present, (_OUTER, 1 - _OUTER), self.population.weight[rows])
        codes = np.linspace(low, high, _VALUES)
        return codes, labels_of(variable, codes)

    def _check_shift(self, node: int, by: float, values: Sequence[Any] | None) -> None:
        check_number("by", by)
        if values is not None:
            raise ValueError("pass either values or by, not both")
        if self.variables[node].levels is not None:
            raise ValueError(f"{self.names[node]!r} has levels; pass values=[...] instead of by={by!r}")

    def _associated(self, node: int, out: int, level: Any, codes: Array, rows: NDArray[np.int64]) -> Array:
        """Return the mean outcome in the rows nearest to each value."""
        values, weight = self.population.values[:, rows], self.population.weight[rows]
        outcomes = measured(values[out], self._level_code(out, level))
        is_level = self.variables[node].levels is not None
        means = []
        for code in codes:
            distance = np.abs(values[node] - code)
            limit = 0.0 if is_level else weighted_quantiles(distance, (_NEAR,), weight)[0]
            near = (distance <= limit) & np.isfinite(outcomes)
            means.append(weighted_mean(outcomes[near], weight[near]) if near.any() else np.nan)
        return np.array(means)

    def _notes(
        self,
        causes: Sequence[int],
        codes: Mapping[int, Array],
        rows: NDArray[np.int64],
        direction: Direction,
        answer: Answer,
    ) -> tuple[str, ...]:
        """Return what to keep in mind about an answer."""
        notes = []
        for node, set_to in codes.items():
            notes += self._unsupported(node, set_to, self.population.values[node, rows])
        if direction.forward == 0:
            names = " or ".join(self.names[k] for k in causes)
            notes.append(f"No graph has a path from {names} to the outcome, so the effect is zero.")
        elif direction.is_known and (answer.between > _MOSTLY * answer.within).any():
            notes.append(
                "The graphs that may be true give different answers: the bands are wide because the graph is "
                "uncertain, not because there are few rows."
            )
        return (*notes, *self.caveats)

    def _unsupported(self, node: int, set_to: Array, values: Array) -> list[str]:
        variable, values = self.variables[node], values[np.isfinite(values)]
        if variable.levels is not None:
            rare = [variable.levels[int(code)] for code in set_to if (values == code).sum() < _FEWEST_ROWS]
            return [f"Few rows have {variable.name} = {', '.join(map(str, rare))}."] if rare else []
        if not len(values):
            return [f"{variable.name} is missing in all rows; the answer is extrapolated."]
        low, high = np.quantile(values, [_FEW, 1 - _FEW])
        margin = 1e-9 * max(abs(low), abs(high))
        if (set_to >= low - margin).all() and (set_to <= high + margin).all():
            return []
        ends = [
            f"{end:.4g}" if isinstance(end, float) else str(end) for end in labels_of(variable, np.array([low, high]))
        ]
        return [
            f"98 % of the rows have {variable.name} between {ends[0]} and {ends[1]}; answers outside this range are "
            "extrapolated, and their bands may be too narrow."
        ]

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
