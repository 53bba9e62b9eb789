"""Losses that a numeric target may have instead of the squared error: Huber, Poisson, and quantiles.

Each is a small immutable object that defines the scaling of the target, the number of outputs of its sub-network, the
meaning of these outputs and the loss of an error. Only the target has this loss; columns keep the squared error.
Arrays are NumPy or JAX arrays, or tensors of an ONNX graph when :meth:`TargetLoss.meaning` is exported.
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
_ROUNDING = 1e-9  # of a standard deviation: closer quartiles count as equal
_SMALLEST_UNIT = 1e-12


class TargetLoss(ABC):
    """Base class of the losses of numeric targets.

    *Outputs* are the results of a sub-network; *values* are the predictions they represent, in the scaled unit of the
    target.
    """

    name: ClassVar[str]  # as an option

    @property
    def n_outputs(self) -> int:
        """Number of outputs of the target's sub-network."""
        return 1

    @property
    def output_signs(self) -> NDArray[np.int8]:
        """Whether values rise (1) or fall (-1) with each output, shape (outputs,)."""
        return np.ones(self.n_outputs, np.int8)

    @property
    def shares(self) -> NDArray[np.float64]:
        """Weight of each value in the result of ``predict``, shape (outputs,)."""
        return np.ones(1)

    def check(self, y: NDArray[np.float64], what: str) -> None:  # noqa: B027
        """Raise for values for which the loss is not defined; ``what`` is their name in the message."""

    def center_and_spread(self, y: NDArray[np.float64], mean: float, std: float) -> tuple[float, float]:
        """Return the shift and divisor of the target: by default, its median and its spread by quartiles.

        ``y`` contains all or some of the values; ``mean`` and ``std`` are those of all values.
        """
        low, center, high = np.quantile(y, [0.25, 0.5, 0.75])
        spread = (high - low) / _IQR_OF_NORMAL
        is_rounding = spread <= 4 * np.finfo(np.float64).eps * abs(center) or spread < _ROUNDING * std
        return float(center), float(std if is_rounding else spread)

    def meaning(self, outputs: Any) -> Any:
        """Convert outputs to values, both of shape (..., outputs)."""
        return outputs

    def losses(self, outputs: Any, truth: Any) -> Any:
        """Return the loss of every row, given outputs (..., outputs) and the scaled target (...)."""
        return self.errors(self.meaning(outputs), truth)

    @abstractmethod
    def errors(self, values: Any, truth: Any) -> Any:
        """Return the loss of every row, given values (..., outputs) and the scaled target (...)."""

    def errors_of_predictions(self, predicted: Any, truth: Any) -> Any:
        """Return the loss of every row, given the scaled result of ``predict``; both of shape (...)."""
        return self.errors(predicted[..., None], truth)

    @abstractmethod
    def constant(self, truth: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return approximately the best constant values for a scaled target, shape (outputs,)."""

    def null_loss(self, truth: NDArray[np.float64], weight: NDArray[np.float64] | None = None) -> float:
        """Return the mean loss of the constant values on a scaled target, shape (rows,): the unit of the losses."""
        values = np.broadcast_to(self.constant(truth), (len(truth), self.n_outputs))
        loss = float(np.average(self.errors(values, truth), weights=weight))
        return loss if loss > _SMALLEST_UNIT else 1.0


@dataclass(frozen=True)
class Huber(TargetLoss):
    """Huber loss: squared for small errors, linear for errors beyond ``delta``; for targets with outliers.

    Parameters
    ----------
    delta : float
        Threshold in units of the target's spread, which is measured by its quartiles: 1 is about a standard deviation
        of the values that are not outliers.

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
        size = abs(values[..., 0] - truth)
        small = values.__array_namespace__().minimum(size, self.delta)
        return small * (2 * size - small)

    def constant(self, truth: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the median."""
        return np.array([np.median(truth)])


@dataclass(frozen=True)
class Poisson(TargetLoss):
    """The Poisson deviance, for counts: predictions are never negative, and larger counts may have larger errors.

    For counts above some thousands, whose relative noise is small, the squared error of their logarithm is usually a
    better choice.

    Examples
    --------
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
        """Convert logarithms of rates to rates, limited to stay finite for extreme rows."""
        xp = outputs.__array_namespace__()
        return xp.exp(xp.minimum(outputs, _LARGEST_LOG_RATE))

    def losses(self, outputs: Any, truth: Any) -> Any:
        """Return the deviance of every row, given the logarithms of rates."""
        xp = outputs.__array_namespace__()
        return self._deviance(outputs[..., 0], xp.exp(outputs[..., 0]), truth)

    def errors(self, values: Any, truth: Any) -> Any:
        """Return the deviance of every row."""
        xp = values.__array_namespace__()
        return self._deviance(xp.log(xp.maximum(values[..., 0], _SMALLEST_RATE)), values[..., 0], truth)

    def _deviance(self, log_rate: Any, rate: Any, truth: Any) -> Any:
        xp = truth.__array_namespace__()
        entropy = truth * xp.log(xp.where(truth > 0, truth, 1.0))
        return 2 * (entropy - truth * log_rate - truth + rate)

    def constant(self, truth: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the mean."""
        return np.array([truth.mean()])


@dataclass(frozen=True)
class Quantiles(TargetLoss):
    """The pinball loss of several quantiles, which never cross.

    The sub-network has one output per quantile: the middle quantile itself, and for each of the others the distance to
    its neighbour, which is never negative.

    Parameters
    ----------
    levels : sequence of float
        Share of rows whose target is below each quantile, ascending. ``predict`` returns the quantile closest to 0.5,
        or the mean of the two closest ones if they are equally close.

    Examples
    --------
    >>> Quantiles((0.1, 0.9)).meaning(np.array([1.0, 0.0])).round(3)
    array([1.   , 1.693])
    """

    levels: tuple[float, ...] = (0.05, 0.5, 0.95)
    name: ClassVar[str] = "quantiles"

    def __post_init__(self) -> None:
        if isinstance(self.levels, str) or not isinstance(self.levels, Sequence | np.ndarray) or not len(self.levels):
            raise ValueError(
                f"levels={self.levels!r} must be a sequence of numbers between 0 and 1, such as (0.1, 0.5, 0.9)"
            )
        for level in self.levels:
            check_fraction("each of levels", level)
        if any(later <= former for former, later in itertools.pairwise(self.levels)):
            raise ValueError(f"levels={self.levels!r} must be in ascending order")
        object.__setattr__(self, "levels", tuple(float(level) for level in self.levels))

    @property
    def n_outputs(self) -> int:
        """Number of outputs of the target's sub-network."""
        return len(self.levels)

    @property
    def middle(self) -> int:
        """Index of the output that is a quantile, not a distance."""
        return int(np.argmax(self.shares))

    @property
    def output_signs(self) -> NDArray[np.int8]:
        """Signs of the outputs: distances below the middle are subtracted."""
        return np.where(np.arange(self.n_outputs) < self.middle, -1, 1).astype(np.int8)

    @property
    def shares(self) -> NDArray[np.float64]:
        """Weight of each quantile in the result of ``predict``."""
        distance = np.abs(np.array(self.levels) - 0.5)
        nearest = np.isclose(distance, distance.min(), atol=1e-12)
        return nearest / nearest.sum()

    def meaning(self, outputs: Any) -> Any:
        """Convert the middle quantile and the distances to ascending quantiles."""
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
        """Return the pinball loss of every row at the level of the result of ``predict``."""
        return _pinball(predicted[..., None], truth, np.array([self.shares @ np.array(self.levels)]))[..., 0]

    def constant(self, truth: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the quantiles of all rows."""
        return np.quantile(truth, self.levels)


def _pinball(values: Any, truth: Any, levels: NDArray[Any]) -> Any:
    above = truth[..., None] - values
    return values.__array_namespace__().maximum(levels * above, (levels - 1) * above)


_BY_NAME: dict[str, type[TargetLoss]] = {cls.name: cls for cls in (Huber, Poisson, Quantiles)}


def target_loss(option: Any) -> TargetLoss | None:
    """Return the loss for the value of an option, None for the squared error.

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
        f"loss={option!r} must be one of {', '.join(map(repr, known))}, or an object from castlereg.losses such as "
        f"Quantiles((0.1, 0.9)){did_you_mean(option, known) if isinstance(option, str) else ''}"
    )
