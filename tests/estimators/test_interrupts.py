"""Ctrl-C during a fit: passed on by default, in searches too; the best networks so far are kept only on request."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import GridSearchCV, cross_val_score

from castlereg import (
    CastleClassifierCV,
    CastleMultiOutput,
    CastleRegressor,
    CastleRegressorCV,
    NetworkMultiOutput,
    NetworkRegressor,
    NetworkRegressorCV,
    Recipe,
    compare,
)
from castlereg.training import sources

rng = np.random.default_rng(0)
X = pd.DataFrame(rng.normal(size=(60, 3)), columns=["a", "b", "c"])
Y = X["a"] - X["b"] + 0.1 * rng.normal(size=60)


@pytest.fixture
def interrupted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Let Ctrl-C come when training begins; record what it is asked to do then."""
    asked: list[str] = []

    def train(*args: Any, on_interrupt: str, **kwargs: Any) -> None:
        asked.append(on_interrupt)
        raise KeyboardInterrupt

    monkeypatch.setattr("castlereg.search.grid.train", train)
    return asked


@pytest.mark.parametrize(
    ("model", "y"),
    [
        (CastleRegressor(), Y),
        (CastleRegressor(n_members=3, bootstrap=True), Y),
        (NetworkRegressor(), Y),
        (CastleRegressorCV(search="paper", cv=2), Y),
        (CastleClassifierCV(search="paper", cv=2), Y > 0),
        (NetworkRegressorCV(search="paper", cv=2), Y),
        (CastleMultiOutput(), pd.DataFrame({"y": Y, "high": Y > 0})),
        (NetworkMultiOutput(), pd.DataFrame({"y": Y, "high": Y > 0})),
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


def test_files_and_comparisons(tmp_path: Path, interrupted: list[str]) -> None:
    X.assign(y=Y).to_csv(tmp_path / "table.csv", index=False)
    model = NetworkRegressor()
    for options in ({}, {"on_interrupt": "keep"}):
        with pytest.raises(KeyboardInterrupt):
            model.fit_file(tmp_path / "table.csv", "y", **options)
    with pytest.raises(KeyboardInterrupt):
        compare(X, Y, methods=["L2", "CASTLE"], cv=2)
    assert interrupted == ["raise", "keep", "raise"]


def test_searches_of_scikit_learn_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    run, calls = sources._TableRunner.run, []

    def at_the_second_call(self: Any, *arguments: Any) -> Any:
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return run(self, *arguments)

    monkeypatch.setattr(sources._TableRunner, "run", at_the_second_call)
    model = NetworkRegressor(max_epochs=40, recipe=Recipe(patience=40), random_state=0)
    with pytest.raises(KeyboardInterrupt):
        cross_val_score(model, X, Y, cv=3)
    assert len(calls) == 2
    calls.clear()
    with pytest.raises(KeyboardInterrupt):
        GridSearchCV(model, {"learning_rate": [0.01, 0.1]}, cv=3).fit(X, Y)
    assert len(calls) == 2
