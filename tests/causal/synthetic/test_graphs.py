"""Random graphs."""

from __future__ import annotations

from collections.abc import Callable

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from scipy import stats

from castlereg.causal.synthetic import erdos_renyi_dag, example_dag, random_dag, scale_free_dag, weighted_dag
from castlereg.causal.synthetic.graphs import edge_weights

DRAWS: dict[str, Callable[[int, int], pd.DataFrame]] = {
    "random": lambda n, seed: random_dag(n, random_state=seed),
    "erdos_renyi": lambda n, seed: erdos_renyi_dag(n, 0.3, seed),
    "scale_free": lambda n, seed: scale_free_dag(n, 2, seed),
}


def is_acyclic(dag: pd.DataFrame) -> bool:
    return bool(nx.is_directed_acyclic_graph(nx.from_pandas_adjacency(dag, create_using=nx.DiGraph)))


def test_example_graph_is_the_papers() -> None:
    dag = example_dag()
    edges = {(cause, effect) for cause in dag for effect in dag if dag.loc[cause, effect]}
    expected = ["X1-X2", "X1-X3", "X1-X4", "X2-X5", "X2-Y", "X3-Y", "X3-X6", "X3-X7", "X6-X9", "Y-X8", "Y-X9"]
    assert edges == {tuple(edge.split("-")) for edge in expected}


@pytest.mark.parametrize(("p", "edges"), [(1, 0), (2, 0), (5, 10), (15, 45), (30, 60)])
def test_random_graphs_are_acyclic_with_the_edges_asked_for(p: int, edges: int) -> None:
    for seed in range(5):
        dag = random_dag(p, edges, seed)
        assert int(dag.to_numpy().sum()) == edges
        assert is_acyclic(dag)


def test_random_graphs_are_those_of_earlier_versions() -> None:
    """Published figures rest on these draws."""
    earlier = [[2, 3], [2, 4], [3, 0], [3, 1]]
    assert np.argwhere(random_dag(5, 4, 0).to_numpy()).tolist() == earlier
    assert np.argwhere(random_dag(5, 4, np.random.default_rng(0)).to_numpy()).tolist() == earlier


@pytest.mark.parametrize("name", DRAWS)
def test_every_kind_is_acyclic_and_repeats_for_a_seed(name: str) -> None:
    for seed in range(20):
        dag = DRAWS[name](12, seed)
        assert is_acyclic(dag)
        assert set(np.unique(dag)) <= {0, 1}
        pd.testing.assert_frame_equal(dag, DRAWS[name](12, seed))
    assert not DRAWS[name](12, 0).equals(DRAWS[name](12, 1))


@pytest.mark.parametrize("name", DRAWS)
def test_no_global_random_state_is_used(name: str) -> None:
    np.random.seed(0)
    before = np.random.get_state()[1].copy()  # type: ignore[index]
    DRAWS[name](8, 0)
    np.testing.assert_array_equal(before, np.random.get_state()[1])  # type: ignore[index]


def test_every_edge_is_as_likely_as_any_other() -> None:
    """Chi-square over 2000 draws of about 6 of the 30 directed edges of six nodes."""
    rng = np.random.default_rng(0)
    off_diagonal = ~np.eye(6, dtype=bool)
    for draw in (lambda: random_dag(6, 6, rng), lambda: erdos_renyi_dag(6, 0.4, rng)):
        counts = sum(draw().to_numpy() for _ in range(2000))[off_diagonal]
        assert (counts > 0).all()
        assert stats.chisquare(counts).pvalue > 0.001


def test_every_edge_of_a_scale_free_graph_is_possible() -> None:
    rng = np.random.default_rng(0)
    counts = sum(scale_free_dag(6, 1, rng).to_numpy() for _ in range(1000))
    assert (counts[~np.eye(6, dtype=bool)] > 0).all()


@pytest.mark.parametrize(("branching", "edges"), [(0, 0), (1, 10), (2.5, 25), (4.5, 45), (5, 45), (10, 45)])
def test_branching_gives_edges_per_node_or_as_many_as_fit(branching: float, edges: int) -> None:
    assert int(random_dag(10, branching=branching, random_state=3).to_numpy().sum()) == edges


