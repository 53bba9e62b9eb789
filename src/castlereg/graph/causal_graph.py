"""A learned graph: named weights without cycles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from castlereg.graph.acyclic_cut import acyclic_cut
from castlereg.graph.strong_edges import strong_edges

if TYPE_CHECKING:
    import networkx as nx
    from matplotlib.axes import Axes


@dataclass(frozen=True, eq=False)
class CausalGraph:
    """The graph that a network has learned, as a directed acyclic graph.

    A prediction aid, not proof of cause: see :meth:`from_weights` for how it comes about.

    Attributes
    ----------
    weights : DataFrame
        ``weights.loc[cause, effect]``, zero where there is no edge.
    learned_weights : DataFrame
        The weights before edges that close a cycle were dropped.
    targets : tuple of str
        Names of the targets.
    confidence : DataFrame
        ``confidence.loc[a, b]`` is the share of networks in whose own graph a strong edge joins the two, either way:
        see :func:`castlereg.graph.strong_edges.strong_edges`. With one network it is 0 or 1.
    direction : DataFrame
        ``direction.loc[cause, effect]``, of the networks with a strong edge between the two, is the share that has it
        this way; NaN where none has one.

    Examples
    --------
    >>> import numpy as np
    >>> graph = CausalGraph.from_weights(np.array([[0.0, 0.9], [0.2, 0.0]]), ["age", "income"], target="income")
    >>> graph.edges()
      cause  effect  weight
    0   age  income     0.9
    >>> graph.parents("income")
    ['age']
    >>> round(graph.dropped_weight, 2)
    0.18
    """

    weights: pd.DataFrame
    learned_weights: pd.DataFrame
    targets: tuple[str, ...]
    confidence: pd.DataFrame
    direction: pd.DataFrame

    @classmethod
    def from_weights(cls, weights: NDArray[np.float64], names: list[str], target: str | Sequence[str]) -> CausalGraph:
        """Cut learned weights down to a graph without cycles, strongest edges first.

        Parameters
        ----------
        weights : array of shape (nodes, nodes)
            ``weights[j, k]`` is the weight of j -> k, the paper's ``M``.
        names : list of str
            One for each node, all different.
        target : str or sequence of str
            One of the names, or several.

        Returns
        -------
        CausalGraph
        """
        return cls.from_members(np.asarray(weights)[None], names, target)

    @classmethod
    def from_members(
        cls,
        weights: NDArray[np.float64],
        names: list[str],
        target: str | Sequence[str],
        *,
        replicas: NDArray[np.float64] | None = None,
    ) -> CausalGraph:
        """Make one graph of the mean weights of several networks, with a confidence from each one's own graph.

        Parameters
        ----------
        weights : array of shape (networks, nodes, nodes)
        names : list of str
            One for each node, all different.
        target : str or sequence of str
            One of the names, or several.
        replicas : array of shape (networks, nodes, nodes), optional
            Networks whose graphs give the confidence; by default the same.

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
        if len(names) != weights.shape[-1] or len(set(names)) != len(names):
            raise ValueError(f"{weights.shape[-1]} nodes need as many different names, got {names}")
        targets = (target,) if isinstance(target, str) else tuple(target)
        for one in targets:
            if one not in names:
                raise ValueError(f"target {one!r} is not among the nodes {names}")
        learned = weights.mean(axis=0)
        replicas = weights if replicas is None else np.asarray(replicas, dtype=np.float64)
        strong = np.array([strong_edges(acyclic_cut(one)) for one in replicas])

        def named(values: NDArray[np.float64]) -> pd.DataFrame:
            return pd.DataFrame(values, index=names, columns=names)

        joined = (strong | strong.swapaxes(1, 2)).mean(axis=0)
        direction = strong.mean(axis=0) / np.where(joined > 0, joined, np.nan)
        return cls(named(acyclic_cut(learned)), named(learned), targets, named(joined), named(direction))

    @property
    def target(self) -> str:
        """Name of the target, the first of several."""
        return self.targets[0]

    @property
    def nodes(self) -> list[str]:
        """Names of the nodes."""
        return list(self.weights.columns)

    @property
    def dropped_weight(self) -> float:
        """Share of the learned weight that was cut to get a graph without cycles."""
        total = float(self.learned_weights.to_numpy().sum())
        return 1 - float(self.weights.to_numpy().sum()) / total if total > 0 else 0.0

    @property
    def is_dag(self) -> bool:
        """Whether there is no directed cycle: always true."""
        import networkx as nx

        return bool(nx.is_directed_acyclic_graph(self.to_networkx()))

    def edges(self) -> pd.DataFrame:
        """List the edges, strongest first, with columns ``cause``, ``effect`` and ``weight``."""
        values = self.weights.to_numpy()
        cause, effect = np.nonzero(values)
        order = np.argsort(-values[cause, effect], kind="stable")
        names = np.array(self.nodes, dtype=object)
        return pd.DataFrame(
            {
                "cause": names[cause[order]],
                "effect": names[effect[order]],
                "weight": values[cause[order], effect[order]],
            }
        )

    def parents(self, node: str) -> list[str]:
        """Name the causes of a node, strongest first."""
        return self._strongest_first(self.weights, node)

    def children(self, node: str) -> list[str]:
        """Name the effects of a node, strongest first."""
        return self._strongest_first(self.weights.T, node)

    def _strongest_first(self, into: pd.DataFrame, node: str) -> list[str]:
        if node not in into:
            raise KeyError(f"there is no node {node!r}; the nodes are {', '.join(self.nodes)}")
        column = into[node]
        return list(column[column > 0].sort_values(ascending=False, kind="stable").index)

    def to_networkx(self) -> nx.DiGraph:
        """Convert to a networkx graph with the edge attribute ``weight``."""
        import networkx as nx

        graph = nx.DiGraph()
        graph.add_nodes_from(self.nodes)
        graph.add_weighted_edges_from(self.edges().itertuples(index=False, name=None))
        return graph

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
