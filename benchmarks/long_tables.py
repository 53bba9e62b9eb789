"""Rows per second and peak memory as the table grows longer: in memory, and from a Parquet file."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmarks.growth import peak_memory
from castlereg import CastleRegressor, Recipe

ROWS = (10_000, 100_000, 1_000_000)
N_FEATURES = 20


def table(n_rows: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return 20 columns and a target of the first two, in float32."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_rows, N_FEATURES), dtype=np.float32)
    return X, X[:, 0] - np.tanh(X[:, 1]) + 0.3 * rng.standard_normal(n_rows, dtype=np.float32)


def measure(n_rows: int, source: str) -> dict[str, float]:
    """Fit in this process for about a million rows; return rows a second and memory in MiB.

    Memory is the high-water mark of the process above what it was after the imports and a fit of 200 rows, so that it
    holds the table itself and all that the fit adds. The compiler's own memory does not count, as a process before this
    one has left the programs in the cache. Seconds an epoch are those between a fit of one epoch and one of several,
    so that reading, sorting and the graph do not count.
    """
    small, target = table(200)
    CastleRegressor(max_epochs=1).fit(small, target)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.parquet"
        if source == "file":
            _in_another_process("write", n_rows, path)
        _in_another_process("compile", n_rows, path)
        before = peak_memory()
        X, y = table(n_rows) if source == "memory" else (small, target)

        def fit(epochs: int) -> float:
            model = CastleRegressor(max_epochs=epochs, recipe=Recipe(patience=epochs), random_state=0)
            begun = time.perf_counter()
            _ = model.fit(X, y) if source == "memory" else model.fit_file(path, "y")
            return time.perf_counter() - begun

        fit(1)
        peak = peak_memory() - before
        epochs = max(2, min(101, 1_000_000 // n_rows))
        one = fit(1)
        seconds = (fit(epochs) - one) / (epochs - 1)
    return {"rows a second": 0.9 * n_rows / seconds, "seconds outside epochs": one - seconds, "MiB": peak}


def _in_another_process(task: str, n_rows: int, path: Path) -> None:
    command = [sys.executable, "-m", "benchmarks.long_tables", task, str(n_rows), str(path)]
    subprocess.run(command, check=True, capture_output=True)


def compile_programs(n_rows: int, path: Path) -> None:
    """Fit once, from the file if there is one."""
    model = CastleRegressor(max_epochs=1, recipe=Recipe(patience=1), random_state=0)
    _ = model.fit_file(path, "y") if path.exists() else model.fit(*table(n_rows))


def write(n_rows: int, path: str) -> None:
    """Write the table to a file, in a separate process."""
    X, y = table(n_rows)
    pd.DataFrame(X, columns=[f"x{j}" for j in range(N_FEATURES)]).assign(y=y).to_parquet(path, row_group_size=100_000)


def run() -> pd.DataFrame:
    """Return the table; each point is a separate process."""
    points = []
    for source in ("memory", "file"):
        for n_rows in ROWS:
            out = subprocess.run(
                [sys.executable, "-m", "benchmarks.long_tables", source, str(n_rows)],
                check=True,
                capture_output=True,
                text=True,
            )
            mebibytes = n_rows * N_FEATURES * 4 / 2**20
            points.append({"from": source, "rows": n_rows, **json.loads(out.stdout.splitlines()[-1])})
            points[-1]["times the array"] = points[-1]["MiB"] / mebibytes
    return pd.DataFrame(points).rename(columns={"MiB": "peak memory, MiB"})


def exponents(table: pd.DataFrame) -> pd.Series:
    """Fit seconds an epoch = c * rows**e; return e by source."""
    slopes = {
        source: np.polyfit(np.log(rows["rows"]), np.log(rows["rows"] / rows["rows a second"]), 1)[0]
        for source, rows in table.groupby("from")
    }
    return pd.Series(slopes, name="exponent of the growth in time")


if __name__ == "__main__":
    if sys.argv[1] == "write":
        write(int(sys.argv[2]), sys.argv[3])
    elif sys.argv[1] == "compile":
        compile_programs(int(sys.argv[2]), Path(sys.argv[3]))
    else:
        print(json.dumps(measure(int(sys.argv[2]), sys.argv[1])))