def test_sampled_branching_is_uniform_up_to_the_number_of_nodes() -> None:
    rng = np.random.default_rng(0)
    counts = [int(random_dag(8, random_state=rng).to_numpy().sum()) for _ in range(1600)]
    numbers = np.array([counts.count(edges) for edges in (8, 16, 24, 28)])  # from 4 on the graph is complete
    assert numbers.sum() == 1600
    assert stats.chisquare(numbers, [200, 200, 200, 1000]).pvalue > 0.001


def test_erdos_renyi_has_binomial_edge_counts() -> None:
    rng = np.random.default_rng(0)
    counts = [int(erdos_renyi_dag(20, expected_edges=40, random_state=rng).to_numpy().sum()) for _ in range(500)]
    assert np.mean(counts) == pytest.approx(40, abs=4 * np.sqrt(40 / 500))
    assert np.var(counts) == pytest.approx(40 * (1 - 40 / 190), rel=0.2)
    assert erdos_renyi_dag(5, 1.0, 0).to_numpy().sum() == 10
    assert erdos_renyi_dag(5, 0, 0).to_numpy().sum() == 0


def test_scale_free_graphs_have_hubs() -> None:
    degrees = {"scale free": [], "random": []}  # type: dict[str, list[int]]
    for seed in range(5):
        dag = scale_free_dag(200, 2, seed)
        edges = int(dag.to_numpy().sum())
        assert edges == 2 + 2 * (200 - 3)  # a star of three nodes, then two for each node that joins
        assert dag.sum(axis=0).max() == 2
        degrees["scale free"].append(int(dag.sum(axis=1).max()))
        degrees["random"].append(int(random_dag(200, edges, seed).sum(axis=1).max()))
    assert min(degrees["scale free"]) > 1.5 * max(degrees["random"])


def test_weights_lie_within_their_bounds_with_both_signs() -> None:
    dag = random_dag(40, 300, 0)
    weights = weighted_dag(dag, 0.5, 2.0, 0)
    np.testing.assert_array_equal(weights != 0, dag != 0)
    sizes = weights.abs().to_numpy()[dag.to_numpy() != 0]
    assert stats.kstest(sizes, stats.uniform(0.5, 1.5).cdf).pvalue > 0.01
    assert 0.4 < (weights.to_numpy()[dag.to_numpy() != 0] > 0).mean() < 0.6


def test_too_many_edges_are_refused() -> None:
    with pytest.raises(ValueError, match="n_edges=7 is too large: 4 nodes have at most 6 edges"):
        random_dag(4, 7, 0)


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda: random_dag(0, 0, 0), "n_nodes=0 must be a whole number"),
        (lambda: random_dag(4, -1, 0), "n_edges=-1 must be"),
        (lambda: random_dag(4, 3, 0, branching=1), "n_edges=3 and branching=1"),
        (lambda: random_dag(4, branching=-1), "branching=-1 must be at least 0"),
        (lambda: erdos_renyi_dag(4), "pass exactly one of them"),
        (lambda: erdos_renyi_dag(4, 0.5, expected_edges=2), "pass exactly one of them"),
        (lambda: erdos_renyi_dag(4, 1.5), "probability=1.5"),
        (lambda: erdos_renyi_dag(4, expected_edges=7), "expected_edges=7 is too large: 4 nodes have at most 6"),
        (lambda: scale_free_dag(3, 3), "edges_per_node=3 must be less than n_nodes=3"),
        (lambda: weighted_dag(example_dag(), 0), "low=0 must be greater than 0"),
        (lambda: weighted_dag(example_dag(), 2, 1), "high=1 must be at least 2"),
    ],
)
def test_bad_arguments_are_refused_by_value(draw: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        draw()


def test_frames_that_are_no_graphs_are_refused() -> None:
    with pytest.raises(ValueError, match="a cycle: a -> b -> a"):
        edge_weights(pd.DataFrame([[0, 1], [1, 0]], index=["a", "b"], columns=["a", "b"]))
    with pytest.raises(ValueError, match="same unique names"):
        edge_weights(pd.DataFrame([[0, 1], [0, 0]], index=["a", "b"], columns=["b", "a"]))
    with pytest.raises(ValueError, match="not finite"):
        edge_weights(pd.DataFrame([[0, np.nan], [0, 0]], index=["a", "b"], columns=["a", "b"]))
    with pytest.raises(TypeError, match="must be a DataFrame"):
        edge_weights(np.zeros((2, 2)))  # type: ignore[arg-type]
