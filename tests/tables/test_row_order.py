"""Rows in their own order."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from castlereg.tables.row_order import in_own_order, repeated_rows, row_order


@settings(deadline=None)
@given(st.integers(1, 30), st.integers(1, 4), st.integers(0, 2**32 - 1))
def test_any_order_in_gives_one_order_out(n: int, d: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    X, y = rng.integers(0, 3, (n, d)).astype(float), rng.integers(0, 2, n).astype(float)
    order = rng.permutation(n)
    for a, b in zip(in_own_order(X, y, None)[:2], in_own_order(X[order], y[order], None)[:2], strict=True):
        np.testing.assert_array_equal(a, b)


def test_equals_a_lexicographic_sort(rng: np.random.Generator) -> None:
    columns = rng.integers(0, 4, (3, 50)).astype(float)
    np.testing.assert_array_equal(row_order(columns), np.lexsort(columns[::-1]))


def test_strings_can_be_ordered() -> None:
    np.testing.assert_array_equal(row_order([np.array(["b", "a", "c"])]), [1, 0, 2])


def test_fractional_weights_stay_weights_and_zeros_go() -> None:
    X, y, weight = in_own_order(np.array([[1.0], [2.0], [3.0]]), np.array([3.0, 2.0, 1.0]), np.array([0.5, 0.0, 2.0]))
    np.testing.assert_array_equal(X[:, 0], [3, 1])
    np.testing.assert_array_equal(y, [1, 3])
    np.testing.assert_array_equal(weight, [2, 0.5])


def test_heavy_whole_weights_are_not_copied() -> None:
    assert repeated_rows(np.array([1000.0, 5000.0])) is None
