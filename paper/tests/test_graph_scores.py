"""Scores against graphs worked out by hand, distances against exact linear models, and sortability of known orders."""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations, product

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.metrics import average_precision_score, f1_score, precision_score, recall_score, roc_auc_score

from castlereg.causal import CausalGraph, InputGraph
from castlereg.causal.worlds import random_dag
from castlereg_paper.graph_scores import (
    _variance_and_explained,
    direction_accuracy,
    edge_scores,
    graph_scores,
    r2_sortability,
    ranking_scores,
    share_of_arrows_upwards,
    skeleton_scores,
    structural_hamming_distance,
    structural_intervention_distance,
    varsortability,
)


def edges(n_nodes: int, text: str) -> np.ndarray:
    """``edges(3, "01 12")`` is the chain 0 -> 1 -> 2."""
    matrix = np.zeros((n_nodes, n_nodes), dtype=bool)
    for cause, effect in text.split():
        matrix[int(cause), int(effect)] = True
    return matrix


CHAIN = edges(3, "01 12")


def some_dag(n_nodes: int, rng: np.random.Generator) -> np.ndarray:
    most = n_nodes * (n_nodes - 1) // 2
    return random_dag(n_nodes, int(rng.integers(0, most + 1)), rng).to_numpy()


def all_dags(n_nodes: int) -> list[np.ndarray]:
    off_diagonal = ~np.eye(n_nodes, dtype=bool)
    found = []
    for bits in product([False, True], repeat=n_nodes * (n_nodes - 1)):
        matrix = np.zeros((n_nodes, n_nodes), dtype=bool)
        matrix[off_diagonal] = bits
        if nx.is_directed_acyclic_graph(nx.from_numpy_array(matrix, create_using=nx.DiGraph)):
            found.append(matrix)
    return found


def wrong_effects_in_a_linear_model(graph: np.ndarray, truth: np.ndarray, rng: np.random.Generator) -> int:
    """Count the effects that regression on the cause and its learned parents gets wrong, without sampling.

    With random coefficients, adjusting that is not valid gives another number than the true effect.
    """
    n_nodes = len(truth)
    coefficients = truth * rng.uniform(0.5, 1.5, truth.shape) * rng.choice([-1, 1], truth.shape)
    true_effects = np.linalg.inv(np.eye(n_nodes) - coefficients)
    covariance = true_effects.T @ np.diag(rng.uniform(0.5, 1.5, n_nodes)) @ true_effects
    n_wrong = 0
    for cause, effect in permutations(range(n_nodes), 2):
        if graph[effect, cause]:
            computed = 0.0
        else:
            used = [cause, *np.flatnonzero(graph[:, cause])]
            computed = np.linalg.solve(covariance[np.ix_(used, used)], covariance[used, effect])[0]
        n_wrong += abs(computed - true_effects[cause, effect]) > 1e-8
    return n_wrong


@pytest.mark.parametrize(
    ("graph", "distance"),
    [("01 12", 0), ("", 2), ("01", 1), ("10 12", 1), ("10 21", 2), ("01 12 02", 1), ("10 02", 3), ("01 12 10", 1)],
)
def test_hamming_distance_counts_edges_to_add_remove_or_reverse(graph: str, distance: int) -> None:
    assert structural_hamming_distance(edges(3, graph), CHAIN) == distance


def test_hamming_distance_counts_both_edges_between_nodes_that_the_truth_does_not_join() -> None:
    assert structural_hamming_distance(edges(2, "01 10"), edges(2, "")) == 2


def test_edge_and_skeleton_scores_of_a_graph_with_a_right_a_reversed_and_an_extra_edge() -> None:
    graph, truth = edges(4, "01 21 03"), edges(4, "01 12 23 13")
    assert edge_scores(graph, truth) == pytest.approx(
        {"precision": 1 / 3, "recall": 1 / 4, "f1": 2 / 7, "false_discovery_rate": 2 / 3}
    )
    assert skeleton_scores(graph, truth) == pytest.approx(
        {"precision": 2 / 3, "recall": 2 / 4, "f1": 4 / 7, "false_discovery_rate": 1 / 3}
    )
    assert direction_accuracy(graph, truth) == 1 / 2


