"""Pictures of graphs, for matplotlib, SVG and reports: what they show, the layered layout, and how it is drawn.

The layout follows the four steps of Sugiyama, Tagawa and Toda (1981): assign nodes to layers, with causes to the left
of their effects, order each layer with few crossings, choose heights that keep edges straight, and route the edges
around the nodes between them.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise, product
from typing import TYPE_CHECKING, Any, NamedTuple

import networkx as nx
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from castlereg.causal.graph import KNOWN_DIRECTION, NOT_PROOF, CausalGraph, Graph

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.typing import ColorType

_Point = tuple[float, float]
_Edge = tuple[str, str]
_Layers = list[list[int]]
_Segments = list[tuple[int, int]]

MOST_NODES = 40  # of larger graphs, the neighbourhood of the target is shown first
_FONT_SIZE, _CAPTION_SIZE = 10.0, 8.0
_MOST_LOOSE = 30  # more nodes without an edge than this are not drawn
_LETTERS = {0.32: "ijl.,:;'|! ", 0.4: 'ftr()[]{}-/\\"', 0.96: "mwMW%@…"}  # by width, in units of the font size
_WIDTHS = {letter: width for width, letters in _LETTERS.items() for letter in letters}
_NODE_HEIGHT = 24.0
_PORT = 7.0  # distance of the ends of edges on one side of a node, so that arrow heads do not overlap
_NODE_GAP, _LINE_GAP = 12.0, 9.0
_STUB = 9.0  # a straight last piece, the length of an arrow head
_PART_GAP = 22.0
_SWEEPS = 12  # for the order of the layers
_MARGIN = 10.0


class Box(NamedTuple):
    """The rectangle of a node: its centre and its size."""

    x: float
    y: float
    width: float
    height: float


class _Places(NamedTuple):
    """Positions of nodes and edges, in points from the top left corner, with y downwards."""

    boxes: dict[str, Box]
    routes: dict[_Edge, list[_Point]]  # points of each edge from left to right; :func:`_curves` joins them
    width: float
    height: float


class _Line(NamedTuple):
    """An edge as it is drawn."""

    cause: str
    effect: str
    weight: float
    label: str  # what is known of the edge
    width: float
    opacity: float
    directed: bool  # whether its direction is known
    believed: bool = False  # whether the user has a belief about it


class _Hidden(NamedTuple):
    """A probable common cause that is not in the table."""

    first: str
    second: str
    label: str
    curve: tuple[_Point, ...]  # start, two control points, end


class Picture(NamedTuple):
    """Everything a layered picture shows."""

    places: _Places
    labels: dict[str, str]  # of the boxes, by node
    lines: list[_Line]  # weakest first, so that strong ones lie on top
    loose: frozenset[str]  # nodes without a line
    hidden: tuple[_Hidden, ...]
    caption: str


def _strongest_edges(graph: Graph, nodes: Sequence[str], max_edges: int | None = None) -> pd.DataFrame:
    """Return the strongest edges between some nodes, by default twice as many as there are nodes."""
    edges = graph.edges()
    if len(nodes) < len(graph.names):
        edges = edges[edges["cause"].isin(nodes) & edges["effect"].isin(nodes)]
    return edges.head(2 * len(nodes) if max_edges is None else max_edges)


def neighbourhood(graph: Graph, node: str, steps: int = 1, max_nodes: int = 30) -> list[str]:
    """Return the nodes around a node: the node itself, its Markov blanket, then nodes some steps further.

    Networks give some weight to nearly every edge, so only the edges of :func:`edges_around` count. Within the blanket
    and within each step the strongest nodes come first; a node behind several edges is as strong as the weakest edge.
    """
    if steps < 0 or max_nodes < 1:
        raise ValueError(f"steps must be at least 0 and max_nodes at least 1, got {steps} and {max_nodes}")
    edges, start = edges_around(graph, [node], graph.nodes), graph.index(node)
    weights = np.zeros(graph.weight_array.shape)
    for edge in edges.itertuples():
        weights[graph.index(edge.cause), graph.index(edge.effect)] = edge.weight
    either = np.maximum(weights, weights.T)
    strength, reached = np.zeros(len(weights)), [start]
    strength[start] = np.inf
    other_causes = np.minimum(weights, weights[start]).max(axis=1)
    step = np.maximum(either[start], other_causes)
    for _ in range(steps + 1):
        nearest = np.lexsort((-either[reached].max(axis=0), -step))  # of several behind one edge, by their own edges
        new = [k for k in nearest.tolist() if step[k] > 0 and k not in reached]
        reached += new
        strength[new] = step[new]
        step = np.minimum(either, strength).max(axis=1)
    return [graph.names[k] for k in reached[:max_nodes]]


def edges_around(graph: Graph, centres: Sequence[str], nodes: Sequence[str], per_centre: int = 5) -> pd.DataFrame:
    """Return the rows of ``graph.edges()`` between some nodes that matter around the centres.

    These are the strongest edges of the graph, twice as many as it has nodes, and the ``per_centre`` strongest of each
    centre.
    """
    edges = graph.edges()
    counted = {*edges.index[: 2 * len(graph.names)]}
    for centre in centres:
        graph.index(centre)
        counted.update(edges.index[(edges["cause"] == centre) | (edges["effect"] == centre)][:per_centre])
    return edges[edges.index.isin(counted) & edges["cause"].isin(nodes) & edges["effect"].isin(nodes)]


def picture(graph: Graph, edges: pd.DataFrame, nodes: Sequence[str]) -> Picture:
    """Lay out some rows of ``graph.edges()`` and the nodes that may be shown with them."""
    hidden = graph.hidden_causes() if isinstance(graph, CausalGraph) else pd.DataFrame(columns=["first", "second"])
    all_hidden = hidden[hidden["first"].isin(nodes) & hidden["second"].isin(nodes)]
    hidden = all_hidden.head(len(nodes))  # more curves would hide the edges
    joined = {*edges["cause"], *edges["effect"], *hidden["first"], *hidden["second"]}
    loose = [node for node in nodes if node not in joined]
    left_out = {node for node in loose if node not in graph.targets} if len(loose) > _MOST_LOOSE else set()
    shown = [node for node in nodes if node not in left_out]
    labels = {node: shortened(node) for node in shown}
    heaviest = edges["weight"].max() if len(edges) else 1.0
    lines = []
    for edge in edges.iloc[::-1].to_dict("records"):
        share = next((edge[name] for name in graph.shares[:1] if edge[name] >= 0), edge["weight"] / heaviest)
        directed = not edge.get("direction", 1.0) < KNOWN_DIRECTION  # NaN is directed
        cause, effect, beliefs = edge["cause"], edge["effect"], _beliefs(graph, edge)
        known = [f"{name} {edge[name]:.2g}" for name in ("weight", *graph.shares) if not np.isnan(edge[name])]
        label, width = f"{cause} -> {effect}, {', '.join(known + beliefs)}", 0.9 + 2.6 * edge["weight"] / heaviest
        lines.append(_Line(cause, effect, edge["weight"], label, width, 0.4 + 0.55 * share, directed, bool(beliefs)))
    sentences, n_nodes, n_edges = [NOT_PROOF], len(graph.names), int(np.count_nonzero(graph.edge_array))
    if len(nodes) < n_nodes:
        sentences.append(f"Shown: {len(nodes)} of {n_nodes} nodes, {len(lines)} of {n_edges} edges.")
    elif len(lines) < n_edges:
        sentences.append(f"Shown: the {len(lines)} strongest of {n_edges} edges.")
    if not all(line.directed for line in lines):
        sentences.append("Dashed: the direction is unknown.")
    if len(hidden):
        most = f", the {len(hidden)} most probable of {len(all_hidden)}" if len(hidden) < len(all_hidden) else ""
        sentences.append(f"Dotted: a suspected hidden common cause{most}.")
    if any(line.believed for line in lines):
        sentences.append("Ring: with your belief.")
    if left_out:
        sentences.append(f"Left out: {len(left_out)} nodes without an edge among the strongest.")
    elif loose:
        sentences.append("Pale: no edge among the strongest.")
    caption = " ".join(sentences)
    # Bold letters are wider than others.
    widths = {n: _text_width(labels[n]) * (1.15 if n in graph.targets else 1.0) * _FONT_SIZE + 16 for n in shown}
    pairs = list(zip(edges["cause"], edges["effect"], strict=True))
    places = _layered(widths, pairs, min_width=max(420.0, _text_width(caption) * _CAPTION_SIZE))
    places, curves = _with_hidden(places, list(zip(hidden["first"], hidden["second"], strict=True)))
    marks = tuple(
        _Hidden(first, second, f"{first} <-> {second}: an unobserved common cause, probability {share:.2g}", curve)
        for (first, second, share), curve in zip(hidden.itertuples(index=False), curves, strict=True)
    )
    return Picture(places, labels, lines, frozenset(loose) - left_out, marks, caption)


def _beliefs(graph: Graph, edge: Mapping[str, Any]) -> list[str]:
    """Return the beliefs in an edge and in its reverse, with the probability of the arrow without and with them."""
    if "prior" not in edge or not isinstance(graph, CausalGraph):
        return []
    cause, effect = edge["cause"], edge["effect"]
    back = graph.prior_array[graph.index(effect), graph.index(cause)]
    beliefs = [("your belief", edge["prior"]), (f"your belief in {effect} -> {cause}", back)]
    known = [f"{name} {value:.2g}" for name, value in beliefs if not np.isnan(value)]
    both = edge["confidence"] * edge["direction"]
    return (
        [*known, f"probability of the arrow {edge['data']:.2g} from the data and {both:.2g} with it"] if known else []
    )


def shortened(name: str, limit: int = 22) -> str:
    """Cut the middle out of a long name to keep ``limit`` characters."""
    # A line break or a tab would not fit into the box.
    name = "".join(" " if unicodedata.category(c) in ("Cc", "Zl", "Zp") else c for c in name)
    if len(name) <= limit:
        return name
    head = (limit - 1) // 2
    return f"{name[:head].rstrip()}…{name[head + 1 - limit :].lstrip()}"


def _text_width(text: str) -> float:
    """Estimate the width of a text, in units of the font size, for a wide font such as DejaVu Sans."""
    total = 0.0
    for character in text:
        if unicodedata.east_asian_width(character) in "WF":
            total += 1.0
        elif not unicodedata.combining(character):
            base = unicodedata.normalize("NFD", character)[0]
            total += _WIDTHS.get(base, 0.69 if base.isupper() else 0.63)
    return total


# --- layout -------------------------------------------------------------------------------------------


def _layered(widths: Mapping[str, float], edges: Sequence[_Edge], *, min_width: float = 0.0) -> _Places:
    """Place the connected parts of a graph without cycles, the largest first, given the width of each node's box."""
    graph = nx.DiGraph()
    graph.add_nodes_from(widths)
    graph.add_edges_from(edges)
    # The order of a set of nodes differs from run to run; the rank of a node does not.
    rank = {node: i for i, node in enumerate(widths)}
    parts = [sorted(part, key=rank.__getitem__) for part in nx.weakly_connected_components(graph)]
    parts.sort(key=lambda part: (-len(part), rank[part[0]]))
    placed = [_place_part(graph.subgraph(part), {node: widths[node] for node in part}) for part in parts]
    return _in_rows(placed, max([min_width] + [part.width for part in placed]))


