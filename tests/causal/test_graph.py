"""Names, edges and pictures of a graph."""

from __future__ import annotations

import itertools
import pickle
import subprocess
import sys
from dataclasses import FrozenInstanceError
from typing import Any

import matplotlib as mpl
import networkx as nx
import numpy as np
import pandas as pd
import pytest

from castlereg.causal import CausalGraph, InputGraph
from castlereg.causal.knowledge import _propagated


@pytest.fixture
def graph() -> CausalGraph:
    weights = np.array([[0, 0.9, 0.3], [0.2, 0, 0.5], [0, 0.1, 0]])
    return CausalGraph.from_weights(weights, ["a", "b", "c"], target="c")


def test_edges_parents_children(graph: CausalGraph) -> None:
    assert graph.edges()[["cause", "effect", "weight"]].to_dict("list") == {
        "cause": ["a", "b", "a"],
        "effect": ["b", "c", "c"],
        "weight": [0.9, 0.5, 0.3],
    }
    assert graph.parents("c") == ["b", "a"]
    assert graph.children("a") == ["b", "c"]
    assert graph.parents("a") == []


def test_networkx_has_the_weights(graph: CausalGraph) -> None:
    converted = graph.to_networkx()
    assert nx.is_directed_acyclic_graph(converted)
    assert converted["a"]["b"]["weight"] == 0.9
    assert list(converted) == ["a", "b", "c"]


@pytest.fixture
def diamond() -> CausalGraph:
    """a -> b, c -> d -> e, and other -> d."""
    edges = {"cause": list("aabcdo"), "effect": list("bcdded"), "weight": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]}
    return CausalGraph.from_edges(pd.DataFrame(edges), target="d", nodes=list("eabcdo"))


def test_relatives(diamond: CausalGraph) -> None:
    assert diamond.ancestors("d") == ["a", "b", "c", "o"]
    assert diamond.descendants("a") == ["b", "c", "d", "e"]
    assert diamond.markov_blanket("b") == ["a", "c", "o", "d"]
    assert diamond.markov_blanket("e") == ["d"]
    assert diamond.topological_order() == ["a", "b", "c", "o", "d", "e"]
    assert nx.is_directed_acyclic_graph(diamond.to_networkx())


