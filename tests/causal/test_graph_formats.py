"""Graphs in the forms of other programs."""

from __future__ import annotations

import json
from collections.abc import Callable

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from castlereg.causal import CausalGraph, InputGraph

NAMES = ["node", 'größe "in" m', "a -> b; [x]", "back\\slash & <tag>", "7", "income"]


# Of pydot, which calls its parser by old names.
pytestmark = pytest.mark.filterwarnings("ignore:.*deprecated:DeprecationWarning")


@pytest.fixture(scope="module")
def graph() -> CausalGraph:
    rng = np.random.default_rng(0)
    weights = np.triu(rng.random((6, 6)) * (rng.random((6, 6)) < 0.7), 1)
    edges, forward = weights > 0, np.triu(rng.random((6, 6)), 1)
    direction = np.where(edges, forward, np.where(edges.T, 1 - forward.T, np.nan))
    joined, hidden = np.triu(rng.random((2, 6, 6)), 1)
    prior = np.where(edges & (rng.random((6, 6)) < 0.5), rng.random((6, 6)), np.nan)
    evidence = {"hidden_array": hidden + hidden.T, "shapes_array": direction, "prior_array": prior}
    return CausalGraph(tuple(NAMES), ("income",), weights * 1e-6, joined + joined.T, direction, **evidence)


def _same(one: CausalGraph, other: CausalGraph, digits: float = 0) -> None:
    assert one.names == other.names
    assert one.targets == other.targets
    edges = one.weight_array > 0
    for name in ("weight", "confidence", "direction", "independences", "shapes", "hidden", "prior"):
        here, there = (getattr(graph, f"{name}_array") for graph in (one, other))
        np.testing.assert_allclose(there[edges], here[edges], rtol=digits)
        if name in ("weight", "shapes"):
            np.testing.assert_allclose(there, here, rtol=0, atol=1e-15)


FORMATS: dict[str, Callable[[CausalGraph], CausalGraph]] = {
    "networkx": lambda g: CausalGraph.from_networkx(g.to_networkx()),
    "gml": lambda g: CausalGraph.from_gml(g.to_gml()),
    "dot": lambda g: CausalGraph.from_dot(g.to_dot()),
    "dagitty": lambda g: CausalGraph.from_dagitty(g.to_dagitty()),
    "json": lambda g: CausalGraph.from_json(g.to_json()),
    "edges": lambda g: CausalGraph.from_edges(g.edges(), target="income", nodes=NAMES),
}


@pytest.mark.parametrize("form", FORMATS)
def test_there_and_back_is_the_same(graph: CausalGraph, form: str) -> None:
    _same(graph, FORMATS[form](graph))


@pytest.mark.parametrize("form", FORMATS)
def test_what_one_network_does_not_know_stays_unknown(graph: CausalGraph, form: str) -> None:
    one = CausalGraph.from_weights(graph.weight_array, NAMES, target="income")
    again = FORMATS[form](one)
    _same(one, again)
    assert again.edges()[["confidence", "direction"]].isna().all(axis=None)


def test_what_is_not_known_is_left_out_or_null(graph: CausalGraph) -> None:
    one = CausalGraph.from_weights(graph.weight_array, NAMES, target="income")
    assert "confidence" not in one.to_gml() + one.to_dot() and "nan" not in (one.to_gml() + one.to_dot()).lower()
    assert {key for *_, edge in one.to_networkx().edges(data=True) for key in edge} == {"weight"}
    assert json.loads(one.to_json())["confidence"] == [[None] * 6] * 6


def test_json_keeps_everything(graph: CausalGraph) -> None:
    again = CausalGraph.from_json(graph.to_json())
    for name in (name for name in vars(graph) if name.endswith("_array")):
        np.testing.assert_array_equal(getattr(again, name), getattr(graph, name))
    assert again.summary() == graph.summary()


