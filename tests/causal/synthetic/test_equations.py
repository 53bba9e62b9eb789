"""Functions of parents, effects of levels, and noise against the distributions it claims."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from castlereg.causal.synthetic.equations import FUNCTIONS, NOISES, effects, node_features

KNOWN = {
    "gaussian": stats.norm(),
    "uniform": stats.uniform(-np.sqrt(3), 2 * np.sqrt(3)),
    "laplace": stats.laplace(scale=1 / np.sqrt(2)),
    "gumbel": stats.gumbel_r(loc=-np.euler_gamma * np.sqrt(6) / np.pi, scale=np.sqrt(6) / np.pi),
}


def test_every_kind_of_noise_is_checked() -> None:
    assert set(KNOWN) == set(NOISES)
    for known in KNOWN.values():
        np.testing.assert_allclose([known.mean(), known.std()], [0, 1], atol=1e-12)


@pytest.mark.parametrize("name", NOISES)
def test_noise_follows_its_distribution(name: str) -> None:
    drawn = NOISES[name](np.random.default_rng(1), 100_000)
    assert stats.kstest(drawn, KNOWN[name].cdf).pvalue > 0.01
    assert drawn.mean() == pytest.approx(0, abs=0.01)
    assert drawn.std() == pytest.approx(1, rel=0.02)


def test_functions_at_known_points() -> None:
    x = np.array([-1.0, 0.0, 2.0])
    np.testing.assert_allclose(FUNCTIONS["linear"](x), x)
    np.testing.assert_allclose(FUNCTIONS["sigmoid"](x), 1 / (1 + np.exp(-x)))
    np.testing.assert_allclose(FUNCTIONS["released_sigmoid"](x), [1 + np.e, 2, 1 + np.exp(-2)])
    np.testing.assert_allclose(FUNCTIONS["sine"](x), np.sin(x))


def test_smooth_functions_have_the_covariance_of_their_gaussian_process() -> None:
    """Mean over 2000 draws of f(x) f(x'), which is exp(-(x - x')^2 / 2)."""
    x = np.array([-1.5, 0.0, 0.5, 2.0])
    total = np.zeros((4, 4))
    for seed in range(2000):
        rng = np.random.default_rng(seed)
        features = node_features("smooth", 0, rng)
        drawn = effects("smooth", 0, [0], features.size, rng)[0] @ features.apply(x)
        total += drawn.T @ drawn
    np.testing.assert_allclose(total / 2000, np.exp(-((x[:, None] - x) ** 2) / 2), atol=0.12)


@pytest.mark.parametrize(("own", "child"), [(2, 0), (4, 0), (0, 2), (0, 3), (2, 2), (3, 5)])
def test_effects_of_levels_have_mean_zero_and_mean_square_one(own: int, child: int) -> None:
    for seed in range(10):
        effect = effects("sigmoid", own, [child], max(own, 1), np.random.default_rng(seed))[0]
        assert effect.shape == (max(child, 1), max(own, 1))
        assert np.mean(effect**2) == pytest.approx(1)
        if own:
            np.testing.assert_allclose(effect.mean(axis=1), 0, atol=1e-12)
        if child:
            np.testing.assert_allclose(effect.mean(axis=0), 0, atol=1e-12)


def test_effects_do_not_depend_on_later_children() -> None:
    few = effects("smooth", 0, [0, 3], 32, np.random.default_rng(0))
    many = effects("smooth", 0, [0, 3, 0, 4], 32, np.random.default_rng(0))
    for one, other in zip(few, many, strict=False):
        np.testing.assert_array_equal(one, other)