def test_edge_scores_are_those_of_scikit_learn() -> None:
    rng = np.random.default_rng(0)
    for _ in range(50):
        graph, truth = some_dag(5, rng), some_dag(5, rng)
        scores = edge_scores(graph, truth)
        for name, function in {"precision": precision_score, "recall": recall_score, "f1": f1_score}.items():
            assert scores[name] == pytest.approx(function(truth.ravel(), graph.ravel(), zero_division=0))
        assert not graph.any() or scores["precision"] + scores["false_discovery_rate"] == pytest.approx(1)


def test_scores_of_no_edges_are_zero() -> None:
    nothing = dict.fromkeys(["precision", "recall", "f1", "false_discovery_rate"], 0.0)
    assert edge_scores(edges(3, ""), CHAIN) == nothing
    assert skeleton_scores(edges(3, ""), edges(3, "")) == nothing
    assert edge_scores(CHAIN, edges(3, "")) == nothing | {"false_discovery_rate": 1.0}


@pytest.mark.parametrize(("graph", "accuracy"), [("01 12", 1), ("10 21", 0), ("10 12 02", 0.5), ("01 10 12", 0.75)])
def test_direction_accuracy_is_the_share_of_right_directions(graph: str, accuracy: float) -> None:
    assert direction_accuracy(edges(3, graph), CHAIN) == accuracy


def test_direction_accuracy_without_a_common_edge_is_nan() -> None:
    assert np.isnan(direction_accuracy(edges(3, "02"), CHAIN))


def test_ranking_is_that_of_scikit_learn_and_ignores_the_diagonal() -> None:
    rng = np.random.default_rng(0)
    weights, truth = rng.random((6, 6)).round(1), np.triu(rng.random((6, 6)) < 0.5, k=1)
    pairs = list(permutations(range(6), 2))
    labels, ranked = [truth[pair] for pair in pairs], [weights[pair] for pair in pairs]
    assert ranking_scores(weights, truth) == {
        "auroc": pytest.approx(roc_auc_score(labels, ranked)),
        "average_precision": pytest.approx(average_precision_score(labels, ranked)),
    }


def test_ranking_scores_of_hand_worked_weights() -> None:
    assert ranking_scores([[0, 3, 0], [0, 0, 2], [0, 0, 0]], CHAIN) == {"auroc": 1, "average_precision": 1}
    assert ranking_scores(np.ones((3, 3)), CHAIN) == {"auroc": 0.5, "average_precision": pytest.approx(2 / 6)}
    # From the strongest down: false, true, true, false, false, false.
    some = ranking_scores([[0, 0.5, 0.9], [0.1, 0, 0.4], [0.2, 0.3, 0]], CHAIN)
    assert some == pytest.approx({"auroc": 6 / 8, "average_precision": (1 / 2 + 2 / 3) / 2})


def test_ranking_against_no_edges_is_nan() -> None:
    assert np.isnan(list(ranking_scores(np.ones((3, 3)), np.zeros((3, 3))).values())).all()
    assert np.isnan(list(ranking_scores(np.ones((1, 1)), np.zeros((1, 1))).values())).all()


@pytest.mark.parametrize(
    ("graph", "truth", "distance"),
    [
        ("01 12", "01 12", 0),
        ("10", "01", 2),
        ("", "01", 1),
        ("01", "", 0),
        # Without edges nothing is adjusted for: right downwards, wrong for the three pairs upwards.
        ("", "01 12", 3),
        # The common cause 0 of 1 and 2 is missed: also 1 and 2 seem to affect each other.
        ("", "01 02", 4),
        # Without edges into a common effect, only its own two pairs are wrong.
        ("", "01 21", 2),
        # Adjusting for the common effect 1 opens a path between 0 and 2.
        ("10 12", "01 21", 6),
    ],
)
def test_intervention_distance_of_hand_worked_graphs(graph: str, truth: str, distance: int) -> None:
    n_nodes = 2 if set(graph + truth) <= set("01 ") else 3
    assert structural_intervention_distance(edges(n_nodes, graph), edges(n_nodes, truth)) == distance


