"""Noise against the distributions it claims."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from castlereg.synthetic.noise import NOISES

KNOWN = {
    "gaussian": stats.norm(),
    "uniform": stats.uniform(-np.sqrt(3), 2 * np.sqrt(3)),
    "laplace": stats.laplace(scale=1 / np.sqrt(2)),
    "gumbel": stats.gumbel_r(loc=-np.euler_gamma * np.sqrt(6) / np.pi, scale=np.sqrt(6) / np.pi),
}


def test_every_kind_is_checked() -> None:
    assert set(KNOWN) == set(NOISES)
    for known in KNOWN.values():
        np.testing.assert_allclose([known.mean(), known.std()], [0, 1], atol=1e-12)


@pytest.mark.parametrize("name", NOISES)
def test_draws_follow_their_distribution(name: str) -> None:
    drawn = np.empty(100_000)
    NOISES[name].draw(np.random.default_rng(1), drawn)
    assert stats.kstest(drawn, KNOWN[name].cdf).pvalue > 0.01
    assert drawn.mean() == pytest.approx(0, abs=0.01)
    assert drawn.std() == pytest.approx(1, rel=0.02)


@pytest.mark.parametrize("name", NOISES)
def test_log_density_is_scipys(name: str) -> None:
    u = np.linspace(-4, 12, 161)
    np.testing.assert_allclose(NOISES[name].log_density(u), KNOWN[name].logpdf(u), rtol=1e-12)


@pytest.mark.parametrize("name", NOISES)
def test_hardly_anything_lies_outside_the_bounds(name: str) -> None:
    kind = NOISES[name]
    assert KNOWN[name].cdf(kind.low) + KNOWN[name].sf(kind.high) < 1e-10
