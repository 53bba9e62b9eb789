"""What makes a fit less trustworthy is said once, in one line, and not of ordinary tables."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_diabetes
from sklearn.model_selection import KFold

from castlereg import CastleClassifierCV, NetworkRegressor
from castlereg.fitted.held_out import HeldOutPredictions
from castlereg.notices import FitWarning
from castlereg.regularizers import L2, Castle
from castlereg.search.doubts import end_of_grid, few_rows, no_skill, rare_classes
from castlereg.table.targets import ClassTarget, NumericTarget

QUICK: dict[str, Any] = {"hidden_layer_sizes": (4,), "max_epochs": 1, "random_state": 0}
NUMBER, CLASSES = NumericTarget("y", 0.0, 1.0), ClassTarget("kind", np.array(list("abcde")))


def said(model: Any, X: Any, y: Any) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, y)
    assert all("\n" not in str(warning.message) for warning in caught)
    assert {warning.filename for warning in caught} <= {__file__}  # they point at the user's line
    return [str(warning.message) for warning in caught if warning.category is FitWarning]


def test_nothing_is_said_of_an_ordinary_table() -> None:
    X, y = load_diabetes(return_X_y=True)
    assert said(NetworkRegressor(max_epochs=2, random_state=0), X, y) == []


def test_few_rows_and_no_skill_are_said_once_for_all_networks(rng: np.random.Generator) -> None:
    X, y = rng.normal(size=(100, 3)), rng.normal(size=100)
    few = said(NetworkRegressor(n_members=3, **QUICK), X[:45], y[:45])
    assert len(few) == 1 and few[0].startswith("45 rows for 3 columns are few: ")
    wild = said(NetworkRegressor(n_members=3, learning_rate=1.0, **QUICK), X, y)
    assert len(wild) == 1 and wild[0].startswith("predictions of 'y' on held-out rows are no better than the mean")


def test_a_class_that_a_fold_does_not_train_on(rng: np.random.Generator) -> None:
    y = np.repeat(["a", "b", "c"], [30, 24, 6])
    model = CastleClassifierCV((0.01,), cv=KFold(2), **QUICK)
    notes = said(model, rng.normal(size=(60, 3)), pd.Series(y, name="kind"))
    assert notes[:2] == [
        "'kind' has rare classes, 'c' (6 rows): they are hard to learn and to score; merge them or collect more rows",
        "fold 0 has no training rows of class 'a' of 'kind', so it cannot predict it: use a stratified splitter",
    ]
    assert len(notes) == len(set(notes))


@pytest.mark.parametrize(
    ("rows", "columns", "few"), [(49, 2, True), (50, 2, False), (109, 100, True), (110, 100, False)]
)
def test_few_rows(rows: int, columns: int, few: bool) -> None:
    assert (few_rows(rows, columns) is not None) == few


def test_rare_classes_are_named_rarest_first() -> None:
    assert rare_classes(CLASSES, np.array([10, 11, 99, 50, 20])) is None
    assert "'b' (1 row), 'e' (3 rows), 'a' (4 rows) and 1 more:" in str(
        rare_classes(CLASSES, np.array([4, 1, 9, 50, 3]))
    )


def test_a_beta_at_the_end_of_its_grid(rng: np.random.Generator) -> None:
    grid = [(Castle(beta, reg_lambda=strength),) for beta in (0.1, 1.0) for strength in (1.0, 2.0)]
    better = np.repeat([[-1.0], [-0.5]], 2, axis=0) + rng.normal(0, 0.01, (4, 5))
    assert str(end_of_grid(grid, better, 3)).startswith(
        "reg_beta=1 is the largest value tried and clearly better than 0.1:"
    )
    noisy = better + np.outer([0, 1, 0, -1], [1, -1, 2, -1, -1])
    assert end_of_grid(grid, noisy, 3) is None  # not clearly
    assert end_of_grid(grid, better, 0) is None  # chosen as the smallest, but not better
    assert end_of_grid(grid[2:], better[2:], 0) is None  # one beta
    assert end_of_grid([(Castle(0.0),), (Castle(0.1),)], -better[[0, 2]], 0) is None  # nothing is smaller
    assert end_of_grid([(L2(0.1),), (L2(1.0),)], better[[0, 2]], 1) is None
    failed = np.where(np.arange(5) == 2, -np.inf, better)
    assert end_of_grid(grid, failed, 3) is None


def test_a_beta_is_compared_within_candidates_that_are_alike_otherwise(rng: np.random.Generator) -> None:
    scores = np.repeat([[-1.0], [-0.5]], 5, axis=1) + rng.normal(0, 0.01, (2, 5))
    assert end_of_grid([(Castle(0.1), L2(5.0)), (Castle(1.0), L2(5.0))], scores, 1) is not None
    assert end_of_grid([(Castle(0.1), L2(0.1)), (Castle(1.0), L2(5.0))], scores, 1) is None


def test_no_skill_names_the_targets_that_are_not_predicted(rng: np.random.Generator) -> None:
    y, kinds = rng.normal(size=40), np.array(list("abcde") * 8)
    right, wrong = y + 0.1, -y
    shares, sure = np.full((40, 5), 0.2), 0.1 + 0.5 * np.eye(5)[np.arange(40) % 5]

    def said_of(number: Any, classes: Any) -> str:
        return str(no_skill(HeldOutPredictions([y, kinds], [number, classes]), [NUMBER, CLASSES]))

    assert said_of(right, sure) == "None"
    assert "predictions of 'y' on held-out rows are no better than the mean (R² below 0):" in said_of(wrong, sure)
    assert "predictions of 'kind' on held-out rows are no better than the class shares:" in said_of(right, shares)
    assert "than the mean (R² below 0) and the class shares:" in said_of(wrong, shares)
