"""Time and peak memory as the table grows wider: all features reconstructed, and twenty a step."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.problems import Stack

FEATURES = (10, 50, 100, 200, 400)


def measure(d: int, reconstruct: str) -> dict[str, float]:
    """Train on 1000 rows at width 32 in this process; return seconds an epoch and the peak memory in MiB."""
    sampled = "all" if reconstruct == "all" else min(int(reconstruct), d)
    stack = Stack(n_nodes=d + 1, width=32, n_members=1, n_rows=1000, epochs=4 if d >= 200 else 16, reconstruct=sampled)
    stack.train()
    seconds = min(stack.train() for _ in range(2)) / stack.epochs
    return {"seconds": seconds, "MiB": peak_memory()}


def peak_memory() -> float:
    """Return the peak memory in MiB, on Linux by its own figure: that of ``resource`` includes the parent process."""
    status = Path("/proc/self/status")
    if status.exists():
        return int(status.read_text().split("VmHWM:")[1].split()[0]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def run() -> pd.DataFrame:
    """Return the table; each point is a process of its own."""
    table = []
    for reconstruct in ("all", "20"):
        for d in FEATURES:
            out = subprocess.run(
                [sys.executable, "-m", "benchmarks.growth", str(d), reconstruct],
                check=True,
                capture_output=True,
                text=True,
            )
            table.append({"features": d, "reconstructed": reconstruct, **json.loads(out.stdout.splitlines()[-1])})
    return pd.DataFrame(table).rename(columns={"seconds": "seconds an epoch", "MiB": "peak memory, MiB"})


def exponents(table: pd.DataFrame) -> pd.Series:
    """Fit seconds = c * features**e from 50 features on; return e by reconstruction."""
    wide = table[table["features"] >= 50]
    slopes = {
        key: np.polyfit(np.log(rows["features"]), np.log(rows["seconds an epoch"]), 1)[0]
        for key, rows in wide.groupby("reconstructed")
    }
    return pd.Series(slopes, name="exponent of the growth in time")


if __name__ == "__main__":
    print(json.dumps(measure(int(sys.argv[1]), sys.argv[2])))
