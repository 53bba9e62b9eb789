"""The blocked propagation against one loop over edges."""

from __future__ import annotations

import numpy as np
import pytest

from castlereg.causal.synthetic import KnownWorld, random_dag, weighted_dag
from castlereg.causal.synthetic.equations import FUNCTIONS, TILE, TILES, propagate


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize(("n_nodes", "n_edges"), [(1, 0), (7, 21), (40, 60), (40, 780)])
def test_equals_a_loop_over_edges(function: str, n_nodes: int, n_edges: int) -> None:
    dag = weighted_dag(random_dag(n_nodes, n_edges, 0), 0.01, 0.2, 0).abs()  # 1 + exp(-x) overflows with both signs
    noise = np.random.default_rng(0).standard_normal((n_nodes, 150))
    expected, weights, done = noise.copy(), dag.to_numpy(), set()  # type: ignore[var-annotated]
    while len(done) < n_nodes:
        for k in range(n_nodes):
            if k not in done and set(np.flatnonzero(weights[:, k])) <= done:
                for j in np.flatnonzero(weights[:, k]):
                    expected[k] += weights[j, k] * FUNCTIONS[function](expected[j])
                done.add(k)
    propagate(KnownWorld(dag, function=function).equations, noise)
    np.testing.assert_allclose(noise, expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("n_rows", [1, TILE - 1, TILE, TILE + 1, TILE * TILES, TILE * TILES + 70])
def test_pieces_of_rows_change_nothing(n_rows: int) -> None:
    system = KnownWorld(random_dag(20, 60, 0), function="sine").equations
    noise = np.random.default_rng(0).standard_normal((20, n_rows))
    together, alone = noise.copy(), noise[:, -1:].copy()
    propagate(system, together)
    propagate(system, alone)
    np.testing.assert_allclose(together[:, -1:], alone, rtol=1e-12)
