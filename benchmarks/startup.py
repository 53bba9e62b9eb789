"""From the start of a process to the first fitted model, and the time of the imports alone."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time

import pandas as pd

_DATA = "from sklearn.datasets import load_diabetes; X, y = load_diabetes(return_X_y=True)"
_OURS = f"{_DATA}; from castlereg import CastleRegressor; CastleRegressor(random_state=0).fit(X, y)"
_PEER = f"""{_DATA}; from sklearn.neural_network import MLPRegressor
model = MLPRegressor(hidden_layer_sizes=(11, 11), batch_size=32, early_stopping=True, n_iter_no_change=30)
model.fit(X, y)
"""


def _seconds(script: str, cache: str) -> float:
    environment = {**os.environ, "XDG_CACHE_HOME": cache}
    start = time.perf_counter()
    subprocess.run([sys.executable, "-W", "ignore", "-c", script], check=True, env=environment)
    return time.perf_counter() - start


def run(repeats: int = 5) -> pd.DataFrame:
    """Return the table; each figure is the best of some runs, those of one round side by side."""
    imports: dict[str, list[float]] = {"import jax, sklearn": [], "import castlereg": []}
    fits: dict[str, list[float]] = {"scikit-learn's MLP": [], "castlereg, cold": [], "castlereg, warm": []}
    for _ in range(repeats):
        with tempfile.TemporaryDirectory() as cache:
            for script, seconds in imports.items():
                seconds.append(_seconds(script, cache))
            fits["scikit-learn's MLP"].append(_seconds(_PEER, cache))
            fits["castlereg, cold"].append(_seconds(_OURS, cache))
            fits["castlereg, warm"].append(_seconds(_OURS, cache))
    table = []
    for what, group in (("import", imports), ("first fitted model (442 x 10)", fits)):
        reference = min(next(iter(group.values())))
        for name, seconds in group.items():
            table.append((what, name, min(seconds), min(seconds) / reference))
    return pd.DataFrame(table, columns=["until", "", "seconds", "times the first"])
