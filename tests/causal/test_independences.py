"""Independences: scores against plain regressions, orders against enumeration, classes against all members."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import norm

from castlereg.causal import independences as module
from castlereg.causal.independences import compelled_edges, independences
from castlereg.causal.judge import Column

Edges = NDArray[np.bool_]


def columns_of(values: NDArray[np.float64]) -> list[Column]:
    return [Column((x - x.mean()) / x.std()) for x in values.T]


def free(p: int) -> tuple[Edges, Edges]:
    return ~np.eye(p, dtype=bool), np.zeros((p, p), bool)


def random_graph(rng: np.random.Generator, p: int, share: float = 0.5) -> Edges:
    order = rng.permutation(p)
    return np.triu(rng.random((p, p)) < share, 1)[np.ix_(order, order)]


def structure(edges: Edges) -> tuple[bytes, frozenset[tuple[int, int, int]]]:
    """Return what all graphs of a class share: the joined pairs and the colliders."""
    joined = edges | edges.T
    colliders = {
        (i, k, j)
        for k in range(len(edges))
        for i, j in itertools.combinations(np.flatnonzero(edges[:, k]).tolist(), 2)
        if not joined[i, j]
    }
    return joined.tobytes(), frozenset(colliders)


def is_acyclic(edges: Edges) -> bool:
    return not np.linalg.matrix_power(edges.astype(float) + np.eye(len(edges)), len(edges)).diagonal().max() > 1


@pytest.mark.parametrize("seed", range(8))
def test_compelled_edges_are_those_of_all_graphs_of_the_class(seed: int) -> None:
    rng = np.random.default_rng(seed)
    edges = random_graph(rng, 5)
    pairs = [tuple(pair) for pair in np.argwhere(np.triu(edges | edges.T)).tolist()]
    members = []
    for ways in itertools.product((False, True), repeat=len(pairs)):
        other = np.zeros_like(edges)
        for (j, k), forward in zip(pairs, ways, strict=True):
            other[(j, k) if forward else (k, j)] = True
        if is_acyclic(other) and structure(other) == structure(edges):
            members.append(other)
    np.testing.assert_array_equal(compelled_edges(edges[None])[0], np.all(members, axis=0))


def test_scores_of_sets_are_those_of_regressions() -> None:
    rng = np.random.default_rng(0)
    values = rng.normal(size=(300, 4)) @ rng.normal(size=(4, 4))
    correlation = np.corrcoef(values.T)[None]
    scores = module._scores(correlation, np.arange(4), 3, np.arange(3), np.zeros(4, bool), 300)
    z = (values - values.mean(axis=0)) / values.std(axis=0)
    for mask in range(8):
        causes = [k for k in range(3) if mask >> k & 1]
        residual = z[:, 3]
        if causes:
            residual = residual - z[:, causes] @ np.linalg.lstsq(z[:, causes], residual, rcond=None)[0]
        expected = -150 * np.log(np.mean(residual**2)) - 0.5 * np.log(300) * len(causes)
        assert scores[0, mask] == pytest.approx(expected, rel=1e-6)


def test_blocks_of_channels_count_as_one_column() -> None:
    """The score of a block is the same, up to a constant, in both directions: it cannot see which is the cause."""
    rng = np.random.default_rng(1)
    shared = rng.normal(size=(400, 1))
    values = np.concatenate([shared + rng.normal(size=(400, 2)), shared + rng.normal(size=(400, 3))], axis=1)
    correlation, owner = np.corrcoef(values.T)[None], np.array([0, 0, 1, 1, 1])
    none = np.zeros(2, bool)
    first = module._scores(correlation, owner, 0, np.array([1]), none, 400)[0]
    second = module._scores(correlation, owner, 1, np.array([0]), none, 400)[0]
    assert first[1] - first[0] == pytest.approx(second[1] - second[0], rel=1e-9)
    assert first[1] > first[0]


def test_the_best_subset_of_every_set_is_found() -> None:
    scores = np.random.default_rng(2).normal(size=(3, 16))
    best, chosen = module._best_within(scores)
    for member, mask in itertools.product(range(3), range(16)):
        subsets = [s for s in range(16) if s & ~mask == 0]
        assert best[member, mask] == max(scores[member, s] for s in subsets)
        assert scores[member, chosen[member, mask]] == best[member, mask]


@pytest.mark.parametrize("seed", range(5))
def test_the_search_over_orders_finds_the_best_one(seed: int) -> None:
    rng = np.random.default_rng(seed)
    edges = random_graph(rng, 5)
    values = np.zeros((400, 5))
    noise = rng.normal(size=(400, 5))
    for _ in range(5):
        values = values @ (edges * 0.8) + noise
    correlation = np.corrcoef(values.T)[None]
    candidates = [np.array([j for j in range(5) if j != k]) for k in range(5)]
    tables = [module._scores(correlation, np.arange(5), k, candidates[k], np.zeros(5, bool), 400) for k in range(5)]
    best = [module._best_within(table)[0] for table in tables]

    def total(order: tuple[int, ...]) -> float:
        rank = np.argsort(order)[None]
        return float(sum(best[k][0, module._sets(rank, k, candidates[k])[0]] for k in range(5)))

    _, orders = module._best_graphs(tables, candidates, np.random.default_rng(0))
    assert total(tuple(orders[0])) == pytest.approx(max(map(total, itertools.permutations(range(5)))), abs=1e-6)


def test_colliders_are_compelled_and_chains_are_not() -> None:
    rng = np.random.default_rng(3)
    a, b, noise = rng.normal(size=(3, 2000))
    effect = a + b + noise
    after = effect + rng.normal(size=2000)
    found = independences(columns_of(np.stack([a, b, effect, after], axis=1)), *free(4))
    assert found.compelled[[0, 1, 2], [2, 2, 3]].min() > 0.9
    chain = independences(columns_of(np.stack([a, a + b, a + b + noise], axis=1)), *free(3))
    assert chain.either[[0, 1], [1, 2]].min() > 0.8 and chain.compelled.max() < 0.2


def test_relations_that_rise_and_fall_join() -> None:
    x, noise = np.random.default_rng(4).normal(size=(2, 1000))
    found = independences(columns_of(np.stack([x, x**2 + 0.5 * noise], axis=1)), *free(2))
    assert found.either[0, 1] == 1


def test_shapes_are_not_seen() -> None:
    """A pair has the same score in both directions, whatever its functions and noise."""
    rng = np.random.default_rng(5)
    x = rng.uniform(-1, 1, 2000)
    y = x**3 + 0.1 * rng.uniform(-1, 1, 2000)
    found = independences(columns_of(np.stack([x, y], axis=1)), *free(2))
    assert found.either[0, 1] == 1 and not found.compelled.any()


def test_knowledge_holds_in_every_sample() -> None:
    rng = np.random.default_rng(6)
    x = rng.normal(size=800)
    values = np.stack([x, x + rng.normal(size=800), rng.normal(size=800)], axis=1)
    allowed, required = free(3)
    allowed[1, 0] = False
    required[2, 0] = True
    found = independences(columns_of(values), allowed, required)
    assert found.compelled[0, 1] == 1 and found.compelled[2, 0] == 1


def test_missing_cells_and_levels() -> None:
    rng = np.random.default_rng(7)
    a, b = rng.normal(size=(2, 1500))
    level = (a + b + 0.5 * rng.normal(size=1500) > np.array([[-0.7], [0.7]])).sum(axis=0).astype(float)
    present = rng.random(1500) > 0.2 * norm.cdf(b)
    columns = [Column(np.where(present, a, 0.0), present=present), Column(b), Column(level, 3, kind="levels")]
    found = independences(columns, *free(3))
    assert found.compelled[:2, 2].min() > 0.75 and found.compelled[2].max() == 0