def _curves(route: Sequence[_Point]) -> list[tuple[_Point, ...]]:
    """Join the points of a route by Bezier curves that are level at each point: start, two control points, end."""
    return [((x0, y0), ((x0 + x1) / 2, y0), ((x0 + x1) / 2, y1), (x1, y1)) for (x0, y0), (x1, y1) in pairwise(route)]


def _with_hidden(places: _Places, pairs: Sequence[_Edge]) -> tuple[_Places, list[tuple[_Point, ...]]]:
    """Find curves between pairs of nodes that pass few other nodes, and make room for them."""
    curves = []
    for pair in pairs:
        first, second = sorted((places.boxes[name] for name in pair), key=lambda box: (box.x, box.y))
        boxes = np.array(list(places.boxes.values()))
        margins = np.array([[-1.0 if name in pair else 3.0] for name in places.boxes])  # curves end on the rims
        stacked = abs(first.x - second.x) < (first.width + second.width) / 2
        best: tuple[float, tuple[_Point, ...]] = np.inf, ()
        curve: tuple[_Point, ...]
        for bow, *sides in product((24.0, 48.0, 96.0, 144.0), (-1, 1), (-1, 1)):
            ends = list(zip((first, second), sides, strict=True))
            if stacked:  # from side to side, otherwise from top or bottom to top or bottom
                x = [box.x + side * box.width / 2 for box, side in ends]
                controls = [(x[i] + sides[i] * bow, ends[i][0].y) for i in (0, 1)]
                curve = ((x[0], first.y), *controls, (x[1], second.y))
            else:
                y, quarter = [box.y + side * box.height / 2 for box, side in ends], (second.x - first.x) / 4
                controls = [(first.x + quarter, y[0] + sides[0] * bow), (second.x - quarter, y[1] + sides[1] * bow)]
                curve = ((first.x, y[0]), *controls, (second.x, y[1]))
            away = np.abs(_along(curve)[:, None] - boxes[:, :2])
            crossed = int((away < boxes[:, 2:] / 2 + margins).all(axis=2).any(axis=0).sum())
            if (cost := crossed + bow / 1000) < best[0]:
                best = cost, curve
        curves.append(best[1])
    points = np.concatenate([np.zeros((1, 2)), *map(_along, curves)])
    left, top = np.maximum(-points.min(axis=0), 0.0)
    width, height = np.maximum(points.max(axis=0), (places.width, places.height))
    nodes = {name: box._replace(x=box.x + left, y=box.y + top) for name, box in places.boxes.items()}
    routes = {edge: [(x + left, y + top) for x, y in route] for edge, route in places.routes.items()}
    moved = [tuple((x + left, y + top) for x, y in curve) for curve in curves]
    return _Places(nodes, routes, float(width + left), float(height + top)), moved


