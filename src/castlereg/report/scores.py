"""Scores of predictions with bootstrap intervals, and a verdict in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from castlereg.data.targets import NumericTarget, Target
from castlereg.report.cross_fitting import GUESS, PLAIN

COVERAGE = 0.95
DRAWS = 1000
_MOST_POINTS = 1000  # more overlap
_MOST_CLASSES = 20  # a larger confusion matrix is hard to read
# Another seed changes the error of ten networks by about this share, and that of one by five times as much (measured on
# the diabetes table); intervals over rows do not include this.
_MATTERS = 0.01
# Of a class that was not in the training rows of a fold; scikit-learn's log loss has the same limit.
_LEAST_PROBABILITY = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class Interval:
    """A score and its 95 % interval: how it would vary with other rows like these."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Measure:
    """One measure of all methods."""

    name: str
    unit: str
    lower_is_better: bool
    decimals: int  # that the intervals justify
    scores: tuple[Interval, ...]  # one per method


@dataclass(frozen=True)
class Reliability:
    """Rows whose predicted class had a probability between two bounds."""

    low: float
    high: float
    rows: int
    probability: float  # mean, of the predicted class
    accuracy: float  # share of rows whose class was predicted right


@dataclass(frozen=True)
class TargetScores:
    """Scores of all methods on one target."""

    target: str
    is_numeric: bool
    methods: tuple[str, ...]  # the model first, the guess last
    measures: tuple[Measure, ...]  # the verdict is about the first
    differences: tuple[Interval, ...]  # the model's first measure minus that of each other method, on the same rows
    verdict: tuple[str, ...]  # sentences
    points: tuple[tuple[float, float], ...] = ()  # numeric targets: true and predicted values of some rows
    classes: tuple[str, ...] = ()
    confusion: tuple[tuple[int, ...], ...] = ()  # rows by true and predicted class; empty for very many classes
    reliability: tuple[Reliability, ...] = ()


def score_target(
    target: Target, truth: NDArray[Any], predictions: dict[str, NDArray[np.float64]], seed: int
) -> TargetScores:
    """Score all methods on one target.

    Parameters
    ----------
    target : NumericTarget or ClassTarget
    truth : array of shape (rows,)
    predictions : dict of str to array of shape (rows,) or (rows, classes)
        By method, the model first.
    seed : int
        Of the bootstrap.

    Returns
    -------
    TargetScores

    Examples
    --------
    >>> import numpy as np
    >>> from castlereg.data.targets import NumericTarget
    >>> y = np.array([1.0, 2.0, 3.0, 4.0])
    >>> target = NumericTarget.fit(y, "y")
    >>> scores = score_target(target, y, {"CASTLE": y + 0.5, "guess": np.full(4, 2.5)}, seed=0)
    >>> [round(score.value, 3) for score in scores.measures[0].scores]
    [0.2, 1.0]
    """
    methods, by_method = tuple(predictions), list(predictions.values())
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(2,)))
    if isinstance(target, NumericTarget):
        measures, differences = _of_numbers(truth.astype(np.float64), by_method, rng)
        verdict = _verdict(methods, measures[0], differences, "error", " of the variance")
        shown = np.sort(rng.choice(len(truth), min(len(truth), _MOST_POINTS), replace=False))
        points = tuple(zip(truth[shown].tolist(), by_method[0][shown].tolist(), strict=True))
        return TargetScores(target.name, True, methods, measures, differences, verdict, points)
    codes = target.codes(truth)
    measures, differences = _of_classes(codes, by_method, rng)
    verdict = _verdict(methods, measures[0], differences, "log loss", "")
    classes = tuple(str(label) for label in target.classes.tolist())
    confusion = _confusion(codes, by_method[0]) if len(classes) <= _MOST_CLASSES else ()
    by_probability = reliability(codes, by_method[0])
    return TargetScores(
        target.name, False, methods, measures, differences, verdict, (), classes, confusion, by_probability
    )


def _of_numbers(
    truth: NDArray[np.float64], predictions: list[NDArray[np.float64]], rng: np.random.Generator
) -> tuple[tuple[Measure, ...], tuple[Interval, ...]]:
    """Return the error as a share of the variance, R² and RMSE; and the differences of the first."""
    spread = truth.std()
    squares = [((truth - predicted) / spread) ** 2 for predicted in predictions]
    centred = (truth - truth.mean()) / spread
    sums = _resampled(np.column_stack([*squares, centred, centred**2]), rng)
    variance = sums[:, -1] - sums[:, -2] ** 2
    # A draw from few rows may hold one value only: it has no variance, and is left out.
    variance = np.where(variance > 1e-9, variance, np.nan)
    shares = sums[:, :-2] / variance[:, None]
    errors = np.sqrt(sums[:, :-2]) * spread
    return (
        _measure("Error", "share of the variance", True, shares),
        _measure("R²", "", False, 1 - shares),
        _measure("RMSE", "in the target's unit", True, errors),
    ), _differences(shares)


def _of_classes(
    codes: NDArray[np.int64], predictions: list[NDArray[np.float64]], rng: np.random.Generator
) -> tuple[tuple[Measure, ...], tuple[Interval, ...]]:
    """Return log loss and accuracy; and the differences of the first."""
    rows = np.arange(len(codes))
    losses = [-np.log(np.maximum(predicted[rows, codes], _LEAST_PROBABILITY)) for predicted in predictions]
    right = [(predicted.argmax(axis=1) == codes).astype(np.float64) for predicted in predictions]
    sums = _resampled(np.column_stack([*losses, *right]), rng)
    n = len(predictions)
    return (
        _measure("Log loss", "nats", True, sums[:, :n]),
        _measure("Accuracy", "share of rows", False, sums[:, n:]),
    ), _differences(sums[:, :n])


