"""Run methods on cells and append to the table of results; stored results are not computed again."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.accuracy.cells import Cell, Data, error

RESULTS = Path(__file__).with_name("results.csv")
COLUMNS = ("table", "variant", "rows", "split", "method", "error", "seconds")

Predict = Callable[[str, Data], Any]


def read(path: Path = RESULTS) -> pd.DataFrame:
    """Read all results."""
    return pd.read_csv(path) if path.exists() else pd.DataFrame(columns=list(COLUMNS))


def run(methods: Sequence[str], predict: Predict, cells: Iterable[Cell], folder: Path, path: Path = RESULTS) -> None:
    """Fit methods on cells.

    Seconds are those of the processor, over all cores: they hardly depend on what else the machine does.
    """
    known = {tuple(row) for row in read(path)[list(COLUMNS[:5])].itertuples(index=False)}
    for cell in cells:
        wanted = [name for name in methods if (cell.table, cell.variant, cell.rows, cell.split, name) not in known]
        data = cell.load(folder) if wanted else None
        for name in wanted:
            assert data is not None
            begun = time.process_time()
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                predicted = predict(name, data)
            result = error(data, predicted)
            row = (cell.table, cell.variant, cell.rows, cell.split, name, result, time.process_time() - begun)
            _append(path, row)
            print(*row[:5], f"{row[5]:.4f} {row[6]:.1f}", flush=True)


def _append(path: Path, row: tuple[Any, ...]) -> None:
    """Add one line in one write, so that several processes can share the file."""
    header = "" if path.exists() else ",".join(COLUMNS) + "\n"
    with path.open("a", encoding="utf-8") as file:
        file.write(header + ",".join(f"{v:.6g}" if isinstance(v, float) else str(v) for v in row) + "\n")
