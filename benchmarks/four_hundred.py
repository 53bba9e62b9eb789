"""400 columns of width 32, batches of 32: a step, the time until training starts, and prediction; with peers."""

from __future__ import annotations

import time
import warnings

import numpy as np
import pandas as pd
from sklearn.neural_network import MLPRegressor

from benchmarks.problems import Stack, product_rate, rows
from castlereg import Castle, CastleRegressor

# The authors' released code on one core of a machine whose two-core product runs at about 180 GFLOP/s.
RELEASED_STEP, RELEASED_PRODUCT = 0.127, 180e9
ROWS, EPOCHS = 1000, 8


def step_seconds(features_per_step: int | None) -> tuple[float, float]:
    """Return the seconds of a training step, and from the first call to the end of its first epoch."""
    stack = Stack(401, 32, 1, ROWS, EPOCHS, features_per_step=features_per_step, acyclicity="auto")
    short = Stack(401, 32, 1, ROWS, 1, features_per_step=features_per_step, acyclicity="auto")
    ready = short.train()
    stack.train()
    # What does not depend on the number of epochs cancels.
    whole, first = (min(one.train() for _ in range(3)) for one in (stack, short))
    steps = -(-ROWS * 9 // 10 // 32)
    return (whole - first) / (EPOCHS - 1) / steps, ready


def prediction_ratio() -> tuple[float, float]:
    """Return the seconds of 1000 rows x 400 features: scikit-learn's MLP of the same width, and ours."""
    data = rows(1000, 401).astype(np.float64)
    X, y = data[:, :-1], data[:, -1]
    castle = Castle(features_per_step=20, acyclicity="auto")
    ours = CastleRegressor(castle=castle, hidden_layer_sizes=(32, 32), max_epochs=1, random_state=0)
    ours.fit(X[:200], y[:200])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        peer = MLPRegressor(hidden_layer_sizes=(32, 32), max_iter=2, random_state=0).fit(X, y)
    seconds: list[list[float]] = [[], []]
    for _ in range(200):
        for model, own in zip((peer, ours), seconds, strict=True):  # in turn, so that a slow moment hits both
            start = time.perf_counter()
            model.predict(X)
            own.append(time.perf_counter() - start)
    return float(np.median(seconds[0])), float(np.median(seconds[1]))


def run() -> pd.DataFrame:
    """Return the table."""
    before = product_rate()
    everything, ready = step_seconds(None)
    few, ready_few = step_seconds(20)
    rate = max(before, product_rate())
    released = RELEASED_STEP * RELEASED_PRODUCT / rate
    theirs, ours = prediction_ratio()
    table = [
        ("product of this run, GFLOP/s", rate / 1e9, np.nan),
        ("released code, a step, scaled to it, ms", released * 1e3, 1.0),
        ("all sub-networks, a step, ms (times as fast as released)", everything * 1e3, released / everything),
        ("20 a step, ms (times as cheap as all)", few * 1e3, everything / few),
        ("all: first call to the end of the first epoch, s", ready, np.nan),
        ("20: first call to the end of the first epoch, s", ready_few, np.nan),
        ("prediction of 1000 rows, ms (times scikit-learn's)", ours * 1e3, ours / theirs),
    ]
    return pd.DataFrame(table, columns=["", "value", "ratio"])
