"""Memory of a long-running process: 200 fits of 60 different shapes, and 1,000 models loaded to predict.

Another process trains 10,000 small stacks with the native engine (``python -m benchmarks.memory native``). A process
ends with exit code 1 if memory or memory maps exceed their limits.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import warnings
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

MOST_MB, MOST_MAPS = 1000, 10_000
FITS, SHAPES, LOADS, EVERY = 200, 60, 1000, 20
NATIVE_FITS, NATIVE_SHAPES, MOST_GROWTH_MB = 10_000, 40, 20  # growth after the first tenth of the fits


def used() -> dict[str, int]:
    """Return megabytes in memory and the number of memory maps of this process, of Linux."""
    status = Path("/proc/self/status").read_text()
    maps = Path("/proc/self/maps").read_text().count("\n")
    return {"MB": int(status.split("VmRSS:")[1].split()[0]) * 1024 // 10**6, "maps": maps}


def fit(shape: int, seed: int) -> tuple[Any, pd.DataFrame]:
    """Fit a table: its columns, rows, kinds, folds and target differ from shape to shape."""
    from castlereg import CastleClassifierCV, CastleRegressor, CastleRegressorCV, NetworkClassifier

    rng = np.random.default_rng(seed)
    n_rows, n_columns = 60 + 37 * (shape % 12), 2 + shape // 4
    X = pd.DataFrame(rng.normal(size=(n_rows, n_columns)))
    if shape % 3:
        X[0] = rng.choice(list("abcdef")[: 2 + shape % 4], n_rows)
        X.loc[::9, 1] = np.nan
    y = rng.normal(size=n_rows)
    options: dict[str, Any] = {"max_epochs": 1, "random_state": seed}
    model: Any = (
        CastleRegressor(**options),
        CastleRegressorCV((0.01, 0.1), search="paper", cv=2 + shape % 3, **options),
        NetworkClassifier(**options),
        CastleClassifierCV((0.1,), search="paper", cv=3, **options),
    )[shape % 4]
    X.columns = X.columns.map(str)
    return model.fit(X, y > 0 if shape % 4 > 1 else y), X


def measure() -> pd.DataFrame:
    """Fit, load and predict in this process."""
    from castlereg import load, save

    warnings.simplefilter("ignore")
    table = [{"after": "start", **used()}]
    order = np.random.default_rng(0).permutation(np.resize(np.arange(SHAPES), FITS))
    for n, shape in enumerate(order, start=1):
        model, rows = fit(int(shape), n)
        if n % EVERY == 0:
            table.append({"after": f"{n} fits of {len(set(order[:n]))} shapes", **used()})
            print(table[-1], file=sys.stderr, flush=True)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.castle"
        save(model, path)
        for n in range(1, LOADS + 1):
            load(path).predict(rows)
            if n % (LOADS // 2) == 0:
                table.append({"after": f"{n} loads and predictions", **used()})
    return pd.DataFrame(table)


def measure_native() -> pd.DataFrame:
    """Train small stacks of many shapes with the native engine in this process."""
    from tests.training.engines.native_shapes import problem, quiet_train

    table = [{"after": "start", **used()}]
    problems = [given for given in map(problem, range(3 * NATIVE_SHAPES)) if given.plan.learning_rate < 1]
    for n in range(1, NATIVE_FITS + 1):
        quiet_train(problems[n % NATIVE_SHAPES])
        if n % (NATIVE_FITS // 10) == 0:
            table.append({"after": f"{n} native trainings of {NATIVE_SHAPES} shapes", **used()})
            print(table[-1], file=sys.stderr, flush=True)
    measured = pd.DataFrame(table)
    growth = measured["MB"].iloc[-1] - measured["MB"].iloc[1]
    if growth > MOST_GROWTH_MB:
        sys.exit(f"{growth} MB more after {NATIVE_FITS} native trainings than after {NATIVE_FITS // 10}")
    return measured


def run() -> pd.DataFrame:
    """Return the tables of two processes, of which the first compiles everything, as the first process does."""
    tables = []
    for arguments in ([], ["native"]):
        with tempfile.TemporaryDirectory() as cache:
            out = subprocess.run(
                [sys.executable, "-m", "benchmarks.memory", *arguments],
                check=True,
                stdout=subprocess.PIPE,
                text=True,
                env={**os.environ, "XDG_CACHE_HOME": cache},
            )
        tables.append(pd.read_csv(StringIO(out.stdout)))
    return pd.concat(tables, ignore_index=True)


if __name__ == "__main__":
    measured = measure_native() if sys.argv[1:] == ["native"] else measure()
    measured.to_csv(sys.stdout, index=False)
    over = measured[(measured["MB"] > MOST_MB) | (measured["maps"] > MOST_MAPS)]
    if len(over):
        sys.exit(f"more than {MOST_MB} MB or {MOST_MAPS} memory maps after {', '.join(over['after'])}")