def test_one_more_edge_can_be_harmless_where_one_reversed_edge_is_not() -> None:
    """Two causes, 0 of 1 and both of 2, 3 and 4: the example of Peters and Bühlmann."""
    shared = "02 03 04 12 13 14"
    truth = edges(5, f"01 {shared}")
    one_more, one_reversed = edges(5, f"01 {shared} 23"), edges(5, f"10 {shared}")
    assert structural_hamming_distance(one_more, truth) == structural_hamming_distance(one_reversed, truth) == 1
    assert structural_intervention_distance(one_more, truth) == 0
    assert structural_intervention_distance(one_reversed, truth) == 8


def test_intervention_distance_of_all_graphs_of_three_nodes_counts_wrong_effects_in_a_linear_model() -> None:
    rng = np.random.default_rng(0)
    dags = all_dags(3)
    assert len(dags) == 25
    for graph, truth in product(dags, repeat=2):
        expected = wrong_effects_in_a_linear_model(graph, truth, rng)
        assert structural_intervention_distance(graph, truth) == expected, (graph, truth)


def test_intervention_distance_of_larger_graphs_counts_wrong_effects_in_a_linear_model() -> None:
    rng = np.random.default_rng(0)
    for _ in range(150):
        graph, truth = some_dag(5, rng), some_dag(5, rng)
        expected = wrong_effects_in_a_linear_model(graph, truth, rng)
        assert structural_intervention_distance(graph, truth) == expected, (graph, truth)


def test_graphs_with_all_true_edges_get_every_effect_right() -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        complete = np.triu(np.ones((7, 7), dtype=bool), k=1)
        truth = complete & (rng.random((7, 7)) < 0.4)
        order = np.ix_(*[rng.permutation(7)] * 2)
        assert structural_intervention_distance(complete[order], truth[order]) == 0


def test_intervention_distance_of_thirty_nodes_can_be_had() -> None:
    graph, truth = (random_dag(30, 90, seed).to_numpy() for seed in (0, 1))
    assert 0 < structural_intervention_distance(graph, truth) <= 30 * 29


ALL_SCORES = [
    structural_hamming_distance,
    edge_scores,
    skeleton_scores,
    direction_accuracy,
    ranking_scores,
    structural_intervention_distance,
]


@pytest.mark.parametrize("score", ALL_SCORES)
def test_bad_arrays_raise(score: Callable[..., object]) -> None:
    with pytest.raises(ValueError, match=r"(graph|weights) must be a square matrix, got shape \(2, 3\)"):
        score(np.zeros((2, 3)), np.zeros((3, 3)))
    with pytest.raises(ValueError, match=r"truth must be a square matrix, got shape \(3,\)"):
        score(np.zeros((3, 3)), np.zeros(3))
    with pytest.raises(ValueError, match=r"(graph|weights) has shape \(2, 2\), truth has shape \(3, 3\)"):
        score(np.zeros((2, 2)), np.zeros((3, 3)))
    with pytest.raises(ValueError, match=r"(graph|weights) contains NaN at \(0, 1\)"):
        score(np.array([[0, np.nan], [0, 0]]), np.zeros((2, 2)))
    with pytest.raises(ValueError, match="truth has a cycle: 0 -> 1 -> 2 -> 0"):
        score(CHAIN, edges(3, "01 12 20"))
    with pytest.raises(ValueError, match="truth has a cycle: an edge from node 1 to itself"):
        score(CHAIN, edges(3, "01 11"))


def test_a_learned_graph_with_a_cycle_has_no_intervention_distance() -> None:
    with pytest.raises(ValueError, match="graph has a cycle: 0 -> 1 -> 0"):
        structural_intervention_distance(edges(3, "01 10"), CHAIN)


def test_numbers_and_truth_values_are_the_same_edges() -> None:
    signed = np.where(CHAIN, -0.3, 0.0)
    assert structural_hamming_distance(signed, CHAIN) == structural_intervention_distance(signed, CHAIN) == 0
    assert edge_scores(signed, CHAIN)["f1"] == direction_accuracy(signed, CHAIN) == 1


NAMES = ["a", "b", "c"]


def named(values: np.ndarray, names: list[str] = NAMES) -> pd.DataFrame:
    return pd.DataFrame(values, index=names, columns=names)


