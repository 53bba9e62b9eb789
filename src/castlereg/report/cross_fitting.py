"""Predictions of rows that nobody trained on: the model, the plain network, and a guess."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.utils import _safe_indexing
from tqdm.auto import tqdm

from castlereg.data.targets import NumericTarget, Target
from castlereg.estimators import (
    CastleClassifier,
    CastleMultiOutput,
    CastleRegressor,
    NetworkClassifier,
    NetworkMultiOutput,
    NetworkRegressor,
)
from castlereg.estimators.base import NetworkEstimator
from castlereg.estimators.castle import CastleEstimator
from castlereg.estimators.castle_cv import CastleCV
from castlereg.estimators.classification import Classification
from castlereg.estimators.cross_validation import CrossValidation
from castlereg.estimators.multi_output import MultiOutput

PLAIN, GUESS = "plain network", "guess"


@dataclass(frozen=True)
class OutOfFold:
    """What each method says of rows that it was not trained on.

    Attributes
    ----------
    predictions : dict of str to list of array
        By method, the model first: for each target values of shape (rows,) or probabilities of shape (rows, classes).
    folds : array of int, shape (rows,)
        The fold that left each row out.
    """

    predictions: dict[str, list[NDArray[np.float64]]]
    folds: NDArray[np.int64]


def out_of_fold(
    model: NetworkEstimator,
    X: ArrayLike,
    y: ArrayLike,
    truth: list[NDArray[Any]],
    *,
    cv: int,
    seed: int,
    progress: bool,
) -> OutOfFold:
    """Train clones on all folds but one and predict that one, for the model and the plain network alike.

    Both start from the same weights in each fold. The guess is the mean of the training rows, or their base rates.

    Parameters
    ----------
    model : fitted estimator
    X, y : array-like
        The table.
    truth : list of array of shape (rows,)
        The targets of the table.
    cv : int
        Folds.
    seed : int
        Decides the folds and the networks.
    progress : bool
        Show a progress bar.

    Returns
    -------
    OutOfFold
    """
    targets = model._coding.targets
    n_rows = len(truth[0])
    source = np.random.SeedSequence(seed)
    folds = fold_numbers(targets, truth, cv, np.random.default_rng(source.spawn(1)[0]))
    methods = {model_name(model): single(model)}
    if getattr(methods[model_name(model)], "regularizers", ()) or isinstance(model, CastleEstimator):
        methods[PLAIN] = plain(model)
    shapes = [(n_rows,) if isinstance(target, NumericTarget) else (n_rows, len(target.classes)) for target in targets]
    predictions = {name: [np.zeros(shape) for shape in shapes] for name in [*methods, GUESS]}
    seeds = [int(one) for one in source.generate_state(cv)]
    with tqdm(total=cv * len(methods), desc="cross-fitting", unit="fit", disable=not progress) as bar:
        for fold in range(cv):
            train, held = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
            for name, method in methods.items():
                one = clone(method).set_params(random_state=seeds[fold])
                one.fit(_safe_indexing(X, train), _safe_indexing(y, train))
                said = one._decoded(_safe_indexing(X, held))
                for k, (mine, known) in enumerate(zip(targets, one._coding.targets, strict=True)):
                    predictions[name][k][_cells(held, mine, known)] = said[k]
                bar.update()
            for k, target in enumerate(targets):
                predictions[GUESS][k][held] = _guess(target, truth[k][train])
    return OutOfFold(predictions, folds)


def fold_numbers(
    targets: tuple[Target, ...], truth: list[NDArray[Any]], cv: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Deal rows out to folds at random, a share of every class of the first target that has classes.

    Rare classes are dealt out too, however few rows they have.
    """
    n_rows = len(truth[0])
    order = rng.permutation(n_rows)
    classes = next((t.codes(v) for t, v in zip(targets, truth, strict=True) if not isinstance(t, NumericTarget)), None)
    if classes is not None:
        order = order[np.argsort(classes[order], kind="stable")]
    folds = np.empty(n_rows, np.int64)
    folds[order] = np.arange(n_rows) % cv
    return folds


def model_name(model: NetworkEstimator) -> str:
    """Say what the model is in a table of methods."""
    return "CASTLE" if isinstance(model, CastleEstimator) else "this model"


def single(model: NetworkEstimator) -> NetworkEstimator:
    """Return the estimator to train in each fold, unfitted.

    It is the model itself, unless it chooses by cross-validation: then it is the single estimator with the chosen
    strengths and as many networks as the model predicts with.
    """
    if not isinstance(model, CrossValidation):
        return clone(model).set_params(verbose=False)
    if isinstance(model, CastleCV):
        castle = CastleClassifier if isinstance(model, Classification) else CastleRegressor
        return _with_options(castle(model.reg_beta_, model.reg_lambda_), model)
    network = NetworkClassifier if isinstance(model, Classification) else NetworkRegressor
    return _with_options(network(), model).set_params(regularizers=model.best_regularizers_)


def plain(model: NetworkEstimator) -> NetworkEstimator:
    """Return the same network without any regularizer but early stopping, unfitted."""
    if isinstance(model, MultiOutput):
        return _with_options(NetworkMultiOutput(), model)
    return _with_options(NetworkClassifier() if isinstance(model, Classification) else NetworkRegressor(), model)


def _with_options(one: NetworkEstimator, model: NetworkEstimator) -> NetworkEstimator:
    """Give an estimator the options of a model that both have."""
    theirs = model.get_params(deep=False)
    is_castle = isinstance(one, CastleRegressor | CastleClassifier | CastleMultiOutput)
    shared = {
        name: theirs[name]
        for name in one.get_params(deep=False)
        if name in theirs and (name != "regularizers" or is_castle)
    }
    n_members = model.network_.n_members if isinstance(model, CrossValidation) else model.n_members
    return one.set_params(**shared | {"n_members": n_members, "verbose": False})


def _cells(held: NDArray[np.int64], mine: Target, known: Target) -> Any:
    """Say where a fold's predictions go: a fold may lack a rare class."""
    if isinstance(mine, NumericTarget) or isinstance(known, NumericTarget):
        return held
    return np.ix_(held, np.searchsorted(mine.classes, known.classes))


def _guess(target: Target, values: NDArray[Any]) -> Any:
    if isinstance(target, NumericTarget):
        return values.mean()
    return np.bincount(target.codes(values), minlength=len(target.classes)) / len(values)
