"""Callbacks of estimators: every stack that a fit trains reports, and an error leaves the estimator as it was."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_diabetes

from castlereg import CastleRegressor, CastleRegressorCV, NetworkRegressor, Recipe
from tests.training.test_callbacks import Notes

QUICK: dict[str, Any] = {"hidden_layer_sizes": (4,), "max_epochs": 5, "random_state": 0}


@pytest.fixture(scope="module")
def data() -> tuple[Any, Any]:
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    return X.iloc[:90, :4], y[:90]


@pytest.mark.parametrize(
    ("model", "stages", "members"),
    [
        (CastleRegressor(n_members=2, **QUICK), ["training"], ["network 0", "network 1"]),
        (CastleRegressor(recipe=Recipe(refit=True), **QUICK), ["training", "refit"], ["network 0"]),
        (
            CastleRegressorCV((0.01, 0.1), search="paper", cv=2, **QUICK),
            ["CASTLE"],
            ["reg_beta=0.01, fold 0", "reg_beta=0.01, fold 1", "reg_beta=0.1, fold 0", "reg_beta=0.1, fold 1"],
        ),
    ],
    ids=["plain", "refit", "grid"],
)
def test_every_stack_reports_and_stays_as_it_is(data: Any, model: Any, stages: list[str], members: list[str]) -> None:
    X, y = data
    notes = Notes()
    undisturbed = model.fit(X, y)
    predicted, history, weights = undisturbed.predict(X), undisturbed.history_, undisturbed.input_graph_.weight_array
    model.fit(X, y, callbacks=[notes])
    assert list(dict.fromkeys(epoch.stage for epoch in notes.epochs)) == stages
    assert list(notes.epochs[0].members) == members
    np.testing.assert_array_equal(model.predict(X), predicted)
    np.testing.assert_array_equal(model.input_graph_.weight_array, weights)
    np.testing.assert_array_equal(model.history_, history)


def test_files_report_too(data: Any, tmp_path: Path) -> None:
    X, y = data
    X.assign(target=y).to_csv(tmp_path / "rows.csv", index=False)
    notes = Notes(2, lambda epoch: epoch.number == 4)
    model = NetworkRegressor(**QUICK | {"max_epochs": 9}).fit_file(tmp_path / "rows.csv", "target", callbacks=[notes])
    assert notes.numbers == [2, 4] and len(model.history_) == 4
    np.testing.assert_array_equal(model.history_["validation_loss"][3], notes.epochs[-1].metrics["validation_loss"][0])


def test_a_callback_sees_the_estimator_before_and_after(data: Any) -> None:
    fitted: list[Any] = []

    class Listener(Notes):
        def begin(self, estimator: Any) -> None:
            fitted.append(hasattr(estimator, "model_"))

        def end(self, estimator: Any, error: Any) -> None:
            fitted.append((estimator.predict(data[0]).shape, error))

    NetworkRegressor(**QUICK).fit(*data, callbacks=[Listener()])
    assert fitted == [False, ((90,), None)]


@pytest.mark.parametrize("when", ["begin", "epoch", "end"])
def test_an_error_of_a_callback_leaves_the_estimator_as_it_was(data: Any, when: str) -> None:
    class Broken:
        errors: tuple[Any, ...] = ()

        def begin(self, estimator: Any) -> None:
            self._fail("begin")

        def __call__(self, epoch: Any) -> None:
            self._fail("epoch")

        def end(self, estimator: Any, error: Any) -> None:
            self.errors = (*self.errors, error)
            self._fail("end")

        def _fail(self, now: str) -> None:
            if now == when:
                raise OSError("disk full")

    X, y = data
    model = NetworkRegressor(**QUICK).fit(X, y)
    before, broken = vars(model).copy(), Broken()
    with pytest.raises(OSError, match="disk full"):
        model.fit(X.iloc[:, :2], y, callbacks=[broken])
    assert vars(model) == before
    assert len(broken.errors) == 1 and isinstance(broken.errors[0], OSError) == (when != "end")


def test_options_are_checked_before_callbacks_begin(data: Any) -> None:
    with pytest.raises(ValueError, match="callbacks contains the class Notes"):
        NetworkRegressor(**QUICK).fit(*data, callbacks=[Notes])
    with pytest.raises(ValueError, match="callbacks=3 must be a sequence"):
        CastleRegressorCV(**QUICK).fit(*data, callbacks=3)
