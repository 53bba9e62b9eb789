"""Held-out rows: every row once, classes in proportion, whole groups, later times; the same for the same seed."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.model_selection import KFold, LeaveOneGroupOut, StratifiedKFold, TimeSeriesSplit

from castlereg.table.reading import read_columns
from castlereg.table.schema import column_index, infer_schema
from castlereg.table.splits import (
    Fold,
    cross_validation_folds,
    group_codes,
    times_of,
    validation_split,
)

CLASSES = np.repeat([0, 1, 2], [60, 30, 10])


def check_rows(fold: Fold, n_rows: int) -> None:
    train, held_out = fold
    np.testing.assert_array_equal(np.sort(np.r_[train, held_out]), np.arange(n_rows))
    assert (np.diff(train) > 0).all() and (np.diff(held_out) > 0).all()
    assert len(train) >= 2 and len(held_out) >= 1


# --- one split -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "fraction", "held"), [(3, 0.1, 1), (25, 0.1, 2), (100, 0.1, 10), (3, 0.9, 1)])
def test_at_least_one_row_is_held_out_and_two_are_left(n: int, fraction: float, held: int) -> None:
    for options in ({}, {"classes": np.zeros(n, int)}, {"times": np.arange(n)}, {"groups": np.arange(n)}):
        fold = validation_split(n, fraction, seed=0, **options)  # type: ignore[arg-type]
        check_rows(fold, n)
        assert len(fold[1]) == held


def test_the_seed_determines_the_rows() -> None:
    for options in ({}, {"classes": CLASSES}, {"groups": np.arange(100) % 17}):
        first, again, other = (validation_split(100, 0.2, seed=seed, **options)[1].tolist() for seed in (1, 1, 2))
        assert first == again != other


@given(
    st.lists(st.integers(1, 12), min_size=1, max_size=8),
    st.floats(0.05, 0.95),
    st.integers(0, 2**31 - 1),
)
def test_no_class_loses_its_last_row(sizes: list[int], fraction: float, seed: int) -> None:
    classes = np.random.default_rng(seed).permutation(np.repeat(np.arange(len(sizes)), sizes))
    if len(classes) < 3:
        return
    if max(sizes) == 1:
        with pytest.raises(ValueError, match=r"none of the \d rows can be held out for validation"):
            validation_split(len(classes), fraction, seed=seed, classes=classes)
        return
    fold = validation_split(len(classes), fraction, seed=seed, classes=classes)
    check_rows(fold, len(classes))
    assert set(classes[fold[0]]) == set(classes)
    assert len(fold[1]) == min(max(1, round(fraction * len(classes))), len(classes) - 2, len(classes) - len(sizes))


def test_a_share_of_every_class_is_held_out() -> None:
    for seed in range(10):
        _, held_out = validation_split(100, 0.2, seed=seed, classes=CLASSES)
        np.testing.assert_allclose(np.bincount(CLASSES[held_out]), [12, 6, 2], atol=1)
    rare = np.r_[CLASSES, np.arange(3, 33), [33, 33]]  # many classes of one row, and one of two
    for seed in range(10):
        _, held_out = validation_split(len(rare), 0.2, seed=seed, classes=rare)
        np.testing.assert_allclose(np.bincount(rare[held_out])[:3], [16, 8, 2.5], atol=2)


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
        fold = validation_split(len(groups), fraction, seed=seed, groups=groups, classes=classes)
        check_rows(fold, len(groups))
        assert not set(groups[fold[0]]) & set(groups[fold[1]])
        shares.append(len(fold[1]) / len(groups))
        # A group more or less: none is larger than a dozen rows.
        assert abs(len(fold[1]) - fraction * len(groups)) <= 12
    assert np.mean(shares) == pytest.approx(fraction, abs=0.03)


def test_groups_of_single_rows_are_a_stratified_split() -> None:
    _, held_out = validation_split(100, 0.2, seed=0, groups=np.arange(100), classes=CLASSES)
    np.testing.assert_array_equal(np.bincount(CLASSES[held_out]), [12, 6, 2])


def test_a_class_of_one_group_is_not_held_out() -> None:
    groups, classes = np.repeat(np.arange(5), 4), np.repeat([0, 1, 1, 1, 1], 4)
    for seed in range(20):
        train, _ = validation_split(20, 0.2, seed=seed, groups=groups, classes=classes)
        assert set(classes[train]) == {0, 1}


def test_a_group_is_held_out_even_if_all_are_larger_than_the_fraction() -> None:
    groups = np.repeat([0, 1, 2], [40, 50, 30])
    for seed in range(5):
        assert set(groups[validation_split(120, 0.1, seed=seed, groups=groups)[1]]) == {2}


def test_many_groups_with_classes_take_no_time(rng: np.random.Generator) -> None:
    """StratifiedGroupKFold would take ten seconds."""
    classes = rng.integers(0, 2, 50_000)
    _, held_out = validation_split(50_000, 0.1, seed=0, groups=np.arange(50_000), classes=classes)
    assert len(held_out) == 5000
    assert classes[held_out].mean() == pytest.approx(classes.mean(), abs=0.03)


def test_groups_that_cannot_be_split_raise() -> None:
    with pytest.raises(ValueError, match="groups has only one group, so none is left for validation"):
        validation_split(9, 0.1, seed=0, groups=np.zeros(9, int))
    with pytest.raises(ValueError, match="2 groups in 2 rows, and none can be held out"):
        validation_split(2, 0.1, seed=0, groups=np.arange(2))


@pytest.mark.parametrize("fraction", [0.1, 0.5])
def test_the_latest_rows_are_held_out(fraction: float) -> None:
    times = np.random.default_rng(0).integers(0, 40, 200).astype(float)
    train, held_out = fold = validation_split(200, fraction, seed=0, times=times)
    check_rows(fold, 200)
    assert times[train].max() < times[held_out].min()
    sizes = [(times >= time).sum() for time in np.unique(times)]
    assert abs(len(held_out) - 200 * fraction) == min(abs(size - 200 * fraction) for size in sizes)


@pytest.mark.parametrize("seed", range(5))
def test_times_separate_groups(seed: int) -> None:
    """Against the definition: a cut is possible where no group has rows on both sides."""
    rng = np.random.default_rng(seed)
    groups = rng.integers(0, 30, 60)
    times = np.sort(rng.normal(size=30))[groups] + 0.1 * rng.integers(0, 4, 60)
    later = [times >= time for time in np.unique(times)[1:]]
    possible = {int(cut.sum()) for cut in later if not set(groups[~cut]) & set(groups[cut]) and (~cut).sum() >= 2}
    assert possible
    splits = [validation_split(60, f, seed=0, times=times, groups=groups) for f in np.linspace(0.01, 0.99, 200)]
    assert {len(held_out) for _, held_out in splits} == possible
    for train, held_out in splits:
        assert times[train].max() < times[held_out].min()
        assert not set(groups[train]) & set(groups[held_out])


def test_times_leave_two_rows_to_train_on() -> None:
    train, held_out = validation_split(6, 0.9, seed=0, times=np.array([0.0, 1, 2, 2, 2, 2]))
    assert train.tolist() == [0, 1] and held_out.tolist() == [2, 3, 4, 5]
    for times in (np.zeros(5), np.array([0.0, 1, 1, 1])):
        with pytest.raises(ValueError, match="cannot be split by time into at least two training rows and later"):
            validation_split(len(times), 0.1, seed=0, times=times)


# --- folds ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("classes", [None, CLASSES])
def test_a_number_of_folds_is_that_of_scikit_learn(classes: Any) -> None:
    splitter = (KFold if classes is None else StratifiedKFold)(5, shuffle=True, random_state=3)
    expected = splitter.split(np.zeros(100), classes)
    for fold, known in zip(cross_validation_folds(5, 100, seed=3, classes=classes), expected, strict=True):
        for rows, known_rows in zip(fold, known, strict=True):
            np.testing.assert_array_equal(rows, known_rows)


@pytest.mark.parametrize("n_classes", [1, 3])
def test_folds_of_whole_groups(n_classes: int) -> None:
    rng = np.random.default_rng(0)
    groups = random_groups(rng)
    n = len(groups)
    classes = rng.integers(0, n_classes, n) if n_classes > 1 else None
    cut, again, other = (cross_validation_folds(4, n, seed=s, groups=groups, classes=classes) for s in (1, 1, 2))
    np.testing.assert_array_equal(np.sort(np.concatenate([held for _, held in cut])), np.arange(n))
    for fold in cut:
        check_rows(fold, n)
        assert not set(groups[fold[0]]) & set(groups[fold[1]])
    assert all(np.array_equal(a[1], b[1]) for a, b in zip(cut, again, strict=True))
    assert not all(np.array_equal(a[1], b[1]) for a, b in zip(cut, other, strict=True))


def test_folds_in_time_are_those_of_time_series_split_over_the_times() -> None:
    times = np.array([3.0, 1.0, 2.0, 2.0, 5.0, 4.0, 6.0, 1.0])
    values = np.unique(times)
    cut = cross_validation_folds(3, 8, seed=0, times=times)
    for (train, held), (train_times, held_times) in zip(cut, TimeSeriesSplit(3).split(values), strict=True):
        assert set(times[train]) == set(values[train_times])
        assert set(times[held]) == set(values[held_times])


def test_a_splitter_gets_target_and_groups_unchanged() -> None:
    groups = np.array(["d", "a", "c", "b"])[np.arange(100) % 4]
    cut = cross_validation_folds(LeaveOneGroupOut(), 100, seed=0, y=CLASSES, groups=groups)
    assert [set(groups[held]) for _, held in cut] == [{"a"}, {"b"}, {"c"}, {"d"}]


@pytest.mark.parametrize("form", [list, np.asarray, lambda rows: np.uint8(rows), lambda rows: np.isin(range(6), rows)])
def test_given_folds_are_lists_arrays_or_masks(form: Any) -> None:
    given = [([0, 2, 4], [1, 3, 5]), ([1, 3, 5], [0, 2, 4])]
    cut = cross_validation_folds([(form(train), form(held)) for train, held in given], 6, seed=0)
    assert [(train.tolist(), held.tolist()) for train, held in cut] == given
    assert all(rows.dtype == np.int64 for fold in cut for rows in fold)


GROUPS = np.arange(100) % 12


@pytest.mark.parametrize(
    ("cv", "options", "message"),
    [
        (1, {}, "cv=1 must be a whole number of at least 2"),
        (True, {}, "cv=True must be a whole number"),
        (101, {}, "cv=101 needs at least 101 rows, but there are 100: lower cv"),
        (61, {"classes": CLASSES}, "cv=61 needs a class with at least 61 rows, but the largest class has 60"),
        (13, {"groups": GROUPS}, "cv=13 needs at least 13 groups, but there are 12: lower cv"),
        (6, {"times": np.arange(100) % 6}, r"cv=6 folds by time need at least 7 different times .* are 6: lower cv"),
        (
            [([0, 1], [2]), ([0], [1])],
            {},
            r"fold 1 of cv=.* has 1 training rows and 1 validation rows: a network needs",
        ),
        ([([0, 1], [2])], {}, r"cv=.* gives 1 fold, but cross-validation needs at least two"),
    ],
)
def test_bad_folds_raise(cv: Any, options: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        cross_validation_folds(cv, 100, seed=0, **options)


# --- groups and times ----------------------------------------------------------------------------------


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


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ("dat", "column in time_column='dat' is not one of 'age', 'date'; did you mean 'date'"),
        (2, "time_column has index 2, but X has 2 columns"),
        (1.0, "time_column has 1.0, which is not a column name or index"),
        (True, "time_column has True, which is not a column name or index"),
    ],
)
def test_unknown_columns_raise(column: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        column_index("time_column", column, ["age", "date"])


def test_columns_have_names_and_indices() -> None:
    assert [column_index("time_column", column, ["age", "date"]) for column in ("date", 1, -1, np.int64(0))] == [
        1,
        1,
        1,
        0,
    ]


def test_times_are_read_from_numbers_dates_and_identifiers() -> None:
    ids = np.arange(30)[::-1] * 7.0
    frame = pd.DataFrame({"id": ids, "day": [f"1970-01-{i:02}" for i in range(1, 31)], "kind": list("abc") * 10})
    columns = read_columns(frame)
    with pytest.warns(UserWarning, match="'id'"):
        schema = infer_schema(columns, [False] * 3)
    np.testing.assert_array_equal(times_of(columns, schema, 0), ids)
    np.testing.assert_array_equal(times_of(columns, schema, 1), np.arange(30))
    with pytest.raises(ValueError, match="time_column 'kind' has text or categories: it must have numbers or dates"):
        times_of(columns, schema, 2)
    with pytest.warns(UserWarning, match="constant"):
        empty = infer_schema(columns := read_columns(np.full((3, 1), np.nan)), [False])
    with pytest.raises(ValueError, match="time_column 'x0' has no values"):
        times_of(columns, empty, 0)
    columns = read_columns(np.array([[1.0], [np.nan], [3.0]]))
    with pytest.raises(ValueError, match="time_column 'x0' has 1 missing values, the first in row 1: fill them"):
        times_of(columns, infer_schema(columns, [False]), 0)
