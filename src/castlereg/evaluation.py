"""Scores of a fitted model on rows with known targets, with intervals, compared with a constant prediction."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy import stats
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_is_fitted
from tqdm.auto import tqdm

from castlereg.estimators.base import NetworkEstimator, Seed, read_known_rows, seed_sequence
from castlereg.notices import shows_progress
from castlereg.table.targets import NumericTarget, Target, has_targets

COVERAGE = 0.95  # of the bootstrap intervals
_DRAWS, _DRAWS_OF_MANY = 1000, 200
_MANY = 10_000  # rows
_PREDICTED_COVERAGE = 0.9  # of the model's own intervals and class sets
_MOST_INTERVALS = 2000  # rows; each is compared with all training rows
_CELLS_AT_ONCE = 1_000_000  # draws x rows
# Of a class without training rows; scikit-learn's log loss uses the same limit.
_LEAST_PROBABILITY = float(np.finfo(np.float64).eps)
_MOST_DECIMALS = 6
_LARGE, _SMALL = 1e7, 1e-3  # other numbers may be written with a power of ten

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Interval:
    """A score and its 95 % interval: how the score would vary with other rows of the same kind."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Score(Interval):
    """A score, its 95 % interval, and the score of a constant prediction."""

    measure: str
    constant: float  # NaN if a constant prediction has no such score


@dataclass(frozen=True)
class TargetScores:
    """Scores on one target."""

    target: str
    task: Literal["regression", "classification"]
    scores: tuple[Score, ...]

    @property
    def constant(self) -> str:
        """Name of the constant prediction."""
        return "the mean" if self.task == "regression" else "the base rates"

    @property
    def verdict(self) -> str:
        """Note that the model is no better than the constant prediction, by D2, R2 or log loss; empty if it is."""
        score = next(score for score in self.scores if score.measure in ("D2", "R2", "log loss"))
        sign = -1 if score.measure == "log loss" else 1
        worst = score.low if sign > 0 else score.high
        if sign * score.value <= sign * score.constant:
            return f"no better than predicting {self.constant}"
        return f"perhaps no better than predicting {self.constant}" if sign * worst <= sign * score.constant else ""


@dataclass(frozen=True)
class Evaluation:
    """Scores of a model on some rows.

    Attributes
    ----------
    n_rows, n_without_target : int
        Number of rows that were scored, and that were left out because a target is missing.
    targets : tuple of TargetScores
    """

    n_rows: int
    n_without_target: int
    targets: tuple[TargetScores, ...]

    def to_frame(self) -> pd.DataFrame:
        """Return one row per target and measure: ``target``, ``measure``, ``score``, ``low``, ``high``, ``constant``.

        ``low`` and ``high`` are the ends of the 95 % interval. ``constant`` is the score of predicting the mean, or the
        base rates and the most frequent class.
        """
        rows = [(of.target, s.measure, s.value, s.low, s.high, s.constant) for of in self.targets for s in of.scores]
        return pd.DataFrame(rows, columns=["target", "measure", "score", "low", "high", "constant"])

    def __str__(self) -> str:
        left_out = f", {self.n_without_target} without a target left out" if self.n_without_target else ""
        lines = [f"{self.n_rows} row{'s' if self.n_rows != 1 else ''}{left_out}"]
        for of in self.targets:
            cells = [("", "score", "95 % interval", f"predicting {of.constant}"), *map(_written, of.scores)]
            widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
            lines += ["", f"{of.target}, {of.task}" + (f": {of.verdict}" if of.verdict else "")]
            lines += ["  ".join(f"{c:<{w}}" for c, w in zip(row, widths, strict=True)).rstrip() for row in cells]
        return "\n".join(lines)


