"""The units of the losses of rows."""

from __future__ import annotations

import numpy as np
import pytest

from castlereg.fitted.row_losses import RowLosses
from castlereg.table.targets import ClassTarget, NumericTarget


def test_predicting_the_mean_or_the_class_shares_costs_one(rng: np.random.Generator) -> None:
    values, classes = rng.normal(3, 2, 90), rng.choice(["a", "b", "c"], 90, p=[0.5, 0.3, 0.2])
    targets = [NumericTarget("y", 0.0, 1.0), ClassTarget("kind", np.array(["a", "b", "c"]))]
    shares = np.array([(classes == label).mean() for label in "abc"])
    losses = RowLosses(targets, [values, classes])
    both = losses([np.full(90, values.mean()), np.tile(shares, (90, 1))])
    assert both.mean() == pytest.approx(1)
    assert losses([values, np.eye(3)[np.searchsorted(["a", "b", "c"], classes)]]).max() == pytest.approx(0, abs=1e-12)
