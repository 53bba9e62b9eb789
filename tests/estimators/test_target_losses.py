"""Fits with other losses than the squared error, against models of scikit-learn."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pandas as pd
import pytest
from sklearn.linear_model import PoissonRegressor, QuantileRegressor
from sklearn.metrics import mean_poisson_deviance

import castlereg
from castlereg import CastleRegressor, CastleRegressorCV, NetworkRegressor, Recipe
from castlereg.losses import Huber, Poisson, Quantiles

LINEAR: dict[str, Any] = {
    "hidden_layer_sizes": (),
    "learning_rate": 0.02,
    "max_epochs": 150,
    "recipe": Recipe(schedule="cosine"),
    "random_state": 0,
}
LEVELS = (0.1, 0.5, 0.9)


def table(n_rows: int = 600) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, 3))
    return X, X[:, 0] - 0.5 * X[:, 1] + 0.5 * rng.normal(size=n_rows)


def counts(X: np.ndarray) -> np.ndarray:
    return np.random.default_rng(1).poisson(np.exp(0.5 + 0.6 * X[:, 0] - 0.4 * X[:, 1])).astype(np.float64)


def test_the_linear_form_with_counts_is_poisson_regression() -> None:
    X, _ = table()
    y = counts(X)
    network = NetworkRegressor(loss="poisson", **LINEAR).fit(X, y, X_val=X, y_val=y)
    glm = PoissonRegressor(alpha=0).fit(X, y)
    np.testing.assert_allclose(network.predict(X), glm.predict(X), rtol=0.03)
    far = network.predict(1e3 * X)
    assert (far >= 0).all() and np.isfinite(far).all()


def test_the_linear_form_with_quantiles_is_quantile_regression() -> None:
    X, y = table()
    network = NetworkRegressor(loss=Quantiles((0.5,)), **LINEAR).fit(X, y, X_val=X, y_val=y)
    median = QuantileRegressor(quantile=0.5, alpha=0).fit(X, y)
    np.testing.assert_allclose(network.predict(X), median.predict(X), atol=0.06)
    np.testing.assert_allclose(network.predict_quantiles(X)[:, 0], network.predict(X), rtol=1e-14)


def test_wild_values_hardly_move_huber() -> None:
    X, y = table()
    wild = y.copy()
    wild[::20] += 100
    errors = {
        loss: np.mean(np.square(NetworkRegressor(loss=loss, **LINEAR).fit(X, wild).predict(X) - y))
        for loss in ("squared", "huber")
    }
    assert errors["huber"] < 0.35 < 10 < errors["squared"]  # the noise has a variance of 0.25


def test_quantiles_do_not_cross_and_cover_their_share() -> None:
    """The noise grows with a column, so that quantiles of one width could not do it."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(14_000, 3))
    y = X[:, 0] + (0.2 + np.abs(X[:, 1])) * rng.normal(size=len(X))
    model = NetworkRegressor(
        loss=Quantiles((0.05, 0.25, 0.5, 0.75, 0.95)),
        learning_rate=0.01,
        max_epochs=40,
        n_members=3,  # the coverage of one varies by 0.02 from seed to seed
        random_state=0,
    ).fit(X[:4000], y[:4000])
    quantiles = model.predict_quantiles(X[4000:])
    assert quantiles.shape == (10_000, 5)
    assert (np.diff(quantiles, axis=1) >= 0).all()
    np.testing.assert_allclose((y[4000:, None] <= quantiles).mean(axis=0), [0.05, 0.25, 0.5, 0.75, 0.95], atol=0.04)
    width, calm = quantiles[:, 4] - quantiles[:, 0], np.abs(X[4000:, 1]) < 0.2
    assert width[calm].mean() < 0.5 * width[~calm].mean()
    np.testing.assert_allclose(model.predict(X[4000:]), quantiles[:, 2], rtol=1e-14)
    far = model.predict_quantiles(rng.normal(scale=50, size=(10_000, 3)))
    assert (np.diff(far, axis=1) >= 0).all()


