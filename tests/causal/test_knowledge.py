"""What users know of the graph: checked, and turned into rules."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from castlereg.causal import CausalGraph, EdgeConstraints
from castlereg.causal.knowledge import _rules_of_graph, graph_rules, with_priors

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
        ({"beliefs": [("age", "bni", 0.5)]}, "unknown node 'bni' in the beliefs; did you mean 'bmi'"),
        (
            {"beliefs": [("age", "bmi", 1.0)]},
            "'age' -> 'bmi' has probability 1.0; .* use required for 1, and forbidden",
        ),
        ({"beliefs": [("age", "bmi", 0)]}, "above 0 and below 1"),
        ({"beliefs": [("age", "bmi", float("nan"))]}, "above 0 and below 1"),
        ({"beliefs": [("age", "bmi", "0.5")]}, "probability '0.5'; it must be a number"),
        ({"beliefs": [("age", "bmi")]}, "which is not .cause, effect, probability."),
        ({"beliefs": "age"}, "beliefs='age' must be a sequence of triples"),
        ({"beliefs": pd.DataFrame({"cause": ["age"], "effect": ["bmi"]})}, "the beliefs have no column 'probability'"),
        ({"beliefs": [("age", "age", 0.5)]}, "the belief 'age' -> 'age' joins a node to itself"),
        ({"beliefs": [("age", "bmi", 0.5), ("age", "bmi", 0.6)]}, "'age' -> 'bmi' is duplicated"),
        ({"beliefs": [("age", "bmi", 0.5), ("bmi", "age", 0.6)]}, "0.6 and 0.5; their sum must not exceed 1"),
        ({"beliefs": [("age", "bmi", 0.5)], "sinks": ["age"]}, "has probability 0.5, but 'age' is a sink; remove"),
        ({"beliefs": [("age", "bmi", 0.5)], "required": [("age", "bmi")]}, "but it is required; remove"),
        ({"beliefs": [("bmi", "age", 0.5)], "required": [("age", "bmi")]}, "closes a cycle with required edges"),
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


def test_beliefs_are_a_frame_or_tuples_and_become_an_array() -> None:
    frame = pd.DataFrame(
        {"source": ["a paper", None], "effect": ["bmi", "sex"], "cause": "age", "probability": [0.8, 0.3]}
    )
    known = EdgeConstraints(beliefs=frame)
    assert known == EdgeConstraints(beliefs=[("age", "bmi", 0.8, "a paper"), ("age", "sex", 0.3)])
    prior = known.rules(NAMES).prior
    assert prior is not None
    assert prior[0, [2, 1]].tolist() == [0.8, 0.3] and np.isnan(prior).sum() == 14
    assert EdgeConstraints().rules(NAMES).prior is None
    rules = graph_rules(known, None, NAMES, 1)
    assert rules is not None and rules.prior is not None
    with pytest.raises(ValueError, match="'bmi' -> 'target' is a belief, but a target is never an input for another"):
        graph_rules(EdgeConstraints(beliefs=[("bmi", "target", 0.4)]), None, NAMES, 2)


@given(st.integers(0, 10_000))
def test_beliefs_multiply_odds_and_their_complement_undoes_it(seed: int) -> None:
    rng = np.random.default_rng(seed)
    joined, direction = np.triu(rng.uniform(0.01, 0.99, (2, 4, 4)), 1)
    joined, direction = joined + joined.T, direction + np.tril(1 - direction.T, -1)
    prior = np.where(rng.random((4, 4)) < 0.4, rng.uniform(0.01, 0.99, (4, 4)), np.nan)
    likely, forward = with_priors(joined, direction, prior)
    for j, k in zip(*np.triu_indices(4, 1), strict=True):
        odds = [1.0 if np.isnan(p) else p / (1 - p) for p in (prior[j, k], prior[k, j])]
        states = np.array([joined[j, k] * direction[j, k] * odds[0], joined[j, k] * direction[k, j] * odds[1]])
        total = states.sum() + 1 - joined[j, k]
        assert likely[j, k] == likely[k, j] == pytest.approx(states.sum() / total)
        assert [forward[j, k], forward[k, j]] == pytest.approx(states / states.sum())
    again = with_priors(likely, forward, 1 - prior)
    off = ~np.eye(4, dtype=bool)
    np.testing.assert_allclose(again[0][off], joined[off], rtol=1e-9)
    np.testing.assert_allclose(again[1][off], direction[off], rtol=1e-9)


def test_beliefs_of_one_half_and_certain_states_change_nothing() -> None:
    joined, direction = np.array([[0.0, 1.0], [1.0, 0.0]]), np.array([[np.nan, 1.0], [0.0, np.nan]])
    for prior in (np.full((2, 2), np.nan), np.array([[np.nan, 0.3], [0.9, np.nan]])):
        likely, forward = with_priors(joined, direction, prior)
        np.testing.assert_array_equal(likely, joined)
        np.testing.assert_array_equal(forward, direction)
    absent = with_priors(np.zeros((2, 2)), np.full((2, 2), np.nan), np.full((2, 2), 0.7))
    assert (absent[0] == 0).all() and np.isnan(absent[1]).all()
    half = with_priors(joined * 0.4, direction * 0.8 + 0.1, np.full((2, 2), 0.5))
    np.testing.assert_allclose(half[0], joined * 0.4)
    np.testing.assert_allclose(half[1], direction * 0.8 + 0.1)
