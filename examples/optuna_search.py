"""Let Optuna choose strengths, learning rate and width, and stop poor trials after a fold or two.

Each trial is cross-validated fold by fold. After every fold it reports the mean score so far, and Optuna's median
pruner stops trials that are behind the others at the same fold. Needs ``pip install optuna``.
"""

from __future__ import annotations

import numpy as np
import optuna
import pandas as pd
from optuna.pruners import MedianPruner
from optuna.samplers import TPESampler
from sklearn.base import clone
from sklearn.datasets import load_diabetes
from sklearn.model_selection import KFold, train_test_split

from castlereg import CastleRegressor

FOLDS = KFold(4, shuffle=True, random_state=0)


def proposed(trial: optuna.trial.BaseTrial, max_epochs: int) -> CastleRegressor:
    """Return the network of a trial."""
    width = trial.suggest_categorical("width", [8, 32])
    return CastleRegressor(
        reg_beta=trial.suggest_float("reg_beta", 1e-3, 1.0, log=True),
        reg_lambda=trial.suggest_float("reg_lambda", 0.1, 10.0, log=True),
        learning_rate=trial.suggest_float("learning_rate", 1e-4, 1e-2, log=True),
        hidden_layer_sizes=(width, width),
        max_epochs=max_epochs,
        random_state=0,
    )


def cross_validated(trial: optuna.trial.BaseTrial, X: pd.DataFrame, y: pd.Series, max_epochs: int) -> float:
    """Score a trial fold by fold, and stop when it is pruned."""
    model = proposed(trial, max_epochs)
    scores: list[float] = []
    for fold, (train, left_out) in enumerate(FOLDS.split(X)):
        fitted = clone(model).fit(X.iloc[train], y.iloc[train])
        scores.append(fitted.score(X.iloc[left_out], y.iloc[left_out]))
        trial.report(float(np.mean(scores)), fold)
        if trial.should_prune():
            raise optuna.TrialPruned
    return float(np.mean(scores))


def main(n_trials: int = 20, max_epochs: int = 30) -> optuna.Study:
    """Search, print the trials, and compare the best one with the defaults on held-out rows."""
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.25, random_state=0)
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    pruner = MedianPruner(n_startup_trials=4, n_warmup_steps=0)
    study = optuna.create_study(direction="maximize", sampler=TPESampler(seed=0), pruner=pruner)
    study.optimize(lambda trial: cross_validated(trial, X, y, max_epochs), n_trials)

    for trial in study.trials:
        chosen = ", ".join(f"{name} {value:.3g}" for name, value in trial.params.items())
        state, n_folds = trial.state.name.lower(), len(trial.intermediate_values)
        print(f"{trial.number:3} {state:8} folds {n_folds}  R2 {trial.value:6.3f}  {chosen}")
    best = proposed(optuna.trial.FixedTrial(study.best_params), max_epochs).fit(X, y)
    usual = CastleRegressor(max_epochs=max_epochs, random_state=0).fit(X, y)
    print(f"\nR2 of test rows: {best.score(X_test, y_test):.3f} searched, {usual.score(X_test, y_test):.3f} by default")
    return study


if __name__ == "__main__":
    main()
