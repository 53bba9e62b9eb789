"""Tables that describe a model: the columns of the table, the options and the versions of packages."""

from __future__ import annotations

import importlib.metadata
import inspect
import platform
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from castlereg.table.preprocessing import Preprocessing
from castlereg.table.targets import NumericTarget, Target

_MOST_LEVELS = 8


@dataclass(frozen=True)
class Column:
    """One column of the table, or a target."""

    name: str
    kind: str
    is_target: bool
    levels: tuple[str, ...] = ()  # the first few
    n_levels: int = 0
    missing: int = 0  # missing values
    missing_share: float = 0.0  # of all rows
    note: str = ""


@dataclass(frozen=True)
class Setting:
    """An option, its value, and whether it differs from the default."""

    name: str
    value: str
    changed: bool


def table_columns(preprocessing: Preprocessing, n_rows: int) -> tuple[Column, ...]:
    """List the columns of a table with ``n_rows`` rows, targets first."""
    features = [
        Column(
            column.name,
            "constant" if column.constant and column.kind != "unusable" else column.kind,
            False,
            _first(column.levels or ()),
            len(column.levels or ()),
            column.missing,
            min(column.missing / n_rows, 1.0),
            column.note,
        )
        for column in preprocessing.schema
    ]
    return (*map(_of_target, preprocessing.targets), *features)


def _of_target(target: Target) -> Column:
    if isinstance(target, NumericTarget):
        return Column(target.name, "numeric", True)
    return Column(target.name, target.node.kind, True, _first(target.classes.tolist()), len(target.classes))


def _first(levels: Sequence[object]) -> tuple[str, ...]:
    return tuple(map(str, levels[:_MOST_LEVELS]))


def settings_of(model: BaseEstimator) -> tuple[Setting, ...]:
    """List the options of an estimator, in the order of its signature.

    >>> from castlereg import CastleRegressor
    >>> settings_of(CastleRegressor(reg_beta=0.1))[0]
    Setting(name='reg_beta', value='0.1', changed=True)
    """
    values = model.get_params(deep=False)
    defaults = inspect.signature(type(model)).parameters
    return tuple(
        Setting(name, _written(values[name]), _written(values[name]) != _written(parameter.default))
        for name, parameter in defaults.items()
    )


def _written(value: Any) -> str:
    """Format a value in the same way in every run: without memory addresses."""
    if isinstance(value, np.random.Generator | np.random.RandomState):
        return type(value).__name__
    return re.sub(r" at 0x[0-9A-Fa-f]+", "", repr(value))


def versions() -> tuple[tuple[str, str], ...]:
    """Return the versions of castlereg, its main dependencies and Python."""
    from castlereg import __version__

    others = [(name, importlib.metadata.version(name)) for name in ("jax", "numpy", "scikit-learn")]
    return (("castlereg", __version__), *others, ("Python", platform.python_version()))
