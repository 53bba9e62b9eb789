"""A graph in the forms that other programs read: networkx, DOT, GML, JSON, a frame of edges."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import networkx as nx
import numpy as np
import pandas as pd

from castlereg.graph.causal_graph import CausalGraph
from castlereg.graph.column_traits import ColumnTraits

if TYPE_CHECKING:
    from numpy.typing import NDArray

_JSON_FORMAT, _JSON_VERSION = "castlereg graph", 1


def to_networkx(graph: CausalGraph) -> nx.DiGraph:
    """Convert to networkx; nodes in order with the attribute ``target``."""
    converted = nx.DiGraph()
    converted.add_nodes_from((name, {"target": name in graph.targets}) for name in graph.names)
    for edge in graph.edges().itertuples(index=False):
        converted.add_edge(
            edge.cause,
            edge.effect,
            weight=float(edge.weight),
            confidence=float(edge.confidence),
            direction=float(edge.direction),
        )
    return converted


def from_networkx(graph: nx.DiGraph, target: str | Sequence[str] | None = None) -> CausalGraph:
    """Read a networkx graph."""
    if not graph.is_directed():
        raise ValueError("the graph is undirected: a causal graph needs directed edges")
    names = [str(node) for node in graph]
    if target is None:
        target = [str(node) for node, known in graph.nodes(data="target") if _is_true(known)]
        if not target:
            raise ValueError("no node has the attribute target: name the target")
    place = {node: k for k, node in enumerate(graph)}
    weights = np.zeros((len(names), len(names)))
    confidence, direction = np.zeros_like(weights), np.full_like(weights, np.nan)
    for cause, effect, attributes in graph.edges(data=True):
        j, k = place[cause], place[effect]
        weights[j, k] = _number(attributes.get("weight", 1.0), "weight", cause, effect)
        if weights[j, k] <= 0 or not np.isfinite(weights[j, k]):
            raise ValueError(f"the edge {cause!r} -> {effect!r} weighs {weights[j, k]:g}: weights must be positive")
        confidence[j, k] = confidence[k, j] = _number(attributes.get("confidence", 1.0), "confidence", cause, effect)
        direction[j, k] = _number(attributes.get("direction", 1.0), "direction", cause, effect)
        direction[k, j] = 1 - direction[j, k]
    targets = (target,) if isinstance(target, str) else tuple(target)
    return CausalGraph(tuple(names), targets, weights, weights, confidence, direction)


def from_edges(edges: pd.DataFrame, target: str | Sequence[str], nodes: Sequence[str] | None = None) -> CausalGraph:
    """Read a frame of edges."""
    missing = [column for column in ("cause", "effect") if column not in edges]
    if missing:
        raise ValueError(f"the frame of edges has no column {missing[0]!r}; it has {list(edges.columns)}")
    targets = [target] if isinstance(target, str) else list(target)
    ends = [*edges["cause"], *edges["effect"]]
    names = list(dict.fromkeys([*ends, *targets])) if nodes is None else list(nodes)
    unknown = next((end for end in ends if end not in names), None)
    if unknown is not None:
        raise ValueError(f"an edge names {unknown!r}, which is not among the nodes {names}")
    graph = nx.DiGraph()
    graph.add_nodes_from(names)
    known = [column for column in ("weight", "confidence", "direction") if column in edges]
    for row in edges[["cause", "effect", *known]].itertuples(index=False):
        graph.add_edge(row.cause, row.effect, **{name: getattr(row, name) for name in known})
    return from_networkx(graph, targets)


def to_dot(graph: CausalGraph) -> str:
    """Write Graphviz's language, causes left; wide lines are strong edges."""
    heaviest = graph.weight_array.max(initial=0.0) or 1.0
    lines = ["digraph {", "  rankdir=LR;", "  node [shape=box, style=rounded];"]
    for name in graph.names:
        marked = " [target=true, style=filled, fillcolor=orange]" if name in graph.targets else ""
        lines.append(f"  {_quoted(name)}{marked};")
    for edge in graph.edges().itertuples(index=False):
        width = 0.5 + 3 * edge.weight / heaviest
        lines.append(
            f"  {_quoted(edge.cause)} -> {_quoted(edge.effect)} [weight={float(edge.weight)!r}, "
            f"confidence={float(edge.confidence)!r}, direction={float(edge.direction)!r}, penwidth={width:.2f}];"
        )
    return "\n".join([*lines, "}", ""])


