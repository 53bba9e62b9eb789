"""Values that the what-if panel sets a column to, and their texts."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from castlereg.causal.structural.variables import Variable
from castlereg.digits import number

Array = NDArray[np.float64]

MOST_LEVELS = 12
_VALUES = 20
_TAIL = 0.025  # share of the rows below the lowest and above the highest value


def codes_to_set(variable: Variable, observed: Array) -> Array:
    """Choose values of a column, as numbers: its most frequent levels, all distinct numbers if few, or 20 in its range.

    The lowest and the highest 2.5 % of the rows are outside the range. Whole numbers and dates stay whole.

    >>> codes_to_set(Variable("rooms"), np.array([1.0, 2.0, 2.0, 3.0, np.nan])).tolist()
    [1.0, 2.0, 3.0]
    >>> codes_to_set(Variable("city", ("Oslo", "Bergen")), np.array([1.0, 1.0, 0.0])).tolist()
    [0.0, 1.0]
    """
    observed = observed[np.isfinite(observed)]
    if variable.levels is not None:
        counts = np.bincount(observed.astype(np.int64), minlength=len(variable.levels))
        frequent = np.argsort(-counts, kind="stable")[:MOST_LEVELS]
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


def as_asked(variable: Variable, codes: Array) -> list[Any]:
    """Convert numbers to the values of the table."""
    if variable.levels is not None:
        return [variable.levels[int(code)] for code in codes]
    return pd.Series(variable.decode(codes)).tolist()


def as_text(variable: Variable, codes: Array) -> tuple[str, ...]:
    """Format values with enough digits to distinguish them.

    >>> as_text(Variable("bmi"), np.array([18.61, 19.4274, 35.2]))
    ('18.6', '19.4', '35.2')
    """
    values = as_asked(variable, codes)
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
