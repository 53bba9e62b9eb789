"""Time and peak memory as tables grow wider or longer, and as members are added."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.problems import Stack

FEATURES = (10, 50, 100, 200, 400)
ROWS = (1000, 4000, 16_000, 64_000)
MEMBERS = (1, 2, 4, 10, 20, 40)
CURVES = {
    "features, all reconstructed": FEATURES,
    "features, 20 a step": FEATURES,
    "rows, 20 features": ROWS,
    "members, 9 features": MEMBERS,
}
_FIT_FROM = {"features, all reconstructed": 50, "features, 20 a step": 50, "rows, 20 features": 1000}


def measure(curve: str, size: int) -> dict[str, float]:
    """Train in this process; return seconds per epoch and the peak memory in MiB."""
    stack = _stack(curve, size)
    stack.train()
    seconds = min(stack.train() for _ in range(2)) / stack.epochs
    return {"seconds": seconds, "MiB": peak_memory()}


def _stack(curve: str, size: int) -> Stack:
    options: dict[str, Any] = {"acyclicity": "auto"}
    if curve.startswith("features"):
        some = min(20, size) if "20" in curve else None
        return Stack(size + 1, 32, 1, 1000, 4 if size >= 200 else 16, features_per_step=some, **options)
    if curve.startswith("rows"):
        return Stack(21, 21, 1, size, max(2, 32_000 // size), **options)
    return Stack(10, 10, size, 500, 100, **options)


def peak_memory() -> float:
    """Return the peak memory in MiB, on Linux by its own figure: that of ``resource`` includes the parent process."""
    status = Path("/proc/self/status")
    if status.exists():
        return int(status.read_text().split("VmHWM:")[1].split()[0]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def run() -> pd.DataFrame:
    """Return the table; each point is a separate process."""
    table = []
    for curve, sizes in CURVES.items():
        for size in sizes:
            out = subprocess.run(
                [sys.executable, "-m", "benchmarks.growth", curve, str(size)],
                check=True,
                capture_output=True,
                text=True,
            )
            table.append({"curve": curve, "size": size, **json.loads(out.stdout.splitlines()[-1])})
    return pd.DataFrame(table).rename(columns={"seconds": "seconds an epoch", "MiB": "peak memory, MiB"})


def exponents(table: pd.DataFrame) -> pd.Series:
    """Fit seconds = c * size**e where fixed costs are negligible; return e of every curve."""
    slopes = {}
    for curve, points in table.groupby("curve", sort=False):
        far = points[points["size"] >= _FIT_FROM.get(str(curve), 1)]
        slopes[curve] = np.polyfit(np.log(far["size"]), np.log(far["seconds an epoch"]), 1)[0]
    return pd.Series(slopes, name="exponent of the growth in time")


def plot(table: pd.DataFrame, path: Path) -> None:
    """Draw seconds and memory against size, a panel for what grows."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, 3, figsize=(10, 5.6), layout="constrained", sharex="col")
    powers = exponents(table)
    for column, what in enumerate(("features", "rows", "members")):
        for curve, points in table.groupby("curve", sort=False):
            if not str(curve).startswith(what):
                continue
            label = f"{str(curve).split(', ')[1]}: power {powers[curve]:.2f}"
            axes[0, column].loglog(points["size"], points["seconds an epoch"], "o-", ms=4, label=label)
            axes[1, column].semilogx(points["size"], points["peak memory, MiB"], "o-", ms=4)
        axes[1, column].set(xlabel=what, ylim=(0, 1.15 * table["peak memory, MiB"].max()))
        axes[0, column].legend(frameon=False, fontsize=8)
    axes[0, 0].set_ylabel("seconds an epoch")
    axes[1, 0].set_ylabel("peak memory, MiB")
    for ax in axes.flat:
        ax.xaxis.set_major_formatter("{x:,.0f}")
        ax.yaxis.set_major_formatter("{x:g}")
        for axis in (ax.xaxis, ax.yaxis):
            axis.set_minor_formatter("")
        ax.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=110)
    plt.close(figure)


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1], int(sys.argv[2]))))
