"""Ctrl-C during a fit: passed on by default, in searches too; the best networks so far are kept only on request."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import GridSearchCV, cross_val_score

from castlereg import CastleClassifierCV, CastleRegressor, CastleRegressorCV, NetworkRegressor, Recipe
from castlereg.callbacks import Epoch

rng = np.random.default_rng(0)
X = pd.DataFrame(rng.normal(size=(60, 3)), columns=["a", "b", "c"])
Y = X["a"] - X["b"] + 0.1 * rng.normal(size=60)


@pytest.fixture
def interrupted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Let Ctrl-C come when training begins; record what it is asked to do then."""
    asked: list[str] = []

    def train(encoded: Any, members: Any, plan: Any, control: Any) -> None:
        asked.append(control.on_interrupt)
        raise KeyboardInterrupt

    monkeypatch.setattr("castlereg.search.candidates.train", train)
    return asked


@pytest.mark.parametrize(
    ("model", "y"),
    [
        (CastleRegressor(), Y),
        (CastleRegressor(n_members=3, bootstrap=True), Y),
        (NetworkRegressor(), Y),
        (CastleRegressorCV(search="paper", cv=2), Y),
        (CastleClassifierCV(search="paper", cv=2), Y > 0),
        (CastleRegressorCV(cv=2), pd.DataFrame({"y": Y, "z": -Y})),
    ],
    ids=lambda value: type(value).__name__,
)
def test_every_fit_says_what_ctrl_c_does(model: Any, y: Any, interrupted: list[str]) -> None:
    before = dict(vars(model))
    for options in ({}, {"on_interrupt": "keep"}):
        with pytest.raises(KeyboardInterrupt):
            model.fit(X, y, **options)
    assert interrupted == ["raise", "keep"]
    assert vars(model) == before
    with pytest.raises(ValueError, match="on_interrupt='stop' is not one of 'raise', 'keep'"):
        model.fit(X, y, on_interrupt="stop")


def test_files(tmp_path: Path, interrupted: list[str]) -> None:
    X.assign(y=Y).to_csv(tmp_path / "table.csv", index=False)
    for options in ({}, {"on_interrupt": "keep"}):
        with pytest.raises(KeyboardInterrupt):
            NetworkRegressor().fit_file(tmp_path / "table.csv", "y", **options)
    assert interrupted == ["raise", "keep"]


class Interrupt:
    """Callback that acts like Ctrl-C in an epoch of a stage."""

    def __init__(self, stage: str, number: int) -> None:
        self.stage, self.number = stage, number

    def __call__(self, epoch: Epoch) -> None:
        if (epoch.stage, epoch.number) == (self.stage, self.number):
            raise KeyboardInterrupt


@pytest.mark.parametrize("stage", ["embedded", "refit"])
def test_a_pool_keeps_the_candidates_trained_so_far(stage: str) -> None:
    model = CastleRegressorCV(cv=2, max_epochs=4, random_state=0)
    noise = X.assign(**{f"n{k}": np.random.default_rng(k).normal(size=60) for k in range(4)})
    with pytest.warns(UserWarning, match="interrupted"):
        model.fit(noise, Y, callbacks=[Interrupt(stage, 2)], on_interrupt="keep")
    stages = list(dict.fromkeys(model.cv_results_["stage"]))
    assert stages[:2] == ["linear", "CASTLE"] and stages[-1] in ("CASTLE", "embedded", "embedded, sparse", "refit")
    assert np.isfinite(model.predict(noise)).all()


def test_a_refit_that_is_interrupted_leaves_the_networks_before_it() -> None:
    model = CastleRegressor(0.1, recipe=Recipe(refit=True), max_epochs=20, learning_rate=0.02, random_state=0)
    undisturbed = CastleRegressor(0.1, max_epochs=20, learning_rate=0.02, random_state=0).fit(X, Y)
    with pytest.warns(UserWarning, match="interrupted"):
        model.fit(X, Y, callbacks=[Interrupt("refit", 1)], on_interrupt="keep")
    assert model.model_.blend.names in (undisturbed.model_.blend.names, ("refit",))


def test_searches_of_scikit_learn_stop() -> None:
    model = NetworkRegressor(max_epochs=40, recipe=Recipe(patience=40), random_state=0)
    calls = []

    class Second(NetworkRegressor):
        def fit(self, *arguments: Any, **options: Any) -> Any:
            calls.append(1)
            if len(calls) == 2:
                raise KeyboardInterrupt
            return super().fit(*arguments, **options)

    for search in (
        lambda: cross_val_score(Second(**model.get_params()), X, Y, cv=3),
        lambda: GridSearchCV(Second(**model.get_params()), {"learning_rate": [0.01, 0.1]}, cv=3).fit(X, Y),
    ):
        calls.clear()
        with pytest.raises(KeyboardInterrupt):
            search()
        assert len(calls) == 2
