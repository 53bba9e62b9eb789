"""The content of a report as plain data, independent of the page."""

from __future__ import annotations

import datetime
import importlib.metadata
import inspect
import platform
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from castlereg import __version__
from castlereg.causal.drawing import MOST_NODES, Box, Picture, edges_around, neighbourhood, picture
from castlereg.causal.graph import KNOWN_DIRECTION, NOT_PROOF, SUSPECTED, CausalGraph
from castlereg.estimators.base import NetworkEstimator, Seed, read_known_rows, seed_sequence
from castlereg.notices import shows_progress
from castlereg.options import check_flag, check_integer
from castlereg.report.scores import Comparison, comparison
from castlereg.report.what_if import WhatIfContent, what_if_content
from castlereg.search.recipe import PAPER, Recipe
from castlereg.table.targets import NumericTarget

_MOST_LEVELS = 8
_MOST_CURVES = 40  # networks; more curves overlap too much
_MANY_EDGES = 200  # a drawing with more edges, and more than two edges per node, is not readable

_Line = tuple[tuple[float, ...], tuple[float, ...]]  # epochs and values


class _TableColumn(NamedTuple):  # one column of the table, or a target
    name: str
    kind: str
    is_target: bool
    levels: tuple[str, ...] = ()  # the first few
    n_levels: int = 0
    missing: int = 0  # missing values
    missing_share: float = 0.0  # of all rows
    note: str = ""
    importance: float | None = None  # None for targets, and if the model has no importances


class _Curves(NamedTuple):  # one quantity over the epochs
    title: str
    unit: str
    members: tuple[_Line, ...]  # one line per network
    mean: _Line  # over the epochs in which all networks train
    best: _Line  # a point per network, at the epoch that its weights come from


class _Training(NamedTuple):  # number of epochs, losses and curves
    n_networks: int
    epochs: tuple[int, int]  # of the shortest and the longest training
    best_epochs: tuple[int, int]  # earliest and latest; without a validation loss, the last epochs
    validation_loss: float | None  # mean over networks, each at its best epoch; None if no rows were held out
    curves: tuple[_Curves, ...]  # training objective and, if known, validation loss
    parts: tuple[tuple[str, float], ...] = ()  # names and weights of the candidates that predict together


class _Edge(NamedTuple):  # a row of the table of edges
    cause: str
    effect: str
    weight: float
    confidence: float | None  # probability of an edge between the two; None if not known
    direction: float | None  # probability of this direction, given an edge; None if not known
    directed: bool  # whether the direction is probable enough for an arrow head
    independences: float | None = None  # probability of this direction by the independences only; None if not known
    shapes: float | None = None  # and by the shapes of functions and noise
    hidden: float | None = None  # probability of a hidden common cause; None if not known

    @property
    def is_hidden(self) -> bool:
        """Whether a hidden common cause is suspected."""
        return self.hidden is not None and self.hidden >= SUSPECTED


class _GraphView(NamedTuple):  # one drawing of a graph
    key: str  # "all" or "neighbourhood"
    picture: Picture  # its lines are the weakest first, so strong edges are drawn on top
    ranks: tuple[int, ...]  # of the lines among the edges
    nodes: tuple[tuple[str, Box], ...]  # names and boxes, from left to right
    caption: str  # the nodes that are not drawn, and why; empty if all are drawn


class _GraphContent(NamedTuple):  # table and drawings have the same edges
    nodes: tuple[str, ...]
    targets: tuple[str, ...]
    edges: tuple[_Edge, ...]  # strongest first; in large graphs, only the strongest and those next to a target
    n_edges: int  # of the graph
    shown: int  # number of the strongest edges that are shown at first
    views: tuple[_GraphView, ...]
    first_view: str  # key of the view shown at first
    summary: tuple[str, ...]  # lines
    hidden: tuple[tuple[str, str, float], ...]  # pairs with a suspected hidden common cause, and its probability
    questions: tuple[tuple[str, float, float, bool], ...]  # question, probability, arrows settled, changes the target
    not_proof: str = NOT_PROOF


@dataclass(frozen=True)
class ReportContent:
    """The content of a report."""

    title: str
    estimator: str  # its class
    date: str
    n_rows: int
    n_columns: int
    targets: tuple[str, ...]
    seed: str  # of the model and of the report
    evaluation: Comparison | None  # None with evaluate=False
    graph: _GraphContent | None  # None for a model saved without rows and without a graph
    what_if: WhatIfContent | None  # None with what_if=False, without a graph, and for few rows
    training: _Training
    columns: tuple[_TableColumn, ...]
    settings: tuple[tuple[str, str, bool], ...]  # option, value, whether it differs from the default
    versions: tuple[tuple[str, str], ...]  # names and versions of packages


