"""Predictions of networks do not depend on the other rows of a call, nor on threads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import castlereg.fitted.networks as module
from castlereg import CastleClassifierCV, CastleRegressorCV, NetworkRegressor, Recipe


@pytest.fixture(scope="module", params=["regression", "classification"])
def fitted(request: pytest.FixtureRequest) -> tuple[Any, np.ndarray]:
    """Fit a pool of ten folds: more than NumPy adds up in the same order for one row and for many."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 3))
    y = X[:, 0] + np.sin(3 * X[:, 1]) + 0.1 * rng.normal(size=150)
    rows = rng.normal(size=(1100, 3))
    if request.param == "regression":
        return CastleRegressorCV(search="best", random_state=0).fit(X, y).predict, rows
    return CastleClassifierCV(search="best", random_state=0).fit(X, y > 0).predict_proba, rows


def test_a_prediction_does_not_depend_on_other_rows(fitted: tuple[Any, np.ndarray]) -> None:
    predict, rows = fitted
    together = predict(rows)  # more than one block
    np.testing.assert_array_equal(predict(rows[::-1])[::-1], together)
    for some in (slice(0, 1), slice(1023, 1025), slice(500, 517), slice(3, 300)):
        np.testing.assert_array_equal(predict(rows[some]), together[some])


@pytest.mark.parametrize("cores", [1, 3])
def test_a_prediction_does_not_depend_on_threads(
    fitted: tuple[Any, np.ndarray], cores: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    predict, rows = fitted
    expected = predict(rows)
    monkeypatch.setattr(module, "available_cores", lambda: cores)
    np.testing.assert_array_equal(predict(rows), expected)
    monkeypatch.setattr(module, "_LONG", 10**9)
    np.testing.assert_array_equal(predict(rows), expected)


def test_without_threads_predictions_are_the_same(
    fitted: tuple[Any, np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python starts no threads while it ends, when others may still predict."""

    def none(cores: int) -> Any:
        raise RuntimeError("cannot schedule new futures after interpreter shutdown")

    predict, rows = fitted
    expected = predict(rows)
    monkeypatch.setattr(module, "ThreadPoolExecutor", none)
    np.testing.assert_array_equal(predict(rows), expected)


@pytest.mark.filterwarnings("error")
def test_a_value_far_beyond_all_others_has_a_finite_prediction() -> None:
    rng = np.random.default_rng(0)
    X = 1e-10 * rng.normal(size=(60, 2))
    model = NetworkRegressor(recipe=Recipe(embedding=4), max_epochs=2, random_state=0).fit(X, X[:, 0] * 1e10)
    assert np.isfinite(model.predict([[1e30, 0.0], [0.0, -1e38]])).all()
