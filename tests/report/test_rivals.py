"""Forest and boosting on cells as networks read them: numbers, levels, missing values."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor
from threadpoolctl import threadpool_limits

from castlereg.report import cross_fitting
from castlereg.report.cross_fitting import out_of_fold
from castlereg.report.rivals import RIVALS, Rival, predicted_by
from castlereg.table.targets import ClassTarget, NumericTarget

from .conftest import Fitted


def awkward_cells(n: int) -> np.ndarray:
    """A number with missing values, a level that training may not know, a constant and a column without any value."""
    rng = np.random.default_rng(0)
    cells = np.column_stack([rng.normal(size=n), rng.integers(-1, 4, size=n), np.ones(n), np.full(n, np.nan)])
    cells[::7, 0] = np.nan
    return cells


@pytest.mark.parametrize("rival", RIVALS)
def test_rivals_learn_from_missing_values_and_levels(rival: Rival) -> None:
    cells, categorical = awkward_cells(400), np.array([False, True, False, False])
    y = np.where(np.isnan(cells[:, 0]), 3.0, 0.0) + (cells[:, 1] == 2)
    predicted = predicted_by(rival, NumericTarget.fit(y, "y"), cells[:300], y[:300], cells[300:], categorical, seed=0)
    assert np.mean((predicted - y[300:]) ** 2) < 0.15 * y.var()


@pytest.mark.parametrize("rival", RIVALS)
def test_probabilities_have_a_column_for_a_class_that_training_lacks(rival: Rival) -> None:
    labels = np.repeat(["a", "b", "c"], [30, 1, 29])  # one row of "b" is too few for rows that decide when to stop
    cells = awkward_cells(60)
    target = ClassTarget("y", np.array(["a", "b", "c", "d"]))
    predicted = predicted_by(rival, target, cells, labels, cells[:5], np.zeros(4, bool), seed=0)
    assert predicted.shape == (5, 4)
    assert predicted.sum(axis=1) == pytest.approx(1)
    assert (predicted[:, 3] == 0).all()
    assert (predicted[:, :3] > 0).all()  # a forest sure of a class and wrong would have an infinite log loss


def test_rivals_predict_the_rows_that_their_fold_left_out(fitted: Fitted, monkeypatch: pytest.MonkeyPatch) -> None:
    model, X, y = fitted
    truth = y.to_numpy()
    monkeypatch.setattr(cross_fitting, "RIVALS", RIVALS[1:])
    predictions, folds = out_of_fold(model, X, y, [truth], rivals=True, cv=2, seed=3, verbose=False)
    assert list(predictions) == ["CASTLE", "plain network", "gradient boosting", "guess"]
    seeds = np.random.SeedSequence(3).generate_state(2).tolist()
    cells = X.to_numpy(np.float64)
    for fold in range(2):
        held = folds == fold
        boosting = HistGradientBoostingRegressor(early_stopping=True, random_state=seeds[fold])
        with threadpool_limits(1, "openmp"):
            expected = boosting.fit(cells[~held], truth[~held]).predict(cells[held])
        assert predictions["gradient boosting"][0][held] == pytest.approx(expected)
    monkeypatch.setattr(cross_fitting, "MOST_ROWS", 20)
    fewer, _ = out_of_fold(model, X, y, [truth], rivals=True, cv=2, seed=3, verbose=False)
    assert not np.array_equal(fewer["gradient boosting"][0], predictions["gradient boosting"][0])
    np.testing.assert_array_equal(fewer["CASTLE"][0], predictions["CASTLE"][0])
