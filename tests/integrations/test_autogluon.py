"""A model of AutoGluon; runs where ``autogluon.core`` is installed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("autogluon.core")

from autogluon.core.models import BaggedEnsembleModel

from castlereg import CastleClassifier, CastleClassifierCV, CastleRegressor, CastleRegressorCV
from castlereg.integrations.autogluon import CastleModel
from castlereg.integrations.flat_options import estimator_options, usual_options

pytestmark = pytest.mark.filterwarnings("default")  # AutoGluon's own
ROWS, TRAINED = 120, 90
QUICK = {"max_epochs": 4, "width": 8}
LITTLE = 1e-3  # so little time that only the linear forms and the first epochs of CASTLE are trained
PROBLEMS = ["regression", "binary", "multiclass"]


def table(problem: str) -> tuple[pd.DataFrame, pd.Series]:
    """Numbers and categories as AutoGluon hands them over, with missing values; classes are numbered."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "area": rng.normal(80, 20, ROWS),
            "rooms": rng.integers(1, 6, ROWS),
            "city": pd.Categorical(rng.choice(["Lima", "Oslo", "Rome"], ROWS)),
        }
    )
    value = 0.05 * (frame["area"] - 80) + frame["city"].cat.codes + 0.1 * rng.normal(size=ROWS)
    frame.loc[::5, "area"] = np.nan
    frame.loc[::7, "city"] = None
    if problem == "regression":
        return frame, value
    return frame, (value > 1).astype(int) if problem == "binary" else pd.cut(value, 3, labels=False)


def model_of(problem: str, folder: Path, **options: Any) -> CastleModel:
    return CastleModel(path=str(folder), name="castle", problem_type=problem, hyperparameters=options)


def predicted(model: Any, X: pd.DataFrame, problem: str) -> np.ndarray:
    if problem == "regression":
        return model.predict(X)
    shares = model.predict_proba(X)
    return shares[:, 1] if problem == "binary" else shares


@pytest.mark.parametrize("problem", PROBLEMS)
def test_a_network_is_that_of_the_estimator(problem: str, tmp_path: Path) -> None:
    """With the validation rows for early stopping, the weights and the seed; also after saving and loading."""
    frame, y = table(problem)
    weight = np.random.default_rng(1).uniform(0.5, 2, TRAINED)
    rows = {"X": frame[:TRAINED], "y": y[:TRAINED], "X_val": frame[TRAINED:], "y_val": y[TRAINED:]}
    model = model_of(problem, tmp_path, **QUICK, reg_beta=0.1, random_state=5)
    model.fit(**rows, sample_weight=weight, time_limit=60)
    options = estimator_options({**usual_options(TRAINED), **QUICK, "reg_beta": 0.1, "random_state": 5})
    by_hand = (CastleRegressor if problem == "regression" else CastleClassifier)(unusable_columns="drop", **options)
    by_hand.fit(rows["X"], rows["y"], weight, X_val=rows["X_val"], y_val=rows["y_val"])
    expected = predicted(by_hand, frame, problem)
    np.testing.assert_allclose(model.predict_proba(frame), expected, rtol=1e-6, atol=1e-7)
    assert model.model.graph_.nodes[:3] == ["area", "rooms", "city"]
    loaded = CastleModel.load(model.save())
    np.testing.assert_array_equal(loaded.predict_proba(frame), model.predict_proba(frame))


def test_a_network_ends_at_the_time_limit(tmp_path: Path) -> None:
    frame, y = table("regression")
    endless = {"max_epochs": 10**6, "patience": 10**6, "width": 8}
    model = model_of("regression", tmp_path, **endless).fit(X=frame, y=y, time_limit=3.0)
    assert 1 <= len(model.model.history_) < 10**5


@pytest.mark.parametrize("problem", PROBLEMS)
def test_a_pool_blends_by_the_given_validation_rows(problem: str, tmp_path: Path) -> None:
    frame, y = table(problem)
    model = model_of(problem, tmp_path, search="fast")
    model.fit(X=frame[:TRAINED], y=y[:TRAINED], X_val=frame[TRAINED:], y_val=y[TRAINED:], time_limit=LITTLE * 1000)
    assert model.model.time_limit < LITTLE * 1000
    splits = [(np.arange(TRAINED), np.arange(TRAINED, ROWS))] * 2
    for (train, held), expected in zip(model.model.folds_, splits, strict=True):
        np.testing.assert_array_equal(train, expected[0])
        np.testing.assert_array_equal(held, expected[1])
    assert isinstance(model.model, CastleRegressorCV | CastleClassifierCV)
    score = model.score(frame, y)
    assert score > (-y.std() if problem == "regression" else y.value_counts(normalize=True).max())


def test_a_pool_without_validation_rows_has_its_own_folds(tmp_path: Path) -> None:
    frame, y = table("regression")
    model = model_of("regression", tmp_path, search="fast").fit(X=frame, y=y, time_limit=1.0)
    assert len(model.model.folds_) == 5


