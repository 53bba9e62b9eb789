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
from sklearn.metrics import accuracy_score, log_loss, r2_score, root_mean_squared_error
from sklearn.model_selection import KFold

from castlereg import (
    CastleClassifier,
    CastleClassifierCV,
    CastleMultiOutput,
    CastleRegressor,
    NetworkRegressor,
    NetworkRegressorCV,
    Recipe,
    load,
    save,
)
from castlereg.notices import FitWarning
from castlereg.regularizers import L2, Castle, Dropout
from castlereg.report import ReportContent, report_content
from castlereg.report.cross_fitting import fold_numbers, out_of_fold, plain, single
from castlereg.report.graph_view import GraphContent
from castlereg.table.targets import ClassTarget, NumericTarget
from tests.fitted_models import short_pools

from .conftest import DATE, Fitted

METHODS = ("CASTLE", "plain network", "random forest", "gradient boosting")
pytestmark = pytest.mark.xdist_group("report")  # one worker fits the model


def test_scores_are_those_of_clones_on_rows_they_did_not_see(fitted: Fitted, content: ReportContent) -> None:
    model, X, y = fitted
    with warnings.catch_warnings():
        warnings.simplefilter("error", FitWarning)  # rows are few, but the fit of the model has said it
        predictions, folds = out_of_fold(model, X, y, [y.to_numpy()], rivals=False, cv=2, seed=3, verbose=False)
    # By hand: the same folds and seeds, other code.
    seeds = np.random.SeedSequence(3).generate_state(2)
    for name, method in (
        ("CASTLE", CastleRegressor(max_epochs=3, n_members=2)),
        ("plain network", NetworkRegressor(max_epochs=3, n_members=2)),
    ):
        expected = np.empty(60)
        for fold in range(2):
            held = folds == fold
            one = clone(method).set_params(random_state=int(seeds[fold])).fit(X[~held], y[~held])
            expected[held] = one.predict(X[held])
        np.testing.assert_array_equal(predictions[name][0], expected)
    assert content.evaluation is not None
    error, r2, rmse = content.evaluation.targets[0].measures
    assert content.evaluation.targets[0].methods == (*METHODS, "guess")
    for k, name in ((0, "CASTLE"), (1, "plain network"), (4, "guess")):
        predicted = predictions[name][0]
        assert r2.scores[k].value == pytest.approx(r2_score(y, predicted))
        assert error.scores[k].value == pytest.approx(1 - r2_score(y, predicted))
        assert rmse.scores[k].value == pytest.approx(root_mean_squared_error(y, predicted))
    guess = predictions["guess"][0]
    assert guess[folds == 0] == pytest.approx(y[folds == 1].mean())


def test_numbers_and_classes_together_are_scored_each_in_its_way(fitted: Fitted) -> None:
    _, X, y = fitted
    targets = pd.DataFrame({"progression": y, "sex": X["sex"].map({1: "one", 2: "two"})})
    X = X.drop(columns="sex")
    model = CastleMultiOutput(max_epochs=2, random_state=0).fit(X[:30], targets[:30])
    content = report_content(model, X, targets, cv=2, date=DATE, rivals=False)
    assert content.evaluation is not None
    number, classes = content.evaluation.targets
    assert [number.target, classes.target] == ["progression", "sex"]
    assert number.is_numeric and len(number.points) == 60
    truth = [targets["progression"].to_numpy(), targets["sex"].to_numpy(dtype=object)]
    out = out_of_fold(model, X, targets, truth, rivals=False, cv=2, seed=0, verbose=False)[0]["CASTLE"][1]
    labels = np.array(["one", "two"])
    loss, accuracy = (measure.scores[0].value for measure in classes.measures)
    assert loss == pytest.approx(log_loss(truth[1], out, labels=labels))
    assert accuracy == pytest.approx(accuracy_score(truth[1], labels[out.argmax(axis=1)]))
    assert np.sum(classes.confusion) == sum(one.rows for one in classes.reliability) == 60
    assert np.trace(np.array(classes.confusion)) == pytest.approx(60 * accuracy)
    assert content.title == "What predicts progression and sex"
    assert [column.name for column in content.columns] == ["progression", "sex", "age", "bmi", "bp"]


