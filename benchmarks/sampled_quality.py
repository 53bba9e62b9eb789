"""400 columns: test error with 20 sub-networks a step and with all, trained for the same time."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pandas as pd

from castlereg import Castle, CastleRegressor, Recipe
from castlereg.causal import KnownWorld, random_dag


def _problem(seed: int) -> tuple[pd.DataFrame, pd.Series, pd.DataFrame, pd.Series]:
    model = KnownWorld(random_dag(401, 1200, seed), function="sigmoid", noise_std=0.5, random_state=seed)
    data = model.sample(4000, seed)
    target = (model.dag != 0).sum().idxmax()
    X, y = data.drop(columns=target), data[target]
    return X[:1500], y[:1500], X[1500:], y[1500:]


def _fit(features_per_step: int | None, epochs: int, seed: int, problem: Any) -> tuple[float, float]:
    X, y, X_test, y_test = problem
    castle = Castle(features_per_step=features_per_step, acyclicity="auto")
    options: dict[str, Any] = {"castle": castle, "hidden_layer_sizes": (32, 32), "random_state": seed}
    CastleRegressor(max_epochs=1, **options).fit(X, y)  # compile
    start = time.perf_counter()
    model = CastleRegressor(max_epochs=epochs, recipe=Recipe(patience=epochs), **options).fit(X, y)
    seconds = time.perf_counter() - start
    return float(np.mean((model.predict(X_test) - y_test) ** 2) / np.var(y_test)), seconds


def run(epochs: int = 20) -> pd.DataFrame:
    """Return the table; the epochs of the sampled network are as many as fit into the time of the other."""
    table = []
    for seed in range(3):
        problem = _problem(seed)
        everything, budget = _fit(None, epochs, seed, problem)
        _, pilot = _fit(20, epochs, seed, problem)
        more = max(1, int(epochs * budget / pilot))
        few, seconds = _fit(20, more, seed, problem)
        table.append((seed, epochs, budget, everything, more, seconds, few, few / everything))
    columns = ["seed", "epochs, all", "seconds", "error", "epochs, 20 a step", "seconds ", "error ", "ratio of errors"]
    return pd.DataFrame(table, columns=columns)
