"""What the page shows of graphs, small and large."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from castlereg import CausalGraph
from castlereg.causal.drawing import neighbourhood
from castlereg.report.content import _graph_content
from castlereg.report.page import render

from .handmade import handmade, random_graph


def test_a_small_graph_is_shown_whole() -> None:
    graph = random_graph(tuple("abcdefgh"), 14)
    content = _graph_content(graph)
    assert content.first_view == "all"
    assert content.shown == len(content.edges) == content.n_edges == len(graph.edges())
    assert {name for name, _ in content.views[0].nodes} == set("abcdefgh")
    assert sorted(content.views[0].ranks) == list(range(content.n_edges))


def test_edges_are_those_of_the_graph_and_uncertain_directions_have_no_head() -> None:
    graph = random_graph(tuple("abcdefgh"), 14)
    frame = graph.edges()
    content = _graph_content(graph)
    uncertain = set(map(tuple, graph.uncertain_edges()[["cause", "effect"]].to_numpy()))
    assert 0 < len(uncertain) < len(frame)
    for edge, row in zip(content.edges, frame.itertuples(), strict=True):
        assert (edge.cause, edge.effect, edge.weight, edge.confidence) == (
            row.cause,
            row.effect,
            row.weight,
            row.confidence,
        )
        assert edge.directed == ((edge.cause, edge.effect) not in uncertain)
    view = content.views[0]
    assert [line.directed for line in view.picture.lines] == [content.edges[rank].directed for rank in view.ranks]


def test_a_large_graph_begins_with_the_targets_neighbourhood() -> None:
    names = tuple(f"column {k}" for k in range(60))
    graph = random_graph(names, 140)
    content = _graph_content(graph)
    whole, near = content.views
    assert content.first_view == near.key == "neighbourhood"
    assert {name for name, _ in near.nodes} == set(neighbourhood(graph, names[-1], steps=0))
    assert near.caption.startswith(f"{len(near.nodes)} of 60 nodes: the target, its strongest causes")
    drawn = {name for name, _ in near.nodes}
    between = [k for k, e in enumerate(content.edges) if {e.cause, e.effect} <= drawn]
    assert sorted(near.ranks) == between
    assert sorted(whole.ranks) == list(range(len(graph.edges())))


def test_table_and_picture_hold_the_same_edges_of_a_dense_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("castlereg.report.content._MANY_EDGES", 30)
    weights = np.triu(np.random.default_rng(0).uniform(0.5, 1.0, size=(12, 12)), 1)
    weights[:, -1] *= 0.01  # the target's are the weakest of all
    graph = CausalGraph.from_weights(weights, [f"c{k}" for k in range(12)], target="c11")
    content = _graph_content(graph)
    assert content.n_edges == 66
    assert sorted(content.views[0].ranks) == list(range(len(content.edges)))
    strongest = [(row.cause, row.effect) for row in graph.edges().head(30).itertuples()]
    assert [(edge.cause, edge.effect) for edge in content.edges[:30]] == strongest
    assert {edge.effect for edge in content.edges[30:]} == {"c11"} and len(content.edges) == 35
    assert content.shown == 35  # twice as many as nodes would leave the target without an edge


def test_columns_without_an_edge_are_counted_where_they_are_not_drawn() -> None:
    weights = np.zeros((50, 50))
    weights[0, 49] = 1.0
    whole, near = _graph_content(CausalGraph.from_weights(weights, [f"c{k}" for k in range(50)], target="c49")).views
    assert whole.caption == "Not drawn: 48 columns without an edge on this page."
    assert near.caption.startswith("2 of 50 nodes")


def test_the_neighbourhood_of_several_targets_holds_them_all() -> None:
    weights = np.zeros((6, 6))
    weights[[0, 1, 2], [4, 4, 5]] = [0.9, 0.8, 0.7]
    graph = CausalGraph.from_weights(weights, list("abcdyz"), target=["y", "z"])
    near = _graph_content(graph).views[1]
    assert {name for name, _ in near.nodes} == set("abcyz")
    assert len(near.ranks) == 3


def test_a_graph_without_edges_is_shown() -> None:
    content = _graph_content(CausalGraph.from_weights(np.zeros((3, 3)), list("abc"), target="c"))
    assert content.shown == content.n_edges == 0
    assert len(content.views[0].nodes) == 3
    assert len(content.views[1].nodes) == 1


def test_probabilities_that_are_not_known_are_none() -> None:
    weights = np.zeros((3, 3))
    weights[0, 2], weights[1, 2] = 1.0, 0.01
    graph = CausalGraph.from_weights(weights, list("abc"), target="c")
    edges = _graph_content(graph).edges
    assert {(edge.confidence, edge.direction, edge.directed) for edge in edges} == {(None, None, True)}
    edited = _graph_content(graph.with_edge("a", "b")).edges
    assert [(e.confidence, e.direction) for e in edited] == [(None, None), (1.0, 1.0), (None, None)]


def test_evidence_hidden_causes_and_questions_are_shown() -> None:
    graph = random_graph(tuple("abcdefgh"), 14)
    content = _graph_content(graph)
    frame = graph.edges()
    assert [edge.shapes for edge in content.edges] == frame["shapes"].tolist()
    assert {edge.independences for edge in content.edges} == {None}
    assert content.hidden == (("a", "b", 0.9),)
    assert [edge.is_hidden for edge in content.edges] == (frame["hidden"] >= 0.5).tolist()
    assert [question for question, *_ in content.questions] == graph.questions()["question"].tolist() != []
    text = render(replace(handmade(tuple("abcdefgh")), graph=content))
    assert "Questions worth asking" in text and "Suspected hidden common causes" in text
    settled = CausalGraph.from_weights(np.triu(np.ones((3, 3)), 1), list("abc"), target="c")
    plain = render(replace(handmade(tuple("abcdefgh")), graph=_graph_content(settled)))
    assert "Questions worth asking" not in plain and "Probable hidden" not in plain and 'class="prior"' not in plain
    assert (
        text.count('class="hidden"') == sum(len(view.picture.hidden) for view in content.views)
        and 'class="prior"' in text
    )