def test_what_the_page_says_of_the_model_is_what_the_model_has(fitted: Fitted, content: ReportContent) -> None:
    model, _, _ = fitted
    assert (content.n_rows, content.n_columns, content.date) == (60, 4, "2026-01-31")
    assert isinstance(content.graph, GraphContent)
    frame = model.graph_.edges()
    assert [(e.cause, e.effect, e.weight) for e in content.graph.edges] == [
        tuple(row) for row in frame[["cause", "effect", "weight"]].itertuples(index=False)
    ]
    summary = "\n".join([*content.graph.summary, *content.graph.warnings, content.graph.not_proof])
    assert summary == model.graph_.summary()
    history = model.history_.set_index(["member", "epoch"])
    objective, validation = content.training.curves
    assert objective.members[1][2] == (3.0, history.loc[(1, 3), "objective"])
    assert {value for _, value in validation.best} == set(history["validation_loss"].groupby("member").min())
    assert {s.name: s.value for s in content.settings} == {
        name: repr(value) for name, value in model.get_params().items()
    }
    assert {s.name for s in content.settings if s.changed} == {"max_epochs", "n_members", "random_state"}
    assert content.seed == "3"


def test_another_seed_gives_other_folds_and_is_shown(fitted: Fitted) -> None:
    content = report_content(*fitted, evaluate=False, random_state=np.random.default_rng(0))
    assert content.seed.startswith("model 3, report ")
    assert content.evaluation is None


def test_content_is_plain_data(content: ReportContent) -> None:
    def check(value: object) -> None:
        if isinstance(value, tuple):
            for one in value:
                check(one)
        elif isinstance(value, dict):
            for key, one in value.items():
                check((key, one))
        else:
            assert type(value) in (str, int, float, bool, type(None)), value

    check(dataclasses.asdict(content))


def test_a_model_that_chose_its_strengths_is_scored_with_them(fitted: Fitted) -> None:
    _, X, _ = fitted
    recipe = Recipe(scaling="robust")
    castles = [Castle(reg_lambda=2.0, capacity=False), Castle(reg_lambda=0.5, capacity=False)]
    model = CastleClassifierCV((0.5, 0.01), cv=2, castle=castles, max_epochs=2, recipe=recipe, random_state=0)
    model.fit(X.drop(columns="sex"), X["sex"])
    estimator = single(model)
    assert type(estimator) is CastleClassifier
    params = estimator.get_params()
    assert (params["reg_beta"], params["reg_lambda"]) == (model.reg_beta_, model.reg_lambda_)
    assert params["castle"].capacity is False
    assert params["n_members"] == model.model_.networks.n_members == 2
    assert params["recipe"] == plain(model).get_params()["recipe"] == recipe
    content = report_content(model, X.drop(columns="sex"), X["sex"], cv=2, random_state=0, rivals=False)
    assert content.evaluation is not None
    assert f"(reg_beta={model.reg_beta_:g}, reg_lambda={model.reg_lambda_:g})" in content.evaluation.note
    assert content.training.n_networks == 2


def test_a_network_that_chose_its_regularizers_is_scored_with_them(fitted: Fitted) -> None:
    _, X, y = fitted
    model = NetworkRegressorCV([[L2(0.1)], [L2(0.01)]], cv=2, max_epochs=2, random_state=0).fit(X, y)
    estimator = single(model)
    assert type(estimator) is NetworkRegressor
    assert estimator.regularizers == model.best_regularizers_
    assert estimator.n_members == 2


@pytest.mark.parametrize("cv", [2, KFold(2), "list"])
def test_the_search_of_a_pool_is_repeated_in_every_fold(fitted: Fitted, cv: Any) -> None:
    _, X, y = fitted
    cv = list(KFold(2).split(X)) if cv == "list" else cv
    with short_pools():
        model = NetworkRegressorCV(search="fast", cv=cv, random_state=0).fit(X, y)
        assert single(model).get_params()["cv"] == 2
        content = report_content(model, X, y, cv=2, random_state=0, rivals=False)
    assert content.evaluation is not None
    assert "The whole search was repeated in every fold." in content.evaluation.note