def test_edits_give_another_graph(diamond: CausalGraph) -> None:
    assert diamond.with_edge("a", "e", 0.5).weights.loc["a", "e"] == 0.5
    assert diamond.with_edge("a", "e").weights.loc["a", "e"] == 3.5  # the median
    assert diamond.without_edge("a", "b").parents("b") == []
    turned = diamond.reversed_edge("d", "e")
    assert (turned.parents("d"), turned.weights.loc["e", "d"]) == (["o", "e", "c", "b"], 5)
    assert (turned.confidence.loc["d", "e"], turned.direction.loc["e", "d"], turned.direction.loc["d", "e"]) == (
        1,
        1,
        0,
    )
    assert diamond.parents("d") == ["o", "c", "b"]


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda g: g.with_edge("e", "a"), "'e' -> 'a' closes a cycle: e -> a -> [bc] -> d -> e"),
        (lambda g: g.with_edge("c", "b").reversed_edge("a", "b"), "closes a cycle: b -> a -> c -> b"),
        (lambda g: g.with_edge("a", "ee"), "unknown node 'ee' in the edge 'a' -> 'ee'; did you mean 'e'"),
        (lambda g: g.with_edge("a", "a"), "joins a node to itself"),
        (lambda g: g.with_edge("a", "e", -1), "weight=-1"),
        (lambda g: g.without_edge("b", "a"), "no edge 'b' -> 'a'; reverse 'a' -> 'b' to get it"),
        (lambda g: g.without_edge("a", "e"), "no edge 'a' -> 'e'$"),
    ],
)
def test_edits_that_make_no_dag_or_no_sense_raise(diamond: CausalGraph, edit: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        edit(diamond)


def test_a_graph_cannot_be_changed(diamond: CausalGraph) -> None:
    weights = diamond.weights
    weights.loc["a", "b"] = 7.0
    assert diamond.weights.loc["a", "b"] == 1
    with pytest.raises(ValueError, match="read-only"):
        diamond.weight_array[0, 0] = 1
    with pytest.raises(FrozenInstanceError):
        diamond.targets = ()  # type: ignore[misc]
    again = pickle.loads(pickle.dumps(diamond))
    pd.testing.assert_frame_equal(again.weights, diamond.weights)


def networks(*weights: list[list[float]], **options: Any) -> InputGraph:
    names = ["a", "b", "c"][: len(weights[0])]
    return InputGraph.from_networks(np.array(weights), names, names[-1], **options)


def test_a_threshold_drops_weak_edges_before_the_cut() -> None:
    graph = networks([[0, 0.9, 0.3], [0.2, 0, 0.5], [0, 0.1, 0]])
    assert graph.dropped_weight == pytest.approx(0.3 / 2.0)
    above = graph.above(0.3)
    assert above.edges()["weight"].tolist() == [0.9, 0.5, 0.3]
    assert above.dropped_weight == 0  # the edges that close cycles are weaker
    assert graph.above(0.4).parents("c") == ["b"]
    pd.testing.assert_frame_equal(above.above(0).weights, graph.weights)
    with pytest.raises(ValueError, match="threshold=-1"):
        graph.above(-1)


def test_agreement_is_the_share_of_networks_with_the_edge() -> None:
    forward, backward = [[0.0, 0.9], [0.2, 0.0]], [[0.0, 0.1], [0.3, 0.0]]
    graph = networks(forward, forward, backward)
    assert graph.agreement.to_numpy().tolist() == [[0, 2 / 3], [1 / 3, 0]] and graph.n_networks == 3
    assert "share of 3 networks" in graph.summary() and "27% of their weight closed cycles" in graph.summary()
    assert graph.edges()["agreement"].tolist() == [2 / 3]
    assert networks(forward).agreement.isna().all(axis=None) and "share of" not in networks(forward).summary()
    assert networks([[0, 0], [0, 0]]).dropped_weight == 0


def test_required_edges_are_kept_first() -> None:
    required = np.array([[False, True], [False, False]])
    graph = networks([[0.0, 0.1], [0.9, 0.0]], threshold=0.5, required=required)
    assert graph.parents("b") == ["a"] and graph.agreement.loc["a", "b"] == 1


def test_summary_says_how_far_to_trust() -> None:
    weights = np.array([[0.0, 0.9], [0.0, 0.0]])
    direction = np.array([[np.nan, 0.6], [0.4, np.nan]])
    graph = CausalGraph(("age", "pay"), ("pay",), weights, np.full((2, 2), 0.9), direction)
    lines = graph.summary().splitlines()
    assert lines[:3] == ["2 nodes, 1 edges.", "Into pay: age.", "The direction of 1 of the edges is unknown."]
    assert lines[3].startswith("Confidence and direction are probabilities")
    assert lines[-1] == "A prediction aid, not proof of cause."
    assert len(graph.uncertain_edges()) == 1
    assert repr(graph) == "<CausalGraph: 2 nodes, 1 edges, target pay>"


def test_probabilities_may_be_unknown(graph: CausalGraph) -> None:
    assert graph.confidence.isna().all(axis=None) and graph.direction.isna().all(axis=None)
    assert "not known (NaN)" in graph.summary() and len(graph.uncertain_edges()) == 0
    edited = graph.with_edge("a", "b", 0.4)  # the user is sure of this one
    assert edited.edges()["confidence"].tolist()[1] == 1 and "not known" in edited.summary()


def test_weights_that_are_no_weights_raise() -> None:
    for bad in (-0.1, np.nan, np.inf):
        weights = np.array([[0.0, bad], [0.0, 0.0]])
        with pytest.raises(ValueError, match="negative weights, or weights that are not finite"):
            CausalGraph(("a", "b"), ("b",), weights, weights, weights)


def test_unknown_node_is_named(graph: CausalGraph) -> None:
    with pytest.raises(KeyError, match="unknown node 'z'; the nodes are a, b, c"):
        graph.parents("z")


@pytest.mark.parametrize(
    ("names", "target", "message"),
    [(["a", "b"], "a", "2 nodes|3 nodes"), (["a", "a", "b"], "a", "different names"), (["a", "b", "c"], "z", "'z'")],
)
def test_bad_names_raise(names: list[str], target: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        CausalGraph.from_weights(np.zeros((3, 3)), names, target=target)


def test_any_weights_make_a_dag() -> None:
    """A thousand matrices of all sizes, sparse and dense, with ties."""
    rng = np.random.default_rng(0)
    for _ in range(1000):
        n, levels = rng.integers(1, 16), rng.integers(1, 6)
        weights = rng.integers(0, levels + 1, (n, n)) * (rng.random((n, n)) < rng.random())
        names = [f"x{k}" for k in range(n)]
        graph = InputGraph.from_networks(weights[None], names, "x0", threshold=rng.random())
        assert nx.is_directed_acyclic_graph(graph.to_networkx())
    with pytest.raises(ValueError, match="finite and not negative"):
        CausalGraph.from_weights(np.array([[0, np.inf], [0, 0]]), ["a", "b"], target="b")


def test_building_a_graph_does_not_import_networkx() -> None:
    """It takes a fifth of a second, which every first fit would pay for."""
    code = """
import sys
import numpy as np
from castlereg.causal import EdgeConstraints, InputGraph
known = EdgeConstraints(required=[("a", "b")]).rules(["a", "b"])
graph = InputGraph.from_networks(np.ones((2, 2, 2)), ["a", "b"], "b", required=known.required)
assert graph.parents("b") == ["a"] and graph.summary()
assert "networkx" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_plot_draws_every_node_and_the_strongest_edges(graph: CausalGraph) -> None:
    mpl.use("agg")
    import matplotlib.pyplot as plt

    ax = graph.plot(max_edges=2)
    shown = {text.get_text() for text in ax.texts}
    assert {"a", "b", "c"} <= shown
    assert len([p for p in ax.patches if p.__class__.__name__ == "FancyArrowPatch"]) == 2
    plt.close("all")


def test_names_are_drawn_as_they_are() -> None:
    mpl.use("agg")
    import matplotlib.pyplot as plt

    names = [r"$\\frac{1}$", "größe (m²)", "<b>&amp;"]
    ax = CausalGraph.from_weights(np.triu(np.ones((3, 3)), k=1), names, target="<b>&amp;").plot()
    ax.figure.canvas.draw()
    assert {text.get_text() for text in ax.texts} == set(names)
    plt.close("all")


# --- evidence ---------------------------------------------------------------------------------------


def evident(names: str, edges: dict[str, tuple[float, float]], target: str, **given: dict[str, float]) -> CausalGraph:
    """Edges such as ``{"ab": (confidence, direction)}``, and evidence for pairs, such as ``hidden={"ac": 0.8}``."""
    n = len(names)
    weights, confidence = np.zeros((2, n, n))
    direction, *evidence = np.full((5, n, n), np.nan)
    for (a, b), (joined, forward) in edges.items():
        j, k = names.index(a), names.index(b)
        weights[j, k], confidence[[j, k], [k, j]], direction[[j, k], [k, j]] = 1, joined, (forward, 1 - forward)
    arrays = dict(zip(("hidden", "independences", "shapes", "prior"), evidence, strict=True))
    for name, values in given.items():
        for (a, b), value in values.items():
            j, k = names.index(a), names.index(b)
            arrays[name][j, k] = value
            if name != "prior":
                arrays[name][k, j] = value if name == "hidden" else 1 - value
    return CausalGraph(
        tuple(names), (target,), weights, confidence, direction, **{f"{n}_array": arrays[n] for n in arrays}
    )


def test_edges_show_the_evidence_and_beliefs_only_if_there_are_any() -> None:
    edges = {"ab": (0.9, 0.8), "bc": (0.7, 0.6)}
    shown = evident("abc", edges, "c", shapes={"ab": 0.7}, independences={"ab": 0.5}, hidden={"bc": 0.6}).edges()
    assert list(shown)[2:] == ["weight", "confidence", "direction", "independences", "shapes", "hidden"]
    assert shown.loc[0, ["independences", "shapes"]].tolist() == [0.5, 0.7] and shown["hidden"].tolist()[1] == 0.6
    believed = evident("abc", edges, "c", prior={"ab": 0.9}).edges().set_index("cause")
    assert believed["prior"].tolist()[0] == 0.9 and np.isnan(believed.loc["b", "prior"])
    forward, backward, none = 0.9 * 0.8 / 9, 0.9 * 0.2, 0.1
    assert believed.loc["a", "data"] == pytest.approx(forward / (forward + backward + none))
    assert believed.loc["b", "data"] == pytest.approx(0.7 * 0.6)


def test_hidden_causes_are_listed_with_and_without_edges() -> None:
    graph = evident("abcd", {"ab": (1, 1)}, "d", hidden={"ab": 0.6, "cd": 0.9, "ad": 0.1})
    assert graph.hidden_causes().values.tolist() == [["c", "d", 0.9], ["a", "b", 0.6]]
    assert len(graph.hidden_causes(0)) == 3 and graph.hidden_causes(0.95).empty
    assert "A hidden common cause is suspected for 1 of the edges" in graph.summary()
    assert evident("ab", {"ab": (1, 1)}, "b").hidden_causes().empty
    assert "Two kinds of evidence" in evident("ab", {"ab": (1, 1)}, "b", shapes={"ab": 0.9}).summary()


def test_edits_and_orders_keep_the_evidence() -> None:
    given = {"shapes": {"ab": 0.7}, "hidden": {"bc": 0.6}, "prior": {"ab": 0.9, "bc": 0.2}}
    graph = evident("abc", {"ab": (0.9, 0.8), "bc": (0.7, 0.6)}, "c", **given)
    turned = graph.in_order_of(["c", "b", "a"])
    shown = [each.edges().set_index(["cause", "effect"]).sort_index() for each in (graph, turned)]
    pd.testing.assert_frame_equal(*shown)
    edited = graph.reversed_edge("a", "b")
    row = edited.edges().set_index("cause").loc["b"].set_index("effect")
    assert row.loc["a", "shapes"] == pytest.approx(0.3)
    assert np.isnan(row.loc["a", "prior"]) and row.loc["c", "prior"] == 0.2  # the edit replaces the belief
    assert edited.hidden_causes().equals(graph.hidden_causes())


# --- questions --------------------------------------------------------------------------------------


def test_questions_are_only_about_open_arrows() -> None:
    graph = evident("abcd", {"ab": (0.4, 0.6), "bc": (0.9, 0.95), "cd": (0.6, 0.89)}, "d")
    asked = graph.questions()
    assert asked[["question", "first", "second"]].values.tolist() == [["Does c cause d, or d c?", "c", "d"]]
    assert asked["probability"].tolist() == [0.89] and asked["changes_target"].tolist() == [True]
    assert evident("ab", {"ab": (1, 1)}, "b").questions().columns.tolist() == asked.columns.tolist()
    unknown = CausalGraph.from_weights(np.triu(np.ones((3, 3)), 1), list("abc"), target="c")
    assert unknown.questions().empty
    with pytest.raises(ValueError, match="most=-1"):
        graph.questions(-1)


def test_an_answer_settles_what_follows_from_it() -> None:
    """In a chain without colliders, the first arrow forward settles all, backward none; the target is elsewhere."""
    chain = evident("abcdy", {"ab": (1, 0.5), "bc": (1, 0.5), "cd": (1, 0.5)}, "y")
    asked = chain.questions().set_index("first")
    assert asked["settles"].to_dict() == {"a": 2.0, "b": 2.0, "c": 2.0}
    assert not asked["changes_target"].any()
    triangle = evident("abcy", {"ab": (1, 0.95), "bc": (1, 0.95), "ac": (1, 0.6)}, "y")
    assert triangle.questions()["settles"].tolist() == [1.0]


def test_useful_questions_come_first() -> None:
    edges = {"ab": (1, 0.55), "bc": (1, 0.55), "xy": (1, 0.55), "uv": (1, 0.85)}
    asked = evident("abcxyuv", edges, "y").questions()
    assert asked["first"].tolist() == ["x", "a", "b", "u"]  # the target; two arrows each; nearly settled
    assert asked["changes_target"].tolist() == [True, False, False, False]
    assert len(evident("abcxyuv", edges, "y").questions(2)) == 2


def test_meek_rules_are_those_of_a_plain_loop() -> None:
    """Essential graphs of random graphs and one more arrow, against all acyclic orders without new colliders."""
    rng = np.random.default_rng(0)
    for _ in range(60):
        dag = np.triu(rng.random((5, 5)) < 0.6, 1)
        skeleton = dag | dag.T
        members = [g for g in _orientations(skeleton) if _colliders(g) == _colliders(dag)]
        compelled = np.logical_and.reduce(members)
        rest = skeleton & ~compelled & ~compelled.T
        if not rest.any():
            continue
        j, k = rng.permutation(np.argwhere(rest))[0]
        agreeing = np.logical_and.reduce([g for g in members if g[j, k]])
        compelled[j, k] = True
        rest[[j, k], [k, j]] = False
        np.testing.assert_array_equal(_propagated(compelled, rest), agreeing)


def _orientations(skeleton: Any) -> list[Any]:
    found = {}
    for order in itertools.permutations(range(len(skeleton))):
        rank = np.argsort(order)
        graph = skeleton & (rank[:, None] < rank)
        found[graph.tobytes()] = graph
    return list(found.values())


def _colliders(graph: Any) -> set[tuple[int, int, int]]:
    n, joined = len(graph), graph | graph.T
    triples = itertools.product(range(n), repeat=3)
    return {(i, j, k) for i, j, k in triples if i < k and graph[i, j] and graph[k, j] and not joined[i, k]}
