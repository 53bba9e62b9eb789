"""A learned graph: named weights without cycles."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from castlereg.graph.acyclic_cut import acyclic_cut
from castlereg.graph.column_traits import ColumnTraits
from castlereg.graph.constraints import unknown_node
from castlereg.graph.cycles import find_cycle, reachability
from castlereg.graph.strong_edges import strong_edges
from castlereg.options import check_number

if TYPE_CHECKING:
    import networkx as nx
    from matplotlib.axes import Axes

# Below this share of networks that agree on it, a direction is not to be relied on.
AGREEMENT = 0.75


@dataclass(frozen=True, eq=False, repr=False)
class CausalGraph:
    """The graph that a network has learned, as a directed acyclic graph.

    A prediction aid, not proof of cause: see :meth:`from_members` for how it comes about. A graph cannot be changed;
    :meth:`with_edge` and its like return another one.

    Attributes
    ----------
    names : tuple of str
        Names of the nodes.
    targets : tuple of str
        Names of the targets.
    weights : DataFrame
        ``weights.loc[cause, effect]``, zero where there is no edge: norms of input weights, or with the exact schedule
        what the edge is worth, from 0 to 1 (:mod:`castlereg.edge_strength`).
    learned_weights : DataFrame
        The weights before weak edges and those that close a cycle were dropped.
    confidence : DataFrame
        ``confidence.loc[a, b]`` is the share of networks in whose own graph a strong edge joins the two, either way:
        see :func:`castlereg.graph.strong_edges.strong_edges`. With one network it is 0 or 1.
    direction : DataFrame
        ``direction.loc[cause, effect]``, of the networks with a strong edge between the two, is the share that has it
        this way; NaN where none has one.
    threshold : float
        Learned weights below it are no edges.
    dropped_weight : float
        Share of the learned weight of edges above the threshold that was cut to get a graph without cycles.
    traits : ColumnTraits or None
        Scale and predictability of the columns of the training table; see :attr:`sortability`.

    Examples
    --------
    >>> import numpy as np
    >>> graph = CausalGraph.from_weights(np.array([[0.0, 0.9], [0.2, 0.0]]), ["age", "income"], target="income")
    >>> graph.edges()[["cause", "effect", "weight"]]
      cause  effect  weight
    0   age  income     0.9
    >>> graph.parents("income")
    ['age']
    >>> round(graph.dropped_weight, 2)
    0.18
    """

    names: tuple[str, ...]
    targets: tuple[str, ...]
    weight_array: NDArray[np.float64]
    learned_array: NDArray[np.float64]
    confidence_array: NDArray[np.float64]
    direction_array: NDArray[np.float64]
    threshold: float = 0.0
    dropped_weight: float = 0.0
    traits: ColumnTraits | None = None

    def __post_init__(self) -> None:
        names = list(self.names)
        if len(names) != len(self.weight_array) or len(set(names)) != len(names):
            raise ValueError(f"{len(self.weight_array)} nodes need as many different names, got {names}")
        for one in self.targets:
            if one not in names:
                raise ValueError(f"target {one!r} is not among the nodes {names}")
        cycle = find_cycle(self.weight_array != 0)
        if cycle is not None:
            raise ValueError(f"the edges form a cycle: {' -> '.join(names[k] for k in cycle)}")
        for name in ("weight_array", "learned_array", "confidence_array", "direction_array"):
            array = np.array(getattr(self, name), dtype=np.float64)
            array.setflags(write=False)
            object.__setattr__(self, name, array)

    # --- how a graph comes about -------------------------------------------------------------------

    @classmethod
    def from_weights(
        cls, weights: NDArray[np.float64], names: Sequence[str], target: str | Sequence[str], *, threshold: float = 0.0
    ) -> CausalGraph:
        """Cut learned weights down to a graph without cycles, strongest edges first.

        Parameters
        ----------
        weights : array of shape (nodes, nodes)
            ``weights[j, k]`` is the weight of j -> k, the paper's ``M``.
        names : sequence of str
            One for each node, all different.
        target : str or sequence of str
            One of the names, or several.
        threshold : float
            Weights below it are no edges.

        Returns
        -------
        CausalGraph
        """
        return cls.from_members(np.asarray(weights)[None], names, target, threshold=threshold)

    @classmethod
    def from_members(
        cls,
        weights: NDArray[np.float64],
        names: Sequence[str],
        target: str | Sequence[str],
        *,
        threshold: float = 0.0,
        replicas: NDArray[np.float64] | None = None,
        required: NDArray[np.bool_] | None = None,
        traits: ColumnTraits | None = None,
    ) -> CausalGraph:
        """Make one graph of the mean weights of several networks, with a confidence from each one's own graph.

        Parameters
        ----------
        weights : array of shape (networks, nodes, nodes)
        names : sequence of str
            One for each node, all different.
        target : str or sequence of str
            One of the names, or several.
        threshold : float
            Mean weights below it are no edges.
        replicas : array of shape (networks, nodes, nodes), optional
            Networks whose graphs give the confidence; by default the same.
        required : array of bool, shape (nodes, nodes), optional
            Edges that are kept whatever their weight.
        traits : ColumnTraits, optional
            Of the table that the networks were trained on.

        Returns
        -------
        CausalGraph

        Examples
        --------
        >>> import numpy as np
        >>> one, other = np.array([[0.0, 0.9], [0.2, 0.0]]), np.array([[0.0, 0.1], [0.3, 0.0]])
        >>> graph = CausalGraph.from_members(np.stack([one, one, other]), ["age", "income"], target="income")
        >>> float(graph.confidence.loc["age", "income"]), round(float(graph.direction.loc["age", "income"]), 2)
        (1.0, 0.67)
        """
        weights = np.asarray(weights, dtype=np.float64)
        learned = weights.mean(axis=0)
        replicas = weights if replicas is None else np.asarray(replicas, dtype=np.float64)
        strong = np.array([strong_edges(acyclic_cut(one, required)) for one in replicas])
        if required is not None:
            strong |= required
        joined = (strong | strong.swapaxes(1, 2)).mean(axis=0)
        direction = strong.mean(axis=0) / np.where(joined > 0, joined, np.nan)
        kept, dropped = _cut(learned, threshold, required)
        targets = (target,) if isinstance(target, str) else tuple(target)
        return cls(tuple(names), targets, kept, learned, joined, direction, float(threshold), dropped, traits)

    def above(self, threshold: float) -> CausalGraph:
        """Return the graph of learned weights of at least a threshold; 0 for all of them.

        Edits, and required edges below the threshold, are lost: the graph is cut from the learned weights anew.
        """
        check_number("threshold", threshold, least=0)
        kept, dropped = _cut(self.learned_array, threshold, None)
        return replace(self, weight_array=kept, threshold=float(threshold), dropped_weight=dropped)

    # --- what is in it -----------------------------------------------------------------------------

    @property
    def weights(self) -> pd.DataFrame:
        """Weights of the edges, see the class."""
        return self._named(self.weight_array)

    @property
    def learned_weights(self) -> pd.DataFrame:
        """Weights before the cut, see the class."""
        return self._named(self.learned_array)

    @property
    def confidence(self) -> pd.DataFrame:
        """Share of networks that join two nodes, see the class."""
        return self._named(self.confidence_array)

    @property
    def direction(self) -> pd.DataFrame:
        """Agreement on directions, see the class."""
        return self._named(self.direction_array)

    def _named(self, values: NDArray[np.float64]) -> pd.DataFrame:
        names = _index(self.names)
        return pd.DataFrame(values.copy(), index=names, columns=names)

    @property
    def target(self) -> str:
        """Name of the target, the first of several."""
        return self.targets[0]

    @property
    def nodes(self) -> list[str]:
        """Names of the nodes."""
        return list(self.names)

    @property
    def is_dag(self) -> bool:
        """Whether there is no directed cycle: always true."""
        return find_cycle(self.weight_array != 0) is None

    def edges(self) -> pd.DataFrame:
        """List the edges, strongest first: ``cause``, ``effect``, ``weight``, ``confidence``, ``direction``."""
        cause, effect = np.nonzero(self.weight_array)
        order = np.argsort(-self.weight_array[cause, effect], kind="stable")
        cause, effect = cause[order], effect[order]
        names = _index(self.names)
        return pd.DataFrame(
            {
                "cause": names[cause],
                "effect": names[effect],
                "weight": self.weight_array[cause, effect],
                "confidence": self.confidence_array[cause, effect],
                "direction": self.direction_array[cause, effect],
            }
        )

    def parents(self, node: str) -> list[str]:
        """Name the causes of a node, strongest first."""
        return self._strongest_first(self.weight_array[:, self._place(node)])

    def children(self, node: str) -> list[str]:
        """Name the effects of a node, strongest first."""
        return self._strongest_first(self.weight_array[self._place(node)])

    def ancestors(self, node: str) -> list[str]:
        """Name the nodes from which a path leads to a node, in topological order."""
        return self._in_order(reachability(self.weight_array != 0)[:, self._place(node)])

    def descendants(self, node: str) -> list[str]:
        """Name the nodes to which a path leads from a node, in topological order."""
        return self._in_order(reachability(self.weight_array != 0)[self._place(node)])

    def markov_blanket(self, node: str) -> list[str]:
        """Name the parents, the children and the children's other parents of a node, in topological order.

        Given these, no other node tells more about it, if the graph is right.
        """
        edges, place = self.weight_array != 0, self._place(node)
        blanket = edges[:, place] | edges[place] | edges[:, edges[place]].any(axis=1)
        blanket[place] = False
        return self._in_order(blanket)

    def topological_order(self) -> list[str]:
        """Name all nodes, causes before their effects; nodes keep their order where edges leave it open."""
        return [self.names[k] for k in self._order()]

    @property
    def sortability(self) -> dict[str, float]:
        """Share of paths that lead to columns of higher variance, and of higher predictability (R²).

        Near 1 or 0, sorting the columns by this gives the same arrows, which is a reason to trust them less; see
        :func:`castlereg.graph.sortability.varsortability` and :func:`~castlereg.graph.sortability.r2_sortability`.
        Empty when the graph does not come from a table.
        """
        return {} if self.traits is None else self.traits.sortability(self.weight_array)

    def undirected(self) -> pd.DataFrame:
        """List the edges on whose direction fewer than three quarters of the networks agree."""
        edges = self.edges()
        return edges[edges["direction"] < AGREEMENT].reset_index(drop=True)

    def summary(self) -> str:
        """Say in a few lines what the graph holds and how far to trust it."""
        edges, doubtful = self.edges(), self.undirected()
        lines = [
            f"{len(self.names)} nodes, {len(edges)} edges of at least {self.threshold:.3g}; "
            f"{self.dropped_weight:.0%} of their weight closed cycles and was cut."
        ]
        for target in self.targets:
            causes = self.parents(target)
            lines.append(f"Into {target}: {', '.join(causes) if causes else 'nothing'}.")
        if len(doubtful):
            lines.append(f"The networks do not agree on the direction of {len(doubtful)} of the edges.")
        if self.traits is not None:
            lines += self.traits.remarks(self.weight_array)
        lines.append("A prediction aid, not proof of cause.")
        return "\n".join(lines)

    def __repr__(self) -> str:
        edges = int(np.count_nonzero(self.weight_array))
        return f"<CausalGraph: {len(self.names)} nodes, {edges} edges, target {', '.join(self.targets)}>"

    def _place(self, node: str) -> int:
        if node not in self.names:
            raise KeyError(f"there is no node {node!r}; the nodes are {', '.join(self.names)}")
        return self.names.index(node)

    def _strongest_first(self, weights: NDArray[np.float64]) -> list[str]:
        order = np.argsort(-weights, kind="stable")
        return [self.names[k] for k in order if weights[k] > 0]

    def _order(self) -> list[int]:
        edges = self.weight_array != 0
        causes_left = edges.sum(axis=0)
        free, order = list(np.flatnonzero(causes_left == 0)), []
        while free:  # a heap, so that the first of the free nodes comes first
            node = int(heapq.heappop(free))
            order.append(node)
            causes_left -= edges[node]
            for effect in np.flatnonzero(edges[node] & (causes_left == 0)):
                heapq.heappush(free, effect)
        return order

    def _in_order(self, wanted: NDArray[np.bool_]) -> list[str]:
        return [self.names[k] for k in self._order() if wanted[k]]

    # --- another graph -----------------------------------------------------------------------------

    def with_edge(self, cause: str, effect: str, weight: float | None = None) -> CausalGraph:
        """Return the graph with one more edge, or with another weight of one that is there.

        Parameters
        ----------
        cause, effect : str
        weight : float, optional
            By default what was learned for it, or the median weight of the edges.

        Returns
        -------
        CausalGraph

        Examples
        --------
        >>> import numpy as np
        >>> graph = CausalGraph.from_weights(np.zeros((2, 2)), ["age", "income"], target="income")
        >>> graph.with_edge("age", "income").parents("income")
        ['age']
        """
        j, k = self._edge(cause, effect)
        if weight is None:
            present = self.weight_array[self.weight_array > 0]
            weight = float(self.learned_array[j, k]) or (float(np.median(present)) if len(present) else 1.0)
        check_number("weight", weight, above=0)
        path = self._path(effect, cause)
        if path is not None:
            raise ValueError(f"the edge {cause!r} -> {effect!r} closes a cycle: {' -> '.join([cause, *path])}")
        return self._edited([(j, k, weight)])

    def without_edge(self, cause: str, effect: str) -> CausalGraph:
        """Return the graph without an edge."""
        return self._edited([(*self._present(cause, effect), 0.0)])

    def reversed_edge(self, cause: str, effect: str) -> CausalGraph:
        """Return the graph with an edge turned round, of the same weight."""
        j, k = self._present(cause, effect)
        weight = float(self.weight_array[j, k])
        return self.without_edge(cause, effect).with_edge(effect, cause, weight)

    def _edited(self, changes: Iterable[tuple[int, int, float]]) -> CausalGraph:
        """Change edges; the user is sure of them."""
        weights, confidence = self.weight_array.copy(), self.confidence_array.copy()
        direction = self.direction_array.copy()
        for j, k, weight in changes:
            weights[j, k] = weight
            confidence[[j, k], [k, j]] = float(weight > 0)
            direction[[j, k], [k, j]] = (1.0, 0.0) if weight > 0 else np.nan
        return replace(self, weight_array=weights, confidence_array=confidence, direction_array=direction)

    def _edge(self, cause: str, effect: str) -> tuple[int, int]:
        for name in (cause, effect):
            if name not in self.names:
                raise ValueError(unknown_node(name, self.names, "the edge's ends"))
        if cause == effect:
            raise ValueError(f"the edge {cause!r} -> {effect!r} is a loop")
        return self.names.index(cause), self.names.index(effect)

    def _present(self, cause: str, effect: str) -> tuple[int, int]:
        j, k = self._edge(cause, effect)
        if self.weight_array[j, k] == 0:
            turned = " (it is there the other way round)" if self.weight_array[k, j] else ""
            raise ValueError(f"there is no edge {cause!r} -> {effect!r}{turned}")
        return j, k

    def _path(self, start: str, end: str) -> list[str] | None:
        import networkx as nx

        graph = self.to_networkx()
        return list(nx.shortest_path(graph, start, end)) if nx.has_path(graph, start, end) else None

    # --- to and from other forms -------------------------------------------------------------------

    def to_networkx(self) -> nx.DiGraph:
        """Convert to a networkx graph; edges have ``weight``, ``confidence`` and ``direction``, nodes ``target``."""
        from castlereg.graph.formats import to_networkx

        return to_networkx(self)

    @classmethod
    def from_networkx(cls, graph: nx.DiGraph, target: str | Sequence[str] | None = None) -> CausalGraph:
        """Read a networkx graph; edges without a ``weight`` weigh 1, and the target is a node's attribute or given."""
        from castlereg.graph.formats import from_networkx

        return from_networkx(graph, target)

    @classmethod
    def from_edges(
        cls, edges: pd.DataFrame, target: str | Sequence[str], nodes: Sequence[str] | None = None
    ) -> CausalGraph:
        """Read a frame such as :meth:`edges` gives, with columns ``cause`` and ``effect`` at least.

        Parameters
        ----------
        edges : DataFrame
        target : str or sequence of str
        nodes : sequence of str, optional
            All nodes in order; by default those that the edges name.

        Returns
        -------
        CausalGraph
        """
        from castlereg.graph.formats import from_edges

        return from_edges(edges, target, nodes)

    def to_dot(self) -> str:
        """Write the graph in Graphviz's language."""
        from castlereg.graph.formats import to_dot

        return to_dot(self)

    @classmethod
    def from_dot(cls, text: str, target: str | Sequence[str] | None = None) -> CausalGraph:
        """Read a graph in Graphviz's language; needs the package ``pydot``."""
        from castlereg.graph.formats import from_dot

        return from_dot(text, target)

    def to_gml(self) -> str:
        """Write the graph as GML, which DoWhy and others read."""
        from castlereg.graph.formats import to_gml

        return to_gml(self)

    @classmethod
    def from_gml(cls, text: str, target: str | Sequence[str] | None = None) -> CausalGraph:
        """Read a graph from GML."""
        from castlereg.graph.formats import from_gml

        return from_gml(text, target)

    def to_json(self) -> str:
        """Write everything that the graph holds as JSON."""
        from castlereg.graph.formats import to_json

        return to_json(self)

    @classmethod
    def from_json(cls, text: str) -> CausalGraph:
        """Read what :meth:`to_json` has written."""
        from castlereg.graph.formats import from_json

        return from_json(text)

    # --- pictures ----------------------------------------------------------------------------------

    def plot(self, ax: Axes | None = None, *, max_edges: int | None = None) -> Axes:
        """Draw the graph with matplotlib, causes left of their effects.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Made when not given.
        max_edges : int, optional
            Draw this many of the strongest edges; twice as many as there are nodes by default.

        Returns
        -------
        matplotlib Axes
        """
        from castlereg.graph.drawing import draw

        return draw(self, ax, 2 * len(self.nodes) if max_edges is None else max_edges)

    def plot_heat_map(self, ax: Axes | None = None) -> Axes:
        """Draw the weights as a heat map with matplotlib, causes in rows, in topological order.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Made when not given.

        Returns
        -------
        matplotlib Axes
        """
        from castlereg.graph.heat_map import draw_heat_map

        return draw_heat_map(self, ax)

    def plot_neighbourhood(self, node: str | None = None, ax: Axes | None = None, *, max_nodes: int = 30) -> Axes:
        """Draw a node, its Markov blanket and one step more: the view for large graphs.

        Parameters
        ----------
        node : str, optional
            The target by default.
        ax : matplotlib Axes, optional
            Made when not given.
        max_nodes : int
            Draw this many at most, strongest first.

        Returns
        -------
        matplotlib Axes
        """
        from castlereg.graph.drawing import draw_neighbourhood

        return draw_neighbourhood(self, node, ax, max_nodes)

    def to_svg(self, *, max_edges: int | None = None, nodes: Iterable[str] | None = None) -> str:
        """Draw the graph as a standalone SVG, without matplotlib.

        Parameters
        ----------
        max_edges : int, optional
            Draw this many of the strongest edges; twice as many as there are nodes by default.
        nodes : iterable of str, optional
            Draw these alone.

        Returns
        -------
        str
        """
        from castlereg.graph.svg import to_svg

        return to_svg(self, max_edges=max_edges, nodes=nodes)

    def _repr_html_(self) -> str:
        from castlereg.graph.svg import notebook_html

        return notebook_html(self)


def _index(names: Sequence[str]) -> pd.Index:
    try:
        return pd.Index(list(names))
    except UnicodeEncodeError:  # text of Arrow cannot hold every name
        return pd.Index(list(names), dtype=object)


def _cut(
    learned: NDArray[np.float64], threshold: float, required: NDArray[np.bool_] | None
) -> tuple[NDArray[np.float64], float]:
    """Drop weak edges and those that close a cycle; return the rest and the share of weight that cycles cost."""
    enough = learned >= threshold
    if required is not None:
        enough |= required
    strong: Any = np.where(enough, learned, 0.0)
    kept = acyclic_cut(strong, required)
    total = float(strong.sum())
    return kept, 1 - float(kept.sum()) / total if total > 0 else 0.0
