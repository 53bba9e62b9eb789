"""Loss of every row, in units of the loss of a constant prediction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from castlereg.table.targets import ClassTarget, Target


@dataclass(frozen=True)
class RowLosses:
    """Loss of every row, the mean over targets, as a function of the predictions of every target.

    Squared errors are in units of the target's variance, log losses in units of the entropy of the classes: 1 is the
    loss of predicting the mean or the class shares, or the best constant for the target's own loss. Losses are
    multiplied by the rows' weights.
    """

    targets: Sequence[Target]
    truth: Sequence[NDArray[Any]]  # of each target, (rows,)
    weight: NDArray[np.float64] | None = None  # (rows,), with a mean of 1

    def __call__(self, predicted: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
        """Return the losses, shape (rows,), of values (rows,) or (rows, outputs), or probabilities, of each target."""
        total = np.zeros(len(self.truth[0]))
        for target, truth, of_target in zip(self.targets, self.truth, predicted, strict=True):
            if isinstance(target, ClassTarget):
                codes = target.codes(truth)
                shares = np.bincount(codes, self.weight) / len(codes)
                entropy = max(-float(np.average(np.log(shares[codes]), weights=self.weight)), 1e-9)
                likely = of_target[np.arange(len(codes)), codes]
                total -= np.log(np.maximum(likely, 1e-12)) / entropy
            else:
                of_constant = target.errors(target.constant(truth, self.weight), truth)
                unit = float(np.average(of_constant, weights=self.weight))
                total += target.errors(of_target, truth) / max(unit, 1e-300)
        total /= len(self.targets)
        return total if self.weight is None else total * self.weight
