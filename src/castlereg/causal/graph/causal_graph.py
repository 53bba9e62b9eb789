"""The learned graph: building, reading, editing and drawing it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.sparse.csgraph import breadth_first_order

from castlereg.acyclicity.cut import acyclic_cut, find_cycle, strong_edges
from castlereg.causal.graph.constraints import unknown_node
from castlereg.causal.graph.formats import GraphFormats
from castlereg.causal.graph.sortability import ColumnTraits
from castlereg.options import check_number, did_you_mean

if TYPE_CHECKING:
    import networkx as nx
    from matplotlib.axes import Axes

AGREEMENT = 0.75  # a direction on which a smaller share of the networks agrees is uncertain
LEFT_OUT_ROWS = "left-out rows"  # the source of the confidence, if it is not the agreement of networks
NOT_PROOF = "A prediction aid, not proof of cause."
FOR_CONFIDENCE = "fit with n_members=20, bootstrap=True, or by cross-validation"


@dataclass(frozen=True, eq=False, repr=False)
class CausalGraph(GraphFormats):
    """The directed acyclic graph that one or several networks have learned.

    A prediction aid, not proof of cause; :meth:`from_members` describes how it is built. A graph is immutable:
    :meth:`with_edge` and the other edits return a new one.

    Attributes
    ----------
    names : tuple of str
        Names of the nodes.
    targets : tuple of str
        Names of the targets.
    threshold : float
        Learned weights below it are not edges.
    dropped_weight : float
        Share of the learned weight above the threshold that was cut to remove cycles.
    traits : ColumnTraits or None
        Scale and predictability of the columns of the training table; see :attr:`sortability`.
    agreement_of : str
        The networks that the confidence compares, such as "10 networks of cross-validation"; empty if not known.

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

    def __post_init__(self) -> None:
        super().__post_init__()
        names = list(self.names)
        if len(names) != len(self.weight_array) or len(set(names)) != len(names):
            n_nodes = len(self.weight_array)
            raise ValueError(f"{n_nodes} nodes need {n_nodes} different names, got {names}")
        for target in self.targets:
            if target not in names:
                raise ValueError(f"target {target!r} is not among the nodes {names}")
        cycle = find_cycle(self.edge_array)
        if cycle is not None:
            raise ValueError(f"the edges form a cycle: {' -> '.join(names[k] for k in cycle)}")

    # --- building ----------------------------------------------------------------------------------

    @classmethod
    def from_weights(
        cls, weights: NDArray[np.float64], names: Sequence[str], target: str | Sequence[str], *, threshold: float = 0.0
    ) -> CausalGraph:
        """Build a graph from the weights of one network, ``weights[j, k]`` for j -> k; see :meth:`from_members`."""
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
        agreement_of: str = "",
    ) -> CausalGraph:
        """Build one graph from the mean weights of several networks, with the confidence from the graph of each.

        Edges are added from the strongest down; those that would close a cycle are skipped. Confidence and direction
        of a single network are NaN, except for required edges, which have 1.

        Parameters
        ----------
        weights : array of shape (networks, nodes, nodes)
            ``weights[i, j, k]`` is the weight of j -> k, the paper's ``M``.
        names : sequence of str
            One for each node, all different.
        target : str or sequence of str
            One of the names, or several.
        threshold : float
            Mean weights below it are not edges.
        replicas : array of shape (networks, nodes, nodes), optional
            Networks whose graphs determine the confidence; by default ``weights``.
        required : array of bool, shape (nodes, nodes), optional
            Edges that are kept regardless of their weight.
        traits : ColumnTraits, optional
            Traits of the training table.
        agreement_of : str
            Description of the networks for the summary; by default their number.

        Examples
        --------
        >>> import numpy as np
        >>> forward, backward = np.array([[0.0, 0.9], [0.2, 0.0]]), np.array([[0.0, 0.1], [0.3, 0.0]])
        >>> weights = np.stack([forward, forward, backward])
        >>> graph = CausalGraph.from_members(weights, ["age", "income"], target="income")
        >>> float(graph.confidence.loc["age", "income"]), round(float(graph.direction.loc["age", "income"]), 2)
        (1.0, 0.67)
        """
        weights = np.asarray(weights, dtype=np.float64)
        learned = weights.mean(axis=0)
        replicas = weights if replicas is None else np.asarray(replicas, dtype=np.float64)
        strong = np.array([strong_edges(acyclic_cut(replica, required)) for replica in replicas])
        if required is not None:
            strong |= required
        joined = (strong | strong.swapaxes(1, 2)).mean(axis=0)
        direction = strong.mean(axis=0) / np.where(joined > 0, joined, np.nan)
        if len(replicas) == 1:
            sure = np.zeros_like(strong[0]) if required is None else required | required.T
            joined, direction = (np.where(sure, shares, np.nan) for shares in (joined, direction))
            agreement_of = ""
        else:
            agreement_of = agreement_of or f"{len(replicas)} networks"
        cut, dropped = _cut(learned, threshold, required)
        targets = (target,) if isinstance(target, str) else tuple(target)
        shares = joined, direction
        return cls(tuple(names), targets, cut, learned, *shares, float(threshold), dropped, traits, agreement_of)

    def above(self, threshold: float) -> CausalGraph:
        """Return the graph of the learned weights that reach a threshold; 0 keeps all of them.

        The graph is rebuilt from the learned weights, so edits and required edges below the threshold are lost.
        """
        check_number("threshold", threshold, least=0)
        cut, dropped = _cut(self.learned_array, threshold, None)
        return replace(self, weight_array=cut, threshold=float(threshold), dropped_weight=dropped)

    # --- reading -----------------------------------------------------------------------------------

    @property
    def target(self) -> str:
        """Name of the target; the first one if there are several."""
        return self.targets[0]

    @property
    def nodes(self) -> list[str]:
        """Names of the nodes."""
        return list(self.names)

    @property
    def is_dag(self) -> bool:
        """Whether the graph has no directed cycle: always true."""
        return find_cycle(self.edge_array) is None

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

    def _strongest_first(self, weights: NDArray[np.float64]) -> list[str]:
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
        """Return the parents, the children and the children's other parents of a node, in topological order.

        If the graph is right and these nodes are known, the other nodes add no information about this one.
        """
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

    @property
    def sortability(self) -> dict[str, float]:
        """Share of paths that lead to columns of higher variance, and of higher predictability (R²).

        Near 1 or 0, sorting the columns gives the same arrows, which is a reason to trust them less; see
        :mod:`castlereg.causal.graph.sortability`. Empty for a graph that does not come from a table.
        """
        return {} if self.traits is None else self.traits.sortability(self.weight_array)

    @property
    def confidence_note(self) -> str:
        """Sentences that explain confidence and direction; empty if they are not known."""
        if self.agreement_of == LEFT_OUT_ROWS:
            return (
                "Confidence and direction are probabilities, by how much less likely left-out rows are under the best "
                "graphs without the edge, or with it reversed."
            )
        if not self.agreement_of:
            return ""
        return (
            f"Confidence is the agreement of {self.agreement_of}: the share with a strong edge between the two nodes. "
            "Direction is the share of those that have it this way."
        )

    def uncertain_edges(self) -> pd.DataFrame:
        """Return the edges whose ``direction`` is below 0.75: the rows do not determine it, or the networks disagree.

        Pictures show these edges dashed and without arrow heads.

        Examples
        --------
        >>> import numpy as np
        >>> weights = np.array([[[0.0, 0.9], [0.0, 0.0]], [[0.0, 0.0], [0.3, 0.0]]])  # two networks that disagree
        >>> graph = CausalGraph.from_members(weights, ["age", "income"], target="income")
        >>> graph.uncertain_edges()[["cause", "effect", "direction"]]
          cause  effect  direction
        0   age  income        0.5
        """
        edges = self.edges()
        return edges[edges["direction"] < AGREEMENT].reset_index(drop=True)

    def summary(self) -> str:
        """Describe the graph and how far to trust it, in a few lines."""
        edges, uncertain = self.edges(), self.uncertain_edges()
        lines = [f"{len(self.names)} nodes, {len(edges)} edges."]
        if self.threshold or self.dropped_weight:
            cut = f"{self.dropped_weight:.0%} of their weight closed cycles and was cut"
            lines = [f"{len(self.names)} nodes, {len(edges)} edges of at least {self.threshold:.3g}; {cut}."]
        lines += [f"Into {target}: {', '.join(self.parents(target)) or 'nothing'}." for target in self.targets]
        if len(uncertain):
            lines.append(f"The direction of {len(uncertain)} of the edges is unknown.")
        if self.agreement_of:
            lines.append(self.confidence_note)
        if edges["confidence"].isna().any():
            lines.append(f"Confidence and direction are not known (NaN); they need several networks: {FOR_CONFIDENCE}.")
        if self.traits is not None:
            lines += self.traits.remarks(self.weight_array)
        return "\n".join([*lines, NOT_PROOF])

    def __repr__(self) -> str:
        edges = int(np.count_nonzero(self.edge_array))
        return f"<CausalGraph: {len(self.names)} nodes, {edges} edges, target {', '.join(self.targets)}>"

    # --- edits -------------------------------------------------------------------------------------

    def with_edge(self, cause: str, effect: str, weight: float | None = None) -> CausalGraph:
        """Return the graph with one more edge, or with a new weight for an existing one.

        Parameters
        ----------
        cause, effect : str
        weight : float, optional
            By default the learned weight, or the median weight of the edges if that is zero.

        Examples
        --------
        >>> import numpy as np
        >>> graph = CausalGraph.from_weights(np.zeros((2, 2)), ["age", "income"], target="income")
        >>> graph.with_edge("age", "income").parents("income")
        ['age']
        """
        j, k = self._edge(cause, effect)
        if weight is None:
            present = self.weight_array[self.edge_array]
            weight = float(self.learned_array[j, k]) or (float(np.median(present)) if len(present) else 1.0)
        check_number("weight", weight, above=0)
        if cause in self.descendants(effect):
            import networkx as nx

            path = [cause, *(self.names[n] for n in nx.shortest_path(self._structure(), k, j))]
            raise ValueError(f"the edge {cause!r} -> {effect!r} closes a cycle: {' -> '.join(path)}")
        return self._edited(j, k, weight)

    def without_edge(self, cause: str, effect: str) -> CausalGraph:
        """Return the graph without an edge."""
        return self._edited(*self._present(cause, effect), 0.0)

    def reversed_edge(self, cause: str, effect: str) -> CausalGraph:
        """Return the graph with an edge reversed; the weight stays the same."""
        weight = float(self.weight_array[self._present(cause, effect)])
        return self.without_edge(cause, effect).with_edge(effect, cause, weight)

    def _edited(self, j: int, k: int, weight: float) -> CausalGraph:
        """Change the weight of an edge; edits count as certain."""
        weights, confidence = self.weight_array.copy(), self.confidence_array.copy()
        direction = self.direction_array.copy()
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

    def _present(self, cause: str, effect: str) -> tuple[int, int]:
        j, k = self._edge(cause, effect)
        if not self.edge_array[j, k]:
            hint = f"; reverse {effect!r} -> {cause!r} to get it" if self.edge_array[k, j] else ""
            raise ValueError(f"the graph has no edge {cause!r} -> {effect!r}{hint}")
        return j, k

    # --- pictures ----------------------------------------------------------------------------------

    def plot(self, ax: Axes | None = None, *, max_edges: int | None = None) -> Axes:
        """Draw the strongest edges with matplotlib, with causes to the left of their effects.

        The width of a line shows the weight of its edge; the opacity shows the confidence, or the weight if the
        confidence is not known. If the direction is unknown, the line is dashed and has no arrow head. The caption
        states how many of the edges are shown.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            By default new axes that fit the picture.
        max_edges : int, optional
            By default twice the number of nodes.
        """
        from castlereg.causal.graph.drawing.plot import draw

        return draw(self, ax, max_edges)

    def plot_heat_map(self, ax: Axes | None = None) -> Axes:
        """Draw the weights as a heat map with matplotlib: causes in rows, effects in columns, in topological order."""
        from castlereg.causal.graph.drawing.plot import draw_heat_map

        return draw_heat_map(self, ax)

    def plot_neighbourhood(self, node: str | None = None, ax: Axes | None = None, *, max_nodes: int = 30) -> Axes:
        """Draw a node, its Markov blanket and the nodes one step further: a view for large graphs.

        Parameters
        ----------
        node : str, optional
            By default the target.
        ax : matplotlib Axes, optional
            By default new axes.
        max_nodes : int
            Maximum number of nodes; the strongest are drawn.
        """
        from castlereg.causal.graph.drawing.plot import draw_neighbourhood

        return draw_neighbourhood(self, node, ax, max_nodes)

    def to_svg(self, *, max_edges: int | None = None, nodes: Iterable[str] | None = None) -> str:
        """Draw the picture of :meth:`plot` as an SVG element with tooltips; matplotlib is not needed.

        Parameters
        ----------
        max_edges : int, optional
            By default twice the number of nodes.
        nodes : iterable of str, optional
            Draw only these nodes and the edges between them.

        Examples
        --------
        >>> import numpy as np
        >>> graph = CausalGraph.from_weights(np.array([[0.0, 0.53], [0.0, 0.0]]), ["age", "income"], target="income")
        >>> "<title>age -&gt; income, weight 0.53, confidence not known" in graph.to_svg()
        True
        """
        from castlereg.causal.graph.drawing.svg import to_svg

        return to_svg(self, max_edges=max_edges, nodes=nodes)

    def _repr_html_(self) -> str:
        from castlereg.causal.graph.drawing.svg import notebook_html

        return notebook_html(self)


def _cut(
    learned: NDArray[np.float64], threshold: float, required: NDArray[np.bool_] | None
) -> tuple[NDArray[np.float64], float]:
    """Drop weak edges and those that close a cycle; return the other weights and the share lost to cycles."""
    enough = learned >= threshold if required is None else (learned >= threshold) | required
    strong = np.where(enough, learned, 0.0)
    cut, total = acyclic_cut(strong, required), float(strong.sum())
    return cut, 1 - float(cut.sum()) / total if total > 0 else 0.0