def test_all_scores_are_those_of_the_single_functions() -> None:
    weights = np.array([[0, 0.3, 0.2], [0.4, 0, 0.9], [0, 0.1, 0]])
    scores = graph_scores(InputGraph.from_networks(weights[None], NAMES, "c"), named(CHAIN))
    graph = edges(3, "10 12 02")
    skeleton = {f"skeleton_{name}": score for name, score in skeleton_scores(graph, CHAIN).items()}
    assert scores.to_dict() == {
        "structural_hamming_distance": 2,
        "structural_intervention_distance": structural_intervention_distance(graph, CHAIN),
        "direction_accuracy": 0.5,
        **edge_scores(graph, CHAIN),
        **skeleton,
        **ranking_scores(weights, CHAIN),
    }


def test_names_are_matched_whatever_their_order() -> None:
    weights = np.array([[0, 0.3, 0.2], [0.4, 0, 0.9], [0, 0.1, 0]])
    graph = InputGraph.from_networks(weights[None], NAMES, "c")
    truth = named(CHAIN)
    expected = graph_scores(graph, truth)
    pd.testing.assert_series_equal(graph_scores(graph, truth.loc[["c", "a", "b"], ["b", "a", "c"]]), expected)
    shuffled = graph.weights.loc[["b", "c", "a"], ["c", "a", "b"]]
    learned = graph.learned_weights.loc[["c", "b", "a"], ["b", "c", "a"]]
    pd.testing.assert_series_equal(graph_scores(shuffled, truth, learned), expected)


def test_given_weights_are_ranked_in_place_of_the_learned_ones() -> None:
    graph = CausalGraph.from_weights(np.where(CHAIN, 0.5, 0.1) * (1 - np.eye(3)), NAMES, target="c")
    assert graph_scores(graph, named(CHAIN))["auroc"] == 1
    assert graph_scores(graph, named(CHAIN), named(1.0 - CHAIN))["auroc"] == 0