def _resampled(values: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.float64]:
    """Average values, shape (rows, values), over all rows, then over each draw of rows: shape (1 + draws, values).

    A draw takes the same rows of all columns, so that differences between columns are paired.
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


def _differences(values: NDArray[np.float64]) -> tuple[Interval, ...]:
    return tuple(_interval(values[:, 0] - values[:, k]) for k in range(1, values.shape[1]))


def decimals_of(scores: Sequence[Interval]) -> int:
    """Return how many decimals to show: up to the first uncertain digit, and at least two below 10.

    Examples
    --------
    >>> decimals_of([Interval(0.47, 0.41, 0.55)]), decimals_of([Interval(0.4712, 0.4695, 0.4729)])
    (2, 3)
    >>> decimals_of([Interval(54.1, 50.2, 58.3)])
    1
    """
    half_width = max((score.high - score.low) / 2 for score in scores)
    size = max(abs(score.value) for score in scores)
    least = 2 if size < 10 else 1 if size < 100 else 0
    # An interval without width, as when all of a few rows are predicted right, says nothing about decimals.
    return int(np.clip(np.ceil(-np.log10(half_width)) if half_width > 0 else least, least, 6))


def number(value: float, decimals: int) -> str:
    """Write a number with this many decimals and a real minus sign.

    Examples
    --------
    >>> number(-0.034, 2)
    '\N{MINUS SIGN}0.03'
    """
    text = f"{value:,.{decimals}f}"
    if not float(text.replace(",", "")):
        text = text.lstrip("-")  # no minus before zero
    return text.replace("-", "\N{MINUS SIGN}")


def with_interval(score: Interval, decimals: int, unit: str = "") -> str:
    """Write a score, its unit and its interval.

    Examples
    --------
    >>> with_interval(Interval(0.47, 0.41, 0.55), 2)
    '0.47 [0.41, 0.55]'
    """
    return f"{number(score.value, decimals)}{unit} [{number(score.low, decimals)}, {number(score.high, decimals)}]"


def _verdict(
    methods: tuple[str, ...], measure: Measure, differences: tuple[Interval, ...], name: str, unit: str
) -> tuple[str, ...]:
    """Say how good the model is, and whether it differs from the plain network and from the guess."""
    scores = dict(zip(methods, measure.scores, strict=True))
    difference_to = dict(zip(methods[1:], differences, strict=True))
    model, decimals = methods[0], measure.decimals
    first = f"{model[0].upper()}{model[1:]}'s {name} is {with_interval(scores[model], decimals, unit)}"
    if PLAIN in scores:
        plain, difference = scores[PLAIN], difference_to[PLAIN]
        size = with_interval(difference, max(decimals, decimals_of([difference])))
        if difference.low <= 0 <= difference.high:
            second = f"The difference, {size}, is within noise."
        elif abs(difference.value) < _MATTERS * plain.value:
            second = f"The difference, {size}, is too small to matter."
        else:
            better = model if difference.value < 0 else "the plain network"
            second = f"The difference is {size}: {better} is better, in this run."
        sentences = [f"{first}; the plain network's is {with_interval(plain, decimals)}.", second]
    else:
        sentences = [f"{first}."]
    difference = difference_to[GUESS]
    guess = "Predicting the mean" if unit else "Predicting the base rates"
    how = "worse" if difference.high < 0 else "better" if difference.low > 0 else "as good, within noise"
    return (*sentences, f"{guess} would be {how}, at {number(scores[GUESS].value, decimals)}.")


def _confusion(codes: NDArray[np.int64], probabilities: NDArray[np.float64]) -> tuple[tuple[int, ...], ...]:
    n = probabilities.shape[1]
    counts = np.zeros((n, n), np.int64)
    np.add.at(counts, (codes, probabilities.argmax(axis=1)), 1)
    return tuple(tuple(row) for row in counts.tolist())


def reliability(codes: NDArray[np.int64], probabilities: NDArray[np.float64]) -> tuple[Reliability, ...]:
    """Compare the probability of the predicted class with how often it was right, by tenths of the probability.

    Parameters
    ----------
    codes : array of int, shape (rows,)
        True classes.
    probabilities : array of shape (rows, classes)

    Returns
    -------
    tuple of Reliability
        Tenths without rows are left out.

    Examples
    --------
    >>> import numpy as np
    >>> probabilities = np.array([[0.95, 0.05], [0.91, 0.09], [0.4, 0.6]])
    >>> tenths = reliability(np.array([0, 1, 1]), probabilities)
    >>> [(tenth.rows, round(tenth.probability, 2), tenth.accuracy) for tenth in tenths]
    [(1, 0.6, 1.0), (2, 0.93, 0.5)]
    """
    highest = probabilities.max(axis=1)
    right = probabilities.argmax(axis=1) == codes
    tenth = np.minimum((highest * 10 + 1e-9).astype(np.int64), 9)
    return tuple(
        Reliability(t / 10, (t + 1) / 10, int(rows.sum()), float(highest[rows].mean()), float(right[rows].mean()))
        for t in range(10)
        if (rows := tenth == t).any()
    )
