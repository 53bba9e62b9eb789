"""Known worlds: random graphs, the functions of their edges, and the noise of every node, to sample and to ask.

A graph is a DataFrame whose ``dag.loc[cause, effect]`` is the weight, 0 for no edge. Random graphs have weights of 1
and nodes named ``X0``, ``X1``, ...
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cached_property, partial
from itertools import count, islice
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats
from scipy.special import expit

from castlereg.acyclicity.cut import find_cycle
from castlereg.causal.equations import System, slices
from castlereg.causal.graph import CausalGraph
from castlereg.causal.structural import Population, StructuralModel
from castlereg.causal.variables import Variable
from castlereg.options import check_choice, check_fraction, check_integer, check_number

Array = NDArray[np.float64]
Seed = int | np.random.Generator

_POPULATION = 10_000

FUNCTIONS: Final[dict[str, Callable[[Array], Array]]] = {
    "linear": lambda x: x,
    "sigmoid": lambda x: np.asarray(expit(x)),
    # The released code computes this for its sigmoid: because of operator precedence, it is 1 + exp(-x).
    "released_sigmoid": lambda x: 1 + np.exp(-x),
    "sine": lambda x: np.sin(x),
}
# Draws and densities of each kind of noise, with mean 0 and standard deviation 1.
NOISES: Final[dict[str, Callable[[np.random.Generator, int], Array]]] = {
    "gaussian": lambda rng, n: rng.standard_normal(n),
    "uniform": lambda rng, n: rng.uniform(-np.sqrt(3), np.sqrt(3), n),
    "laplace": lambda rng, n: rng.laplace(0.0, 1 / np.sqrt(2), n),
    "gumbel": lambda rng, n: (rng.gumbel(size=n) - np.euler_gamma) * np.sqrt(6) / np.pi,
}
_DENSITIES = {
    "gaussian": stats.norm(),
    "uniform": stats.uniform(-np.sqrt(3), 2 * np.sqrt(3)),
    "laplace": stats.laplace(scale=1 / np.sqrt(2)),
    "gumbel": stats.gumbel_r(-np.euler_gamma * np.sqrt(6) / np.pi, np.sqrt(6) / np.pi),
}
_SMOOTH: Final = "smooth"
# Number of cosines of a smooth function. Its covariance differs from that of the Gaussian process by about 1 / sqrt(32)
# of the variance.
_N_COSINES: Final = 32


class Features(NamedTuple):
    """Features of one node, of whose values ``apply`` takes the numbers of levels."""

    size: int
    apply: Callable[[Array], Array]  # from shape (rows,) to (size, rows)


def node_features(function: str, n_levels: int, rng: np.random.Generator) -> Features:
    """Return the features of a node with ``n_levels`` levels; 0 means numeric.

    Those of smooth functions are random Fourier features of the Gaussian process with covariance exp(-(x - x')^2 / 2).
    """
    if n_levels:
        levels = np.arange(n_levels)[:, None]
        return Features(n_levels, lambda x: (x == levels).astype(np.float64))
    if function == _SMOOTH:
        frequency = rng.standard_normal((_N_COSINES, 1))
        phase = rng.uniform(0, 2 * np.pi, (_N_COSINES, 1))
        return Features(_N_COSINES, lambda x: np.cos(frequency * x + phase))
    apply = FUNCTIONS[function]
    return Features(1, lambda x: apply(x)[None])


def effects(
    function: str, n_levels: int, children_levels: Sequence[int], size: int, rng: np.random.Generator
) -> list[Array]:
    """Return the effect of a node's features on each child, shape (signals of the child, size), for edges of weight 1.

    The effect of a number on a number is 1 unless the function is smooth, of unit variance. Effects of levels, or on
    levels, are normal draws with mean 0 and mean square 1 over the levels.
    """
    by_child = []
    for child_levels in children_levels:
        drawn = rng.standard_normal((max(child_levels, 1), size))
        if not n_levels and function == _SMOOTH:
            by_child.append(drawn * np.sqrt(2 / size))
        elif n_levels or child_levels:
            if n_levels:
                drawn -= drawn.mean(axis=1, keepdims=True)
            if child_levels:
                drawn -= drawn.mean(axis=0)
            by_child.append(drawn / np.sqrt(np.mean(drawn**2)))
        else:
            by_child.append(np.ones((1, 1)))
    return by_child


@dataclass(frozen=True)
class _KnownSystem(System):
    """Known equations: ``signals = weights @ features + noise``."""

    edges: NDArray[np.bool_]  # (nodes, nodes)
    n_levels: tuple[int, ...]  # of each node, 0 if numeric
    node_features: tuple[Features, ...]
    weights: Array  # (signals, features), in the order of the nodes
    noise_kinds: tuple[str, ...]
    noise_stds: tuple[float, ...]

    @cached_property
    def feature_slices(self) -> tuple[slice, ...]:
        """Features of each node."""
        return slices([features.size for features in self.node_features])

    def features(self, node: int, values: Array) -> Array:
        """Return the features of a node, shape (features, rows)."""
        return self.node_features[node].apply(values)

    def outputs(self, node: int, parents: Mapping[int, Any], n_rows: int) -> Array:
        """Return a number, or a score for each level; shape (signals, rows)."""
        total = np.zeros((max(self.n_levels[node], 1), n_rows))
        for parent in np.flatnonzero(self.edges[:, node]).tolist():
            total += self.weights[self.signals[node], self.feature_slices[parent]] @ parents[parent]
        return total

    def numeric_noise(self, node: int, n_rows: int, rng: np.random.Generator) -> Array:
        """Draw noise with the standard deviation of a node."""
        noise = NOISES[self.noise_kinds[node]](rng, n_rows)
        return noise if self.noise_stds[node] == 1 else noise * self.noise_stds[node]

    def noise_density(self, node: int, noise: Array) -> Array:
        """Return the log density of the noise of a node."""
        if (std := self.noise_stds[node]) == 0:
            raise ValueError("a column without noise (noise_std=0) has no density; use a positive noise_std")
        return np.asarray(_DENSITIES[self.noise_kinds[node]].logpdf(noise / std) - np.log(std))


# --- graphs -------------------------------------------------------------------------------------------


def example_dag() -> pd.DataFrame:
    """Return the paper's example graph (Figure 1): nine features and the target ``Y``, with 1 where row causes column.

    Examples
    --------
    >>> dag = example_dag()
    >>> list(dag.index[dag["Y"] == 1])
    ['X2', 'X3']
    """
    names = [*(f"X{i}" for i in range(1, 10)), "Y"]
    dag = pd.DataFrame(0, index=names, columns=names)
    edges = "X1-X2 X1-X3 X1-X4 X2-X5 X2-Y X3-Y X3-X6 X3-X7 X6-X9 Y-X8 Y-X9"
    for edge in edges.split():
        dag.loc[*edge.split("-")] = 1
    return dag


def random_dag(
    n_nodes: int, n_edges: int | None = None, random_state: Seed = 0, *, branching: float | None = None
) -> pd.DataFrame:
    """Draw a number of edges along a random order of the nodes; all edges are equally likely.

    Pass the number of edges, or ``branching``, that of edges per node. By default the branching factor is a random
    number up to ``n_nodes``, as in the paper's appendix: "until either the branching factor was met or no more edges
    can be added". About half of such graphs are complete.

    Examples
    --------
    >>> int(random_dag(5, 7).to_numpy().sum()), int(random_dag(10, branching=2).to_numpy().sum())
    (7, 20)
    """
    check_integer("n_nodes", n_nodes)
    most = n_nodes * (n_nodes - 1) // 2
    rng = np.random.default_rng(random_state)
    if n_edges is None:
        if branching is None:
            branching = int(rng.integers(1, n_nodes, endpoint=True))
        check_number("branching", branching, least=0)
        n_edges = min(round(n_nodes * branching), most)
    elif branching is not None:
        raise ValueError(f"n_edges={n_edges} and branching={branching} both set the number of edges; pass one of them")
    check_integer("n_edges", n_edges, least=0)
    if n_edges > most:
        raise ValueError(f"n_edges={n_edges} is too large: {n_nodes} nodes have at most {most} edges without a cycle")
    return _along(rng.permutation(n_nodes), rng.choice(most, n_edges, replace=False))


def erdos_renyi_dag(
    n_nodes: int, probability: float | None = None, random_state: Seed = 0, *, expected_edges: float | None = None
) -> pd.DataFrame:
    """Draw every edge along a random order of the nodes independently, with the same probability.

    Pass the probability, or the mean number of edges: ``2 * n_nodes`` gives "ER2" graphs.

    Examples
    --------
    >>> erdos_renyi_dag(20, expected_edges=40, random_state=0).shape
    (20, 20)
    """
    check_integer("n_nodes", n_nodes)
    most = n_nodes * (n_nodes - 1) // 2
    if (probability is None) == (expected_edges is None):
        raise ValueError(f"probability={probability} and expected_edges={expected_edges}: pass exactly one of them")
    if expected_edges is not None:
        check_number("expected_edges", expected_edges, least=0)
        if expected_edges > most:
            raise ValueError(f"expected_edges={expected_edges} is too large: {n_nodes} nodes have at most {most} edges")
        probability = expected_edges / max(most, 1)
    if probability not in (0, 1):
        check_fraction("probability", probability)
    rng = np.random.default_rng(random_state)
    return _along(rng.permutation(n_nodes), rng.random(most) < float(probability))  # type: ignore[arg-type]


def scale_free_dag(n_nodes: int, edges_per_node: int = 2, random_state: Seed = 0) -> pd.DataFrame:
    """Draw a graph with a few hubs (Barabási and Albert): most nodes have few effects, and some have very many.

    Each new node has ``edges_per_node`` causes, drawn in proportion to the edges that they already have.

    Examples
    --------
    >>> dag = scale_free_dag(100, 2, random_state=0)
    >>> int(dag.to_numpy().sum()), bool(dag.sum(axis=1).max() > 10)
    (196, True)
    """
    import networkx as nx

    check_integer("n_nodes", n_nodes)
    check_integer("edges_per_node", edges_per_node)
    if edges_per_node >= n_nodes:
        raise ValueError(f"edges_per_node={edges_per_node} must be less than n_nodes={n_nodes}")
    rng = np.random.default_rng(random_state)
    edges = np.array(nx.barabasi_albert_graph(n_nodes, edges_per_node, seed=rng).edges)
    new_number = rng.permutation(n_nodes)  # nodes were numbered in the order in which they were added
    values = np.zeros((n_nodes, n_nodes), np.int64)
    values[new_number[edges.min(axis=1)], new_number[edges.max(axis=1)]] = 1
    return _named(values)


def weighted_dag(dag: pd.DataFrame, low: float = 0.5, high: float = 2.0, random_state: Seed = 0) -> pd.DataFrame:
    """Draw a weight for every edge: its size is uniform between two bounds, its sign is random.

    Examples
    --------
    >>> sizes = weighted_dag(example_dag()).abs().to_numpy()
    >>> float(sizes.max()) <= 2, float(sizes[sizes > 0].min()) >= 0.5
    (True, True)
    """
    check_number("low", low, above=0)
    check_number("high", high, least=low)
    edges = edge_weights(dag) != 0
    rng = np.random.default_rng(random_state)
    signs = rng.choice([-1.0, 1.0], edges.shape)
    return pd.DataFrame(edges * signs * rng.uniform(low, high, edges.shape), index=dag.index, columns=dag.columns)


def edge_weights(dag: pd.DataFrame) -> NDArray[np.float64]:
    """Return the weights as an array, after checking that the DataFrame is a directed acyclic graph."""
    if not isinstance(dag, pd.DataFrame):
        raise TypeError(f"the graph must be a DataFrame with dag.loc[cause, effect], got {type(dag).__name__}")
    if list(dag.index) != list(dag.columns) or not dag.columns.is_unique:
        raise ValueError(
            "the index and the columns of the graph must have the same unique names in the same order; "
            f"the index is {list(dag.index)}, the columns are {list(dag.columns)}"
        )
    weights = dag.to_numpy(np.float64)
    if not np.isfinite(weights).all():
        raise ValueError("the graph has weights that are not finite; use 0 for no edge")
    cycle = find_cycle(weights != 0)
    if cycle is not None:
        raise ValueError(f"the edges form a cycle: {' -> '.join(str(dag.columns[k]) for k in cycle)}")
    return weights


def _along(order: NDArray[np.intp], chosen: NDArray[Any]) -> pd.DataFrame:
    """Return the graph of the chosen edges, among all from earlier to later nodes of an order."""
    earlier, later = np.triu_indices(len(order), k=1)
    values = np.zeros((len(order), len(order)), np.int64)
    values[order[earlier[chosen]], order[later[chosen]]] = 1
    return _named(values)


def _named(values: NDArray[np.int64]) -> pd.DataFrame:
    names = [f"X{i}" for i in range(len(values))]
    return pd.DataFrame(values, index=names, columns=names)


# --- worlds -------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, repr=False)
class KnownWorld(StructuralModel):
    """A structural model with known equations, which answers questions exactly, without error bars.

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
        Distribution of the noise, always with mean zero; by default Gaussian.
    noise_std : float, or mapping or Series of node to float
        Standard deviation of the noise, by default 1.
    categorical : mapping of node to int
        Number of levels of categorical nodes, named ``L0``, ``L1``, ... Their effects on children are random.
    random_state : int or Generator
        Seed for smooth functions and effects of levels, which all rows of a model share.
    fixed : mapping of node to value
        Nodes that are held at a value; see :meth:`do`.

    Examples
    --------
    >>> model = KnownWorld(example_dag(), function="linear", noise_std=0.5)
    >>> model.sample(3, random_state=0).shape, model.graph("Y").parents("Y")
    ((3, 10), ['X2', 'X3'])
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
        store = partial(object.__setattr__, self)
        check_choice("function", self.function, [*FUNCTIONS, _SMOOTH])
        weights, names = edge_weights(self.dag), list(self.dag.columns)
        if not names:
            raise ValueError("the graph has no nodes")
        for option in ("noise", "noise_std", "categorical", "fixed"):
            if isinstance(by_name := getattr(self, option), Mapping | pd.Series):
                store(option, dict(by_name))
                for name in dict(by_name):
                    if name not in names:
                        known = ", ".join(map(str, names))
                        raise ValueError(f"unknown node {name!r} in {option}; the nodes are {known}")
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
    def variables(self) -> tuple[Variable, ...]:  # type: ignore[override]  # read-only
        """Names and levels of the nodes."""
        names = list(self.dag.columns)
        return tuple(Variable(name, self._levels(name) if name in self.categorical else None) for name in names)

    @cached_property
    def system(self) -> _KnownSystem:  # type: ignore[override]  # read-only
        """The equations, for sampling and for questions about rows."""
        n_levels = tuple(int(self.categorical.get(name, 0)) for name in self.names)
        edges, noise = self.edge_weights != 0, (self.noise_kinds, self.noise_stds)
        if self.function != _SMOOTH and not self.categorical:  # all effects are 1
            node_function = node_features(self.function, 0, np.random.default_rng(0))
            return _KnownSystem(edges, n_levels, (node_function,) * len(n_levels), self.edge_weights.T, *noise)
        features, effects_on = [], []
        for node, levels in enumerate(n_levels):
            # Each node has its own generator, so its functions do not change when edges or other nodes do.
            rng = np.random.default_rng([self.seed, node])
            features.append(node_features(self.function, levels, rng))
            effects_on.append(effects(self.function, levels, n_levels, features[-1].size, rng))
        signals, columns = slices([max(n, 1) for n in n_levels]), slices([f.size for f in features])
        weights = np.zeros((signals[-1].stop, columns[-1].stop))
        for parent, child in np.argwhere(self.edge_weights):
            weights[signals[child], columns[parent]] = self.edge_weights[parent, child] * effects_on[parent][child]
        return _KnownSystem(edges, n_levels, tuple(features), weights, *noise)

    @property
    def draws(self) -> tuple[()]:  # type: ignore[override]  # read-only
        """Always empty: a known world has no error bars."""
        return ()

    @cached_property
    def population(self) -> Population:  # type: ignore[override]  # read-only
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
        sizes, names = np.abs(self.edge_weights), tuple(map(str, self.names))
        edges = (sizes > 0).astype(np.float64)
        joined = np.maximum(edges, edges.T)
        direction = np.where(joined > 0, edges, np.nan)
        return CausalGraph(names, (names[-1] if target is None else str(target),), sizes, joined, direction)

    # --- rows --------------------------------------------------------------------------------------

    def drawn(self, n_rows: int, rng: np.random.Generator) -> Array:
        """Draw rows as numbers, shape (nodes, rows); values beyond the range of floating-point numbers raise."""
        with np.errstate(over="ignore", invalid="ignore"):
            values = super().drawn(n_rows, rng)
        beyond = [name for name, column in zip(self.names, values, strict=True) if not np.isfinite(column).all()]
        if beyond:
            raise OverflowError(
                f"the values of {len(beyond)} nodes, such as {beyond[0]!r}, are too large for floating-point numbers; "
                f"use smaller weights, fewer edges, or a bounded function such as 'sigmoid' (now {self.function!r})"
            )
        return values

    def with_noise_columns(self, n_columns: int) -> KnownWorld:
        """Return the model with additional columns of standard normal noise, without edges.

        The new nodes come last and are named ``noise1``, ``noise2``, ..., without names that are already used.

        Examples
        --------
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

    def _levels(self, name: str) -> tuple[str, ...]:
        return tuple(f"L{i}" for i in range(self.categorical[name]))


def _by_node(option: str, values: Any, default: Any, names: list[str], check: Callable[[str, Any], None]) -> list[Any]:
    """Check an option that is one value for all nodes or a mapping, and return its value for every node."""
    if not isinstance(values, Mapping):
        check(option, values)
        return [values] * len(names)
    for name, value in values.items():
        check(f"{option}[{name!r}]", value)
    return [values.get(name, default) for name in names]


def sample(
    dag: pd.DataFrame, n_rows: int, *, function: str = "sigmoid", random_state: Seed, **options: Any
) -> pd.DataFrame:
    """Draw rows from a graph in one call, with the options of :class:`KnownWorld`: the paper's Algorithm 1.

    The seed is also that of smooth functions and effects of levels. Use a :class:`KnownWorld` to draw training and test
    rows with the same functions.

    Examples
    --------
    >>> sample(example_dag(), 3, random_state=0).shape
    (3, 10)
    """
    rng = np.random.default_rng(random_state)
    functions = rng if function == _SMOOTH or options.get("categorical") else 0  # otherwise only the noise is drawn
    return KnownWorld(dag, function=function, random_state=functions, **options).sample(n_rows, rng)
