"""Errors name the column, the row and the value."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from castlereg.table.reading import check_range, check_shape, listed, reject_objects, sum_of_squares


def test_check_range_names_row_and_column() -> None:
    with pytest.raises(ValueError, match=r"X has -1e\+39 in row 1 of column 'b'"):
        check_range(np.array([[0.0, np.nan], [0.0, -1e39]]), ["a", "b"], "X")
    check_range(np.array([[0.0, np.nan], [0.0, -3e38]]), ["a", "b"], "X")
    check_range(np.full((2, 1), np.nan), ["a"], "X")


@pytest.mark.parametrize(("shape", "message"), [((0, 2), "X has no rows"), ((2, 0), "X has no columns")])
def test_empty_tables(shape: tuple[int, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check_shape(shape, "X")


def test_long_values_are_cut() -> None:
    with pytest.raises(TypeError, match=r"X has \[0, 1, .*\.\.\. of type list in row 1 of column 'a'"):
        reject_objects(pd.Series(["x", list(range(99))]), "a", "X")


def test_many_names_are_counted() -> None:
    assert listed(list("ab")) == "'a', 'b'"
    assert listed(list("abcdefgh"), most=2) == "'a', 'b' and 6 more columns"


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_quick_look_sees_every_cell_of_any_layout(dtype: type, rng: np.random.Generator) -> None:
    wide = rng.normal(size=(9000, 6)).astype(dtype)
    for cells in (wide, np.asfortranarray(wide), wide[:, 1:4], wide[::2], wide[:, ::-1]):
        np.testing.assert_allclose(sum_of_squares(cells), (cells.astype(np.float64) ** 2).sum(), rtol=1e-4)
        for row in (0, 4095, len(cells) - 1):
            odd = cells[row, 1]
            cells[row, 1] = np.nan
            assert np.isnan(sum_of_squares(cells))
            cells[row, 1] = -1e30
            assert sum_of_squares(cells) > 1e59  # of float32: infinite
            cells[row, 1] = odd
    assert sum_of_squares(np.empty((0, 3))) == 0
