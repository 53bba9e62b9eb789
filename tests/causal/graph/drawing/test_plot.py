"""Pictures of a graph with matplotlib, and the choice of what they show."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

from castlereg import CausalGraph
from castlereg.causal.graph.drawing.picture import edges_around, neighbourhood, picture, shortened, text_width
from castlereg.causal.graph.drawing.plot import draw, draw_heat_map, draw_neighbourhood


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
    """Four networks: sure of a -> b, at odds on the direction of b - c, and only one joins a and c."""
    networks = np.zeros((4, 3, 3))
    networks[:2, [0, 1], [1, 2]] = 1.0
    networks[2:, [0, 2], [1, 1]] = 0.8
    networks[3, 0, 2] = 0.8
    return CausalGraph.from_members(networks, ["a", "b", "c"], target="c")


def arrows(ax: Axes) -> list[FancyArrowPatch]:
    return [patch for patch in ax.patches if isinstance(patch, FancyArrowPatch)]


def test_lines_show_weight_confidence_and_direction(disagreeing: CausalGraph) -> None:
    lines = {(line.cause, line.effect): line for line in picture(disagreeing, disagreeing.edges(), list("abc")).lines}
    sure, at_odds, seldom = lines["a", "b"], lines["b", "c"], lines["a", "c"]
    assert sure.width > at_odds.width > seldom.width
    assert sure.opacity == at_odds.opacity > seldom.opacity
    assert sure.directed and seldom.directed and not at_odds.directed
    assert at_odds.direction == 0.5


def test_with_one_network_weight_decides_on_opacity_and_all_have_a_direction() -> None:
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
    assert draw(sure, None, 9).get_xlabel() == "A prediction aid, not proof of cause. Confidence is not known."


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
    assert text_width("数据") > text_width("ab") > text_width("il") > text_width("\u0301") == 0


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
