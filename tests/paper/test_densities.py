"""Densities of noise against those of SciPy."""

from __future__ import annotations

import numpy as np
import pytest

from castlereg.causal.synthetic.equations import NOISES
from castlereg.paper.densities import DENSITIES
from tests.causal.synthetic.test_equations import KNOWN


def test_every_kind_of_noise_has_a_density() -> None:
    assert set(DENSITIES) == set(NOISES)


@pytest.mark.parametrize("name", DENSITIES)
def test_log_density_is_scipys(name: str) -> None:
    u = np.linspace(-4, 12, 161)
    np.testing.assert_allclose(DENSITIES[name].log_density(u), KNOWN[name].logpdf(u), rtol=1e-12)


@pytest.mark.parametrize("name", DENSITIES)
def test_hardly_anything_lies_outside_the_bounds(name: str) -> None:
    kind = DENSITIES[name]
    assert KNOWN[name].cdf(kind.low) + KNOWN[name].sf(kind.high) < 1e-10