def _along(curve: Sequence[_Point], n_points: int = 25) -> NDArray[np.float64]:
    """Return points of a Bezier curve, at equal steps of its parameter: shape (n_points, 2)."""
    t = np.linspace(0, 1, n_points)[:, None]
    return np.asarray(np.hstack([(1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t**2 * (1 - t), t**3]) @ np.array(curve))


def _heads(curve: Sequence[_Point]) -> list[list[_Point]]:
    """Return the corners of the arrow heads at both ends of a curve."""
    heads = []
    for (x, y), inner in ((curve[0], curve[1]), (curve[3], curve[2])):
        along = np.subtract(inner, (x, y))
        right, down = (7 * along / np.linalg.norm(along)).tolist()
        heads.append([(x, y), *((x + right + 0.4 * side * down, y + down - 0.4 * side * right) for side in (-1, 1))])
    return heads


def middle(route: Sequence[_Point]) -> _Point:
    """Return a point in the middle of an edge, where the mark of a belief is."""
    curves = _curves(route)
    x, y = _along(curves[len(curves) // 2], 3)[1]
    return float(x), float(y)


def _layer_numbers(count: int, edges: _Segments) -> NDArray[np.int64]:
    """Assign connected nodes to layers: causes to the left of their effects, and edges that pass over few layers."""
    causes, effects = np.array(edges, dtype=np.int64).reshape(-1, 2).T
    cost = np.bincount(effects, minlength=count) - np.bincount(causes, minlength=count)
    return np.rint(_least_total(cost, [(cause, effect, 1.0) for cause, effect in edges])).astype(np.int64)


def _crossings(layers: _Layers, segments: _Segments) -> int:
    """Count the pairs of edges that cross between neighbouring layers."""
    layer = {node: number for number, nodes in enumerate(layers) for node in nodes}
    position = {node: i for nodes in layers for i, node in enumerate(nodes)}
    between: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for left, right in segments:
        between[layer[left]].append((position[left], position[right]))
    total = 0
    for ends in between.values():
        left, right = np.array(ends).T
        total += int(((left[:, None] < left) & (right[:, None] > right)).sum())
    return total


def _order_layers(layers: _Layers, segments: _Segments) -> _Layers:
    """Sort layers by the mean position of neighbours in the previous one, and swap neighbours while it helps."""
    left, right = _neighbours(segments)
    best = [list(layer) for layer in layers]
    fewest = _crossings(best, segments)
    for start in (layers, [layer[::-1] for layer in layers]):
        order = [list(layer) for layer in start]
        position = {node: float(i) for layer in order for i, node in enumerate(layer)}
        for sweep in range(_SWEEPS):
            near, path = (left, order[1:]) if sweep % 2 == 0 else (right, order[-2::-1])
            for layer in path:
                mean = {node: float(np.mean([position[n] for n in near[node]] or [position[node]])) for node in layer}
                layer.sort(key=mean.__getitem__)
                position.update({node: float(i) for i, node in enumerate(layer)})
            _swap_while_it_helps(order, position, left, right)
            if (now := _crossings(order, segments)) < fewest:
                best, fewest = [list(layer) for layer in order], now
            if fewest == 0:
                return best
    return best


def _neighbours(segments: _Segments) -> tuple[dict[int, list[int]], dict[int, list[int]]]:
    """List the neighbours of each node in the layer to the left, and in the one to the right."""
    left: dict[int, list[int]] = defaultdict(list)
    right: dict[int, list[int]] = defaultdict(list)
    for a, b in segments:
        left[b].append(a)
        right[a].append(b)
    return left, right


def _swap_while_it_helps(
    order: _Layers, position: dict[int, float], left: dict[int, list[int]], right: dict[int, list[int]]
) -> None:
    """Swap neighbouring nodes, in place, until no swap removes a crossing."""
    swapped = True
    while swapped:
        swapped = False
        for layer in order:
            for i in range(len(layer) - 1):
                a, b = layer[i], layer[i + 1]
                pairs = [(position[m], position[n]) for near in (left, right) for m in near[a] for n in near[b]]
                if sum((m > n) - (m < n) for m, n in pairs) > 0:
                    layer[i], layer[i + 1] = b, a
                    position[a], position[b] = i + 1.0, float(i)
                    swapped = True


def _place_part(part: nx.DiGraph, widths: Mapping[str, float]) -> _Places:
    """Place the nodes and edges of a connected part."""
    names = list(widths)
    number = {name: i for i, name in enumerate(names)}
    edges = [(cause, effect) for cause in names for effect in sorted(part.successors(cause), key=number.__getitem__)]
    layer = list(_layer_numbers(len(names), [(number[a], number[b]) for a, b in edges]))
    # An edge that passes over layers gets a point in each of them, which is placed like a node.
    chains: dict[_Edge, list[int]] = {}
    for cause, effect in edges:
        points = range(len(layer), len(layer) + layer[number[effect]] - layer[number[cause]] - 1)
        layer.extend(layer[number[cause]] + 1 + i for i in range(len(points)))
        chains[cause, effect] = [number[cause], *points, number[effect]]
    segments = [segment for chain in chains.values() for segment in pairwise(chain)]
    layers: _Layers = [[] for _ in range(max(layer) + 1)]
    for node, number_of_layer in enumerate(layer):
        layers[number_of_layer].append(node)
    layers = _order_layers(layers, segments)

    left, right = _neighbours(segments)
    tall = np.zeros(len(layer))
    tall[: len(names)] = [max(_NODE_HEIGHT, _PORT * (max(len(left[i]), len(right[i])) + 1)) for i in number.values()]
    ports = _ports(layers, chains)
    y = _heights(layers, chains, ports, tall)

    column_width = [max((widths[names[n]] for n in nodes if n < len(names)), default=0.0) for nodes in layers]
    steepest = np.zeros(len(layers))
    for a, b in segments:
        steepest[layer[a]] = max(steepest[layer[a]], abs(y[a] - y[b]))
    # _Layers are further apart where edges are steep, up to a limit that keeps the picture together.
    most = 120.0 if len(layers) <= 12 else 60.0
    gaps = [2 * _STUB + float(np.clip(0.35 * climb, 30.0, most)) for climb in steepest[:-1]]
    start = np.concatenate([[0.0], np.cumsum([w + g for w, g in zip(column_width, [*gaps, 0.0], strict=True)])])
    centre = [float(start[i] + width / 2) for i, width in enumerate(column_width)]
    boxes = {name: Box(centre[layer[i]], float(y[i]), widths[name], float(tall[i])) for i, name in enumerate(names)}

    routes: dict[_Edge, list[_Point]] = {}
    for edge, chain in chains.items():
        first, last = (boxes[name] for name in edge)
        heights = [float(y[node]) for node in chain]
        heights[0] += ports[edge][0]
        heights[-1] += ports[edge][1]
        route = []
        for node, height in zip(chain, heights, strict=True):
            reach = column_width[layer[node]] / 2 + _STUB
            route += [(centre[layer[node]] + side * reach, height) for side in (-1, 1)]
        route[0] = (first.x + first.width / 2, heights[0])
        route[-1] = (last.x - last.width / 2, heights[-1])
        routes[edge] = route
    return _Places(boxes, routes, float(start[-1]), float((y + tall / 2).max()))


def _ports(layers: _Layers, chains: Mapping[_Edge, list[int]]) -> dict[_Edge, _Point]:
    """Return how far below the middle of its cause each edge leaves, and below that of its effect it arrives.

    Ends are spread over the sides of their nodes in the order of the other ends.
    """
    position = {node: i for layer in layers for i, node in enumerate(layer)}
    below: list[dict[_Edge, float]] = []
    for here, there in ((0, 1), (-1, -2)):
        sides: dict[int, list[_Edge]] = defaultdict(list)
        for edge in sorted(chains, key=lambda edge: position[chains[edge][there]]):
            sides[chains[edge][here]].append(edge)
        below.append({e: _PORT * (i - (len(side) - 1) / 2) for side in sides.values() for i, e in enumerate(side)})
    return {edge: (below[0][edge], below[1][edge]) for edge in chains}


def _heights(
    layers: _Layers, chains: Mapping[_Edge, list[int]], ports: Mapping[_Edge, _Point], tall: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Find heights that keep the order and the distances and make edges as level as possible.

    They minimize the sum of all climbs; those in the middle of long edges count more, which keeps these edges straight
    (weights of Gansner et al. 1993). Nodes have a height in ``tall``; the height of points of edges is 0.
    """
    apart = [
        (a, b, (tall[a] + tall[b]) / 2 + (_NODE_GAP if tall[a] and tall[b] else _LINE_GAP))
        for nodes in layers
        for a, b in pairwise(nodes)
    ]
    cost = [0.0] * len(tall)
    for edge, chain in chains.items():
        ends = [ports[edge][0], *[0.0] * (len(chain) - 2), ports[edge][1]]
        for (a, leaves), (b, arrives) in pairwise(zip(chain, ends, strict=True)):
            weight = (8.0, 2.0, 1.0)[np.count_nonzero(tall[[a, b]])]
            # A helper variable above both ends, as low as possible: its distances to the ends add up to the climb.
            helper = len(cost)
            apart += [(helper, a, -leaves), (helper, b, -arrives)]
            cost[a] += weight
            cost[b] += weight
            cost.append(-2 * weight)
    y = _least_total(np.array(cost), apart)[: len(tall)]
    return y - (y - tall / 2).min()


def _least_total(cost: NDArray[np.number], apart: Sequence[tuple[int, int, float]]) -> NDArray[np.float64]:
    """Find the numbers with the least sum of ``cost * number`` for which b - a >= d for each (a, b, d) of ``apart``.

    If each d is an integer, so are the numbers: this linear program is that of a network flow.
    """
    from scipy.optimize import linprog
    from scipy.sparse import coo_array

    if not apart:
        return np.zeros(len(cost))
    a, b, distance = (np.array(column) for column in zip(*apart, strict=True))
    at = np.tile(np.arange(len(apart)), 2), np.concatenate([a, b])
    difference = coo_array((np.repeat([1.0, -1.0], len(apart)), at), shape=(len(apart), len(cost)))
    solved = linprog(cost, A_ub=difference.tocsr(), b_ub=-distance, bounds=(0, None), method="highs-ds")
    return np.asarray(solved.x - solved.x.min())


def _in_rows(parts: Sequence[_Places], width: float) -> _Places:
    """Put parts side by side while they fit into the width, then below; nodes without edges in separate rows."""
    rows: list[list[_Places]] = []
    space = 0.0
    for part in parts:
        if not rows or space < part.width or bool(part.routes) != bool(rows[-1][-1].routes):
            rows.append([])
            space = width
        rows[-1].append(part)
        space -= part.width + _PART_GAP
    boxes: dict[str, Box] = {}
    routes: dict[_Edge, list[_Point]] = {}
    top = 0.0
    for row in rows:
        left = (width - sum(part.width for part in row) - _PART_GAP * (len(row) - 1)) / 2
        for part in row:
            boxes |= {name: box._replace(x=box.x + left, y=box.y + top) for name, box in part.boxes.items()}
            routes |= {edge: [(x + left, y + top) for x, y in route] for edge, route in part.routes.items()}
            left += part.width + _PART_GAP
        top += max(part.height for part in row) + _PART_GAP
    return _Places(boxes, routes, width, max(top - _PART_GAP, 0.0))


# --- matplotlib ---------------------------------------------------------------------------------------

_NODE, _TARGET, _EDGE, _TEXT = "#eef2f6", "#ffd8a8", "#52616f", "#1b2733"
_INTO_TARGET, _FAINT, _HIDDEN = "#d9480f", "#8a949e", "#8250df"
_MOST_INCHES = 60.0
_SMALLEST_LETTERS = 6.0


def draw(graph: Graph, ax: Axes | None = None, max_edges: int | None = None) -> Axes:
    """Draw the strongest edges of a graph; see :meth:`Graph.plot`."""
    return _draw(graph, picture(graph, _strongest_edges(graph, graph.nodes, max_edges), graph.nodes), ax)


def draw_neighbourhood(graph: Graph, node: str | None = None, ax: Axes | None = None, max_nodes: int = 30) -> Axes:
    """Draw the neighbourhood of a node, by default of the target; see :func:`neighbourhood`."""
    node = graph.target if node is None else node
    nodes = neighbourhood(graph, node, max_nodes=max_nodes)
    return _draw(graph, picture(graph, edges_around(graph, [node], nodes), nodes), ax, focus=node)


def _draw(graph: Graph, shown: Picture, ax: Axes | None, focus: str | None = None) -> Axes:
    import matplotlib.pyplot as plt
    from matplotlib.patches import FancyArrowPatch, FancyBboxPatch, PathPatch, Polygon
    from matplotlib.path import Path

    places = shown.places
    wide, high = places.width + 2 * _MARGIN, places.height + 2 * _MARGIN
    if ax is None:
        shrink = min(1.0, _MOST_INCHES * 72 / max(wide, high))
        _, ax = plt.subplots(figsize=(shrink * wide / 72 + 0.1, shrink * high / 72 + 0.4), layout="constrained")
    ax.set(xlim=(-_MARGIN, wide - _MARGIN), ylim=(high - _MARGIN, -_MARGIN), aspect="equal", xticks=[], yticks=[])
    ax.set_frame_on(False)
    # The axes get their size only from the layout, and the letters must fit the boxes, which grow with the axes.
    ax.figure.canvas.figure.draw_without_rendering()
    scale = ax.get_window_extent().width / wide * 72 / ax.figure.dpi

    ax.set_xlabel(shown.caption, fontsize=_CAPTION_SIZE * min(scale, 1.0), color=_FAINT)
    # The shaft of a transparent arrow shows through its head, so mix its colour with the background instead.
    background = ax.figure.get_facecolor()
    for line in shown.lines:
        start, *rest = _curves(places.routes[line.cause, line.effect])
        points = [*start, *(point for curve in rest for point in curve[1:])]
        path = Path(points, [Path.MOVETO] + [Path.CURVE4] * (len(points) - 1))
        colour = _mixed(_INTO_TARGET if line.effect in graph.targets else _EDGE, background, line.opacity)
        head = "-|>,head_length=0.7,head_width=0.3" if line.directed else "-"
        style: dict[str, Any] = {"lw": line.width * scale, "mutation_scale": (7 + 1.5 * line.width) * scale}
        style |= {"ls": "solid" if line.directed else (0, (3, 2)), "capstyle": "butt", "joinstyle": "miter"}
        ax.add_patch(FancyArrowPatch(path=path, arrowstyle=head, color=colour, zorder=2, **style))
        if line.believed:
            x, y = middle(places.routes[line.cause, line.effect])
            ax.plot(x, y, "o", mfc=_mixed(_EDGE, background, 0.0), mec=colour, ms=6.5 * scale, mew=1.2 * scale)
    for mark in shown.hidden:
        path = Path(mark.curve, [Path.MOVETO] + [Path.CURVE4] * 3)
        ax.add_patch(PathPatch(path, fc="none", ec=_HIDDEN, lw=1.6 * scale, ls=(0, (1, 1.6)), zorder=2.5))
        for corners in _heads(mark.curve):
            ax.add_patch(Polygon(corners, fc=_HIDDEN, ec="none", zorder=2.5))
    for node, box in places.boxes.items():
        target, loose = node in graph.targets, node in shown.loose
        fill = _TARGET if target else "none" if loose else _NODE
        rim, text = (_INTO_TARGET, _TEXT) if target else (_FAINT, _FAINT) if loose else (_EDGE, _TEXT)
        corner, rounded = (box.x - box.width / 2, box.y - box.height / 2), "round,pad=0,rounding_size=6"
        line_width = (1.8 if node == focus else 0.8) * scale
        ax.add_patch(
            FancyBboxPatch(corner, box.width, box.height, boxstyle=rounded, fc=fill, ec=rim, lw=line_width, zorder=3)
        )
        font: dict[str, Any] = {
            "fontsize": _FONT_SIZE * scale,
            "fontweight": "bold" if target else "normal",
            "color": text,
        }
        ax.text(box.x, box.y, shown.labels[node], ha="center", va="center", zorder=4, parse_math=False, **font)
    return ax


def _mixed(colour: str, background: ColorType, share: float) -> ColorType:
    """Mix a colour with the background, as if it were transparent; a transparent background counts as white."""
    from matplotlib.colors import to_rgb, to_rgba

    *behind, alpha = to_rgba(background)
    under = alpha * np.array(behind) + 1 - alpha
    red, green, blue = share * np.array(to_rgb(colour)) + (1 - share) * under
    return float(red), float(green), float(blue)


def draw_heat_map(graph: Graph, ax: Axes | None = None) -> Axes:
    """Draw all weights as a heat map; see :meth:`Graph.plot_heat_map`."""
    import matplotlib.pyplot as plt
    from matplotlib.colors import PowerNorm

    order = graph.topological_order()
    weights, n = graph.weights.loc[order, order].to_numpy(), len(order)
    if ax is None:
        names = max(_text_width(shortened(node)) for node in order) * _FONT_SIZE / 72
        side = float(np.clip(0.26 * n, 2.0, 13.0)) + names + 0.3
        _, ax = plt.subplots(figsize=(side + 0.9, side + 0.4), layout="constrained")
    # Use square roots, because a few edges are many times as heavy as the others. White means no edge.
    norm = PowerNorm(0.5, vmin=0, vmax=weights.max() or 1.0)
    image = ax.imshow(np.where(weights > 0, weights, np.nan), cmap="BuPu", norm=norm)
    ax.figure.colorbar(image, cax=ax.inset_axes((1.02, 0, 0.03, 1)), label="weight").outline.set_visible(False)
    ax.set(xlabel="effect", ylabel="cause", facecolor="white")
    ax.xaxis.set_label_position("top")
    ax.tick_params(length=0, top=True, labeltop=True, bottom=False, labelbottom=False)
    ax.spines[:].set_color(_FAINT)
    below = (0, 0), (0, -5), "axes fraction", "offset points"
    ax.annotate(NOT_PROOF, *below, va="top", fontsize=_CAPTION_SIZE, color=_FAINT)
    # Label only some nodes if the cells are smaller than letters, but always the targets.
    ax.figure.canvas.figure.draw_without_rendering()
    cell = ax.get_window_extent().height / n * 72 / ax.figure.dpi
    every, targets = int(np.ceil(_SMALLEST_LETTERS / cell)), {order.index(target) for target in graph.targets}
    free = {i for i in range(0, n, every) if all(abs(i - target) >= every for target in targets)}
    labelled, size = sorted(targets | free), float(np.clip(0.72 * cell * every, _SMALLEST_LETTERS, _FONT_SIZE))
    for axis, rotation in ((ax.xaxis, 90), (ax.yaxis, 0)):
        axis.set_ticks(labelled, [shortened(order[i]) for i in labelled], fontsize=size, rotation=rotation)
        for text, i in zip(axis.get_ticklabels(), labelled, strict=True):
            text.set(parse_math=False, **{"fontweight": "bold", "color": _INTO_TARGET} if i in targets else {})
    return ax


# --- SVG ----------------------------------------------------------------------------------------------

_SCALE = 1.3  # pixels per point of the layout: letters of 13 pixels, as on web pages

# Notebooks have their own themes, whose light or dark mode may differ from the system's. So boxes have their own
# background, and lines and loose letters have colours that are visible on white and on black.
_STYLE = """
.castlereg-graph { font: 10px system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
.castlereg-graph text { text-anchor: middle; dominant-baseline: central; fill: #1b2733; }
.castlereg-graph .caption, .castlereg-graph .loose text { fill: #7b8894; }
.castlereg-graph .caption { font-size: 8px; }
.castlereg-graph rect { fill: #eef2f6; stroke: #66788a; stroke-width: 0.8; }
.castlereg-graph .loose rect { fill: none; stroke: #7b8894; }
.castlereg-graph .target rect { fill: #ffd8a8; stroke: #d9480f; }
.castlereg-graph .target text { fill: #1b2733; font-weight: bold; } .castlereg-graph .edge { color: #66788a; }
.castlereg-graph .into-target { color: #e8590c; } .castlereg-graph .edge:hover { opacity: 1; }
.castlereg-graph .edge path { fill: none; stroke: currentColor; }
.castlereg-graph .edge polygon { fill: currentColor; }
.castlereg-graph .prior { fill: #ffffff; stroke: currentColor; stroke-width: 1.2; }
.castlereg-graph .hidden { color: #8250df; } .castlereg-graph .hidden polygon { fill: currentColor; }
.castlereg-graph .hidden path { fill: none; stroke: currentColor; }
.castlereg-graph g .near { stroke-width: 9px; stroke-opacity: 0; pointer-events: stroke; }
@media screen {
  .castlereg-graph { max-width: 100%; height: auto; }
}
@media (prefers-color-scheme: dark) {
  .castlereg-graph text { fill: #eef2f6; } .castlereg-graph .caption, .castlereg-graph .loose text { fill: #8b98a5; }
  .castlereg-graph rect { fill: #2b3642; stroke: #8b98a5; }
  .castlereg-graph .loose rect { fill: none; stroke: #8b98a5; }
  .castlereg-graph .target rect { fill: #7a3a0c; stroke: #ff922b; } .castlereg-graph .target text { fill: #fff4e6; }
  .castlereg-graph .prior { fill: #1b2733; } .castlereg-graph .hidden { color: #b392f0; }
  .castlereg-graph .edge { color: #7f91a3; } .castlereg-graph .into-target { color: #f76707; }
}
"""


def to_svg(graph: Graph, *, max_edges: int | None = None, nodes: Iterable[str] | None = None) -> str:
    """Draw the strongest edges of a graph as SVG; see :meth:`CausalGraph.to_svg`."""
    indices = range(len(graph.names)) if nodes is None else sorted({graph.index(node) for node in nodes})
    shown = [graph.names[k] for k in indices]
    return _svg(graph, picture(graph, _strongest_edges(graph, shown, max_edges), shown))


def notebook_html(graph: Graph) -> str:
    """Return a picture of a graph, or of the target's neighbourhood if the graph is large, as HTML with a caption."""
    nodes, note = graph.nodes, ""
    if len(nodes) > MOST_NODES:
        nodes = neighbourhood(graph, graph.target)
        shown = picture(graph, edges_around(graph, [graph.target], nodes), nodes)
        note = f"The graph is large; this is the neighbourhood of {_escaped(graph.target)}. "
    else:
        shown = picture(graph, _strongest_edges(graph, nodes), nodes)
    return (
        f'<div style="overflow-x: auto">{_svg(graph, shown, caption=False)}'
        f'<p style="font-size: small; opacity: 0.8">{note}{shown.caption}</p></div>'
    )


def _svg(graph: Graph, shown: Picture, caption: bool = True) -> str:
    places = shown.places
    wide, high = places.width + 2 * _MARGIN, places.height + (4 if caption else 2) * _MARGIN
    label = f"Graph of {len(places.boxes)} nodes and {len(shown.lines)} edges, target {', '.join(graph.targets)}"
    strongest = "; ".join(line.label for line in shown.lines[:-6:-1]) or "none"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="castlereg-graph" role="img" aria-label="{_escaped(label)}" '
        f'width="{wide * _SCALE:.0f}" height="{high * _SCALE:.0f}" '
        f'viewBox="{-_MARGIN:g} {-_MARGIN:g} {wide:.1f} {high:.1f}">',
        f"<desc>{_escaped(f'{NOT_PROOF} Strongest edges: {strongest}.')}</desc>",
        f"<style>{_STYLE}</style>",
        *(_edge(line, places, into_target=line.effect in graph.targets) for line in shown.lines),
        *(hidden_svg(mark) for mark in shown.hidden),
    ]
    for node, box in places.boxes.items():
        is_target = node in graph.targets
        x, y, text_style = box.x - box.width / 2, box.y - box.height / 2, f'font-size="{_FONT_SIZE:g}"'
        parts.append(
            f'<g class="{"target" if is_target else "loose" if node in shown.loose else "node"}">'
            f"<title>{_escaped(f'{node}, target' if is_target else node)}</title>"
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{box.width:.1f}" height="{box.height:.1f}" rx="6"/>'
            f'<text x="{box.x:.1f}" y="{box.y:.1f}" {text_style}>{_escaped(shown.labels[node])}</text></g>'
        )
    if caption:
        parts.append(
            f'<text class="caption" x="{places.width / 2:.1f}" y="{places.height + 2 * _MARGIN:.1f}" '
            f'font-size="{_CAPTION_SIZE:g}">{_escaped(shown.caption)}</text>'
        )
    return "\n".join([*parts, "</svg>"])


def edge_shape(line: _Line, route: Sequence[_Point]) -> tuple[str, str]:
    """Return the shaft of an edge as the ``d`` of an SVG path, and its arrow head as the ``points`` of a polygon.

    The head is empty for an edge without direction.
    """
    *before, (x, y) = route
    head, half = 5.0 + 1.1 * line.width, 2.0 + 0.9 * line.width
    # The shaft ends inside the head; otherwise a thick one would show next to the tip.
    points = [*before, (x - 0.8 * head, y)] if line.directed else [*before, (x, y)]
    path = f"M{_point(points[0])}" + "".join(f"C{_point(c)} {_point(d)} {_point(e)}" for _, c, d, e in _curves(points))
    return path, " ".join(map(_point, [(x, y), (x - head, y - half), (x - head, y + half)])) if line.directed else ""


def dashes(line: _Line) -> str:
    """Return the SVG dash pattern of an edge whose direction is uncertain, otherwise an empty string."""
    return "" if line.directed else f"{4 + line.width:.1f} {3 + 0.6 * line.width:.1f}"


def _edge(line: _Line, places: _Places, into_target: bool) -> str:
    path, head = edge_shape(line, places.routes[line.cause, line.effect])
    dashed = f' stroke-dasharray="{dashes(line)}"' if dashes(line) else ""
    tip = f'<polygon points="{head}"/>' if head else ""
    tip += prior_svg(line, places.routes[line.cause, line.effect])
    return (
        f'<g class="edge{" into-target" if into_target else ""}" opacity="{line.opacity:.2f}">'
        f"<title>{_escaped(line.label)}</title>"
        f'<path class="near" d="{path}"/>'
        f'<path d="{path}" stroke-width="{line.width:.2f}"{dashed}/>{tip}</g>'
    )


def prior_svg(line: _Line, route: Sequence[_Point]) -> str:
    """Return the mark of an edge with a belief as SVG, otherwise an empty string."""
    x, y = middle(route)
    return f'<circle class="prior" cx="{x:.1f}" cy="{y:.1f}" r="3.2"/>' if line.believed else ""


def hidden_svg(mark: _Hidden) -> str:
    """Return a hidden common cause as SVG: a dotted curve with two heads and a tooltip."""
    heads = "".join(f'<polygon points="{" ".join(map(_point, corners))}"/>' for corners in _heads(mark.curve))
    path = f"M{_point(mark.curve[0])}C{' '.join(map(_point, mark.curve[1:]))}"
    return (
        f'<g class="hidden"><title>{_escaped(mark.label)}</title><path class="near" d="{path}"/>'
        f'<path d="{path}" stroke-width="1.6" stroke-dasharray="1.6 2.6"/>{heads}</g>'
    )


def _point(point: _Point) -> str:
    return f"{point[0]:.1f},{point[1]:.1f}"


def printable(text: str) -> str:
    """Replace control characters, which XML and HTML cannot represent."""
    return re.sub("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "\ufffd", text)


def _escaped(text: str) -> str:
    """Escape a text for XML and HTML."""
    return html.escape(printable(text))
