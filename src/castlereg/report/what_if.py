"""The what-if panel: caused outcomes of setting columns, next to associated outcomes and predictions of the model."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import _safe_indexing

from castlereg.causal.structural import Effect, FittedWorld
from castlereg.causal.structural.effects import measured
from castlereg.causal.structural.variables import Variable
from castlereg.digits import Interval, decimals_of
from castlereg.estimators.base import NetworkEstimator, read_features
from castlereg.explanation.partial_dependence import mean_predictions
from castlereg.report.set_values import as_asked, as_text, codes_to_set
from castlereg.table.schema import ColumnSchema

Array = NDArray[np.float64]

MOST_COLUMNS = 12  # on the page
MOST_OUTCOMES = 6
DRAWS = 30  # of graphs and rows
COVERAGE = 0.9
FEWEST_ROWS = 50  # for a panel
MOST_ROWS = 2000  # for fitting the equations
_FIRST_VALUES, _FIRST_DRAWS = 5, 10  # per column, to rank the columns when there are too many to compute each in full


@dataclass(frozen=True)
class Outcome:
    """A measured outcome: the mean of a target or the probability of a class."""

    target: str
    text: str
    now: float  # in the unchanged rows
    is_probability: bool


@dataclass(frozen=True)
class Curve:
    """An outcome over the values of a column; tuples of numbers have one for each value."""

    is_known: bool  # whether the graphs agree on the direction
    share: float  # of the graphs that have a path to the outcome
    path: str  # the same as a sentence
    remark: str  # why the direction is not known; empty if it is known
    notes: tuple[str, ...]  # further remarks on this column
    caused: tuple[float, ...]  # if every row is set to the value
    low: tuple[float, ...]  # of the band around the caused outcome
    high: tuple[float, ...]
    associated: tuple[float | None, ...]  # in rows with this value; None if there are none
    predicted: tuple[float, ...]  # mean prediction of the model if only this column is set
    quantiles: tuple[tuple[float, ...], ...]  # over the rows when set to the value; empty for probabilities
    decimals: int  # to show


@dataclass(frozen=True)
class SetColumn:
    """A column that can be set."""

    name: str
    values: tuple[str, ...]
    positions: tuple[float, ...]  # of the values on an axis; empty for levels
    note: str  # on levels that are left out; empty if none are
    curves: tuple[Curve, ...]  # one for each outcome


@dataclass(frozen=True)
class WhatIfContent:
    """The content of the what-if panel."""

    outcomes: tuple[Outcome, ...]
    columns: tuple[SetColumn, ...]  # largest effects first
    n_outcomes: int  # of the model
    n_columns: int  # that vary, of the model
    n_rows: int  # that the answers are computed from
    n_all_rows: int
    coverage: float  # of the bands
    draws: int
    caveats: tuple[str, ...]  # that apply to all answers


class _Question(NamedTuple):
    """An outcome, and how to find it in the structural model and in the predictions."""

    outcome: Outcome
    target: int
    level: Any  # None for numbers
    code: int
    spread: float  # in the unchanged rows


def what_if_content(
    model: NetworkEstimator, X: ArrayLike, y: ArrayLike, n_rows: int, seed: int
) -> WhatIfContent | None:
    """Estimate the effects on the targets of setting columns, one column at a time.

    Parameters
    ----------
    model : fitted estimator
    X, y : array-like
        The table that the model was fitted on.
    n_rows : int
        Number of rows of the table.
    seed : int
        Seed for the draws of graphs and rows.

    Returns
    -------
    WhatIfContent or None
        None for a model without a graph, for fewer than 50 rows, and if no column varies.
    """
    if model.model_.graph is None or n_rows < FEWEST_ROWS:
        return None
    if n_rows > MOST_ROWS:
        sample = np.unique(np.linspace(0, n_rows - 1, MOST_ROWS).round().astype(np.int64))
        X, y = _safe_indexing(X, sample), _safe_indexing(y, sample)
    world = model.structural_model(X=X, y=y, n_draws=DRAWS, random_state=seed)
    schema = model.model_.preprocessing.schema
    codes = {
        j: codes_to_set(world.variables[j], world.population.values[j])
        for j, column in enumerate(schema)
        if not column.constant
    }
    codes = {j: of_column for j, of_column in codes.items() if len(of_column) > 1}
    if not codes:
        return None
    questions = _questions(world, len(schema))
    asked = questions[:MOST_OUTCOMES]
    chosen = list(codes)
    if len(chosen) > MOST_COLUMNS:
        few = {j: c[np.unique(np.linspace(0, len(c) - 1, _FIRST_VALUES).astype(int))] for j, c in codes.items()}
        rough = replace(world, draws=world.draws[:_FIRST_DRAWS])
        chosen = _largest({j: _effects(rough, j, few[j], asked) for j in few}, asked)[:MOST_COLUMNS]
    effects = {j: _effects(world, j, codes[j], asked) for j in chosen}
    cells = model.model_.cells(read_features(model, X))
    columns = []
    for j in _largest(effects, asked):
        variable = world.variables[j]
        predicted = mean_predictions(model.model_, cells, j, _as_cells(schema[j], variable, codes[j]))
        columns.append(_column(world, variable, codes[j], effects[j], predicted, asked))
    return WhatIfContent(
        outcomes=tuple(question.outcome for question in asked),
        columns=tuple(columns),
        n_outcomes=len(questions),
        n_columns=len(codes),
        n_rows=world.population.values.shape[1],
        n_all_rows=n_rows,
        coverage=COVERAGE,
        draws=DRAWS,
        caveats=world.caveats,
    )


def _questions(world: FittedWorld, n_features: int) -> list[_Question]:
    """List the outcomes: means of numeric targets, the last of two classes, or every class, most frequent first."""
    questions = []
    for target, variable in enumerate(world.variables[n_features:]):
        values = world.population.values[n_features + target]
        if variable.levels is None:
            outcome = Outcome(variable.name, measured(variable.name, None), float(values.mean()), False)
            questions.append(_Question(outcome, target, None, 0, float(values.std())))
            continue
        shares = np.bincount(values.astype(np.int64), minlength=len(variable.levels)) / len(values)
        codes = [1] if len(shares) == 2 else np.argsort(-shares, kind="stable").tolist()
        for code in codes:
            level, share = variable.levels[code], float(shares[code])
            outcome = Outcome(variable.name, measured(variable.name, level), share, True)
            questions.append(_Question(outcome, target, level, code, float(np.sqrt(share * (1 - share)))))
    return questions


def _effects(world: FittedWorld, column: int, codes: Array, questions: list[_Question]) -> list[Effect]:
    variable = world.variables[column]
    values = as_asked(variable, codes)
    return [
        world.effect(variable.name, q.outcome.target, values=values, level=q.level, coverage=COVERAGE)
        for q in questions
    ]


def _largest(effects: dict[int, list[Effect]], questions: list[_Question]) -> list[int]:
    """Order columns by their effect on an outcome, in units of its spread; ties by the associated outcome."""

    def size(j: int) -> tuple[float, float]:
        spreads = [question.spread or 1.0 for question in questions]
        caused = [float(np.ptp(e.estimate)) / spread for e, spread in zip(effects[j], spreads, strict=True)]
        associated = [_range(e.associated) / spread for e, spread in zip(effects[j], spreads, strict=True)]
        return max(caused), max(associated)

    return sorted(effects, key=size, reverse=True)


def _range(values: Array) -> float:
    present = values[np.isfinite(values)]
    return float(np.ptp(present)) if len(present) else 0.0


def _as_cells(column: ColumnSchema, variable: Variable, codes: Array) -> Array:
    """Convert values to cells of the table; two numbers are levels of the structural model, but not of the table."""
    if column.levels is None and variable.levels is not None:
        return np.array(variable.levels, dtype=np.float64)[codes.astype(np.int64)]
    return codes


def _column(
    world: FittedWorld,
    variable: Variable,
    codes: Array,
    effects: list[Effect],
    predicted: list[Array],
    questions: list[_Question],
) -> SetColumn:
    n_levels = len(variable.levels or ())
    curves = tuple(
        _curve(world, effect, question, predicted[question.target])
        for effect, question in zip(effects, questions, strict=True)
    )
    return SetColumn(
        name=variable.name,
        values=as_text(variable, codes),
        positions=tuple(codes.tolist()) if variable.levels is None else (),
        note=f"The {len(codes)} most frequent of {n_levels} levels." if len(codes) < n_levels else "",
        curves=curves,
    )


def _curve(world: FittedWorld, effect: Effect, question: _Question, predicted: Array) -> Curve:
    answer, direction = effect.answer, effect.direction
    bands = [Interval(*map(float, of_value)) for of_value in zip(answer.estimate, answer.low, answer.high, strict=True)]
    return Curve(
        is_known=direction.is_known,
        share=direction.forward,
        path=_path(world, effect),
        remark=direction.remark(effect.cause, effect.outcome),
        notes=tuple(note for note in effect.notes if note not in world.caveats),
        caused=tuple(answer.estimate.tolist()),
        low=tuple(answer.low.tolist()),
        high=tuple(answer.high.tolist()),
        associated=tuple(None if np.isnan(value) else value for value in effect.associated.tolist()),
        predicted=tuple((predicted if question.level is None else predicted[:, question.code]).tolist()),
        quantiles=() if question.level is not None else tuple(map(tuple, effect.quantiles.tolist())),
        decimals=decimals_of(bands),
    )


def _path(world: FittedWorld, effect: Effect) -> str:
    """Return a sentence on how many graphs have a path from the cause to the outcome."""
    share, path = effect.direction.forward, f"path from {effect.cause} to {effect.outcome}"
    if len({draw.whole.edges.tobytes() for draw in world.draws}) == 1:
        return f"The graph has a {path}." if share else f"The graph has no {path}."
    return f"{share:.0%} of the plausible graphs have a {path}."
