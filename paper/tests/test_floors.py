"""The best possible errors, the posteriors that they average, and noise densities, against what is known of them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.linear_model import LinearRegression

from castlereg.causal import KnownWorld, example_dag, random_dag, weighted_dag
from castlereg.causal.worlds import NOISES, node_features
from castlereg_paper import best_classification, best_error, parents_only_error, random_problem
from castlereg_paper.floors import _DENSITIES, _Child, _conditional_variance, _merged, _NumericChild

KNOWN = {
    "gaussian": stats.norm(),
    "uniform": stats.uniform(-np.sqrt(3), 2 * np.sqrt(3)),
    "laplace": stats.laplace(scale=1 / np.sqrt(2)),
    "gumbel": stats.gumbel_r(loc=-np.euler_gamma * np.sqrt(6) / np.pi, scale=np.sqrt(6) / np.pi),
}


def test_every_kind_of_noise_has_a_density() -> None:
    assert set(_DENSITIES) == set(NOISES)


@pytest.mark.parametrize("name", _DENSITIES)
def test_log_density_is_scipys(name: str) -> None:
    u = np.linspace(-4, 12, 161)
    np.testing.assert_allclose(_DENSITIES[name].log_density(u), KNOWN[name].logpdf(u), rtol=1e-12)


@pytest.mark.parametrize("name", _DENSITIES)
def test_hardly_anything_lies_outside_the_bounds(name: str) -> None:
    kind = _DENSITIES[name]
    assert KNOWN[name].cdf(kind.low) + KNOWN[name].sf(kind.high) < 1e-10


LINEAR = node_features("linear", 0, np.random.default_rng(0))


def drawn(kind: str, n: int, seed: int) -> np.ndarray:
    return NOISES[kind](np.random.default_rng(seed), n)


@pytest.mark.parametrize("weight", [0.5, 3.0, 1000.0])
@pytest.mark.parametrize("std", [0.01, 1.0, 50.0])
def test_linear_gaussian_variance_is_one_over_the_precision(weight: float, std: float) -> None:
    """However narrow: with weight 1000 the density is a thousandth as wide as the first grid's range."""
    kind = _DENSITIES["gaussian"]
    y = std * drawn("gaussian", 200, 0)
    children: list[_Child] = [
        _NumericChild(drawn("gaussian", 200, seed), np.array([w]), kind) for seed, w in ((1, weight), (2, -1.0))
    ]
    found = _conditional_variance(y, y, std, kind, LINEAR, children)
    np.testing.assert_allclose(found, 1 / (1 / std**2 + weight**2 + 1), rtol=1e-5)


@pytest.mark.parametrize("kind", NOISES)
def test_without_children_the_variance_is_that_of_the_noise(kind: str) -> None:
    e = 0.7 * drawn(kind, 50, 0)
    np.testing.assert_allclose(_conditional_variance(e, e, 0.7, _DENSITIES[kind], LINEAR, []), 0.49, rtol=1e-3)


@pytest.mark.parametrize("weight", [0.3, 1.0, 20.0, 5000.0])
def test_uniform_noise_leaves_an_interval(weight: float) -> None:
    """Where both the target's own noise and the child's are within bounds: an interval, of variance width^2 / 12."""
    kind, root = _DENSITIES["uniform"], np.sqrt(3)
    y, e = drawn("uniform", 2000, 0), drawn("uniform", 2000, 1)
    found = _conditional_variance(y, y, 1.0, kind, LINEAR, [_NumericChild(e, np.array([weight]), kind)])
    low = np.maximum(-root, y + (e - root) / weight)
    high = np.minimum(root, y + (e + root) / weight)
    expected = (high - low) ** 2 / 12
    assert found.mean() == pytest.approx(expected.mean(), rel=1e-3)
    np.testing.assert_allclose(found, expected, rtol=0.05)


