"""Importances of columns: closed forms, definition, noise, weights, and what the estimators show of them."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from sklearn.feature_selection import SelectFromModel

import castlereg
from castlereg import CastleClassifier, CastleMultiOutput, CastleRegressor, CastleRegressorCV, NetworkRegressor
from castlereg.fitted import FittedModel
from castlereg.fitted.held_out import HeldOut, HeldOutPredictions
from castlereg.fitted.importances import column_importances, importance_rows
from castlereg.fitted.row_losses import RowLosses
from castlereg.table.targets import ClassTarget, NumericTarget, Target

A, B = 2.0, 1.0
NUMBERS = NumericTarget("y", 0.0, 1.0)


@dataclass(frozen=True)
class Known:
    """A predictor whose function is known; all members are the same."""

    function: Callable[[NDArray[np.float64]], NDArray[np.float64]]
    target: Target = NUMBERS

    @property
    def preprocessing(self) -> Any:
        return SimpleNamespace(targets=[self.target])

    def of_members(self, members: NDArray[np.int64]) -> Known:
        return self

    def predict(self, cells: NDArray[np.float64]) -> list[NDArray[np.float64]]:
        return [self.function(cells)[None]]

    predict_values = predict


def linear(cells: NDArray[np.float64]) -> NDArray[np.float64]:
    return A * cells[:, 0] + B * cells[:, 1]


def linear_world(rng: np.random.Generator, n: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    X = rng.normal(size=(n, 4))
    return X, linear(X) + 0.5 * rng.normal(size=n)


def held_out(X: NDArray[np.float64], y: NDArray[Any], weight: NDArray[np.float64] | None = None) -> HeldOut:
    folds = [np.arange(k, len(X), 3) for k in range(3)]
    return HeldOut(X, [y], [1.0], folds, weight)


def test_of_a_linear_function_of_independent_columns(rng: np.random.Generator) -> None:
    """Permuting column j raises the squared error by twice the square of its coefficient."""
    X, y = linear_world(rng, 20_000)
    importances = column_importances(Known(linear), held_out(X, y))
    np.testing.assert_allclose(importances[:2], [2 * A**2 / (A**2 + B**2), 2 * B**2 / (A**2 + B**2)], rtol=0.03)
    np.testing.assert_array_equal(importances[2:], 0)


def test_of_classes_they_are_shares_of_the_log_loss_explained(rng: np.random.Generator) -> None:
    """One column of two values decides: permuted, it is wrong about half of the rows."""
    X = rng.choice([0.0, 1.0], size=(20_000, 2))
    y = np.array(["no", "yes"])[(rng.random(len(X)) < np.where(X[:, 0] == 1, 0.9, 0.1)).astype(int)]

    def shares(cells: NDArray[np.float64]) -> NDArray[np.float64]:
        yes = np.where(cells[:, 0] == 1, 0.9, 0.1)
        return np.column_stack([1 - yes, yes])

    importances = column_importances(Known(shares, ClassTarget("y", np.array(["no", "yes"]))), held_out(X, y))
    loss, permuted = -(0.9 * np.log(0.9) + 0.1 * np.log(0.1)), -(np.log(0.9) + np.log(0.1)) / 2
    np.testing.assert_allclose(importances, [(permuted - loss) / (np.log(2) - loss), 0], rtol=0.05)


def test_rows_count_by_their_weights(rng: np.random.Generator) -> None:
    X, y = linear_world(rng, 300)
    weight = rng.exponential(size=300)
    weight /= weight.mean()
    expected, before = [], np.average((linear(X) - y) ** 2, weights=weight)
    for j in range(4):
        after = []
        for repeat in range(5):
            permuted = X.copy()
            permuted[:, j] = X[np.random.default_rng(repeat).permutation(300), j]
            after.append(np.average((linear(permuted) - y) ** 2, weights=weight))
        constant = np.average((y - np.average(y, weights=weight)) ** 2, weights=weight)
        expected.append((np.mean(after) - before) / (constant - before))
    np.testing.assert_allclose(column_importances(Known(linear), held_out(X, y, weight)), expected, rtol=1e-9)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("y", [np.full(30, 3.0), np.linspace(0, 1e5, 30)], ids=["constant", "badly predicted"])
def test_a_model_that_explains_nothing_has_zeros(rng: np.random.Generator, y: NDArray[np.float64]) -> None:
    np.testing.assert_array_equal(column_importances(Known(linear), held_out(rng.normal(size=(30, 3)), y)), 0)


def test_of_long_and_wide_tables_some_rows_are_used(rng: np.random.Generator) -> None:
    rows = held_out(np.zeros((3000, 500)), np.arange(3000.0), rng.random(3000))
    some = importance_rows(rows)
    assert len(some.cells) == 1000
    assert some.weight is not None
    assert some.weight.mean() == pytest.approx(1)
    np.testing.assert_array_equal(np.sort(np.concatenate(some.by_member)), np.arange(1000))
    (truth,) = some.truth
    assert all((truth[positions] % 3 == fold).all() for fold, positions in enumerate(some.by_member))
    assert importance_rows(held_out(np.zeros((3000, 5)), np.arange(3000.0))).cells.shape == (3000, 5)


QUICK: dict[str, Any] = {"hidden_layer_sizes": (8,), "max_epochs": 60, "learning_rate": 0.01, "random_state": 0}


@pytest.fixture(scope="module")
def world() -> tuple[pd.DataFrame, NDArray[np.float64]]:
    X, y = linear_world(np.random.default_rng(1), 900)
    city = np.where(X[:, 0] > 0, "Oslo", "Rome")  # text that says something of the target
    frame = pd.DataFrame(X[:, 1:], columns=["b", "noise", "more noise"]).assign(city=city)
    frame.loc[::9, "b"] = np.nan
    return frame, y


@pytest.fixture(scope="module")
def folds(world: tuple[pd.DataFrame, NDArray[np.float64]]) -> CastleRegressorCV:
    return CastleRegressorCV((0.001,), cv=3, **QUICK).fit(*world)


def test_a_trained_network_comes_close_to_the_closed_form() -> None:
    X, y = linear_world(np.random.default_rng(0), 1500)
    importances = CastleRegressorCV((0.001,), cv=3, **QUICK).fit(X, y).feature_importances_
    np.testing.assert_allclose(importances, [1.6, 0.4, 0, 0], atol=0.15)
    assert np.abs(importances[2:]).max() < 0.02


def test_they_are_what_the_definition_says(folds: CastleRegressorCV) -> None:
    """One permutation after the other, with the estimator's own folds."""
    model: FittedModel = folds.model_
    rows = model.importance_rows
    assert rows is not None
    losses = RowLosses(model.targets, rows.truth)

    def loss(cells: NDArray[np.float64]) -> float:
        predictions = HeldOutPredictions.of(model.predictor, replace(rows, cells=cells))
        return float(losses(predictions.predicted).mean())

    before, expected = loss(rows.cells), []
    for j in range(4):
        after = []
        for repeat in range(5):
            cells = rows.cells.copy()
            cells[:, j] = cells[np.random.default_rng(repeat).permutation(len(cells)), j]
            after.append(loss(cells))
        expected.append((np.mean(after) - before) / (1 - before))
    np.testing.assert_allclose(folds.feature_importances_, expected, rtol=1e-9)


