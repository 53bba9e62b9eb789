"""Outcomes of rows under interventions, and their means and quantiles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from castlereg.causal.structural.system import System, between
from castlereg.causal.structural.variables import Variable

Array = NDArray[np.float64]
Scenario = Mapping[int, float]  # columns, and the values that they are set to or changed by

_CELLS = 2_000_000  # maximum number of values that are computed together


def outcomes_of(
    system: System, values: Array, scenarios: Sequence[Scenario], held: Scenario, out: int, shift: bool = False
) -> Array:
    """Return the outcome of rows in every scenario, each row with its own noise; shape (scenarios, rows).

    Columns are set to the values of a scenario, or changed by them; ``held`` columns are the same in all scenarios.
    Missing outcomes are drawn.
    """
    nodes = between(system.edges, sorted({*held, *(node for scenario in scenarios for node in scenario)}), [out])
    if out not in nodes and np.isnan(values[out]).any():
        nodes = [*nodes, out]
    if not nodes and out not in held:  # no path leads to the outcome
        return np.tile(values[out], (len(scenarios), 1))
    noise, n_rows = system.abduct(values, nodes, seed=0), values.shape[1]
    outcomes = np.empty((len(scenarios), n_rows))
    at_once = max(1, _CELLS // (n_rows * len(values)))
    for start in range(0, len(scenarios), at_once):
        some = scenarios[start : start + at_once]
        after = np.tile(values, len(some))
        for i, scenario in enumerate(some):
            of_scenario = after[:, i * n_rows : (i + 1) * n_rows]
            for node, code in held.items():
                of_scenario[node] = code
            for node, code in scenario.items():
                of_scenario[node] = of_scenario[node] + code if shift else code
        system.solve(np.tile(noise, len(some)), after, nodes)
        outcomes[start : start + at_once] = after[out].reshape(len(some), n_rows)
    return outcomes


def measured(values: Array, code: int | None) -> Array:
    """Return numbers unchanged, and levels as 1 or 0 for those that match ``code``; NaN where they are missing."""
    return values if code is None else np.where(np.isnan(values), np.nan, values == code)


def weighted_mean(values: Array, weight: Array) -> float:
    """Return the mean of the values that are not missing; NaN if all are."""
    present = np.isfinite(values)
    return float(np.average(values[present], weights=weight[present])) if present.any() else np.nan


def weighted_quantiles(values: Array, shares: Sequence[float], weight: Array) -> Array:
    """Return quantiles of the values that are not missing."""
    present = np.isfinite(values)
    if (weight == weight[0]).all():
        return np.asarray(np.quantile(values[present], shares))
    return np.asarray(np.quantile(values[present], shares, weights=weight[present], method="inverted_cdf"))


def labels_of(variable: Variable, codes: Array) -> tuple[Any, ...]:
    """Return values in the units of the table, and levels by name."""
    return tuple(pd.Series(variable.decode(codes)).tolist())


def values_set(variable: Variable, value: Any, index: pd.Index) -> float | Array:
    """Return the number or numbers that a column is set to: one for all rows, or one each; a Series is aligned."""
    if isinstance(value, str) or not hasattr(value, "__len__"):
        return variable.code(value)
    if isinstance(value, pd.Series) and not value.index.equals(index):
        if not value.index.is_unique or set(value.index) != set(index):
            raise ValueError(
                f"the index of the values of {variable.name!r} differs from that of the rows; align it or pass an array"
            )
        value = value.reindex(index)
    if len(value) != len(index):
        raise ValueError(
            f"do has {len(value)} values for {variable.name!r}, but there are {len(index)} rows; pass one per row"
        )
    return variable.codes(value)
