"""Pictures of graphs: the choice of what they show, the places of nodes and edges, matplotlib and SVG."""

from __future__ import annotations

import re
import sys
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations, pairwise

import matplotlib as mpl
import networkx as nx
import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

from castlereg.causal import CausalGraph, InputGraph
from castlereg.causal.drawing import (
    _along,
    _crossings,
    _curves,
    _Edge,
    _layer_numbers,
    _layered,
    _order_layers,
    _Places,
    _text_width,
    draw,
    draw_heat_map,
    draw_neighbourhood,
    edges_around,
    neighbourhood,
    notebook_html,
    picture,
    shortened,
    to_svg,
)

# --- layout -------------------------------------------------------------------------------------------


def random_edges(nodes: int, edges: int, seed: int) -> list[tuple[int, int]]:
    """Edges without a cycle, whose causes need not come first in the list of nodes."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(nodes)
    pairs = list(combinations(range(nodes), 2))
    chosen = rng.choice(len(pairs), size=edges, replace=False)
    return [(int(order[pairs[i][0]]), int(order[pairs[i][1]])) for i in chosen]


def random_places(nodes: int, edges: int, seed: int) -> tuple[_Places, list[_Edge]]:
    widths = {f"n{i}": float(w) for i, w in enumerate(np.random.default_rng(seed).uniform(20, 150, size=nodes))}
    joined = [(f"n{a}", f"n{b}") for a, b in random_edges(nodes, edges, seed)]
    return _layered(widths, joined), joined


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
        p, q, r, s = (np.array([curve[i] for curve in _curves(route)])[:, None] for i in range(4))
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
    ours = _layer_numbers(len(joined), edges)
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
    assert _crossings(layers, segments) == count > 0


def test_ordered_layers_cross_no_more_than_those_in_a_naive_order() -> None:
    before = after = 0
    for seed in range(8):
        rng = np.random.default_rng(seed)
        layers = [list(range(8 * i, 8 * i + 8)) for i in range(4)]
        segments = [(a, b) for i in range(3) for a in layers[i] for b in layers[i + 1] if rng.random() < 0.25]
        ordered = _order_layers(layers, segments)
        assert [sorted(layer) for layer in ordered] == layers
        assert _crossings(ordered, segments) <= _crossings(layers, segments)
        before += _crossings(layers, segments)
        after += _crossings(ordered, segments)
    assert after < 0.6 * before


def test_a_tree_is_drawn_without_crossings() -> None:
    layers = [[0], [1, 2, 3], [9, 4, 7, 5, 8, 6]]
    segments = [(0, 1), (0, 2), (0, 3), (1, 4), (1, 5), (2, 6), (2, 7), (3, 8), (3, 9)]
    assert _crossings(layers, segments) > 0
    assert _crossings(_order_layers(layers, segments), segments) == 0


def test_a_long_edge_is_straight_where_it_can_be() -> None:
    places = _layered(dict.fromkeys("abcd", 40.0), [("a", "b"), ("b", "c"), ("c", "d"), ("a", "d")])
    heights = [y for _, y in places.routes["a", "d"]]
    assert len({round(y, 6) for y in heights[1:-1]}) <= 2  # level from b to c, at most one climb


def test_places_are_the_same_each_time() -> None:
    assert random_places(20, 30, 7) == random_places(20, 30, 7)


def test_nodes_without_edges_are_below_the_rest() -> None:
    places = _layered(dict.fromkeys("abcde", 40.0), [("b", "d")], min_width=200)
    assert {places.boxes[node].y for node in "ace"} == {places.boxes["a"].y}
    assert places.boxes["a"].y > max(places.boxes["b"].y, places.boxes["d"].y)


def test_nothing_has_no_places() -> None:
    assert _layered({}, [], min_width=10) == _Places({}, {}, 10, 0)


# --- matplotlib ---------------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def no_window() -> Iterator[None]:
    mpl.use("agg")
    import matplotlib.pyplot as plt

    yield
    plt.close("all")


def from_edges(edges: dict[tuple[str, str], float], target: str) -> CausalGraph:
    names = sorted({node for edge in edges for node in edge})
    weights = np.zeros((len(names), len(names)))
    for (cause, effect), weight in edges.items():
        weights[names.index(cause), names.index(effect)] = weight
    return CausalGraph.from_weights(weights, names, target=target)


def dense(nodes: int, seed: int = 0) -> CausalGraph:
    """Some weight on every edge, as networks have it."""
    rng = np.random.default_rng(seed)
    weights = rng.gamma(0.3, size=(nodes, nodes))
    np.fill_diagonal(weights, 0)
    return CausalGraph.from_weights(weights, [f"feature_{i}" for i in range(nodes)], target="feature_0")


@pytest.fixture
def disagreeing() -> CausalGraph:
    """Sure of a -> b, at odds on the direction of b -> c, and an unlikely edge of a and c."""
    weights, joined, direction = np.zeros((3, 3)), np.zeros((3, 3)), np.full((3, 3), np.nan)
    for j, k, weight, confidence, forward in ((0, 1, 0.9, 1.0, 1.0), (1, 2, 0.5, 1.0, 0.5), (0, 2, 0.2, 0.25, 1.0)):
        weights[j, k] = weight
        joined[[j, k], [k, j]] = confidence
        direction[[j, k], [k, j]] = forward, 1 - forward
    return CausalGraph(("a", "b", "c"), ("c",), weights, joined, direction)


def arrows(ax: Axes) -> list[FancyArrowPatch]:
    return [patch for patch in ax.patches if isinstance(patch, FancyArrowPatch)]


def test_lines_show_weight_confidence_and_direction(disagreeing: CausalGraph) -> None:
    lines = {(line.cause, line.effect): line for line in picture(disagreeing, disagreeing.edges(), list("abc")).lines}
    sure, at_odds, seldom = lines["a", "b"], lines["b", "c"], lines["a", "c"]
    assert sure.width > at_odds.width > seldom.width
    assert sure.opacity == at_odds.opacity > seldom.opacity
    assert sure.directed and seldom.directed and not at_odds.directed
    assert at_odds.label == "b -> c, weight 0.5, confidence 1, direction 0.5"


def test_without_probabilities_weight_decides_on_opacity_and_all_have_a_direction() -> None:
    graph = from_edges({("a", "b"): 0.9, ("b", "c"): 0.5, ("a", "c"): 0.1}, target="c")
    lines = picture(graph, graph.edges(), graph.nodes).lines
    assert [line.weight for line in lines] == [0.1, 0.5, 0.9]
    assert lines[0].opacity < lines[1].opacity < lines[2].opacity
    assert all(line.directed for line in lines)


def test_lines_without_agreed_direction_are_dashed_without_head_and_explained(disagreeing: CausalGraph) -> None:
    ax = draw(disagreeing, None, 9)
    heads = {type(arrow.get_arrowstyle()).__name__: arrow.get_linestyle() for arrow in arrows(ax)}
    assert heads["CurveFilledB"] in ("-", "solid")
    assert heads["Curve"] not in ("-", "solid")
    assert ax.get_xlabel() == "A prediction aid, not proof of cause. Dashed: the direction is unknown."
    sure = from_edges({("a", "b"): 0.9}, target="b")
    assert draw(sure, None, 9).get_xlabel() == "A prediction aid, not proof of cause."


def test_targets_are_highlighted(disagreeing: CausalGraph) -> None:
    ax = draw(disagreeing, None, 9)
    weights = {text.get_text(): text.get_fontweight() for text in ax.texts}
    assert weights == {"a": "normal", "b": "normal", "c": "bold"}
    boxes = [patch for patch in ax.patches if isinstance(patch, FancyBboxPatch)]
    assert len({box.get_facecolor() for box in boxes}) == 2


def test_names_fit_their_boxes() -> None:
    names = ["x", "average_rooms", "population density per square mile", "MAXIMUM WWWW", "Körper größe (cm)", "target"]
    weights = np.triu(np.ones((6, 6)), k=1)
    ax = draw(CausalGraph.from_weights(weights, names, target="MAXIMUM WWWW"), None, 15)
    ax.figure.canvas.draw()
    boxes = [patch.get_window_extent() for patch in ax.patches if isinstance(patch, FancyBboxPatch)]
    for text, box in zip(ax.texts, boxes, strict=True):
        extent = text.get_window_extent()
        assert box.x0 < extent.x0 and extent.x1 < box.x1 and box.y0 < extent.y0 and extent.y1 < box.y1


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("age", "age"),
        ("a" * 22, "a" * 22),
        ("a" * 12 + "b" * 12, "a" * 10 + "…" + "b" * 11),
        ("two\nlines\tand a tab", "two lines and a tab"),
    ],
)
def test_long_names_lose_their_middle(name: str, short: str) -> None:
    assert shortened(name) == short


def test_wide_letters_need_more_room() -> None:
    assert _text_width("数据") > _text_width("ab") > _text_width("il") > _text_width("\u0301") == 0


def test_nodes_without_a_shown_edge_are_pale_or_left_out() -> None:
    few = draw(from_edges({("a", "b"): 0.9, ("c", "d"): 0.1}, target="b"), None, 1)
    assert {text.get_text() for text in few.texts} == set("abcd")
    assert few.get_xlabel().endswith("Pale: no edge among the strongest.")
    many = draw(dense(45), None, 1)
    assert len(many.texts) in (2, 3)
    assert "feature_0" in {text.get_text() for text in many.texts}
    assert re.search(r"Left out: 4[23] nodes without an edge among the strongest\.$", many.get_xlabel())


def test_the_figure_grows_with_the_graph_and_given_axes_are_used() -> None:
    import matplotlib.pyplot as plt

    small, large = (draw(dense(n), None, 2 * n).figure.get_size_inches() for n in (5, 30))
    assert (large > small).all()
    _, ax = plt.subplots(figsize=(3, 3))
    assert draw(dense(5), ax, 5) is ax
    assert max(text.get_fontsize() for text in ax.texts) < 10  # letters shrink with their boxes


def test_a_graph_of_one_node_can_be_drawn() -> None:
    graph = CausalGraph.from_weights(np.zeros((1, 1)), ["only"], target="only")
    for ax in (draw(graph, None, 2), draw_heat_map(graph), draw_neighbourhood(graph)):
        ax.figure.canvas.draw()


def test_heat_map_has_causes_before_their_effects() -> None:
    graph = dense(12)
    ax = draw_heat_map(graph)
    drawn = ax.images[0].get_array().filled(0)
    assert np.count_nonzero(np.tril(drawn)) == 0
    rows, columns = ([label.get_text() for label in axis.get_ticklabels()] for axis in (ax.yaxis, ax.xaxis))
    assert rows == columns and sorted(rows) == sorted(graph.nodes)
    np.testing.assert_array_equal(drawn, graph.weights.loc[rows, columns])
    assert [label.get_text() for label in ax.yaxis.get_ticklabels() if label.get_fontweight() == "bold"] == [
        "feature_0"
    ]
    assert (ax.get_ylabel(), ax.get_xlabel()) == ("cause", "effect")


def test_heat_map_in_small_axes_names_some_nodes_and_the_target() -> None:
    import matplotlib.pyplot as plt

    _, ax = plt.subplots(figsize=(4, 4))
    assert draw_heat_map(dense(100), ax) is ax
    ax.figure.canvas.draw()
    labels = [label for label in ax.yaxis.get_ticklabels() if label.get_text()]
    assert 10 < len(labels) < 60
    assert "feature_0" in {label.get_text() for label in labels}
    extents = sorted((label.get_window_extent() for label in labels), key=lambda extent: extent.y0)
    assert all(below.y1 <= above.y0 + 1 for below, above in pairwise(extents))


def test_heat_map_writes_names_as_they_are() -> None:
    names = [r"$\\frac{1}$", "b"]
    ax = draw_heat_map(CausalGraph.from_weights(np.array([[0, 1.0], [0, 0]]), names, target="b"))
    ax.figure.canvas.draw()
    assert [label.get_text() for label in ax.xaxis.get_ticklabels()] == names


@pytest.fixture
def surroundings() -> CausalGraph:
    """Parent p, child c with another parent o; g one step before p, s one after o, and h before g."""
    edges = {("p", "y"): 0.9, ("y", "c"): 0.8, ("o", "c"): 0.7, ("g", "p"): 0.6, ("o", "s"): 0.95, ("h", "g"): 0.99}
    return from_edges(edges, target="y")


@pytest.mark.parametrize(("steps", "names"), [(0, "ypco"), (1, "ypcosg"), (2, "ypcosgh"), (9, "ypcosgh")])
def test_neighbourhood_is_the_markov_blanket_then_further_steps(
    surroundings: CausalGraph, steps: int, names: str
) -> None:
    assert neighbourhood(surroundings, "y", steps) == list(names)


def test_neighbourhood_is_capped_and_starts_at_any_node(surroundings: CausalGraph) -> None:
    assert neighbourhood(surroundings, "y", max_nodes=3) == ["y", "p", "c"]
    assert neighbourhood(surroundings, "h", steps=0) == ["h", "g"]


def test_neighbourhood_rejects_what_it_cannot_do(surroundings: CausalGraph) -> None:
    with pytest.raises(KeyError, match="unknown node 'z'"):
        neighbourhood(surroundings, "z")
    with pytest.raises(ValueError, match="got -1 and 0"):
        neighbourhood(surroundings, "y", -1, 0)


@pytest.mark.parametrize("cap", [5, 30])
def test_all_of_a_neighbourhood_is_joined_even_if_every_edge_has_some_weight(cap: int) -> None:
    graph = dense(60)
    nodes = neighbourhood(graph, "feature_7", max_nodes=cap)
    assert len(nodes) == cap
    shown = picture(graph, edges_around(graph, ["feature_7"], nodes), nodes)
    assert shown.loose == frozenset()


def test_neighbourhood_of_the_target_is_drawn(surroundings: CausalGraph) -> None:
    ax = draw_neighbourhood(surroundings)
    assert {text.get_text() for text in ax.texts} == set("ypcosg")
    assert len(arrows(ax)) == 5
    assert {text.get_text() for text in draw_neighbourhood(surroundings, "h", max_nodes=2).texts} == set("hg")


# --- SVG ----------------------------------------------------------------------------------------------


SVG = "{http://www.w3.org/2000/svg}"


def chain(names: list[str], target: str) -> CausalGraph:
    return CausalGraph.from_weights(np.diag(np.linspace(0.9, 0.5, len(names) - 1), k=1), names, target=target)


def titles(svg: str) -> list[str]:
    return ["".join(title.itertext()) for title in ET.fromstring(svg).iter(f"{SVG}title")]


def labels(svg: str) -> set[str]:
    return {text.text or "" for text in ET.fromstring(svg).iter(f"{SVG}text") if text.get("class") != "caption"}


def probable(confidence: float, direction: float) -> CausalGraph:
    weights, likely = np.array([[0, 0.53], [0, 0]]), np.array([[0, confidence], [confidence, 0]])
    forward = np.array([[np.nan, direction], [1 - direction, np.nan]])
    return CausalGraph(("age", "income"), ("income",), weights, likely, forward)


def test_edges_and_nodes_tell_what_they_are() -> None:
    told = titles(to_svg(probable(0.9, 0.8)))
    assert told == ["age -> income, weight 0.53, confidence 0.9, direction 0.8", "age", "income, target"]
    assert titles(to_svg(chain(["age", "income"], target="income")))[0] == "age -> income, weight 0.9"
    networks = InputGraph.from_networks(np.stack([np.diag([0.5], 1)] * 2), ["a", "b"], "b")
    assert titles(to_svg(networks))[0] == "a -> b, weight 0.5, agreement 1"


@pytest.mark.parametrize("name", ["<script>alert(1)</script>", 'a & "b"', "]]><g onload='x'>", "&lt;", "größe (m²)"])
def test_names_are_text_and_nothing_else(name: str) -> None:
    graph = chain([name, "other"], target=name)
    svg = to_svg(graph)
    elements = {element.tag.removeprefix(SVG) for element in ET.fromstring(svg).iter()}
    assert elements <= {"svg", "desc", "style", "g", "title", "path", "polygon", "rect", "text"}
    assert f"{name}, target" in titles(svg)
    assert "<script" not in svg + notebook_html(graph)
    attributes = {attribute for element in ET.fromstring(svg).iter() for attribute in element.attrib}
    assert not any(attribute.startswith("on") for attribute in attributes)


def test_characters_that_xml_cannot_hold_are_replaced() -> None:
    svg = to_svg(chain(["null \x00 and \ud800", "b\x0b"], target="b\x0b"))
    assert "null \ufffd and \ufffd" in titles(svg)
    svg.encode()


def test_the_picture_scales_and_describes_itself() -> None:
    root = ET.fromstring(to_svg(chain(["a", "b", "c"], target="c")))
    left, top, width, height = map(float, (root.get("viewBox") or "").split())
    assert float(root.get("width") or 0) / float(root.get("height") or 1) == pytest.approx(width / height, rel=0.01)
    for box in root.iter(f"{SVG}rect"):
        x, y, w, h = (float(box.get(key) or "nan") for key in ("x", "y", "width", "height"))
        assert left <= x and x + w <= left + width and top <= y and y + h <= top + height
    assert root.get("role") == "img"
    assert root.get("aria-label") == "Graph of 3 nodes and 2 edges, target c"
    description = root.find(f"{SVG}desc")
    assert description is not None and "a -> b, weight 0.9" in (description.text or "")
    assert not [element for element in root.iter() if element.get("id")]  # ids of two pictures in a page would clash


def test_lines_of_unknown_direction_are_dashed_without_head() -> None:
    for direction, is_known in ((0.9, True), (0.6, False)):
        root = ET.fromstring(to_svg(probable(0.9, direction)))
        edge = next(group for group in root.iter(f"{SVG}g") if "edge" in (group.get("class") or ""))
        assert [path.get("stroke-dasharray") is None for path in edge.iter(f"{SVG}path")] == [True, is_known]
        assert (edge.find(f"{SVG}polygon") is not None) == is_known
        assert ("Dashed: the direction is unknown." in "".join(root.itertext())) != is_known


def test_edges_and_nodes_can_be_limited() -> None:
    graph = chain(list("abcdef"), target="f")
    assert to_svg(graph, max_edges=2).count("<polygon") == 2
    some = to_svg(graph, nodes=["c", "a", "b"])
    assert labels(some) == set("abc")
    assert some.count("<polygon") == 2
    with pytest.raises(KeyError, match="unknown node 'z'"):
        to_svg(graph, nodes=["a", "z"])


def test_svg_needs_no_matplotlib(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("matplotlib", "matplotlib.pyplot"):
        monkeypatch.setitem(sys.modules, module, None)
    assert to_svg(chain(["a", "b"], target="b")).startswith("<svg")


def test_a_notebook_shows_small_graphs_whole() -> None:
    shown = notebook_html(chain(list("abcdef"), target="f"))
    assert "Shown:" not in shown
    assert shown.count("A prediction aid, not proof of cause.") == 2  # for the eye, and in the description
    assert "neighbourhood" not in shown
    ET.fromstring(shown)


def test_a_notebook_shows_the_neighbourhood_in_large_graphs() -> None:
    names = [f"n{i}" for i in range(50)]
    names[25] = "<b>"
    shown = notebook_html(chain(names, target="<b>"))
    assert "this is the neighbourhood of &lt;b&gt;." in shown
    assert "Shown: 5 of 50 nodes, 4 of 49 edges." in shown
    assert labels(shown) == {"n23", "n24", "<b>", "n26", "n27"}


# --- evidence ---------------------------------------------------------------------------------------


def evident() -> CausalGraph:
    """A hidden cause next to an edge, another of a pair without an edge, and a belief."""
    weights = np.zeros((4, 4))
    weights[[0, 0, 1], [1, 2, 2]] = [0.9, 0.5, 0.4]
    hidden, prior = np.full((2, 4, 4), np.nan)
    hidden[[0, 1, 2, 3], [1, 0, 3, 2]] = [0.8, 0.8, 0.6, 0.6]
    prior[1, 0] = 0.3
    joined = np.where(weights + weights.T > 0, 0.9, 0.1)
    direction = np.where(weights > 0, 0.95, np.where(weights.T > 0, 0.05, np.nan))
    arrays = {"hidden_array": hidden, "prior_array": prior}
    return CausalGraph(("age", "income", "rent", "<b>"), ("rent",), weights, joined, direction, **arrays)


def test_hidden_causes_and_beliefs_are_drawn_and_explained() -> None:
    graph = evident()
    shown = picture(graph, graph.edges(), graph.nodes)
    assert [mark.label for mark in shown.hidden] == [
        "age <-> income: an unobserved common cause, probability 0.8",
        "rent <-> <b>: an unobserved common cause, probability 0.6",
    ]
    assert not shown.loose  # a node with only a hidden cause is not pale
    assert [line.believed for line in shown.lines] == [False, False, True]
    data = graph.edges()["data"][0]
    assert shown.lines[-1].label == (
        "age -> income, weight 0.9, confidence 0.9, direction 0.95, hidden 0.8, your belief in income -> age 0.3, "
        f"probability of the arrow {data:.2g} from the data and 0.85 with it"
    )
    assert shown.caption.endswith("Dotted: a suspected hidden common cause. Ring: with your belief.")
    ax = draw(graph, None, 9)
    assert len([patch for patch in ax.patches if type(patch).__name__ == "PathPatch"]) == 2
    assert len([patch for patch in ax.patches if type(patch).__name__ == "Polygon"]) == 4
    assert len(ax.lines) == 1
    alone = picture(graph, graph.edges().head(0), ["age", "rent"])
    assert not alone.hidden and "Dotted" not in alone.caption


def test_svg_has_hidden_causes_and_beliefs_as_text() -> None:
    root = ET.fromstring(to_svg(evident()))
    marks = [group for group in root.iter(f"{SVG}g") if group.get("class") == "hidden"]
    assert ["".join(mark.itertext()) for mark in marks][
        1
    ] == "rent <-> <b>: an unobserved common cause, probability 0.6"
    assert all(len(mark.findall(f"{SVG}polygon")) == 2 for mark in marks)
    assert all(mark.findall(f"{SVG}path")[1].get("stroke-dasharray") for mark in marks)
    assert len([circle for circle in root.iter(f"{SVG}circle") if circle.get("class") == "prior"]) == 1


def test_hidden_causes_stay_in_the_picture_and_avoid_nodes() -> None:
    rng = np.random.default_rng(0)
    for seed in range(20):
        graph = dense(6, seed)
        hidden = np.triu(rng.random((6, 6)), 1)
        graph = replace(graph, hidden_array=hidden + hidden.T)
        shown = picture(graph, graph.edges().head(8), graph.nodes)
        for mark in shown.hidden:
            points = _along(mark.curve, 30)
            assert (points > -1).all() and (points < (shown.places.width + 1, shown.places.height + 1)).all()
            for box in (shown.places.boxes[name] for name in (mark.first, mark.second)):
                away = np.abs(points[[0, -1]] - (box.x, box.y)) <= (box.width / 2 + 1e-6, box.height / 2 + 1e-6)
                assert away.all(axis=1).any()  # one end is on the rim of the box


def test_only_the_most_probable_hidden_causes_are_drawn() -> None:
    graph = replace(dense(6), hidden_array=np.linspace(0.5, 1, 36).reshape(6, 6))
    shown = picture(graph, graph.edges(), graph.nodes)
    assert len(shown.hidden) == 6 and "a suspected hidden common cause, the 6 most probable of 15." in shown.caption
