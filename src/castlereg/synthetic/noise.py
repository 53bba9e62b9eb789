"""Kinds of noise: mean zero, standard deviation one, with their densities."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

_SQRT2, _SQRT3 = math.sqrt(2), math.sqrt(3)
_GUMBEL_STD = math.pi / math.sqrt(6)  # of the usual Gumbel distribution, whose mean is Euler's constant


class Noise(NamedTuple):
    """One kind of noise, standardized; less than 1e-10 of the draws lie outside ``low`` and ``high``."""

    draw: Callable[[np.random.Generator, Array], None]  # fills an array with independent draws
    log_density: Callable[[Array], Array]  # -inf outside the support
    low: float
    high: float


def _draw_gaussian(rng: np.random.Generator, out: Array) -> None:
    rng.standard_normal(out=out)


def _draw_uniform(rng: np.random.Generator, out: Array) -> None:
    out[:] = rng.uniform(-_SQRT3, _SQRT3, out.shape)


def _draw_laplace(rng: np.random.Generator, out: Array) -> None:
    out[:] = rng.laplace(0.0, 1 / _SQRT2, out.shape)


def _draw_gumbel(rng: np.random.Generator, out: Array) -> None:
    out[:] = (rng.gumbel(size=out.shape) - np.euler_gamma) / _GUMBEL_STD


def _gaussian_log_density(u: Array) -> Array:
    return np.asarray(-0.5 * (u * u + np.log(2 * np.pi)))


def _uniform_log_density(u: Array) -> Array:
    return np.where(np.abs(u) <= _SQRT3, -np.log(2 * _SQRT3), -np.inf)


def _laplace_log_density(u: Array) -> Array:
    return np.asarray(-0.5 * np.log(2) - _SQRT2 * np.abs(u))


def _gumbel_log_density(u: Array) -> Array:
    z = _GUMBEL_STD * u + np.euler_gamma
    with np.errstate(over="ignore"):  # far to the left the density is zero
        return np.asarray(np.log(_GUMBEL_STD) - z - np.exp(-z))


NOISES: Final[dict[str, Noise]] = {
    "gaussian": Noise(_draw_gaussian, _gaussian_log_density, -6.5, 6.5),
    "uniform": Noise(_draw_uniform, _uniform_log_density, -_SQRT3, _SQRT3),
    "laplace": Noise(_draw_laplace, _laplace_log_density, -16.5, 16.5),
    "gumbel": Noise(_draw_gumbel, _gumbel_log_density, -3.0, 18.0),
}