def report_content(
    model: NetworkEstimator,
    X: ArrayLike,
    y: ArrayLike,
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
    for name, flag in (("evaluate", evaluate), ("rivals", rivals), ("what_if", what_if)):
        check_flag(name, flag)
    check_integer("cv", cv, least=2)
    fitted = model.model_
    truth = list(read_known_rows(model, X, y, fitted.target_kinds).targets)
    names = tuple(target.name for target in fitted.targets)
    # The seed of the report is a number, so that the page can show it.
    own = model.random_state
    chosen = own if random_state is None and isinstance(own, int | np.integer) else random_state
    seed = int(chosen if isinstance(chosen, int | np.integer) else seed_sequence(chosen).generate_state(1)[0])
    seed_of_model = str(own) if isinstance(own, int | np.integer | None) else type(own).__name__
    graph = getattr(model, "graph_", None)  # a model saved without rows may have none
    options: dict[str, Any] = {"rivals": rivals, "cv": int(cv), "seed": seed, "verbose": shows_progress(verbose)}
    packages = [(name, importlib.metadata.version(name)) for name in ("jax", "numpy", "scikit-learn")]
    warmup = (model.recipe or Recipe()).filled(PAPER).warmup or 0
    parts = tuple(zip(fitted.blend.names, fitted.blend.weights.tolist(), strict=True))
    return ReportContent(
        title=f"What predicts {' and '.join(names)}" if title is None else str(title),
        estimator=type(model).__name__,
        date=(datetime.date.today() if date is None else date).isoformat(),
        n_rows=len(truth[0]),
        n_columns=model.n_features_in_,
        targets=names,
        seed=seed_of_model if seed_of_model == str(seed) else f"model {seed_of_model}, report {seed}",
        evaluation=comparison(model, X, y, truth, **options) if evaluate else None,
        graph=None if graph is None else _graph_content(graph),
        what_if=what_if_content(model, X, y, len(truth[0]), seed) if what_if and graph is not None else None,
        training=_training(fitted.history, fitted.validation_loss, warmup, parts),
        columns=tuple(_table_columns(model, len(truth[0]))),
        settings=tuple(_settings(model)),
        versions=(("castlereg", __version__), *packages, ("Python", platform.python_version())),
    )


def _training(
    history: pd.DataFrame, validation_loss: float, warmup: int = 0, parts: tuple[tuple[str, float], ...] = ()
) -> _Training:
    """Convert a history, one row per network and epoch, to curves; the first ``warmup`` epochs cannot be the best.

    A validation loss of NaN means that the networks have the weights of the last epoch.
    """
    tables = history.pivot(index="epoch", columns="member", values=["objective", "validation_loss"])
    validation = tables["validation_loss"]
    lengths = history.groupby("member")["epoch"].max()
    has_best = not np.isnan(validation_loss)
    best = validation[validation.index > min(warmup, lengths.min() - 1)].idxmin() if has_best else lengths
    drawn = best[:_MOST_CURVES]

    def line(values: pd.Series) -> _Line:
        return tuple(map(float, values.index)), tuple(values.tolist())

    def curves(title: str, unit: str, table: pd.DataFrame) -> _Curves:
        table = table.where(np.isfinite(table))
        lines = tuple(line(table[member].dropna()) for member in drawn.index)
        at_best = tuple(float(table.loc[epoch, member]) for member, epoch in drawn.items())
        return _Curves(title, unit, lines, line(table.dropna().mean(axis=1)), (tuple(map(float, drawn)), at_best))

    drawings = [curves("Training objective", "sum of all terms", tables["objective"])]
    if has_best:
        drawings.append(curves("Validation loss", "about 1 if the mean or the base rates are predicted", validation))
    epochs, chosen = ((int(values.min()), int(values.max())) for values in (lengths, best))
    return _Training(len(best), epochs, chosen, float(validation_loss) if has_best else None, tuple(drawings), parts)


def _table_columns(model: NetworkEstimator, n_rows: int) -> Iterator[_TableColumn]:
    """List the targets, then the columns of a table with ``n_rows`` rows and their importances."""
    kind: str
    for target in model.model_.targets:
        levels = [] if isinstance(target, NumericTarget) else target.classes.tolist()
        kind = "numeric" if isinstance(target, NumericTarget) else target.node.kind
        yield _TableColumn(target.name, kind, True, tuple(map(str, levels[:_MOST_LEVELS])), len(levels))
    importances = getattr(model, "feature_importances_", None)  # without held-out rows there are none
    for j, column in enumerate(model.model_.preprocessing.schema):
        levels, importance = list(column.levels or ()), None if importances is None else float(importances[j])
        kind = "constant" if column.constant and column.kind != "unusable" else column.kind
        missing = column.missing, min(column.missing / n_rows, 1.0), column.note
        first = tuple(map(str, levels[:_MOST_LEVELS]))
        yield _TableColumn(column.name, kind, False, first, len(levels), *missing, importance)


def _settings(model: NetworkEstimator) -> Iterator[tuple[str, str, bool]]:
    """List the options of an estimator in the order of its signature, in the same way in every run."""
    values = model.get_params(deep=False)
    if values["recipe"] is not None and values.get("search") not in ("fast", "best"):  # pools have other defaults
        values["recipe"] = values["recipe"].filled(PAPER)
    for name, parameter in inspect.signature(type(model)).parameters.items():
        both = []
        for value in (values[name], parameter.default):
            is_generator = isinstance(value, np.random.Generator | np.random.RandomState)
            both.append(type(value).__name__ if is_generator else re.sub(r" at 0x[0-9A-Fa-f]+", "", repr(value)))
        yield name, both[0], both[0] != both[1]


# --- the graph: a table of edges and two drawings -----------------------------------------------------


def _graph_content(graph: CausalGraph) -> _GraphContent:
    """List the edges of a graph and draw it."""
    frame, questions = graph.edges(), graph.questions()
    counted = edges_around(graph, graph.targets, graph.nodes).index  # 2 x nodes, and the targets' strongest
    page = frame[(frame.index < _MANY_EDGES) | frame.index.isin(counted)].reset_index(drop=True)
    known = page.astype(object).where(page.notna(), None)
    edges = tuple(
        _Edge(
            cause, effect, weight, confidence, direction, direction is None or direction >= KNOWN_DIRECTION, *evidence
        )
        for cause, effect, weight, confidence, direction, *evidence in known.iloc[:, :8].itertuples(index=False)
    )
    blankets = {node for target in graph.targets for node in neighbourhood(graph, target, steps=0)}
    near = [node for node in graph.nodes if node in blankets]
    shown = 2 * len(graph.nodes)
    for target in graph.targets:  # at least the first five edges of each
        shown = max([shown, *(page.index[(page["cause"] == target) | (page["effect"] == target)][:5] + 1)])
    return _GraphContent(
        nodes=graph.names,
        targets=graph.targets,
        edges=edges,
        n_edges=len(frame),
        shown=int(min(shown, len(page))),
        views=(
            _view("all", graph, page, graph.nodes),
            _view("neighbourhood", graph, page[page["cause"].isin(near) & page["effect"].isin(near)], near),
        ),
        first_view="neighbourhood" if len(graph.nodes) > MOST_NODES else "all",
        hidden=tuple(graph.hidden_causes().itertuples(index=False, name=None)),
        questions=tuple(
            questions[["question", "probability", "settles", "changes_target"]].itertuples(index=False, name=None)
        ),
        summary=tuple(graph.summary().removesuffix(NOT_PROOF).rstrip("\n").split("\n")),
    )


def _view(key: str, graph: CausalGraph, edges: pd.DataFrame, nodes: list[str]) -> _GraphView:
    drawn, n_all = picture(graph, edges, nodes), len(graph.names)
    rank = {(row.cause, row.effect): int(row.Index) for row in edges.itertuples()}
    boxes = tuple(sorted(drawn.places.boxes.items(), key=lambda item: (item[1].x, item[1].y)))
    near = (
        f"{len(nodes)} of {n_all} nodes: the target, its strongest causes and effects, and the other causes of these."
    )
    rest = f"Not drawn: {len(nodes) - len(boxes)} columns without an edge on this page."
    caption = " ".join([near] * (len(nodes) < n_all) + [rest] * (len(boxes) < len(nodes)))
    return _GraphView(key, drawn, tuple(rank[line.cause, line.effect] for line in drawn.lines), boxes, caption)
