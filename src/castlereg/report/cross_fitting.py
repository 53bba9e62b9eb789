"""Out-of-fold predictions of the model, the plain network, tree models and a constant."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.utils import _safe_indexing
from tqdm.auto import tqdm

from castlereg import estimators
from castlereg.estimators.base import NetworkEstimator, read_features
from castlereg.estimators.castle import CastleOptions
from castlereg.estimators.cross_validation import REPEATS_OF_BEST
from castlereg.notices import FitWarning
from castlereg.regularizers.castle import castle_of
from castlereg.report.rivals import MOST_ROWS, RIVALS, predicted_by
from castlereg.table.targets import NumericTarget, Target, TargetKind

PLAIN, GUESS = "plain network", "guess"

_CASTLE: dict[TargetKind, type[NetworkEstimator]] = {
    "numbers": estimators.CastleRegressor,
    "classes": estimators.CastleClassifier,
}
_NETWORK: dict[TargetKind, type[NetworkEstimator]] = {
    "numbers": estimators.NetworkRegressor,
    "classes": estimators.NetworkClassifier,
    "any": estimators.NetworkMultiOutput,
}


def out_of_fold(
    model: NetworkEstimator,
    X: ArrayLike,
    y: ArrayLike,
    truth: list[NDArray[Any]],
    *,
    rivals: bool,
    cv: int,
    seed: int,
    verbose: bool,
) -> tuple[dict[str, list[NDArray[np.float64]]], NDArray[np.int64]]:
    """Train clones of the model, the plain network and the rivals on all folds but one, and predict the held-out fold.

    Both networks start from the same weights in each fold. Rivals read the columns in the same way as the model. The
    guess is the mean or the base rates of the training rows. Return predictions by method, the model first: for each
    target, values of shape (rows,) or probabilities of shape (rows, classes). Also return the fold of each row.
    """
    targets = model.model_.targets
    n_rows = len(truth[0])
    source = np.random.SeedSequence(seed)
    folds = fold_numbers(targets, truth, cv, np.random.default_rng(source.spawn(1)[0]))
    methods = {model_name(model): single(model)}
    if isinstance(model, CastleOptions) or is_pool(model) or methods[model_name(model)].regularizers:
        methods[PLAIN] = plain(model)
    trees = RIVALS if rivals else ()
    cells = model.model_.cells(read_features(model, X)) if rivals else np.empty((n_rows, 0))
    categorical = np.array([column.kind == "categorical" for column in model.model_.preprocessing.schema])
    for method in methods.values():  # within one fold, a column may look like an identifier
        method.set_params(categorical_features=np.flatnonzero(categorical).tolist())
    shapes = [(n_rows,) if isinstance(target, NumericTarget) else (n_rows, len(target.classes)) for target in targets]
    predictions = {name: [np.zeros(shape) for shape in shapes] for name in [*methods, *trees, GUESS]}
    seeds = source.generate_state(cv).tolist()
    rng = np.random.default_rng(source.spawn(1)[0])
    with tqdm(total=cv * (len(methods) + len(trees)), desc="cross-fitting", unit="fit", disable=not verbose) as bar:
        for fold in range(cv):
            train, held_out = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
            for name, method in methods.items():
                fitted = clone(method).set_params(random_state=seeds[fold])
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", FitWarning)  # shown when the model was fitted
                    fitted.fit(_safe_indexing(X, train), _safe_indexing(y, train))
                predicted = fitted.model_.predict(read_features(fitted, _safe_indexing(X, held_out)))
                for k, (target, known) in enumerate(zip(targets, fitted.model_.targets, strict=True)):
                    predictions[name][k][_cells(held_out, target, known)] = predicted[k]
                bar.update()
            train_rows = train if len(train) <= MOST_ROWS else np.sort(rng.choice(train, MOST_ROWS, replace=False))
            for tree in trees:
                for k, target in enumerate(targets):
                    known_rows = (cells[train_rows], truth[k][train_rows], cells[held_out])
                    predictions[tree][k][held_out] = predicted_by(tree, target, *known_rows, categorical, seeds[fold])
                bar.update()
            for k, target in enumerate(targets):
                predictions[GUESS][k][held_out] = _guess(target, truth[k][train])
    return predictions, folds


def fold_numbers(
    targets: tuple[Target, ...], truth: list[NDArray[Any]], cv: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Assign rows to folds at random, stratified by the first categorical target, including its rare classes."""
    n_rows = len(truth[0])
    order = rng.permutation(n_rows)
    classes = next((t.codes(v) for t, v in zip(targets, truth, strict=True) if not isinstance(t, NumericTarget)), None)
    if classes is not None:
        order = order[np.argsort(classes[order], kind="stable")]
    folds = np.empty(n_rows, np.int64)
    folds[order] = np.arange(n_rows) % cv
    return folds


def model_name(model: NetworkEstimator) -> str:
    """Return the name of the model in a table of methods."""
    return "CASTLE" if isinstance(model, CastleOptions) else "this model"


def is_pool(model: NetworkEstimator) -> bool:
    """Return whether a model averages a pool of networks."""
    book = model.model_.folds
    return book is not None and "weight" in book.results


def single(model: NetworkEstimator) -> NetworkEstimator:
    """Return the estimator to train in each fold, with the chosen strengths and the number of networks of the model."""
    book = model.model_.folds
    if book is not None and is_pool(model):  # the search is part of the model; a splitter might need groups or all rows
        n_folds = len(book.folds) // (REPEATS_OF_BEST if model.search == "best" else 1)
        return clone(model).set_params(verbose=False, cv=n_folds)
    if (model if book is None else book).regularizers is None:
        raise ValueError(
            f"this {type(model).__name__} cannot be evaluated, because this trains it again and its file does not "
            "contain its regularizers: pass evaluate=False, or write the report before saving the model"
        )
    if book is None:
        return clone(model).set_params(verbose=False)
    castle = castle_of(book.regularizers)
    if isinstance(model, CastleOptions) and castle is not None:
        strengths = {"reg_beta": float(castle.reg_beta), "reg_lambda": float(castle.reg_lambda)}
        return _with_options(_CASTLE[model.target_kind](), model, castle=castle, **strengths)
    return _with_options(_NETWORK[model.target_kind](), model, regularizers=book.regularizers)


def plain(model: NetworkEstimator) -> NetworkEstimator:
    """Return an unfitted network with the same options but no regularizer except early stopping."""
    recipe = (
        None if model.recipe is None else replace(model.recipe, refit=False)
    )  # with refit, CASTLE would select the columns
    return _with_options(_NETWORK[model.target_kind](), model, regularizers=(), recipe=recipe)


def _with_options(estimator: NetworkEstimator, model: NetworkEstimator, **options: Any) -> NetworkEstimator:
    """Set these options of an estimator, and copy the other options that the model shares."""
    shared = {name: value for name, value in model.get_params(deep=False).items() if name in estimator.get_params()}
    n_members = model.n_members if model.model_.folds is None else model.model_.networks.n_members
    return estimator.set_params(**shared | {"n_members": n_members, "verbose": False} | options)


def _cells(rows: NDArray[np.int64], target: Target, known: Target) -> Any:
    """Return the index of a fold's predictions; a rare class may be missing from the fold."""
    if isinstance(target, NumericTarget) or isinstance(known, NumericTarget):
        return rows
    return np.ix_(rows, np.searchsorted(target.classes, known.classes))


def _guess(target: Target, values: NDArray[Any]) -> Any:
    if isinstance(target, NumericTarget):
        return values.mean()
    return np.bincount(target.codes(values), minlength=len(target.classes)) / len(values)
