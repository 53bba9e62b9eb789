"""A grid of 40 networks (10 folds x 4 betas, 500 rows, 9 features, 200 epochs) against 40 scikit-learn MLPs."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
import warnings

import jax
import pandas as pd
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPRegressor

from benchmarks.problems import Stack, rows


def sklearn_seconds(n_fits: int) -> float:
    """Return the seconds of n fits of the same width, batch and epochs."""
    data = rows(500, 10)
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for seed in range(n_fits):
            MLPRegressor(
                hidden_layer_sizes=(10, 10),
                batch_size=32,
                max_iter=200,
                tol=0,
                n_iter_no_change=10_000,
                alpha=0,
                random_state=seed,
            ).fit(data[:450, :-1], data[:450, -1])
    return time.perf_counter() - start


def our_grid() -> Stack:
    """Return the 40 networks."""
    return Stack(n_nodes=10, width=10, n_members=40, n_rows=500, epochs=200, betas=(0.001, 0.01, 0.1, 1.0))


def fresh_process_seconds() -> float:
    """Return the seconds of a whole process that trains the grid, where another has left its programs in the cache."""
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "XDG_CACHE_HOME": cache}
        for _ in range(2):
            start = time.perf_counter()
            subprocess.run([sys.executable, "-m", "benchmarks.grid"], check=True, env=environment)
    return time.perf_counter() - start


def run() -> pd.DataFrame:
    """Return the table."""
    fresh = fresh_process_seconds()
    jax.config.update("jax_enable_compilation_cache", False)
    stack = our_grid()
    first = stack.train()
    steady = [stack.train()]
    peer = sklearn_seconds(40)
    steady.append(stack.train())  # before and after the peer, so that a slow minute hits both
    jax.config.update("jax_enable_compilation_cache", True)
    ours = sum(steady) / 2
    return pd.DataFrame(
        [
            ("scikit-learn, 40 plain MLPs one after the other", peer, 1.0),
            ("castlereg, 40 CASTLE networks, compilation included", first, peer / first),
            ("castlereg, the same from the start of a process, warm cache", fresh, peer / fresh),
            ("castlereg, 40 CASTLE networks, steady", ours, peer / ours),
        ],
        columns=["", "seconds", "times as fast"],
    )


if __name__ == "__main__":
    our_grid().train()