@pytest.mark.filterwarnings("ignore:X has levels that are not in the training data")
def test_a_column_that_is_nearly_an_identifier_stays_one_of_levels_on_the_rows_of_a_fold() -> None:
    """34 levels in 70 rows are levels; in the 56 rows of a fold they would be an identifier."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"zip": [f"z{i % 34}" for i in range(70)], "size": rng.normal(size=70)})
    y = X["size"] + rng.normal(size=70)
    model = CastleRegressor(max_epochs=1, random_state=0).fit(X, y)
    assert model.schema_.loc["zip", "kind"] == "categorical"
    predictions, _ = out_of_fold(model, X, y, [y.to_numpy()], rivals=False, cv=5, seed=0, verbose=False)
    assert np.isfinite(predictions["CASTLE"][0]).all()


class Custom(L2):
    """A regularizer that cannot be saved: loading never imports anything that a file names."""


def test_a_model_without_its_regularizers_is_described_but_not_measured(fitted: Fitted, tmp_path: Path) -> None:
    _, X, y = fitted
    model = NetworkRegressorCV([[Custom(0.1)]], cv=2, max_epochs=2, random_state=0).fit(X, y)
    with pytest.warns(UserWarning, match="is not saved"):
        save(model, tmp_path / "model")
    with pytest.warns(UserWarning, match="does not contain the option candidates"):
        loaded = load(tmp_path / "model")
    message = "its file does not contain its regularizers: pass evaluate=False"
    with pytest.raises(ValueError, match=message):
        report_content(loaded, X, y, cv=2)
    assert report_content(loaded, X, y, evaluate=False).training == report_content(model, X, y, evaluate=False).training
    network = NetworkRegressor(None)  # type: ignore[arg-type]
    network.model_ = fitted[0].model_
    with pytest.raises(ValueError, match=message):
        single(network)


def test_the_plain_network_has_no_regularizer(fitted: Fitted) -> None:
    castle = CastleRegressor(regularizers=[Dropout(0.2)], learning_rate=0.07, n_members=2)
    network = NetworkRegressor([L2(0.1)], verbose=True)
    castle.model_ = network.model_ = fitted[0].model_
    options = plain(castle).get_params()
    assert (options["regularizers"], options["learning_rate"], options["n_members"]) == ((), 0.07, 2)
    options = single(network).get_params()
    assert options["regularizers"] == [L2(0.1)]
    assert options["verbose"] is False


def test_epochs_before_the_graph_is_acyclic_are_not_the_best(fitted: Fitted) -> None:
    _, X, y = fitted
    model = CastleRegressor(objective="graph", max_epochs=5, random_state=0).fit(X, y)
    first_phase = model.history_["epoch"] <= 3
    lowered = model.history_.assign(validation_loss=model.history_["validation_loss"].mask(first_phase, 0.0))
    model.model_ = dataclasses.replace(model.model_, history=lowered)
    training = report_content(model, X, y, evaluate=False).training
    assert training.best_epochs[0] > 3
    assert training.curves[1].best[0][1] == pytest.approx(model.validation_loss_)


def test_folds_are_alike_in_size_and_in_classes() -> None:
    labels = np.array(["a"] * 33 + ["b"] * 9 + ["c"] * 2)
    targets = (NumericTarget.fit(np.arange(44.0), "y"), ClassTarget.fit(labels, "label"))
    folds = fold_numbers(targets, [np.arange(44.0), labels], 4, np.random.default_rng(0))
    table = pd.crosstab(labels, folds)
    assert (table.max(axis=1) - table.min(axis=1)).max() <= 1
    assert sorted(table.sum()) == [11, 11, 11, 11]


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


def test_the_plain_network_has_no_refit(fitted: Fitted) -> None:
    """CASTLE selects the columns of a refit, and the plain network has none."""
    _, X, y = fitted
    model = CastleRegressor(recipe=Recipe("robust", refit=True), max_epochs=2, random_state=0).fit(X, y)
    network = plain(model)
    assert network.recipe == Recipe("robust") and network.fit(X, y).model_.blend is None
