"""Scores of a fitted model on rows with known targets, with intervals, compared with a constant prediction."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_is_fitted
from tqdm.auto import tqdm

from castlereg.digits import Interval, decimals_of, number
from castlereg.estimators.base import NetworkEstimator, Seed, read_known_rows, seed_sequence
from castlereg.fitted.model import FoldBook, class_sets, cv_plus
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

Measures = dict[str, NDArray[np.float64]]


@dataclass(frozen=True)
class Score:
    """A score, its 95 % interval, and the score of a constant prediction.

    The interval shows how the score would vary with other rows of the same kind.
    """

    measure: str
    value: float
    low: float
    high: float
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
    n_rows : int
        Rows that were scored.
    n_without_target : int
        Rows that were left out because a target is missing.
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
        Prints as a table; ``to_frame()`` has one row per target and measure.

    Notes
    -----
    The constant prediction is the mean of the scored rows, or their most frequent class and base rates: the best
    possible constant.

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
    by_network = model.model_.predict_by_fold(rows.columns)
    seed = seed_sequence(random_state)
    some = _some_rows(len(rows), np.random.default_rng(seed.spawn(1)[0]))
    targets = []
    for k, (target, truth) in enumerate(zip(model.model_.targets, rows.targets, strict=True)):
        truth = truth if isinstance(target, NumericTarget) else target.codes(truth, f"target {target.name!r}")
        scores = target_scores(target, truth, by_network[k].mean(axis=0), seed, shows_progress(verbose))
        if model.model_.folds is not None:
            inside = _inside(target, truth[some], by_network[k][:, some], model.model_.folds, k)
            scores = TargetScores(scores.target, scores.task, (*scores.scores, _coverage(target, inside, seed)))
        targets.append(scores)
    return Evaluation(len(rows), int((~has_target).sum()), tuple(targets))


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
    seed = seed_sequence(random_state)
    scores = []
    for target, truth, predicted in zip(model.model_.targets, held_out.truth, held_out.predicted, strict=True):
        truth = truth if isinstance(target, NumericTarget) else target.codes(truth)
        scores.append(target_scores(target, truth, predicted, seed))
    return Evaluation(len(held_out.truth[0]), 0, tuple(scores))


def target_scores(
    target: Target,
    truth: NDArray[Any],
    predicted: NDArray[np.float64],
    seed: np.random.SeedSequence,
    verbose: bool = False,
) -> TargetScores:
    """Score predictions of one target: values, shape (rows,), or probabilities, shape (rows, classes).

    ``truth`` contains values, or the codes of classes.
    """
    is_numeric = isinstance(target, NumericTarget)
    everything = np.ones((1, len(truth)))
    if isinstance(target, NumericTarget):
        measured: Callable[..., Measures] = partial(_own_measures, target)
        constant = target.predicted(target.constant(truth))
    else:
        measured = class_measures
        constant = np.tile(np.bincount(truth, minlength=predicted.shape[1]) / len(truth), (len(truth), 1))
    value, of_constant = (measured(truth, values, everything) for values in (predicted, constant))
    draws = _bootstrap(lambda counts: measured(truth, predicted, counts), len(truth), seed, verbose)
    scores = (Score(name, float(value[name][0]), *_ends(draws[name]), float(of_constant[name][0])) for name in value)
    return TargetScores(target.name, "regression" if is_numeric else "classification", tuple(scores))


def _own_measures(
    target: NumericTarget, truth: NDArray[np.float64], predicted: NDArray[np.float64], counts: NDArray[np.float64]
) -> Measures:
    """Return D2, the explained share of the target's own loss, if it has one, and :func:`numeric_measures`."""
    measures = numeric_measures(truth, predicted, counts)
    if target.loss is None:
        return measures
    constant = target.predicted(target.constant(truth))
    losses, null = (counts @ target.errors_of_predictions(values, truth) for values in (predicted, constant))
    return {"D2": 1 - _ratio(losses, null), **measures}


def numeric_measures(
    truth: NDArray[np.float64], predicted: NDArray[np.float64], counts: NDArray[np.float64]
) -> Measures:
    """Return R2, RMSE and MAE of shape (draws,); counts of shape (draws, rows) are the multiplicities of rows.

    R2 is NaN if all values are the same.

    >>> truth = np.array([1.0, 2.0, 3.0])
    >>> measures = numeric_measures(truth, truth + [0.5, 0.5, -0.5], np.ones((1, 3)))
    >>> {name: round(float(value[0]), 3) for name, value in measures.items()}
    {'R2': 0.625, 'RMSE': 0.5, 'MAE': 0.5}
    """
    spread = float(np.abs(truth - truth.mean()).max()) or 1.0
    off, centred = (predicted - truth) / spread, (truth - truth.mean()) / spread
    sums = counts @ np.column_stack([off**2, np.abs(off), centred, centred**2])
    square, absolute, mean, second = (sums / counts.sum(axis=1, keepdims=True)).T
    variance = second - mean**2
    with np.errstate(invalid="ignore", divide="ignore"):
        r2 = np.where(variance > 1e-9, 1 - square / variance, np.nan)
    return {"R2": r2, "RMSE": np.sqrt(square) * spread, "MAE": absolute * spread}