def test_laplace_child_against_a_very_fine_sum() -> None:
    y, e = drawn("laplace", 20, 0), drawn("laplace", 20, 1)
    kind = _DENSITIES["laplace"]
    found = _conditional_variance(y, y, 1.0, kind, LINEAR, [_NumericChild(e, np.array([2.0]), kind)])
    t = np.linspace(-30, 30, 600_001)
    for k in range(20):
        density = np.exp(kind.log_density(t) + kind.log_density(e[k] - 2 * (t - y[k])))
        density /= density.sum()
        expected = density @ t**2 - (density @ t) ** 2
        assert found[k] == pytest.approx(expected, rel=2e-3)


def test_merged_gaussian_children_tell_as_much_as_each() -> None:
    gaussian, laplace = _DENSITIES["gaussian"], _DENSITIES["laplace"]
    children: list[_Child] = [
        _NumericChild(drawn("gaussian", 30, seed), np.array([w]), kind)
        for seed, w, kind in ((1, 2.0, gaussian), (2, -1.0, laplace), (3, 0.4, gaussian), (4, 1.0, gaussian))
    ]
    one, other = _merged(children)
    assert isinstance(one, _NumericChild)
    assert other is children[1]
    change = np.random.default_rng(9).standard_normal((30, 7, 1))
    apart = sum(child.log_likelihood(change) for child in (children[0], children[2], children[3]))
    together = one.log_likelihood(change)
    np.testing.assert_allclose(np.diff(apart, axis=1), np.diff(together, axis=1), atol=1e-10)


@pytest.mark.parametrize("weight", [3.0, 20.0])
def test_several_peaks_against_a_very_fine_sum(weight: float) -> None:
    """A sine does not tell ``y`` from ``pi - y``."""
    kind, sine = _DENSITIES["gaussian"], node_features("sine", 0, np.random.default_rng(0))
    y, e = 2 * drawn("gaussian", 15, 0), drawn("gaussian", 15, 1)
    found = _conditional_variance(y, y, 2.0, kind, sine, [_NumericChild(e, np.array([weight]), kind)])
    t = np.linspace(-15, 15, 300_001)
    for k in range(15):
        residual = e[k] - weight * (np.sin(t) - np.sin(y[k]))
        density = np.exp(kind.log_density(t / 2) + kind.log_density(residual))
        density /= density.sum()
        assert found[k] == pytest.approx(density @ t**2 - (density @ t) ** 2, rel=1e-3)


def test_peaks_too_narrow_for_the_grid_are_refused() -> None:
    kind, sine = _DENSITIES["gaussian"], node_features("sine", 0, np.random.default_rng(0))
    y, e = 2 * drawn("gaussian", 15, 0), drawn("gaussian", 15, 1)
    with pytest.raises(ValueError, match="several peaks too narrow"):
        _conditional_variance(y, y, 2.0, kind, sine, [_NumericChild(e, np.array([1e4]), kind)])


@pytest.mark.parametrize(
    ("function", "least_squares", "parents", "best"),
    [("sigmoid", 0.873, 0.919, 0.870), ("released_sigmoid", 0.844, 0.728, 0.682), ("linear", 0.047, 0.142, 0.047)],
)
def test_floors_of_the_example_graph(function: str, least_squares: float, parents: float, best: float) -> None:
    """As measured independently on 200,000 rows, standardized; exp(-x) has heavy tails and a larger sampling error."""
    model = KnownWorld(example_dag(), function=function)
    digits = 0.01 if function == "released_sigmoid" else 0.005
    found = best_error(model, "Y", 20_000)
    assert found.standardized == pytest.approx(best, abs=0.005)
    if function == "linear":
        assert found.raw == pytest.approx(1 / 3)
    assert parents_only_error(model, "Y", 20_000).standardized == pytest.approx(parents, abs=digits)
    rows = model.sample(200_000, 0)
    X, y = rows.drop(columns="Y").to_numpy(), rows["Y"].to_numpy()
    fitted = LinearRegression().fit(X, y).predict(X)
    assert np.mean((y - fitted) ** 2) / y.var() == pytest.approx(least_squares, abs=digits)


