"""Intervals and verdicts, on predictions made up."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.stats
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.model_selection import KFold
from threadpoolctl import threadpool_limits

from castlereg import CastleRegressor
from castlereg.evaluation import Interval, number
from castlereg.report.scores import (
    _BOOSTING,
    _FOREST,
    _judged,
    _reliability,
    _rival_predictions,
    _score_target,
    comparison,
)
from castlereg.table.targets import ClassTarget, NumericTarget


def shown(score: Interval, decimals: int) -> str:
    value, low, high = (number(x, decimals) for x in (score.value, score.low, score.high))
    return f"{value} [{low}, {high}]"


def test_the_interval_of_an_accuracy_is_about_the_binomial_one() -> None:
    classes = np.array(["no", "yes"])
    codes = np.tile([0, 1], 200)
    predicted = np.eye(2)[np.where(np.arange(400) < 300, codes, 1 - codes)] * 0.98 + 0.01
    scores = _score_target(ClassTarget("y", classes), classes[codes], {"CASTLE": predicted, "guess": predicted}, seed=0)
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
    scores = _score_target(target, y, predicted, seed=0)
    mine, plain, _ = scores.measures[0].scores
    difference = scores.differences[0]
    assert plain.low < mine.high
    assert difference.high < 0
    assert difference.value == pytest.approx(mine.value * (1 - 1.1**2))
    assert difference.verdict == "better"


def test_the_verdict_says_who_is_better_and_names_first_who_beats_the_model() -> None:
    rng = np.random.default_rng(0)
    y = rng.normal(size=300)
    factors = {"CASTLE": 1.0, "plain network": 1.0, "random forest": 0.5, "gradient boosting": 2.0}
    predicted = {method: y + factor * rng.normal(size=300) for method, factor in factors.items()}
    scores = _score_target(NumericTarget.fit(y, "y"), y, predicted | {"guess": np.full(300, 9.0)}, seed=0)
    assert [d.verdict for d in scores.differences] == ["within noise", "worse", "better", "better"]
    assert scores.verdict[1] == (
        "On the same rows it is worse than the random forest; not clearly different from the plain network; "
        "and better than gradient boosting and predicting the mean."
    )
    assert scores.best_rival == scores.differences[1]


@pytest.mark.parametrize(
    ("interval", "expected", "verdict"),
    [
        # Without enough digits these would read 0.00 [0.00, 0.01].
        (Interval(0.0051, 0.0003, 0.0098), "0.0051 [0.0003, 0.0098]", "worse"),
        (Interval(-0.0051, -0.0098, -0.0003), "-0.0051 [-0.0098, -0.0003]", "better"),
        (Interval(0.012, 0.003, 0.021), "0.012 [0.003, 0.021]", "worse"),
        # A bound that still reads zero counts as zero.
        (Interval(0.005, 0.00004, 0.01), "0.0050 [0.0000, 0.0100]", "within noise"),
        (Interval(0.0005, 0.0001, 0.0009), "0.0005 [0.0001, 0.0009]", "too small to matter"),
        (Interval(0.0, 0.0, 0.0), "0.000 [0.000, 0.000]", "within noise"),
        (Interval(3e-9, 1e-9, 5e-9), "3e-9 [1e-9, 5e-9]", "too small to matter"),
    ],
)
def test_an_interval_and_its_verdict_agree(interval: Interval, expected: str, verdict: str) -> None:
    difference = _judged("plain network", interval, score=Interval(0.3, 0.3, 0.3))
    written = shown(difference, difference.decimals).replace("\N{MINUS SIGN}", "-")
    assert (written, difference.verdict) == (expected, verdict)


def test_what_is_written_decides_the_verdict() -> None:
    rng = np.random.default_rng(0)
    for value, half in 10 ** rng.uniform(-6, 1, size=(500, 2)):
        difference = _judged(
            "plain network", Interval(value, value - half, value + half), score=Interval(0.0, 0.0, 0.0)
        )
        low, high = (
            float(number(bound, difference.decimals).replace("\N{MINUS SIGN}", "-").replace(",", ""))
            for bound in (difference.low, difference.high)
        )
        assert difference.verdict == ("worse" if low > 0 else "better" if high < 0 else "within noise")


def test_a_sure_but_tiny_difference_is_called_too_small() -> None:
    rng = np.random.default_rng(0)
    y, off = rng.normal(size=(2, 200))
    predicted = {"CASTLE": y + off, "plain network": y + 1.001 * off, "guess": np.zeros(200)}
    scores = _score_target(NumericTarget.fit(y, "y"), y, predicted, seed=0)
    assert scores.differences[0].high < 0
    assert scores.verdict[1].endswith("practically equal to the plain network.")


def test_the_verdict_names_the_scores_it_rests_on() -> None:
    y = np.arange(100.0)
    predicted = {"this model": y + 9.0, "guess": np.full(100, y.mean())}
    scores = _score_target(NumericTarget.fit(y, "y"), y, predicted, seed=0)
    error = scores.measures[0]
    share = 81 / y.var()
    assert scores.verdict[0].startswith(f"This model's error is {number(share, error.decimals)} of the variance [")
    assert scores.verdict[1] == "On the same rows it is better than predicting the mean."
    assert scores.best_rival is None


def test_a_handful_of_rows_with_equal_values_has_intervals() -> None:
    y = np.array([0.0, 0.0, 0.0, 1.0])
    scores = _score_target(NumericTarget.fit(y, "y"), y, {"CASTLE": y + 0.1, "guess": y * 0}, seed=0)
    assert np.isfinite([scores.measures[0].scores[0].low, scores.measures[0].scores[0].high]).all()


def test_a_class_that_a_fold_never_saw_has_a_finite_loss() -> None:
    classes = np.array(["a", "b", "c"])
    predicted = np.tile([0.5, 0.5, 0.0], (30, 1))
    truth = classes[np.tile([0, 1, 2], 10)]
    scores = _score_target(ClassTarget("y", classes), truth, {"CASTLE": predicted, "guess": predicted}, seed=0)
    assert np.isfinite(scores.measures[0].scores[0].value)


def test_many_rows_and_many_classes_are_shown_in_part() -> None:
    y = np.arange(3000.0)
    scores = _score_target(NumericTarget.fit(y, "y"), y, {"CASTLE": y + 1, "guess": 0 * y + 7}, seed=0)
    assert len(scores.points) == 1000
    assert all(predicted == true + 1 for true, predicted in scores.points)
    labels = np.arange(21)
    same = np.full((42, 21), 1 / 21)
    many = _score_target(ClassTarget("y", labels), np.tile(labels, 2), {"CASTLE": same, "guess": same}, seed=0)
    assert many.confusion == ()
    assert many.reliability == _reliability(np.tile(labels, 2), same)


def test_numbers_have_a_real_minus_sign_and_no_minus_before_zero() -> None:
    assert shown(Interval(-0.034, -0.1, -0.001), 2) == "\N{MINUS SIGN}0.03 [\N{MINUS SIGN}0.10, 0.00]"
    assert number(12345.6, 0) == "12,346"


def test_errors_in_very_large_and_very_small_units_have_digits() -> None:
    rng = np.random.default_rng(0)
    y, off = rng.normal(size=(2, 100))
    for unit, power in ((1e-12, "e-1"), (1e12, "e1")):
        target = NumericTarget.fit(unit * y, "y")
        rmse = _score_target(target, unit * y, {"CASTLE": unit * (y + off), "guess": 0 * y}, seed=0).measures[2]
        text = number(rmse.scores[0].value, rmse.decimals).replace("\N{MINUS SIGN}", "-")
        assert power in text and len(text) <= 8


def awkward_cells(n: int) -> np.ndarray:
    """A number with missing values, a level that training may not know, a constant and a column without any value."""
    rng = np.random.default_rng(0)
    cells = np.column_stack([rng.normal(size=n), rng.integers(-1, 4, size=n), np.ones(n), np.full(n, np.nan)])
    cells[::7, 0] = np.nan
    return cells


HELD_OUT = list(KFold(4).split(range(400)))


@pytest.mark.parametrize("rival", [_FOREST, _BOOSTING])
def test_rivals_learn_from_missing_values_and_levels(rival: str) -> None:
    cells, categorical = awkward_cells(400), np.array([False, True, False, False])
    y = np.where(np.isnan(cells[:, 0]), 3.0, 0.0) + (cells[:, 1] == 2)
    predicted = _rival_predictions(NumericTarget.fit(y, "y"), cells, y, HELD_OUT, categorical, seed=0)
    assert np.mean((predicted[rival] - y) ** 2) < 0.15 * y.var()
    assert predicted["guess"][:100] == pytest.approx(y[100:].mean())


@pytest.mark.parametrize("rival", [_FOREST, _BOOSTING])
def test_probabilities_have_a_column_for_a_class_that_training_lacks(rival: str) -> None:
    labels = np.repeat(["a", "b", "c"], [30, 1, 29])  # one row of "b" is too few for rows that decide when to stop
    folds = list(KFold(4, shuffle=True, random_state=0).split(labels))
    target, no_levels = ClassTarget("y", np.array(["a", "b", "c"])), np.zeros(4, bool)
    predicted = _rival_predictions(target, awkward_cells(60), labels, folds, no_levels, seed=0)[rival]
    assert predicted.shape == (60, 3)
    assert predicted.sum(axis=1) == pytest.approx(1)
    assert predicted[30, 1] == 0  # the only row of "b" was left out
    assert (predicted[:, [0, 2]] > 0).all()  # a forest sure of a class and wrong would have an infinite log loss


def test_rivals_predict_the_rows_that_their_fold_left_out() -> None:
    rng = np.random.default_rng(0)
    cells, y = rng.normal(size=(80, 2)), rng.normal(size=80)
    folds = list(KFold(2).split(cells))
    target, no_levels = NumericTarget.fit(y, "y"), np.zeros(2, bool)
    predicted = _rival_predictions(target, cells, y, folds, no_levels, seed=3)
    for train, held_out in folds:
        boosting = HistGradientBoostingRegressor(early_stopping=True, random_state=3)
        with threadpool_limits(1, "openmp"):
            expected = boosting.fit(cells[train], y[train]).predict(cells[held_out])
        assert predicted[_BOOSTING][held_out] == pytest.approx(expected)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("castlereg.report.scores._MOST_TRAINING_ROWS", 30)
        fewer = _rival_predictions(target, cells, y, folds, no_levels, seed=3)
    assert not np.array_equal(fewer[_BOOSTING], predicted[_BOOSTING])


def test_refits_do_not_repeat_the_notes_of_the_fit() -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=60), "note": [f"this is comment {i} of many" for i in range(60)]})
    model = CastleRegressor(max_epochs=2, random_state=0)
    with pytest.warns(UserWarning, match="'note'"):
        model.fit(X, X["a"].rename("y"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = comparison(model, X, X["a"], [X["a"].to_numpy()], rivals=False, cv=2, seed=0, verbose=False)
    assert len(found.targets) == 1