def test_text_and_missing_values_count(folds: CastleRegressorCV) -> None:
    b, noise, more_noise, city = folds.feature_importances_
    assert city > b > 0.1
    assert max(abs(noise), abs(more_noise)) < 0.03


def test_the_same_seed_gives_the_same_bits_whatever_the_order(
    world: tuple[pd.DataFrame, NDArray[np.float64]], folds: CastleRegressorCV
) -> None:
    X, y = world
    state = np.random.get_state()[1].copy()  # type: ignore[union-attr, index]
    rows = np.random.default_rng(5).permutation(len(X))
    again = CastleRegressorCV((0.001,), cv=3, **QUICK).fit(X.iloc[rows, ::-1], y[rows])
    np.testing.assert_array_equal(again.feature_importances_[::-1], folds.feature_importances_)
    np.testing.assert_array_equal(np.random.get_state()[1], state)  # type: ignore[index]


def test_files_and_pickles_have_them_without_the_rows(folds: CastleRegressorCV, tmp_path: Path) -> None:
    castlereg.save(folds, tmp_path / "model.castle")
    loaded = castlereg.load(tmp_path / "model.castle")
    for other in (loaded, pickle.loads(pickle.dumps(folds))):
        assert other.model_.importance_rows is None  # nobody gives training rows away
        np.testing.assert_array_equal(other.feature_importances_, folds.feature_importances_)
    castlereg.save(loaded, tmp_path / "again.castle")
    np.testing.assert_array_equal(
        castlereg.load(tmp_path / "again.castle").feature_importances_, folds.feature_importances_
    )


def test_they_cannot_be_changed(folds: CastleRegressorCV) -> None:
    before = folds.feature_importances_
    folds.feature_importances_[:] = 0
    np.testing.assert_array_equal(folds.feature_importances_, before)


@pytest.mark.parametrize("kind", ["classes", "several", "members"])
def test_every_estimator_has_them(world: tuple[pd.DataFrame, NDArray[np.float64]], kind: str) -> None:
    X, y = world
    if kind == "classes":
        model: Any = CastleClassifier(**QUICK).fit(X, np.digitize(y, [-1, 1]))
    elif kind == "several":
        model = CastleMultiOutput(**QUICK).fit(X, pd.DataFrame({"size": y, "large": np.where(y > 0, "yes", "no")}))
    else:
        model = NetworkRegressor(n_members=2, bootstrap=True, **QUICK).fit(X, y, X_val=X[:300], y_val=y[:300])
    assert model.feature_importances_.shape == (4,)
    assert model.feature_importances_.argmax() == 3


def test_scikit_learn_selects_columns_by_them(world: tuple[pd.DataFrame, NDArray[np.float64]]) -> None:
    selection = SelectFromModel(CastleRegressor(**QUICK), threshold=0.05).fit(*world)
    assert selection.get_feature_names_out().tolist() == ["b", "city"]
    assert selection.transform(world[0]).shape == (900, 2)


def test_models_of_files_say_what_to_use_instead(
    world: tuple[pd.DataFrame, NDArray[np.float64]], tmp_path: Path
) -> None:
    X, y = world
    X.assign(y=y).to_csv(tmp_path / "table.csv", index=False)
    model = NetworkRegressor(**{**QUICK, "max_epochs": 2}).fit_file(tmp_path / "table.csv", "y")
    castlereg.save(model, tmp_path / "model.castle")
    for either in (model, castlereg.load(tmp_path / "model.castle")):
        assert not hasattr(either, "feature_importances_")
        with pytest.raises(AttributeError, match=r"keep no held-out rows.*castlereg\.explain"):
            _ = either.feature_importances_
