"""Places of nodes and edges in a layered picture."""

from __future__ import annotations

from itertools import combinations

import networkx as nx
import numpy as np
import pytest

from castlereg.causal.graph.drawing.layered import Edge, Places, crossings, curves, layer_numbers, layered, order_layers


def random_edges(nodes: int, edges: int, seed: int) -> list[tuple[int, int]]:
    """Edges without a cycle, whose causes need not come first in the list of nodes."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(nodes)
    pairs = list(combinations(range(nodes), 2))
    chosen = rng.choice(len(pairs), size=edges, replace=False)
    return [(int(order[pairs[i][0]]), int(order[pairs[i][1]])) for i in chosen]


def random_places(nodes: int, edges: int, seed: int) -> tuple[Places, list[Edge]]:
    widths = {f"n{i}": float(w) for i, w in enumerate(np.random.default_rng(seed).uniform(20, 150, size=nodes))}
    joined = [(f"n{a}", f"n{b}") for a, b in random_edges(nodes, edges, seed)]
    return layered(widths, joined), joined


SIZES = [(2, 1, 0), (8, 10, 1), (15, 60, 2), (30, 25, 3), (40, 80, 4)]


@pytest.mark.parametrize(("nodes", "edges", "seed"), SIZES)
def test_causes_are_left_of_their_effects(nodes: int, edges: int, seed: int) -> None:
    places, joined = random_places(nodes, edges, seed)
    for cause, effect in joined:
        a, b = places.boxes[cause], places.boxes[effect]
        assert a.x + a.width / 2 < b.x - b.width / 2


@pytest.mark.parametrize(("nodes", "edges", "seed"), SIZES)
def test_no_two_nodes_overlap_and_all_are_in_the_picture(nodes: int, edges: int, seed: int) -> None:
    places, _ = random_places(nodes, edges, seed)
    assert len(places.boxes) == nodes
    for a, b in combinations(places.boxes.values(), 2):
        assert abs(a.x - b.x) >= (a.width + b.width) / 2 or abs(a.y - b.y) >= (a.height + b.height) / 2
    for box in places.boxes.values():
        assert box.x - box.width / 2 >= -1e-6 and box.x + box.width / 2 <= places.width + 1e-6
        assert box.y - box.height / 2 >= -1e-6 and box.y + box.height / 2 <= places.height + 1e-6


@pytest.mark.parametrize(("nodes", "edges", "seed"), SIZES)
def test_edges_run_from_rim_to_rim_and_through_no_other_node(nodes: int, edges: int, seed: int) -> None:
    places, joined = random_places(nodes, edges, seed)
    names = list(places.boxes)
    boxes = np.array(list(places.boxes.values()))
    t = np.linspace(0, 1, 30)[:, None]
    for cause, effect in joined:
        route = places.routes[cause, effect]
        a, b = places.boxes[cause], places.boxes[effect]
        assert route[0][0] == pytest.approx(a.x + a.width / 2) and abs(route[0][1] - a.y) < a.height / 2
        assert route[-1][0] == pytest.approx(b.x - b.width / 2) and abs(route[-1][1] - b.y) < b.height / 2
        p, q, r, s = (np.array([curve[i] for curve in curves(route)])[:, None] for i in range(4))
        points = ((1 - t) ** 3 * p + 3 * (1 - t) ** 2 * t * q + 3 * (1 - t) * t**2 * r + t**3 * s).reshape(-1, 1, 2)
        inside = (np.abs(points - boxes[:, :2]) < boxes[:, 2:] / 2 - 1e-6).all(axis=2).any(axis=0)
        assert not inside.any(), [name for name, hit in zip(names, inside, strict=True) if hit]


@pytest.mark.parametrize("seed", range(5))
def test_layers_are_as_close_as_can_be(seed: int) -> None:
    """Not longer in all than those of the longest paths, where causes stand as far left as they can."""
    edges = random_edges(14, 20, seed)
    graph = nx.DiGraph(edges)
    joined = sorted(max(nx.weakly_connected_components(graph), key=len))
    number = {node: i for i, node in enumerate(joined)}
    edges = [(number[a], number[b]) for a, b in edges if a in number and b in number]
    ours = layer_numbers(len(joined), edges)
    generations = nx.topological_generations(nx.DiGraph(edges))
    naive = {node: layer for layer, nodes in enumerate(generations) for node in nodes}
    assert ours.min() == 0
    assert min(ours[b] - ours[a] for a, b in edges) == 1
    assert sum(ours[b] - ours[a] for a, b in edges) <= sum(naive[b] - naive[a] for a, b in edges)


def test_crossings_are_counted_pair_by_pair(rng: np.random.Generator) -> None:
    layers = [[0, 1, 2, 3], [7, 6, 5, 4], [8, 9]]
    segments = [(a, b) for a in range(4) for b in range(4, 8) if rng.random() < 0.5]
    segments += [(a, b) for a in range(4, 8) for b in (8, 9) if rng.random() < 0.5]
    where = {node: (x, y) for x, layer in enumerate(layers) for y, node in enumerate(layer)}
    count = 0
    for (a, b), (c, d) in combinations(segments, 2):
        if where[a][0] == where[c][0]:
            count += (where[a][1] - where[c][1]) * (where[b][1] - where[d][1]) < 0
    assert crossings(layers, segments) == count > 0


def test_ordered_layers_cross_no_more_than_those_in_a_naive_order() -> None:
    before = after = 0
    for seed in range(8):
        rng = np.random.default_rng(seed)
        layers = [list(range(8 * i, 8 * i + 8)) for i in range(4)]
        segments = [(a, b) for i in range(3) for a in layers[i] for b in layers[i + 1] if rng.random() < 0.25]
        ordered = order_layers(layers, segments)
        assert [sorted(layer) for layer in ordered] == layers
        assert crossings(ordered, segments) <= crossings(layers, segments)
        before += crossings(layers, segments)
        after += crossings(ordered, segments)
    assert after < 0.6 * before


def test_a_tree_is_drawn_without_crossings() -> None:
    layers = [[0], [1, 2, 3], [9, 4, 7, 5, 8, 6]]
    segments = [(0, 1), (0, 2), (0, 3), (1, 4), (1, 5), (2, 6), (2, 7), (3, 8), (3, 9)]
    assert crossings(layers, segments) > 0
    assert crossings(order_layers(layers, segments), segments) == 0


def test_a_long_edge_is_straight_where_it_can_be() -> None:
    places = layered(dict.fromkeys("abcd", 40.0), [("a", "b"), ("b", "c"), ("c", "d"), ("a", "d")])
    heights = [y for _, y in places.routes["a", "d"]]
    assert len({round(y, 6) for y in heights[1:-1]}) <= 2  # level from b to c, at most one climb


def test_places_are_the_same_each_time() -> None:
    assert random_places(20, 30, 7) == random_places(20, 30, 7)


def test_nodes_without_edges_are_below_the_rest() -> None:
    places = layered(dict.fromkeys("abcde", 40.0), [("b", "d")], min_width=200)
    assert {places.boxes[node].y for node in "ace"} == {places.boxes["a"].y}
    assert places.boxes["a"].y > max(places.boxes["b"].y, places.boxes["d"].y)


def test_nothing_has_no_places() -> None:
    assert layered({}, [], min_width=10) == Places({}, {}, 10, 0)
