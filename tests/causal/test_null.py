"""Independent columns of any kind get no edges."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.real_columns import found_in, null_table

TABLES = (
    *(("normal", 0.2), ("survey", 0.0), ("counts", 0.0), ("zeros", 0.2)),
    *(("tens", 0.0), ("two", 0.2), ("heavy", 0.0), ("mixture", 0.2)),
)


@pytest.mark.parametrize("seed", [100])  # the page has seeds 0 to 9
def test_independent_columns_get_almost_no_edges(seed: int) -> None:
    found = [found_in(null_table(kind, missing, seed))[0] for kind, missing in TABLES]
    n_edges = {table: int(of.edges.sum()) for table, of in zip(TABLES, found, strict=True)}
    sure = {table: int((of.edges & (of.joined > 0.9)).sum()) for table, of in zip(TABLES, found, strict=True)}
    assert np.mean(list(n_edges.values())) <= 0.2, n_edges
    assert np.mean(list(sure.values())) <= 0.1, sure
