"""The timed cases: each is a function that returns seconds, for the engine of this process."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pandas as pd
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.neural_network import MLPRegressor

from benchmarks.problems import Stack, product_rate, rows
from castlereg import CastleRegressorCV
from castlereg.training.engines import native
from castlereg_paper import compare

STACKS = {
    "10 nodes x width 10, 40 networks": Stack(n_nodes=10, width=10, n_members=40, n_rows=500, epochs=100),
    "50 nodes x width 50, 10 networks": Stack(n_nodes=50, width=50, n_members=10, n_rows=2500, epochs=4),
    "100 nodes x width 100, 2 networks": Stack(n_nodes=100, width=100, n_members=2, n_rows=1000, epochs=4),
}
SIZES = [(10, 8), (10, 32), (10, 256), (50, 8), (50, 64), (50, 128), (100, 16), (100, 64), (400, 8), (400, 32)]


def use(engine: str) -> None:
    """Train on an engine in this process: for JAX, as if the kernels were not installed."""
    if engine == "jax":
        native.kernels = lambda: None  # type: ignore[assignment]
        jax.config.update("jax_enable_compilation_cache", False)


def grid_seconds() -> dict[str, float]:
    """Return the seconds of a grid of 40 networks, steady, and of 40 networks of scikit-learn."""
    stack = Stack(n_nodes=10, width=10, n_members=40, n_rows=500, epochs=200, betas=(0.001, 0.01, 0.1, 1.0))
    stack.train()
    ours = [stack.train(), stack.train()]
    peer = _seconds(_forty_mlps)
    ours += [stack.train(), stack.train()]  # before and after the peer, so that a slow minute hits both
    return {"seconds": float(np.mean(ours)), "peer": peer}


def _forty_mlps() -> None:
    """Fit scikit-learn's network 40 times, with the width, batches and epochs of the grid."""
    data, options = rows(500, 10), {"hidden_layer_sizes": (10, 10), "batch_size": 32, "alpha": 0, "tol": 0}
    for seed in range(40):
        peer = MLPRegressor(**options, max_iter=200, n_iter_no_change=10_000, random_state=seed)
        peer.fit(data[:450, :-1], data[:450, -1])


def throughput(name: str) -> dict[str, float]:
    """Return the operations per second of training, and of a large product."""
    stack = STACKS[name]
    stack.train()
    before = product_rate()
    seconds = min(stack.train() for _ in range(5))
    return {"seconds": seconds, "rate": stack.flops / seconds, "limit": max(before, product_rate())}


def comparison_seconds() -> dict[str, float]:
    """Return the seconds of the first comparison of ten methods in a process, and of ten searches of scikit-learn."""
    data, folds = rows(500, 11), KFold(10, shuffle=True, random_state=0)
    ours = _seconds(lambda: compare(data[:, :-1], data[:, -1], cv=folds, random_state=0, verbose=False))

    def ten_searches() -> None:
        for seed in range(10):
            search = GridSearchCV(MLPRegressor(random_state=seed), {"alpha": [1e-4]}, cv=folds)
            search.fit(data[:400, :-1], data[:400, -1])

    return {"seconds": ours, "peer": _seconds(ten_searches)}


def search_seconds() -> dict[str, float]:
    """Return the seconds of the default search on 1,000 rows x 20 mixed columns, the first time and again."""
    X, y = mixed_table(1000, 20)
    first = _seconds(lambda: CastleRegressorCV(random_state=0, verbose=False).fit(X, y))
    return {"seconds": first, "again": _seconds(lambda: CastleRegressorCV(random_state=0, verbose=False).fit(X, y))}


def steps(nodes: int, width: int, members: int) -> dict[str, float]:
    """Return the seconds of an epoch without those of the first call, and whether the native engine trained."""
    epochs = 5 if nodes * width > 1000 else 200
    stack = Stack(n_nodes=nodes, width=width, n_members=members, n_rows=1100, epochs=1)
    longer = Stack(n_nodes=nodes, width=width, n_members=members, n_rows=1100, epochs=epochs)
    stack.train(), longer.train()
    begin, whole = (min(one.train() for _ in range(3)) for one in (stack, longer))
    return {"seconds": (whole - begin) / (epochs - 1), "is_native": float(stack.trained().engine == "native")}


def mixed_table(rows: int, columns: int) -> tuple[pd.DataFrame, Any]:
    """Return a table of numbers and text whose target depends on some of its columns."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(rows, columns)), columns=[f"x{i}" for i in range(columns)])
    target = table["x0"] * table["x1"] + np.sin(2 * table["x2"]) + table["x3"] + rng.normal(size=rows)
    for i in range(0, columns, 4):
        table[f"x{i}"] = np.array(["low", "middle", "high"])[np.digitize(table[f"x{i}"], [-0.5, 0.5])]
    return table, target.to_numpy()


def _seconds(call: Callable[[], Any]) -> float:
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        call()
    return time.perf_counter() - start


def run(case: str) -> dict[str, float]:
    """Run a case by its name."""
    match case.split(":"):
        case ["grid"]:
            return grid_seconds()
        case ["throughput", name]:
            return throughput(name)
        case ["compare"]:
            return comparison_seconds()
        case ["search"]:
            return search_seconds()
        case ["steps", nodes, width, members]:
            return steps(int(nodes), int(width), int(members))
    raise ValueError(f"there is no case {case!r}")


CASES = [
    "grid",
    *(f"throughput:{name}" for name in STACKS),
    "compare",
    "search",
    *(f"steps:{nodes}:{width}:{members}" for nodes, width in SIZES for members in (1, 2)),
]
