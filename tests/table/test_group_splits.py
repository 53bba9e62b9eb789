"""Splits that keep groups together: whole groups, near the fraction, classes kept."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import pandas as pd
import pytest

from castlereg.table.group_splits import group_codes, group_folds, group_split


def random_groups(rng: np.random.Generator) -> np.ndarray:
    """Groups of very different sizes, in any order."""
    return rng.permutation(np.repeat(np.arange(12), rng.integers(1, 12, 12)))


@pytest.mark.parametrize("fraction", [0.1, 0.3, 0.8])
@pytest.mark.parametrize("n_classes", [1, 3])
def test_whole_groups_with_about_the_fraction_of_the_rows(fraction: float, n_classes: int) -> None:
    shares = []
    for seed in range(30):
        rng = np.random.default_rng(seed)
        groups = random_groups(rng)
        classes = rng.integers(0, n_classes, len(groups)) if n_classes > 1 else None
        train, held = group_split(groups, classes, fraction, rng)
        np.testing.assert_array_equal(np.sort(np.r_[train, held]), np.arange(len(groups)))
        assert not set(groups[train]) & set(groups[held])
        assert len(train) >= 2 and len(held) >= 1
        assert (np.diff(train) > 0).all() and (np.diff(held) > 0).all()
        shares.append(len(held) / len(groups))
        # A group more or less: none is larger than a dozen rows.
        assert abs(len(held) - fraction * len(groups)) <= 12
    assert np.mean(shares) == pytest.approx(fraction, abs=0.03)


def test_groups_of_single_rows_are_a_stratified_split() -> None:
    classes = np.repeat([0, 1, 2], [60, 30, 10])
    _, held = group_split(np.arange(100), classes, 0.2, np.random.default_rng(0))
    np.testing.assert_array_equal(np.bincount(classes[held]), [12, 6, 2])


def test_a_class_of_one_group_is_not_held_out() -> None:
    groups, classes = np.repeat(np.arange(5), 4), np.repeat([0, 1, 1, 1, 1], 4)
    for seed in range(20):
        train, _ = group_split(groups, classes, 0.2, np.random.default_rng(seed))
        assert set(classes[train]) == {0, 1}


def test_a_group_is_held_out_even_if_all_are_larger_than_the_fraction() -> None:
    groups = np.repeat([0, 1, 2], [40, 50, 30])
    for seed in range(5):
        _, held = group_split(groups, None, 0.1, np.random.default_rng(seed))
        assert set(groups[held]) == {2}


def test_groups_that_cannot_be_split_raise() -> None:
    with pytest.raises(ValueError, match="groups has only one group, so none is left for validation"):
        group_split(np.zeros(9, int), None, 0.1, np.random.default_rng(0))
    with pytest.raises(ValueError, match="2 groups in 2 rows, and none can be held out"):
        group_split(np.arange(2), None, 0.1, np.random.default_rng(0))


@pytest.mark.parametrize("n_classes", [1, 3])
def test_folds_of_whole_groups(n_classes: int) -> None:
    rng = np.random.default_rng(0)
    groups = random_groups(rng)
    classes = rng.integers(0, n_classes, len(groups)) if n_classes > 1 else None
    cut, again, other = (group_folds(groups, classes, 4, random_state=state) for state in (1, 1, 2))
    np.testing.assert_array_equal(np.sort(np.concatenate([held for _, held in cut])), np.arange(len(groups)))
    for train, held in cut:
        assert not set(groups[train]) & set(groups[held])
        assert len(train) + len(held) == len(groups)
    assert all(np.array_equal(a[1], b[1]) for a, b in zip(cut, again, strict=True))
    assert not all(np.array_equal(a[1], b[1]) for a, b in zip(cut, other, strict=True))
    with pytest.raises(ValueError, match="cv=13 needs at least 13 groups, but there are 12: lower cv"):
        group_folds(groups, classes, 13, random_state=0)


@pytest.mark.parametrize(
    "labels",
    [
        ["b", "a", "b", "c"],
        np.array([5.0, 1.0, 5.0, 7.0]),
        pd.Series(["b", "a", "b", "c"], index=[7, 8, 9, 3]),
        pd.Series(["b", "a", "b", "c"], dtype="category"),
        pd.to_datetime(["2021-01-02", "2021-01-01", "2021-01-02", "2022-01-01"]),
    ],
    ids=["texts", "numbers", "series", "categories", "dates"],
)
def test_labels_of_any_kind(labels: Any) -> None:
    np.testing.assert_array_equal(group_codes(labels, 4), [1, 0, 1, 2])


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([1, 2], r"groups has shape \(2,\), but X has 3 rows: pass one label for each row"),
        ([[1], [2], [3]], r"groups has shape \(3, 1\)"),
        ([1.0, np.nan, 2.0], "groups has a missing label in row 1: pass a label for each row"),
        (["a", None, "b"], "groups has a missing label in row 1"),
        ([3, datetime.date(2020, 1, 1), 4], "groups mixes labels that cannot be sorted together: convert them to text"),
    ],
)
def test_bad_labels_raise(labels: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        group_codes(labels, 3)
