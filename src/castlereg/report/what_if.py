"""The what-if panel: caused outcomes of setting columns, next to associated outcomes and predictions of the model."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from sklearn.utils import _safe_indexing

from castlereg.causal import Effect, FittedWorld
from castlereg.causal.effects import measured
from castlereg.causal.variables import Variable
from castlereg.estimators.base import NetworkEstimator, read_features
from castlereg.evaluation import Array, Interval, decimals_of, number
from castlereg.search.held_out import evenly

_DRAWS = 30  # of graphs and rows
_NOT_KNOWN = "not known"
_MOST_COLUMNS = 12  # on the page
_MOST_OUTCOMES = 6
_COVERAGE = 0.9
_FEWEST_ROWS = 50  # for a panel
_MOST_ROWS = 2000  # for fitting the equations
_ROWS_OF_PREDICTIONS = 150  # evenly spaced, for mean predictions
_FIRST_VALUES, _FIRST_DRAWS = 5, 10  # per column, to rank the columns when there are too many to compute each in full
_MOST_LEVELS = 12
_VALUES = 20  # of a number
_TAIL = 0.025  # share of the rows below the lowest and above the highest value


@dataclass(frozen=True)
class Outcome:
    """A measured outcome: the mean of a target or the probability of a class."""

    target: str
    text: str
    now: float  # in the unchanged rows
    level: Any = None  # None for numbers
    index: tuple[int, int] = (0, 0)  # of the target and of its class
    spread: float = 1.0  # in the unchanged rows

    @property
    def is_probability(self) -> bool:
        """Whether the outcome is the probability of a class."""
        return self.level is not None


class _Answers(NamedTuple):  # texts that the panel shows for one value
    caused: str
    associated: str
    predicted: str
    distribution: str  # empty for probabilities


@dataclass(frozen=True, eq=False)
class Curve:
    """An outcome over the values of a column."""

    effect: Effect  # if every row is set to a value; and the mean of the rows that have it
    predicted: Array  # mean prediction of the model if only this column is set
    decimals: int  # to show

    def answers(self, k: int) -> _Answers:
        """Format the caused, associated and predicted outcome for a value."""
        effect = self.effect

        def text(value: float) -> str:
            return "no such rows" if np.isnan(value) else number(value, self.decimals)

        caused = f"{text(effect.estimate[k])} ({text(effect.answer.low[k])} to {text(effect.answer.high[k])})"
        distribution = ""
        if effect.level is None:
            lowest, low, _, high, highest = map(text, effect.quantiles[k])
            distribution = f"50% of the rows from {low} to {high}, 90% from {lowest} to {highest}"
        if not self.effect.direction.is_known:
            caused, distribution = _NOT_KNOWN, distribution and _NOT_KNOWN
        return _Answers(caused, text(effect.associated[k]), text(self.predicted[k]), distribution)


@dataclass(frozen=True, eq=False)
class SetColumn:
    """A column that can be set."""

    name: str
    values: tuple[str, ...]
    positions: tuple[float, ...]  # of the values on an axis
    is_levels: bool
    note: str  # on levels that are left out; empty if none are
    curves: tuple[Curve, ...]  # one for each outcome

    def table_rows(self, curve: Curve) -> tuple[int, int]:
        """Choose two values for the table: the ends of a range, or the levels with the lowest and highest outcome."""
        if not self.is_levels:
            return 0, len(self.values) - 1
        outcomes = curve.effect.estimate if curve.effect.direction.is_known else curve.effect.associated
        order = np.argsort(outcomes, kind="stable")  # with NaN last
        return int(order[0]), int(order[np.isfinite(outcomes).sum() - 1])


@dataclass(frozen=True, eq=False)
class WhatIfContent:
    """The content of the panel."""

    outcomes: tuple[Outcome, ...]
    columns: tuple[SetColumn, ...]  # largest effects first
    n_outcomes: int  # of the model
    n_columns: int  # that vary, of the model
    n_rows: int  # that the answers are computed from
    n_all_rows: int
    coverage: float  # of the bands
    draws: int
    caveats: tuple[str, ...]  # that apply to all answers


def what_if_content(
    model: NetworkEstimator, X: ArrayLike, y: ArrayLike, n_rows: int, seed: int
) -> WhatIfContent | None:
    """Estimate the effects on the targets of setting columns, one column at a time, on the graph of the model.

    ``X`` and ``y`` are the table that the model was fitted on; the seed is for the draws of graphs and rows. None for
    fewer than 50 rows, and if no column varies.
    """
    if n_rows < _FEWEST_ROWS:
        return None
    if n_rows > _MOST_ROWS:
        sample = evenly(np.arange(n_rows), _MOST_ROWS)
        X, y = _safe_indexing(X, sample), _safe_indexing(y, sample)
    world = model.structural_model(X=X, y=y, n_draws=_DRAWS, random_state=seed)
    schema = model.model_.preprocessing.schema
    codes = {j: _codes_to_set(world.variables[j], world.population.values[j]) for j in range(len(schema))}
    codes = {j: values for j, values in codes.items() if len(values) > 1 and not schema[j].constant}
    if not codes:
        return None
    outcomes = _outcomes(world, len(schema))
    shown, chosen = outcomes[:_MOST_OUTCOMES], list(codes)
    if len(chosen) > _MOST_COLUMNS:
        few = {j: values[evenly(np.arange(len(values)), _FIRST_VALUES)] for j, values in codes.items()}
        rough = replace(world, draws=world.draws[:_FIRST_DRAWS])
        chosen = _largest({j: _effects(rough, j, few[j], shown) for j in few}, shown)[:_MOST_COLUMNS]
    effects = {j: _effects(world, j, codes[j], shown) for j in chosen}
    some = evenly(np.arange(min(n_rows, _MOST_ROWS)), _ROWS_OF_PREDICTIONS)
    cells = model.model_.cells(read_features(model, _safe_indexing(X, some)))
    columns = []
    for j in _largest(effects, shown):
        variable, values = world.variables[j], codes[j]
        settings = values
        if schema[j].levels is None and variable.levels is not None:  # two numbers, which are levels of equations only
            settings = np.array(variable.levels, dtype=np.float64)[values.astype(np.int64)]
        changed = np.tile(cells, (len(values), 1))
        changed[:, j] = np.repeat(settings, len(cells))
        predictions = [  # of each target, the mean over rows for each value
            predicted.reshape(len(values), len(cells), *predicted.shape[1:]).mean(axis=1)
            for predicted in model.model_.predict_cells(changed)
        ]
        curves = []
        for effect, outcome in zip(effects[j], shown, strict=True):
            target, code = outcome.index
            predicted = predictions[target][:, code] if outcome.is_probability else predictions[target]
            bands = zip(effect.estimate, effect.answer.low, effect.answer.high, strict=True)
            curves.append(Curve(effect, predicted, decimals_of([Interval(*band) for band in bands])))
        n_levels = len(variable.levels or ())
        column = SetColumn(
            name=variable.name,
            values=_as_text(variable, values),
            positions=tuple(map(float, range(len(values)) if variable.levels else values)),
            is_levels=variable.levels is not None,
            note=f"The {len(values)} most frequent of {n_levels} levels." if len(values) < n_levels else "",
            curves=tuple(curves),
        )
        columns.append(column)
    counts = len(outcomes), len(codes), world.population.values.shape[1], n_rows
    return WhatIfContent(tuple(shown), tuple(columns), *counts, _COVERAGE, _DRAWS, world.caveats)


def _outcomes(world: FittedWorld, n_features: int) -> list[Outcome]:
    """List the means of numeric targets, and the last of two classes, or every class, most frequent first."""
    outcomes = []
    for target, variable in enumerate(world.variables[n_features:]):
        name, values = variable.name, world.population.values[n_features + target]
        if variable.levels is None:
            now, spread = float(values.mean()), float(values.std())
            outcomes.append(Outcome(name, measured(name, None), now, None, (target, 0), spread or 1.0))
            continue
        shares = np.bincount(values.astype(np.int64), minlength=len(variable.levels)) / len(values)
        for code in [1] if len(shares) == 2 else np.argsort(-shares, kind="stable").tolist():
            level, share = variable.levels[code], float(shares[code])
            spread = math.sqrt(share * (1 - share)) or 1.0
            outcomes.append(Outcome(name, measured(name, level), share, level, (target, code), spread))
    return outcomes


def _effects(world: FittedWorld, column: int, codes: Array, outcomes: Sequence[Outcome]) -> list[Effect]:
    variable = world.variables[column]
    options: dict[str, Any] = {"values": _as_asked(variable, codes), "coverage": _COVERAGE}
    return [world.effect(variable.name, outcome.target, level=outcome.level, **options) for outcome in outcomes]


def _largest(effects: dict[int, list[Effect]], outcomes: Sequence[Outcome]) -> list[int]:
    """Order columns by their effect on an outcome, in units of its spread; ties by the associated outcome."""

    def size(j: int) -> tuple[float, float]:
        ranges = []
        for effect, outcome in zip(effects[j], outcomes, strict=True):
            associated = effect.associated[np.isfinite(effect.associated)]
            widths = np.ptp(effect.estimate), np.ptp(associated) if len(associated) else 0.0
            ranges.append([float(width) / outcome.spread for width in widths])
        caused, associations = zip(*ranges, strict=True)
        return max(caused), max(associations)

    return sorted(effects, key=size, reverse=True)


# --- the values that a column is set to --------------------------------------------------------------


def _codes_to_set(variable: Variable, observed: Array) -> Array:
    """Choose values of a column, as numbers: its most frequent levels, all distinct numbers if few, or 20 in its range.

    The lowest and the highest 2.5 % of the rows are outside the range. Whole numbers and dates stay whole.
    """
    observed = observed[np.isfinite(observed)]
    if variable.levels is not None:
        counts = np.bincount(observed.astype(np.int64), minlength=len(variable.levels))
        frequent = np.argsort(-counts, kind="stable")[:_MOST_LEVELS]
        return np.sort(frequent[counts[frequent] > 0]).astype(np.float64)
    if not len(observed):
        return observed
    low, high = np.quantile(observed, _TAIL, method="lower"), np.quantile(observed, 1 - _TAIL, method="higher")
    if low == high:
        low, high = observed.min(), observed.max()
    distinct = np.unique(observed[(low <= observed) & (observed <= high)])
    if len(distinct) <= _VALUES:
        return distinct
    between = np.linspace(low, high, _VALUES)
    is_whole = variable.holds == "dates" or bool((distinct == distinct.round()).all())
    return np.unique(between.round()) if is_whole else between


def _as_asked(variable: Variable, codes: Array) -> list[Any]:
    """Convert numbers to the values of the table."""
    if variable.levels is not None:
        return [variable.levels[int(code)] for code in codes]
    return pd.Series(variable.decode(codes)).tolist()


def _as_text(variable: Variable, codes: Array) -> tuple[str, ...]:
    """Format values with enough digits to distinguish them."""
    values = _as_asked(variable, codes)
    if variable.levels is not None:
        if not all(isinstance(level, float) for level in variable.levels):
            return tuple(map(str, values))
        texts = tuple(f"{value:.4g}".replace("-", "\N{MINUS SIGN}") for value in values)
        return texts if len(set(texts)) == len(texts) else tuple(map(str, values))
    if variable.holds == "dates":
        return tuple(str(value.date()) for value in values)
    step = float(np.diff(codes).min()) if len(codes) > 1 else 1.0
    is_whole = bool((codes == codes.round()).all())
    decimals = 0 if is_whole else max(0, math.ceil(-math.log10(step)))
    texts = tuple(number(float(code), decimals) for code in codes)
    if len(set(texts)) < len(texts):
        texts = tuple(f"{code:.6g}" for code in codes)
    return tuple(f"{text} days" for text in texts) if variable.holds == "durations" else texts
