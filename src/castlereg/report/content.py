"""The content of a report as plain data, independent of the page."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from castlereg.estimators.base import NetworkEstimator, Seed, read_known_rows, seed_sequence
from castlereg.estimators.castle import CastleOptions
from castlereg.estimators.recipe import DEFAULT_RECIPE
from castlereg.notices import shows_progress
from castlereg.options import check_flag, check_integer
from castlereg.regularizers import Castle
from castlereg.report.cross_fitting import PLAIN, is_pool, model_name, out_of_fold
from castlereg.report.description import Column, Setting, settings_of, table_columns, versions
from castlereg.report.graph_view import GraphContent, graph_content
from castlereg.report.rivals import MOST_ROWS
from castlereg.report.scores import COVERAGE, DRAWS, TargetScores, score_target
from castlereg.report.training_curves import TrainingContent, training_content
from castlereg.report.what_if import WhatIfContent, what_if_content
from castlereg.training import phases_for


@dataclass(frozen=True)
class Evaluation:
    """Scores of the model on held-out rows."""

    folds: int
    draws: int  # of the bootstrap
    coverage: float  # of the intervals
    targets: tuple[TargetScores, ...]
    note: str  # how it was measured


@dataclass(frozen=True)
class ReportContent:
    """The content of a report."""

    title: str
    model: str  # its name on the page
    estimator: str  # its class
    date: str
    n_rows: int
    n_columns: int
    targets: tuple[str, ...]
    seed: str  # of the model and of the report
    evaluation: Evaluation | None  # None with evaluate=False
    graph: GraphContent | None  # None for a model without a graph
    what_if: WhatIfContent | None  # None with what_if=False, without a graph, and for few rows
    training: TrainingContent
    columns: tuple[Column, ...]
    settings: tuple[Setting, ...]
    versions: tuple[tuple[str, str], ...]  # names and versions of packages


def report_content(
    model: NetworkEstimator,
    X: ArrayLike,
    y: ArrayLike,
    *,
    title: str | None = None,
    evaluate: bool = True,
    rivals: bool = True,
    what_if: bool = True,
    cv: int = 5,
    random_state: Seed = None,
    date: datetime.date | None = None,
    verbose: bool | None = None,
) -> ReportContent:
    """Collect the content of a report; :func:`render` turns it into a page.

    Parameters
    ----------
    model, X, y, title, evaluate, rivals, what_if, cv, random_state, date, verbose
        As in :func:`castlereg.report.write_report`.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from castlereg import CastleRegressor
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> model = CastleRegressor(max_epochs=3, random_state=0).fit(X, y)
    >>> content = report_content(model, X, y, evaluate=False)
    >>> content.n_rows, content.n_columns, content.targets
    (442, 10, ('target',))
    """
    if not isinstance(model, NetworkEstimator):
        raise TypeError(
            f"{type(model).__name__} is not an estimator of castlereg, so it has no report; for a pipeline, pass its "
            "last step, and X as transformed by the steps before it"
        )
    check_is_fitted(model)
    check_flag("evaluate", evaluate)
    check_flag("rivals", rivals)
    check_flag("what_if", what_if)
    check_integer("cv", cv, least=2)
    fitted = model.model_
    truth = list(read_known_rows(model, X, y, fitted.target_kinds).targets)
    names = tuple(target.name for target in fitted.targets)
    seed, seed_text = _seeds(model, random_state)
    return ReportContent(
        title=f"What predicts {' and '.join(names)}" if title is None else str(title),
        model=model_name(model),
        estimator=type(model).__name__,
        date=(datetime.date.today() if date is None else date).isoformat(),
        n_rows=len(truth[0]),
        n_columns=model.n_features_in_,
        targets=names,
        seed=seed_text,
        evaluation=_evaluation(model, X, y, truth, rivals, int(cv), seed, shows_progress(verbose))
        if evaluate
        else None,
        graph=None if fitted.graph is None else graph_content(fitted.graph),
        what_if=what_if_content(model, X, y, len(truth[0]), seed) if what_if else None,
        training=training_content(fitted.history, fitted.validation_loss, _warmup(model)),
        columns=table_columns(fitted.preprocessing, len(truth[0])),
        settings=settings_of(model),
        versions=versions(),
    )


def _warmup(model: NetworkEstimator) -> int:
    """Return the number of first epochs that cannot be the best epoch."""
    book = model.model_.folds
    if book is not None and book.regularizers is not None:
        regularizers = book.regularizers
    elif isinstance(model, CastleOptions):
        regularizers = (Castle(objective=model.objective),)
    else:
        regularizers = getattr(model, "regularizers", None) or ()  # None if the model file does not contain them
    phases = phases_for(regularizers, int(model.max_epochs), (model.recipe or DEFAULT_RECIPE).warmup)
    return sum(phase.epochs for phase in phases if not phase.counts)


def _seeds(model: NetworkEstimator, random_state: Seed) -> tuple[int, str]:
    """Return the seed of the report, and a text with this seed and that of the model."""
    of_model = model.random_state
    chosen = of_model if random_state is None and isinstance(of_model, int | np.integer) else random_state
    sequence = seed_sequence(chosen)
    seed = int(chosen if isinstance(chosen, int | np.integer) else sequence.generate_state(1)[0])
    text = str(of_model) if isinstance(of_model, int | np.integer | None) else type(of_model).__name__
    return seed, text if text == str(seed) else f"model {text}, report {seed}"


def _evaluation(
    model: NetworkEstimator,
    X: ArrayLike,
    y: ArrayLike,
    truth: list[NDArray[Any]],
    rivals: bool,
    cv: int,
    seed: int,
    verbose: bool,
) -> Evaluation:
    if cv > len(truth[0]):
        raise ValueError(f"cv={cv} needs at least {cv} rows, but there are {len(truth[0])}: lower cv")
    predictions, _ = out_of_fold(model, X, y, truth, rivals=rivals, cv=cv, seed=seed, verbose=verbose)
    targets = tuple(
        score_target(target, truth[k], {method: predicted[k] for method, predicted in predictions.items()}, seed)
        for k, target in enumerate(model.model_.targets)
    )
    notes = [f"Every row was predicted by networks trained on the other folds ({cv} folds)."]
    if PLAIN in predictions:
        same = "The plain network has the same folds, options and initial weights"
        notes.append(f"{same}, but no regularizer except early stopping.")
    if rivals:
        notes.append(
            "The random forest and gradient boosting are scikit-learn's (RandomForest with leaves of at least 3 rows, "
            "HistGradientBoosting with early stopping), on the same folds and columns."
        )
        if len(truth[0]) * (cv - 1) > MOST_ROWS * cv:
            notes.append(f"In each fold they were trained on at most {MOST_ROWS:,} rows, drawn at random.")
        if model.class_weight is not None:
            notes.append("They ignore class_weight, which gives their log loss an advantage.")
    notes.append(
        f"The {COVERAGE:.0%} intervals come from {DRAWS:,} draws of rows with replacement, the same for all methods: "
        "they show how the scores would vary with other rows of the same kind, not with other initial weights."
    )
    book = model.model_.folds
    if book is not None and is_pool(model):
        notes.append("The whole search was repeated in every fold.")
    elif book is not None:
        strengths = ", ".join(f"{name}={value:g}" for name, value in book.results["params"][book.best].items())
        notes.append(
            f"Every fold used the regularization strengths that were chosen on all rows ({strengths or 'none'}), with "
            f"{model.model_.networks.n_members} networks, so the scores of the model are slightly optimistic."
        )
    return Evaluation(cv, DRAWS, COVERAGE, targets, " ".join(notes))
