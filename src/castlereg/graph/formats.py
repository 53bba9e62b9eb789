"""Graphs in formats that other programs read: networkx, DOT, GML, JSON, a DataFrame of edges."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import networkx as nx
import numpy as np
import pandas as pd

from castlereg.graph.causal_graph import CausalGraph
from castlereg.graph.sortability import ColumnTraits

if TYPE_CHECKING:
    from numpy.typing import NDArray

_ATTRIBUTES = ("weight", "confidence", "direction")
_JSON_FORMAT, _JSON_VERSION = "castlereg graph", 1


def to_networkx(graph: CausalGraph) -> nx.DiGraph:
    """Convert to networkx, nodes in order."""
    converted = nx.DiGraph()
    converted.add_nodes_from((name, {"target": name in graph.targets}) for name in graph.names)
    for cause, effect, *values in graph.edges().itertuples(index=False):
        converted.add_edge(cause, effect, **dict(zip(_ATTRIBUTES, map(float, values), strict=True)))
    return converted


def from_networkx(graph: nx.DiGraph, target: str | Sequence[str] | None = None) -> CausalGraph:
    """Read a networkx graph."""
    if not graph.is_directed():
        raise ValueError("the graph is undirected; a causal graph needs directed edges")
    names = [str(node) for node in graph]
    if target is None:
        target = [str(node) for node, value in graph.nodes(data="target") if _is_true(value)]
        if not target:
            raise ValueError("no node has the attribute 'target'; pass target=")
    index = {node: k for k, node in enumerate(graph)}
    weights = np.zeros((len(names), len(names)))
    confidence, direction = np.zeros_like(weights), np.full_like(weights, np.nan)
    for cause, effect, attributes in graph.edges(data=True):
        j, k = index[cause], index[effect]
        weight, agreed, this_way = (_number(attributes.get(name, 1.0), name, cause, effect) for name in _ATTRIBUTES)
        if weight <= 0 or not np.isfinite(weight):
            raise ValueError(f"the edge {cause!r} -> {effect!r} has weight {weight:g}; weights must be positive")
        weights[j, k] = weight
        confidence[[j, k], [k, j]] = agreed
        direction[[j, k], [k, j]] = this_way, 1 - this_way
    targets = (target,) if isinstance(target, str) else tuple(target)
    return CausalGraph(tuple(names), targets, weights, weights, confidence, direction)


def from_edges(edges: pd.DataFrame, target: str | Sequence[str], nodes: Sequence[str] | None = None) -> CausalGraph:
    """Read a DataFrame of edges."""
    missing = [column for column in ("cause", "effect") if column not in edges]
    if missing:
        raise ValueError(f"the edges have no column {missing[0]!r}; they have {list(edges.columns)}")
    targets = [target] if isinstance(target, str) else list(target)
    ends = [*edges["cause"], *edges["effect"]]
    names = list(dict.fromkeys([*ends, *targets])) if nodes is None else list(nodes)
    unknown = next((end for end in ends if end not in names), None)
    if unknown is not None:
        raise ValueError(f"an edge names {unknown!r}, which is not among the nodes {names}")
    graph = nx.DiGraph()
    graph.add_nodes_from(names)
    given = [column for column in _ATTRIBUTES if column in edges]
    for cause, effect, *values in edges[["cause", "effect", *given]].itertuples(index=False):
        graph.add_edge(cause, effect, **dict(zip(given, values, strict=True)))
    return from_networkx(graph, targets)


def to_dot(graph: CausalGraph) -> str:
    """Write DOT, causes left; wide lines are strong edges."""
    heaviest = graph.weight_array.max(initial=0.0) or 1.0
    lines = ["digraph {", "  rankdir=LR;", "  node [shape=box, style=rounded];"]
    for name in graph.names:
        marked = " [target=true, style=filled, fillcolor=orange]" if name in graph.targets else ""
        lines.append(f"  {_quoted(name)}{marked};")
    for cause, effect, *values in graph.edges().itertuples(index=False):
        attributes = ", ".join(f"{name}={float(value)!r}" for name, value in zip(_ATTRIBUTES, values, strict=True))
        width = 0.5 + 3 * values[0] / heaviest
        lines.append(f"  {_quoted(cause)} -> {_quoted(effect)} [{attributes}, penwidth={width:.2f}];")
    return "\n".join([*lines, "}", ""])


def from_dot(text: str, target: str | Sequence[str] | None = None) -> CausalGraph:
    """Read DOT with pydot."""
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
    """Read JSON, checking that it is a graph."""
    try:
        content = json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"the text is not JSON: {error}") from None
    if not isinstance(content, dict) or content.get("format") != _JSON_FORMAT:
        raise ValueError("the JSON is not a castlereg graph")
    if content.get("version") != _JSON_VERSION:
        raise ValueError(f"the graph has version {content.get('version')!r}; this castlereg reads {_JSON_VERSION}")
    try:
        names, targets = tuple(map(str, content["nodes"])), tuple(map(str, content["targets"]))
        weights, learned, confidence, direction = (
            _matrix(content[k], len(names), k) for k in ("weights", "learned_weights", "confidence", "direction")
        )
        if (weights < 0).any():
            raise ValueError("the graph has negative weights")
        threshold, dropped, traits = float(content["threshold"]), float(content["dropped_weight"]), content["traits"]
        known = None if traits is None else ColumnTraits.from_dict(traits)
        return CausalGraph(names, targets, weights, learned, confidence, direction, threshold, dropped, known)
    except (KeyError, TypeError) as error:
        raise ValueError(f"the JSON is not a complete graph: {error}") from None


def _matrix(rows: Any, n: int, name: str) -> NDArray[np.float64]:
    if [len(row) for row in rows] != [n] * n:
        raise ValueError(f"{name} must have {n} rows of {n} numbers")
    return np.array([[np.nan if v is None else v for v in row] for row in rows], dtype=np.float64).reshape(n, n)


def _quoted(name: str) -> str:
    return json.dumps(name, ensure_ascii=False)


def _unquoted(name: str) -> str:
    if name.startswith('"') and name.endswith('"'):
        return str(json.loads(name, strict=False))
    return name


def _is_true(value: Any) -> bool:
    return str(value).strip('"').lower() in ("1", "true")


def _number(value: Any, name: str, cause: Any, effect: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise ValueError(f"the edge {cause!r} -> {effect!r} has {name}={value!r}, which is not a number") from None
