"""Coded rows of small tables, for tests of the causal room."""

from __future__ import annotations

import numpy as np
import pandas as pd

from castlereg.table.encoding import Preprocessing, Rows
from castlereg.table.reading import read_columns
from castlereg.table.targets import fit_target


def coded(frame: pd.DataFrame, target: str, weight: np.ndarray | None = None) -> tuple[Preprocessing, Rows]:
    """Learn the preprocessing of a table, and code its rows."""
    y = frame[target]
    rows = Rows(read_columns(frame.drop(columns=target)), (y.to_numpy(),), weight)
    rows = rows.take(np.flatnonzero(y.notna()))
    targets = (fit_target(rows.targets[0], target, "numbers" if pd.api.types.is_float_dtype(y) else "classes"),)
    preprocessing = Preprocessing.fit(rows, targets, categorical=[False] * (frame.shape[1] - 1))
    return preprocessing, preprocessing.coded(rows)
