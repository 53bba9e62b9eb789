"""What the report says of a model, against the model itself."""

from __future__ import annotations

import dataclasses

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.linear_model import LinearRegression
from sklearn.metrics import accuracy_score, log_loss, r2_score, root_mean_squared_error

from castlereg import CastleClassifierCV, CastleMultiOutput, CastleRegressor, NetworkRegressor
from castlereg.data.targets import ClassTarget, NumericTarget
from castlereg.regularizers import L2, Dropout
from castlereg.report import ReportContent, report_content
from castlereg.report.cross_fitting import fold_numbers, out_of_fold, plain, single
from castlereg.report.graph_view import GraphContent

from .conftest import DATE, Fitted

pytestmark = pytest.mark.xdist_group("report")  # one worker fits the model


def test_scores_are_those_of_clones_on_rows_they_did_not_see(fitted: Fitted, content: ReportContent) -> None:
    model, X, y = fitted
    said = out_of_fold(model, X, y, [y.to_numpy()], cv=2, seed=3, progress=False)
    # By hand: the same folds and seeds, other code.
    seeds = np.random.SeedSequence(3).generate_state(2)
    for name, method in (
        ("CASTLE", CastleRegressor(max_epochs=3, n_members=2)),
        ("plain network", NetworkRegressor(max_epochs=3, n_members=2)),
    ):
        expected = np.empty(60)
        for fold in range(2):
            held = said.folds == fold
            one = clone(method).set_params(random_state=int(seeds[fold])).fit(X[~held], y[~held])
            expected[held] = one.predict(X[held])
        np.testing.assert_array_equal(said.predictions[name][0], expected)
    assert content.evaluation is not None
    error, r2, rmse = content.evaluation.targets[0].measures
    for k, name in enumerate(("CASTLE", "plain network", "guess")):
        predicted = said.predictions[name][0]
        assert r2.scores[k].value == pytest.approx(r2_score(y, predicted))
        assert error.scores[k].value == pytest.approx(1 - r2_score(y, predicted))
        assert rmse.scores[k].value == pytest.approx(root_mean_squared_error(y, predicted))
    guess = said.predictions["guess"][0]
    assert guess[said.folds == 0] == pytest.approx(y[said.folds == 1].mean())


def test_numbers_and_classes_together_are_scored_each_in_its_way(fitted: Fitted) -> None:
    _, X, y = fitted
    targets = pd.DataFrame({"progression": y, "sex": X["sex"].map({1: "one", 2: "two"})})
    X = X.drop(columns="sex")
    model = CastleMultiOutput(max_epochs=2, random_state=0).fit(X[:30], targets[:30])
    content = report_content(model, X, targets, cv=2, date=DATE)
    assert content.evaluation is not None
    number, classes = content.evaluation.targets
    assert [number.target, classes.target] == ["progression", "sex"]
    assert number.is_numeric and len(number.points) == 60
    truth = [targets["progression"].to_numpy(), targets["sex"].to_numpy(dtype=object)]
    said = out_of_fold(model, X, targets, truth, cv=2, seed=0, progress=False).predictions["CASTLE"][1]
    labels = np.array(["one", "two"])
    loss, accuracy = (measure.scores[0].value for measure in classes.measures)
    assert loss == pytest.approx(log_loss(truth[1], said, labels=labels))
    assert accuracy == pytest.approx(accuracy_score(truth[1], labels[said.argmax(axis=1)]))
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
    told = "\n".join([*content.graph.summary, *content.graph.warnings, content.graph.not_proof])
    assert told == model.graph_.summary()
    history = model.history_.set_index(["member", "epoch"])
    objective, validation = content.training.curves
    assert objective.members[1][2] == (3.0, history.loc[(1, 3), "objective"])
    assert {value for _, value in validation.best} == set(history["validation_loss"].groupby("member").min())
    assert {s.name: s.value for s in content.settings} == {
        name: repr(value) for name, value in model.get_params().items()
    }
    assert {s.name for s in content.settings if s.changed} == {"max_epochs", "n_members", "random_state"}
    assert content.seed == "3"


def test_the_same_seed_gives_the_same_content(fitted: Fitted, content: ReportContent) -> None:
    assert report_content(*fitted, cv=2, date=DATE) == content


def test_another_seed_gives_other_folds_and_is_told(fitted: Fitted) -> None:
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
    model = CastleClassifierCV((0.5, 0.01), cv=2, max_epochs=2, n_members=2, scaling="robust", random_state=0)
    model.fit(X.drop(columns="sex"), X["sex"])
    one = single(model)
    assert type(one).__name__ == "CastleClassifier"
    params = one.get_params()
    assert params["reg_beta"] == model.reg_beta_
    assert params["n_members"] == model.network_.n_members == 4
    assert params["scaling"] == plain(model).get_params()["scaling"] == "robust"


def test_the_plain_network_has_no_regularizer() -> None:
    model = CastleRegressor(regularizers=[Dropout(0.2)], batch_size=7)
    assert plain(model).get_params()["regularizers"] == ()
    assert plain(model).get_params()["batch_size"] == 7
    kept = single(NetworkRegressor([L2(0.1)], verbose=True)).get_params()
    assert kept["regularizers"] == [L2(0.1)]
    assert kept["verbose"] is False


def test_folds_are_alike_in_size_and_in_classes() -> None:
    labels = np.array(["a"] * 33 + ["b"] * 9 + ["c"] * 2)
    targets = (NumericTarget.fit(np.arange(44.0), "y"), ClassTarget.fit(labels, "label"))
    folds = fold_numbers(targets, [np.arange(44.0), labels], 4, np.random.default_rng(0))
    table = pd.crosstab(labels, folds)
    assert (table.max(axis=1) - table.min(axis=1)).max() <= 1
    assert sorted(table.sum()) == [11, 11, 11, 11]


def test_what_is_no_fitted_model_of_castlereg_is_refused(fitted: Fitted) -> None:
    model, X, y = fitted
    with pytest.raises(TypeError, match="LinearRegression is no estimator of castlereg"):
        report_content(LinearRegression().fit(X, y), X, y)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="cv=1 must be a whole number of at least 2"):
        report_content(model, X, y, cv=1)
    with pytest.raises(ValueError, match="cv=61 is more than the 60 rows"):
        report_content(model, X, y, cv=61)
    with pytest.raises(ValueError, match="evaluate='no' must be True or False"):
        report_content(model, X, y, evaluate="no")  # type: ignore[arg-type]
