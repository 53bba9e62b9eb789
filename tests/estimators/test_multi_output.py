"""Several targets: numbers, classes, and both."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from castlereg import CastleClassifier, CastleMultiOutput, CastleRegressor, NetworkMultiOutput, NetworkRegressor
from tests.estimators.test_real_tables import mixed_frame


def table(n: int = 300) -> tuple[np.ndarray, pd.DataFrame]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 4))
    targets = pd.DataFrame(
        {
            "height": X[:, 0] - X[:, 1] + 0.1 * rng.normal(size=n),
            "kind": np.array(["low", "mid", "top"])[np.digitize(X[:, 2], [-0.5, 0.5])],
            "ok": X[:, 3] > 0,
        }
    )
    return X, targets


OPTIONS: dict[str, Any] = {"learning_rate": 0.01, "random_state": 0}


def test_several_numbers() -> None:
    X, _ = table()
    y = np.c_[X[:, 0], 1000 + 50 * X[:, 1]]
    model = CastleRegressor(**OPTIONS).fit(X[:240], y[:240])
    assert model.predict(X).shape == (300, 2)
    assert model.score(X[240:], y[240:]) > 0.95
    assert model.n_outputs_ == 2
    assert model.graph_.targets == ("y0", "y1")
    assert model.graph_.nodes == ["x0", "x1", "x2", "x3", "y0", "y1"]
    learned = model.graph_.learned_weights
    assert learned.loc["x0", "y0"] > learned.loc["x1", "y0"]
    assert learned.loc["x1", "y1"] > learned.loc["x0", "y1"]
    assert learned.loc["y0", "y1"] == learned.loc["y1", "y0"] == 0


def test_several_classes() -> None:
    X, targets = table()
    y = targets[["kind", "ok"]]
    model = CastleClassifier(**OPTIONS).fit(X[:240], y[:240])
    assert [list(c) for c in model.classes_] == [["low", "mid", "top"], [False, True]]
    kind, ok = model.predict_proba(X)
    assert kind.shape == (300, 3)
    assert ok.shape == (300, 2)
    np.testing.assert_allclose(kind.sum(axis=1), 1)
    predicted = model.predict(X)
    assert predicted.shape == (300, 2)
    np.testing.assert_array_equal(predicted[:, 0], model.classes_[0][kind.argmax(axis=1)])
    right = (predicted == y.to_numpy()).all(axis=1)
    assert model.score(X[240:], y[240:]) == pytest.approx(right[240:].mean())
    assert right[240:].mean() > 0.75


def test_numbers_and_classes_together() -> None:
    X, targets = table()
    frame = pd.DataFrame(X, columns=list("abcd"), index=range(100, 400))
    model = CastleMultiOutput(**OPTIONS).fit(frame[:240], targets[:240])
    predicted = model.predict(frame)
    assert list(predicted.columns) == model.target_names_ == ["height", "kind", "ok"]
    assert list(predicted.index) == list(frame.index)
    assert predicted["ok"].dtype == bool
    assert np.corrcoef(predicted["height"][240:], targets["height"][240:])[0, 1] > 0.95
    assert (predicted["kind"][240:].to_numpy() == targets["kind"][240:].to_numpy()).mean() > 0.8
    probabilities = model.predict_proba(frame)
    assert list(probabilities) == ["kind", "ok"]
    assert list(probabilities["kind"].columns) == ["low", "mid", "top"]
    assert model.score(frame[240:], targets[240:]) > 0.8
    assert model.graph_.targets == ("height", "kind", "ok")
    unnamed = CastleMultiOutput(max_epochs=1, random_state=0).fit(X[:240], targets[:240])
    pd.testing.assert_frame_equal(unnamed.predict(X[:3].tolist()), unnamed.predict(X[:3]))


def test_one_target_is_as_with_a_regressor() -> None:
    X, targets = table(80)
    several = NetworkMultiOutput(max_epochs=4, random_state=0).fit(X, targets["height"])
    single = NetworkRegressor(max_epochs=4, random_state=0).fit(X, targets["height"])
    np.testing.assert_array_equal(several.predict(X)["height"], single.predict(X))


def test_losses_of_targets_count_alike() -> None:
    """Before anything is learned every target's loss is 1, whatever its kind or unit."""
    X, targets = table()
    model = NetworkMultiOutput(learning_rate=1e-9, max_epochs=1, random_state=0)
    model.fit(X, targets.assign(height=1e6 * targets["height"]))
    assert model.validation_loss_ == pytest.approx(3, rel=0.1)


def test_mixed_targets_of_a_mixed_frame() -> None:
    frame, rent = mixed_frame()
    y = pd.DataFrame({"rent": rent, "city": frame["city"]})
    model = CastleMultiOutput(max_epochs=3, random_state=0).fit(frame.drop(columns="city"), y)
    assert model.graph_.nodes == ["area", "rooms", "garden", "built", "rent", "city"]


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (pd.DataFrame({"a": [1.0] * 60, "b": range(60)}), "a is 1 in every row"),
        (pd.DataFrame({"a": ["x"] * 60, "b": range(60)}), "a has only one class"),
        (pd.DataFrame({"a": [None, *["x"] * 59], "b": range(60)}), "y's column 'a' has 1 missing values"),
    ],
)
def test_bad_targets_raise_with_their_names(y: pd.DataFrame, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        CastleMultiOutput().fit(np.random.default_rng(0).normal(size=(60, 2)), y)
