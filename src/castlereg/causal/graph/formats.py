"""The content of a graph, as DataFrames and in formats that other programs read: networkx, DOT, GML, JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from castlereg.causal.graph.sortability import ColumnTraits

if TYPE_CHECKING:
    import networkx as nx

_MATRICES = ("weights", "learned_weights", "confidence", "direction")
_ATTRIBUTES = ("weight", "confidence", "direction")
_JSON_FORMAT, _JSON_VERSION = "castlereg graph", 1


@dataclass(frozen=True, eq=False, repr=False)
class GraphFormats:
    """Arrays of a graph, and conversions to and from other formats; see :class:`CausalGraph`."""

    names: tuple[str, ...]
    targets: tuple[str, ...]
    weight_array: NDArray[np.float64]
    learned_array: NDArray[np.float64]
    confidence_array: NDArray[np.float64]
    direction_array: NDArray[np.float64]
    threshold: float = 0.0
    dropped_weight: float = 0.0
    traits: ColumnTraits | None = None
    agreement_of: str = ""

    def __post_init__(self) -> None:
        for name in ("weight_array", "learned_array", "confidence_array", "direction_array"):
            array = np.array(getattr(self, name), dtype=np.float64)
            array.setflags(write=False)
            object.__setattr__(self, name, array)
        if not (np.isfinite(self.weight_array).all() and (self.weight_array >= 0).all()):
            raise ValueError("the graph has negative weights, or weights that are not finite")

    @property
    def edge_array(self) -> NDArray[np.bool_]:
        """Boolean array of the edges, which all lists, pictures, files and counts use.

        The edges are the learned weights that reach the threshold and do not close a cycle, with the user's edits.
        """
        present: NDArray[np.bool_] = self.weight_array > 0
        return present

    @property
    def weights(self) -> pd.DataFrame:
        """``weights.loc[cause, effect]``, zero for pairs without an edge.

        Norms of input weights; with ``objective="graph"`` edge strengths from 0 to 1
        (:mod:`castlereg.fitted.strengths`).
        """
        return self._named(self.weight_array)

    @property
    def learned_weights(self) -> pd.DataFrame:
        """The weights before weak edges and those that close a cycle were dropped."""
        return self._named(self.learned_array)

    @property
    def confidence(self) -> pd.DataFrame:
        """``confidence.loc[a, b]``: the share of networks with a strong edge between the two, in either direction.

        See :func:`castlereg.acyclicity.cut.strong_edges`; ``agreement_of`` describes the networks. NaN where it is not
        known, as for a single network. Fit with ``n_members=20, bootstrap=True``, or by cross-validation.
        Edges that the user required or edited have confidence 1.
        """
        return self._named(self.confidence_array)

    @property
    def direction(self) -> pd.DataFrame:
        """``direction.loc[cause, effect]``: of the networks that join the two, the share with this direction.

        NaN where no network joins them, and where the confidence is not known.
        """
        return self._named(self.direction_array)

    def _named(self, values: NDArray[np.float64]) -> pd.DataFrame:
        names = _index(self.names)
        return pd.DataFrame(values.copy(), index=names, columns=names)

    def edges(self) -> pd.DataFrame:
        """Return the edges, strongest first: ``cause``, ``effect``, ``weight``, ``confidence``, ``direction``.

        Confidence and direction are NaN for the graph of one network; see :attr:`confidence`.
        """
        cause, effect = np.nonzero(self.edge_array)
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

    @classmethod
    def from_edges(cls, edges: pd.DataFrame, target: str | Sequence[str], nodes: Sequence[str] | None = None) -> Self:
        """Build a graph from a DataFrame such as that of :meth:`edges`, with the columns ``cause`` and ``effect``.

        Parameters
        ----------
        edges : DataFrame
        target : str or sequence of str
        nodes : sequence of str, optional
            All nodes in order; by default the nodes of the edges, then the target.

        Examples
        --------
        >>> import pandas as pd
        >>> from castlereg import CausalGraph
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
        unknown = next((end for end in ends if end not in names), None)
        if unknown is not None:
            raise ValueError(f"an edge mentions {unknown!r}, which is not among the nodes {names}")
        graph = nx.DiGraph()
        graph.add_nodes_from(names)
        attributes = [column for column in _ATTRIBUTES if column in edges]
        graph.update(nx.from_pandas_edgelist(edges, "cause", "effect", attributes or None, create_using=nx.DiGraph))
        return cls.from_networkx(graph, targets)

    def to_networkx(self) -> nx.DiGraph:
        """Convert to a networkx graph; edges have ``weight``, ``confidence`` and ``direction``, nodes ``target``.

        Attributes that are not known are omitted.
        """
        import networkx as nx

        graph = nx.DiGraph()
        graph.add_nodes_from((name, {"target": name in self.targets}) for name in self.names)
        for cause, effect, *values in self.edges().itertuples(index=False):
            graph.add_edge(cause, effect, **_known(values))
        return graph

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
        default = {"weight": 1.0, "confidence": np.nan, "direction": np.nan}
        for cause, effect, attributes in graph.edges(data=True):
            j, k = index[cause], index[effect]
            weight, agreed, this_way = (
                _number(attributes.get(name, default[name]), name, cause, effect) for name in _ATTRIBUTES
            )
            if weight <= 0 or not np.isfinite(weight):
                raise ValueError(f"the edge {cause!r} -> {effect!r} has weight {weight:g}; weights must be positive")
            weights[j, k] = weight
            confidence[[j, k], [k, j]] = agreed
            direction[[j, k], [k, j]] = this_way, 1 - this_way
        targets = (target,) if isinstance(target, str) else tuple(target)
        return cls(tuple(map(str, graph)), targets, weights, weights, confidence, direction)

    def to_dot(self) -> str:
        """Write the graph in DOT, the language of Graphviz, with causes on the left and wide lines for strong edges."""
        heaviest = self.weight_array.max(initial=0.0) or 1.0
        lines = ["digraph {", "  rankdir=LR;", "  node [shape=box, style=rounded];"]
        for name in self.names:
            marked = " [target=true, style=filled, fillcolor=orange]" if name in self.targets else ""
            lines.append(f"  {_quoted(name)}{marked};")
        for cause, effect, *values in self.edges().itertuples(index=False):
            attributes = ", ".join(f"{name}={value!r}" for name, value in _known(values).items())
            width = 0.5 + 3 * values[0] / heaviest
            lines.append(f"  {_quoted(cause)} -> {_quoted(effect)} [{attributes}, penwidth={width:.2f}];")
        return "\n".join([*lines, "}", ""])

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

    def to_gml(self) -> str:
        """Write the graph as GML, which DoWhy and other programs read."""
        import networkx as nx

        graph = self.to_networkx()
        for _, attributes in graph.nodes(data=True):
            attributes["target"] = int(attributes["target"])
        return "\n".join(nx.generate_gml(graph))

    @classmethod
    def from_gml(cls, text: str, target: str | Sequence[str] | None = None) -> Self:
        """Read a graph from GML."""
        import networkx as nx

        return cls.from_networkx(nx.parse_gml(text), target)

    def to_json(self) -> str:
        """Write the complete graph as JSON, with exact numbers and null for unknown ones."""
        content = {
            "format": _JSON_FORMAT,
            "version": _JSON_VERSION,
            "nodes": self.names,
            "targets": self.targets,
            "threshold": self.threshold,
            "dropped_weight": self.dropped_weight,
            "agreement_of": self.agreement_of,
            **{name: _plain(getattr(self, name)) for name in _MATRICES},
            "traits": None if self.traits is None else {k: _plain(v) for k, v in vars(self.traits).items()},
        }
        return json.dumps(content, allow_nan=False)

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
            weights, learned, confidence, direction = (
                np.array(content[name], dtype=np.float64).reshape(n, n) for name in _MATRICES
            )
            cut, traits = (float(content["threshold"]), float(content["dropped_weight"])), content["traits"]
            if traits is not None:
                traits = ColumnTraits(*(tuple(np.array(traits[k], float).tolist()) for k in ("variance", "explained")))
            agreement_of = str(content.get("agreement_of", ""))  # older files do not have it
            return cls(names, targets, weights, learned, confidence, direction, *cut, traits, agreement_of)
        except (KeyError, TypeError) as error:
            raise ValueError(f"the JSON is not a complete graph: {error}") from None


def _index(names: Sequence[str]) -> pd.Index:
    try:
        return pd.Index(list(names))
    except UnicodeEncodeError:  # Arrow strings cannot represent every name
        return pd.Index(list(names), dtype=object)


def _plain(values: Any) -> Any:
    """Return an array as nested lists, with None for NaN."""
    array = np.array(values, dtype=object)
    array[np.isnan(values)] = None
    return array.tolist()


def _known(values: Sequence[float]) -> dict[str, float]:
    """Return the attributes of an edge by name, without those that are NaN."""
    return {name: float(value) for name, value in zip(_ATTRIBUTES, values, strict=True) if not np.isnan(value)}


def _quoted(name: str) -> str:
    return json.dumps(name, ensure_ascii=False)


def _unquoted(name: str) -> str:
    return str(json.loads(name, strict=False)) if name.startswith('"') and name.endswith('"') else name


def _number(value: Any, name: str, cause: Any, effect: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise ValueError(f"the edge {cause!r} -> {effect!r} has {name}={value!r}, which is not a number") from None
