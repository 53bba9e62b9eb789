"""Wide tables: 1,000 columns at width 32, and 2,000 in the linear form, with twenty reconstructed a step."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.growth import peak_memory
from benchmarks.problems import rows
from castlereg import Castle, CastleRegressor

CASES = {"1,000 x 2,000, width 32": (1000, (32, 32)), "2,000 x 2,000, linear": (2000, ())}


def measure(case: str, picture: Path | None = None) -> dict[str, float]:
    """Fit in this process; return seconds and the peak memory in MiB, and draw what is around the target."""
    n_features, sizes = CASES[case]
    data = rows(2000, n_features + 1)
    start = time.perf_counter()
    castle = Castle(features_per_step=20, acyclicity="auto")
    model = CastleRegressor(castle=castle, hidden_layer_sizes=sizes, max_epochs=20, random_state=0)
    model.fit(data[:, :-1], data[:, -1])
    seconds = time.perf_counter() - start
    error = float(np.mean((model.predict(data[:, :-1]) - data[:, -1]) ** 2) / np.var(data[:, -1]))
    if picture is not None:
        model.graph_.plot_neighbourhood().figure.figure.savefig(picture, dpi=110)
    epochs = int(model.history_["epoch"].max())
    return {"seconds": seconds, "epochs": epochs, "training error": error, "peak memory, MiB": peak_memory()}


def run() -> pd.DataFrame:
    """Return the table; each case is a separate process."""
    table = []
    for case in CASES:
        out = subprocess.run(
            [sys.executable, "-m", "benchmarks.wide_tables", case], check=True, capture_output=True, text=True
        )
        table.append({"": case, **json.loads(out.stdout.splitlines()[-1])})
    return pd.DataFrame(table)


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1], Path(sys.argv[2]) if len(sys.argv) > 2 else None)))