def test_variance_with_the_released_function_is_that_of_an_integral() -> None:
    """With ``g = exp(-1 - exp(-X1))``, ``exp(-X2)`` and ``exp(-X3)`` have moments ``e^(k^2 / 2) E[g^k]`` given X1."""
    t = np.linspace(-10, 10, 40_001)
    density = np.exp(-(t**2) / 2)
    density /= density.sum()
    g = np.exp(-1 - np.exp(-t))
    first, second = density @ g, density @ g**2
    variance = 2 * (second * np.e**2 - first**2 * np.e) + 2 * (second - first**2) * np.e
    found = parents_only_error(KnownWorld(example_dag(), function="released_sigmoid"), "Y", 50_000)
    assert found.standardized == pytest.approx(1 / (1 + variance), abs=0.006)


def test_linear_gaussian_error_is_one_over_the_precision_matrix() -> None:
    dag = weighted_dag(random_dag(8, 16, 0), random_state=0)
    std = dict(zip(dag.columns, np.linspace(0.3, 2, 8), strict=True))
    model = KnownWorld(dag, function="linear", noise_std=std)
    residual = np.eye(8) - dag.to_numpy()
    precision = residual @ np.diag(1 / np.array(list(std.values())) ** 2) @ residual.T
    variance = np.diag(np.linalg.inv(precision))
    for k, name in enumerate(dag):
        best = best_error(model, name)
        assert best.raw == pytest.approx(1 / precision[k, k])
        assert best.standardized == pytest.approx(1 / precision[k, k] / variance[k], rel=0.03)
        assert parents_only_error(model, name).raw == pytest.approx(std[name] ** 2)


