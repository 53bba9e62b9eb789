"""Sortability of columns whose order is known."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from castlereg.causal.graph.sortability import ColumnTraits, r2_sortability, share_of_arrows_upwards, varsortability
from castlereg.causal.synthetic.graphs import random_dag

CHAIN = np.diag([1, 1], k=1)  # 0 -> 1 -> 2
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
    assert varsortability(columns_with_spread(*spread), CHAIN) == pytest.approx(expected)
    assert varsortability(columns_with_spread(*spread), CHAIN.T) == pytest.approx(1 - expected)


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
    assert varsortability(values, CHAIN) == r2_sortability(values, CHAIN) == 0.5
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
    assert r2_sortability([[1, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]], CHAIN) == 0.5


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
    assert varsortability(values, CHAIN) == pytest.approx((1 + 0.5 + 1) / 3)


def test_missing_values_are_filled_with_the_mean_for_r2() -> None:
    rng = np.random.default_rng(0)
    graph = random_dag(6, 9, 0).to_numpy()
    values = linear_rows(graph, rng)
    values[rng.random(values.shape) < 0.3] = np.nan
    filled = np.where(np.isnan(values), np.nanmean(values, axis=0), values)
    assert r2_sortability(values, graph) == r2_sortability(filled, graph)


def test_traits_of_a_long_table_are_those_of_its_blocks() -> None:
    rng = np.random.default_rng(0)
    values = rng.normal(size=(40, 5)) * [1, 1e9, 1e-9, 1, 1] + [0, 1e9, 0, 3, 0]
    values[:, 4] = values[:, 0] + values[:, 3]
    values[rng.random(values.shape) < 0.1] = np.nan
    is_number = np.array([True, True, True, False, True])
    whole = ColumnTraits.of(values, is_number)
    parts = ColumnTraits.of_blocks(lambda: [values[:1], values[1:25], values[25:]], is_number)
    assert whole is not None and parts is not None
    np.testing.assert_allclose(parts.variance, whole.variance)
    np.testing.assert_allclose(parts.explained, whole.explained)
    np.testing.assert_allclose(np.array(whole.variance)[is_number], np.nanvar(values, axis=0)[is_number])
    assert ColumnTraits.of(np.zeros((2, 200)), np.ones(200, dtype=bool)) is None
    none = ColumnTraits.of(values, np.zeros(5, dtype=bool))
    assert none is not None and np.isnan([none.variance, none.explained]).all()


@pytest.mark.parametrize(
    ("criterion", "expected"),
    [((1, 2, 3), 1), ((3, 2, 1), 0), ((1, 3, 2), 1 / 2), ((1, 1, 2), 3 / 4), ((0.3, 0.1 + 0.2, 0.3), 1 / 2)],
)
def test_share_of_arrows_upwards_counts_edges_and_no_longer_paths(
    criterion: tuple[float, ...], expected: float
) -> None:
    assert share_of_arrows_upwards(criterion, CHAIN) == expected
    assert share_of_arrows_upwards(criterion, CHAIN.T) == 1 - expected


def test_a_graph_without_edges_has_no_share() -> None:
    values = np.random.default_rng(0).normal(size=(20, 3))
    none = np.zeros((3, 3))
    shares = varsortability(values, none), r2_sortability(values, none), share_of_arrows_upwards([1, 2, 3], none)
    assert np.isnan(shares).all()
    assert np.isnan([varsortability([[1], [2]], [[0]]), r2_sortability([[1], [2]], [[0]])]).all()


@pytest.mark.parametrize("sortability", [varsortability, r2_sortability])
def test_bad_arrays_raise(sortability: Callable[..., float]) -> None:
    values = np.random.default_rng(0).normal(size=(20, 3))
    with pytest.raises(ValueError, match=r"graph must be a square matrix, got shape \(2, 3\)"):
        sortability(values, np.zeros((2, 3)))
    with pytest.raises(ValueError, match=r"values has shape \(20, 3\), but graph has 4 nodes"):
        sortability(values, np.zeros((4, 4)))
    with pytest.raises(ValueError, match="graph has a cycle"):
        sortability(values, CHAIN + CHAIN.T)
    with pytest.raises(ValueError, match="graph has a cycle"):
        sortability(values, np.eye(3))
    with pytest.raises(ValueError, match=r"graph contains NaN at \(0, 2\)"):
        sortability(values, [[0, 1, np.nan], [0, 0, 0], [0, 0, 0]])
    with pytest.raises(ValueError, match="values contains infinity in column 1"):
        sortability(values * [1, np.inf, 1], CHAIN)
    with pytest.raises(ValueError, match="values has only missing values in column 2"):
        sortability(values * [1, 1, np.nan], CHAIN)


def test_a_bad_criterion_raises() -> None:
    with pytest.raises(ValueError, match=r"criterion has shape \(2,\), but graph has 3 nodes"):
        share_of_arrows_upwards([1, 2], CHAIN)
    with pytest.raises(ValueError, match="criterion is NaN for node 1"):
        share_of_arrows_upwards([1, np.nan, 2], CHAIN)


def test_a_small_column_is_explained_by_the_difference_of_two_large_ones(rng: np.random.Generator) -> None:
    """Products of columns would lose the digits of the difference."""
    large, small, noise = rng.normal(size=(3, 500)) * np.array([[1], [1e-9], [1e-9]])
    values = np.column_stack([large, small, large + small + noise])
    expected = np.corrcoef(small, values[:, 2] - large)[0, 1] ** 2
    whole = ColumnTraits.of(values, np.ones(3, bool))
    blocks = ColumnTraits.of_blocks(lambda: np.array_split(values, 7), np.ones(3, bool))
    assert whole is not None
    assert blocks is not None
    np.testing.assert_allclose([whole.explained[1], blocks.explained[1]], expected, atol=0.01)
