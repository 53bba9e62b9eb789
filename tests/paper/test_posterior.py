"""Conditional variances against closed forms."""

from __future__ import annotations

import numpy as np
import pytest

from castlereg.causal.synthetic.equations import NOISES, node_features
from castlereg.paper.densities import DENSITIES
from castlereg.paper.posterior import Child, NumericChild, conditional_variance, merged

LINEAR = node_features("linear", 0, np.random.default_rng(0))


def drawn(kind: str, n: int, seed: int) -> np.ndarray:
    return NOISES[kind](np.random.default_rng(seed), n)


@pytest.mark.parametrize("weight", [0.5, 3.0, 1000.0])
@pytest.mark.parametrize("std", [0.01, 1.0, 50.0])
def test_linear_gaussian_variance_is_one_over_the_precision(weight: float, std: float) -> None:
    """However narrow: with weight 1000 the density is a thousandth as wide as the first grid's range."""
    kind = DENSITIES["gaussian"]
    y = std * drawn("gaussian", 200, 0)
    children: list[Child] = [
        NumericChild(drawn("gaussian", 200, seed), np.array([w]), kind) for seed, w in ((1, weight), (2, -1.0))
    ]
    found = conditional_variance(y, y, std, kind, LINEAR, children)
    np.testing.assert_allclose(found, 1 / (1 / std**2 + weight**2 + 1), rtol=1e-5)


@pytest.mark.parametrize("kind", NOISES)
def test_without_children_the_variance_is_that_of_the_noise(kind: str) -> None:
    e = 0.7 * drawn(kind, 50, 0)
    np.testing.assert_allclose(conditional_variance(e, e, 0.7, DENSITIES[kind], LINEAR, []), 0.49, rtol=1e-3)


@pytest.mark.parametrize("weight", [0.3, 1.0, 20.0, 5000.0])
def test_uniform_noise_leaves_an_interval(weight: float) -> None:
    """Where both the target's own noise and the child's are within bounds: an interval, of variance width^2 / 12."""
    kind, root = DENSITIES["uniform"], np.sqrt(3)
    y, e = drawn("uniform", 2000, 0), drawn("uniform", 2000, 1)
    found = conditional_variance(y, y, 1.0, kind, LINEAR, [NumericChild(e, np.array([weight]), kind)])
    low = np.maximum(-root, y + (e - root) / weight)
    high = np.minimum(root, y + (e + root) / weight)
    expected = (high - low) ** 2 / 12
    assert found.mean() == pytest.approx(expected.mean(), rel=1e-3)
    np.testing.assert_allclose(found, expected, rtol=0.05)


def test_laplace_child_against_a_very_fine_sum() -> None:
    y, e = drawn("laplace", 20, 0), drawn("laplace", 20, 1)
    kind = DENSITIES["laplace"]
    found = conditional_variance(y, y, 1.0, kind, LINEAR, [NumericChild(e, np.array([2.0]), kind)])
    t = np.linspace(-30, 30, 600_001)
    for k in range(20):
        density = np.exp(kind.log_density(t) + kind.log_density(e[k] - 2 * (t - y[k])))
        density /= density.sum()
        expected = density @ t**2 - (density @ t) ** 2
        assert found[k] == pytest.approx(expected, rel=2e-3)


def test_merged_gaussian_children_tell_as_much_as_each() -> None:
    gaussian, laplace = DENSITIES["gaussian"], DENSITIES["laplace"]
    children: list[Child] = [
        NumericChild(drawn("gaussian", 30, seed), np.array([w]), kind)
        for seed, w, kind in ((1, 2.0, gaussian), (2, -1.0, laplace), (3, 0.4, gaussian), (4, 1.0, gaussian))
    ]
    one, other = merged(children)
    assert isinstance(one, NumericChild)
    assert other is children[1]
    change = np.random.default_rng(9).standard_normal((30, 7, 1))
    apart = sum(child.log_likelihood(change) for child in (children[0], children[2], children[3]))
    together = one.log_likelihood(change)
    np.testing.assert_allclose(np.diff(apart, axis=1), np.diff(together, axis=1), atol=1e-10)


@pytest.mark.parametrize("weight", [3.0, 20.0])
def test_several_peaks_against_a_very_fine_sum(weight: float) -> None:
    """A sine does not tell ``y`` from ``pi - y``."""
    kind, sine = DENSITIES["gaussian"], node_features("sine", 0, np.random.default_rng(0))
    y, e = 2 * drawn("gaussian", 15, 0), drawn("gaussian", 15, 1)
    found = conditional_variance(y, y, 2.0, kind, sine, [NumericChild(e, np.array([weight]), kind)])
    t = np.linspace(-15, 15, 300_001)
    for k in range(15):
        residual = e[k] - weight * (np.sin(t) - np.sin(y[k]))
        density = np.exp(kind.log_density(t / 2) + kind.log_density(residual))
        density /= density.sum()
        assert found[k] == pytest.approx(density @ t**2 - (density @ t) ** 2, rel=1e-3)


def test_peaks_too_narrow_for_the_grid_are_refused() -> None:
    kind, sine = DENSITIES["gaussian"], node_features("sine", 0, np.random.default_rng(0))
    y, e = 2 * drawn("gaussian", 15, 0), drawn("gaussian", 15, 1)
    with pytest.raises(ValueError, match="several peaks too narrow"):
        conditional_variance(y, y, 2.0, kind, sine, [NumericChild(e, np.array([1e4]), kind)])
