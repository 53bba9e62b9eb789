"""Regression or classification, by the values of the target."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest

from castlereg.data.targets import is_numeric_target
from castlereg.data.task import inferred_task


@pytest.mark.parametrize(
    ("values", "task"),
    [
        (["a", "b", "a"], "classification"),
        ([True, False, True], "classification"),
        ([0.0, 1.0, None], "classification"),
        ([1, 2, 3, 1, 2, 3], "classification"),
        ([2, 3, 4, 5, 4, 7, 8, 9, 9, 12], "regression"),  # few rows, not classes
        (list(range(20)), "regression"),
        ([0.5, 1.0, 1.5], "regression"),
        ([0.5, 1.5, 0.5, 1.5], "regression"),  # two values, but not whole
        ([7, 7, 7], "regression"),  # a constant, which no estimator accepts
        ([Decimal("0.5"), Decimal(1)], "regression"),
        (pd.Categorical([1, 2, 3]), "classification"),
        (pd.array([0, 1, None, 1], dtype="Int64"), "classification"),
        (pd.array(["a", None], dtype="string"), "classification"),
    ],
)
def test_the_task_follows_from_the_target(values: Any, task: str) -> None:
    assert inferred_task(pd.Series(values))[0] == task


@pytest.mark.parametrize("values", [["a", "b"], [True, False], [1, 2, 1, 2], [1.0, 2.0, 1.0], [0.5, 1.5], range(30)])
def test_arrays_are_judged_as_series(values: Any) -> None:
    column = np.array(values)
    assert inferred_task(column) == inferred_task(pd.Series(values)) == inferred_task(list(values))
    assert is_numeric_target(column) == (inferred_task(column)[0] == "regression")
