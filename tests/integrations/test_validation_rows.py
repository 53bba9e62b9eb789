"""Validation rows of a benchmark become folds."""

from __future__ import annotations

import numpy as np
import pandas as pd

from castlereg.integrations.validation_rows import joined, splits_of


def test_frames_keep_their_types() -> None:
    frame = pd.DataFrame({"n": [1, 2], "c": pd.Categorical(["a", "b"]), "x": [0.5, np.nan]}, index=[7, 3])
    both = joined(frame, frame[:1])
    assert list(both.index) == [0, 1, 2]
    assert both.dtypes.equals(frame.dtypes)
    np.testing.assert_array_equal(both["n"], [1, 2, 1])


def test_lists_and_arrays() -> None:
    np.testing.assert_array_equal(joined([1, 2], np.array([3])), [1, 2, 3])


def test_every_other_row_is_trained_on() -> None:
    splits = splits_of(6, [[0, 1], [4, 5]], 9)
    assert len(splits) == 2  # several splits are not repeated
    for (train, held), expected in zip(splits, ([2, 3, 4, 5], [0, 1, 2, 3]), strict=True):
        np.testing.assert_array_equal(train, expected)
        np.testing.assert_array_equal(np.sort(np.concatenate([train, held])), np.arange(6))


def test_one_split_is_repeated() -> None:
    splits = splits_of(4, np.array([3, 1]), 3)
    assert len(splits) == 3
    for train, held in splits:
        np.testing.assert_array_equal(train, [0, 2])
        np.testing.assert_array_equal(held, [3, 1])
