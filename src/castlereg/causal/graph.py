"""Graphs of columns: reading, editing and drawing them.

A :class:`CausalGraph` says which columns cause which, with calibrated probabilities. An :class:`InputGraph` says which
columns the networks of a CASTLE model use.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.sparse.csgraph import breadth_first_order

from castlereg.acyclicity.cut import acyclic_cut, find_cycle, strong_edges
from castlereg.causal.knowledge import unknown_node, useful_questions, with_priors
from castlereg.options import check_integer, check_number, did_you_mean

if TYPE_CHECKING:
    import networkx as nx
    from matplotlib.axes import Axes

    from castlereg.causal.discovery import Source

Array = NDArray[np.float64]

KNOWN_DIRECTION = 0.75  # a direction with a lower probability is uncertain
NOT_PROOF = "A prediction aid, not proof of cause."
SUSPECTED = 0.2  # probability from which a hidden common cause is shown: rows alone rarely show more
_EVIDENCE = ("hidden", "independences", "shapes", "prior")  # unknown by default
_ARRAYS = ("weight", "confidence", "direction", *_EVIDENCE)  # also the attributes of edges in other formats
_SYMMETRIC, _COMPLEMENTARY = ("confidence", "hidden"), ("direction", "independences", "shapes")
_JSON_FORMAT, _JSON_VERSION = "castlereg graph", 3


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
            written = ", ".join(f"{name}={_decimal(value)}" for name, value in attributes.items())
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
        direction is unknown, the line is dashed and has no arrow head. Dotted lines with two heads join nodes with a
        suspected hidden common cause, and a ring marks an edge that you have a belief about. The caption states how
        many edges are shown. By default, it has new axes and twice as many edges as nodes.
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

    ``estimator.graph_`` is the graph that the training rows support. A prediction aid, not proof of cause: an arrow may
    be due to a common cause that is not in the table; ``hidden`` says how probable that is, as far as rows can show it.
    A graph is immutable: :meth:`with_edge` and the other edits return a new one.

    Attributes
    ----------
    names, targets : tuple of str
        Names of the nodes, and of those that are targets.
    weight_array : array of shape (nodes, nodes)
        Strength of the edge j -> k from 0 to 1, like a correlation: how much worse k is predicted without j.
    confidence_array, direction_array : array of shape (nodes, nodes)
        Probability that an edge joins two nodes, and that it points from j to k if so; NaN if it is not known.
    hidden_array : array of shape (nodes, nodes)
        Probability that an unobserved common cause joins two nodes.
    independences_array, shapes_array : array of shape (nodes, nodes)
        The two kinds of evidence for a direction, each without the other: what the independences among the columns
        compel, and what the shapes of functions and noise suggest; 0.5 if they say nothing.
    prior_array : array of shape (nodes, nodes)
        The user's belief in the arrow j -> k; NaN if there is none.

    Examples
    --------
    >>> graph = CausalGraph.from_edges(pd.DataFrame({"cause": ["age"], "effect": ["income"]}), target="income")
    >>> graph.parents("income")
    ['age']
    """

    confidence_array: Array
    direction_array: Array
    hidden_array: Array = field(default=None, kw_only=True)  # type: ignore[arg-type]  # an array of NaN
    independences_array: Array = field(default=None, kw_only=True)  # type: ignore[arg-type]
    shapes_array: Array = field(default=None, kw_only=True)  # type: ignore[arg-type]
    prior_array: Array = field(default=None, kw_only=True)  # type: ignore[arg-type]

    shares: ClassVar[tuple[str, ...]] = ("confidence", "direction", "independences", "shapes", "hidden")
    source: ClassVar[Any] = None  # of a discovered graph, what it was discovered from; not in files

    def __post_init__(self) -> None:
        for name in _EVIDENCE:
            if getattr(self, f"{name}_array") is None:
                object.__setattr__(self, f"{name}_array", np.full(self.weight_array.shape, np.nan))
        super().__post_init__()

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

    def edges(self) -> pd.DataFrame:
        """Return the edges, strongest first, with their probabilities and the evidence for them.

        If there are beliefs, ``prior`` is the belief in the arrow, ``prior_back`` that in the arrow back if there is
        any, and ``data`` the probability of the arrow without any beliefs.
        ``confidence`` times ``direction`` is the probability of the arrow with both.
        """
        edges = super().edges()
        if np.isnan(self.prior_array).all():
            return edges
        joined, direction = with_priors(self.confidence_array, self.direction_array, 1 - self.prior_array)
        at = [self.names.index(name) for name in edges["cause"]], [self.names.index(name) for name in edges["effect"]]
        edges = edges.assign(prior=self.prior_array[at], data=(joined * direction)[at])
        back = self.prior_array[at[::-1]]
        return edges if np.isnan(back).all() else edges.assign(prior_back=back)

    def hidden_causes(self, least: float = SUSPECTED) -> pd.DataFrame:
        """Return the pairs, joined by an edge or not, with a suspected unobserved common cause, most probable first.

        Examples
        --------
        >>> hidden = np.array([[np.nan, 0.8], [0.8, np.nan]])
        >>> unknown = np.full((2, 2), np.nan)
        >>> names = ("age", "income")
        >>> graph = CausalGraph(names, ("income",), np.zeros((2, 2)), unknown, unknown, hidden_array=hidden)
        >>> graph.hidden_causes().values.tolist()
        [['age', 'income', 0.8]]
        """
        check_number("least", least, least=0)
        first, second = np.nonzero(np.triu(self.hidden_array >= least, 1))
        order = np.argsort(-self.hidden_array[first, second], kind="stable")
        first, second, names = first[order], second[order], _index(self.names)
        probability = self.hidden_array[first, second]
        return pd.DataFrame({"first": names[first], "second": names[second], "probability": probability})

    def questions(self, most: int = 5) -> pd.DataFrame:
        """Return the questions about directions whose answers would settle most arrows, most useful first.

        An arrow is open if its edge has a confidence of at least 0.5 and neither direction reaches 0.9. For both
        answers to each question, the rules of Meek (1995) give the open arrows that follow. A question is useful if it
        is uncertain, settles many arrows, and changes which nodes are causes or effects of a target, direct or not.

        Returns
        -------
        DataFrame
            ``question``, ``first`` and ``second``, ``probability`` (that the first causes the second), ``settles``
            (expected number of open arrows that the answer settles, including its own), and ``changes_target`` (whether
            an answer changes the causes or effects of a target). Pass answers as ``required`` edges or ``beliefs`` of
            :class:`EdgeConstraints`.

        Examples
        --------
        >>> edges = pd.DataFrame({"cause": ["age", "income"], "effect": ["income", "rent"]})
        >>> edges = edges.assign(confidence=1.0, direction=0.6)
        >>> asked = CausalGraph.from_edges(edges, target="rent").questions()
        >>> asked["question"].tolist()
        ['Does income cause rent, or rent income?', 'Does age cause income, or income age?']
        >>> asked["settles"].tolist()  # if rent causes income, then income causes age, because no collider was found
        [1.4, 1.6]
        """
        check_integer("most", most, least=0)
        return useful_questions(self, most)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "source"}  # it holds rows

    def discovered_from(self, source: Source) -> Self:
        """Return the graph with what it was discovered from, for :meth:`stability`."""
        graph = replace(self)
        object.__setattr__(graph, "source", source)
        return graph

    def stability(self, n: int = 10, *, share: float = 0.7, progress: bool = False) -> pd.DataFrame:
        """Discover the graph again in ``n`` samples of a share of the rows, and count how often each edge is found.

        Only a discovered graph has the rows to do so: not one that was read from a file or built by hand.

        Returns
        -------
        DataFrame
            :meth:`edges` with ``persists``, the share of the samples with the same arrow, and ``joined``, the share
            with an edge in either direction.
        """
        check_integer("n", n, least=1)
        check_number("share", share, above=0, most=1)
        if self.source is None:
            raise ValueError("the graph was not discovered from rows in this session: use graph_ of a fitted model")
        arrows = self.source.arrows(share, n, progress)
        names, edges = self.source.table.names, self.edges()
        at = [names.index(name) for name in edges["cause"]], [names.index(name) for name in edges["effect"]]
        persists, back = arrows.mean(axis=0)[at], arrows.mean(axis=0)[at[::-1]]
        return edges.assign(persists=persists, joined=persists + back)

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
        if n_hidden := int((edges["hidden"] >= SUSPECTED).sum()):
            lines.append(f"A hidden common cause is suspected for {n_hidden} of the edges; see hidden_causes().")
        if np.isnan(self.confidence_array[self.edge_array]).any():
            lines.append("The probabilities of some edges are not known (NaN).")
        else:
            lines.append(
                "Confidence and direction are probabilities, from how much less likely left-out rows are under other "
                "graphs, and from how often bootstrap samples join two columns and compel a direction."
            )
        if edges[["independences", "shapes"]].notna().any(axis=None):
            lines.append(
                "Two kinds of evidence for a direction are shown separately: what the independences among the columns "
                "compel, and what the shapes of functions and noise suggest. The first is more reliable on real tables."
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
        arrays: dict[str, Any] = {name: array[order] for name, array in self._arrays().items()}
        graph = replace(self, names=tuple(names), **arrays)
        return graph if self.source is None else graph.discovered_from(self.source)

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

    def _arrays(self) -> dict[str, Any]:
        return {f"{name}_array": getattr(self, f"{name}_array").copy() for name in _ARRAYS}

    def _edited(self, j: int, k: int, weight: float) -> CausalGraph:
        """Change the weight of an edge; edits count as certain and replace beliefs."""
        arrays, either = self._arrays(), ([j, k], [k, j])
        arrays["weight_array"][j, k] = weight
        arrays["confidence_array"][either] = float(weight > 0)
        arrays["direction_array"][either] = (1.0, 0.0) if weight > 0 else np.nan
        arrays["prior_array"][either] = np.nan
        return replace(self, **arrays)

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
        attributes = [column for column in (*_ARRAYS, "prior_back") if column in edges]
        graph.update(nx.from_pandas_edgelist(edges, "cause", "effect", attributes or None, create_using=nx.DiGraph))
        return cls.from_networkx(graph)

    @classmethod
    def from_networkx(cls, graph: nx.DiGraph, target: str | Sequence[str] | None = None) -> Self:
        """Read a networkx graph; a missing ``weight`` is 1, other missing attributes are not known (NaN).

        By default the targets are the nodes whose attribute ``target`` is true. Only JSON, dagitty and lavaan have the
        hidden causes of pairs without an edge.
        """
        if not graph.is_directed():
            raise ValueError("the graph is undirected; a causal graph needs directed edges")
        if target is None:
            marked = graph.nodes(data="target")
            target = [str(node) for node, value in marked if str(value).strip('"').lower() in ("1", "true")]
            if not target:
                raise ValueError("no node has a true attribute 'target'; pass target=...")
        index = {node: k for k, node in enumerate(graph)}
        arrays = {name: np.full((len(index), len(index)), 0.0 if name == "weight" else np.nan) for name in _ARRAYS}
        for cause, effect, attributes in graph.edges(data=True):
            j, k = index[cause], index[effect]
            for name, array in arrays.items():
                try:
                    array[j, k] = float(value := attributes.get(name, 1.0 if name == "weight" else np.nan))
                except (TypeError, ValueError):
                    raise ValueError(
                        f"the edge {cause!r} -> {effect!r} has {name}={value!r}, which is not a number"
                    ) from None
                if name in _SYMMETRIC or name in _COMPLEMENTARY:
                    array[k, j] = array[j, k] if name in _SYMMETRIC else 1 - array[j, k]
            if "prior_back" in attributes:
                arrays["prior"][k, j] = float(attributes["prior_back"])
            if (weight := arrays["weight"][j, k]) <= 0 or not np.isfinite(weight):
                raise ValueError(f"the edge {cause!r} -> {effect!r} has weight {weight:g}; weights must be positive")
        targets = (target,) if isinstance(target, str) else tuple(target)
        return cls(tuple(map(str, graph)), targets, **{f"{name}_array": array for name, array in arrays.items()})

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
            name, attributes = node.get_name(), node.get_attributes()
            # Without quotes, these are defaults; old versions of pydot return a last line break as a node.
            if name not in ("node", "edge", "graph") and (name != '"\\n"' or attributes):
                graph.add_node(_unquoted(name), target=attributes.get("target"))
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
        arrays: list[Any] = [np.where(np.isnan(a), np.array(None), a) for a in self._arrays().values()]
        matrices = {_json_name(name): array.tolist() for name, array in zip(_ARRAYS, arrays, strict=True)}
        return json.dumps(content | matrices, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read a graph written by :meth:`to_json`, also of version 2, which has no evidence."""
        try:
            content = json.loads(text)
        except json.JSONDecodeError as error:
            raise ValueError(f"the text is not JSON: {error}") from None
        if not isinstance(content, dict) or content.get("format") != _JSON_FORMAT:
            raise ValueError("the JSON is not a castlereg graph")
        if (version := content.get("version")) not in (2, _JSON_VERSION):
            raise ValueError(f"the graph has version {version!r}; this castlereg reads versions 2 and {_JSON_VERSION}")
        try:
            names, targets = tuple(map(str, content["nodes"])), tuple(map(str, content["targets"]))
            n, arrays = len(names), {}
            for name in _ARRAYS if version == _JSON_VERSION else _ARRAYS[:3]:
                rows = content[_json_name(name)]
                if [len(row) for row in rows] != [n] * n:
                    raise ValueError(f"{_json_name(name)} must have {n} rows of {n} numbers")
                arrays[f"{name}_array"] = np.array(rows, np.float64).reshape(n, n)
        except (KeyError, TypeError) as error:
            raise ValueError(f"the JSON is not a complete graph: {error}") from None
        return cls(names, targets, **arrays)

    def to_dagitty(self) -> str:
        """Write the graph for dagitty, with ``<->`` for suspected hidden common causes.

        Edges have their weight and probabilities as attributes, which the grammar of dagitty allows.

        Examples
        --------
        >>> graph = CausalGraph.from_edges(pd.DataFrame({"cause": ["age"], "effect": ["pay"]}), target="pay")
        >>> print(graph.to_dagitty(), end="")
        dag {
          "age"
          "pay" [outcome]
          "age" -> "pay" [weight=1.0]
        }
        >>> CausalGraph.from_dagitty(graph.to_dagitty()).parents("pay")
        ['age']
        """
        for name in self.names:
            if name.endswith("\\") or re.search("[\0-\x1f\x7f]", name):
                raise ValueError(
                    f"dagitty has no form for the name {name!r}: rename it without control characters or \\"
                )
        quoted = {name: '"' + name.replace('"', '\\"') + '"' for name in self.names}
        lines = [f"  {quoted[name]}{' [outcome]' if name in self.targets else ''}" for name in self.names]
        for cause, effect, attributes in self.to_networkx().edges(data=True):
            known = ", ".join(f"{name}={_decimal(value)}" for name, value in attributes.items())
            lines.append(f"  {quoted[cause]} -> {quoted[effect]} [{known}]")
        for first, second, probability in self.hidden_causes().itertuples(index=False):
            lines.append(f"  {quoted[first]} <-> {quoted[second]} [hidden={_decimal(probability)}]")
        return "\n".join(["dag {", *lines, "}", ""])

    @classmethod
    def from_dagitty(cls, text: str, target: str | Sequence[str] | None = None) -> Self:
        """Read a graph of dagitty; by default the targets are its outcomes.

        ``<->`` is a hidden common cause, of probability 1 without an attribute ``hidden``.
        """
        return cls._from_statements(_dagitty_statements(text), target, "mark an [outcome]")

    def to_lavaan(self) -> str:
        """Write the graph as a model of lavaan: a regression per effect, ``~~`` for probable hidden common causes.

        Lavaan cannot quote names, so other names than those of R raise; nodes without edges have a variance.

        Examples
        --------
        >>> graph = CausalGraph.from_weights(np.triu(np.ones((3, 3)), 1), ["age", "size", "pay"], target="pay")
        >>> print(graph.to_lavaan(), end="")
        size ~ age
        pay ~ age + size
        """
        for name in self.names:
            if not re.fullmatch(_R_NAME, name) or name in _RESERVED.split():
                raise ValueError(
                    f"lavaan has no form for the name {name!r}: rename it to letters, digits, '.' and '_', a letter "
                    "first, and no reserved word of R"
                )
        lines = [f"{name} ~ {' + '.join(self.parents(name))}" for name in self.names if self.parents(name)]
        hidden = self.hidden_causes(0.5)
        lines += [f"{first} ~~ {second}" for first, second in zip(hidden["first"], hidden["second"], strict=True)]
        joined = {*hidden["first"], *hidden["second"], *self.edges()[["cause", "effect"]].to_numpy().ravel()}
        return "\n".join([*lines, *(f"{name} ~~ {name}" for name in self.names if name not in joined), ""])

    @classmethod
    def from_lavaan(cls, text: str, target: str | Sequence[str]) -> Self:
        """Read the regressions ``~`` and covariances ``~~`` of a model of lavaan.

        A covariance of two variables is a hidden common cause of probability 1. Coefficients such as ``0.5*age`` are
        ignored, intercepts and other statements raise.
        """
        return cls._from_statements(_lavaan_statements(text), target, "pass target=")

    @classmethod
    def _from_statements(
        cls, statements: Iterable[_Statement], target: str | Sequence[str] | None, advice: str
    ) -> Self:
        """Build a graph from ``(line, first, operator, second, attributes)``; the operator of a node is empty."""
        import networkx as nx

        graph, hidden = nx.DiGraph(), {}
        for line, first, operator, second, attributes in statements:
            if not operator:
                graph.add_node(first, **({"target": True} if "outcome" in attributes else {}))
            elif first == second:
                raise ValueError(f"line {line}: an edge joins {first!r} to itself")
            elif operator == "->":
                graph.add_edge(first, second, **attributes)
            else:
                graph.add_nodes_from([first, second])
                hidden[first, second] = line, attributes.get("hidden", 1.0)
        targets = (
            [target] if isinstance(target, str) else target or [n for n, marked in graph.nodes("target") if marked]
        )
        if not targets:
            raise ValueError(f"the graph has no target: {advice}, or pass target=...")
        found = cls.from_networkx(graph, targets)
        array = found.hidden_array.copy()
        for (first, second), (line, probability) in hidden.items():
            at = [found.index(first), found.index(second)]
            try:
                array[at, at[::-1]] = float(probability)
            except ValueError:
                raise ValueError(f"line {line}: hidden={probability!r} is not a number") from None
            if not 0 <= float(probability) <= 1:
                raise ValueError(f"line {line}: hidden={probability!r} is not between 0 and 1")
        return replace(found, hidden_array=array)


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


def _json_name(array: str) -> str:
    return "weights" if array == "weight" else array


def _decimal(value: float) -> str:
    """Write a number exactly and without an exponent, which parsers of DOT and dagitty do not read."""
    return np.format_float_positional(value, trim="0")


_R_NAME = r"(?:[^\W\d_]|\.(?!\d))[\w.]*"
_RESERVED = "if else repeat while function for next break in TRUE FALSE NULL Inf NaN NA"
_QUOTED = r'"(?:\\"|\\(?!")|[^"\\])*"'
_NAME = rf"(?:{_QUOTED}|-?[\w.]+)"
_DAGITTY = re.compile(
    rf'({_NAME})(?:\s*=\s*{_NAME}|((?:\s*(?:<->|->|<-)\s*{_NAME})*)\s*(?:\[((?:{_QUOTED}|[^\]"])*)\])?)[\s;]*'
)
_Statement = tuple[
    int, str, str, str, dict[str, str]
]  # line, first, operator, second, attributes; a node has no operator


def _dagitty_statements(text: str) -> Iterator[_Statement]:
    """Parse the nodes and edges of dagitty; options of the graph are ignored."""

    def plain(name: str) -> str:
        return name[1:-1].replace('\\"', '"') if name.startswith('"') else name

    head = re.match(rf"\s*(?:dag|digraph|mag|pag|pdag)\s*{_NAME}?\s*{{[\s;]*", text, re.IGNORECASE)
    if head is None:
        raise ValueError("line 1: the text does not have the form dag { ... }")
    end = head.end()
    while not re.fullmatch(r"\}\s*", text[end:]):
        line, match = text.count("\n", 0, end) + 1, _DAGITTY.match(text, end)
        if match is None:
            rest = text[end:].split("\n")[0][:30]
            raise ValueError(
                f"line {line}: cannot read {rest!r}; write nodes, a -> b, a <- b or a <-> b, and a last }}"
            )
        end, options = match.end(), re.findall(rf"({_NAME})(?:\s*=\s*({_NAME}))?", match[3] or "")
        attributes, first = {plain(key): plain(value) for key, value in options}, plain(match[1])
        if "latent" in attributes:
            raise ValueError(f"line {line}: {first!r} is latent; join its effects by <-> instead")
        if match[2] == "":
            yield line, first, "", "", attributes
        for operator, name in re.findall(rf"(<->|->|<-)\s*({_NAME})", match[2] or ""):
            second = plain(name)
            yield line, *((second, "->", first) if operator == "<-" else (first, operator, second)), attributes
            first = second


def _lavaan_statements(text: str) -> Iterator[_Statement]:
    """Parse the regressions and covariances of lavaan."""
    name = _R_NAME
    statements: list[tuple[int, str]] = []
    for number, raw in enumerate(text.split("\n"), 1):
        part = re.split("[#!]", raw)[0].strip()
        if statements and (statements[-1][1].endswith(("+", "~", "*")) or part.startswith("+")):  # continues
            statements[-1] = statements[-1][0], f"{statements[-1][1]} {part}".strip()
        elif part:
            statements.append((number, part))
    for start, statement in statements:
        for piece in filter(None, map(str.strip, statement.split(";"))):
            match = re.fullmatch(rf"({name}(?:\s*\+\s*{name})*)\s*(~~?)\s*([^~=<>|]+)", piece)
            parts = [term.rpartition("*") for term in match[3].split("+")] if match else [("", "", "")]
            if match is None or not all(re.fullmatch(name, term.strip()) for *_, term in parts):
                raise ValueError(f"line {start}: cannot read {piece!r}; write effect ~ cause1 + cause2, or a ~~ b")
            is_zero = re.compile(r"\s*[-+]?0*\.?0*\s*")  # a coefficient that is fixed to zero: no edge
            terms = [term.strip() for fixed, star, term in parts if not star or not is_zero.fullmatch(fixed)]
            for left in re.split(r"\s*\+\s*", match[1]):
                for term in terms:
                    if match[2] == "~~" and term == left:
                        yield start, left, "", "", {}
                    else:
                        first, second = (left, term) if match[2] == "~~" else (term, left)
                        yield start, first, "->" if match[2] == "~" else "<->", second, {}


def _unquoted(name: str) -> str:
    return str(json.loads(name, strict=False)) if name.startswith('"') and name.endswith('"') else name
