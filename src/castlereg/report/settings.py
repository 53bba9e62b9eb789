"""The options of a model, and the versions of the packages it was made with."""

from __future__ import annotations

import importlib.metadata
import inspect
import platform
import re
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator


@dataclass(frozen=True)
class Setting:
    """An option, its value, and whether it differs from the default."""

    name: str
    value: str
    changed: bool


def settings_of(model: BaseEstimator) -> tuple[Setting, ...]:
    """List the options of an estimator, in the order of its signature.

    Examples
    --------
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
    """Write a value the same way in every run: without addresses in memory."""
    if isinstance(value, np.random.Generator | np.random.RandomState):
        return type(value).__name__
    return re.sub(r" at 0x[0-9A-Fa-f]+", "", repr(value))


def versions() -> tuple[tuple[str, str], ...]:
    """Return the versions of castlereg, its main dependencies and Python."""
    from castlereg import __version__

    others = [(name, importlib.metadata.version(name)) for name in ("jax", "numpy", "scikit-learn")]
    return (("castlereg", __version__), *others, ("Python", platform.python_version()))
