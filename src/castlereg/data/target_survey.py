"""What a target holds, learned in one pass over its pieces."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from castlereg.data.encoding import Scaling
from castlereg.data.targets import ClassTarget, NumericTarget, Target
from castlereg.moments import Moments

_MOST_CLASSES = 10_000  # that are counted; no classifier has so many


class TargetSurvey:
    """What was seen of a target.

    Parameters
    ----------
    name : str
    is_numeric : bool
        Whether it is to be predicted as a number.
    """

    def __init__(self, name: str, is_numeric: bool) -> None:
        self.name, self.is_numeric, self.n_rows = name, is_numeric, 0
        self.lowest, self.highest = np.inf, -np.inf
        self.moments: Moments | None = None
        self.values: NDArray[Any] | None = None
        self.counts = np.zeros(0, np.int64)

    def add(self, values: NDArray[Any]) -> None:
        """Take note of one piece, shape (rows,), that was checked."""
        self.n_rows += len(values)
        if self.is_numeric:
            self.lowest, self.highest = min(self.lowest, values.min()), max(self.highest, values.max())
            moments = Moments.of(values[:, None], np.ones(len(values)), False)
            self.moments = moments if self.moments is None else self.moments.and_of(moments)
            return
        own, counts = np.unique(values, return_counts=True)
        if self.values is None:
            self.values, self.counts = own, counts
            return
        if (own.dtype.kind in "OUS") != (self.values.dtype.kind in "OUS"):
            raise ValueError(
                f"column {self.name!r} has text in one part and numbers in another: write it as one of them"
            )
        together, places = np.unique(np.concatenate([self.values, own]), return_inverse=True)
        self.counts = np.bincount(places, np.r_[self.counts, counts], len(together)).astype(np.int64)
        self.values = together
        if len(together) > _MOST_CLASSES:
            raise ValueError(
                f"column {self.name!r} has more than {_MOST_CLASSES:,} classes: for numbers use a regressor"
            )

    def target(self, learn: Callable[[NDArray[Any], str], Target]) -> Target:
        """Learn how to encode the target; ``learn`` refuses constants and single classes."""
        if not self.is_numeric:
            assert self.values is not None
            return learn(self.values, self.name)
        assert self.moments is not None
        learn(np.array([self.lowest, self.highest]), self.name)
        return NumericTarget(self.name, Scaling(self.moments.mean, np.sqrt(self.moments.variance)))

    @property
    def spread(self) -> float:
        """Standard deviation of a target of numbers."""
        assert self.moments is not None
        return float(np.sqrt(self.moments.variance[0]))

    def counts_of(self, target: Target) -> NDArray[np.int64]:
        """Count the rows of every class; all rows of a target of numbers."""
        return self.counts if isinstance(target, ClassTarget) else np.array([self.n_rows])