def evaluate(
    model: NetworkEstimator, X: ArrayLike, y: ArrayLike, *, random_state: Seed = 0, verbose: bool | None = None
) -> Evaluation:
    """Score a fitted model on rows with known targets.

    Numbers are scored by R2, RMSE and MAE, and those with their own loss also by D2, the explained share of this loss.
    Classes are scored by accuracy, balanced accuracy, AUROC (the mean over classes, one versus rest), log loss and
    Brier score. Cross-validated models also report the share of rows inside their 90 % intervals or class sets,
    measured on at most 2,000 random rows.

    Parameters
    ----------
    model : fitted estimator of castlereg
    X : DataFrame of pandas or polars, or array-like of shape (rows, features)
        Rows that the model was not trained on: scores of training rows are too optimistic.
    y : array-like of shape (rows,) or (rows, targets)
        Targets. Rows with a missing value are left out and counted.
    random_state : int, RandomState, Generator or None
        Seed of the bootstrap, which draws rows with replacement, 1,000 times; 200 times for more than 10,000 rows.
    verbose : bool, optional
        Whether to show a progress bar; by default only in a terminal or notebook.

    Returns
    -------
    Evaluation
        Prints as a table; ``to_frame()`` has one row per target and measure. The constant prediction is the best
        possible one: the mean of the scored rows, or their most frequent class and base rates.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from castlereg import CastleRegressor, evaluate
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> model = CastleRegressor(max_epochs=5, random_state=0).fit(X[:300], y[:300])
    >>> evaluation = evaluate(model, X[300:], y[300:])
    >>> evaluation.n_rows
    142
    >>> evaluation.to_frame()["measure"].tolist()
    ['R2', 'RMSE', 'MAE']
    """
    if not isinstance(model, NetworkEstimator):
        raise TypeError(f"{type(model).__name__} is not an estimator of castlereg: use scikit-learn's metrics")
    check_is_fitted(model)
    has_target = has_targets(y)
    known_rows = np.flatnonzero(has_target)
    if not len(known_rows):
        raise ValueError("every row of y has a missing value: there is nothing to score")
    X, y = (data if has_target.all() else _safe_indexing(data, known_rows) for data in (X, y))
    rows = read_known_rows(model, X, y, model.model_.target_kinds)
    truth, predictions = _coded(model, rows.targets), model.model_.predict(rows.columns)
    seed, shown = seed_sequence(random_state), shows_progress(verbose)
    known = zip(model.model_.targets, truth, predictions, strict=True)
    scores = [_target_scores(*described, seed, shown) for described in known]
    some = np.random.default_rng(seed.spawn(1)[0]).permutation(len(rows))[:_MOST_INTERVALS]
    coverage = _coverage(model, _safe_indexing(X, some), [values[some] for values in truth], seed)
    for k, score in enumerate(coverage):
        scores[k] = replace(scores[k], scores=(*scores[k].scores, score))
    return Evaluation(len(rows), int((~has_target).sum()), tuple(scores))


def held_out_evaluation(model: NetworkEstimator, *, random_state: Seed = 0) -> Evaluation | None:
    """Score a model on its own held-out rows, each predicted by the networks that were not trained on it.

    These are the rows that folds left out, or the validation rows, at most 20,000. They were used for early stopping,
    and with folds also for choosing the strengths, so the scores are slightly optimistic. Loaded models do not have
    these rows; the result is then None.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from castlereg import CastleRegressorCV
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> model = CastleRegressorCV((0.01,), cv=2, max_epochs=5, random_state=0).fit(X, y)
    >>> held_out_evaluation(model).n_rows
    442
    """
    held_out = model.model_.held_out
    if held_out is None:
        return None
    seed, truth = seed_sequence(random_state), _coded(model, held_out.truth)
    known = zip(model.model_.targets, truth, held_out.predicted, strict=True)
    return Evaluation(len(truth[0]), 0, tuple(_target_scores(*described, seed) for described in known))


