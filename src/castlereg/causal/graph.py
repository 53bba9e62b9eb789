"""Graphs of columns: reading, editing and drawing them.

A :class:`CausalGraph` says which columns cause which, with calibrated probabilities. An :class:`InputGraph` says which
columns the networks of a CASTLE model use.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.sparse.csgraph import breadth_first_order

from castlereg.acyclicity.cut import acyclic_cut, find_cycle, strong_edges
from castlereg.causal.knowledge import unknown_node
from castlereg.options import check_number, did_you_mean

if TYPE_CHECKING:
    import networkx as nx
    from matplotlib.axes import Axes

Array = NDArray[np.float64]

KNOWN_DIRECTION = 0.75  # a direction with a lower probability is uncertain
NOT_PROOF = "A prediction aid, not proof of cause."
_ATTRIBUTES = {"weight": 1.0, "confidence": np.nan, "direction": np.nan}  # of edges, with their defaults
_MATRICES = ("weights", "confidence", "direction")
_JSON_FORMAT, _JSON_VERSION = "castlereg graph", 2


@dataclass(frozen=True, eq=False, repr=False)
class Graph:
    """A directed acyclic graph over the columns and targets of a table."""

    names: tuple[str, ...]
    targets: tuple[str, ...]
    weight_array: Array  # (nodes, nodes), ``weight_array[j, k]`` for the edge j -> k, 0 for none

    shares: ClassVar[tuple[str, ...]] = ()  # what is known of each edge, in addition to its weight

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if isinstance(value, np.ndarray):
                array = np.array(value)
                array.setflags(write=False)
                object.__setattr__(self, name, array)
        names, n_nodes = list(self.names), len(self.weight_array)
        if not (np.isfinite(self.weight_array).all() and (self.weight_array >= 0).all()):
            raise ValueError("the graph has negative weights, or weights that are not finite")
        if len(names) != n_nodes or len(set(names)) != len(names):
            raise ValueError(f"{n_nodes} nodes need {n_nodes} different names, got {names}")
        for target in self.targets:
            if target not in names:
                raise ValueError(f"target {target!r} is not among the nodes {names}")
        cycle = find_cycle(self.edge_array)
        if cycle is not None:
            raise ValueError(f"the edges form a cycle: {' -> '.join(names[k] for k in cycle)}")

    # --- reading ------------------------------------------------------------------------------------

    @property
    def edge_array(self) -> NDArray[np.bool_]:
        """Boolean array of the edges, which all lists, pictures, files and counts use."""
        return np.asarray(self.weight_array > 0)

    @property
    def weights(self) -> pd.DataFrame:
        """``weights.loc[cause, effect]``, zero for pairs without an edge."""
        return self._named(self.weight_array)

    def _named(self, values: Array) -> pd.DataFrame:
        names = _index(self.names)
        return pd.DataFrame(values.copy(), index=names, columns=names)

    def edges(self) -> pd.DataFrame:
        """Return the edges, strongest first: ``cause``, ``effect``, ``weight``, and what else is known of them."""
        cause, effect = np.nonzero(self.edge_array)
        order = np.argsort(-self.weight_array[cause, effect], kind="stable")
        at = cause[order], effect[order]
        names = _index(self.names)
        columns = {"cause": names[at[0]], "effect": names[at[1]], "weight": self.weight_array[at]}
        return pd.DataFrame(columns | {name: getattr(self, f"{name}_array")[at] for name in self.shares})

    @property
    def target(self) -> str:
        """Name of the target; the first one if there are several."""
        return self.targets[0]

    @property
    def nodes(self) -> list[str]:
        """Names of the nodes."""
        return list(self.names)

    def index(self, node: str) -> int:
        """Return the position of a node among the names; unknown names raise a KeyError."""
        if node not in self.names:
            hint = did_you_mean(str(node), self.names)
            raise KeyError(f"unknown node {node!r}; the nodes are {', '.join(self.names)}{hint}")
        return self.names.index(node)

    def parents(self, node: str) -> list[str]:
        """Return the causes of a node, strongest first."""
        return self._strongest_first(self.weight_array[:, self.index(node)])

    def children(self, node: str) -> list[str]:
        """Return the effects of a node, strongest first."""
        return self._strongest_first(self.weight_array[self.index(node)])

    def _strongest_first(self, weights: Array) -> list[str]:
        order = np.argsort(-weights, kind="stable")
        return [self.names[k] for k in order if weights[k] > 0]

    def ancestors(self, node: str) -> list[str]:
        """Return the nodes with a directed path to a node, in topological order."""
        return self._reached(self.edge_array.T, self.index(node))

    def descendants(self, node: str) -> list[str]:
        """Return the nodes with a directed path from a node, in topological order."""
        return self._reached(self.edge_array, self.index(node))

    def _reached(self, steps: NDArray[np.bool_], k: int) -> list[str]:
        reached = breadth_first_order(steps.astype(np.float64), k, return_predecessors=False)
        return self._in_order(set(reached.tolist()) - {k})

    def markov_blanket(self, node: str) -> list[str]:
        """Return the parents, the children and the children's other parents of a node, in topological order."""
        edges, k = self.edge_array, self.index(node)
        blanket = edges[:, k] | edges[k] | edges[:, edges[k]].any(axis=1)
        return self._in_order(set(np.flatnonzero(blanket).tolist()) - {k})

    def topological_order(self) -> list[str]:
        """Return all nodes, causes before their effects; nodes that may be in any order keep that of the names."""
        return self._in_order(set(range(len(self.names))))

    def _structure(self) -> nx.DiGraph:
        """Return the edges as a networkx graph of node numbers."""
        import networkx as nx

        graph = nx.empty_graph(len(self.names), create_using=nx.DiGraph)
        graph.add_edges_from(np.argwhere(self.edge_array).tolist())
        return graph

    def _in_order(self, nodes: set[int]) -> list[str]:
        import networkx as nx

        return [self.names[k] for k in nx.lexicographical_topological_sort(self._structure()) if k in nodes]

    def __repr__(self) -> str:
        edges = int(np.count_nonzero(self.edge_array))
        return f"<{type(self).__name__}: {len(self.names)} nodes, {edges} edges, target {', '.join(self.targets)}>"

    # --- export -------------------------------------------------------------------------------------

    def to_networkx(self) -> nx.DiGraph:
        """Convert to a networkx graph; edges have the columns of :meth:`edges` that are known, nodes ``target``."""
        import networkx as nx

        converted = nx.DiGraph()
        converted.add_nodes_from((name, {"target": name in self.targets}) for name in self.names)
        edges = self.edges()
        for cause, effect, *values in edges.itertuples(index=False):
            known = zip(edges.columns[2:], values, strict=True)
            converted.add_edge(cause, effect, **{name: float(value) for name, value in known if value == value})
        return converted

    def to_dot(self) -> str:
        """Write the graph in DOT, the language of Graphviz, with causes on the left and wide lines for strong edges."""
        heaviest = self.weight_array.max(initial=0.0) or 1.0
        lines = ["digraph {", "  rankdir=LR;", "  node [shape=box, style=rounded];"]
        quoted = {name: json.dumps(name, ensure_ascii=False) for name in self.names}
        for name in self.names:
            marked = " [target=true, style=filled, fillcolor=orange]" if name in self.targets else ""
            lines.append(f"  {quoted[name]}{marked};")
        for cause, effect, attributes in self.to_networkx().edges(data=True):
            written = ", ".join(f"{name}={value!r}" for name, value in attributes.items())
            width = 0.5 + 3 * attributes["weight"] / heaviest
            lines.append(f"  {quoted[cause]} -> {quoted[effect]} [{written}, penwidth={width:.2f}];")
        return "\n".join([*lines, "}", ""])

    def to_gml(self) -> str:
        """Write the graph as GML, which DoWhy and other programs read."""
        import networkx as nx

        converted = self.to_networkx()
        for _, attributes in converted.nodes(data=True):
            attributes["target"] = int(attributes["target"])
        return "\n".join(nx.generate_gml(converted))

    # --- pictures ----------------------------------------------------------------------------------

    def plot(self, ax: Axes | None = None, *, max_edges: int | None = None) -> Axes:
        """Draw the strongest edges with matplotlib, with causes to the left of their effects.

        The width of a line shows the weight of its edge, the opacity its probability if that is known. If the
        direction is unknown, the line is dashed and has no arrow head. The caption states how many edges are shown.
        By default, it has new axes and twice as many edges as nodes.
        """
        from castlereg.causal.drawing import draw

        return draw(self, ax, max_edges)

    def plot_heat_map(self, ax: Axes | None = None) -> Axes:
        """Draw the weights as a heat map with matplotlib: causes in rows, effects in columns, in topological order."""
        from castlereg.causal.drawing import draw_heat_map

        return draw_heat_map(self, ax)

    def plot_neighbourhood(self, node: str | None = None, ax: Axes | None = None, *, max_nodes: int = 30) -> Axes:
        """Draw a node (by default the target), its Markov blanket and the nodes one step further."""
        from castlereg.causal.drawing import draw_neighbourhood

        return draw_neighbourhood(self, node, ax, max_nodes)

    def to_svg(self, *, max_edges: int | None = None, nodes: Iterable[str] | None = None) -> str:
        """Draw the picture of :meth:`plot` as an SVG element with tooltips, of some ``nodes`` or of all.

        Examples
        --------
        >>> graph = CausalGraph.from_weights(np.array([[0.0, 0.53], [0.0, 0.0]]), ["age", "income"], target="income")
        >>> "<title>age -&gt; income, weight 0.53</title>" in graph.to_svg()
        True
        """
        from castlereg.causal.drawing import to_svg

        return to_svg(self, max_edges=max_edges, nodes=nodes)

    def _repr_html_(self) -> str:
        from castlereg.causal.drawing import notebook_html

        return notebook_html(self)


