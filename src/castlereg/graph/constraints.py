"""What the user knows of the graph, checked and turned into which edges may and which must be."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from castlereg.graph.cycles import find_cycle, reachability
from castlereg.layout import EdgeRules

if TYPE_CHECKING:
    from castlereg.graph.causal_graph import CausalGraph

Edge = tuple[str, str]


@dataclass(frozen=True)
class EdgeConstraints:
    """Edges that are known to be or not to be, by the names of columns and targets.

    They hold while the network trains: a forbidden edge has no weights, a required one is left alone by sparsity. What
    a required path rules out, because it would close a cycle, is forbidden too.

    Parameters
    ----------
    required : iterable of (cause, effect)
        Edges that are in the graph.
    forbidden : iterable of (cause, effect)
        Edges that are not.
    tiers : sequence of sequence of str, optional
        Groups of nodes in the order in which they come about: nothing causes a node of an earlier tier. Nodes
        that are in no tier are free.
    sinks : iterable of str
        Nodes that cause nothing.
    sources : iterable of str
        Nodes that nothing causes.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from castlereg import CastleRegressor, EdgeConstraints
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> known = EdgeConstraints(required=[("bmi", "target")], sources=["age", "sex"])
    >>> graph = CastleRegressor(constraints=known, max_epochs=10, random_state=0).fit(X, y).graph_
    >>> "bmi" in graph.parents("target"), graph.parents("age")
    (True, [])
    """

    required: Iterable[Edge] = ()
    forbidden: Iterable[Edge] = ()
    tiers: Sequence[Sequence[str]] | None = None
    sinks: Iterable[str] = ()
    sources: Iterable[str] = ()

    def __post_init__(self) -> None:
        for name in ("required", "forbidden"):
            object.__setattr__(self, name, _edges(name, getattr(self, name)))
        for name in ("sinks", "sources"):
            object.__setattr__(self, name, _names(name, getattr(self, name)))
        if self.tiers is not None:
            tiers = tuple(_names(f"tiers[{i}]", tier) for i, tier in enumerate(self.tiers))
            object.__setattr__(self, "tiers", tiers)

    def rules(self, names: Sequence[str]) -> EdgeRules:
        """Turn the constraints into rules for nodes of these names.

        Parameters
        ----------
        names : sequence of str
            All nodes.

        Returns
        -------
        EdgeRules
        """
        place = {name: k for k, name in enumerate(names)}
        for where, name in self._mentioned():
            if name not in place:
                raise ValueError(unknown_node(name, names, f"the {where}"))
        allowed = ~np.eye(len(names), dtype=bool)
        why = np.full((len(names), len(names)), "", dtype=object)

        def forbid(causes: Iterable[int], effects: Iterable[int], reason: str) -> None:
            at = np.ix_(list(causes), list(effects))
            why[at] = np.where(allowed[at], reason, why[at])
            allowed[at] = False

        everything = range(len(names))
        for cause, effect in self.forbidden:
            forbid([place[cause]], [place[effect]], "it is forbidden")
        for sink in self.sinks:
            forbid([place[sink]], everything, f"{sink!r} is a sink")
        for source in self.sources:
            forbid(everything, [place[source]], f"{source!r} is a source")
        for earlier, later in _ordered_pairs(self.tiers or ()):
            forbid([place[n] for n in later], [place[n] for n in earlier], "its effect is in an earlier tier")

        required = np.zeros_like(allowed)
        for cause, effect in self.required:
            if cause == effect:
                raise ValueError(f"the required edge {cause!r} -> {effect!r} is a loop")
            if not allowed[place[cause], place[effect]]:
                reason = why[place[cause], place[effect]]
                raise ValueError(f"the edge {cause!r} -> {effect!r} is required, but {reason}")
            required[place[cause], place[effect]] = True
        cycle = find_cycle(required)
        if cycle is not None:
            raise ValueError(f"the required edges form a cycle: {' -> '.join(names[k] for k in cycle)}")
        # An edge against a required path would close a cycle.
        return EdgeRules(allowed & ~reachability(required).T, required)

    def _mentioned(self) -> list[tuple[str, str]]:
        edges = [
            (f"{kind} edges", name)
            for kind in ("required", "forbidden")
            for edge in getattr(self, kind)
            for name in edge
        ]
        ends = [(kind, name) for kind in ("sinks", "sources") for name in getattr(self, kind)]
        return [*edges, *ends, *(("tiers", name) for tier in self.tiers or () for name in tier)]


def rules_of_graph(graph: CausalGraph, names: Sequence[str], known: EdgeRules) -> EdgeRules:
    """Allow and require exactly the edges of a graph.

    Parameters
    ----------
    graph : CausalGraph
        With the same nodes, in any order.
    names : sequence of str
    known : EdgeRules
        What the graph must agree with.

    Returns
    -------
    EdgeRules
    """
    for name in graph.names:
        if name not in names:
            raise ValueError(unknown_node(name, names, "the graph's nodes"))
    for name in names:
        if name not in graph.names:
            raise ValueError(unknown_node(name, graph.names, "the table's columns"))
    edges = graph.weights.loc[list(names), list(names)].to_numpy() != 0
    for wrong, what in ((edges & ~known.allowed, "forbid"), (known.required & ~edges, "require")):
        for cause, effect in np.argwhere(wrong)[:1]:
            raise ValueError(
                f"the constraints {what} the edge {names[cause]!r} -> {names[effect]!r}; the graph does not"
            )
    return EdgeRules(edges, edges)


def unknown_node(name: Any, names: Sequence[str], where: str) -> str:
    """Say that there is no such node, with the nearest name or all of them."""
    near = difflib.get_close_matches(str(name), names, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"the nodes are {', '.join(map(repr, names))}"
    return f"{where} name {name!r}, which is no node: {hint}"


def _edges(what: str, edges: Any) -> tuple[Edge, ...]:
    if isinstance(edges, str) or not hasattr(edges, "__iter__"):
        raise ValueError(f"{what}={edges!r} must be a sequence of pairs (cause, effect)")
    edges = tuple(edges)
    for edge in edges:
        if isinstance(edge, str) or not hasattr(edge, "__len__") or len(edge) != 2:
            raise ValueError(f"{what} has {edge!r}, which is no pair (cause, effect)")
    return tuple((cause, effect) for cause, effect in edges)


def _names(what: str, names: Any) -> tuple[str, ...]:
    if isinstance(names, str) or not hasattr(names, "__iter__"):
        raise ValueError(f"{what}={names!r} must be a sequence of names")
    return tuple(names)


def _ordered_pairs(tiers: Sequence[Sequence[str]]) -> list[tuple[Sequence[str], Sequence[str]]]:
    """List the pairs of an earlier and a later tier."""
    seen: dict[str, int] = {}
    for i, tier in enumerate(tiers):
        for name in tier:
            if seen.setdefault(name, i) != i:
                raise ValueError(f"{name!r} is in two tiers, {seen[name]} and {i}")
    return [(tiers[i], tiers[j]) for i in range(len(tiers)) for j in range(i + 1, len(tiers))]
