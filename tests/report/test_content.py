"""What the report says of a model, against the model itself."""

from __future__ import annotations

import dataclasses
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.linear_model import LinearRegression
from sklearn.metrics import accuracy_score, log_loss, r2_score, roc_auc_score, root_mean_squared_error
from sklearn.model_selection import KFold

from castlereg import CastleClassifier, CastleRegressor, CastleRegressorCV, NetworkRegressor, Recipe, load, save
from castlereg.notices import FitWarning
from castlereg.regularizers import L2, Dropout
from castlereg.report import ReportContent, render, report_content
from castlereg.report.scores import _folds, _out_of_fold, _plain_network
from castlereg.search.recipe import PAPER
from castlereg.table.targets import ClassTarget

from .conftest import DATE, Fitted, short_search

METHODS = ("CASTLE", "plain network", "random forest", "gradient boosting")
pytestmark = pytest.mark.xdist_group("report")  # one worker fits the model


def test_scores_are_those_of_clones_on_rows_they_did_not_see(fitted: Fitted, content: ReportContent) -> None:
    model, X, y = fitted
    with warnings.catch_warnings():
        warnings.simplefilter("error", FitWarning)  # rows are few, but the fit of the model has said it
        predictions = _out_of_fold(model, X, y, [y.to_numpy()], rivals=False, cv=2, seed=3, verbose=False)
    folds = _folds(model.model_.targets, [y.to_numpy()], 2, seed=3)
    # By hand: the same folds and seeds, other code.
    seeds = np.random.SeedSequence(3).generate_state(2)
    for name, method in (
        ("CASTLE", CastleRegressor(max_epochs=3, n_members=2)),
        ("plain network", NetworkRegressor(max_epochs=3, n_members=2)),
    ):
        expected = np.empty(60)
        for (train, held_out), seed in zip(folds, seeds, strict=True):
            network = clone(method).set_params(random_state=int(seed)).fit(X.iloc[train], y.iloc[train])
            expected[held_out] = network.predict(X.iloc[held_out])
        np.testing.assert_array_equal(predictions[name][0], expected)
    assert content.evaluation is not None
    error, r2, rmse = content.evaluation.targets[0].measures
    assert content.evaluation.targets[0].methods == (*METHODS, "guess")
    for k, name in ((0, "CASTLE"), (1, "plain network"), (4, "guess")):
        predicted = predictions[name][0]
        assert r2.scores[k].value == pytest.approx(r2_score(y, predicted))
        assert error.scores[k].value == pytest.approx(1 - r2_score(y, predicted))
        assert rmse.scores[k].value == pytest.approx(root_mean_squared_error(y, predicted))
    (train, held_out), _ = folds
    assert predictions["guess"][0][held_out] == pytest.approx(y.iloc[train].mean())


def test_classes_are_scored_by_probabilities(fitted: Fitted) -> None:
    _, X, _ = fitted
    X, sex = X.drop(columns="sex"), X["sex"].map({1: "one", 2: "two"})
    model = CastleClassifier(max_epochs=2, random_state=0).fit(X[:30], sex[:30])
    content = report_content(model, X, sex, cv=2, date=DATE, rivals=False)
    assert content.evaluation is not None
    (scores,) = content.evaluation.targets
    truth = sex.to_numpy(dtype=object)
    out = _out_of_fold(model, X, sex, [truth], rivals=False, cv=2, seed=0, verbose=False)["CASTLE"][0]
    labels = np.array(["one", "two"])
    loss, accuracy, auroc = (measure.scores[0].value for measure in scores.measures)
    assert loss == pytest.approx(log_loss(truth, out, labels=labels))
    assert accuracy == pytest.approx(accuracy_score(truth, labels[out.argmax(axis=1)]))
    assert auroc == pytest.approx(roc_auc_score(truth == "two", out[:, 1]))
    assert np.sum(scores.confusion) == sum(tenth.rows for tenth in scores.reliability) == 60
    assert np.trace(np.array(scores.confusion)) == pytest.approx(60 * accuracy)


