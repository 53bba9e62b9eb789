"""Rows and columns in their own order."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from castlereg.layout import Node
from castlereg.table.rows import column_order, ranked, repeated_rows, row_order


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


def test_missing_values_rank_last_and_alike() -> None:
    ranks, n_values = ranked(np.array([5.0, np.nan, 3.0, 5.0, np.nan]))
    assert (ranks.tolist(), n_values) == ([1, 2, 0, 1, 2], 3)


def test_whole_weights_are_repetitions_unless_heavy() -> None:
    np.testing.assert_array_equal(repeated_rows(np.array([1.0, 0.0, 2.0])), [0, 2, 2])
    assert repeated_rows(np.array([0.5, 1.0])) is None
    assert repeated_rows(np.array([1000.0, 5000.0])) is None


@settings(deadline=None)
@given(st.integers(4, 30), st.integers(2, 5), st.integers(0, 2**32 - 1))
def test_order_and_units_of_columns_and_rows_do_not_matter(n: int, d: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    cells, target = rng.normal(size=(n, d)), rng.integers(0, 3, n)
    nodes = [Node(), Node("binary"), Node(), Node("categorical", 3), Node(missing=True)][:d]
    names = [f"name {j}" for j in range(d)]
    order = [names[j] for j in column_order(cells.T, target, nodes, names)]
    columns, rows = rng.permutation(d), rng.permutation(n)
    turned = [names[j] for j in columns]
    again = column_order((3 * cells[rows][:, columns] + 1).T, target[rows], [nodes[j] for j in columns], turned)
    assert [turned[j] for j in again] == order


def test_names_do_not_matter_unless_columns_are_alike(rng: np.random.Generator) -> None:
    cells, target = rng.normal(size=(20, 3)), rng.integers(0, 3, 20)
    nodes = [Node()] * 3
    assert column_order(cells.T, target, nodes, list("abc")) == column_order(cells.T, target, nodes, list("zyx"))
    alike = np.repeat(cells[:, :1], 2, axis=1)
    assert column_order(alike.T, target, nodes[:2], ["b", "a"]) == (1, 0)


def test_columns_of_one_type_stand_together(rng: np.random.Generator) -> None:
    nodes = [Node(), Node("binary"), Node(), Node("binary")]
    order = column_order(rng.normal(size=(4, 10)), np.arange(10), nodes, list("abcd"))
    kinds = [nodes[j].kind for j in order]
    assert kinds == sorted(kinds)
