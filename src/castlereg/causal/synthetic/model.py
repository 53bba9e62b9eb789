"""Known worlds: a graph, the functions of its edges, and the noise of every node."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cached_property, partial
from itertools import count, islice
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from castlereg.causal.graph.causal_graph import CausalGraph
from castlereg.causal.structural.model import Population, StructuralModel
from castlereg.causal.structural.system import System
from castlereg.causal.structural.variables import Variable
from castlereg.causal.synthetic.equations import (
    FUNCTIONS,
    NOISES,
    SMOOTH,
    Equations,
    effects,
    equations,
    node_features,
    propagate,
)
from castlereg.causal.synthetic.graphs import edge_weights
from castlereg.causal.synthetic.system import KnownSystem
from castlereg.options import check_choice, check_integer, check_number

Array = NDArray[np.float64]

_POPULATION = 10_000


@dataclass(frozen=True, eq=False, repr=False)
class KnownWorld(StructuralModel):
    """A structural model with known equations: every node is a sum over its parents plus noise.

    It draws rows with a known graph, and answers every question of a
    :class:`~castlereg.causal.structural.StructuralModel` exactly, without error bars.

    A numeric node is ``sum over parents of weight * function(parent) + noise``. A categorical node has such a sum for
    each level and takes the level with the highest sum after adding Gumbel noise, which draws it from their softmax.
    This is the paper's Algorithm 1, with more functions and kinds of noise.

    Parameters
    ----------
    dag : DataFrame
        ``dag.loc[cause, effect]`` is the weight of the edge, 0 for none.
    function : {"sigmoid", "linear", "released_sigmoid", "sine", "smooth"}
        Function of each parent before the sum. ``released_sigmoid`` is the released code's ``1 + exp(-x)``. ``smooth``
        draws a separate function for every edge from a Gaussian process with unit variance and length scale 1.
    noise : {"gaussian", "uniform", "laplace", "gumbel"} or mapping of node to these
        Distribution of the noise, always with mean zero. Nodes missing from a mapping have Gaussian noise.
    noise_std : float, or mapping or Series of node to float
        Standard deviation of the noise; 1 for nodes missing from a mapping. Not used for categorical nodes.
    categorical : mapping of node to int
        Number of levels of categorical nodes, named ``L0``, ``L1``, ... Each level of a categorical parent has a random
        effect on its children, instead of the function.
    random_state : int or Generator
        Seed for smooth functions and effects of levels, which all rows of a model share.
    fixed : mapping of node to value
        Nodes that are held at a value, regardless of their parents; see :meth:`do`.

    Examples
    --------
    >>> from castlereg.causal.synthetic import KnownWorld, example_dag
    >>> model = KnownWorld(example_dag(), function="linear", noise_std=0.5)
    >>> model.sample(3, random_state=0).shape
    (3, 10)
    >>> model.graph("Y").parents("Y")
    ['X2', 'X3']
    """

    dag: pd.DataFrame
    _: KW_ONLY
    function: str = "sigmoid"
    noise: str | Mapping[str, str] = "gaussian"
    noise_std: float | Mapping[str, float] | pd.Series = 1.0
    categorical: Mapping[str, int] = field(default_factory=dict)
    random_state: int | np.random.Generator = 0
    fixed: Mapping[str, float | str] = field(default_factory=dict)

    edge_weights: Array = field(init=False)
    noise_kinds: tuple[str, ...] = field(init=False)
    noise_stds: tuple[float, ...] = field(init=False)
    seed: int = field(init=False)

    def __post_init__(self) -> None:
        def store(name: str, value: object) -> None:
            object.__setattr__(self, name, value)

        check_choice("function", self.function, [*FUNCTIONS, SMOOTH])
        weights, names = edge_weights(self.dag), list(self.dag.columns)
        if not names:
            raise ValueError("the graph has no nodes")
        for option in ("noise", "noise_std", "categorical", "fixed"):
            if isinstance(by_name := getattr(self, option), Mapping | pd.Series):
                store(option, dict(by_name))
                unknown = [name for name in dict(by_name) if name not in names]
                if unknown:
                    known = ", ".join(map(str, names))
                    raise ValueError(f"unknown node {unknown[0]!r} in {option}; the nodes are {known}")
        for name, n_levels in self.categorical.items():
            check_integer(f"categorical[{name!r}]", n_levels, least=2)
        for name, value in self.fixed.items():
            if name in self.categorical:
                check_choice(f"the value of {name!r}", value, self._levels(name))
            else:
                check_number(f"the value of {name!r}", value)
        kinds = _by_node("noise", self.noise, "gaussian", names, partial(check_choice, choices=NOISES))
        stds = _by_node("noise_std", self.noise_std, 1.0, names, partial(check_number, least=0))
        held = np.isin(np.arange(len(names)), [names.index(name) for name in self.fixed])
        weights = np.where(held, 0.0, weights)
        weights.setflags(write=False)
        seed = self.random_state
        if isinstance(seed, np.random.Generator):
            seed = int(seed.integers(2**63))
        check_integer("random_state", seed, least=0)
        store("dag", pd.DataFrame(np.where(held, 0, self.dag), index=self.dag.index, columns=self.dag.columns))
        store("edge_weights", weights)
        store("noise_kinds", tuple(kinds))
        store("noise_stds", tuple(map(float, stds)))
        store("random_state", seed)  # a copy of the model has the same functions
        store("seed", int(seed))

    def __repr__(self) -> str:
        edges = np.count_nonzero(self.edge_weights)
        held = f", {', '.join(f'{name}={value!r}' for name, value in self.fixed.items())} held" if self.fixed else ""
        return f"<KnownWorld: {len(self.names)} nodes, {edges} edges, {self.function}{held}>"

    @cached_property
    def variables(self) -> tuple[Variable, ...]:
        """Names and levels of the nodes."""
        return tuple(
            Variable(name, tuple(self._levels(name)) if name in self.categorical else None) for name in self.dag.columns
        )

    @cached_property
    def system(self) -> System:
        """The equations, for questions about rows."""
        return KnownSystem(self.equations, self.edge_weights, self.noise_kinds, self.noise_stds)

    @property
    def draws(self) -> tuple[()]:
        """Always empty: a known world has no error bars."""
        return ()

    @cached_property
    def population(self) -> Population:
        """The rows over which answers are averaged: 10,000 draws."""
        values = self.drawn(_POPULATION, np.random.default_rng([self.seed, _POPULATION]))
        return Population(values, np.ones(_POPULATION))

    def coded(self, rows: pd.DataFrame) -> Array:
        """Return a table with every node as numbers, shape (nodes, rows); missing values raise."""
        values = super().coded(rows)
        if np.isnan(values).any():
            name = self.names[int(np.argmax(np.isnan(values).any(axis=1)))]
            raise ValueError(f"column {name!r} has missing values or unknown levels; a known world needs complete rows")
        return values

    def to_frame(self) -> pd.DataFrame:
        """Return a row for each equation: column, kind, parents, function, and standard deviation of the noise."""
        return pd.DataFrame(
            {
                "column": self.names,
                "kind": ["numbers" if v.levels is None else f"{len(v.levels)} levels" for v in self.variables],
                "parents": [", ".join(map(str, self.dag.index[self.dag[name] != 0])) for name in self.names],
                "function": self.function,
                "noise": [np.nan if v.levels else std for v, std in zip(self.variables, self.noise_stds, strict=True)],
            }
        )

    def graph(self, target: str | None = None) -> CausalGraph:
        """Return the true graph for a target, by default the last node, with the absolute values of the weights."""
        target = self.names[-1] if target is None else target
        sizes = np.abs(self.edge_weights)
        edges = sizes > 0
        joined = edges | edges.T
        direction = np.where(joined, edges.astype(np.float64), np.nan)
        names = tuple(map(str, self.names))
        return CausalGraph(names, (str(target),), sizes, sizes, joined.astype(np.float64), direction)

    # --- rows --------------------------------------------------------------------------------------

    def drawn(self, n_rows: int, rng: np.random.Generator) -> Array:
        """Draw rows as numbers, shape (nodes, rows).

        Worlds that differ only in ``do`` or in noise columns draw the same noise for the nodes they share. Values that
        exceed the range of floating-point numbers raise an OverflowError.
        """
        signals = self.signals(n_rows, rng)
        if not self.categorical:
            return signals
        return np.stack([self.equations.values(node, signals) for node in range(len(self.names))])

    def with_noise_columns(self, n_columns: int) -> KnownWorld:
        """Return the model with additional columns of standard normal noise, without edges.

        The new nodes come last and are named ``noise1``, ``noise2``, ..., without names that are already used.

        Examples
        --------
        >>> from castlereg.causal.synthetic import example_dag
        >>> KnownWorld(example_dag()).with_noise_columns(2).names[-3:]
        ['Y', 'noise1', 'noise2']
        """
        check_integer("n_columns", n_columns, least=0)
        free = (name for i in count(1) if (name := f"noise{i}") not in self.names)
        names = [*self.names, *islice(free, n_columns)]
        return replace(
            self,
            dag=self.dag.reindex(index=names, columns=names, fill_value=0),
            noise=dict(zip(self.names, self.noise_kinds, strict=True)),
            noise_std=dict(zip(self.names, self.noise_stds, strict=True)),
        )

    # --- equations ---------------------------------------------------------------------------------

    @cached_property
    def equations(self) -> Equations:
        """The structural equations, prepared for sampling."""
        n_levels = tuple(int(self.categorical.get(name, 0)) for name in self.names)
        if self.function != SMOOTH and not self.categorical:
            plain = node_features(self.function, 0, np.random.default_rng(0))
            return equations(self.edge_weights, n_levels, (plain,) * len(n_levels))
        features, of_nodes = [], []
        for node, levels in enumerate(n_levels):
            # Each node has its own generator, so its functions do not change when edges or other nodes do.
            rng = np.random.default_rng([self.seed, node])
            features.append(node_features(self.function, levels, rng))
            of_nodes.append(effects(self.function, levels, n_levels, features[-1].size, rng))
        return equations(self.edge_weights, n_levels, tuple(features), of_nodes)

    def signals(self, n_rows: int, random_state: int | np.random.Generator) -> Array:
        """Draw the signals of all nodes, shape (signals, rows); ``equations.signal_slices`` locates those of each node.

        They are the values of numeric nodes, and noisy scores of the levels of categorical ones.
        """
        check_integer("n_rows", n_rows)
        rng = np.random.default_rng(random_state)
        slices = self.equations.signal_slices
        signals = self.system.draw(n_rows, rng)
        for name, value in self.fixed.items():  # after drawing, to keep the noise of the other nodes
            held = value if name not in self.categorical else [[level == value] for level in self._levels(name)]
            signals[slices[self.names.index(name)]] = held
        with np.errstate(over="ignore", invalid="ignore"):
            propagate(self.equations, signals)
        finite = np.atleast_1d(np.isfinite(signals).all(axis=1))
        if not finite.all():
            beyond = [name for name, rows in zip(self.names, slices, strict=True) if not finite[rows].all()]
            raise OverflowError(
                f"the values of {len(beyond)} nodes, such as {beyond[0]!r}, are too large for floating-point numbers; "
                f"use smaller weights, fewer edges, or a bounded function such as 'sigmoid' (now {self.function!r})"
            )
        return signals

    def _levels(self, name: str) -> list[str]:
        return [f"L{i}" for i in range(self.categorical[name])]


def _by_node(option: str, values: Any, default: Any, names: list[str], check: Callable[[str, Any], None]) -> list[Any]:
    """Check an option that is one value for all nodes or a mapping, and return its value for every node."""
    if not isinstance(values, Mapping):
        check(option, values)
        return [values] * len(names)
    for name, value in values.items():
        check(f"{option}[{name!r}]", value)
    return [values.get(name, default) for name in names]


def sample(
    dag: pd.DataFrame,
    n_rows: int,
    *,
    function: str = "sigmoid",
    noise: str | Mapping[str, str] = "gaussian",
    noise_std: float | Mapping[str, float] | pd.Series = 1.0,
    categorical: Mapping[str, int] | None = None,
    random_state: int | np.random.Generator,
) -> pd.DataFrame:
    """Draw rows from a graph in one call: the paper's Algorithm 1.

    Parameters
    ----------
    dag, function, noise, noise_std, categorical
        As for :class:`KnownWorld`.
    n_rows : int
    random_state : int or Generator
        Seed for the noise and also for smooth functions and effects of levels, so calls with different seeds have
        different functions. Use a :class:`KnownWorld` to draw training and test rows with the same functions.

    Returns
    -------
    DataFrame
        One column per node, in the order of ``dag``.

    Examples
    --------
    >>> from castlereg.causal.synthetic import example_dag
    >>> sample(example_dag(), 3, random_state=0).shape
    (3, 10)
    """
    rng = np.random.default_rng(random_state)
    effects_from = rng if function == SMOOTH or categorical else 0  # otherwise only the noise is drawn
    model = KnownWorld(
        dag,
        function=function,
        noise=noise,
        noise_std=noise_std,
        categorical=categorical or {},
        random_state=effects_from,
    )
    return model.sample(n_rows, rng)