def class_measures(
    codes: NDArray[np.int64], probabilities: NDArray[np.float64], counts: NDArray[np.float64]
) -> Measures:
    """Return accuracy, balanced accuracy, AUROC, log loss and Brier score, of shape (draws,).

    ``counts`` of shape (draws, rows) are the multiplicities of rows. Balanced accuracy and AUROC ignore classes without
    rows.

    >>> measures = class_measures(np.array([0, 1, 1]), np.array([[0.6, 0.4], [0.7, 0.3], [0.2, 0.8]]), np.ones((1, 3)))
    >>> {name: round(float(value[0]), 3) for name, value in measures.items()}
    {'accuracy': 0.667, 'balanced accuracy': 0.75, 'AUROC': 0.5, 'log loss': 0.646, 'Brier score': 0.23}
    """
    n_classes = probabilities.shape[1]
    is_class = np.eye(n_classes)[codes]
    right = (probabilities.argmax(axis=1) == codes).astype(np.float64)
    loss = -np.log(np.maximum(probabilities[np.arange(len(codes)), codes], _LEAST_PROBABILITY))
    square = ((probabilities - is_class) ** 2).sum(axis=1) / (2 if n_classes == 2 else 1)
    means = counts @ np.column_stack([right, loss, square]) / counts.sum(axis=1, keepdims=True)
    recalls = _ratio(counts @ (is_class * right[:, None]), counts @ is_class)
    ranked = range(1, 2) if n_classes == 2 else range(n_classes)
    aurocs = np.column_stack([_auroc(is_class[:, k], probabilities[:, k], counts) for k in ranked])
    return {
        "accuracy": means[:, 0],
        "balanced accuracy": _mean(recalls),
        "AUROC": _mean(aurocs),
        "log loss": means[:, 1],
        "Brier score": means[:, 2],
    }


def _auroc(
    is_positive: NDArray[np.float64], score: NDArray[np.float64], counts: NDArray[np.float64]
) -> NDArray[np.float64]:
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


def _bootstrap(
    measured: Callable[[NDArray[np.float64]], Measures],
    n_rows: int,
    seed: np.random.SeedSequence,
    verbose: bool = False,
) -> Measures:
    """Return the measures of bootstrap draws of rows."""
    parts = []
    with tqdm(total=n_draws(n_rows), desc="bootstrap", unit="draw", disable=not verbose, delay=2) as bar:
        for counts in _draws(n_rows, np.random.default_rng(seed)):
            parts.append(measured(counts))
            bar.update(len(counts))
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _draws(n_rows: int, rng: np.random.Generator) -> Iterator[NDArray[np.float64]]:
    """Draw rows with replacement; yield how often each was drawn, shape (draws, rows), in batches of draws."""
    at_once = max(1, _CELLS_AT_ONCE // n_rows)
    for start in range(0, n_draws(n_rows), at_once):
        n = min(at_once, n_draws(n_rows) - start)
        drawn = rng.integers(n_rows, size=(n, n_rows)) + n_rows * np.arange(n)[:, None]
        yield np.bincount(drawn.ravel(), minlength=n * n_rows).reshape(n, n_rows).astype(np.float64)


def n_draws(n_rows: int) -> int:
    """Return the number of bootstrap draws: 1,000, or 200 for more than 10,000 rows."""
    return _DRAWS if n_rows <= _MANY else _DRAWS_OF_MANY


def _ends(values: NDArray[np.float64]) -> tuple[float, float]:
    """Return the ends of the interval, ignoring draws that cannot be measured."""
    known = values[np.isfinite(values)]
    if not len(known):
        return np.nan, np.nan
    low, high = np.quantile(known, [(1 - COVERAGE) / 2, (1 + COVERAGE) / 2])
    return float(low), float(high)


def _inside(
    target: Target, truth: NDArray[Any], by_fold: NDArray[np.float64], book: FoldBook, number: int
) -> NDArray[np.float64]:
    """Return which rows are in their 90 % intervals or class sets, as 0 and 1."""
    errors = [of_fold[number] for of_fold in book.errors]
    if isinstance(target, NumericTarget):
        low, high = cv_plus(by_fold, errors, _PREDICTED_COVERAGE).T
        return ((low <= truth) & (truth <= high)).astype(np.float64)
    return class_sets(by_fold, errors, _PREDICTED_COVERAGE)[np.arange(len(truth)), truth].astype(np.float64)


def _coverage(target: Target, inside: NDArray[np.float64], seed: np.random.SeedSequence) -> Score:
    kind = "intervals" if isinstance(target, NumericTarget) else "class sets"
    draws = _bootstrap(lambda counts: {"": counts @ inside / len(inside)}, len(inside), seed)
    name = f"coverage of {_PREDICTED_COVERAGE:.0%} {kind}".replace("%", " %")
    return Score(name, float(inside.mean()), *_ends(draws[""]), np.nan)


def _some_rows(n_rows: int, rng: np.random.Generator) -> NDArray[np.int64]:
    return np.sort(rng.choice(n_rows, min(n_rows, _MOST_INTERVALS), replace=False))


def _ratio(part: NDArray[np.float64], total: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.divide(part, total, out=np.full(np.shape(part), np.nan), where=total > 0)


def _mean(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the mean over the finite values of each row."""
    known = np.isfinite(values)
    return _ratio(np.where(known, values, 0.0).sum(axis=1), known.sum(axis=1).astype(np.float64))


def _written(score: Score) -> tuple[str, str, str, str]:
    """Format a score with the digits that its interval justifies."""
    decimals = decimals_of([Interval(score.value, score.low, score.high)])

    def text(value: float) -> str:
        return "" if np.isnan(value) else number(value, decimals).replace(",", "").replace("\N{MINUS SIGN}", "-")

    interval = "" if np.isnan(score.low) else f"[{text(score.low)}, {text(score.high)}]"
    return score.measure, text(score.value) or "unknown", interval, text(score.constant)
