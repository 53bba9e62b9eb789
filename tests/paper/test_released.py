"""The released code's objective in training; tests/test_objective.py has its terms."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_diabetes

from castlereg import NetworkRegressor, load, save
from castlereg.paper import ReleasedCastle
from castlereg.paper.acyclicity import truncated_series
from castlereg.regularizers import Castle


@pytest.mark.parametrize("regularizer", [ReleasedCastle(5.0), Castle(acyclicity=truncated_series)])
def test_it_trains(regularizer: Castle) -> None:
    X, y = load_diabetes(return_X_y=True)
    model = NetworkRegressor([regularizer], max_epochs=60, random_state=0).fit(X, y)
    assert 0.2 < model.score(X, y) < 0.8


def test_a_saved_model_predicts_the_same_without_its_regularizer(tmp_path: Path) -> None:
    X, y = load_diabetes(return_X_y=True)
    model = NetworkRegressor([ReleasedCastle(5.0)], max_epochs=2, random_state=0).fit(X, y)
    with pytest.warns(UserWarning, match="a ReleasedCastle has no form but pickle's"):
        save(model, tmp_path / "model.castle")
    np.testing.assert_array_equal(load(tmp_path / "model.castle").predict(X), model.predict(X))