def test_json_of_version_2_has_no_evidence(graph: CausalGraph) -> None:
    content = json.loads(graph.to_json())
    for name in ("hidden", "independences", "shapes", "prior"):
        del content[name]
    with pytest.raises(ValueError, match="not a complete graph: 'hidden'"):
        CausalGraph.from_json(json.dumps(content))
    again = CausalGraph.from_json(json.dumps(content | {"version": 2}))
    np.testing.assert_array_equal(again.direction_array, graph.direction_array)
    assert np.isnan([again.hidden_array, again.independences_array, again.shapes_array, again.prior_array]).all()


def test_input_graphs_are_exported_with_their_agreement() -> None:
    graph = InputGraph.from_networks(np.triu(np.ones((3, 2, 2)), 1), ["a", "b"], "b")
    assert dict(graph.to_networkx().edges["a", "b"]) == {"weight": 1.0, "agreement": 1.0}
    assert "agreement=1.0" in graph.to_dot() and "agreement 1.0" in graph.to_gml()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "other"}, "not a castlereg graph"),
        ({"version": 99}, "version 99; this castlereg reads versions 2 and 3"),
        ({"weights": [[0, 1]]}, "weights must have 6 rows of 6 numbers"),
        ({"weights": None}, "not a complete graph"),
        ({"nodes": ["a"] * 6}, "different names"),
        ({"targets": ["z"]}, "target 'z'"),
        ({"weights": [[0.0] + [1.0] * 5] + [[1.0] + [0.0] * 5] * 5}, "the edges form a cycle"),
        ({"weights": [[-1.0] * 6] * 6}, "negative"),
    ],
)
def test_json_that_is_not_a_graph_raises(graph: CausalGraph, change: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        CausalGraph.from_json(json.dumps(json.loads(graph.to_json()) | change))
    with pytest.raises(ValueError, match="not JSON"):
        CausalGraph.from_json("{")


def test_other_programs_graphs_need_no_weights() -> None:
    graph = CausalGraph.from_networkx(nx.DiGraph([("a", "b"), ("b", "c")]), target="c")
    assert graph.parents("c") == ["b"]
    assert graph.weights.loc["a", "b"] == 1
    assert np.isnan(graph.confidence.loc["a", "b"])
    assert CausalGraph.from_dot("digraph { a -> b; b -> c [weight=2]; }", target="c").parents("c") == ["b"]
    frame = pd.DataFrame({"cause": ["a"], "effect": ["b"]})
    assert CausalGraph.from_edges(frame, target="c").nodes == ["a", "b", "c"]


def test_what_is_not_a_graph_raises() -> None:
    with pytest.raises(ValueError, match="undirected"):
        CausalGraph.from_networkx(nx.Graph([("a", "b")]), target="b")
    with pytest.raises(ValueError, match="cycle: a -> b -> a"):
        CausalGraph.from_networkx(nx.DiGraph([("a", "b"), ("b", "a")]), target="b")
    with pytest.raises(ValueError, match="pass target="):
        CausalGraph.from_networkx(nx.DiGraph([("a", "b")]))
    with pytest.raises(ValueError, match="'a' -> 'b' has weight -1"):
        CausalGraph.from_networkx(nx.DiGraph([("a", "b", {"weight": -1})]), target="b")
    with pytest.raises(ValueError, match="weight='heavy', which is not a number"):
        CausalGraph.from_networkx(nx.DiGraph([("a", "b", {"weight": "heavy"})]), target="b")
    with pytest.raises(ValueError, match="no column 'effect'"):
        CausalGraph.from_edges(pd.DataFrame({"cause": ["a"]}), target="a")
    with pytest.raises(ValueError, match="mentions 'z'"):
        CausalGraph.from_edges(pd.DataFrame({"cause": ["a"], "effect": ["z"]}), target="a", nodes=["a", "b"])
    with pytest.raises(ValueError, match="not a DOT digraph"):
        CausalGraph.from_dot("graph { a -- b; }", target="b")


def test_dowhy_reads_gml(graph: CausalGraph) -> None:
    dowhy = pytest.importorskip("dowhy", reason="DoWhy is not a dependency of the tests")
    plain = CausalGraph.from_weights(np.triu(np.ones((4, 4)), k=1), ["a", "b", "c", "y"], target="y")
    data = pd.DataFrame(np.random.default_rng(0).normal(size=(50, 4)), columns=plain.nodes)
    model = dowhy.CausalModel(data=data, treatment="b", outcome="y", graph=plain.to_gml())
    estimand = model.identify_effect(proceed_when_unidentifiable=True)
    assert estimand.get_backdoor_variables() == ["a"]


# --- dagitty and lavaan -----------------------------------------------------------------------------


def test_dagitty_has_hidden_causes_of_all_pairs() -> None:
    text = 'DAG "my graph" {\nbb="0,0,1,1"\nu [exposure,pos="0.1,-0.2"]; "y 1" [outcome]\nu -> m -> "y 1" [beta=0.3]\n'
    text += 'w -> m u <-> "y 1"\n"y 1" <- x;x <-> w [hidden=0.75]\n}\n'
    graph = CausalGraph.from_dagitty(text)
    assert graph.names == ("u", "y 1", "m", "w", "x") and graph.targets == ("y 1",)
    assert {tuple(edge) for edge in graph.edges()[["cause", "effect"]].to_numpy()} == {
        ("u", "m"),
        ("m", "y 1"),
        ("w", "m"),
        ("x", "y 1"),
    }
    assert graph.hidden_causes().values.tolist() == [["u", "y 1", 1.0], ["w", "x", 0.75]]
    again = CausalGraph.from_dagitty(graph.to_dagitty())
    pd.testing.assert_frame_equal(again.hidden_causes(), graph.hidden_causes())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a -> b", r"line 1: the text does not have the form dag"),
        ("dag {\n a -> b", "line 2: cannot read ''"),
        ("dag {\n a -> b\n b -- c\n}", "line 3: cannot read '-- c'"),
        ("dag {\n a -> {b c} }", "line 2: cannot read '-> {b c} }'"),
        ('dag {\n\n "a -> b }', "line 3: cannot read"),
        ("dag { a -> b } dag { }", "cannot read '} dag"),
        ("dag {\n a\n u [latent] }", "line 3: 'u' is latent"),
        ("dag {\n a -> a }", "line 2: an edge joins 'a' to itself"),
        ("dag { a -> b }", r"no target: mark an \[outcome\]"),
        ("dag { a <-> b [hidden=much]\n b [outcome] }", "line 1: hidden='much' is not a number"),
        ("dag { a -> b b -> a [hidden=1]\n b [outcome] }", "cycle"),
    ],
)
def test_text_that_is_not_dagitty_raises_with_its_line(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        CausalGraph.from_dagitty(text)


@pytest.mark.parametrize("name", ["ends with \\", "line\nbreak", "null \x00"])
def test_names_without_a_form_in_dagitty_raise(name: str) -> None:
    with pytest.raises(ValueError, match="dagitty has no form for the name"):
        CausalGraph.from_weights(np.zeros((1, 1)), [name], target=name).to_dagitty()


@given(
    st.lists(st.text(st.characters(exclude_categories=["Cc", "Cs"]), max_size=6), min_size=2, max_size=4, unique=True)
)
def test_any_name_survives_dagitty_dot_and_json(names: list[str]) -> None:
    graph = CausalGraph.from_weights(np.triu(np.ones((len(names),) * 2), 1), names, target=names[-1])
    _same(graph, CausalGraph.from_json(graph.to_json()))
    if not any(name.endswith("\\") for name in names):
        _same(graph, CausalGraph.from_dagitty(graph.to_dagitty()))


def test_lavaan_there_and_back() -> None:
    names = ["x.1", "größe", "m_2", "y", "alone"]
    weights, hidden = np.zeros((5, 5)), np.full((5, 5), np.nan)
    weights[[0, 1, 2], [2, 3, 3]] = [0.2, 0.5, 0.7]
    hidden[[0, 1, 0, 3], [1, 0, 3, 0]] = [0.9, 0.9, 0.4, 0.4]
    unknown = np.full((5, 5), np.nan)
    graph = CausalGraph(tuple(names), ("y",), weights, unknown, unknown, hidden_array=hidden)
    assert graph.to_lavaan() == "m_2 ~ x.1\ny ~ m_2 + größe\nx.1 ~~ größe\nalone ~~ alone\n"
    again = CausalGraph.from_lavaan(graph.to_lavaan(), "y").in_order_of(names)
    np.testing.assert_array_equal(again.edge_array, graph.edge_array)
    assert again.hidden_causes().values.tolist() == [["x.1", "größe", 1.0]]


def test_lavaan_of_people_is_read() -> None:
    text = "# a model\n\ny ~ b*x +\n  0.5*m ! mediated\nm ~ x; y + m ~ z\n  + w\nx ~~ z\nx ~~ x"
    graph = CausalGraph.from_lavaan(text, target="y")
    assert [set(graph.parents(name)) for name in "ymx"] == [{"x", "m", "z", "w"}, {"x", "z", "w"}, set()]
    assert graph.hidden_causes()[["first", "second"]].values.tolist() == [["x", "z"]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("y ~ x\n\nf =~ a + b", "line 3: cannot read 'f =~ a"),
        ("y ~ 1", "line 1: cannot read 'y ~ 1'"),
        ("y ~ x\nnonsense", "line 2: cannot read 'nonsense'"),
        ("y ~ x +", "line 1: cannot read"),
        ("y ~ x\nab := a*b", "line 2: cannot read"),
        ("y ~ y", "line 1: an edge joins 'y' to itself"),
    ],
)
def test_text_that_is_not_lavaan_raises_with_its_line(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        CausalGraph.from_lavaan(text, target="y")


@pytest.mark.parametrize("name", ["two words", "1st", "_x", "a-b", ".2", "TRUE", ""])
def test_names_without_a_form_in_lavaan_raise(name: str) -> None:
    with pytest.raises(ValueError, match="lavaan has no form for the name"):
        CausalGraph.from_weights(np.zeros((1, 1)), [name], target=name).to_lavaan()


@pytest.mark.parametrize("weight", [1e-5, 1e-300, 3.0000000000000004e-8, 12345.678])
def test_pydot_reads_small_weights_and_nodes_of_any_name(weight: float) -> None:
    names = ["node", "edge", "graph", "a:b"]
    graph = CausalGraph.from_weights(np.triu(np.full((4, 4), weight), 1), names, target="graph")
    _same(graph, CausalGraph.from_dot(graph.to_dot()))
    alone = CausalGraph.from_weights(np.zeros((4, 4)), names, target="graph")
    assert CausalGraph.from_dot(alone.to_dot()).names == tuple(names)


def test_an_open_bracket_is_an_error_at_once() -> None:
    with pytest.raises(ValueError, match="line 2: cannot read"):
        CausalGraph.from_dagitty("dag { a [outcome]\n a -> b [" + "x" * 200 + "\n }")


def test_coefficients_of_zero_are_no_edges_and_hidden_is_a_probability() -> None:
    graph = CausalGraph.from_lavaan("y ~ 0*x + z\nz ~~ 0*x\nx ~ 0.5*z", target="y")
    assert graph.parents("y") == graph.parents("x") == ["z"] and graph.hidden_causes(0).empty
    with pytest.raises(ValueError, match="line 2: hidden='7' is not between 0 and 1"):
        CausalGraph.from_dagitty("dag { a [outcome]\n a <-> b [hidden=7] }")


def test_beliefs_in_both_directions_survive_formats() -> None:
    prior = np.array([[np.nan, 0.6], [0.1, np.nan]])
    likely, forward = np.full((2, 2), 0.8), np.array([[np.nan, 0.7], [0.3, np.nan]])
    graph = CausalGraph(("a", "b"), ("b",), np.array([[0.0, 0.5], [0.0, 0.0]]), likely, forward, prior_array=prior)
    for other in (CausalGraph.from_dagitty(graph.to_dagitty()), CausalGraph.from_edges(graph.edges(), "b")):
        np.testing.assert_allclose(other.prior_array, prior)
        assert other.edges()["data"][0] == pytest.approx(graph.edges()["data"][0])
