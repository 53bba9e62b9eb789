"""Splits by time: never a training row as late as a validation row, nor a group on both sides."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.model_selection import TimeSeriesSplit

from castlereg.table.time_splits import expanding_folds, latest_split, time_blocks, time_column_index


@pytest.mark.parametrize("seed", range(5))
def test_blocks_separate_times_and_groups(seed: int) -> None:
    """Against the definition: a cut is possible where no group has rows on both sides."""
    rng = np.random.default_rng(seed)
    groups = rng.integers(0, 30, 60)
    times = np.sort(rng.normal(size=30))[groups] + 0.1 * rng.integers(0, 4, 60)
    blocks = time_blocks(times, groups)
    cuts = {time for time in np.unique(times)[1:] if not set(groups[times < time]) & set(groups[times >= time])}
    assert cuts == {times[blocks == block].min() for block in range(1, blocks.max() + 1)}
    assert 0 < len(cuts) < len(np.unique(times)) - 1
    np.testing.assert_array_equal(time_blocks(times), np.unique(times, return_inverse=True)[1])


@pytest.mark.parametrize("fraction", [0.1, 0.5])
def test_the_latest_rows_are_held_out(fraction: float) -> None:
    rng = np.random.default_rng(0)
    times = rng.integers(0, 40, 200).astype(float)
    train, held = latest_split(time_blocks(times), fraction)
    assert times[train].max() < times[held].min()
    np.testing.assert_array_equal(np.sort(np.r_[train, held]), np.arange(200))
    sizes = [(times >= time).sum() for time in np.unique(times)]
    assert abs(len(held) - 200 * fraction) == min(abs(size - 200 * fraction) for size in sizes)


def test_two_rows_are_left_to_train_on() -> None:
    train, held = latest_split(np.array([0, 1, 2, 2, 2, 2]), 0.9)
    assert train.tolist() == [0, 1] and held.tolist() == [2, 3, 4, 5]
    for blocks in (np.zeros(5, int), np.array([0, 1, 1, 1])):
        with pytest.raises(ValueError, match="cannot be split by time into at least two training rows and later"):
            latest_split(blocks, 0.1)


def test_folds_are_those_of_time_series_split_over_the_times() -> None:
    times = np.array([3.0, 1.0, 2.0, 2.0, 5.0, 4.0, 6.0, 1.0])
    cut = expanding_folds(time_blocks(times), 3)
    values = np.unique(times)
    for (train, held), (train_times, held_times) in zip(cut, TimeSeriesSplit(3).split(values), strict=True):
        assert set(times[train]) == set(values[train_times])
        assert set(times[held]) == set(values[held_times])
        assert times[train].max() < times[held].min()
    with pytest.raises(ValueError, match=r"cv=6 folds by time need at least 7 different times .* are 6: lower cv"):
        expanding_folds(time_blocks(times), 6)


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ("dat", "time_column='dat' is not one of 'age', 'date'; did you mean 'date'"),
        (2, "time_column=2 is out of range: X has 2 columns"),
        (1.0, "time_column=1.0 must be the name or index of a column of X"),
        (True, "time_column=True must be the name or index"),
    ],
)
def test_unknown_columns_raise(column: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        time_column_index(column, ["age", "date"])


def test_columns_have_names_and_indices() -> None:
    assert [time_column_index(column, ["age", "date"]) for column in ("date", 1, -1, np.int64(0))] == [1, 1, 1, 0]
