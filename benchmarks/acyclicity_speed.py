"""Value and gradient of the acyclicity functions, in float32 matrix products of the same size.

Processor time of the whole process, which other programs disturb less than the clock's.
``python -m benchmarks.acyclicity_speed training`` measures what a whole epoch costs with three of them instead.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Final

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
from jax import Array, lax

from benchmarks.problems import Stack
from castlereg.acyclicity import Acyclicity, log_determinant, trace_exponential
from castlereg.causal import random_dag
from castlereg.training.engines.jax_engine import prepare_jax
from castlereg_paper.acyclicity import spectral_radius, trace_polynomial, truncated_series

FUNCTIONS: Final[dict[str, Acyclicity]] = {
    "expm": trace_exponential,
    "series": truncated_series,
    "logdet": log_determinant,
    "polynomial": trace_polynomial,
    "spectral": spectral_radius,
}
SIZES = (10, 50, 100, 200, 400, 1000)
# The paper's network, and one as wide tables are trained with.
STACKS = (
    Stack(n_nodes=100, width=100, n_members=1, n_rows=320, epochs=2),
    Stack(n_nodes=200, width=32, n_members=1, n_rows=320, epochs=2, features_per_step=20),
    Stack(n_nodes=400, width=32, n_members=1, n_rows=320, epochs=2, features_per_step=20),
)
TRAINED = ("expm", "logdet", "spectral")


def trained_like(n_nodes: int, seed: int = 0) -> Array:
    """Return squared edge weights as trained networks have them: a graph without cycles, and weak edges everywhere.

    The norm is 0.6, as in networks of the recovery problems.
    """
    rng = np.random.default_rng(seed)
    weights = random_dag(n_nodes, 5 * n_nodes // 3, rng).to_numpy() ** 2 + rng.random((n_nodes, n_nodes)) / n_nodes
    np.fill_diagonal(weights, 0)
    norm = min(weights.sum(axis=0).max(), weights.sum(axis=1).max())
    return jnp.asarray(weights * 0.6 / norm, jnp.float32)


def _seconds(evaluate: Callable[[Array], Array], adjacency: Array, rounds: int) -> Callable[[], float]:
    """Return a clock of one evaluation inside a compiled loop."""

    def repeated(adjacency: Array) -> Array:
        # What is added is lost to rounding, but the compiler does not know.
        return lax.fori_loop(0, rounds, lambda _, a: a + 1e-30 * evaluate(a), adjacency)

    compiled = jax.jit(repeated)
    compiled(adjacency).block_until_ready()

    def clock() -> float:
        start = time.process_time()
        compiled(adjacency).block_until_ready()
        return (time.process_time() - start) / rounds

    return clock


def _gradient_and_value(name: str) -> Callable[[Array], Array]:
    def evaluate(adjacency: Array) -> Array:
        value, gradient = jax.value_and_grad(FUNCTIONS[name])(adjacency)
        return gradient + value

    return evaluate


def run(sizes: tuple[int, ...] = SIZES, repeats: int = 7) -> pd.DataFrame:
    """Return the table; each figure is the best of several runs; the runs of a round alternate."""
    prepare_jax()
    table = []
    for n_nodes in sizes:
        adjacency = trained_like(n_nodes)
        rounds = max(2, min(1000, int(1e8 / n_nodes**3)))
        clocks = {"product": _seconds(lambda a: jnp.matmul(a, a), adjacency, rounds)}
        clocks |= {name: _seconds(_gradient_and_value(name), adjacency, rounds) for name in FUNCTIONS}
        best = dict.fromkeys(clocks, np.inf)
        for _ in range(repeats):
            for name, clock in clocks.items():
                best[name] = min(best[name], clock())
        ratios = {name: best[name] / best["product"] for name in FUNCTIONS}
        table.append({"nodes": n_nodes, "product, us": best["product"] * 1e6, **ratios})
    return pd.DataFrame(table)


def training(repeats: int = 5) -> pd.DataFrame:
    """Return seconds of an epoch of nine steps by acyclicity function."""
    table = []
    for stack in STACKS:
        stacks = {name: replace(stack, acyclicity=FUNCTIONS[name]) for name in TRAINED}
        best = dict.fromkeys(stacks, np.inf)
        for _ in range(repeats + 1):  # the first compiles
            for name, one in stacks.items():
                start = time.process_time()
                one.train()
                best[name] = min(best[name], (time.process_time() - start) / one.epochs)
        table.append({"nodes": stack.n_nodes, "width": stack.width, "features a step": stack.features_per_step, **best})
    return pd.DataFrame(table)


if __name__ == "__main__":
    measured = training() if sys.argv[1:] == ["training"] else run()
    print(measured.to_string(index=False, float_format=lambda v: f"{v:.3g}"))