def test_each_of_several_targets_is_scored(fitted: Fitted) -> None:
    _, X, y = fitted
    targets = pd.DataFrame({"progression": y, "half": y / 2})
    model = CastleRegressor(max_epochs=2, random_state=0).fit(X[:30], targets[:30])
    content = report_content(model, X, targets, cv=2, date=DATE)
    assert content.evaluation is not None
    assert [scores.target for scores in content.evaluation.targets] == ["progression", "half"]
    assert [len(scores.points) for scores in content.evaluation.targets] == [60, 60]
    assert content.title == "What predicts progression and half"
    assert [column.name for column in content.columns] == ["progression", "half", *X.columns]


def test_what_the_page_says_of_the_model_is_what_the_model_has(fitted: Fitted, content: ReportContent) -> None:
    model, _, _ = fitted
    assert (content.n_rows, content.n_columns, content.date) == (60, 4, "2026-01-31")
    assert content.graph is not None
    frame = model.graph_.edges()
    assert [(e.cause, e.effect, e.weight) for e in content.graph.edges] == [
        tuple(row) for row in frame[["cause", "effect", "weight"]].itertuples(index=False)
    ]
    summary = "\n".join([*content.graph.summary, content.graph.not_proof])
    assert summary == model.graph_.summary()
    history = model.history_.set_index(["member", "epoch"])
    objective, validation = content.training.curves
    assert objective.members[1][1][2] == history.loc[(1, 3), "objective"] and objective.members[1][0] == (1.0, 2.0, 3.0)
    assert set(validation.best[1]) == set(history["validation_loss"].groupby("member").min())
    assert {name: value for name, value, _ in content.settings} == {
        name: repr(value) for name, value in model.get_params().items()
    }
    assert {name for name, _, changed in content.settings if changed} == {"max_epochs", "n_members", "random_state"}
    assert content.seed == "3"
    importances = [column.importance for column in content.columns]
    assert importances == [None, *model.feature_importances_.tolist()]


def test_another_seed_gives_other_folds_and_is_shown(fitted: Fitted) -> None:
    content = report_content(*fitted, evaluate=False, random_state=np.random.default_rng(0))
    assert content.seed.startswith("model 3, report ")
    assert content.evaluation is None