@dataclass(frozen=True, eq=False, repr=False)
class CausalGraph(Graph):
    """Which columns cause which: a directed acyclic graph with the probabilities of its edges.

    ``estimator.graph_`` is the graph that the training rows support. A prediction aid, not proof of cause: the
    probabilities assume that no common cause is missing. A graph is immutable: :meth:`with_edge` and the other edits
    return a new one.

    Attributes
    ----------
    names, targets : tuple of str
        Names of the nodes, and of those that are targets.
    weight_array : array of shape (nodes, nodes)
        Strength of the edge j -> k from 0 to 1, like a correlation: how much worse k is predicted without j.
    confidence_array, direction_array : array of shape (nodes, nodes)
        Probability that an edge joins two nodes, and that it points from j to k if so; NaN if it is not known.

    Examples
    --------
    >>> graph = CausalGraph.from_edges(pd.DataFrame({"cause": ["age"], "effect": ["income"]}), target="income")
    >>> graph.parents("income")
    ['age']
    """

    confidence_array: Array
    direction_array: Array

    shares: ClassVar[tuple[str, ...]] = ("confidence", "direction")

    @classmethod
    def from_weights(cls, weights: Array, names: Sequence[str], target: str | Sequence[str]) -> CausalGraph:
        """Build a graph from weights, ``weights[j, k]`` for j -> k, with unknown probabilities (NaN).

        Edges are added from the strongest down; those that would close a cycle are left out.
        """
        cut = acyclic_cut(np.asarray(weights, dtype=np.float64))
        unknown = np.full(cut.shape, np.nan)
        return cls(tuple(names), (target,) if isinstance(target, str) else tuple(target), cut, unknown, unknown)

    @property
    def confidence(self) -> pd.DataFrame:
        """``confidence.loc[a, b]``: the probability that an edge joins the two; 1 if the user required or edited it."""
        return self._named(self.confidence_array)

    @property
    def direction(self) -> pd.DataFrame:
        """``direction.loc[cause, effect]``: the probability that the edge points this way, if there is one."""
        return self._named(self.direction_array)

    def uncertain_edges(self) -> pd.DataFrame:
        """Return the edges whose ``direction`` is below 0.75; pictures show them dashed and without arrow heads."""
        edges = self.edges()
        return edges[edges["direction"] < KNOWN_DIRECTION].reset_index(drop=True)

    def summary(self) -> str:
        """Describe the graph and how far to trust it, in a few lines."""
        edges, uncertain = self.edges(), self.uncertain_edges()
        lines = [f"{len(self.names)} nodes, {len(edges)} edges."]
        lines += [f"Into {target}: {', '.join(self.parents(target)) or 'nothing'}." for target in self.targets]
        if len(uncertain):
            lines.append(f"The direction of {len(uncertain)} of the edges is unknown.")
        if np.isnan(self.confidence_array[self.edge_array]).any():
            lines.append("The probabilities of some edges are not known (NaN).")
        else:
            lines.append(
                "Confidence and direction are probabilities, by how much less likely left-out rows are under the best "
                "graphs without the edge, or with it reversed."
            )
        return "\n".join([*lines, NOT_PROOF])

    def in_order_of(self, names: Sequence[str]) -> CausalGraph:
        """Return the graph with its nodes in another order; it must have exactly these names."""
        for name in self.names:
            if name not in names:
                raise ValueError(unknown_node(name, names, "the graph"))
        for name in names:
            if name not in self.names:
                raise ValueError(
                    f"the graph has no node {name!r}, which is a column or target of the table; "
                    f"its nodes are {', '.join(map(repr, self.names))}"
                )
        order = np.ix_(*[[self.names.index(name) for name in names]] * 2)
        weights, confidence, direction = (array[order] for array in self._arrays)
        return CausalGraph(tuple(names), self.targets, weights, confidence, direction)

    # --- edits --------------------------------------------------------------------------------------

    def with_edge(self, cause: str, effect: str, weight: float | None = None) -> CausalGraph:
        """Return the graph with one more edge, or with a new weight (by default, the median) for an existing one.

        Examples
        --------
        >>> graph = CausalGraph.from_weights(np.zeros((2, 2)), ["age", "income"], target="income")
        >>> graph.with_edge("age", "income").parents("income")
        ['age']
        """
        j, k = self._edge(cause, effect)
        if weight is None:
            present = self.weight_array[self.edge_array]
            weight = float(np.median(present)) if len(present) else 1.0
        check_number("weight", weight, above=0)
        if cause in self.descendants(effect):
            import networkx as nx

            path = [cause, *(self.names[n] for n in nx.shortest_path(self._structure(), k, j))]
            raise ValueError(f"the edge {cause!r} -> {effect!r} closes a cycle: {' -> '.join(path)}")
        return self._edited(j, k, weight)

    def without_edge(self, cause: str, effect: str) -> CausalGraph:
        """Return the graph without an edge."""
        j, k = self._edge(cause, effect)
        if not self.edge_array[j, k]:
            hint = f"; reverse {effect!r} -> {cause!r} to get it" if self.edge_array[k, j] else ""
            raise ValueError(f"the graph has no edge {cause!r} -> {effect!r}{hint}")
        return self._edited(j, k, 0.0)

    def reversed_edge(self, cause: str, effect: str) -> CausalGraph:
        """Return the graph with an edge reversed; the weight stays the same."""
        without = self.without_edge(cause, effect)
        return without.with_edge(effect, cause, float(self.weight_array[self._edge(cause, effect)]))

    @property
    def _arrays(self) -> tuple[Array, Array, Array]:
        return self.weight_array, self.confidence_array, self.direction_array

    def _edited(self, j: int, k: int, weight: float) -> CausalGraph:
        """Change the weight of an edge; edits count as certain."""
        weights, confidence, direction = (a.copy() for a in self._arrays)
        weights[j, k] = weight
        confidence[[j, k], [k, j]] = float(weight > 0)
        direction[[j, k], [k, j]] = (1.0, 0.0) if weight > 0 else np.nan
        return replace(self, weight_array=weights, confidence_array=confidence, direction_array=direction)

    def _edge(self, cause: str, effect: str) -> tuple[int, int]:
        for name in (cause, effect):
            if name not in self.names:
                raise ValueError(unknown_node(name, self.names, f"the edge {cause!r} -> {effect!r}"))
        if cause == effect:
            raise ValueError(f"the edge {cause!r} -> {effect!r} joins a node to itself; pass two different nodes")
        return self.names.index(cause), self.names.index(effect)

    # --- from other formats -------------------------------------------------------------------------

    @classmethod
    def from_edges(cls, edges: pd.DataFrame, target: str | Sequence[str], nodes: Sequence[str] | None = None) -> Self:
        """Build a graph from a DataFrame such as that of :meth:`edges`, with the columns ``cause`` and ``effect``.

        ``nodes`` are all nodes in order; by default those of the edges, then the target.

        Examples
        --------
        >>> edges = pd.DataFrame({"cause": ["age", "age"], "effect": ["income", "rent"]})
        >>> CausalGraph.from_edges(edges, target="rent").children("age")
        ['income', 'rent']
        """
        import networkx as nx

        missing = [column for column in ("cause", "effect") if column not in edges]
        if missing:
            raise ValueError(f"the edges have no column {missing[0]!r}; they have {list(edges.columns)}")
        targets = [target] if isinstance(target, str) else list(target)
        ends = [*edges["cause"], *edges["effect"]]
        names = list(dict.fromkeys([*ends, *targets])) if nodes is None else list(nodes)
        for end in [*ends, *targets]:
            if end not in names:
                raise ValueError(f"an edge or target mentions {end!r}, which is not among the nodes {names}")
        graph = nx.DiGraph()
        graph.add_nodes_from((name, {"target": name in targets}) for name in names)
        attributes = [column for column in _ATTRIBUTES if column in edges]
        graph.update(nx.from_pandas_edgelist(edges, "cause", "effect", attributes or None, create_using=nx.DiGraph))
        return cls.from_networkx(graph)

    @classmethod
    def from_networkx(cls, graph: nx.DiGraph, target: str | Sequence[str] | None = None) -> Self:
        """Read a networkx graph; a missing ``weight`` is 1, other missing attributes are not known (NaN).

        By default the targets are the nodes whose attribute ``target`` is true.
        """
        if not graph.is_directed():
            raise ValueError("the graph is undirected; a causal graph needs directed edges")
        if target is None:
            marked = graph.nodes(data="target")
            target = [str(node) for node, value in marked if str(value).strip('"').lower() in ("1", "true")]
            if not target:
                raise ValueError("no node has a true attribute 'target'; pass target=...")
        index = {node: k for k, node in enumerate(graph)}
        weights = np.zeros((len(index), len(index)))
        confidence, direction = np.full((2, *weights.shape), np.nan)
        for cause, effect, attributes in graph.edges(data=True):
            j, k, numbers = index[cause], index[effect], []
            for name, default in _ATTRIBUTES.items():
                try:
                    numbers.append(float(value := attributes.get(name, default)))
                except (TypeError, ValueError):
                    raise ValueError(
                        f"the edge {cause!r} -> {effect!r} has {name}={value!r}, which is not a number"
                    ) from None
            weight, joined, this_way = numbers
            if weight <= 0 or not np.isfinite(weight):
                raise ValueError(f"the edge {cause!r} -> {effect!r} has weight {weight:g}; weights must be positive")
            weights[j, k] = weight
            confidence[[j, k], [k, j]] = joined
            direction[[j, k], [k, j]] = this_way, 1 - this_way
        targets = (target,) if isinstance(target, str) else tuple(target)
        return cls(tuple(map(str, graph)), targets, weights, confidence, direction)

    @classmethod
    def from_dot(cls, text: str, target: str | Sequence[str] | None = None) -> Self:
        """Read a graph in DOT; needs the package ``pydot``."""
        import networkx as nx

        try:
            import pydot
        except ImportError:
            raise ImportError("reading DOT needs the package pydot: pip install 'castlereg[dot]'") from None
        parsed = pydot.graph_from_dot_data(text)
        if not parsed or parsed[0].get_type() != "digraph":
            raise ValueError("the text is not a DOT digraph")
        graph = nx.DiGraph()
        for node in parsed[0].get_nodes():
            name = _unquoted(node.get_name())
            if name not in ("node", "edge", "graph", "\\n"):
                graph.add_node(name, target=node.get_attributes().get("target"))
        for edge in parsed[0].get_edges():
            attributes = {k: _unquoted(str(v)) for k, v in edge.get_attributes().items()}
            graph.add_edge(_unquoted(str(edge.get_source())), _unquoted(str(edge.get_destination())), **attributes)
        return cls.from_networkx(graph, target)

    @classmethod
    def from_gml(cls, text: str, target: str | Sequence[str] | None = None) -> Self:
        """Read a graph from GML."""
        import networkx as nx

        return cls.from_networkx(nx.parse_gml(text), target)

    def to_json(self) -> str:
        """Write the complete graph as JSON, with exact numbers and null for unknown ones."""
        content = {"format": _JSON_FORMAT, "version": _JSON_VERSION, "nodes": self.names, "targets": self.targets}
        arrays = [np.where(np.isnan(a), None, a).tolist() for a in self._arrays]  # type: ignore[call-overload]
        matrices = dict(zip(_MATRICES, arrays, strict=True))
        return json.dumps(content | matrices, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read a graph written by :meth:`to_json`."""
        try:
            content = json.loads(text)
        except json.JSONDecodeError as error:
            raise ValueError(f"the text is not JSON: {error}") from None
        if not isinstance(content, dict) or content.get("format") != _JSON_FORMAT:
            raise ValueError("the JSON is not a castlereg graph")
        if content.get("version") != _JSON_VERSION:
            raise ValueError(
                f"the graph has version {content.get('version')!r}; this castlereg reads version {_JSON_VERSION}"
            )
        try:
            names, targets = tuple(map(str, content["nodes"])), tuple(map(str, content["targets"]))
            n = len(names)
            for name in _MATRICES:
                if [len(row) for row in content[name]] != [n] * n:
                    raise ValueError(f"{name} must have {n} rows of {n} numbers")
            weights, confidence, direction = (np.array(content[m], np.float64).reshape(n, n) for m in _MATRICES)
        except (KeyError, TypeError) as error:
            raise ValueError(f"the JSON is not a complete graph: {error}") from None
        return cls(names, targets, weights, confidence, direction)


@dataclass(frozen=True, eq=False, repr=False)
class InputGraph(Graph):
    """Which columns the networks of a CASTLE model use for each other: the paper's graph, a fact about the networks.

    An edge says that a column helps to predict another. The arrows are weak evidence of causes; see
    :class:`CausalGraph`.

    Attributes
    ----------
    weight_array, learned_array : array of shape (nodes, nodes)
        Mean norms of input weights, and the same before weak edges and those that close a cycle were dropped.
    threshold : float
        Learned weights below it are not edges.
    agreement_array : array of shape (nodes, nodes)
        Share of the networks whose strong edges include the edge; NaN for a single network.
    n_networks : int

    Examples
    --------
    >>> forward, backward = np.array([[0.0, 0.9], [0.2, 0.0]]), np.array([[0.0, 0.1], [0.3, 0.0]])
    >>> graph = InputGraph.from_networks(np.stack([forward, forward, backward]), ["age", "income"], "income")
    >>> graph.edges().round(2).values.tolist()
    [['age', 'income', 0.63, 0.67]]
    """

    learned_array: Array
    threshold: float
    agreement_array: Array
    n_networks: int

    shares: ClassVar[tuple[str, ...]] = ("agreement",)

    @classmethod
    def from_networks(
        cls,
        weights: Array,
        names: Sequence[str],
        targets: str | Sequence[str],
        *,
        threshold: float = 0.0,
        required: NDArray[np.bool_] | None = None,
        replicas: Array | None = None,
    ) -> InputGraph:
        """Build one graph from the mean weights of several networks, the paper's ``M``: (networks, nodes, nodes).

        Edges are added from the strongest down; those that would close a cycle are left out. ``required`` edges are
        kept regardless of their weight. The agreement is that of ``replicas``, by default the same networks.
        """
        learned = np.asarray(weights, dtype=np.float64).mean(axis=0)
        replicas = np.asarray(weights if replicas is None else replicas, dtype=np.float64)
        enough = learned >= threshold if required is None else (learned >= threshold) | required
        cut = acyclic_cut(np.where(enough, learned, 0.0), required)
        agreement = np.mean([strong_edges(acyclic_cut(replica, required)) for replica in replicas], axis=0)
        if len(replicas) == 1:
            agreement = np.full(cut.shape, np.nan)
        if required is not None:
            agreement = np.where(required, 1.0, agreement)
        targets = (targets,) if isinstance(targets, str) else tuple(targets)
        return cls(tuple(names), targets, cut, learned, float(threshold), agreement, len(replicas))

    def above(self, threshold: float) -> InputGraph:
        """Return the graph of the learned weights that reach a threshold, without others that were required."""
        check_number("threshold", threshold, least=0)
        cut = acyclic_cut(np.where(self.learned_array >= threshold, self.learned_array, 0.0))
        return replace(self, weight_array=cut, threshold=float(threshold))

    @property
    def learned_weights(self) -> pd.DataFrame:
        """The weights before weak edges and those that close a cycle were dropped."""
        return self._named(self.learned_array)

    @property
    def agreement(self) -> pd.DataFrame:
        """``agreement.loc[cause, effect]``: the share of networks with this edge among their strong ones."""
        return self._named(self.agreement_array)

    @property
    def dropped_weight(self) -> float:
        """Share of the learned weight above the threshold that was cut to remove cycles."""
        total = float(self.learned_array[(self.learned_array >= self.threshold) | self.edge_array].sum())
        return 1 - float(self.weight_array.sum()) / total if total > 0 else 0.0

    def summary(self) -> str:
        """Describe the graph in a few lines."""
        lines = [
            f"{len(self.names)} nodes, {len(self.edges())} edges of at least {self.threshold:.3g}; "
            f"{self.dropped_weight:.0%} of their weight closed cycles and was cut."
        ]
        lines += [f"Into {target}: {', '.join(self.parents(target)) or 'nothing'}." for target in self.targets]
        if self.n_networks > 1:
            lines.append(f"Agreement is the share of {self.n_networks} networks with the edge among their strong ones.")
        return "\n".join([*lines, "The networks use these columns; arrows are weak evidence of causes."])


def _index(names: Sequence[str]) -> pd.Index:
    """Return names as the index of a DataFrame."""
    try:
        return pd.Index(list(names))
    except UnicodeEncodeError:  # Arrow strings cannot represent every name
        return pd.Index(list(names), dtype=object)


def _unquoted(name: str) -> str:
    return str(json.loads(name, strict=False)) if name.startswith('"') and name.endswith('"') else name