@pytest.mark.parametrize("loss", ["huber", Poisson(), Quantiles(LEVELS)])
def test_files_and_onnx_predict_the_same(loss: Any, tmp_path: Path) -> None:
    X, y = table(80)
    y = np.abs(y)
    model = CastleRegressor(loss=loss, max_epochs=3, n_members=2, random_state=0).fit(X, y)
    castlereg.save(model, tmp_path / "model.castle")
    loaded = castlereg.load(tmp_path / "model.castle")
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    assert loaded.get_params()["loss"] == loss and loaded.model_.targets == model.model_.targets
    castlereg.to_onnx(model, tmp_path / "model.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx")
    outputs = dict(zip([o.name for o in session.get_outputs()], session.run(None, castlereg.onnx_inputs(model, X))))  # noqa: B905
    np.testing.assert_allclose(outputs["prediction"], model.predict(X), rtol=1e-9)
    assert ("quantiles" in outputs) is isinstance(loss, Quantiles)
    if isinstance(loss, Quantiles):
        np.testing.assert_allclose(outputs["quantiles"], model.predict_quantiles(X), rtol=1e-9)
        np.testing.assert_array_equal(loaded.predict_quantiles(X), model.predict_quantiles(X))


def test_a_file_is_fitted_by_the_same_loss(tmp_path: Path) -> None:
    X, _ = table()
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(visits=counts(X))
    frame.to_csv(tmp_path / "visits.csv", index=False)
    model = NetworkRegressor(loss="poisson", **LINEAR).fit_file(tmp_path / "visits.csv", "visits")
    assert mean_poisson_deviance(frame.visits, model.predict(frame[["a", "b", "c"]])) < 1.25
    target = NetworkRegressor(loss=Huber(), max_epochs=1).fit_file(tmp_path / "visits.csv", "visits").model_.targets[0]
    assert target.center == np.median(frame.visits)
    with pytest.raises(ValueError, match="a has negative values"):
        NetworkRegressor(loss="poisson").fit_file(tmp_path / "visits.csv", "a")


def test_several_targets_have_the_same_loss() -> None:
    X, y = table(100)
    model = NetworkRegressor(loss=Quantiles((0.2, 0.8)), max_epochs=3, random_state=0).fit(X, np.c_[y, X[:, 2] - y])
    assert model.predict(X).shape == (100, 2)
    assert model.predict_quantiles(X).shape == (100, 2, 2)


def test_features_per_step_train_the_same_loss() -> None:
    X, _ = table()
    y = counts(X)
    options: dict[str, Any] = {"learning_rate": 0.01, "max_epochs": 30, "random_state": 0}
    sampled = CastleRegressor(loss="poisson", castle=castlereg.Castle(features_per_step=2), **options).fit(X, y)
    assert mean_poisson_deviance(y, sampled.predict(X)) < 1.2 < 1.5 < mean_poisson_deviance(y, np.full(600, y.mean()))


@pytest.mark.parametrize("search", ["paper", "fast"])
def test_quantiles_never_cross_in_a_search(search: Any) -> None:
    X, y = table(120)
    model = CastleRegressorCV((0.01, 0.1), search=search, cv=3, loss=Quantiles(LEVELS), max_epochs=5, random_state=0)
    model.fit(X, y)
    assert search == "paper" or np.count_nonzero(model.search_results_["weight"]) > 1
    quantiles = model.predict_quantiles(np.r_[X, 50 * X])
    assert quantiles.shape == (240, 3) and (np.diff(quantiles, axis=1) >= 0).all()
    np.testing.assert_allclose(model.predict(X), quantiles[:120, 1], rtol=1e-12)
    assert model.predict_interval(X, 0.8).shape == (120, 2)


@pytest.mark.parametrize("search", ["paper", "fast"])
def test_counts_are_not_negative_in_a_search(search: Any) -> None:
    X, _ = table(150)
    model = CastleRegressorCV((0.1,), search=search, cv=3, loss="poisson", max_epochs=5, random_state=0)
    model.fit(X, counts(X))
    far = model.predict(1e3 * X)
    assert (far >= 0).all() and np.isfinite(far).all()
    assert (model.predict_interval(X, 0.95) >= 0).all()


