"""Convert a structural model for other packages: DoWhy, pgmpy and networkx.

The result has one graph with one equation for every column. It does not contain the other graphs that may be true, nor
the error bars that come from them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from castlereg.causal.structural.fitting import rows_by_weight
from castlereg.causal.structural.learned import LearnedSystem
from castlereg.causal.structural.system import System
from castlereg.causal.structural.variables import Variable, fixed_codes

if TYPE_CHECKING:
    import networkx as nx

    from castlereg.causal.structural.model import StructuralModel

Array = NDArray[np.float64]

_LARGEST_TABLE = 10_000_000  # maximum number of probabilities of one node, for pgmpy


@dataclass(frozen=True)
class Equation:
    """The equation of one column as a function of its causes, in the units of the user's table.

    It has the methods that DoWhy needs of a prediction model. The equation is already learned, so ``fit`` does nothing.
    """

    system: System = field(repr=False)
    variables: tuple[Variable, ...] = field(repr=False)
    node: int
    parents: tuple[int, ...]  # in the order of the columns of X

    def fit(self, X: Any, Y: Any) -> None:
        """Do nothing."""

    def clone(self) -> Equation:
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
        return cells(self.variables[self.node], np.arange(self.variables[self.node].n_signals, dtype=np.float64))

    def _outputs(self, X: NDArray[Any]) -> Array:
        """Return a number, or a score for each level, from the causes; shape (signals, rows)."""
        values = np.zeros((len(self.variables), len(X)))
        for parent, column in zip(self.parents, np.asarray(X).T, strict=True):
            variable = self.variables[parent]
            values[parent] = column.astype(np.float64) if variable.levels is None else variable.codes(column)
        return self.system.given(self.node, values)


def cells(variable: Variable, codes: Array) -> NDArray[Any]:
    """Return numbers unchanged and levels by name; dates and durations remain numbers of days."""
    if variable.levels is None:
        return codes
    is_text = any(isinstance(level, str) for level in variable.levels)
    levels = np.array([str(level) if is_text else level for level in variable.levels], object if is_text else None)
    return np.asarray(levels[codes.astype(np.int64)])


def to_dowhy(model: StructuralModel) -> Any:
    """Return a model of ``dowhy.gcm`` with the graph and the equations of a structural model."""
    try:
        from dowhy import gcm
        from dowhy.gcm.causal_models import PARENTS_DURING_FIT
        from dowhy.graph import get_ordered_predecessors
    except ImportError:
        raise ImportError("to_dowhy needs the package DoWhy: pip install dowhy") from None
    variables, system, names = model.variables, model.system, list(map(str, model.names))
    graph = _bare_graph(model)
    parents = {k: get_ordered_predecessors(graph, name) for k, name in enumerate(names)}
    is_invertible = all(variables[k].levels is None for k in parents if parents[k])
    causal_model = (gcm.InvertibleStructuralCausalModel if is_invertible else gcm.StructuralCausalModel)(graph)
    held = fixed_codes(model.fixed, variables)
    for k, name in enumerate(names):
        equation = Equation(system, variables, k, tuple(names.index(parent) for parent in parents[k]))
        if not parents[k]:
            mechanism = gcm.EmpiricalDistribution()
            mechanism.fit(cells(variables[k], np.array([held[k]]) if k in held else _values_by_weight(model, k)))
        elif variables[k].levels is None:
            noise = gcm.EmpiricalDistribution()
            noise.fit(_residuals(model, k))
            mechanism = gcm.AdditiveNoiseModel(equation, noise)
        else:
            mechanism = gcm.ClassifierFCM(equation)
        causal_model.set_causal_mechanism(name, mechanism)
        graph.nodes[name][PARENTS_DURING_FIT] = parents[k]  # as gcm.fit sets it
    return causal_model


def to_pgmpy(model: StructuralModel) -> Any:
    """Return a network of pgmpy with the graph of a structural model, and its probabilities if all columns have levels.

    Otherwise it is a ``DAG``, because pgmpy has no equations of this kind.
    """
    try:
        from pgmpy.base import DAG
        from pgmpy.factors.discrete import TabularCPD
        from pgmpy.models import DiscreteBayesianNetwork
    except ImportError:
        raise ImportError("to_pgmpy needs the package pgmpy: pip install pgmpy") from None
    graph, variables = _bare_graph(model), model.variables
    is_discrete = all(variable.levels is not None for variable in variables)
    network = (DiscreteBayesianNetwork if is_discrete else DAG)()
    network.add_nodes_from(graph.nodes)
    network.add_edges_from(graph.edges)
    if not is_discrete:
        return network
    names = list(graph.nodes)
    states = {
        name: cells(v, np.arange(v.n_signals, dtype=np.float64)).tolist()
        for name, v in zip(names, variables, strict=True)
    }
    for k, name in enumerate(names):
        parents = list(graph.predecessors(name))
        network.add_cpds(
            TabularCPD(
                name,
                len(states[name]),
                _probabilities(model, k, [names.index(parent) for parent in parents]),
                evidence=parents,
                evidence_card=[len(states[parent]) for parent in parents],
                state_names={node: states[node] for node in (name, *parents)},
            )
        )
    return network


def to_networkx(model: StructuralModel) -> nx.DiGraph:
    """Return the graph, with attributes of its nodes and edges."""
    graph = model.graph().to_networkx()
    frame = model.to_frame()
    for _, row in frame.iterrows():
        attributes = graph.nodes[str(row["column"])]
        attributes["kind"] = row["kind"]
        if "explained" in frame:
            attributes["explained"] = float(row["explained"])
    for name, value in model.fixed.items():
        graph.nodes[name]["held"] = value
    for name, attributes in graph.nodes(data=True):
        attributes["parents"] = list(graph.predecessors(name))
    return graph


def _bare_graph(model: StructuralModel) -> nx.DiGraph:
    """Return the nodes, and the edges except those into held columns."""
    import networkx as nx

    names = list(map(str, model.names))
    graph = nx.DiGraph()
    graph.add_nodes_from(names)
    graph.add_edges_from(
        (names[j], names[k]) for j, k in np.argwhere(model.system.edges) if names[k] not in model.fixed
    )
    return graph


def _values_by_weight(model: StructuralModel, node: int) -> Array:
    """Return the values of a column, repeated in proportion to the weights of their rows."""
    values, weight = model.population.values[node], model.population.weight
    present = np.isfinite(values)
    return np.asarray(values[present][rows_by_weight(weight[present])])


def _residuals(model: StructuralModel, node: int) -> Array:
    """Return the noise of a numeric column."""
    if isinstance(model.system, LearnedSystem):
        residuals = model.system.equations[node].residuals
        assert residuals is not None
        return residuals
    before = sum(variable.n_signals for variable in model.variables[:node])
    return np.asarray(model.system.abduct(model.population.values, [node], seed=0)[before])


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
