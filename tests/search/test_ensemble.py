"""Weights of candidates: against all mixtures of two."""

from __future__ import annotations

import numpy as np
import pytest

from castlereg.fitted.row_losses import RowLosses
from castlereg.search.ensemble import greedy_weights
from castlereg.table.targets import NumericTarget


def test_the_greedy_selection_finds_the_best_mixture_of_two(rng: np.random.Generator) -> None:
    truth = rng.normal(size=300)
    first, second = truth + rng.normal(size=300), truth + 0.7 * rng.normal(size=300)
    losses = RowLosses([NumericTarget("y", 0.0, 1.0)], [truth])
    weights = greedy_weights([[first], [second]], losses, first=0, rounds=100)
    shares = np.linspace(0, 1, 101)
    best = shares[np.argmin([losses([s * first + (1 - s) * second]).mean() for s in shares])]
    assert weights[0] == pytest.approx(best, abs=0.02)
    assert weights.sum() == pytest.approx(1)


def test_half_of_the_weight_goes_to_the_best_candidates_alike(rng: np.random.Generator) -> None:
    truth = rng.normal(size=50)
    predictions = [[truth + spread * rng.normal(size=50)] for spread in (0.1, 3.0, 0.2, 5.0)]
    losses = RowLosses([NumericTarget("y", 0.0, 1.0)], [truth])
    both, greedy = (greedy_weights(predictions, losses, first=first) for first in (2, 0))
    np.testing.assert_allclose(both, greedy / 2 + [0.25, 0, 0.25, 0])
