"""Sums of smooth functions, against closed forms and plain refits."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import softmax

from castlereg.causal.smooth import Basis, Design, JointBasis, SmoothFunction


def design_of(*columns: np.ndarray) -> Design:
    bases = [Basis.of_numbers(column) for column in columns]
    return Design.of(bases, [b.expand(c) for b, c in zip(bases, columns, strict=True)], len(columns[0]))


def test_features_are_the_value_waves_of_its_rank_and_whether_it_is_missing() -> None:
    values = np.random.default_rng(0).permutation(np.linspace(-1, 3, 150))
    features = Basis.of_numbers(np.r_[values, np.nan]).expand(np.r_[values, np.nan])
    ranks = (np.argsort(np.argsort(values)) + 0.5) / 150
    np.testing.assert_allclose(features[:-1, 0], (values - values.mean()) / values.std())
    np.testing.assert_allclose(features[:-1, 3], np.sqrt(2) * np.cos(3 * np.pi * ranks), atol=0.05)
    assert features[-1].tolist() == [0.0] * 11 + [1.0] and not features[:-1, -1].any()
    assert not Basis.of_numbers(values).expand(np.array([np.nan])).any()


def test_beyond_the_values_lines_go_on_and_far_out_functions_are_constant() -> None:
    x = np.random.default_rng(0).normal(size=400)
    design = design_of(x)
    line = design.function(design.solve(3 * x + 1, np.ones(400), 100.0))
    span = np.ptp(np.quantile(x, [0.0025, 0.9975]))
    at = np.array([x.max() + span, x.max() + 1000 * span, x.max() + 2000 * span])
    near, far, further = line([at], len(at))[:, 0]
    assert near == pytest.approx(3 * at[0] + 1, rel=0.05)
    assert far == further


def test_missing_values_have_a_function_of_their_own() -> None:
    x = np.random.default_rng(0).normal(size=500)
    x[:100] = np.nan
    y = np.where(np.isnan(x), 5.0, 2 * np.nan_to_num(x))
    design = design_of(x)
    line = design.function(design.solve(y, np.ones(500), 1e-5))
    at = np.array([np.nan, 1.0])
    np.testing.assert_allclose(line([at], len(at))[:, 0], [5.0, 2.0], atol=0.02)


def test_left_out_residuals_are_those_of_refits_without_the_row() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2, 60))
    y, weight = np.sin(x[0]) + x[1] + 0.3 * rng.normal(size=60), np.ones(60)
    design = design_of(*x)
    ridge, residuals = design.best_ridge(y, weight)
    for row in (0, 17, 59):
        without = weight.copy()
        without[row] = 0
        # the penalty of a refit is that of all rows
        refit = design.solve(y, without, ridge * 60 / 59)
        assert residuals[row] == pytest.approx(y[row] - float(design.features[row] @ refit[:, 0]), rel=1e-6)


def test_weights_count_rows() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=50), rng.normal(size=50)
    times = rng.integers(0, 4, 50)
    once, repeated = design_of(x), np.repeat(np.arange(50), times)
    several = Design(once.bases, once.features[repeated], once.penalties)
    np.testing.assert_allclose(
        once.solve(y, times.astype(float), 0.1), several.solve(y[repeated], np.ones(times.sum()), 0.1), rtol=1e-8
    )


def test_logits_given_levels_are_the_shares_of_each_level() -> None:
    rng = np.random.default_rng(0)
    cause = rng.integers(0, 3, 3000).astype(float)
    truth = np.array([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.3, 0.3, 0.4]])
    codes = np.array([rng.choice(3, p=truth[int(c)]) for c in cause])
    basis = Basis.of_levels(3)
    design = Design.of([basis], [basis.expand(cause)], 3000)
    weights = design.solve_levels(codes, 3, np.ones(3000), 1e-6)
    shares = np.array([np.bincount(codes[cause == level], minlength=3) / (cause == level).sum() for level in range(3)])
    levels = np.arange(3.0)
    predicted = softmax(SmoothFunction((basis,), weights)([levels], 3), axis=1)
    np.testing.assert_allclose(predicted, shares, atol=0.01)


def test_a_column_of_one_value_has_a_basis() -> None:
    basis = Basis.of_numbers(np.full(20, 3.0))
    assert np.isfinite(basis.expand(np.array([2.0, 3.0, 1e9]))).all()


def test_a_joint_basis_represents_products_and_stay_where_they_are() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2, 1500))
    y = x[0] * x[1] + 0.1 * rng.normal(size=1500)
    bases = [Basis.of_numbers(column) for column in x]
    joint = JointBasis.draw(bases)
    np.testing.assert_array_equal(joint.frequencies, JointBasis.draw(bases).frequencies)
    design = Design.of(bases, [b.expand(c) for b, c in zip(bases, x, strict=True)], 1500, joint)
    ridge, _ = design.best_ridge(y, np.ones(1500))
    function = design.function(design.solve(y, np.ones(1500), ridge))
    new = rng.uniform(-1.5, 1.5, (2, 200))
    predicted = function(list(new), 200)[:, 0]
    assert np.abs(predicted - new[0] * new[1]).mean() < 0.06
    np.testing.assert_allclose(
        function(list(x), 1500),
        design.features @ function.weights,
        atol=0.01,
    )
