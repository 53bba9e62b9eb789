"""How far predictions are off, with intervals over rows, and what that means in a sentence."""

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
_MOST_POINTS = 1000  # more hide one another
_MOST_CLASSES = 20  # a wider table of confusions nobody reads
# Another seed moves the error of ten networks by about this share, and that of one by five times as much (measured on
# the diabetes table); intervals over rows know nothing of it.
_MATTERS = 0.01
# Of a class that a fold never saw; scikit-learn's log loss has the same limit.
_LEAST_PROBABILITY = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class Interval:
    """A number and where it would lie with other rows like these, in 95 of 100 cases."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Measure:
    """One measure of all methods.

    Attributes
    ----------
    name, unit : str
    lower_is_better : bool
    decimals : int
        As many as the intervals are worth.
    scores : tuple of Interval
        One for each method.
    """

    name: str
    unit: str
    lower_is_better: bool
    decimals: int
    scores: tuple[Interval, ...]


@dataclass(frozen=True)
class Reliability:
    """Rows whose predicted class had about the same probability.

    Attributes
    ----------
    low, high : float
        Bounds of the probability.
    rows : int
    said : float
        Mean probability of the predicted class.
    right : float
        Share of rows of which it was the class.
    """

    low: float
    high: float
    rows: int
    said: float
    right: float


@dataclass(frozen=True)
class TargetScores:
    """All that is said of the prediction of one target.

    Attributes
    ----------
    target : str
    is_numeric : bool
    methods : tuple of str
        The model first, the guess last.
    measures : tuple of Measure
        The first one decides.
    differences : tuple of Interval
        The model's first measure minus that of every other method, from the same rows.
    verdict : tuple of str
        Sentences.
    points : tuple of (true, predicted)
        Of the model, for targets of numbers; a random part of many rows.
    classes : tuple of str
    confusion : tuple of tuple of int
        Rows of each true class by predicted class; empty for numbers and for very many classes.
    reliability : tuple of Reliability
    """

    target: str
    is_numeric: bool
    methods: tuple[str, ...]
    measures: tuple[Measure, ...]
    differences: tuple[Interval, ...]
    verdict: tuple[str, ...]
    points: tuple[tuple[float, float], ...] = ()
    classes: tuple[str, ...] = ()
    confusion: tuple[tuple[int, ...], ...] = ()
    reliability: tuple[Reliability, ...] = ()


def score_target(
    target: Target, name: str, truth: NDArray[Any], predictions: dict[str, NDArray[np.float64]], seed: int
) -> TargetScores:
    """Score all methods on one target.

    Parameters
    ----------
    target : NumericTarget or ClassTarget
    name : str
        What the page calls it.
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
    >>> scores = score_target(target, "y", y, {"CASTLE": y + 0.5, "guess": np.full(4, 2.5)}, seed=0)
    >>> [round(score.value, 3) for score in scores.measures[0].scores]
    [0.2, 1.0]
    """
    methods = tuple(predictions)
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(2,)))
    if isinstance(target, NumericTarget):
        measures, differences = _of_numbers(truth.astype(np.float64), list(predictions.values()), rng)
        shown = np.sort(rng.choice(len(truth), min(len(truth), _MOST_POINTS), replace=False))
        points = zip(truth[shown].tolist(), predictions[methods[0]][shown].tolist(), strict=True)
        verdict = _verdict(methods, measures[0], differences, "error", " of the variance")
        return TargetScores(name, True, methods, measures, differences, verdict, points=tuple(points))
    codes = target.codes(truth)
    measures, differences = _of_classes(codes, list(predictions.values()), rng)
    verdict = _verdict(methods, measures[0], differences, "log loss", "")
    mine = predictions[methods[0]]
    classes = tuple(str(one) for one in target.classes.tolist())
    confusion = _confusion(codes, mine) if len(classes) <= _MOST_CLASSES else ()
    return TargetScores(
        name,
        False,
        methods,
        measures,
        differences,
        verdict,
        classes=classes,
        confusion=confusion,
        reliability=reliability(codes, mine),
    )


def _of_numbers(
    truth: NDArray[np.float64], predictions: list[NDArray[np.float64]], rng: np.random.Generator
) -> tuple[tuple[Measure, ...], tuple[Interval, ...]]:
    """Return error as a share of the variance, R² and root mean squared error; and differences of the first."""
    spread = truth.std()
    squares = [((truth - said) / spread) ** 2 for said in predictions]
    centred = (truth - truth.mean()) / spread
    sums = _resampled(np.column_stack([*squares, centred, centred**2]), rng)
    variance = sums[:, -1] - sums[:, -2] ** 2
    # A draw of a few rows may hold one value alone: then nothing is a share of the variance, and the draw is left out.
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
    """Return log loss and accuracy; and differences of the first."""
    rows = np.arange(len(codes))
    losses = [-np.log(np.maximum(said[rows, codes], _LEAST_PROBABILITY)) for said in predictions]
    right = [(said.argmax(axis=1) == codes).astype(np.float64) for said in predictions]
    sums = _resampled(np.column_stack([*losses, *right]), rng)
    n = len(predictions)
    return (
        _measure("Log loss", "nats", True, sums[:, :n]),
        _measure("Accuracy", "share of rows", False, sums[:, n:]),
    ), _differences(sums[:, :n])


def _resampled(values: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.float64]:
    """Average values, shape (rows, values), over all rows and over rows drawn with replacement.

    All columns have the same rows in each draw, so differences between them are paired.

    Returns
    -------
    array of shape (1 + draws, values)
        The first row is that of all rows.
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
    """Say how many decimals intervals are worth: up to the first digit that is in doubt, two at least below 10.

    Examples
    --------
    >>> decimals_of([Interval(0.47, 0.41, 0.55)]), decimals_of([Interval(0.4712, 0.4695, 0.4729)])
    (2, 3)
    >>> decimals_of([Interval(54.1, 50.2, 58.3)])
    1
    """
    doubt = max((score.high - score.low) / 2 for score in scores)
    size = max(abs(score.value) for score in scores)
    least = 2 if size < 10 else 1 if size < 100 else 0
    # A doubt of nothing, as with a handful of rows that are all predicted right, would ask for endless digits.
    return int(np.clip(np.ceil(-np.log10(doubt)) if doubt > 0 else least, least, 6))


