"""Held-out rows: the units of losses, the threshold of the input graph, and importances of columns."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from sklearn.feature_selection import SelectFromModel

import castlereg
from castlereg import CastleClassifier, CastleRegressor, CastleRegressorCV, NetworkRegressor
from castlereg.search import FittedModel
from castlereg.search.held_out import (
    HeldOut,
    RowLosses,
    _losses_with_features,
    column_importances,
    importance_rows,
    sparsest_threshold,
)
from castlereg.table.encoding import Preprocessing
from castlereg.table.reading import read_columns
from castlereg.table.targets import ClassTarget, NumericTarget, Target
from tests.fitted_models import fitted


def test_predicting_the_mean_or_the_class_shares_costs_one(rng: np.random.Generator) -> None:
    values, classes = rng.normal(3, 2, 90), rng.choice(["a", "b", "c"], 90, p=[0.5, 0.3, 0.2])
    targets = [NumericTarget("y", 0.0, 1.0), ClassTarget("kind", np.array(["a", "b", "c"]))]
    shares = np.array([(classes == label).mean() for label in "abc"])
    losses = RowLosses(targets, [values, classes])
    both = losses([np.full(90, values.mean()), np.tile(shares, (90, 1))])
    assert both.mean() == pytest.approx(1)
    assert losses([values, np.eye(3)[np.searchsorted(["a", "b", "c"], classes)]]).max() == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize(
    ("which", "n_encoded"), [("several targets", 1), ("CastleRegressorCV", 2), ("CastleClassifierCV", 2)]
)
def test_thresholds_encode_held_out_rows_once(which: str, n_encoded: int, monkeypatch: pytest.MonkeyPatch) -> None:
    of = fitted(which)
    networks = of.model.model_.networks
    truth = list(np.asarray(of.y).reshape(len(of.X), -1).T)
    cells = of.model.model_.cells(read_columns(of.X))
    by_member = [np.arange(member, len(cells), networks.n_members) for member in range(networks.n_members)]
    held_out = HeldOut(cells, truth, by_member, np.arange(len(cells)))

    n_features = networks.layout.n_features
    weights = networks.edge_weights().mean(axis=0)
    into_targets = weights[:n_features, n_features:].max(axis=1)
    kept = [into_targets >= threshold for threshold in (0.0, *np.unique(into_targets))]
    expected = [_plain_losses(networks.with_features(features), held_out) for features in kept]
    threshold = sparsest_threshold(networks, weights, held_out)

    calls: list[int] = []
    encode = Preprocessing.encode

    def counted(self: Preprocessing, cells: Any, padded_rows: int) -> Any:
        calls.append(len(cells))
        return encode(self, cells, padded_rows)

    monkeypatch.setattr(Preprocessing, "encode", counted)
    np.testing.assert_array_equal(
        _losses_with_features(networks, np.repeat(np.array(kept)[:, None], networks.n_members, axis=1), held_out),
        expected,
    )
    assert len(calls) == n_encoded and sum(calls) == len(cells)
    assert sparsest_threshold(networks, weights, held_out) == threshold


def _plain_losses(networks: Any, held_out: HeldOut) -> np.ndarray:
    """Every row is for one member here."""
    losses = np.zeros(len(held_out.cells))
    for member, rows in enumerate(held_out.by_member):
        for k, predicted in enumerate(networks.take(np.array([member])).predict_values(held_out.cells[rows])):
            target, values = networks.preprocessing.targets[k], held_out.truth[k][rows]
            if isinstance(target, ClassTarget):
                losses[rows] -= np.log(predicted[0, np.arange(len(rows)), target.codes(values)])
            else:
                losses[rows] += ((predicted[0] - values) / held_out.truth[k].std()) ** 2
    return losses


# --- importances ---------------------------------------------------------------------------------

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

    def take(self, members: NDArray[np.int64]) -> Known:
        return self

    def predict_values(self, cells: NDArray[np.float64]) -> list[NDArray[np.float64]]:
        return [self.function(cells)[None]]


def linear(cells: NDArray[np.float64]) -> NDArray[np.float64]:
    return A * cells[:, 0] + B * cells[:, 1]


def linear_world(rng: np.random.Generator, n: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    X = rng.normal(size=(n, 4))
    return X, linear(X) + 0.5 * rng.normal(size=n)


def held_out(X: NDArray[np.float64], y: NDArray[Any], weight: NDArray[np.float64] | None = None) -> HeldOut:
    folds = [np.arange(k, len(X), 3) for k in range(3)]
    return HeldOut(X, [y], folds, np.arange(len(X)), weight)


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
    return CastleRegressorCV((0.001,), search="paper", cv=3, **QUICK).fit(*world)


def test_a_trained_network_comes_close_to_the_closed_form() -> None:
    X, y = linear_world(np.random.default_rng(0), 1500)
    importances = CastleRegressorCV((0.001,), search="paper", cv=3, **QUICK).fit(X, y).feature_importances_
    np.testing.assert_allclose(importances, [1.6, 0.4, 0, 0], atol=0.15)
    assert np.abs(importances[2:]).max() < 0.02


def test_they_are_what_the_definition_says(folds: CastleRegressorCV) -> None:
    """One permutation after the other, with the estimator's own folds, each row predicted by the fold without it."""
    model: FittedModel = folds.model_
    rows = model.held_out_rows
    assert rows is not None

    def loss(cells: NDArray[np.float64]) -> float:
        predicted = np.empty(len(cells))
        for fold, held in enumerate(rows.by_member):
            predicted[held] = model.networks.predict_values(cells)[0][fold, held]
        return float(np.mean((predicted - rows.truth[0]) ** 2) / rows.truth[0].var())

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


def test_files_and_pickles_have_them_without_the_rows(folds: CastleRegressorCV, tmp_path: Path) -> None:
    castlereg.save(folds, tmp_path / "model.castle")
    loaded = castlereg.load(tmp_path / "model.castle")
    for other in (loaded, pickle.loads(pickle.dumps(folds))):
        assert other.model_.held_out_rows is None
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
        model = CastleRegressor(**QUICK).fit(X, pd.DataFrame({"size": y, "less": -y}))
    else:
        model = NetworkRegressor(n_members=2, bootstrap=True, **QUICK).fit(X, y, X_val=X[:300], y_val=y[:300])
    assert model.feature_importances_.shape == (4,)
    assert model.feature_importances_.argmax() == 3


def test_scikit_learn_selects_columns_by_them(world: tuple[pd.DataFrame, NDArray[np.float64]]) -> None:
    selection = SelectFromModel(CastleRegressor(**QUICK), threshold=0.05).fit(*world)
    assert selection.get_feature_names_out().tolist() == ["b", "city"]
    assert selection.transform(world[0]).shape == (900, 2)
