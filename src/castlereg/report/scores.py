"""Scores of predictions with bootstrap intervals, and a verdict as a sentence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import confusion_matrix

from castlereg.digits import Interval, decimals_of, number
from castlereg.report.cross_fitting import GUESS, PLAIN
from castlereg.table.targets import NumericTarget, Target

COVERAGE = 0.95
DRAWS = 1000
_MOST_POINTS = 1000  # more points overlap too much
_MOST_CLASSES = 20  # a larger confusion matrix is hard to read
# Another seed changes the error of ten networks by about this share, and that of one by five times as much (measured on
# the diabetes table); intervals over rows do not include this.
_MATTERS = 0.01
# For a class that is missing from the training rows of a fold; scikit-learn's log loss has the same limit.
_LEAST_PROBABILITY = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class Difference(Interval):
    """A score of the model minus that of another method, on the same rows."""

    method: str  # the other method
    decimals: int  # enough to distinguish the interval from zero
    verdict: str  # "better", "worse", "within noise" or "too small to matter"


@dataclass(frozen=True)
class Measure:
    """One measure of all methods."""

    name: str
    unit: str
    lower_is_better: bool
    decimals: int  # justified by the intervals
    scores: tuple[Interval, ...]  # one per method


@dataclass(frozen=True)
class Reliability:
    """Rows whose predicted class had a probability between two bounds."""

    low: float
    high: float
    rows: int
    probability: float  # mean, of the predicted class
    accuracy: float  # share of rows whose class is predicted correctly


@dataclass(frozen=True)
class TargetScores:
    """Scores of all methods on one target."""

    target: str
    is_numeric: bool
    methods: tuple[str, ...]  # the model first, the guess last
    measures: tuple[Measure, ...]  # the verdict is about the first
    differences: tuple[Difference, ...]  # from each other method, in the first measure
    verdict: tuple[str, str]  # the score of the model; its comparison with the other methods
    points: tuple[tuple[float, float], ...] = ()  # numeric targets: true and predicted values of some rows
    classes: tuple[str, ...] = ()
    confusion: tuple[tuple[int, ...], ...] = ()  # rows by true and predicted class; empty for more than 20 classes
    reliability: tuple[Reliability, ...] = ()

    @property
    def best_rival(self) -> Difference | None:
        """The difference from the best of the other trained methods; None if there is only the guess."""
        rivals = zip(self.measures[0].scores[1:-1], self.differences, strict=False)
        return min(rivals, key=lambda pair: pair[0].value, default=(None, None))[1]


def score_target(
    target: Target, truth: NDArray[Any], predictions: dict[str, NDArray[np.float64]], seed: int
) -> TargetScores:
    """Score all methods on one target; predictions are by method, the model first; the seed is for the bootstrap.

    >>> y = np.array([1.0, 2.0, 3.0, 4.0])
    >>> target = NumericTarget.fit(y, "y")
    >>> scores = score_target(target, y, {"CASTLE": y + 0.5, "guess": np.full(4, 2.5)}, seed=0)
    >>> [round(score.value, 3) for score in scores.measures[0].scores]
    [0.2, 1.0]
    """
    methods, by_method = tuple(predictions), list(predictions.values())
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(2,)))
    if isinstance(target, NumericTarget):
        measures, draws = _of_numbers(target, truth.astype(np.float64), by_method, rng)
        differences = _differences(methods, draws)
        unit = " of the variance" if target.loss is None else " of a constant's loss"
        verdict = _verdict(methods[0], measures[0], differences, unit)
        shown = np.sort(rng.choice(len(truth), min(len(truth), _MOST_POINTS), replace=False))
        points = tuple(zip(truth[shown].tolist(), by_method[0][shown].tolist(), strict=True))
        return TargetScores(target.name, True, methods, measures, differences, verdict, points)
    codes, probabilities = target.codes(truth), by_method[0]
    measures, draws = _of_classes(codes, by_method, rng)
    differences = _differences(methods, draws)
    counts = confusion_matrix(codes, probabilities.argmax(axis=1), labels=np.arange(len(target.classes)))
    return TargetScores(
        target.name,
        False,
        methods,
        measures,
        differences,
        _verdict(methods[0], measures[0], differences),
        classes=tuple(map(str, target.classes.tolist())),
        confusion=tuple(map(tuple, counts.tolist())) if len(counts) <= _MOST_CLASSES else (),
        reliability=reliability(codes, probabilities),
    )


def _of_numbers(
    target: NumericTarget,
    truth: NDArray[np.float64],
    predictions: list[NDArray[np.float64]],
    rng: np.random.Generator,
) -> tuple[tuple[Measure, ...], NDArray[np.float64]]:
    """Return the error as a share of the variance, R² and RMSE; and the error in all rows and in each draw.

    The error of a target with its own loss is that loss, divided by the loss of a constant prediction.
    """
    spread = truth.std()
    squares = [((truth - predicted) / spread) ** 2 for predicted in predictions]
    centred = (truth - truth.mean()) / spread
    n, constant = len(predictions), target.predicted(target.constant(truth))
    losses = [target.errors_of_predictions(predicted, truth) for predicted in (*predictions, constant)]
    sums = _resampled(np.column_stack([*squares, centred, centred**2, *losses]), rng)
    variance = sums[:, n + 1] - sums[:, n] ** 2
    # A draw from few rows may contain only one value: its variance is zero, and it is left out.
    variance = np.where(variance > 1e-9, variance, np.nan)
    shares, errors = sums[:, :n] / variance[:, None], np.sqrt(sums[:, :n]) * spread
    first, unit = shares, "share of the variance"
    if target.loss is not None:
        first = sums[:, n + 2 : -1] / np.where(sums[:, -1:] > 0, sums[:, -1:], np.nan)
        unit = "loss as a share of a constant's"
    return (
        _measure("Error", unit, True, first),
        _measure("R²", "", False, 1 - shares),
        _measure("RMSE", "in the target's unit", True, errors),
    ), first


def _of_classes(
    codes: NDArray[np.int64], predictions: list[NDArray[np.float64]], rng: np.random.Generator
) -> tuple[tuple[Measure, ...], NDArray[np.float64]]:
    """Return log loss and accuracy; and the log loss in all rows and in each draw."""
    rows = np.arange(len(codes))
    losses = [-np.log(np.maximum(predicted[rows, codes], _LEAST_PROBABILITY)) for predicted in predictions]
    right = [(predicted.argmax(axis=1) == codes).astype(np.float64) for predicted in predictions]
    sums = _resampled(np.column_stack([*losses, *right]), rng)
    n = len(predictions)
    return (
        _measure("Log loss", "nats", True, sums[:, :n]),
        _measure("Accuracy", "share of rows", False, sums[:, n:]),
    ), sums[:, :n]


def _resampled(values: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.float64]:
    """Average values, shape (rows, values), over all rows, then over each draw of rows: shape (1 + draws, values).

    A draw uses the same rows for all columns, so differences between columns are paired.
    """
    n = len(values)
    draws = [np.bincount(rng.integers(n, size=n), minlength=n) @ values / n for _ in range(DRAWS)]
    return np.array([values.mean(axis=0), *draws])


def _measure(name: str, unit: str, lower_is_better: bool, values: NDArray[np.float64]) -> Measure:
    scores = tuple(_interval(column) for column in values.T)
    return Measure(name, unit, lower_is_better, decimals_of(scores), scores)


def _interval(values: NDArray[np.float64]) -> Interval:
    low, high = np.nanquantile(values[1:], [(1 - COVERAGE) / 2, (1 + COVERAGE) / 2])
    return Interval(float(values[0]), float(low), float(high))


def _differences(methods: tuple[str, ...], values: NDArray[np.float64]) -> tuple[Difference, ...]:
    """Compare the first method with each other method; values have shape (1 + draws, n): all rows, then each draw."""
    return tuple(
        judged(method, _interval(values[:, 0] - values[:, k]), float(values[0, k]))
        for k, method in enumerate(methods[1:], 1)
    )


def judged(method: str, difference: Interval, score: float) -> Difference:
    """Judge the difference from the score of another method; low scores are better.

    The interval is judged as displayed: a bound shown as 0.000 counts as zero.

    >>> judged("plain network", Interval(-0.004, -0.0079, -0.0001), 0.5).verdict
    'too small to matter'
    >>> judged("plain network", Interval(0.012, 0.003, 0.021), 0.5).verdict
    'worse'
    """
    decimals = decimals_of([difference])
    if 0 in (round(difference.low, decimals), round(difference.high, decimals)):
        decimals += 1
    low, high = round(difference.low, decimals), round(difference.high, decimals)
    if low <= 0 <= high:
        verdict = "within noise"
    elif abs(difference.value) < _MATTERS * score:
        verdict = "too small to matter"
    else:
        verdict = "better" if high < 0 else "worse"
    return Difference(difference.value, difference.low, difference.high, method, decimals, verdict)


def with_interval(score: Interval, decimals: int, unit: str = "") -> str:
    """Format a score, its unit and its interval.

    >>> with_interval(Interval(0.47, 0.41, 0.55), 2)
    '0.47 [0.41, 0.55]'
    """
    return f"{number(score.value, decimals)}{unit} [{number(score.low, decimals)}, {number(score.high, decimals)}]"


_IN_WORDS = {PLAIN: "the plain network", "random forest": "the random forest", "gradient boosting": "gradient boosting"}
_COMPARED = {
    "worse": "worse than",
    "within noise": "not clearly different from",
    "too small to matter": "practically equal to",
    "better": "better than",
}


def _verdict(model: str, measure: Measure, differences: tuple[Difference, ...], unit: str = "") -> tuple[str, str]:
    """Return sentences on the score of the model and its comparison with the others, better ones first."""
    name = measure.name.lower()
    first = f"{model[0].upper()}{model[1:]}'s {name} is {with_interval(measure.scores[0], measure.decimals, unit)}."
    in_words = _IN_WORDS | {GUESS: "predicting the mean" if unit else "predicting the base rates"}
    parts = []
    for verdict, words in _COMPARED.items():
        others = [in_words[difference.method] for difference in differences if difference.verdict == verdict]
        if others:
            parts.append(f"{words} {_listed(others)}")
    return first, f"On the same rows it is {'; and '.join(['; '.join(parts[:-1]), parts[-1]][-len(parts) :])}."


def _listed(names: list[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def reliability(codes: NDArray[np.int64], probabilities: NDArray[np.float64]) -> tuple[Reliability, ...]:
    """Compare the probability of the predicted class with its accuracy, by tenths of the probability.

    Tenths without rows are left out.

    >>> probabilities = np.array([[0.95, 0.05], [0.91, 0.09], [0.4, 0.6]])
    >>> tenths = reliability(np.array([0, 1, 1]), probabilities)
    >>> [(tenth.rows, round(tenth.probability, 2), tenth.accuracy) for tenth in tenths]
    [(1, 0.6, 1.0), (2, 0.93, 0.5)]
    """
    highest, right = probabilities.max(axis=1), probabilities.argmax(axis=1) == codes
    tenth = np.minimum((highest * 10 + 1e-9).astype(np.int64), 9)
    return tuple(
        Reliability(t / 10, (t + 1) / 10, int(rows.sum()), float(highest[rows].mean()), float(right[rows].mean()))
        for t in range(10)
        if (rows := tenth == t).any()
    )
