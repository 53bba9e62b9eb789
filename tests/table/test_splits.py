"""Rows that are held out: every row once, classes in proportion, the same for the same seed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.model_selection import KFold, LeaveOneGroupOut, StratifiedKFold

from castlereg.table.rows import folds, n_held_out, random_split, splits_with_test_rows, stratified_split

CLASSES = np.repeat([0, 1, 2], [60, 30, 10])


def test_at_least_one_row_is_held_out_and_two_are_left() -> None:
    assert [n_held_out(n, 0.1) for n in (3, 25, 100)] == [1, 2, 10]
    assert n_held_out(3, 0.9) == 1


def test_held_out_rows_are_random_and_ascending(rng: np.random.Generator) -> None:
    train, held = random_split(100, 0.2, rng)
    assert len(held) == 20
    np.testing.assert_array_equal(np.sort(np.r_[train, held]), np.arange(100))
    assert (np.diff(train) > 0).all() and (np.diff(held) > 0).all()


def test_a_share_of_every_class_is_held_out(rng: np.random.Generator) -> None:
    train, held = stratified_split(CLASSES, 0.2, rng)
    np.testing.assert_allclose(np.bincount(CLASSES[held]), [12, 6, 2], atol=1)
    np.testing.assert_array_equal(np.sort(np.r_[train, held]), np.arange(100))
    train, held = stratified_split(np.array([0, 0, 0, 1]), 0.5, rng)
    assert 3 in train  # the only row of its class
    with pytest.raises(ValueError, match="none of the 3 rows can be held out for validation"):
        stratified_split(np.arange(3), 0.5, rng)


@pytest.mark.parametrize("classes", [None, CLASSES])
def test_a_number_of_folds_is_that_of_scikit_learn(classes: Any) -> None:
    splitter = (KFold if classes is None else StratifiedKFold)(5, shuffle=True, random_state=3)
    expected = splitter.split(np.zeros(100), classes)
    for fold, known in zip(folds(5, 100, random_state=3, classes=classes), expected, strict=True):
        for rows, known_rows in zip(fold, known, strict=True):
            np.testing.assert_array_equal(rows, known_rows)


def test_a_splitter_gets_target_and_groups() -> None:
    groups = np.arange(100) % 4
    cut = folds(LeaveOneGroupOut(), 100, random_state=0, y=CLASSES, groups=groups)
    assert [set(groups[held]) for _, held in cut] == [{0}, {1}, {2}, {3}]


@pytest.mark.parametrize("form", [list, np.asarray, lambda rows: np.uint8(rows), lambda rows: np.isin(range(6), rows)])
def test_given_folds_are_lists_arrays_or_masks(form: Any) -> None:
    given = [([0, 2, 4], [1, 3, 5]), ([1, 3, 5], [0, 2, 4])]
    cut = folds([(form(train), form(held)) for train, held in given], 6, random_state=0)
    assert [(train.tolist(), held.tolist()) for train, held in cut] == given
    assert all(rows.dtype == np.int64 for fold in cut for rows in fold)


@pytest.mark.parametrize(
    ("cv", "classes", "message"),
    [
        (1, None, "cv=1 must be a whole number of at least 2"),
        (True, None, "cv=True must be a whole number"),
        (101, None, "cv=101 needs at least 101 rows, but there are 100: lower cv"),
        (61, CLASSES, "cv=61 needs a class with at least 61 rows, but the largest class has 60"),
    ],
)
def test_bad_numbers_of_folds_raise(cv: Any, classes: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        folds(cv, 100, random_state=0, classes=classes)


def test_test_rows_are_in_no_fold() -> None:
    splits = splits_with_test_rows(
        4, CLASSES, n_splits=3, test_size=0.2, is_classification=True, seed=np.random.SeedSequence(0)
    )
    assert len(splits) == 3
    for split in splits:
        np.testing.assert_array_equal(np.bincount(CLASSES[split.test_rows]), [12, 6, 2])
        np.testing.assert_array_equal(np.sort(np.r_[split.test_rows, split.rest]), np.arange(100))
        np.testing.assert_array_equal(np.sort(np.concatenate([held for _, held in split.folds])), np.sort(split.rest))
    assert not np.array_equal(splits[0].test_rows, splits[1].test_rows)