def test_a_pool_and_a_refit_minimize_the_loss() -> None:
    """The blend of a pool withstands wild values, as a network does."""
    X, y = table()
    wild = y.copy()
    wild[::20] += 100
    pool = CastleRegressorCV(loss="huber", cv=2, max_epochs=20, random_state=0).fit(X, wild)
    assert np.mean(np.square(pool.predict(X) - y)) < 0.5
    assert "linear" not in set(pool.search_results_["stage"])  # whose solutions have the squared error
    refit = CastleRegressor(0.1, loss="huber", recipe=Recipe(refit=True), max_epochs=5, random_state=0).fit(X, y)
    assert refit.predict(X).shape == (600,)


@pytest.mark.parametrize(
    "model, message",
    [
        (CastleRegressor(loss="mae"), r"loss='mae' must be one of"),
        (CastleRegressor(loss="poisson"), r"y has negative values, .* loss='poisson' is for counts"),
    ],
)
def test_clear_errors(model: Any, message: str) -> None:
    X, y = table(60)
    with pytest.raises(ValueError, match=message):
        model.fit(X, y)


def test_what_a_loss_does_not_offer() -> None:
    X, y = table(60)
    model = CastleRegressor(loss="huber", max_epochs=1, random_state=0).fit(X, y)
    with pytest.raises(AttributeError, match="has no quantiles: fit it with loss=Quantiles"):
        model.predict_quantiles(X)


def test_a_file_whose_every_other_row_is_zero_has_a_scale(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=240)
    y = np.where(np.arange(240) % 2 == 0, 0.0, np.abs(x) + 1)
    pd.DataFrame({"x": x, "y": y}).to_csv(tmp_path / "zeros.csv", index=False)
    for loss in ("huber", "poisson", Quantiles(LEVELS)):
        model = NetworkRegressor(loss=loss, max_epochs=2, random_state=0).fit_file(tmp_path / "zeros.csv", "y")
        assert np.isfinite(model.predict(pd.DataFrame({"x": x}))).all()


def test_columns_that_only_widen_quantiles_are_kept_and_important() -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(1500, 4)), columns=list("abcd"))
    y = X.a + np.exp(1.2 * X.b) / 2 * rng.normal(size=1500)
    options: dict[str, Any] = {"loss": Quantiles(LEVELS), "learning_rate": 0.01, "max_epochs": 40, "random_state": 0}
    model = CastleRegressor(0.1, recipe=Recipe(refit=True), **options).fit(X, y)
    assert {"a", "b"} <= set(model.selected_features_)
    importances = dict(zip(X, model.feature_importances_, strict=True))
    assert importances["b"] > 0.1 > max(importances["c"], importances["d"])
    low, _, high = model.predict_quantiles(X.assign(b=2.0)).T
    calm_low, _, calm_high = model.predict_quantiles(X.assign(b=-2.0)).T
    assert (high - low).mean() > 4 * (calm_high - calm_low).mean()


def test_scores_and_warnings_ask_the_loss_that_was_minimized() -> None:
    """By squares, a few wild values would make a good model look worse than the mean."""
    X, y = table()
    wild = y.copy()
    wild[::20] += 100
    with warnings.catch_warnings():
        warnings.simplefilter("error", castlereg.FitWarning)
        model = NetworkRegressor(loss="huber", **LINEAR).fit(X, wild)
    assert model.feature_importances_.argmax() == 0 and model.feature_importances_[0] > 0.3
    (scores,) = castlereg.evaluate(model, X, wild).targets
    assert scores.verdict == "" and scores.scores[0].measure == "D2" and scores.scores[0].low > 0
    upper = NetworkRegressor(loss=Quantiles((0.95,)), **LINEAR).fit(X, y)
    assert castlereg.evaluate(upper, X, y).targets[0].verdict == "" and upper.feature_importances_[0] > 0.3


def test_onnx_has_the_quantiles_of_several_targets(tmp_path: Path) -> None:
    X, y = table(80)
    model = NetworkRegressor(loss=Quantiles((0.2, 0.8)), max_epochs=2, random_state=0).fit(X, np.c_[y, -y])
    castlereg.to_onnx(model, tmp_path / "model.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx")
    predicted, quantiles = session.run(["prediction", "quantiles"], castlereg.onnx_inputs(model, X))
    np.testing.assert_allclose(predicted, model.predict(X), rtol=1e-9)
    np.testing.assert_allclose(quantiles, model.predict_quantiles(X), rtol=1e-9)