def number(value: float, decimals: int) -> str:
    """Write a number with so many decimals, with a real minus sign.

    Examples
    --------
    >>> number(-0.034, 2)
    '\N{MINUS SIGN}0.03'
    """
    text = f"{value:,.{decimals}f}"
    if not float(text.replace(",", "")):
        text = text.lstrip("-")  # no minus before zero
    return text.replace("-", "\N{MINUS SIGN}")


def told(score: Interval, decimals: int) -> str:
    """Write an interval: value, then bounds.

    Examples
    --------
    >>> told(Interval(0.47, 0.41, 0.55), 2)
    '0.47 [0.41, 0.55]'
    """
    return f"{number(score.value, decimals)} [{number(score.low, decimals)}, {number(score.high, decimals)}]"


def _verdict(
    methods: tuple[str, ...], measure: Measure, differences: tuple[Interval, ...], what: str, unit: str
) -> tuple[str, ...]:
    """Say how good the model is, and whether it differs from the plain network and from the guess."""
    scores = dict(zip(methods, measure.scores, strict=True))
    gaps = dict(zip(methods[1:], differences, strict=True))
    model = methods[0]
    subject = f"{model[0].upper()}{model[1:]}"
    first = f"{number(scores[model].value, measure.decimals)}{unit} {_bounds(scores[model], measure.decimals)}"
    sentences = []
    if PLAIN in scores:
        plain, gap = scores[PLAIN], gaps[PLAIN]
        sentences.append(f"{subject}'s {what} is {first}; the plain network's is {told(plain, measure.decimals)}.")
        size = told(gap, max(measure.decimals, decimals_of([gap])))
        if gap.low <= 0 <= gap.high:
            sentences.append(f"The difference, {size}, is within noise.")
        elif abs(gap.value) < _MATTERS * plain.value:
            sentences.append(f"The difference, {size}, is too small to matter.")
        else:
            better = model if gap.value < 0 else "the plain network"
            sentences.append(f"The difference is {size}: {better} is better, in this run.")
    else:
        sentences.append(f"{subject}'s {what} is {first}.")
    guess, gap = scores[GUESS], gaps[GUESS]
    naive = "Guessing the mean" if unit else "Guessing by base rates"
    how = "worse" if gap.high < 0 else "better" if gap.low > 0 else "as good, within noise"
    sentences.append(f"{naive} would be {how}, at {number(guess.value, measure.decimals)}.")
    return tuple(sentences)


def _bounds(score: Interval, decimals: int) -> str:
    return f"[{number(score.low, decimals)}, {number(score.high, decimals)}]"


def _confusion(codes: NDArray[np.int64], probabilities: NDArray[np.float64]) -> tuple[tuple[int, ...], ...]:
    n = probabilities.shape[1]
    counts = np.zeros((n, n), np.int64)
    np.add.at(counts, (codes, probabilities.argmax(axis=1)), 1)
    return tuple(tuple(row) for row in counts.tolist())


def reliability(codes: NDArray[np.int64], probabilities: NDArray[np.float64]) -> tuple[Reliability, ...]:
    """Compare the probability of the predicted class with how often it was right, in tenths of the probability.

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
    >>> said = np.array([[0.95, 0.05], [0.91, 0.09], [0.4, 0.6]])
    >>> [(one.rows, round(one.said, 2), one.right) for one in reliability(np.array([0, 1, 1]), said)]
    [(1, 0.6, 1.0), (2, 0.93, 0.5)]
    """
    said = probabilities.max(axis=1)
    right = probabilities.argmax(axis=1) == codes
    tenth = np.minimum((said * 10 + 1e-9).astype(np.int64), 9)
    return tuple(
        Reliability(t / 10, (t + 1) / 10, int(own.sum()), float(said[own].mean()), float(right[own].mean()))
        for t in range(10)
        if (own := tenth == t).any()
    )