def from_dot(text: str, target: str | Sequence[str] | None = None) -> CausalGraph:
    """Read Graphviz's language with pydot."""
    try:
        import pydot
    except ImportError:
        raise ImportError("reading DOT needs the package pydot: pip install 'castlereg[dot]'") from None
    parsed = pydot.graph_from_dot_data(text)
    if not parsed or parsed[0].get_type() != "digraph":
        raise ValueError("the text is no digraph in Graphviz's language")
    graph = nx.DiGraph()
    for node in parsed[0].get_nodes():
        name = _unquoted(node.get_name())
        if name not in ("node", "edge", "graph", "\\n"):
            graph.add_node(name, target=node.get_attributes().get("target"))
    for edge in parsed[0].get_edges():
        attributes = {k: _unquoted(str(v)) for k, v in edge.get_attributes().items()}
        graph.add_edge(_unquoted(str(edge.get_source())), _unquoted(str(edge.get_destination())), **attributes)
    return from_networkx(graph, target)


def to_gml(graph: CausalGraph) -> str:
    """Write GML."""
    converted = to_networkx(graph)
    for _, attributes in converted.nodes(data=True):
        attributes["target"] = int(attributes["target"])
    for *_, attributes in converted.edges(data=True):
        if np.isnan(attributes["direction"]):
            del attributes["direction"]
    return "\n".join(nx.generate_gml(converted))


def from_gml(text: str, target: str | Sequence[str] | None = None) -> CausalGraph:
    """Read GML."""
    return from_networkx(nx.parse_gml(text), target)


def to_json(graph: CausalGraph) -> str:
    """Write everything as JSON, numbers exactly."""
    content: dict[str, Any] = {
        "format": _JSON_FORMAT,
        "version": _JSON_VERSION,
        "nodes": list(graph.names),
        "targets": list(graph.targets),
        "threshold": graph.threshold,
        "dropped_weight": graph.dropped_weight,
        "weights": graph.weight_array.tolist(),
        "learned_weights": graph.learned_array.tolist(),
        "confidence": graph.confidence_array.tolist(),
        "direction": [[None if np.isnan(v) else float(v) for v in row] for row in graph.direction_array],
        "traits": None if graph.traits is None else graph.traits.to_dict(),
    }
    return json.dumps(content, allow_nan=False)


def from_json(text: str) -> CausalGraph:
    """Read JSON; what is not a graph is refused."""
    try:
        content = json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"the text is no JSON: {error}") from None
    if not isinstance(content, dict) or content.get("format") != _JSON_FORMAT:
        raise ValueError("the JSON holds no graph of castlereg")
    if content.get("version") != _JSON_VERSION:
        raise ValueError(f"the graph has version {content.get('version')!r}, and this castlereg reads {_JSON_VERSION}")
    try:
        names, targets = tuple(map(str, content["nodes"])), tuple(map(str, content["targets"]))
        weights, learned, confidence, direction = (
            _matrix(content[k], len(names), k) for k in ("weights", "learned_weights", "confidence", "direction")
        )
        if (weights < 0).any():
            raise ValueError("the graph has negative weights")
        known = content["traits"]
        return CausalGraph(
            names,
            targets,
            weights,
            learned,
            confidence,
            direction,
            threshold=float(content["threshold"]),
            dropped_weight=float(content["dropped_weight"]),
            traits=None if known is None else ColumnTraits.from_dict(known),
        )
    except (KeyError, TypeError) as error:
        raise ValueError(f"the JSON holds no whole graph: {error}") from None


def _matrix(rows: Any, n: int, what: str) -> NDArray[np.float64]:
    if [len(row) for row in rows] != [n] * n:
        raise ValueError(f"the graph's {what} are no {n} rows of {n} numbers")
    return np.array([[np.nan if v is None else v for v in row] for row in rows], dtype=np.float64).reshape(n, n)


def _quoted(name: str) -> str:
    return json.dumps(name, ensure_ascii=False)


def _unquoted(name: str) -> str:
    if name.startswith('"') and name.endswith('"'):
        return str(json.loads(name, strict=False))
    return name


def _is_true(value: Any) -> bool:
    return str(value).strip('"').lower() in ("1", "true")


def _number(value: Any, what: str, cause: Any, effect: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise ValueError(f"the edge {cause!r} -> {effect!r} has {what}={value!r}, which is no number") from None
