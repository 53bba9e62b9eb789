"""Optuna searches our estimators as any other; runs where ``optuna`` and ``optuna-integration`` are installed."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_diabetes
from sklearn.model_selection import KFold, StratifiedKFold, cross_val_score

from castlereg import CastleClassifier, CastleRegressor

optuna = pytest.importorskip("optuna")
integration = pytest.importorskip("optuna_integration")

# OptunaSearchCV is experimental, and uses what Optuna 4.9 has deprecated.
pytestmark = pytest.mark.filterwarnings(
    "ignore::optuna.exceptions.ExperimentalWarning", "ignore:`optuna.terminator`:FutureWarning"
)
QUICK: dict[str, Any] = {"hidden_layer_sizes": (8,), "max_epochs": 3, "random_state": 0}


@pytest.fixture(autouse=True)
def _quiet() -> None:
    optuna.logging.set_verbosity(optuna.logging.ERROR)


@pytest.mark.parametrize("make", [CastleRegressor, CastleClassifier])
def test_optuna_search_cv(make: Any) -> None:
    """Each trial has the score of plain cross-validation; the best is fitted again on all rows, with the weights."""
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    X, y = X.iloc[:120, :3], y[:120]
    folds: Any = KFold(3, shuffle=True, random_state=0)
    if make is CastleClassifier:
        y, folds = y.gt(y.median()).map({True: "high", False: "low"}), StratifiedKFold(3, shuffle=True, random_state=0)
    space = {
        "reg_beta": optuna.distributions.FloatDistribution(1e-3, 1.0, log=True),
        "learning_rate": optuna.distributions.FloatDistribution(1e-3, 0.1, log=True),
    }
    weight = np.random.default_rng(0).uniform(0.5, 2, len(y))
    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.RandomSampler(seed=0))
    search = integration.OptunaSearchCV(make(**QUICK), space, cv=folds, n_trials=3, study=study, error_score="raise")
    search.fit(X, y, sample_weight=weight)
    assert len(search.trials_) == 3
    for trial in search.trials_:
        scores = cross_val_score(make(**QUICK, **trial.params), X, y, cv=folds, params={"sample_weight": weight})
        np.testing.assert_allclose(trial.value, scores.mean(), rtol=1e-12)
    assert search.best_score_ == max(trial.value for trial in search.trials_)
    by_hand = make(**QUICK, **search.best_params_).fit(X, y, sample_weight=weight)
    np.testing.assert_array_equal(search.predict(X), by_hand.predict(X))


def test_the_example_prunes(capsys: pytest.CaptureFixture[str]) -> None:
    """Trials behind the median of the others at the same fold end there."""
    path = Path(__file__).parents[2] / "examples" / "optuna_search.py"
    spec = importlib.util.spec_from_file_location("optuna_search", path)
    assert spec is not None
    assert spec.loader is not None
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    study = example.main(n_trials=7, max_epochs=2)
    states = [trial.state for trial in study.trials]
    assert states[:4] == [optuna.trial.TrialState.COMPLETE] * 4  # the first ones give the median
    for number, trial in enumerate(study.trials[4:], 4):
        first = [other.intermediate_values[0] for other in study.trials[:number] if other.state.name == "COMPLETE"]
        behind = trial.intermediate_values[0] < np.median(first)
        assert (len(trial.intermediate_values) == 1) == behind
    assert "R2 of test rows" in capsys.readouterr().out
