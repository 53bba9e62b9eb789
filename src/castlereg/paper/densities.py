"""Noise densities of structural models, standardized to mean zero and standard deviation one."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

_SQRT2, _SQRT3 = math.sqrt(2), math.sqrt(3)
_GUMBEL_STD = math.pi / math.sqrt(6)  # of the standard Gumbel distribution, whose mean is Euler's constant


class Density(NamedTuple):
    """The density of one kind of noise; less than 1e-10 of its mass lies outside ``low`` and ``high``."""

    log_density: Callable[[Array], Array]  # -inf outside the support
    low: float
    high: float


def _gaussian(u: Array) -> Array:
    return np.asarray(-0.5 * (u * u + np.log(2 * np.pi)))


def _uniform(u: Array) -> Array:
    return np.where(np.abs(u) <= _SQRT3, -np.log(2 * _SQRT3), -np.inf)


def _laplace(u: Array) -> Array:
    return np.asarray(-0.5 * np.log(2) - _SQRT2 * np.abs(u))


def _gumbel(u: Array) -> Array:
    z = _GUMBEL_STD * u + np.euler_gamma
    with np.errstate(over="ignore"):  # far to the left the density is zero
        return np.asarray(np.log(_GUMBEL_STD) - z - np.exp(-z))


DENSITIES: Final[dict[str, Density]] = {
    "gaussian": Density(_gaussian, -6.5, 6.5),
    "uniform": Density(_uniform, -_SQRT3, _SQRT3),
    "laplace": Density(_laplace, -16.5, 16.5),
    "gumbel": Density(_gumbel, -3.0, 18.0),
}
