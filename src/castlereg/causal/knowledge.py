"""Constraints on the edges of the graph, checked and turned into allowed and required edges."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse.csgraph import shortest_path

from castlereg.acyclicity.cut import find_cycle
from castlereg.layout import EdgeRules
from castlereg.options import did_you_mean

if TYPE_CHECKING:
    from castlereg.causal.graph import CausalGraph

Edge = tuple[str, str]


@dataclass(frozen=True)
class EdgeConstraints:
    """Edges known to be in the graph, or known not to be, by the names of columns and targets.

    They hold for the discovered graph and during training: a forbidden edge has no weights, and a required one is
    exempt from the sparsity penalty. Edges that would close a cycle with required ones are forbidden too.

    Parameters
    ----------
    required : iterable of (cause, effect)
        Edges that are in the graph.
    forbidden : iterable of (cause, effect)
        Edges that are not in the graph.
    tiers : sequence of sequence of str, optional
        Groups of nodes in order of time: no node causes a node of an earlier tier. Nodes in no tier are free.
    sinks : iterable of str
        Nodes without effects.
    sources : iterable of str
        Nodes without causes.

    Examples
    --------
    >>> known = EdgeConstraints(required=[("bmi", "target")], sources=["age"])
    >>> known.rules(["age", "bmi", "target"]).allowed.astype(int).tolist()
    [[0, 1, 1], [0, 0, 1], [0, 0, 0]]
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
            object.__setattr__(self, name, _sequence(name, getattr(self, name)))
        if self.tiers is not None:
            tiers = tuple(_sequence(f"tiers[{i}]", tier) for i, tier in enumerate(self.tiers))
            object.__setattr__(self, "tiers", tiers)

    def rules(self, names: Sequence[str]) -> EdgeRules:
        """Turn the constraints into rules for a graph whose nodes have these names."""
        index = {name: k for k, name in enumerate(names)}
        mentioned = {
            "required edges": chain(*self.required),
            "forbidden edges": chain(*self.forbidden),
            "sinks": self.sinks,
            "sources": self.sources,
            "tiers": chain(*(self.tiers or ())),
        }
        for where, nodes in mentioned.items():
            for name in nodes:
                if name not in index:
                    raise ValueError(unknown_node(name, names, f"the {where}"))
        allowed = ~np.eye(len(names), dtype=bool)
        why = np.full((len(names), len(names)), "", dtype=object)

        def forbid(causes: Iterable[int], effects: Iterable[int], reason: str) -> None:
            at = np.ix_(list(causes), list(effects))
            why[at] = np.where(allowed[at], reason, why[at])
            allowed[at] = False

        everything = range(len(names))
        for cause, effect in self.forbidden:
            forbid([index[cause]], [index[effect]], "it is forbidden")
        for sink in self.sinks:
            forbid([index[sink]], everything, f"{sink!r} is a sink")
        for source in self.sources:
            forbid(everything, [index[source]], f"{source!r} is a source")
        tier_of: dict[str, int] = {}
        for i, tier in enumerate(self.tiers or ()):
            for name in tier:
                if tier_of.setdefault(name, i) != i:
                    raise ValueError(f"{name!r} is in two tiers, {tier_of[name]} and {i}; keep it in one of them")
        for earlier, later in combinations(self.tiers or (), 2):
            forbid([index[n] for n in later], [index[n] for n in earlier], "its effect is in an earlier tier")

        required = np.zeros_like(allowed)
        for cause, effect in self.required:
            edge = index[cause], index[effect]
            if cause == effect:
                raise ValueError(f"the required edge {cause!r} -> {effect!r} joins a node to itself; remove it")
            if not allowed[edge]:
                raise ValueError(f"the edge {cause!r} -> {effect!r} is required, but {why[edge]}")
            required[edge] = True
        cycle = find_cycle(required)
        if cycle is not None:
            raise ValueError(f"the required edges form a cycle: {' -> '.join(names[k] for k in cycle)}")
        # An edge from the end of a required path to its start would close a cycle.
        joined = np.isfinite(shortest_path(required.astype(np.float64)))
        return EdgeRules(allowed & ~joined.T, required)


def _rules_of_graph(graph: CausalGraph, names: Sequence[str], known: EdgeRules) -> EdgeRules:
    """Allow and require exactly the edges of a graph, whose nodes may be in any order and which must obey ``known``."""
    edges = graph.in_order_of(names).edge_array
    conflicts = ((edges & ~known.allowed, "forbid", "has it"), (known.required & ~edges, "require", "does not have it"))
    for wrong, rule, contradiction in conflicts:
        for cause, effect in np.argwhere(wrong)[:1]:
            raise ValueError(
                f"the constraints {rule} the edge {names[cause]!r} -> {names[effect]!r}, but the graph {contradiction}"
            )
    return EdgeRules(edges, edges)


def graph_rules(
    constraints: EdgeConstraints | None, graph: CausalGraph | None, names: Sequence[str], n_targets: int
) -> EdgeRules | None:
    """Return the edge rules of the constraints and of a given graph; the last ``n_targets`` names are the targets."""
    from castlereg.causal.graph import CausalGraph

    if not isinstance(constraints, EdgeConstraints | None):
        raise ValueError(f"constraints={constraints!r} must be EdgeConstraints(...) or None")
    if not isinstance(graph, CausalGraph | None):
        raise ValueError(f"graph={graph!r} must be a CausalGraph, such as graph_ of a fitted model")
    if constraints is None and graph is None:
        return None
    rules = (constraints or EdgeConstraints()).rules(names)
    if graph is not None:
        rules = _rules_of_graph(graph, names, rules)
    targets = names[-n_targets:]  # a target is not known when another is predicted
    for j, k in np.argwhere(rules.required[-n_targets:, -n_targets:]):
        raise ValueError(
            f"the edge {targets[j]!r} -> {targets[k]!r} is required, but a target is never an input for another"
        )
    return rules


def unknown_node(name: Any, names: Sequence[str], where: str) -> str:
    """Return the error message for a name that is not a node, with the closest node name or all of them."""
    hint = did_you_mean(str(name), names) or f"; the nodes are {', '.join(map(repr, names))}"
    return f"unknown node {name!r} in {where}{hint}"


def _edges(option: str, edges: Any) -> tuple[Edge, ...]:
    edges = _sequence(option, edges, "pairs (cause, effect)")
    for edge in edges:
        if isinstance(edge, str) or not hasattr(edge, "__len__") or len(edge) != 2:
            raise ValueError(f"{option} contains {edge!r}, which is not a pair (cause, effect)")
    return tuple((cause, effect) for cause, effect in edges)


def _sequence(option: str, values: Any, kind: str = "names") -> tuple[Any, ...]:
    if isinstance(values, str) or not hasattr(values, "__iter__"):
        raise ValueError(f"{option}={values!r} must be a sequence of {kind}")
    return tuple(values)
