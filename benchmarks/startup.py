"""From the start of a process to its imports, to ``castlereg --help``, and to the first fitted model."""

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


_STARTS = {
    "import sklearn": ["-c", "import sklearn"],
    "import jax, sklearn": ["-c", "import jax, sklearn"],
    "import castlereg": ["-c", "import castlereg"],
    "from castlereg import CastleRegressor": ["-c", "from castlereg import CastleRegressor"],
    "castlereg --help": ["-m", "castlereg", "--help"],
}
_FITS = {"scikit-learn's MLP": ["-c", _PEER], "castlereg, cold": ["-c", _OURS], "castlereg, warm": ["-c", _OURS]}


def _seconds(arguments: list[str], cache: str) -> float:
    environment = {**os.environ, "XDG_CACHE_HOME": cache}
    command = [sys.executable, "-W", "ignore", *arguments]
    start = time.perf_counter()
    subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


def run(repeats: int = 5) -> pd.DataFrame:
    """Return the table; each figure is the best of several runs; the runs of a round alternate."""
    seconds: dict[str, list[float]] = {name: [] for name in [*_STARTS, *_FITS]}
    for _ in range(repeats):
        with tempfile.TemporaryDirectory() as cache:
            for name, arguments in {**_STARTS, **_FITS}.items():
                seconds[name].append(_seconds(arguments, cache))
    table = []
    for what, group in (("ready", _STARTS), ("first fitted model (442 x 10)", _FITS)):
        reference = min(seconds[next(iter(group))])
        table += [(what, name, min(seconds[name]), min(seconds[name]) / reference) for name in group]
    return pd.DataFrame(table, columns=["until", "", "seconds", "times the first"])