def test_a_frame_without_weights_has_no_ranking() -> None:
    scores = graph_scores(named(CHAIN), named(CHAIN))
    assert scores.index[scores.isna()].tolist() == ["auroc", "average_precision"]
    assert scores["f1"] == 1


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["a", "b", "z"], r"graph has missing rows: 'c'; the nodes are \['a', 'b', 'c'\]"),
        (["a", "b", "c", "y", "z"], "graph has unknown rows: 'y', 'z'"),
        (["a", "b", "c", "c"], "graph has duplicate rows: 'c'"),
    ],
)
def test_names_that_do_not_match_raise_with_the_name(names: list[str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        graph_scores(named(np.zeros((len(names), len(names))), names), named(CHAIN))


def test_frames_whose_rows_and_columns_differ_raise() -> None:
    with pytest.raises(ValueError, match="truth has missing rows: 'c'"):
        graph_scores(named(CHAIN), pd.DataFrame(CHAIN, index=["a", "b", "z"], columns=NAMES))
    with pytest.raises(ValueError, match="weights has missing columns: 'b'"):
        graph_scores(named(CHAIN), named(CHAIN), pd.DataFrame(CHAIN, index=NAMES, columns=["a", "x", "c"]))


NUMBERED_CHAIN = np.diag([1, 1], k=1)  # 0 -> 1 -> 2
COMMON_EFFECT = np.array([[0, 0, 1], [0, 0, 1], [0, 0, 0]])  # 0 -> 2 <- 1


def columns_with_spread(*spread: float) -> np.ndarray:
    """Columns with these standard deviations."""
    return np.array([[-1.0], [1.0]]) * spread


def linear_rows(graph: np.ndarray, rng: np.random.Generator, n_rows: int = 300) -> np.ndarray:
    coefficients = graph * rng.uniform(0.5, 2, graph.shape)
    noise = rng.normal(size=(n_rows, len(graph))) * rng.uniform(0.5, 2, len(graph))
    return noise @ np.linalg.inv(np.eye(len(graph)) - coefficients)


def standardized(values: np.ndarray) -> np.ndarray:
    return (values - values.mean(axis=0)) / values.std(axis=0)


@pytest.mark.parametrize(
    ("spread", "expected"),
    [
        ((1, 2, 3), 1),
        ((3, 2, 1), 0),
        ((2, 2, 2), 0.5),
        ((1, 3, 2), 2 / 3),  # 0 -> 1 and 0 -> 1 -> 2 go up
        ((2, 1, 3), 2 / 3),
        ((1, 1, 2), 2.5 / 3),
    ],
)
def test_variance_along_a_chain(spread: tuple[float, ...], expected: float) -> None:
    assert varsortability(columns_with_spread(*spread), NUMBERED_CHAIN) == pytest.approx(expected)
    assert varsortability(columns_with_spread(*spread), NUMBERED_CHAIN.T) == pytest.approx(1 - expected)


def test_a_pair_counts_once_for_every_length_of_path() -> None:
    """0 -> 3 counts once as an edge and once for the two paths through 1 and 2, which have one length."""
    graph = np.zeros((4, 4))
    graph[[0, 0, 0, 1, 2], [1, 2, 3, 3, 3]] = 1
    assert varsortability(columns_with_spread(2, 3, 4, 1), graph) == pytest.approx(2 / 6)


def test_standardized_columns_have_no_order_of_variance() -> None:
    rng = np.random.default_rng(0)
    for seed in range(20):
        graph = random_dag(8, 15, seed).to_numpy()
        values = linear_rows(graph, rng)
        assert varsortability(values, graph) > 0.6
        assert varsortability(standardized(values), graph) == 0.5


def test_constant_columns_have_no_variance_and_no_r2() -> None:
    values = np.tile([0.1, 0.7, 1 / 3], (50, 1))
    assert varsortability(values, NUMBERED_CHAIN) == r2_sortability(values, NUMBERED_CHAIN) == 0.5
    values = np.column_stack([values[:, 0], np.random.default_rng(0).normal(size=(50, 2))])
    assert varsortability(values, np.diag([1, 0], k=1)) == r2_sortability(values, np.diag([1, 0], k=1)) == 1


def test_the_common_effect_of_independent_columns_is_explained_best() -> None:
    """With orthogonal causes: R² is 1/2 for each cause, given the other and the effect, and 2/3 for the effect."""
    causes_and_noise = np.array([[1, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1.0]])
    values = np.column_stack([causes_and_noise[:, :2], causes_and_noise.sum(axis=1)])
    assert r2_sortability(values, COMMON_EFFECT) == 1
    assert r2_sortability(values, COMMON_EFFECT.T) == 0
    assert r2_sortability(values, [[0, 1, 0], [0, 0, 0], [0, 0, 0]]) == 0.5


def test_uncorrelated_columns_are_equally_explained() -> None:
    assert r2_sortability([[1, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]], NUMBERED_CHAIN) == 0.5


def test_r2_does_not_change_with_the_scale_and_position_of_columns() -> None:
    rng = np.random.default_rng(0)
    all_expected = set()
    for seed in range(20):
        graph = random_dag(8, 15, seed).to_numpy()
        values = linear_rows(graph, rng)
        expected = r2_sortability(values, graph)
        all_expected.add(expected)
        assert r2_sortability(standardized(values), graph) == expected
        assert r2_sortability(values * 10.0 ** rng.integers(-6, 7, 8) + rng.normal(size=8), graph) == expected
    assert len(all_expected) > 10


def test_r2_is_that_of_linear_regression() -> None:
    rng = np.random.default_rng(0)
    for seed in range(20):
        graph = random_dag(6, 9, seed).to_numpy()
        values = linear_rows(graph, rng)
        r2 = []
        for node in range(6):
            others = np.delete(values, node, axis=1)
            r2.append(LinearRegression().fit(others, values[:, node]).score(others, values[:, node]))
        for cause, effect in np.argwhere(graph):
            one = np.zeros((6, 6))
            one[cause, effect] = 1
            assert r2_sortability(values, one) == float(r2[effect] > r2[cause])


def test_columns_that_are_sums_of_others_are_fully_explained() -> None:
    a, b, c = np.random.default_rng(0).normal(size=(3, 100))
    values = np.column_stack([a, b, a + b, c])
    assert r2_sortability(values, np.diag([1, 1, 0], k=1)) == 0.5
    assert r2_sortability(values, np.diag([0, 0, 1], k=1)) == 0


def test_fewer_rows_than_columns_explain_everything() -> None:
    assert r2_sortability(np.random.default_rng(0).normal(size=(5, 9)), np.diag(np.ones(8), k=1)) == 0.5


def test_missing_values_are_left_out_of_the_variance() -> None:
    nan = np.nan
    values = [[-1, -2, -2], [1, 2, 2], [0, nan, -2], [0, nan, 2], [0, nan, nan]]
    assert varsortability(values, NUMBERED_CHAIN) == pytest.approx((1 + 0.5 + 1) / 3)


def test_missing_values_are_filled_with_the_mean_for_r2() -> None:
    rng = np.random.default_rng(0)
    graph = random_dag(6, 9, 0).to_numpy()
    values = linear_rows(graph, rng)
    values[rng.random(values.shape) < 0.3] = np.nan
    filled = np.where(np.isnan(values), np.nanmean(values, axis=0), values)
    assert r2_sortability(values, graph) == r2_sortability(filled, graph)


@pytest.mark.parametrize(
    ("criterion", "expected"),
    [((1, 2, 3), 1), ((3, 2, 1), 0), ((1, 3, 2), 1 / 2), ((1, 1, 2), 3 / 4), ((0.3, 0.1 + 0.2, 0.3), 1 / 2)],
)
def test_share_of_arrows_upwards_counts_edges_and_no_longer_paths(
    criterion: tuple[float, ...], expected: float
) -> None:
    assert share_of_arrows_upwards(criterion, NUMBERED_CHAIN) == expected
    assert share_of_arrows_upwards(criterion, NUMBERED_CHAIN.T) == 1 - expected


def test_a_graph_without_edges_has_no_share() -> None:
    values = np.random.default_rng(0).normal(size=(20, 3))
    none = np.zeros((3, 3))
    shares = varsortability(values, none), r2_sortability(values, none), share_of_arrows_upwards([1, 2, 3], none)
    assert np.isnan(shares).all()
    assert np.isnan([varsortability([[1], [2]], [[0]]), r2_sortability([[1], [2]], [[0]])]).all()


@pytest.mark.parametrize("sortability", [varsortability, r2_sortability])
def test_bad_rows_raise(sortability: Callable[..., float]) -> None:
    values = np.random.default_rng(0).normal(size=(20, 3))
    with pytest.raises(ValueError, match=r"graph must be a square matrix, got shape \(2, 3\)"):
        sortability(values, np.zeros((2, 3)))
    with pytest.raises(ValueError, match=r"values has shape \(20, 3\), but graph has 4 nodes"):
        sortability(values, np.zeros((4, 4)))
    with pytest.raises(ValueError, match="graph has a cycle"):
        sortability(values, NUMBERED_CHAIN + NUMBERED_CHAIN.T)
    with pytest.raises(ValueError, match="graph has a cycle"):
        sortability(values, np.eye(3))
    with pytest.raises(ValueError, match=r"graph contains NaN at \(0, 2\)"):
        sortability(values, [[0, 1, np.nan], [0, 0, 0], [0, 0, 0]])
    with pytest.raises(ValueError, match="values contains infinity in column 1"):
        sortability(values * [1, np.inf, 1], NUMBERED_CHAIN)
    with pytest.raises(ValueError, match="values has only missing values in column 2"):
        sortability(values * [1, 1, np.nan], NUMBERED_CHAIN)


def test_a_bad_criterion_raises() -> None:
    with pytest.raises(ValueError, match=r"criterion has shape \(2,\), but graph has 3 nodes"):
        share_of_arrows_upwards([1, 2], NUMBERED_CHAIN)
    with pytest.raises(ValueError, match="criterion is NaN for node 1"):
        share_of_arrows_upwards([1, np.nan, 2], NUMBERED_CHAIN)


def test_a_small_column_is_explained_by_the_difference_of_two_large_ones(rng: np.random.Generator) -> None:
    """Products of columns would lose the digits of the difference."""
    large, small, noise = rng.normal(size=(3, 500)) * np.array([[1], [1e-9], [1e-9]])
    values = np.column_stack([large, small, large + small + noise])
    expected = np.corrcoef(small, values[:, 2] - large)[0, 1] ** 2
    np.testing.assert_allclose(_variance_and_explained(values)[1][1], expected, atol=0.01)
