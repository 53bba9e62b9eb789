"""Functions of items, in a module that workers can import."""

from __future__ import annotations

import os
import signal
import time
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np


def square(n: int) -> float:
    return n * n / 7


def slow_square(n: int) -> float:
    time.sleep(0.2)
    return square(n)


def process_of(_: int) -> int:
    return os.getpid()


def fails_at_two(n: int) -> float:
    if n == 2:
        raise FileNotFoundError(f"no table {n}")
    return square(n)


def dies_at_five(n: int) -> float:
    time.sleep(0.02)
    if n == 5:
        os.kill(os.getpid(), signal.SIGKILL)
    return square(n)


def dies_once(item: dict[str, Any]) -> float:
    """Kill the worker of the fifth item, unless there is a mark that it was done before."""
    mark = Path(item["marks"]) / "died"
    if item["n"] == 5 and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return square(item["n"])


@cache
def rows() -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    return X, X[:, 0] - X[:, 1] + 0.1 * rng.normal(size=60)


def fitted(item: dict[str, Any]) -> list[float]:
    """Fit a small network; return what it predicts, to the last bit."""
    from castlereg import CastleRegressor

    X, y = rows()
    model = CastleRegressor(item["beta"], hidden_layer_sizes=(4,), max_epochs=2, random_state=item["seed"])
    return [float(value) for value in model.fit(X, y).predict(X[:5])]
