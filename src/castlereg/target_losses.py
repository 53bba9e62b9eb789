"""Losses that a numeric target may have instead of the squared error: Huber, Poisson, and quantiles.

Each is a small immutable object that says how the target is scaled, how many outputs its sub-network has, what these
outputs mean and what an error costs. Networks see the target only as their own; columns keep the squared error.

Arrays are NumPy's or JAX's, or tensors of an ONNX graph where :meth:`TargetLoss.meaning` is written down.
"""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from castlereg.options import check_fraction, check_number, did_you_mean

_IQR_OF_NORMAL = 1.3489795003921634
_LARGEST_LOG_RATE, _SMALLEST_RATE = 50.0, 1e-30  # in units of the mean count
_ROUNDING = 1e-9  # of a standard deviation: quartiles that are nearer than this are equal
_SMALLEST_UNIT = 1e-12


class TargetLoss(ABC):
    """What every loss of a numeric target says.

    *Outputs* are what a sub-network returns; *values* are what they mean, in the scaled unit of the target.
    """

    name: ClassVar[str]  # as an option

    @property
    def n_outputs(self) -> int:
        """Outputs of the target's sub-network."""
        return 1

    @property
    def output_signs(self) -> NDArray[np.int8]:
        """Whether values rise (1) or fall (-1) with each output, shape (outputs,)."""
        return np.ones(self.n_outputs, np.int8)

    @property
    def shares(self) -> NDArray[np.float64]:
        """Share of each value in what ``predict`` returns, shape (outputs,)."""
        return np.ones(1)

    def check(self, y: NDArray[np.float64], what: str) -> None:  # noqa: B027
        """Raise for values that the loss is not defined for; ``what`` names them in the message."""

    def center_and_spread(self, y: NDArray[np.float64], mean: float, std: float) -> tuple[float, float]:
        """Return what to subtract from the target, and what to divide it by: its median and its spread by quartiles.

        ``y`` are all values or some, ``mean`` and ``std`` are those of all.
        """
        low, center, high = np.quantile(y, [0.25, 0.5, 0.75])
        spread = (high - low) / _IQR_OF_NORMAL
        is_rounding = spread <= 4 * np.finfo(np.float64).eps * abs(center) or spread < _ROUNDING * std
        return float(center), float(std if is_rounding else spread)

    def meaning(self, outputs: Any) -> Any:
        """Turn outputs into values, both of shape (..., outputs)."""
        return outputs

    def losses(self, outputs: Any, truth: Any) -> Any:
        """Return the loss of every row, given outputs (..., outputs) and the scaled target (...)."""
        return self.errors(self.meaning(outputs), truth)

    @abstractmethod
    def errors(self, values: Any, truth: Any) -> Any:
        """Return the loss of every row, given values (..., outputs) and the scaled target (...)."""

    def errors_of_predictions(self, predicted: Any, truth: Any) -> Any:
        """Return the loss of every row by what ``predict`` returns, scaled; both of shape (...)."""
        return self.errors(predicted[..., None], truth)

    @abstractmethod
    def constant(self, truth: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return about the best constant values for a scaled target, shape (outputs,)."""

    def null_loss(self, truth: NDArray[np.float64], weight: NDArray[np.float64] | None = None) -> float:
        """Return what the constant values cost on a scaled target, shape (rows,): the unit of the losses."""
        values = np.broadcast_to(self.constant(truth), (len(truth), self.n_outputs))
        loss = float(np.average(self.errors(values, truth), weights=weight))
        return loss if loss > _SMALLEST_UNIT else 1.0


@dataclass(frozen=True)
class Huber(TargetLoss):
    """The squared error for small errors, in proportion to the error beyond ``delta``: for targets with wild values.

    Parameters
    ----------
    delta : float
        In units of the target's spread, which is measured by its quartiles: 1 is about a standard deviation of the
        values that are not wild.

    Examples
    --------
    >>> Huber(1.0).errors(np.array([[0.5], [3.0]]), np.zeros(2))
    array([0.25, 5.  ])
    """

    delta: float = 1.0
    name: ClassVar[str] = "huber"

    def __post_init__(self) -> None:
        check_number("delta", self.delta, above=0)

    def errors(self, values: Any, truth: Any) -> Any:
        """Return the loss of every row."""
        xp = values.__array_namespace__()
        size = xp.abs(values[..., 0] - truth)
        small = xp.minimum(size, self.delta)
        return small * (2 * size - small)

    def constant(self, truth: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the median."""
        return np.array([np.median(truth)])


@dataclass(frozen=True)
class Poisson(TargetLoss):
    """The Poisson deviance, for counts: predictions are never negative, and their errors grow with their size.

    Counts beyond some thousands vary by a small share of themselves: the squared error of their logarithm suits them
    better.

    Examples
    --------
    A rate of one for a count of two, both in units of the mean count:

    >>> Poisson().errors(np.array([[1.0]]), np.array([2.0])).round(3)
    array([0.773])
    """

    name: ClassVar[str] = "poisson"

    def check(self, y: NDArray[np.float64], what: str) -> None:
        """Raise for negative values."""
        if (y < 0).any():
            raise ValueError(
                f"{what} has negative values, such as {y.min():g}: loss='poisson' is for counts; use another loss"
            )

    def center_and_spread(self, y: NDArray[np.float64], mean: float, std: float) -> tuple[float, float]:
        """Return 0 and the mean."""
        return 0.0, mean

    def meaning(self, outputs: Any) -> Any:
        """Turn logarithms of rates into rates, which stay finite for rows far from all others."""
        xp = outputs.__array_namespace__()
        return xp.exp(xp.minimum(outputs, _LARGEST_LOG_RATE))

    def losses(self, outputs: Any, truth: Any) -> Any:
        """Return the deviance of every row, by the logarithms of rates."""
        xp = outputs.__array_namespace__()
        return self._deviance(outputs[..., 0], xp.exp(outputs[..., 0]), truth)

    def errors(self, values: Any, truth: Any) -> Any:
        """Return the deviance of every row."""
        xp = values.__array_namespace__()
        return self._deviance(xp.log(xp.maximum(values[..., 0], _SMALLEST_RATE)), values[..., 0], truth)

    def _deviance(self, log_rate: Any, rate: Any, truth: Any) -> Any:
        xp = truth.__array_namespace__()
        of_truth = truth * xp.log(xp.where(truth > 0, truth, 1.0))
        return 2 * (of_truth - truth * log_rate - truth + rate)

    def constant(self, truth: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the mean."""
        return np.array([truth.mean()])


@dataclass(frozen=True)
class Quantiles(TargetLoss):
    """The pinball loss of several quantiles at once, which never cross.

    The sub-network has one output for each quantile: the middle one itself, and for every other the distance from its
    neighbour, which is never negative.

    Parameters
    ----------
    levels : sequence of float
        Shares of rows whose target lies below each quantile, ascending. ``predict`` returns the quantile nearest to
        0.5, or the mean of the two nearest ones if they are equally near.

    Examples
    --------
    >>> Quantiles((0.1, 0.9)).meaning(np.array([1.0, 0.0])).round(3)
    array([1.   , 1.693])
    """

    levels: tuple[float, ...] = (0.05, 0.5, 0.95)
    name: ClassVar[str] = "quantiles"

    def __post_init__(self) -> None:
        if isinstance(self.levels, str) or not isinstance(self.levels, Sequence | np.ndarray) or not len(self.levels):
            raise ValueError(f"levels={self.levels!r} must be numbers between 0 and 1, such as (0.1, 0.5, 0.9)")
        for level in self.levels:
            check_fraction("each of levels", level)
        if any(later <= former for former, later in itertools.pairwise(self.levels)):
            raise ValueError(f"levels={self.levels!r} must ascend")
        object.__setattr__(self, "levels", tuple(float(level) for level in self.levels))

    @property
    def n_outputs(self) -> int:
        """Outputs of the target's sub-network."""
        return len(self.levels)

    @property
    def middle(self) -> int:
        """Which output is a quantile itself, and not a distance."""
        return int(np.argmax(self.shares))

    @property
    def output_signs(self) -> NDArray[np.int8]:
        """Distances below the middle are subtracted."""
        return np.where(np.arange(self.n_outputs) < self.middle, -1, 1).astype(np.int8)

    @property
    def shares(self) -> NDArray[np.float64]:
        """Share of each quantile in what ``predict`` returns."""
        distance = np.abs(np.array(self.levels) - 0.5)
        nearest = np.isclose(distance, distance.min(), atol=1e-12)
        return nearest / nearest.sum()

    def meaning(self, outputs: Any) -> Any:
        """Turn the middle quantile and distances into quantiles, which ascend."""
        xp = outputs.__array_namespace__()
        quantiles = [outputs[..., self.middle : self.middle + 1]]
        for k in range(self.middle + 1, self.n_outputs):
            quantiles.append(quantiles[-1] + xp.logaddexp(outputs[..., k : k + 1], 0.0))
        for k in reversed(range(self.middle)):
            quantiles.insert(0, quantiles[0] - xp.logaddexp(outputs[..., k : k + 1], 0.0))
        return xp.concat(quantiles, axis=-1)

    def errors(self, values: Any, truth: Any) -> Any:
        """Return the mean pinball loss of every row over the quantiles."""
        return _pinball(values, truth, np.array(self.levels, values.dtype)).mean(axis=-1)

    def errors_of_predictions(self, predicted: Any, truth: Any) -> Any:
        """Return the pinball loss of every row at the level that ``predict`` returns."""
        return _pinball(predicted[..., None], truth, np.array([self.shares @ np.array(self.levels)]))[..., 0]

    def constant(self, truth: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the quantiles of all rows."""
        return np.quantile(truth, self.levels)


def _pinball(values: Any, truth: Any, levels: NDArray[Any]) -> Any:
    above = truth[..., None] - values
    return values.__array_namespace__().maximum(levels * above, (levels - 1) * above)


_BY_NAME: dict[str, type[TargetLoss]] = {cls.name: cls for cls in (Huber, Poisson, Quantiles)}


def target_loss(option: Any) -> TargetLoss | None:
    """Return the loss that an option asks for, None for the squared error.

    Examples
    --------
    >>> target_loss("huber"), target_loss(Quantiles((0.1, 0.9))), target_loss("squared")
    (Huber(delta=1.0), Quantiles(levels=(0.1, 0.9)), None)
    """
    if isinstance(option, TargetLoss):
        return option
    if isinstance(option, str) and option == "squared":
        return None
    if isinstance(option, str) and option in _BY_NAME:
        return _BY_NAME[option]()
    known = ["squared", *_BY_NAME]
    raise ValueError(
        f"loss={option!r} must be one of {', '.join(map(repr, known))}, or an object of castlereg.losses such as "
        f"Quantiles((0.1, 0.9)){did_you_mean(option, known) if isinstance(option, str) else ''}"
    )
