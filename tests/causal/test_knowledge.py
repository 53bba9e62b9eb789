"""What users know of the graph: checked, and turned into rules."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from castlereg.causal import CausalGraph, EdgeConstraints
from castlereg.causal.knowledge import _rules_of_graph

NAMES = ["age", "sex", "bmi", "target"]


def test_rules_are_by_name() -> None:
    rules = EdgeConstraints(
        required=[("bmi", "target")],
        forbidden=[("age", "bmi")],
        tiers=[["age"], ["bmi", "target"]],
        sinks=["target"],
        sources=["sex"],
    ).rules(NAMES)
    allowed = {(NAMES[j], NAMES[k]) for j, k in np.argwhere(rules.allowed)}
    assert allowed == {("age", "target"), ("sex", "age"), ("sex", "bmi"), ("sex", "target"), ("bmi", "target")}
    assert np.argwhere(rules.required).tolist() == [[2, 3]]


def test_what_a_required_path_rules_out_is_forbidden() -> None:
    rules = EdgeConstraints(required=[("age", "bmi"), ("bmi", "target")]).rules(NAMES)
    assert not rules.allowed[3, 0]
    assert rules.allowed[0, 3]


@pytest.mark.parametrize(
    ("constraints", "message"),
    [
        ({"required": [("age", "bmi"), ("bmi", "sex"), ("sex", "age")]}, "cycle: age -> bmi -> sex -> age"),
        ({"required": [("age", "bni")]}, "unknown node 'bni' in the required edges; did you mean 'bmi'"),
        ({"sinks": ["xyz"]}, "the nodes are 'age', 'sex', 'bmi', 'target'"),
        ({"tiers": [["age"], ["agee"]]}, "unknown node 'agee' in the tiers"),
        ({"required": [("age", "age")]}, "'age' -> 'age' joins a node to itself"),
        ({"required": [("age", "bmi")], "forbidden": [("age", "bmi")]}, "required, but it is forbidden"),
        ({"required": [("age", "bmi")], "sinks": ["age"]}, "required, but 'age' is a sink"),
        ({"required": [("age", "bmi")], "sources": ["bmi"]}, "required, but 'bmi' is a source"),
        ({"required": [("age", "bmi")], "tiers": [["bmi"], ["age"]]}, "its effect is in an earlier tier"),
        ({"tiers": [["bmi"], ["age", "bmi"]]}, "'bmi' is in two tiers, 0 and 1"),
        ({"required": "age"}, "must be a sequence of pairs"),
        ({"forbidden": [("age", "bmi", "sex")]}, "which is not a pair"),
        ({"sources": "age"}, "must be a sequence of names"),
    ],
)
def test_contradictions_and_typing_errors_are_named(constraints: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        EdgeConstraints(**constraints).rules(NAMES)


@settings(deadline=None, max_examples=200)
@given(st.data())
def test_required_edges_fit_together_and_into_what_is_allowed(data: st.DataObject) -> None:
    n = data.draw(st.integers(2, 7))
    names = [f"x{i}" for i in range(n)]
    pairs = st.lists(st.tuples(st.sampled_from(names), st.sampled_from(names)), max_size=8)
    some = st.lists(st.sampled_from(names), max_size=2)
    known = EdgeConstraints(data.draw(pairs), data.draw(pairs), None, data.draw(some), data.draw(some))
    try:
        rules = known.rules(names)
    except ValueError as error:
        assert "required" in str(error)
        return
    assert not (rules.required & ~rules.allowed).any()
    required = nx.from_numpy_array(rules.required, create_using=nx.DiGraph)
    assert nx.is_directed_acyclic_graph(required)
    # Any one more edge that is allowed can join the required ones.
    for cause, effect in np.argwhere(rules.allowed & ~rules.required):
        assert not nx.has_path(required, effect, cause)


def test_a_graph_allows_and_requires_its_edges() -> None:
    graph = CausalGraph.from_weights(np.triu(np.ones((4, 4)), k=1), NAMES, target="target").without_edge("age", "sex")
    anything = EdgeConstraints().rules(NAMES[::-1])
    rules = _rules_of_graph(graph, NAMES[::-1], anything)
    np.testing.assert_array_equal(rules.allowed, (graph.weight_array != 0)[::-1, ::-1])
    np.testing.assert_array_equal(rules.required, rules.allowed)
    with pytest.raises(ValueError, match="constraints forbid the edge 'bmi' -> 'target', but the graph has it"):
        _rules_of_graph(graph, NAMES, EdgeConstraints(forbidden=[("bmi", "target")]).rules(NAMES))
    with pytest.raises(ValueError, match="constraints require the edge 'age' -> 'sex'"):
        _rules_of_graph(graph, NAMES, EdgeConstraints(required=[("age", "sex")]).rules(NAMES))
    with pytest.raises(ValueError, match="unknown node 'bmi' in the graph"):
        _rules_of_graph(graph, ["age", "sex", "target"], anything)
    with pytest.raises(
        ValueError,
        match="the graph has no node 'weight', which is a column or target of the table; its nodes are 'age'",
    ):
        _rules_of_graph(graph, [*NAMES, "weight"], anything)