@pytest.mark.parametrize("cv", [2, KFold(2), "list"])
def test_a_search_is_repeated_in_every_fold(fitted: Fitted, cv: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    _, X, y = fitted
    cv = list(KFold(2).split(X)) if cv == "list" else cv
    with short_search():
        model = CastleRegressorCV(search="fast", cv=cv, random_state=0).fit(X, y)
        trained: list[Any] = []
        fit = CastleRegressorCV.fit
        monkeypatch.setattr(CastleRegressorCV, "fit", lambda m, *args: (trained.append(m), fit(m, *args))[1])
        content = report_content(model, X, y, cv=2, random_state=0, rivals=False)
    assert [(len(m.folds_), m.search) for m in trained] == [(2, "fast")] * 2
    assert content.evaluation is not None
    assert "a search was repeated in every fold" in content.evaluation.note
    assert content.evaluation.targets[0].methods == ("CASTLE", "plain network", "guess")
    blend = model.model_.blend
    assert content.training.parts == tuple(zip(blend.names, blend.weights.tolist(), strict=True))
    assert ("The model predicts with a blend" in render(content)) == (len(blend.parts) > 1)


@pytest.mark.filterwarnings("ignore:X has levels that are not in the training data")
def test_a_column_that_is_nearly_an_identifier_stays_one_of_levels_on_the_rows_of_a_fold() -> None:
    """34 levels in 70 rows are levels; in the 56 rows of a fold they would be an identifier."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"zip": [f"z{i % 34}" for i in range(70)], "size": rng.normal(size=70)})
    y = X["size"] + rng.normal(size=70)
    model = CastleRegressor(max_epochs=1, random_state=0).fit(X, y)
    assert model.schema_.loc["zip", "kind"] == "categorical"
    predictions = _out_of_fold(model, X, y, [y.to_numpy()], rivals=False, cv=5, seed=0, verbose=False)
    assert np.isfinite(predictions["CASTLE"][0]).all()


class Custom(L2):
    """A regularizer that cannot be saved: loading never imports anything that a file names."""


def test_a_model_without_its_regularizers_is_described_but_not_measured(fitted: Fitted, tmp_path: Path) -> None:
    _, X, y = fitted
    model = NetworkRegressor([Custom(0.1)], max_epochs=2, random_state=0).fit(X, y)
    with pytest.warns(UserWarning, match="is not saved"):
        save(model, tmp_path / "model")
    with pytest.warns(UserWarning, match="does not contain the option regularizers"):
        loaded = load(tmp_path / "model")
    with pytest.raises(ValueError, match="its file does not contain its regularizers: pass evaluate=False"):
        report_content(loaded, X, y, cv=2)
    assert report_content(loaded, X, y, evaluate=False).training == report_content(model, X, y, evaluate=False).training


def test_the_plain_network_has_no_regularizer_and_no_refit(fitted: Fitted) -> None:
    """CASTLE selects the columns of a refit, and the plain network has none."""
    _, X, y = fitted
    options = {"recipe": Recipe("robust", refit=True), "max_epochs": 2, "learning_rate": 0.07, "n_members": 2}
    model = CastleRegressor(regularizers=[Dropout(0.2)], random_state=0, **options).fit(X, y)
    network = _plain_network(model)
    assert type(network) is NetworkRegressor
    shown = network.get_params()
    assert (shown["regularizers"], shown["learning_rate"], shown["n_members"]) == ((), 0.07, 2)
    assert shown["recipe"] == Recipe("robust", refit=False)


def test_epochs_of_the_warmup_are_not_the_best(fitted: Fitted) -> None:
    _, X, y = fitted
    model = CastleRegressor(recipe=Recipe(warmup=3), max_epochs=5, random_state=0).fit(X, y)
    warmup = model.history_["epoch"] <= 3
    lowered = model.history_.assign(validation_loss=model.history_["validation_loss"].mask(warmup, 0.0))
    model.model_ = dataclasses.replace(model.model_, history=lowered)
    content = report_content(model, X, y, evaluate=False, what_if=False)
    training, settings = content.training, {name: value for name, value, _ in content.settings}
    assert settings["recipe"] == repr(Recipe(warmup=3).filled(PAPER))
    assert training.best_epochs[0] > 3
    assert training.curves[1].best[1][0] == pytest.approx(model.validation_loss_)


def test_folds_are_alike_in_size_and_in_classes() -> None:
    labels = np.array(["a"] * 33 + ["b"] * 9 + ["c"] * 2)
    folds = _folds([ClassTarget.fit(labels, "label")], [labels], 4, seed=0)
    counts = np.array([[np.sum(labels[held_out] == c) for c in "abc"] for _, held_out in folds])
    assert np.ptp(counts, axis=0).max() <= 1 and counts.sum() == 44
    assert sorted(counts.sum(axis=1)) == [11, 11, 11, 11]


def test_models_and_options_that_are_not_valid_raise(fitted: Fitted) -> None:
    model, X, y = fitted
    with pytest.raises(TypeError, match="LinearRegression is not an estimator of castlereg"):
        report_content(LinearRegression().fit(X, y), X, y)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="cv=1 must be a whole number of at least 2"):
        report_content(model, X, y, cv=1)
    with pytest.raises(ValueError, match="cv=61 needs at least 61 rows, but there are 60: lower cv"):
        report_content(model, X, y, cv=61)
    with pytest.raises(ValueError, match="rivals=2 must be True or False"):
        report_content(model, X, y, rivals=2)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="evaluate='no' must be True or False"):
        report_content(model, X, y, evaluate="no")  # type: ignore[arg-type]
