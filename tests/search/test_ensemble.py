"""Weights of candidates: against all mixtures of two, and the units of the losses."""

from __future__ import annotations

import numpy as np
import pytest

from castlereg.data.targets import ClassTarget, NumericTarget
from castlereg.search.ensemble import RowLosses, greedy_weights


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


def test_predicting_the_mean_or_the_class_shares_costs_one(rng: np.random.Generator) -> None:
    values, classes = rng.normal(3, 2, 90), rng.choice(["a", "b", "c"], 90, p=[0.5, 0.3, 0.2])
    targets = [NumericTarget("y", 0.0, 1.0), ClassTarget("kind", np.array(["a", "b", "c"]))]
    shares = np.array([(classes == label).mean() for label in "abc"])
    losses = RowLosses(targets, [values, classes])
    both = losses([np.full(90, values.mean()), np.tile(shares, (90, 1))])
    assert both.mean() == pytest.approx(1)
    assert losses([values, np.eye(3)[np.searchsorted(["a", "b", "c"], classes)]]).max() == pytest.approx(0, abs=1e-12)
