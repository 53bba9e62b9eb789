"""Weights of rows by their classes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.utils.class_weight import compute_sample_weight

from castlereg import NetworkClassifier
from castlereg.table.reading import read_columns
from castlereg.table.rows import Rows
from castlereg.table.targets import ClassTarget, NumericTarget, check_class_weight, weighted_by_class

KIND = np.array(["a", "b", "a", "c", "a", "b"])
OTHER = np.array([0, 1, 1, 1, 0, 1])


def rows(*targets: Any, weight: Any = None) -> Rows:
    return Rows(read_columns(np.arange(len(targets[0]) * 1.0)[:, None]), targets, weight)


def weighted(class_weight: Any, *targets: Any, weight: Any = None) -> Rows:
    encoders = [ClassTarget.fit(values, f"y{k}") for k, values in enumerate(targets)]
    return weighted_by_class(rows(*targets, weight=weight), encoders, class_weight)


def test_without_class_weights_rows_stay_as_they_are() -> None:
    given = rows(KIND)
    assert weighted_by_class(given, [ClassTarget.fit(KIND, "y")], None) is given


@pytest.mark.parametrize("class_weight", ["balanced", {"a": 2.0, "c": 0.5}, {}])
def test_weights_are_scikit_learns(class_weight: Any) -> None:
    np.testing.assert_allclose(weighted(class_weight, KIND).weight, compute_sample_weight(class_weight, KIND))


@pytest.mark.parametrize("entries", [["balanced", "balanced"], [{"b": 3.0}, {0: 2.0}], [None, {1: 0.25}]])
def test_factors_of_several_targets_are_multiplied(entries: list[Any]) -> None:
    expected = np.prod(
        [
            np.ones(6) if entry is None else compute_sample_weight(entry, values)
            for entry, values in zip(entries, (KIND, OTHER), strict=True)
        ],
        axis=0,
    )
    np.testing.assert_allclose(weighted(entries, KIND, OTHER).weight, expected)


def test_they_multiply_the_weights_that_rows_have() -> None:
    own = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    np.testing.assert_allclose(weighted({"b": 10.0}, KIND, weight=own).weight, [1, 20, 3, 4, 5, 60])
    balanced = weighted("balanced", KIND, weight=own)
    totals = [balanced.weight[label == KIND].sum() for label in "abc"]  # type: ignore[index]
    np.testing.assert_allclose(totals, [7.0] * 3)  # a third of 21 each


def test_rows_of_a_class_without_weight_are_dropped() -> None:
    kept = weighted({"a": 0}, KIND)
    np.testing.assert_array_equal(kept.targets[0], ["b", "c", "b"])
    np.testing.assert_array_equal(kept.index, [1, 3, 5])


def test_targets_of_numbers_have_no_factors() -> None:
    numbers = np.linspace(0, 1, 6)
    encoders = [ClassTarget.fit(KIND, "kind"), NumericTarget.fit(numbers, "size")]
    both = weighted_by_class(rows(KIND, numbers), encoders, ["balanced", "balanced"])
    np.testing.assert_allclose(both.weight, compute_sample_weight("balanced", KIND))


@pytest.mark.parametrize(
    ("class_weight", "message"),
    [
        ({"q": 2.0}, r"class_weight has class 'q', which y0 does not have; its classes are \['a', 'b', 'c'\]"),
        ({"a": -1}, r"class_weight\['a'\]=-1 must be at least 0"),
        ({"a": "much"}, r"class_weight\['a'\]='much' must be a finite number"),
        ({"a": np.inf}, r"class_weight\['a'\]=inf must be a finite number"),
        (["balanced", None], "class_weight has 2 entries for 1 targets: pass one for each"),
    ],
)
def test_bad_weights_raise(class_weight: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        weighted(class_weight, KIND)


@pytest.mark.parametrize("class_weight", ["balance", 2.0, ["balanced", "even"]])
def test_only_none_balanced_and_dicts_are_class_weights(class_weight: Any) -> None:
    with pytest.raises(ValueError, match="must be None, 'balanced' or a dict of classes to weights"):
        check_class_weight(class_weight)


def test_a_table_without_weight_raises() -> None:
    X = np.random.default_rng(0).normal(size=(12, 2))
    with pytest.raises(ValueError, match=r"n_samples=0 is too few: .* rows with a positive weight"):
        NetworkClassifier(class_weight={0: 0, 1: 0}).fit(X, np.arange(12) % 2)
