"""Regression or classification, by the values of the target."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest

from castlereg import CastleMultiOutput, compare
from castlereg.cli.fit import chosen_task
from castlereg.table.targets import ClassTarget, inferred_task, is_missing

ODD: list[tuple[Any, str]] = [
    (["a", "b", "a"], "classification"),
    ([True, False, True], "classification"),
    ([0.0, 1.0, None], "classification"),
    ([1, 2, 3, 1, 2, 3], "classification"),
    (np.array([1, 2, 3, 1, 2, 3], object), "classification"),
    (np.array([True, False, None], object), "classification"),
    ([1.0, 2.0, 1.0], "classification"),
    (pd.Categorical([1, 2, 3]), "classification"),
    (pd.Categorical(["x", "y", "x"]), "classification"),
    (pd.array([0, 1, None, 1], dtype="Int64"), "classification"),
    (pd.array([True, None], dtype="boolean"), "classification"),
    (pd.array(["a", None], dtype="string"), "classification"),
    ([2, 3, 4, 5, 4, 7, 8, 9, 9, 12], "regression"),  # few rows, not classes
    (list(range(20)), "regression"),
    ([0.5, 1.0, 1.5], "regression"),
    ([0.5, 1.5, 0.5, 1.5], "regression"),  # two values, but not whole
    (np.array([0.5, 1.5, 0.5, 1.5], object), "regression"),
    ([7, 7, 7], "regression"),  # a constant, which no estimator accepts
    ([Decimal("0.5"), Decimal(1)], "regression"),
    (pd.array([0.5, 1.5, None], dtype="Float64"), "regression"),
    (["0.5", "1.5", "NA"], "regression"),  # text of numbers
    (["0.5", "1.5"], "regression"),
    (["0.5", "-", "1.5", "none"], "regression"),  # marks among numbers
    (np.array([0.5, "-", 1.5], object), "regression"),
    (["+", "-", "+"], "classification"),
    (["none", "some", "none"], "classification"),
    (["1", "2", "1", "?", "2"], "classification"),
    (["01", "02", "03"], "classification"),  # codes
]


@pytest.mark.parametrize(("values", "task"), ODD)
def test_the_task_follows_from_the_target(values: Any, task: str) -> None:
    assert inferred_task(values)[0] == inferred_task(pd.Series(values))[0] == task
    assert chosen_task(pd.DataFrame({"y": values}), "auto")[0] == task


MANY = np.random.default_rng(0).uniform(0, 99, 60)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([f"{x:.2f}".replace(".", ",") for x in MANY], r"price has text that looks like numbers with decimal commas"),
        ([f"{x:.2f} kg" for x in MANY], "price has text that looks like numbers with units"),
        ([*map(str, MANY), "n.v."], "price has text that looks like numbers except for 'n.v.'"),
        ([f"2024-{i // 28 + 1:02}-{i % 28 + 1:02}" for i in range(60)], "price has text that looks like dates, such"),
        ([f"person {i}" for i in range(60)], r"hardly any repeated values \(60 different values in 60 rows, such as"),
    ],
)
def test_text_that_is_neither_numbers_nor_classes_raises(values: list[str], message: str) -> None:
    y = pd.Series(values, name="price")
    with pytest.raises(ValueError, match=message):
        inferred_task(y)
    with pytest.raises(ValueError, match=message):
        ClassTarget.fit(y.to_numpy(object), "price")


def test_many_classes_that_repeat_are_classes() -> None:
    for labels in ([str(i) for i in range(30)], [f"word {i}" for i in range(30)], [f"{i:02}" for i in range(30)]):
        assert len(ClassTarget.fit(np.array(labels * 2), "y").classes) == 30
    with pytest.raises(
        ValueError, match=r"y has text that looks like numbers, such as '0\.5'.*: predict them with a regressor"
    ):
        ClassTarget.fit(np.array([f"{i}.5" for i in range(30)] * 9), "y")


def inferred_missing(values: Any) -> bool:
    return any(isinstance(value, str) for value in pd.Series(values)[is_missing(pd.Series(values))])


def have_values(values: Any) -> bool:
    return pd.Series(values).nunique() > 1 and not inferred_missing(values)


@pytest.mark.parametrize("values", [values for values, _ in ODD if have_values(values)])
def test_estimators_of_several_targets_use_the_same_rule(values: Any) -> None:
    y = pd.concat([pd.Series(values).dropna()] * 4, ignore_index=True)
    X = np.random.default_rng(0).normal(size=(len(y), 2))
    expected = inferred_task(y)[0]
    model = CastleMultiOutput(hidden_layer_sizes=(2,), max_epochs=1, random_state=0)
    for stored in (y, y.to_frame()):
        model.fit(X, stored)
        assert model.model_.target_kinds == ["numbers" if expected == "regression" else "classes"]


@pytest.mark.parametrize("values", [values for values, _ in ODD if have_values(values)])
def test_comparisons_use_the_same_rule(values: Any) -> None:
    y = pd.concat([pd.Series(values).dropna()] * 8, ignore_index=True)
    X = np.random.default_rng(0).normal(size=(len(y), 2))
    options: dict[str, Any] = {
        "cv": 2,
        "hidden_layer_sizes": (2,),
        "max_epochs": 1,
        "random_state": 0,
        "verbose": False,
    }
    metric = compare(X, y, methods=["Baseline"], **options).metric
    assert metric == ("MSE" if inferred_task(y)[0] == "regression" else "AUROC")
