"""Rows in their own order."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from castlereg.data.row_order import repeated_rows, row_order


@settings(deadline=None)
@given(st.integers(1, 30), st.integers(1, 4), st.integers(0, 2**32 - 1))
def test_any_order_in_gives_one_order_out(n: int, d: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = np.where(rng.random((n, d)) < 0.2, np.nan, rng.integers(0, 3, (n, d)))
    shuffled = rows[rng.permutation(n)]
    np.testing.assert_array_equal(rows[row_order(rows.T)], shuffled[row_order(shuffled.T)])


def test_equals_a_lexicographic_sort(rng: np.random.Generator) -> None:
    columns = rng.integers(0, 4, (3, 50)).astype(float)
    np.testing.assert_array_equal(row_order(columns), np.lexsort(columns[::-1]))


def test_strings_can_be_ordered() -> None:
    np.testing.assert_array_equal(row_order([np.array(["b", "a", "c"])]), [1, 0, 2])


def test_heavy_whole_weights_are_not_copied() -> None:
    assert repeated_rows(np.array([1000.0, 5000.0])) is None
