"""pytabkit's form of our searches: what ``fit`` is given reaches the search."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone, is_classifier, is_regressor
from sklearn.linear_model import LinearRegression, LogisticRegression

from castlereg import CastleRegressorCV
from castlereg.integrations.pytabkit import Castle_Classifier, Castle_Regressor
from castlereg.training.devices import training_mesh


class Recorded(BaseEstimator):
    """A search that only notes what it was asked."""

    def __init__(self, **options: Any) -> None:
        self.options = options

    def fit(self, X: Any, y: Any) -> Recorded:
        self.rows, self.devices = (X, y), training_mesh(99).devices.size
        return self


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch) -> Castle_Regressor:
    monkeypatch.setattr(Castle_Regressor, "search_class", Recorded)
    return Castle_Regressor(random_state=3)


@pytest.fixture
def table(rng: np.random.Generator) -> tuple[pd.DataFrame, pd.Series]:
    frame = pd.DataFrame({"x": rng.normal(size=60), "code": rng.integers(0, 3, 60), "text": rng.choice(["a", "b"], 60)})
    frame.loc[::9, "x"] = np.nan
    return frame, (frame["x"].fillna(1) + frame["code"]).rename("y")


def test_without_validation_rows_there_are_folds(recorded: Castle_Regressor, table: Any) -> None:
    options = recorded.fit(*table, cat_col_names=["code"], time_to_fit_in_seconds=7).castle_.options
    assert options == {
        "search": "fast",
        "time_limit": 7,
        "cv": 5,
        "categorical_features": ["code"],
        "unusable_columns": "drop",
        "random_state": 3,
        "verbose": False,
    }


def test_validation_rows_are_one_split_trained_on_several_times(recorded: Castle_Regressor, table: Any) -> None:
    frame, y = table
    search = recorded.set_params(n_cv=3).fit(frame[:40], y[:40], X_val=frame[40:], y_val=y[40:]).castle_
    pd.testing.assert_frame_equal(search.rows[0], frame)
    pd.testing.assert_series_equal(search.rows[1], y)
    assert len(search.options["cv"]) == 3
    for train, held in search.options["cv"]:
        np.testing.assert_array_equal(train, np.arange(40))
        np.testing.assert_array_equal(held, np.arange(40, 60))


def test_indices_of_validation_rows_are_splits(recorded: Castle_Regressor, table: Any) -> None:
    cv = recorded.fit(*table, val_idxs=np.arange(60).reshape(2, 30)).castle_.options["cv"]
    assert [(train[0], held[0]) for train, held in cv] == [(30, 0), (0, 30)]


def test_a_mask_of_categorical_columns_and_cores(recorded: Castle_Regressor, table: Any) -> None:
    search = recorded.set_params(n_threads=1).fit(*table, cat_indicator=np.array([False, True, False])).castle_
    assert search.options["categorical_features"] == [False, True, False]
    assert search.devices == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"X_val": [[1.0]]}, "y_val is missing; pass both X_val and y_val, or neither"),
        ({"X_val": [[1.0]], "y_val": [1.0], "val_idxs": [0]}, "X_val and val_idxs cannot be combined"),
        ({"cat_indicator": [True], "cat_col_names": ["x"]}, "cat_indicator and cat_col_names cannot be combined"),
    ],
)
def test_arguments_that_contradict_each_other_raise(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Castle_Regressor().fit([[0.0]], [0.0], **options)


def test_a_single_fold_raises() -> None:
    with pytest.raises(ValueError, match="n_cv=1 must be a whole number of at least 2"):
        Castle_Regressor(n_cv=1).fit([[0.0]], [0.0])


def test_predictions_are_those_of_the_search(monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator) -> None:
    class Line(LinearRegression):  # type: ignore[misc]
        def __init__(self, **options: Any) -> None:
            super().__init__()

    class Logistic(LogisticRegression):  # type: ignore[misc]
        def __init__(self, **options: Any) -> None:
            super().__init__()

    X: NDArray[np.float64] = rng.normal(size=(30, 2))
    y = X @ [1.0, 2.0]
    monkeypatch.setattr(Castle_Regressor, "search_class", Line)
    monkeypatch.setattr(Castle_Classifier, "search_class", Logistic)
    np.testing.assert_array_equal(Castle_Regressor().fit(X, y).predict(X), LinearRegression().fit(X, y).predict(X))
    kind = np.where(y > 0, "up", "down")
    model, plain = Castle_Classifier().fit(X, kind), LogisticRegression().fit(X, kind)
    np.testing.assert_array_equal(model.predict(X), plain.predict(X))
    np.testing.assert_array_equal(model.predict_proba(X), plain.predict_proba(X))
    assert list(model.classes_) == ["down", "up"]
    assert model.n_features_in_ == 2


def test_they_are_estimators_of_scikit_learn() -> None:
    assert is_regressor(Castle_Regressor())
    assert is_classifier(Castle_Classifier())
    assert clone(Castle_Classifier(n_cv=3, search="best")).get_params()["n_cv"] == 3
    assert not hasattr(Castle_Classifier(), "classes_")


def test_given_validation_rows_the_pool_is_that_of_the_same_splits(table: Any) -> None:
    """With so little time that only the linear forms and the first epochs of CASTLE are trained."""
    frame, y = table
    limit = 1e-3
    model = Castle_Regressor(n_cv=2, random_state=0)
    model.fit(frame[:45], y[:45], frame[45:], y[45:], cat_col_names=["code"], time_to_fit_in_seconds=limit)
    splits = [(np.arange(45), np.arange(45, 60))] * 2
    search = CastleRegressorCV(
        search="fast", cv=splits, categorical_features=["code"], random_state=0, time_limit=limit
    )
    by_hand = search.fit(frame, y)
    np.testing.assert_array_equal(model.predict(frame), by_hand.predict(frame))


def test_fit_takes_the_arguments_of_pytabkit() -> None:
    pytabkit = pytest.importorskip("pytabkit")
    for ours, theirs in ((Castle_Regressor, "RealMLP_TD_Regressor"), (Castle_Classifier, "RealMLP_TD_Classifier")):
        expected = inspect.signature(getattr(pytabkit, theirs).fit).parameters
        assert list(inspect.signature(ours.fit).parameters) == list(expected)
