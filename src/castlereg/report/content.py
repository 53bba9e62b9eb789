"""Everything that a report shows, as plain data: nothing here knows of pages."""

from __future__ import annotations

import datetime
import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from castlereg.estimators.base import NetworkEstimator
from castlereg.estimators.cross_validation import CrossValidation
from castlereg.options import check_flag, check_integer
from castlereg.report.cross_fitting import PLAIN, model_name, out_of_fold
from castlereg.report.graph_view import GraphContent, graph_content
from castlereg.report.scores import COVERAGE, DRAWS, TargetScores, score_target
from castlereg.report.settings import Setting, settings_of, versions
from castlereg.report.table_columns import Column, table_columns
from castlereg.report.training_curves import TrainingContent, training_content

RandomState = int | np.random.RandomState | np.random.Generator | None


@dataclass(frozen=True)
class Evaluation:
    """How well the model predicts rows that it was not trained on.

    Attributes
    ----------
    folds, draws : int
    coverage : float
        Of the intervals.
    targets : tuple of TargetScores
    note : str
        How it was measured.
    """

    folds: int
    draws: int
    coverage: float
    targets: tuple[TargetScores, ...]
    note: str


@dataclass(frozen=True)
class ReportContent:
    """Everything that a report shows.

    Attributes
    ----------
    title, model, estimator : str
        ``model`` is what the page calls it, ``estimator`` its class.
    date : str
    n_rows, n_columns : int
    targets : tuple of str
    seed : str
        Of the model and of the report.
    evaluation : Evaluation or None
        None when it was not asked for.
    graph : GraphContent or None
        None for a model without a graph.
    training : TrainingContent
    columns : tuple of Column
    settings : tuple of Setting
    versions : tuple of (name, version)
    """

    title: str
    model: str
    estimator: str
    date: str
    n_rows: int
    n_columns: int
    targets: tuple[str, ...]
    seed: str
    evaluation: Evaluation | None
    graph: GraphContent | None
    training: TrainingContent
    columns: tuple[Column, ...]
    settings: tuple[Setting, ...]
    versions: tuple[tuple[str, str], ...]


def report_content(
    model: NetworkEstimator,
    X: ArrayLike,
    y: ArrayLike,
    *,
    title: str | None = None,
    evaluate: bool = True,
    cv: int = 5,
    random_state: RandomState = None,
    date: datetime.date | None = None,
    progress: bool | None = None,
) -> ReportContent:
    """Collect everything that a report shows; :func:`render` makes a page of it.

    Parameters
    ----------
    model, X, y, title, evaluate, cv, random_state, date, progress
        As in :func:`castlereg.report.write_report`.

    Returns
    -------
    ReportContent

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
            f"model={type(model).__name__} is no estimator of castlereg: a report needs its history and graph; for a "
            "pipeline give its last step, and X as that step sees it"
        )
    check_is_fitted(model)
    check_flag("evaluate", evaluate)
    check_integer("cv", cv, least=2)
    rows = model._read_held_out(X, y, model.n_outputs_)
    truth = list(rows.targets)
    names = _target_names(model)
    seed, told_seed = _seeds(model, random_state)
    show = progress if progress is not None else sys.stderr.isatty() or "ipykernel" in sys.modules
    graph = getattr(model, "graph_", None)
    networks = model._fold_networks.n_members if isinstance(model, CrossValidation) else model.network_.n_members
    return ReportContent(
        title=f"What predicts {' and '.join(names)}" if title is None else str(title),
        model=model_name(model),
        estimator=type(model).__name__,
        date=(datetime.date.today() if date is None else date).isoformat(),
        n_rows=len(truth[0]),
        n_columns=model.n_features_in_,
        targets=tuple(names),
        seed=told_seed,
        evaluation=_evaluation(model, X, y, truth, names, int(cv), seed, bool(show)) if evaluate else None,
        graph=None if graph is None else graph_content(graph, networks),
        training=training_content(model.history_, model.validation_loss_),
        columns=table_columns(model, len(truth[0])),
        settings=settings_of(model),
        versions=versions(),
    )


def _target_names(model: NetworkEstimator) -> list[str]:
    return [target.name for target in model._coding.targets]


def _seeds(model: NetworkEstimator, random_state: RandomState) -> tuple[int, str]:
    """Return the report's seed, and what to say of it and the model's."""
    own = model.random_state
    given = own if random_state is None and isinstance(own, int | np.integer) else random_state
    if isinstance(given, np.random.RandomState):
        given = int(given.randint(2**31))
    elif isinstance(given, np.random.Generator):
        given = int(given.integers(2**31))
    elif given is None:
        given = int(np.random.SeedSequence().generate_state(1)[0])
    check_integer("random_state", given, least=0)
    of_model = str(own) if isinstance(own, int | np.integer) else "none" if own is None else type(own).__name__
    return int(given), of_model if of_model == str(given) else f"model {of_model}, report {int(given)}"


def _evaluation(
    model: NetworkEstimator,
    X: ArrayLike,
    y: ArrayLike,
    truth: list[NDArray[Any]],
    names: list[str],
    cv: int,
    seed: int,
    progress: bool,
) -> Evaluation:
    if cv > len(truth[0]):
        raise ValueError(f"cv={cv} is more than the {len(truth[0])} rows: each fold needs one at least")
    said = out_of_fold(model, X, y, truth, cv=cv, seed=seed, progress=progress).predictions
    targets = tuple(
        score_target(target, name, truth[k], {method: one[k] for method, one in said.items()}, seed)
        for k, (target, name) in enumerate(zip(model._coding.targets, names, strict=True))
    )
    note = f"Every row was predicted by networks trained on the other folds, {cv} in all."
    if PLAIN in said:
        note += (
            " Both kinds of network have the same folds, options and starting weights; the plain one has no "
            "regularizer but early stopping."
        )
    note += (
        f" Intervals hold {COVERAGE:.0%} of {DRAWS:,} draws of rows with replacement, the same for all methods: they "
        "tell what other rows like these would change, not what other starting weights would."
    )
    if isinstance(model, CrossValidation):
        strengths = ", ".join(f"{name}={value:g}" for name, value in model.best_params_.items())
        note += (
            f" The strengths that the model chose on all rows ({strengths or 'none'}) were kept in every fold, with "
            f"{model.network_.n_members} networks, so its own figures are a little too good."
        )
    return Evaluation(cv, DRAWS, COVERAGE, targets, note)