def cells(columns: pd.DataFrame, n_cells: int) -> np.ndarray:
    """Number the cells of a grid of quantiles, one cell per row."""
    number = np.zeros(len(columns), np.int64)
    for name in columns:
        ranks = columns[name].rank(method="first").to_numpy() - 1
        number = number * n_cells + (ranks * n_cells // len(columns)).astype(np.int64)
    return number


@pytest.mark.parametrize(
    ("function", "noise"),
    [("sine", "laplace"), ("smooth", "gumbel"), ("sigmoid", "uniform"), ("linear", "uniform"), ("sine", "gaussian")],
)
def test_variance_within_small_cells_of_the_other_columns_comes_down_to_it(function: str, noise: str) -> None:
    """A cause, the target and an effect; variance of the target in cells of 60 x 60, which nothing but size makes
    larger than the conditional variance.
    """
    names = ["a", "Y", "c"]
    dag = pd.DataFrame([[0, 1.5, 0], [0, 0, 2.0], [0, 0, 0]], index=names, columns=names)
    model = KnownWorld(dag, function=function, noise=noise, noise_std=0.7, random_state=1)
    best = best_error(model, "Y", 3000 if function == "smooth" else 5000)
    rows = model.sample(300_000, 1)
    cell, y = cells(rows[["a", "c"]], 60), rows["Y"].to_numpy()
    count, total, square = np.bincount(cell), np.bincount(cell, y), np.bincount(cell, y * y)
    many = count > 1
    within = np.sum((square[many] - total[many] ** 2 / count[many]) * count[many] / (count[many] - 1))
    assert 0.98 < within / count[many].sum() / best.raw < (1.08 if function == "smooth" else 1.05)
    assert best.raw < 0.95 * parents_only_error(model, "Y").raw
    assert best.standardized == pytest.approx(best.raw / y.var(), rel=0.03)


def test_a_categorical_child_tells_what_its_levels_tell() -> None:
    """Two levels with scores of plus and minus y: conditional variance of a normal weighted by a logistic, by a sum."""
    dag = pd.DataFrame([[0, 1.0], [0, 0]], index=["Y", "k"], columns=["Y", "k"])
    model = KnownWorld(dag, function="linear", categorical={"k": 2})
    t = np.linspace(-9, 9, 20_001)
    density = np.exp(-(t**2) / 2) / (1 + np.exp(-2 * t))
    density /= density.sum()
    assert best_error(model, "Y", 2000).raw == pytest.approx(density @ t**2 - (density @ t) ** 2, rel=1e-4)


def test_best_classifier_of_two_normal_groups() -> None:
    """Levels shift a child by plus and minus 1: the best rule is wrong with probability Phi(-1)."""
    dag = pd.DataFrame([[0, 1.0], [0, 0]], index=["k", "x"], columns=["k", "x"])
    best = best_classification(KnownWorld(dag, categorical={"k": 2}), "k", 50_000)
    assert best.error_rate == pytest.approx(0.15866, abs=0.003)
    t = np.linspace(-9, 9, 20_001)
    density = np.exp(-((t - 1) ** 2) / 2) / np.sqrt(2 * np.pi)
    expected = np.sum(density * np.log1p(np.exp(-2 * t))) * (t[1] - t[0])
    assert best.log_loss == pytest.approx(expected, abs=0.005)


def test_the_most_frequent_level_of_small_cells_is_wrong_about_as_often_as_the_best_classifier() -> None:
    """A cause, the target of three levels, a numeric and a categorical effect; frequencies of other rows."""
    names = ["a", "Y", "c", "d"]
    weights = [[0, 1.5, 0, 0], [0, 0, 1.0, 2.0], [0, 0, 0, 0], [0, 0, 0, 0]]
    dag = pd.DataFrame(weights, index=names, columns=names)
    model = KnownWorld(dag, categorical={"Y": 3, "d": 2}, random_state=2)
    best = best_classification(model, "Y", 30_000)
    rows = model.sample(300_000, 1)
    cell = cells(rows[["a", "c"]], 25) * 2 + rows["d"].cat.codes.to_numpy()
    levels = rows["Y"].cat.codes.to_numpy()
    half = len(rows) // 2
    frequency = np.zeros((cell.max() + 1, 3))
    np.add.at(frequency, (cell[:half], levels[:half]), 1)
    wrong = np.mean(frequency.argmax(axis=1)[cell[half:]] != levels[half:])
    assert best.error_rate - 0.003 < wrong < best.error_rate + 0.015
    shares = (frequency + 1) / (frequency.sum(axis=1, keepdims=True) + 3)
    log_loss = -np.mean(np.log(shares[cell[half:], levels[half:]]))
    assert best.log_loss - 0.005 < log_loss < best.log_loss + 0.03


def test_effects_without_noise_and_causes_without_noise() -> None:
    silent = KnownWorld(example_dag(), noise_std={"X8": 0.0})
    with pytest.raises(ValueError, match="noise_std of 'X8' is 0"):
        best_error(silent, "Y")
    assert best_error(silent, "X2", 2000).raw > 0.5
    assert best_error(KnownWorld(example_dag(), noise_std={"Y": 0.0}), "Y").raw == 0
    with pytest.raises(ValueError, match="is constant"):
        best_error(KnownWorld(example_dag(), noise_std=0.0), "X5")


def test_interventions_cut_what_the_other_columns_tell() -> None:
    model = KnownWorld(example_dag(), function="linear").do(X8=1.0, X9=0.0)
    assert best_error(model, "Y").raw == pytest.approx(1.0)
    with pytest.raises(ValueError, match=r"target='X8' is fixed at 1\.0"):
        best_error(model, "X8")


def test_noise_columns_change_no_floor() -> None:
    model = KnownWorld(example_dag())
    assert best_error(model.with_noise_columns(5), "Y", 5000).raw == pytest.approx(
        best_error(model, "Y", 5000).raw, rel=0.01
    )


def test_wrong_targets_are_refused_with_the_other_way() -> None:
    model = KnownWorld(example_dag(), categorical={"X1": 2})
    with pytest.raises(ValueError, match="'X1' is categorical: use best_classification"):
        best_error(model, "X1")
    with pytest.raises(ValueError, match="'Y' is numeric: use best_error"):
        best_classification(model, "Y")
    with pytest.raises(ValueError, match="'Z' is not a node"):
        best_error(model, "Z")


def test_noise_lost_in_rounding_is_refused() -> None:
    problem = random_problem(60, 10, function="linear", noise="laplace", branching=60, role="without_parents")
    with pytest.raises(ValueError, match="rounding hides its noise"):
        _ = problem.best_error