def test_weights_of_validation_rows_count(tmp_path: Path) -> None:
    frame, y = table("regression")
    weight = np.random.default_rng(1).uniform(0.5, 2, ROWS)
    model = model_of("regression", tmp_path, search="paper", reg_betas=(0.1,), **QUICK)
    parts = {"sample_weight": weight[:TRAINED], "sample_weight_val": weight[TRAINED:]}
    model.fit(X=frame[:TRAINED], y=y[:TRAINED], X_val=frame[TRAINED:], y_val=y[TRAINED:], **parts)
    splits = [(np.arange(TRAINED), np.arange(TRAINED, ROWS))] * 2
    options = estimator_options({**QUICK, "reg_betas": (0.1,), "random_state": 0})
    by_hand = CastleRegressorCV(search="paper", cv=splits, unusable_columns="drop", **options)
    by_hand.fit(frame, y, weight)
    np.testing.assert_allclose(model.predict(frame), by_hand.predict(frame), rtol=1e-6)


@pytest.mark.parametrize("problem", PROBLEMS)
def test_bagging(problem: str, tmp_path: Path) -> None:
    """The prediction is the mean of three children, each fitted on its folds with its own seed."""
    frame, y = table(problem)
    bag = BaggedEnsembleModel(
        model_of(problem, tmp_path, **QUICK, learning_rate=0.02), path=str(tmp_path), name="bag",
        hyperparameters={"fold_fitting_strategy": "sequential_local", "vary_seed_across_folds": True},
    )  # fmt: skip
    bag.fit(X=frame, y=y, k_fold=3)
    children = [bag.load_child(name) for name in bag.models]
    assert [child.model.random_state for child in children] == [0, 1, 2]
    mean = np.mean([child.predict_proba(frame) for child in children], axis=0)
    np.testing.assert_allclose(bag.predict_proba(frame), mean, rtol=1e-5)
    baseline = -y.std() if problem == "regression" else y.value_counts(normalize=True).max()
    assert bag.score_with_oof(y) > 1.2 * baseline if problem == "regression" else bag.score_with_oof(y) > baseline


def test_a_class_that_the_training_rows_lack_has_no_probability(tmp_path: Path) -> None:
    frame, y = table("multiclass")
    known = y != 1
    model = model_of("multiclass", tmp_path, **QUICK).fit(X=frame[known], y=y[known], num_classes=3)
    shares = model.predict_proba(frame)
    np.testing.assert_array_equal(shares[:, 1], 0)
    np.testing.assert_allclose(shares.sum(axis=1), 1, rtol=1e-6)


def test_one_core(tmp_path: Path) -> None:
    """The same result as with all, to rounding."""
    frame, y = table("regression")
    fits = [
        model_of("regression", tmp_path, **QUICK, n_members=2).fit(X=frame, y=y, **cores)
        for cores in ({"num_cpus": 1}, {})
    ]
    np.testing.assert_allclose(fits[0].predict(frame), fits[1].predict(frame), rtol=1e-3)


def test_what_autogluon_asks_of_a_model() -> None:
    assert CastleModel.supported_problem_types() == ["binary", "multiclass", "regression"]
    frame, _ = table("regression")
    long = pd.concat([frame] * 100)
    assert CastleModel.can_estimate_memory_usage_static()
    kind = {"problem_type": "binary", "num_classes": 2}
    small, large = (CastleModel.estimate_memory_usage_static(X=X, **kind) for X in (frame, long))
    assert 5e8 < small < large
    CastleModel.warmup(problem_type="binary", num_cpus=1)


def test_with_the_rest_of_autogluon(tmp_path: Path) -> None:
    """A predictor reads raw text and dates, drops what is constant, bags, and predicts labels."""
    tabular = pytest.importorskip("autogluon.tabular")
    frame, y = table("multiclass")
    raw = frame.assign(
        kind=y.map({0: "low", 1: "mid", 2: "high"}),
        city=frame["city"].astype(object),
        since=pd.date_range("2020-01-01", periods=ROWS),
        constant=1,
    )
    predictor = tabular.TabularPredictor("kind", path=str(tmp_path / "predictor"), verbosity=0)
    options = {**QUICK, "ag_args_ensemble": {"fold_fitting_strategy": "sequential_local"}}
    predictor.fit(raw, hyperparameters={CastleModel: options}, num_bag_folds=2, fit_weighted_ensemble=False)
    assert predictor.model_names() == ["CASTLE_BAG_L1"]
    assert set(predictor.predict(raw.drop(columns="kind"))) <= {"low", "mid", "high"}
    loaded = tabular.TabularPredictor.load(str(tmp_path / "predictor"), verbosity=0)
    pd.testing.assert_frame_equal(loaded.predict_proba(raw), predictor.predict_proba(raw))
