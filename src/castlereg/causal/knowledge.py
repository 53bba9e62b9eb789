"""What the user knows of the graph: constraints, beliefs and their effect on probabilities, and what to ask next."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, combinations
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.sparse.csgraph import shortest_path

from castlereg.acyclicity.cut import find_cycle
from castlereg.layout import EdgeRules
from castlereg.options import did_you_mean

if TYPE_CHECKING:
    from castlereg.causal.graph import CausalGraph

Array = NDArray[np.float64]
Edges = NDArray[np.bool_]  # (nodes, nodes), from cause to effect
Edge = tuple[str, str]
Belief = tuple[str, str, float, str]

LIKELY, SETTLED = 0.5, 0.9  # an arrow is open if its edge is likely and neither direction is settled


@dataclass(frozen=True)
class EdgeConstraints:
    """Edges known to be in the graph, or known not to be, and beliefs, by the names of columns and targets.

    They hold for the discovered graph and during training: a forbidden edge has no weights, and a required one is
    exempt from the sparsity penalty. Edges that would close a cycle with required ones are forbidden too. Beliefs only
    change the probabilities of the discovered graph; training ignores them.

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
    beliefs : DataFrame, or iterable of (cause, effect, probability) or (cause, effect, probability, source)
        How probable an edge from cause to effect is, between 0 and 1 and not equal to either; 0.5 changes nothing. A
        DataFrame has these names as columns. The source is a remark, such as a paper.

    Examples
    --------
    >>> known = EdgeConstraints(required=[("bmi", "target")], sources=["age"])
    >>> known.rules(["age", "bmi", "target"]).allowed.astype(int).tolist()
    [[0, 1, 1], [0, 0, 1], [0, 0, 0]]
    >>> EdgeConstraints(beliefs=[("age", "bmi", 0.8)]).rules(["age", "bmi"]).prior
    array([[nan, 0.8],
           [nan, nan]])
    """

    required: Iterable[Edge] = ()
    forbidden: Iterable[Edge] = ()
    tiers: Sequence[Sequence[str]] | None = None
    sinks: Iterable[str] = ()
    sources: Iterable[str] = ()
    beliefs: Iterable[Belief | tuple[str, str, float]] | pd.DataFrame = ()

    def __post_init__(self) -> None:
        for name in ("required", "forbidden"):
            object.__setattr__(self, name, _edges(name, getattr(self, name)))
        for name in ("sinks", "sources"):
            object.__setattr__(self, name, _sequence(name, getattr(self, name)))
        object.__setattr__(self, "beliefs", _beliefs(self.beliefs))
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
            "beliefs": (name for belief in self.beliefs for name in belief[:2]),
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
        closes = np.isfinite(shortest_path(required.astype(np.float64))).T & allowed
        why[closes], allowed = "it closes a cycle with required edges", allowed & ~closes
        return EdgeRules(allowed, required, self._prior(index, np.where(required, "it is required", why)))

    def _prior(self, index: dict[str, int], why: NDArray[np.object_]) -> Array | None:
        """Return the beliefs as an array; ``why`` says which edges are certain to exist or not to exist."""
        prior = np.full(why.shape, np.nan)
        for cause, effect, probability, *_ in self.beliefs:
            at, belief = (index[cause], index[effect]), f"the belief {cause!r} -> {effect!r}"
            if cause == effect:
                raise ValueError(f"{belief} joins a node to itself; remove it")
            if why[at]:
                raise ValueError(f"{belief} has probability {probability:g}, but {why[at]}; remove one of the two")
            if not np.isnan(prior[at]):
                raise ValueError(f"{belief} is duplicated; keep one of them")
            if prior[at[::-1]] + probability > 1:
                raise ValueError(
                    f"{belief} and the one in the other direction have probabilities {probability:g} and "
                    f"{prior[at[::-1]]:g}; their sum must not exceed 1"
                )
            prior[at] = probability
        return prior if self.beliefs else None


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
    believed = np.zeros_like(rules.allowed) if rules.prior is None else ~np.isnan(rules.prior)
    for kind, edges in (("required", rules.required), ("a belief", believed)):
        for j, k in np.argwhere(edges[-n_targets:, -n_targets:]):
            raise ValueError(
                f"the edge {targets[j]!r} -> {targets[k]!r} is {kind}, but a target is never an input for another"
            )
    return rules


def with_priors(joined: Array, direction: Array, prior: Array) -> tuple[Array, Array]:
    r"""Combine the probabilities of edges with a user's beliefs.

    A pair of nodes has three states, j -> k, k -> j and no edge, with probabilities :math:`c d`, :math:`c (1 - d)` and
    :math:`1 - c`. The belief p in an arrow multiplies the odds of its state by :math:`p / (1 - p)`; then the three are
    divided by their sum. The beliefs ``1 - p`` are the inverse: they give the probabilities from the data only.

    Parameters
    ----------
    joined, direction : array of shape (nodes, nodes)
        Probability c of an edge between two nodes, and d that it points from j to k; a direction of NaN counts as 0.5.
    prior : array of shape (nodes, nodes)
        Belief p in the arrow j -> k; NaN where there is none. Pairs without beliefs stay unchanged.

    Examples
    --------
    >>> joined, direction = np.array([[0.0, 0.5], [0.5, 0.0]]), np.array([[np.nan, 0.5], [0.5, np.nan]])
    >>> prior = np.array([[np.nan, 0.75], [np.nan, np.nan]])
    >>> likely, forward = with_priors(joined, direction, prior)
    >>> round(float(likely[0, 1]), 3), round(float(forward[0, 1]), 3)  # 3 x 0.25, 0.25 and 0.5, divided by their sum
    (0.667, 0.75)
    """
    odds = np.where(np.isnan(prior), 1.0, prior / (1 - prior))
    forward = joined * np.where(np.isnan(direction), 0.5, direction) * odds
    believed = ~np.isnan(prior) | ~np.isnan(prior.T)
    either = forward + forward.T
    likely = either / np.where(believed, either + 1 - joined, 1.0)
    this_way = forward / np.where(either > 0, either, 1.0)
    return np.where(believed, likely, joined), np.where(believed & (either > 0), this_way, direction)


def useful_questions(graph: CausalGraph, most: int) -> pd.DataFrame:
    """Return the questions whose answers would settle most; see :meth:`CausalGraph.questions`."""
    direction, likely = graph.direction_array, ~(graph.confidence_array < LIKELY)
    arrows = graph.edge_array & likely
    is_open = arrows & (graph.confidence_array >= LIKELY) & (np.maximum(direction, 1 - direction) < SETTLED)
    certain, either = arrows & ~is_open, is_open | is_open.T
    before = _propagated(certain, either)
    targets = [graph.index(target) for target in graph.targets]

    def relatives(edges: Edges) -> Edges:
        reached = _reached(edges)
        return np.stack([reached[:, targets].any(axis=1), reached[targets].any(axis=0)])

    found = []
    for j, k in np.argwhere(is_open).tolist():
        settles, changes, share = 1.0, 0.0, float(direction[j, k])
        for cause, effect, probability in ((j, k, share), (k, j, 1 - share)):
            answered, rest = certain.copy(), either.copy()
            answered[cause, effect], rest[[j, k], [k, j]] = True, False
            directed = _propagated(answered, rest)
            settles += probability * int((directed & rest & ~before & ~before.T).sum())
            guessed = directed | (arrows & ~directed.T)  # arrows that stay open as in the graph
            changes += probability * int((relatives(guessed) != relatives(arrows)).sum())
        entropy = -share * np.log2(share) - (1 - share) * np.log2(1 - share)
        first, second = graph.names[j], graph.names[k]
        question = f"Does {first} cause {second}, or {second} {first}?"
        found.append((entropy * (settles + changes), (question, first, second, share, settles, changes > 0)))
    found.sort(key=lambda scored: -scored[0])
    columns = ["question", "first", "second", "probability", "settles", "changes_target"]
    return pd.DataFrame([row for _, row in found[:most]], columns=columns)


def _propagated(directed: Edges, undirected: Edges) -> Edges:
    """Return the arrows that follow from some arrows by the four rules of Meek (1995), without new colliders or cycles.

    ``undirected`` is symmetric: the other edges.
    """
    directed, left = directed.copy(), undirected.copy()
    adjacent = directed | directed.T | left
    apart = ~adjacent & ~np.eye(len(adjacent), dtype=bool)
    while left.any():
        collides = directed.T.astype(np.float32) @ apart.astype(np.float32) > 0  # i -> j - k, with i and k apart
        new = left & (collides | _reached(directed))
        if not new.any():
            for j, k in np.argwhere(left):
                causes = directed[:, k] & left[j]  # two of them that are apart would collide in j
                ends = np.ix_(left[j] & apart[:, k], directed[:, k] & adjacent[j])
                new[j, k] = apart[np.ix_(causes, causes)].any() or directed[ends].any()
        new &= ~new.T
        if not new.any():
            break
        directed, left = directed | new, left & ~new & ~new.T
    return directed


def _reached(edges: Edges) -> Edges:
    """Return which nodes a directed path leads to, from rows to columns."""
    steps = edges | np.eye(len(edges), dtype=bool)
    for _ in range(len(edges).bit_length()):
        steps = steps.astype(np.float32) @ steps.astype(np.float32) > 0
    return np.asarray(steps & ~np.eye(len(edges), dtype=bool))


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


def _beliefs(beliefs: Any) -> tuple[Belief, ...]:
    if isinstance(beliefs, pd.DataFrame):
        missing = [column for column in ("cause", "effect", "probability") if column not in beliefs]
        if missing:
            raise ValueError(f"the beliefs have no column {missing[0]!r}; they have {list(beliefs.columns)}")
        columns = ["cause", "effect", "probability", *(["source"] if "source" in beliefs else [])]
        beliefs = beliefs[columns].itertuples(index=False, name=None)
    checked = []
    for belief in _sequence("beliefs", beliefs, "triples (cause, effect, probability)"):
        if isinstance(belief, str) or not hasattr(belief, "__len__") or len(belief) not in (3, 4):
            raise ValueError(f"beliefs contain {belief!r}, which is not (cause, effect, probability) or with a source")
        cause, effect, probability, *source = belief
        is_number = isinstance(probability, Real) and not isinstance(probability, bool)
        if not is_number or not 1e-9 < float(probability) < 1 - 1e-9:
            raise ValueError(
                f"the belief {cause!r} -> {effect!r} has probability {probability!r}; it must be a number above 0 and "
                "below 1: use required for 1, and forbidden for 0"
            )
        remark = str(source[0]) if source and not pd.isna(source[0]) else ""
        checked.append((cause, effect, float(probability), remark))
    return tuple(checked)


def _sequence(option: str, values: Any, kind: str = "names") -> tuple[Any, ...]:
    if isinstance(values, str) or not hasattr(values, "__iter__"):
        raise ValueError(f"{option}={values!r} must be a sequence of {kind}")
    return tuple(values)
