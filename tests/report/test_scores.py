"""Intervals and verdicts, on predictions made up."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats

from castlereg.data.targets import ClassTarget, NumericTarget
from castlereg.report.scores import Interval, number, reliability, score_target, with_interval


def test_the_interval_of_an_accuracy_is_about_the_binomial_one() -> None:
    classes = np.array(["no", "yes"])
    codes = np.tile([0, 1], 200)
    predicted = np.eye(2)[np.where(np.arange(400) < 300, codes, 1 - codes)] * 0.98 + 0.01
    scores = score_target(ClassTarget("y", classes), classes[codes], {"CASTLE": predicted, "guess": predicted}, seed=0)
    accuracy = scores.measures[1].scores[0]
    assert accuracy.value == 0.75
    low, high = scipy.stats.binom(400, 0.75).interval(0.95)
    assert (accuracy.low, accuracy.high) == pytest.approx((low / 400, high / 400), abs=0.01)


def test_differences_are_paired() -> None:
    """Errors that differ by the same share in every row leave no doubt, however wide the errors' own intervals are."""
    rng = np.random.default_rng(0)
    y = rng.normal(size=200)
    off = rng.normal(size=200)
    target = NumericTarget.fit(y, "y")
    predicted = {"CASTLE": y + off, "plain network": y + 1.1 * off, "guess": np.zeros(200)}
    scores = score_target(target, y, predicted, seed=0)
    mine, plain, _ = scores.measures[0].scores
    difference = scores.differences[0]
    assert plain.low < mine.high
    assert difference.high < 0
    assert difference.value == pytest.approx(mine.value * (1 - 1.1**2))
    assert scores.verdict[1].endswith("CASTLE is better, in this run.")


@pytest.mark.parametrize(
    ("factor", "sentence"),
    [(0.5, "the plain network is better"), (1.0, "is within noise"), (2.0, "CASTLE is better")],
)
def test_the_verdict_says_which_is_better(factor: float, sentence: str) -> None:
    rng = np.random.default_rng(0)
    y = rng.normal(size=300)
    predicted = {
        "CASTLE": y + rng.normal(size=300),
        "plain network": y + factor * rng.normal(size=300),
        "guess": np.zeros(300),
    }
    scores = score_target(NumericTarget.fit(y, "y"), y, predicted, seed=0)
    assert sentence in scores.verdict[1]


def test_a_sure_but_tiny_difference_is_called_too_small() -> None:
    rng = np.random.default_rng(0)
    y, off = rng.normal(size=(2, 200))
    predicted = {"CASTLE": y + off, "plain network": y + 1.001 * off, "guess": np.zeros(200)}
    scores = score_target(NumericTarget.fit(y, "y"), y, predicted, seed=0)
    assert scores.differences[0].high < 0
    assert scores.verdict[1].endswith("is too small to matter.")


def test_the_verdict_names_the_scores_it_rests_on() -> None:
    y = np.arange(100.0)
    predicted = {"this model": y + 9.0, "guess": np.full(100, y.mean())}
    scores = score_target(NumericTarget.fit(y, "y"), y, predicted, seed=0)
    error = scores.measures[0]
    share = 81 / y.var()
    assert scores.verdict[0].startswith(f"This model's error is {number(share, error.decimals)} of the variance [")
    assert scores.verdict[1] == "Predicting the mean would be worse, at 1.00."


def test_a_handful_of_rows_with_equal_values_has_intervals() -> None:
    y = np.array([0.0, 0.0, 0.0, 1.0])
    scores = score_target(NumericTarget.fit(y, "y"), y, {"CASTLE": y + 0.1, "guess": y * 0}, seed=0)
    assert np.isfinite([scores.measures[0].scores[0].low, scores.measures[0].scores[0].high]).all()


def test_a_class_that_a_fold_never_saw_has_a_finite_loss() -> None:
    classes = np.array(["a", "b", "c"])
    predicted = np.tile([0.5, 0.5, 0.0], (30, 1))
    truth = classes[np.tile([0, 1, 2], 10)]
    scores = score_target(ClassTarget("y", classes), truth, {"CASTLE": predicted, "guess": predicted}, seed=0)
    assert np.isfinite(scores.measures[0].scores[0].value)


def test_many_rows_and_many_classes_are_shown_in_part() -> None:
    y = np.arange(3000.0)
    scores = score_target(NumericTarget.fit(y, "y"), y, {"CASTLE": y + 1, "guess": 0 * y + 7}, seed=0)
    assert len(scores.points) == 1000
    assert all(predicted == true + 1 for true, predicted in scores.points)
    labels = np.arange(21)
    same = np.full((42, 21), 1 / 21)
    many = score_target(ClassTarget("y", labels), np.tile(labels, 2), {"CASTLE": same, "guess": same}, seed=0)
    assert many.confusion == ()
    assert many.reliability == reliability(np.tile(labels, 2), same)


def test_numbers_have_a_real_minus_sign_and_no_minus_before_zero() -> None:
    assert with_interval(Interval(-0.034, -0.1, -0.001), 2) == "\N{MINUS SIGN}0.03 [\N{MINUS SIGN}0.10, 0.00]"
    assert number(12345.6, 0) == "12,346"
