"""Prediction of 100,000 rows against scikit-learn's MLP of the same width."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.neural_network import MLPRegressor

from castlereg import CastleRegressor


def _best(predict: Callable[[NDArray[np.float64]], Any], X: NDArray[np.float64], repeats: int = 15) -> float:
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        predict(X)
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def run() -> pd.DataFrame:
    """Return the table."""
    table = []
    for d in (10, 50):
        rng = np.random.default_rng(0)
        X, many = rng.standard_normal((400, d)), rng.standard_normal((100_000, d))
        y = X[:, 0] + 0.1 * rng.standard_normal(400)
        ours = CastleRegressor(max_epochs=5, random_state=0).fit(X, y)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            peer = MLPRegressor(hidden_layer_sizes=(d + 1, d + 1), max_iter=5, random_state=0).fit(X, y)
        for n_rows in (100_000, 1):
            mine, theirs = _best(ours.predict, many[:n_rows]), _best(peer.predict, many[:n_rows])
            table.append((f"{n_rows:,} x {d}", theirs * 1e3, mine * 1e3, mine / theirs))
    return pd.DataFrame(table, columns=["rows x features", "scikit-learn, ms", "castlereg, ms", "ratio"])
