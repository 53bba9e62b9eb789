"""Layout of a layered picture: causes to the left of their effects, and edges around the nodes between them.

The layout follows the four steps of Sugiyama, Tagawa and Toda (1981): assign nodes to layers, order each layer with few
crossings, choose heights that keep edges straight, and route the edges. It is the same for matplotlib and SVG.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import networkx as nx
import numpy as np
from numpy.typing import NDArray

Point = tuple[float, float]
Edge = tuple[str, str]
Layers = list[list[int]]
Segments = list[tuple[int, int]]

NODE_HEIGHT = 24.0
_PORT = 7.0  # distance of the ends of edges on one side of a node, so that arrow heads do not overlap
_NODE_GAP, _LINE_GAP = 12.0, 9.0
_STUB = 9.0  # a straight last piece, the length of an arrow head
_PART_GAP = 22.0


class Box(NamedTuple):
    """The rectangle of a node: its centre and its size."""

    x: float
    y: float
    width: float
    height: float


class Places(NamedTuple):
    """Positions of nodes and edges, in points from the top left corner, with y downwards."""

    boxes: dict[str, Box]
    routes: dict[Edge, list[Point]]  # points of each edge from left to right; :func:`curves` joins them
    width: float
    height: float


def layered(widths: Mapping[str, float], edges: Sequence[Edge], *, min_width: float = 0.0) -> Places:
    """Place the nodes and edges of a graph without cycles, given the width of each node's box.

    Connected parts of the graph are placed separately, the largest first, in rows as wide as ``min_width`` or the
    widest part; nodes without any edge come last.

    Examples
    --------
    >>> places = layered({"a": 40, "b": 40, "c": 40}, [("a", "b"), ("b", "c"), ("a", "c")])
    >>> [round(places.boxes[node].x) for node in "abc"]
    [20, 108, 196]
    >>> len(places.routes["a", "c"])  # passes above or below b
    6
    """
    graph = nx.DiGraph()
    graph.add_nodes_from(widths)
    graph.add_edges_from(edges)
    # The order of a set of nodes differs from run to run; the rank of a node does not.
    rank = {node: i for i, node in enumerate(widths)}
    parts = [sorted(part, key=rank.__getitem__) for part in nx.weakly_connected_components(graph)]
    parts.sort(key=lambda part: (-len(part), rank[part[0]]))
    placed = [_place_part(graph.subgraph(part), {node: widths[node] for node in part}) for part in parts]
    return _in_rows(placed, max([min_width] + [part.width for part in placed]))


def curves(route: Sequence[Point]) -> list[tuple[Point, Point, Point, Point]]:
    """Join the points of a route by Bezier curves that are level at each point: start, two control points, end."""
    joined = []
    for (x0, y0), (x1, y1) in pairwise(route):
        middle = (x0 + x1) / 2
        joined.append(((x0, y0), (middle, y0), (middle, y1), (x1, y1)))
    return joined


def layer_numbers(count: int, edges: Segments) -> NDArray[np.int64]:
    """Assign connected nodes to layers: causes to the left of their effects, and edges that pass over few layers."""
    causes, effects = np.array(edges, dtype=np.int64).reshape(-1, 2).T
    cost = np.bincount(effects, minlength=count) - np.bincount(causes, minlength=count)
    return np.rint(_least_total(cost, [(cause, effect, 1.0) for cause, effect in edges])).astype(np.int64)


def crossings(layers: Layers, segments: Segments) -> int:
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


def order_layers(layers: Layers, segments: Segments, sweeps: int = 12) -> Layers:
    """Order the nodes of each layer so that few edges cross.

    Each sweep goes through the layers forward or backward, sorts each by the mean position of its neighbours in the
    previous layer, and swaps neighbours in a layer while that removes crossings. The best order is returned.
    """
    left, right = _neighbours(segments)
    best = [list(layer) for layer in layers]
    fewest = crossings(best, segments)
    for start in (layers, [layer[::-1] for layer in layers]):
        order = [list(layer) for layer in start]
        position = {node: float(i) for layer in order for i, node in enumerate(layer)}
        for sweep in range(sweeps):
            near, path = (left, order[1:]) if sweep % 2 == 0 else (right, order[-2::-1])
            for layer in path:
                mean = {node: float(np.mean([position[n] for n in near[node]] or [position[node]])) for node in layer}
                layer.sort(key=mean.__getitem__)
                position.update({node: float(i) for i, node in enumerate(layer)})
            _swap_while_it_helps(order, position, left, right)
            if (now := crossings(order, segments)) < fewest:
                best, fewest = [list(layer) for layer in order], now
            if fewest == 0:
                return best
    return best


def _neighbours(segments: Segments) -> tuple[dict[int, list[int]], dict[int, list[int]]]:
    """List the neighbours of each node in the layer to the left, and in the one to the right."""
    left: dict[int, list[int]] = defaultdict(list)
    right: dict[int, list[int]] = defaultdict(list)
    for a, b in segments:
        left[b].append(a)
        right[a].append(b)
    return left, right


def _swap_while_it_helps(
    order: Layers, position: dict[int, float], left: dict[int, list[int]], right: dict[int, list[int]]
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


def _place_part(part: nx.DiGraph, widths: Mapping[str, float]) -> Places:
    """Place the nodes and edges of a connected part."""
    names = list(widths)
    number = {name: i for i, name in enumerate(names)}
    edges = [(cause, effect) for cause in names for effect in sorted(part.successors(cause), key=number.__getitem__)]
    layer = list(layer_numbers(len(names), [(number[a], number[b]) for a, b in edges]))
    # An edge that passes over layers gets a point in each of them, which is placed like a node.
    chains: dict[Edge, list[int]] = {}
    for cause, effect in edges:
        points = range(len(layer), len(layer) + layer[number[effect]] - layer[number[cause]] - 1)
        layer.extend(layer[number[cause]] + 1 + i for i in range(len(points)))
        chains[cause, effect] = [number[cause], *points, number[effect]]
    segments = [segment for chain in chains.values() for segment in pairwise(chain)]
    layers: Layers = [[] for _ in range(max(layer) + 1)]
    for node, number_of_layer in enumerate(layer):
        layers[number_of_layer].append(node)
    layers = order_layers(layers, segments)

    left, right = _neighbours(segments)
    tall = np.zeros(len(layer))
    tall[: len(names)] = [max(NODE_HEIGHT, _PORT * (max(len(left[i]), len(right[i])) + 1)) for i in number.values()]
    ports = _ports(layers, chains)
    y = _heights(layers, chains, ports, tall)

    column_width = [max((widths[names[n]] for n in nodes if n < len(names)), default=0.0) for nodes in layers]
    steepest = np.zeros(len(layers))
    for a, b in segments:
        steepest[layer[a]] = max(steepest[layer[a]], abs(y[a] - y[b]))
    # Layers are further apart where edges are steep, up to a limit that keeps the picture together.
    most = 120.0 if len(layers) <= 12 else 60.0
    gaps = [2 * _STUB + float(np.clip(0.35 * climb, 30.0, most)) for climb in steepest[:-1]]
    start = np.concatenate([[0.0], np.cumsum([w + g for w, g in zip(column_width, [*gaps, 0.0], strict=True)])])
    centre = [start[i] + column_width[i] / 2 for i in range(len(layers))]
    boxes = {
        name: Box(float(centre[layer[i]]), float(y[i]), widths[name], float(tall[i])) for i, name in enumerate(names)
    }

    routes: dict[Edge, list[Point]] = {}
    for edge, chain in chains.items():
        first, last = (boxes[name] for name in edge)
        heights = [float(y[node]) for node in chain]
        heights[0] += ports[edge][0]
        heights[-1] += ports[edge][1]
        route = []
        for node, height in zip(chain, heights, strict=True):
            reach = column_width[layer[node]] / 2 + _STUB
            route += [(float(centre[layer[node]] + side * reach), height) for side in (-1, 1)]
        route[0] = (first.x + first.width / 2, heights[0])
        route[-1] = (last.x - last.width / 2, heights[-1])
        routes[edge] = route
    return Places(boxes, routes, float(start[-1]), float((y + tall / 2).max()))


def _ports(layers: Layers, chains: Mapping[Edge, list[int]]) -> dict[Edge, Point]:
    """Spread the ends of edges over the sides of their nodes, in the order of their other ends.

    Returns how far below the middle of its cause each edge leaves, and how far below that of its effect it arrives.
    """
    position = {node: i for layer in layers for i, node in enumerate(layer)}
    below: list[dict[Edge, float]] = []
    for here, there in ((0, 1), (-1, -2)):
        far_end = {edge: position[chain[there]] for edge, chain in chains.items()}
        sides: dict[int, list[Edge]] = defaultdict(list)
        for edge in sorted(chains, key=far_end.__getitem__):
            sides[chains[edge][here]].append(edge)
        below.append({e: _PORT * (i - (len(side) - 1) / 2) for side in sides.values() for i, e in enumerate(side)})
    return {edge: (below[0][edge], below[1][edge]) for edge in chains}


def _heights(
    layers: Layers, chains: Mapping[Edge, list[int]], ports: Mapping[Edge, Point], tall: NDArray[np.float64]
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
    row = np.arange(len(apart))
    difference = coo_array(
        (np.repeat([1.0, -1.0], len(apart)), (np.tile(row, 2), np.concatenate([a, b]))), shape=(len(apart), len(cost))
    )
    solved = linprog(cost, A_ub=difference.tocsr(), b_ub=-distance, bounds=(0, None), method="highs-ds")
    return np.asarray(solved.x - solved.x.min())


def _in_rows(parts: Sequence[Places], width: float) -> Places:
    """Put parts side by side while they fit into the width, then below; nodes without edges in separate rows."""
    rows: list[list[Places]] = []
    room = 0.0
    for part in parts:
        if not rows or room < part.width or bool(part.routes) != bool(rows[-1][-1].routes):
            rows.append([])
            room = width
        rows[-1].append(part)
        room -= part.width + _PART_GAP
    boxes: dict[str, Box] = {}
    routes: dict[Edge, list[Point]] = {}
    top = 0.0
    for row in rows:
        left = (width - sum(part.width for part in row) - _PART_GAP * (len(row) - 1)) / 2
        for part in row:
            boxes |= {name: box._replace(x=box.x + left, y=box.y + top) for name, box in part.boxes.items()}
            routes |= {edge: [(x + left, y + top) for x, y in route] for edge, route in part.routes.items()}
            left += part.width + _PART_GAP
        top += max(part.height for part in row) + _PART_GAP
    return Places(boxes, routes, width, max(top - _PART_GAP, 0.0))
