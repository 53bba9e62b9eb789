"""Scores of the model and of simple rivals on rows that they were not trained on, and a verdict as a sentence."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn import ensemble
from sklearn.base import clone
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.metrics import confusion_matrix
from sklearn.model_selection import cross_val_predict
from sklearn.utils import _safe_indexing
from threadpoolctl import threadpool_limits
from tqdm.auto import tqdm

from castlereg.estimators import NetworkClassifier, NetworkRegressor
from castlereg.estimators.base import NetworkEstimator, read_features
from castlereg.evaluation import COVERAGE, Array, Interval, bootstrap, decimals_of, measures_of, n_draws, number
from castlereg.table.splits import Fold, cross_validation_folds
from castlereg.table.targets import ClassTarget, NumericTarget, Target

_PLAIN, _FOREST, _BOOSTING, _GUESS = "plain network", "random forest", "gradient boosting", "guess"

_MOST_TRAINING_ROWS = 20_000  # of rivals; more rows take minutes
_TREES = 100
_MOST_ROWS_OF_TREE = 5_000  # in a forest
_MIN_ROWS_IN_LEAF = 3
_HELD_OUT = 0.1  # share of the rows that decide when boosting stops
_MOST_POINTS = 1000  # more points overlap too much
_MOST_RANKED = 5  # classes; with more, intervals of the AUROC of all methods take minutes
_MOST_CLASSES = 20  # a larger confusion matrix is hard to read
# Another seed changes the error of ten networks by about this share, and that of one by five times as much (measured on
# the diabetes table); intervals over rows do not include this.
_MATTERS = 0.01
_MEASURES = {  # by whether the target is numeric: name, unit, key
    True: (("Error", "share of the variance", "R2"), ("R²", "", "R2"), ("RMSE", "in the target's unit", "RMSE")),
    False: (("Log loss", "nats", "log loss"), ("Accuracy", "share of rows", "accuracy"), ("AUROC", "", "AUROC")),
}

_Truth = list[NDArray[Any]]  # values of each target
_Predictions = dict[str, list[Array]]  # by method, the model first: values (rows,) or probabilities (rows, classes)


@dataclasses.dataclass(frozen=True)
class _Difference(Interval):
    """A score of the model minus that of another method, on the same rows."""

    method: str  # the other method
    decimals: int  # enough to distinguish the interval from zero
    verdict: str  # "better", "worse", "within noise" or "too small to matter"


class _Measure(NamedTuple):  # one measure of all methods
    name: str
    unit: str
    lower_is_better: bool
    decimals: int  # justified by the intervals
    scores: tuple[Interval, ...]  # one per method


class _Tenth(NamedTuple):  # rows whose predicted class had a probability between two bounds
    low: float
    high: float
    rows: int
    probability: float  # mean, of the predicted class
    accuracy: float  # share of rows whose class is predicted correctly


class _MethodScores(NamedTuple):  # scores of all methods on one target
    target: str
    is_numeric: bool
    methods: tuple[str, ...]  # the model first, the guess last
    measures: tuple[_Measure, ...]  # the verdict is about the first
    differences: tuple[_Difference, ...]  # from each other method, in the first measure
    verdict: tuple[str, str]  # the score of the model; its comparison with the other methods
    points: tuple[tuple[float, float], ...] = ()  # numeric targets: true and predicted values of some rows
    classes: tuple[str, ...] = ()
    confusion: tuple[tuple[int, ...], ...] = ()  # rows by true and predicted class; empty for more than 20 classes
    reliability: tuple[_Tenth, ...] = ()

    @property
    def best_rival(self) -> _Difference | None:
        """The difference from the best of the other trained methods; None if there is only the guess."""
        rivals = zip(self.measures[0].scores[1:-1], self.differences, strict=False)
        return min(rivals, key=lambda pair: pair[0].value, default=(None, None))[1]


class Comparison(NamedTuple):
    """Scores of the model and of the other methods on held-out rows."""

    coverage: float  # of the intervals
    targets: tuple[_MethodScores, ...]
    note: str  # how it was measured


def comparison(
    model: NetworkEstimator, X: Any, y: Any, truth: _Truth, *, rivals: bool, cv: int, seed: int, verbose: bool
) -> Comparison:
    """Cross-validate the model, the plain network and the rivals on the same folds, and score them on each target."""
    predictions = _out_of_fold(model, X, y, truth, rivals=rivals, cv=cv, seed=seed, verbose=verbose)
    targets = tuple(
        _score_target(target, truth[k], {method: predicted[k] for method, predicted in predictions.items()}, seed)
        for k, target in enumerate(model.model_.targets)
    )
    n_rows = len(truth[0])
    note = f"Every row was predicted by networks trained on the other folds ({cv} folds"
    note += "; a search was repeated in every fold)." if hasattr(model, "cv") else ")."
    if _PLAIN in predictions:
        note += " The plain network has the same folds, options and initial weights, but no regularizer except early "
        note += "stopping."
    if rivals:
        note += (
            " The random forest and gradient boosting are scikit-learn's (RandomForest with leaves of at least 3 rows, "
            "HistGradientBoosting with early stopping), on the same folds and columns."
        )
        if n_rows * (cv - 1) > _MOST_TRAINING_ROWS * cv:
            note += f" In each fold they were trained on at most {_MOST_TRAINING_ROWS:,} rows, drawn at random."
        if model.class_weight is not None:
            note += " They ignore class_weight, which gives their log loss an advantage."
    note += (
        f" The {COVERAGE:.0%} intervals come from {n_draws(n_rows):,} draws of rows with replacement, the same for all "
        "methods: they show how the scores would vary with other rows of the same kind, not with other initial weights."
    )
    return Comparison(COVERAGE, targets, note)


# --- predictions of rows that were left out -----------------------------------------------------------


def _out_of_fold(
    model: NetworkEstimator, X: Any, y: Any, truth: _Truth, *, rivals: bool, cv: int, seed: int, verbose: bool
) -> _Predictions:
    """Train each method on all folds but one and predict the held-out fold; return a prediction of every row.

    Both networks start from the same weights in each fold. Rivals read the columns in the same way as the model. The
    guess is the mean or the base rates of the training rows.
    """
    targets, n_rows = model.model_.targets, len(truth[0])
    folds = _folds(targets, truth, cv, seed)
    is_castle = "castle" in model.get_params(deep=False)
    networks = {"CASTLE" if is_castle else "this model": _unfitted(model)}
    if is_castle or model.get_params()["regularizers"]:
        networks[_PLAIN] = _plain_network(model)
    categorical = np.array([column.kind == "categorical" for column in model.model_.preprocessing.schema])
    seeds, predictions = np.random.SeedSequence(seed).generate_state(cv).tolist(), _Predictions()
    shapes = [n_rows if isinstance(target, NumericTarget) else (n_rows, len(target.classes)) for target in targets]
    n_fits = cv * len(networks) + 2 * rivals * len(targets)
    with tqdm(total=n_fits, desc="cross-fitting", unit="fit", disable=not verbose) as bar:
        for name, network in networks.items():
            predictions[name] = [np.zeros(shape) for shape in shapes]
            network.set_params(categorical_features=np.flatnonzero(categorical).tolist())  # as read from all rows
            for (train, held_out), fold_seed in zip(folds, seeds, strict=True):
                fitted = clone(network).set_params(random_state=fold_seed)
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", UserWarning)  # shown when the model was fitted
                    fitted.fit(_safe_indexing(X, train), _safe_indexing(y, train))
                predicted = fitted.model_.predict(read_features(fitted, _safe_indexing(X, held_out)))
                for k, (target, known) in enumerate(zip(targets, fitted.model_.targets, strict=True)):
                    entries: Any = held_out
                    if isinstance(target, ClassTarget):  # a rare class may be missing from the fold
                        entries = np.ix_(held_out, np.searchsorted(target.classes, known.classes))
                    predictions[name][k][entries] = predicted[k]
                bar.update()
        cells = model.model_.cells(read_features(model, X)) if rivals else np.empty((n_rows, 0))
        for target, values in zip(targets, truth, strict=True):
            for name, predicted in _rival_predictions(target, cells, values, folds, categorical, seed, rivals).items():
                predictions.setdefault(name, []).append(predicted)
            bar.update(2 * rivals)
    return predictions


def _folds(targets: Sequence[Target], truth: _Truth, cv: int, seed: int) -> list[Fold]:
    """Return random folds, stratified by the first target with classes if one of these has enough rows."""
    classes = None if isinstance(targets[0], NumericTarget) else targets[0].codes(truth[0])
    if classes is not None and np.bincount(classes).max() < cv:
        classes = None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # about a class with fewer rows than folds
        return cross_validation_folds(cv, len(truth[0]), seed=seed, classes=classes)


def _unfitted(model: NetworkEstimator) -> NetworkEstimator:
    """Return the estimator to train in each fold; a search is part of it."""
    options = model.get_params(deep=False)
    if options.get("regularizers", ()) is None:
        raise ValueError(
            f"this {type(model).__name__} cannot be evaluated, because this trains it again and its file does not "
            "contain its regularizers: pass evaluate=False, or write the report before saving the model"
        )
    unfitted: NetworkEstimator = clone(model).set_params(verbose=False)
    if model.model_.folds is not None and not isinstance(options.get("cv"), int | None):
        train, held_out = model.model_.folds.folds[0]  # a splitter might need groups or all rows
        unfitted.set_params(cv=max(2, round((len(train) + len(held_out)) / len(held_out))))
    return unfitted


def _plain_network(model: NetworkEstimator) -> NetworkEstimator:
    """Return an unfitted network with the same options but no regularizer except early stopping."""
    network = (NetworkRegressor if model.target_kind == "numbers" else NetworkClassifier)()
    options: dict[str, Any] = model.get_params(deep=False)
    options |= {"regularizers": (), "verbose": False, "n_members": model.model_.networks.n_members}
    if model.recipe is not None:  # with refit, CASTLE would select the columns
        options["recipe"] = dataclasses.replace(model.recipe, refit=False)
    return network.set_params(**{name: options[name] for name in network.get_params(deep=False) if name in options})


def _rival_predictions(
    target: Target, cells: Array, values: Any, folds: list[Fold], categorical: Any, seed: int, trees: bool = True
) -> dict[str, Array]:
    """Cross-validate scikit-learn's random forest, gradient boosting and, as the guess, a constant prediction.

    Cells are numbers and level indices, -1 for an unknown level and NaN for missing values, which both trees support.
    Columns marked as categorical have levels without an order; the forest splits them in the order of their indices.
    """
    rng, most = np.random.default_rng(seed), _MOST_TRAINING_ROWS
    folds = [(rng.permutation(train)[:most] if len(train) > most else train, held_out) for train, held_out in folds]
    # Boosting cannot bin a column without values.
    empty = np.any([np.isnan(cells[train]).all(axis=0) for train, _ in folds], axis=0)
    cells, fewest = np.where(empty, 0.0, cells), min(len(train) for train, _ in folds)
    forest: dict[str, Any] = {"n_estimators": _TREES, "min_samples_leaf": _MIN_ROWS_IN_LEAF, "random_state": seed}
    forest["max_samples"] = min(_MOST_ROWS_OF_TREE / fewest, 1.0)
    boosting = {"categorical_features": categorical, "random_state": seed}
    method, models = "predict", dict[str, Any]()
    if isinstance(target, NumericTarget):
        models[_FOREST] = ensemble.RandomForestRegressor(**forest, max_features=1 / 3)
        models[_BOOSTING] = ensemble.HistGradientBoostingRegressor(**boosting, early_stopping=_HELD_OUT * fewest >= 2)
        models[_GUESS] = DummyRegressor()
    else:
        method, values = "predict_proba", target.codes(values)
        counts = np.bincount(values, minlength=len(target.classes))
        # The rows for early stopping must contain every class, and so must the other rows.
        stops_early = bool(counts.min() >= 2 * len(folds) and _HELD_OUT * fewest >= len(counts))
        models[_FOREST] = ensemble.RandomForestClassifier(**forest)
        models[_BOOSTING] = ensemble.HistGradientBoostingClassifier(**boosting, early_stopping=stops_early)
        models[_GUESS] = DummyClassifier(strategy="prior")
    predictions = {}
    # One thread, because on tables of this size more threads are slower; without warnings of rare classes.
    with threadpool_limits(1, "openmp"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in models if trees else [_GUESS]:
            predictions[name] = cross_val_predict(models[name], cells, values, cv=folds, method=method)
    if trees and not isinstance(target, NumericTarget):
        # Add one tree that predicts the base rates, because all trees may be certain of a wrong class.
        predictions[_FOREST] = (_TREES * predictions[_FOREST] + predictions[_GUESS]) / (_TREES + 1)
    return predictions


# --- scores and verdicts ------------------------------------------------------------------------------


def _score_target(target: Target, truth: NDArray[Any], predictions: dict[str, Array], seed: int) -> _MethodScores:
    """Score all methods on one target; predictions are by method, the model first; the seed is for the bootstrap."""
    methods, predicted, n = tuple(predictions), list(predictions.values()), len(predictions)
    is_numeric = isinstance(target, NumericTarget)
    truth = truth.astype(np.float64) if isinstance(target, NumericTarget) else target.codes(truth)
    auroc = not isinstance(target, NumericTarget) and len(target.classes) <= _MOST_RANKED
    kinds = _MEASURES[is_numeric][: None if is_numeric or auroc else 2]
    unit = " of the variance" if is_numeric else ""
    if isinstance(target, NumericTarget) and target.loss is not None:
        kinds = (("Error", "loss as a share of a constant's", "D2"), *kinds[1:])
        unit = " of a constant's loss"

    def measured(counts: Array) -> Array:
        by_method = [measures_of(target, truth, values, counts, auroc=auroc) for values in predicted]
        rows = [1 - m[key] if name == "Error" else m[key] for name, _, key in kinds for m in by_method]
        return np.stack([*rows, *(rows[0] - other for other in rows[1:n])])

    seeds = np.random.SeedSequence(seed, spawn_key=(2,))
    intervals = bootstrap(measured, len(truth), seeds)
    measures = []
    for k, (name, kind_unit, _) in enumerate(kinds):
        method_intervals = tuple(intervals[k * n : (k + 1) * n])
        is_loss = name in ("Error", "RMSE", "Log loss")
        measures.append(_Measure(name, kind_unit, is_loss, decimals_of(method_intervals), method_intervals))
    paired = zip(methods[1:], intervals[len(kinds) * n :], measures[0].scores[1:], strict=True)
    differences = tuple(_judged(*paired_draws) for paired_draws in paired)
    details: dict[str, Any]
    if isinstance(target, NumericTarget):
        rows = np.random.default_rng(seeds.spawn(1)[0]).permutation(len(truth))[:_MOST_POINTS]
        details = {"points": tuple(zip(truth[rows].tolist(), predicted[0][rows].tolist(), strict=True))}
    else:
        counts = confusion_matrix(truth, predicted[0].argmax(axis=1), labels=np.arange(len(target.classes)))
        details = {
            "classes": tuple(map(str, target.classes.tolist())),
            "confusion": tuple(map(tuple, counts.tolist())) if len(counts) <= _MOST_CLASSES else (),
            "reliability": _reliability(truth, predicted[0]),
        }
    verdict = _verdict(methods[0], measures[0], differences, unit)
    return _MethodScores(target.name, is_numeric, methods, tuple(measures), differences, verdict, **details)


def _judged(method: str, difference: Interval, score: Interval) -> _Difference:
    """Judge the difference from the score of another method, as displayed: a bound shown as 0.000 counts as zero."""
    decimals = decimals_of([difference])
    decimals += 0 in (round(difference.low, decimals), round(difference.high, decimals))
    low, high = round(difference.low, decimals), round(difference.high, decimals)
    if low <= 0 <= high:
        verdict = "within noise"
    elif abs(difference.value) < _MATTERS * score.value:
        verdict = "too small to matter"
    else:
        verdict = "better" if high < 0 else "worse"
    return _Difference(difference.value, difference.low, difference.high, method, decimals, verdict)


_IN_WORDS = {_PLAIN: "the plain network", _FOREST: "the random forest", _BOOSTING: "gradient boosting"}
_COMPARED = {
    "worse": "worse than",
    "within noise": "not clearly different from",
    "too small to matter": "practically equal to",
    "better": "better than",
}


def _verdict(model: str, measure: _Measure, differences: tuple[_Difference, ...], unit: str = "") -> tuple[str, str]:
    """Return sentences on the score of the model and its comparison with the others, better ones first."""
    value, low, high = (number(x, measure.decimals) for x in dataclasses.astuple(measure.scores[0]))
    first = f"{model[0].upper()}{model[1:]}'s {measure.name.lower()} is {value}{unit} [{low}, {high}]."
    in_words = _IN_WORDS | {_GUESS: "predicting the mean" if unit else "predicting the base rates"}

    def listed(parts: list[str], comma: str, last: str) -> str:
        return last.join([comma.join(parts[:-1]), parts[-1]][-len(parts) :])

    others = {v: [in_words[d.method] for d in differences if d.verdict == v] for v in _COMPARED}
    parts = [f"{words} {listed(others[v], ', ', ' and ')}" for v, words in _COMPARED.items() if others[v]]
    return first, f"On the same rows it is {listed(parts, '; ', '; and ')}."


def _reliability(codes: NDArray[np.int64], probabilities: Array) -> tuple[_Tenth, ...]:
    """Compare the probability of the predicted class with its accuracy, by tenths of the probability with rows."""
    highest = probabilities.max(axis=1)
    rows = pd.DataFrame({"probability": highest, "accuracy": probabilities.argmax(axis=1) == codes})
    tenths = rows.groupby(np.minimum((highest * 10 + 1e-9).astype(np.int64), 9))
    return tuple(_Tenth(int(t) / 10, (int(t) + 1) / 10, len(some), *some.mean()) for t, some in tenths)