def _coded(model: NetworkEstimator, truth: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
    """Return values of targets, with classes as their codes."""
    return [
        values if isinstance(target, NumericTarget) else target.codes(values, f"target {target.name!r}")
        for target, values in zip(model.model_.targets, truth, strict=True)
    ]


def _target_scores(
    target: Target, truth: NDArray[Any], predicted: Array, seed: np.random.SeedSequence, verbose: bool = False
) -> TargetScores:
    """Score predictions of one target: values, shape (rows,), or probabilities, shape (rows, classes)."""
    if isinstance(target, NumericTarget):
        constant = target.predicted(target.constant(truth))
    else:
        constant = np.tile(np.bincount(truth, minlength=predicted.shape[1]) / len(truth), (len(truth), 1))
    constant_scores = measures_of(target, truth, constant, np.ones((1, len(truth))))
    intervals = bootstrap(
        lambda counts: np.stack([*measures_of(target, truth, predicted, counts).values()]), len(truth), seed, verbose
    )
    scores = tuple(
        Score(interval.value, interval.low, interval.high, name, float(values[0]))
        for (name, values), interval in zip(constant_scores.items(), intervals, strict=True)
    )
    return TargetScores(target.name, "regression" if target.is_numeric else "classification", scores)


def measures_of(
    target: Target, truth: NDArray[Any], predicted: Array, counts: Array, *, auroc: bool = True
) -> dict[str, Array]:
    """Return the measures of predictions, each of shape (draws,); ``counts``, (draws, rows), repeat the rows.

    ``truth`` has values, or the codes of classes. A target with its own loss also has D2, the explained share of this
    loss, as the first measure. AUROC takes the most time.
    """
    if not isinstance(target, NumericTarget):
        return _class_measures(truth, predicted, counts, auroc)
    spread = float(np.abs(truth - truth.mean()).max()) or 1.0
    off, centred = (predicted - truth) / spread, (truth - truth.mean()) / spread
    sums = counts @ np.column_stack([off**2, np.abs(off), centred, centred**2])
    square, absolute, mean, second = (sums / counts.sum(axis=1, keepdims=True)).T
    variance = second - mean**2
    with np.errstate(invalid="ignore", divide="ignore"):  # R2 is NaN if all values are the same
        r2 = np.where(variance > 1e-9, 1 - square / variance, np.nan)
    measures = {"R2": r2, "RMSE": np.sqrt(square) * spread, "MAE": absolute * spread}
    if target.loss is None:
        return measures
    constant = target.predicted(target.constant(truth))
    losses, null = (counts @ target.errors_of_predictions(values, truth) for values in (predicted, constant))
    return {"D2": 1 - _ratio(losses, null), **measures}


def _class_measures(codes: NDArray[np.int64], probabilities: Array, counts: Array, auroc: bool) -> dict[str, Array]:
    """Return five measures of shape (draws,); balanced accuracy and AUROC ignore classes without rows."""
    n_classes = probabilities.shape[1]
    is_class = np.eye(n_classes)[codes]
    right = (probabilities.argmax(axis=1) == codes).astype(np.float64)
    loss = -np.log(np.maximum(probabilities[np.arange(len(codes)), codes], _LEAST_PROBABILITY))
    square = ((probabilities - is_class) ** 2).sum(axis=1) / (2 if n_classes == 2 else 1)
    means = counts @ np.column_stack([right, loss, square]) / counts.sum(axis=1, keepdims=True)
    recalls = _ratio(counts @ (is_class * right[:, None]), counts @ is_class)
    measures = {"accuracy": means[:, 0], "balanced accuracy": _mean(recalls)}
    if auroc:
        ranked = range(1, 2) if n_classes == 2 else range(n_classes)
        aurocs = [_auroc(is_class[:, k], probabilities[:, k], counts) for k in ranked]
        measures["AUROC"] = _mean(np.column_stack(aurocs))
    return measures | {"log loss": means[:, 1], "Brier score": means[:, 2]}


def _auroc(is_positive: Array, score: Array, counts: Array) -> Array:
    """Return the share of pairs in which a positive row scores higher than a negative one; ties count half."""
    order = np.argsort(score)
    starts = np.flatnonzero(np.r_[True, np.diff(score[order]) > 0])
    both = counts[:, order]
    positive = both * is_positive[order]
    if len(starts) < len(order):
        both, positive = (np.add.reduceat(rows, starts, axis=1) for rows in (both, positive))
    other = both - positive
    below = np.cumsum(other, axis=1) - other / 2
    return _ratio((positive * below).sum(axis=1), positive.sum(axis=1) * other.sum(axis=1))


def bootstrap(
    measures: Callable[[Array], Array], n_rows: int, seed: np.random.SeedSequence, verbose: bool = False
) -> list[Interval]:
    """Return the measures of all rows with their intervals, the quantiles over draws of rows with replacement.

    ``measures`` takes how often each row counts, shape (draws, rows), and returns shape (measures, draws). The draws
    are the same for all measures, so a difference of two measures is paired. NaN in some draws is ignored.
    """
    n, at_once = n_draws(n_rows), max(1, _CELLS_AT_ONCE // n_rows)
    with tqdm(total=n, desc="bootstrap", unit="draw", disable=not verbose, delay=2) as bar:

        def statistic(rows: Any, axis: int = -1) -> Array:
            drawn = np.atleast_2d(rows)
            bar.update(len(drawn))
            return measures(np.stack([np.bincount(row, minlength=n_rows) for row in drawn]).astype(np.float64))

        how: dict[str, Any] = {"n_resamples": n, "batch": at_once, "vectorized": True, "method": "percentile"}
        if n_rows < 2:  # which can be drawn in one way only
            distribution = statistic(np.zeros(1, np.int64))
        else:
            rng = np.random.default_rng(seed)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", stats.DegenerateDataWarning)  # some draws have only equal values
                found = stats.bootstrap((np.arange(n_rows),), statistic, rng=rng, **how)
            distribution = found.bootstrap_distribution
    intervals = []
    for value, draws in zip(measures(np.ones((1, n_rows)))[:, 0].tolist(), distribution, strict=True):
        known = draws[np.isfinite(draws)]  # R2 of equal values is not
        ends = np.quantile(known, [(1 - COVERAGE) / 2, (1 + COVERAGE) / 2]) if len(known) else np.full(2, np.nan)
        intervals.append(Interval(value, *ends.tolist()))
    return intervals


def n_draws(n_rows: int) -> int:
    """Return the number of bootstrap draws: 1,000, or 200 for more than 10,000 rows."""
    return _DRAWS if n_rows <= _MANY else _DRAWS_OF_MANY


def _coverage(model: Any, X: Any, truth: list[NDArray[Any]], seed: np.random.SeedSequence) -> list[Score]:
    """Return how many rows are in their 90 % intervals or class sets, for each target; empty for a model without."""
    n_rows = len(truth[0])
    if hasattr(model, "predict_interval"):
        kind = "intervals"
        low, high = model.predict_interval(X, _PREDICTED_COVERAGE).reshape(n_rows, -1, 2).T
        inside = (low <= truth) & (truth <= high)
    elif hasattr(model, "predict_set"):
        kind = "class sets"
        sets = model.predict_set(X, _PREDICTED_COVERAGE)
        set_pairs = zip(sets if isinstance(sets, list) else [sets], truth, strict=True)
        inside = np.stack([classes[np.arange(n_rows), codes] for classes, codes in set_pairs])
    else:
        return []
    shares = bootstrap(lambda counts: inside @ counts.T / n_rows, n_rows, seed)
    return [Score(share.value, share.low, share.high, f"coverage of 90 % {kind}", np.nan) for share in shares]


def _ratio(part: Array, total: Array) -> Array:
    return np.divide(part, total, out=np.full(np.shape(part), np.nan), where=total > 0)


def _mean(values: Array) -> Array:
    """Return the mean over the finite values of each row."""
    known = np.isfinite(values)
    return _ratio(np.where(known, values, 0.0).sum(axis=1), known.sum(axis=1).astype(np.float64))


def _written(score: Score) -> tuple[str, str, str, str]:
    """Format a score with the digits that its interval justifies."""
    decimals = decimals_of([score])

    def text(value: float) -> str:
        return "" if np.isnan(value) else number(value, decimals).replace(",", "").replace("\N{MINUS SIGN}", "-")

    interval = "" if np.isnan(score.low) else f"[{text(score.low)}, {text(score.high)}]"
    return score.measure, text(score.value) or "unknown", interval, text(score.constant)


def decimals_of(scores: Sequence[Interval]) -> int:
    """Return the number of decimals to show: up to the first uncertain digit, and at least two for scores below 10.

    Negative for millions, which are shown with three digits.

    >>> [decimals_of([score]) for score in (Interval(0.4712, 0.4695, 0.4729), Interval(54.1, 50.2, 58.3))]
    [3, 1]
    """
    half_width = max((score.high - score.low) / 2 for score in scores)
    size = max(abs(score.value) for score in scores)
    if not math.isfinite(size + half_width):
        return 2
    least = 2 if size < 10 else 1 if size < 100 else 0 if size < _LARGE else 2 - math.floor(math.log10(size))
    # An interval of width zero, such as when all of a few rows are predicted correctly, does not determine decimals.
    return max(least, math.ceil(-math.log10(half_width))) if half_width > 0 else least


def number(value: float, decimals: int) -> str:
    """Format a number with this many decimals and a real minus sign, or with a power of ten if very large or small.

    >>> number(-0.034, 2), number(0.00000123, 8), number(1234567890, -7)
    ('\N{MINUS SIGN}0.03', '1.23e\N{MINUS SIGN}6', '1.23e9')
    """
    if not math.isfinite(value):
        return str(value)
    if decimals >= 0 and abs(value) < _LARGE and (decimals <= _MOST_DECIMALS or abs(value) >= _SMALL):
        text = f"{value:,.{min(decimals, _MOST_DECIMALS)}f}"
    elif not round(value, decimals):
        text = "0"
    else:
        digits = min(max(math.floor(math.log10(abs(value))) + decimals, 0), _MOST_DECIMALS)
        mantissa, power = f"{value:.{digits}e}".split("e")
        text = f"{mantissa}e{int(power)}"
    if text.strip("-0.") == "":
        text = text.lstrip("-")  # no minus before zero
    return text.replace("-", "\N{MINUS SIGN}")
