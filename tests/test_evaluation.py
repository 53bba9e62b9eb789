"""Scores of a model on a table."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn import metrics

import castlereg
from castlereg.evaluation import (
    Evaluation,
    Score,
    TargetScores,
    _target_scores,
    evaluate,
    held_out_evaluation,
    measures_of,
)
from castlereg.table.targets import ClassTarget, NumericTarget

RNG = np.random.default_rng(0)
SEED = np.random.SeedSequence(0)


@pytest.mark.parametrize("seed", range(3))
def test_numeric_measures_are_scikit_learns_with_weights(seed: int) -> None:
    rng = np.random.default_rng(seed)
    truth, predicted = rng.normal(1e4, 3, (2, 40))
    counts = rng.integers(0, 4, (5, 40)).astype(float)
    measured = measures_of(NumericTarget.fit(truth, "y"), truth, predicted, counts)
    for draw, weight in enumerate(counts):
        assert measured["R2"][draw] == pytest.approx(metrics.r2_score(truth, predicted, sample_weight=weight))
        square = metrics.mean_squared_error(truth, predicted, sample_weight=weight)
        assert measured["RMSE"][draw] == pytest.approx(np.sqrt(square))
        absolute = metrics.mean_absolute_error(truth, predicted, sample_weight=weight)
        assert measured["MAE"][draw] == pytest.approx(absolute)


@pytest.mark.parametrize(("n_classes", "digits"), [(2, 8), (2, 1), (4, 8), (4, 1)])
def test_class_measures_are_scikit_learns_with_weights(n_classes: int, digits: int) -> None:
    rng = np.random.default_rng(n_classes)
    codes = rng.integers(n_classes, size=60)
    shares = rng.dirichlet(np.ones(n_classes), 60).round(digits)  # of one digit, some are the same
    shares /= shares.sum(axis=1, keepdims=True)
    counts = rng.integers(0, 4, (5, 60)).astype(float)
    measured = measures_of(ClassTarget("y", np.arange(n_classes)), codes, shares, counts)
    predicted = shares.argmax(axis=1)
    for draw, weight in enumerate(counts):
        accuracy = metrics.accuracy_score(codes, predicted, sample_weight=weight)
        balanced = metrics.balanced_accuracy_score(codes, predicted, sample_weight=weight)
        score, options = (shares[:, 1], {}) if n_classes == 2 else (shares, {"multi_class": "ovr"})
        auroc = metrics.roc_auc_score(codes, score, sample_weight=weight, **options)
        loss = metrics.log_loss(codes, shares, sample_weight=weight)
        square = np.average(((shares - np.eye(n_classes)[codes]) ** 2).sum(axis=1), weights=weight)
        expected = [accuracy, balanced, auroc, loss, square / (2 if n_classes == 2 else 1)]
        np.testing.assert_allclose([values[draw] for values in measured.values()], expected)
    if n_classes == 2:
        assert measured["Brier score"][0] == pytest.approx(
            metrics.brier_score_loss(codes, shares[:, 1], sample_weight=counts[0])
        )


def test_a_class_without_rows_is_left_out() -> None:
    three, two = (ClassTarget("y", np.arange(n)) for n in (3, 2))
    measured = measures_of(three, np.array([0, 1, 1]), np.array([[0.6, 0.3, 0.1]] * 3), np.ones((1, 3)))
    assert measured["balanced accuracy"][0] == 0.5
    assert measured["AUROC"][0] == 0.5
    only_one = measures_of(two, np.array([1, 1]), np.array([[0.6, 0.4]] * 2), np.ones((1, 2)))
    assert np.isnan(only_one["AUROC"][0])


def test_the_interval_is_that_of_a_mean() -> None:
    truth = RNG.normal(size=400)
    scores = _target_scores(NumericTarget.fit(truth, "y"), truth, truth + RNG.exponential(size=400), SEED)
    score = {score.measure: score for score in scores.scores}["MAE"]
    error = 1.96 / np.sqrt(400)  # the standard deviation of an exponential is 1
    assert score.high - score.low == pytest.approx(2 * error, rel=0.25)
    assert score.low < score.value < score.high


def test_constant_predictions_are_the_best_constants() -> None:
    target = ClassTarget("kind", np.array(["a", "b"]))
    codes = np.array([0] * 30 + [1] * 10)
    scores = _target_scores(target, codes, np.tile([0.4, 0.6], (40, 1)), SEED)
    constants = {score.measure: score.constant for score in scores.scores}
    assert constants == pytest.approx(
        {
            "accuracy": 0.75,
            "balanced accuracy": 0.5,
            "AUROC": 0.5,
            "log loss": -(0.75 * np.log(0.75) + 0.25 * np.log(0.25)),
            "Brier score": 0.75 * 0.25,
        }
    )
    assert scores.verdict == "no better than predicting the base rates"


@pytest.mark.parametrize(
    ("score", "verdict"),
    [
        (Score(0.5, 0.4, 0.6, "R2", 0.0), ""),
        (Score(0.1, -0.1, 0.2, "R2", 0.0), "perhaps no better than predicting the mean"),
        (Score(-0.1, -0.2, 0.2, "R2", 0.0), "no better than predicting the mean"),
    ],
)
def test_the_verdict(score: Score, verdict: str) -> None:
    assert TargetScores("y", "regression", (score,)).verdict == verdict


@pytest.mark.parametrize(
    ("score", "line"),
    [
        (Score(3.2e-9, 2.9e-9, 3.5e-9, "RMSE", 5.5e-9), "RMSE  3.2e-9  [2.9e-9, 3.5e-9]  5.5e-9"),
        (Score(3.2e-9, 2.9e-9, 3.5e-9, "RMSE", 5.5), "RMSE  3.2e-9  [2.9e-9, 3.5e-9]  5.500000"),
        (Score(12345.6, 12000.0, 12900.0, "RMSE", 20000.0), "RMSE  12346  [12000, 12900]  20000"),
        (Score(-0.5, -0.72, -0.3, "R2", 0.0), "R2  -0.50  [-0.72, -0.30]  0.00"),
    ],
)
def test_scores_are_written_with_the_digits_that_count(score: Score, line: str) -> None:
    written = str(Evaluation(20, 0, (TargetScores("y", "regression", (Score(0.5, 0.4, 0.6, "R2", 0.0), score)),)))
    assert written.splitlines()[-1].split() == line.split()


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    area = rng.normal(80, 20, 60)
    frame = pd.DataFrame({"area": area, "rent": 10 * area + rng.normal(0, 30, 60)})
    return frame.assign(large=np.where(area > 80, "yes", "no"))


@pytest.fixture(scope="module")
def model(table: pd.DataFrame) -> castlereg.CastleRegressorCV:
    return castlereg.CastleRegressorCV((0.01,), cv=2, max_epochs=3, random_state=0).fit(table[["area"]], table["rent"])


def test_evaluate_scores_what_predict_says(model: castlereg.CastleRegressorCV, table: pd.DataFrame) -> None:
    rent = table["rent"].where(np.arange(60) % 10 > 0)  # some are missing
    evaluation = evaluate(model, table[["area"]], rent)
    assert (evaluation.n_rows, evaluation.n_without_target) == (54, 6)
    known = table[rent.notna()]
    scores = evaluation.to_frame().set_index("measure")["score"]
    assert scores["R2"] == pytest.approx(model.score(known[["area"]], known["rent"]))
    low, high = model.predict_interval(known[["area"]]).T
    assert scores["coverage of 90 % intervals"] == ((low <= known["rent"]) & (known["rent"] <= high)).mean()
    assert str(evaluation).startswith("54 rows, 6 without a target left out\n\nrent, regression")
    again = evaluate(model, table[["area"]], rent)
    assert evaluation == again
    as_text = [f"{value!r}" if value == value else "?" for value in rent]
    assert evaluate(model, table[["area"]], as_text) == evaluation


def test_held_out_rows_are_predicted_by_the_network_that_left_them_out(
    model: castlereg.CastleRegressorCV, table: pd.DataFrame
) -> None:
    by_fold = model.model_.predict_by_fold(_columns(model, table))[0]
    predicted = np.empty(60)
    for fold, (_, left_out) in enumerate(model.folds_):
        predicted[left_out] = by_fold[fold, left_out]
    evaluation = held_out_evaluation(model)
    assert evaluation is not None
    assert evaluation.n_rows == 60
    assert evaluation.targets[0].scores[0].value == pytest.approx(metrics.r2_score(table["rent"], predicted))


def _columns(model: castlereg.CastleRegressorCV, table: pd.DataFrame) -> castlereg.table.reading.Columns:
    from castlereg.estimators.base import read_features

    return read_features(model, table[["area"]])


def test_several_targets_and_validation_rows(table: pd.DataFrame) -> None:
    targets = table[["large"]].assign(middle=np.where(table["rent"].between(700, 900), "yes", "no"))
    model = castlereg.NetworkClassifier(max_epochs=1, random_state=0).fit(table[["area"]], targets)
    evaluation = evaluate(model, table[["area"]], targets)
    assert [(of.target, of.task) for of in evaluation.targets] == [(name, "classification") for name in targets]
    assert len(evaluation.to_frame()) == 2 * 5
    held_out = held_out_evaluation(model)
    assert held_out is not None
    assert held_out.n_rows == 6  # a tenth
    with pytest.raises(ValueError, match="target 'large' has class 'huge', which is not in the training data"):
        evaluate(model, table[["area"]], targets.assign(large="huge"))


def test_what_cannot_be_scored(model: castlereg.CastleRegressorCV, table: pd.DataFrame) -> None:
    with pytest.raises(ValueError, match="nothing to score"):
        evaluate(model, table[["area"]], np.full(60, np.nan))
    with pytest.raises(TypeError, match="use scikit-learn's metrics"):
        evaluate(metrics, table[["area"]], table["rent"])  # type: ignore[arg-type]
    one = evaluate(model, table[["area"]][:1], table["rent"][:1])
    assert np.isnan(one.targets[0].scores[0].value)
    assert "unknown" in str(one)
