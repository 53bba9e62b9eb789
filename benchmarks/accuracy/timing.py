"""Seconds of our searches and of rivals in turn, on the same machine: ``python -m benchmarks.accuracy time``.

Rivals run in the environment of ``--rivals PYTHON``. Each fit has its own process; only the fit is timed.
"Again" is a second fit in the same process.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.accuracy.cells import Cell, Data

RESULTS = Path(__file__).with_name("seconds.csv")
TABLES = ("Boston", "bioconcentration", "Facebook", "heart", "Pima")  # up to 1,000 x 30
OURS, RIVALS = ("fast", "best"), ("CatBoost", "RealMLP")


def wide() -> Data:
    """Return 800 training rows of 80 mixed columns: 60 numbers, many of them redundant, and 20 texts."""
    rng = np.random.default_rng(0)
    n, hidden = 1000, rng.normal(size=(1000, 12))
    numbers = hidden @ rng.normal(size=(12, 60)) / 3 + 0.5 * rng.normal(size=(n, 60))
    X = pd.DataFrame(numbers, columns=[f"number {j}" for j in range(60)])
    for j in range(20):
        edges = np.sort(rng.normal(size=rng.integers(1, 5)))
        codes = np.digitize(hidden[:, j % 12] + 0.5 * rng.normal(size=n), edges)
        X[f"text {j}"] = np.array(list("abcdefgh"))[codes].astype(object)
    y = hidden[:, 0] + np.sin(2 * hidden[:, 1]) + hidden[:, 2] * hidden[:, 3] / 2 + 0.5 * rng.normal(size=n)
    y = pd.Series(y, name="y")
    return Data(X[:800], y[:800], X[800:], y[800:], False)


def problem(name: str, folder: Path) -> Data:
    """Return a table of the benchmark with all its rows, or the wide one."""
    return wide() if name == "800 x 80" else Cell(name, "plain", 0, 0).load(folder)


def work(method: str, name: str, folder: Path) -> None:
    """Fit in this process; print seconds and error as JSON."""
    from benchmarks.accuracy.cells import error

    warnings.simplefilter("ignore")
    data = problem(name, folder)
    if method in RIVALS:
        from benchmarks.accuracy import rivals

        model, fits = rivals.RIVALS[method](data), 1
    else:
        from benchmarks.accuracy.ours import OURS as OF_OURS

        model, fits = OF_OURS[method](data), 2
    seconds = []
    for _ in range(fits):
        begun = time.perf_counter()
        model.fit(data.X, data.y)
        seconds.append(time.perf_counter() - begun)
    thousand = pd.concat([data.X] * 20)[:1000]
    predict = model.predict_proba if data.classes else model.predict
    predict(thousand)
    times = []
    for _ in range(5):
        begun = time.perf_counter()
        predict(thousand)
        times.append(time.perf_counter() - begun)
    made = {"seconds": seconds[0], "again": seconds[-1], "predict_ms": 1000 * min(times)}
    print("RESULT" + json.dumps(made | {"error": error(data, predict(data.X_test))}), flush=True)


def measure(rivals_python: str, folder: Path, tables: tuple[str, ...] = (*TABLES, "800 x 80")) -> None:
    """Time all methods on all tables; our programs are recompiled for each."""
    rows = []
    for name in tables:
        for method in (*RIVALS, *OURS):
            with tempfile.TemporaryDirectory() as cache:
                python = rivals_python if method in RIVALS else sys.executable
                command = [python, "-m", "benchmarks.accuracy", "work", method, name]
                environment = {**os.environ, "JAX_COMPILATION_CACHE_DIR": cache, "CASTLEREG_DATA": str(folder)}
                environment.pop("OMP_NUM_THREADS", None)
                run = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
            line = next(line for line in run.stdout.splitlines() if line.startswith("RESULT"))
            rows.append({"table": name, "method": method, **json.loads(line.removeprefix("RESULT"))})
            print(rows[-1], flush=True)
            pd.DataFrame(rows).to_csv(RESULTS, index=False, float_format="%.4g")
