"""Theorem 1 against computations by hand, and the steps of its proof against numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from scipy.integrate import quad
from scipy.linalg import expm
from scipy.stats import norm
from sklearn.exceptions import NotFittedError

from castlereg import CastleClassifier, CastleRegressor, CastleRegressorCV, NetworkRegressor, load, save
from castlereg.causal import example_dag, sample
from castlereg.network import forward
from castlereg_paper.bound import (
    GeneralizationBound,
    gaussian_kl,
    generalization_bound,
    layers_of,
    sharpness,
    squared_errors,
    sub_gaussian_factor,
)

matplotlib.use("Agg")


def _rows(n_rows: int, seed: int = 0) -> tuple[pd.DataFrame, pd.Series]:
    data = sample(example_dag(), n_rows, random_state=seed)
    return data.drop(columns="Y"), data["Y"]


@pytest.fixture(scope="module")
def castle() -> CastleRegressor:
    return CastleRegressor(n_members=10, max_epochs=25, random_state=0).fit(*_rows(200))


# --- the terms ---------------------------------------------------------------------------------------


def test_terms_equal_a_computation_by_hand(castle: CastleRegressor) -> None:
    X, y = _rows(200)
    bound = generalization_bound(castle, X, y, delta=0.1, gamma=3.0, s2=2.0, member=4)
    data = np.column_stack([X.to_numpy(), y.to_numpy()])
    network = castle.model_.networks
    encoded = (data - data.mean(axis=0)) / data.std(axis=0)
    x = (encoded - network.standardization.shift[4]) * network.standardization.scale[4]
    p: Any = network.parameters
    w1, b1 = np.asarray(p.input_weights[4], float), np.asarray(p.input_bias[4], float)
    w2, b2 = np.asarray(p.hidden[0].weights[4], float), np.asarray(p.hidden[0].bias[4], float)
    w3, b3 = np.asarray(p.output_weights[4], float), np.asarray(p.output_bias[4], float)
    d1 = len(data.T)
    errors, norms = np.zeros(len(x)), []
    for k in range(d1):
        units = np.maximum(np.maximum(x @ w1[:, k] + b1[k], 0) @ w2 + b2, 0)
        errors += (units @ w3[k, :, 0] + b3[k, 0] - x[:, k]) ** 2
        with_bias = np.zeros((d1 + 1, w1.shape[2] + 1))
        with_bias[:-1, :-1], with_bias[-1, :-1], with_bias[-1, -1] = w1[:, k], b1[k], 1
        norms.append(np.linalg.svd(with_bias, compute_uv=False)[0])
    with_bias = np.zeros((w2.shape[0] + 1, w2.shape[1] + 1))
    with_bias[:-1, :-1], with_bias[-1, :-1], with_bias[-1, -1] = w2, b2, 1
    norms.append(np.linalg.svd(with_bias, compute_uv=False)[0])
    norms.append(np.linalg.svd(np.vstack([w3[:, :, 0].T, b3[:, 0]]), compute_uv=False)[0])
    kappa, largest = max(norms), np.sqrt(1 + (x**2).sum(axis=1).max())
    r = (np.trace(expm((w1**2).sum(axis=2))) - d1) ** 2
    v1, v2 = np.abs(w1).sum(), (w2**2).sum() + (w3**2).sum() + sum((b**2).sum() for b in (b1, b2, b3))
    h = w1.shape[2] + 1
    zeta = 3 * largest * np.e * np.sqrt(2 * np.log(2 * np.e * h))
    c1 = (zeta * d1 * kappa**2 / 3.0) ** 2
    assert bound.empirical_loss == pytest.approx(errors.mean(), rel=1e-5)
    assert bound.acyclicity == pytest.approx(r, rel=1e-5)
    assert (bound.kappa, bound.largest_row) == (pytest.approx(kappa, rel=1e-6), pytest.approx(largest, rel=1e-5))
    assert (bound.depth, bound.width, bound.n_outputs, bound.n_rows) == (3, h, d1, 200)
    bracket = r + c1 * (v1 + v2) + np.log(8 / 0.1)
    assert bound.total == pytest.approx(4 * errors.mean() + 2 / 200 * bracket + 2.0 + 18.0, rel=1e-5)
    assert bound.as_printed == pytest.approx(4 * errors.mean() + 1 / 200 * bracket + 2.0 + 18.0, rel=1e-5)


def test_layers_without_biases_are_the_same_network(castle: CastleRegressor) -> None:
    parameters, batch = castle.standardized(*_rows(50, seed=3), member=2)
    layers = layers_of(parameters)
    x = np.column_stack([np.asarray(batch.inputs), np.ones(50)])
    outputs = []
    for k, first in enumerate(layers.inputs):
        units = np.maximum(x @ first, 0)
        for matrix in layers.shared:
            units = np.maximum(units @ matrix, 0)
        assert layers.output is not None
        outputs.append(units @ layers.output[:, k])
    np.testing.assert_allclose(np.column_stack(outputs), forward(parameters, batch.inputs)[:, :, 0], atol=1e-5)


def test_standardized_rows_give_the_predictions(castle: CastleRegressor) -> None:
    X, y = _rows(40, seed=5)
    one = CastleRegressor(max_epochs=3, random_state=0).fit(X, y)
    parameters, batch = one.standardized(X, y)
    error = np.asarray(forward(parameters, batch.inputs))[:, -1, 0] - np.asarray(batch.truth)[:, -1, 0]
    spread = float(y.std(ddof=0) / one.model_.networks.standardization.scale[0, -1])
    np.testing.assert_allclose(error * spread, one.predict(X) - y, atol=1e-4)


def test_a_plain_network_has_one_sub_network_and_no_cycles() -> None:
    X, y = _rows(100)
    bound = generalization_bound(NetworkRegressor(max_epochs=3, random_state=0).fit(X, y), X, y)
    assert (bound.n_outputs, bound.acyclicity) == (1, 0.0)


def test_linear_form() -> None:
    X, y = _rows(100)
    bound = generalization_bound(CastleRegressor(hidden_layer_sizes=(), max_epochs=3, random_state=0).fit(X, y), X, y)
    assert (bound.depth, bound.later_squares, bound.n_outputs) == (1, 0.0, 10)
    assert bound.c_1 == pytest.approx((bound.zeta * 10 / bound.gamma) ** 2)


def test_classes_count_by_the_squared_error_of_their_probabilities() -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=90), "b": rng.choice(["u", "v", "w"], 90), "c": rng.normal(size=90)})
    X.loc[::7, "c"] = np.nan
    y = np.where(X["a"] + rng.normal(size=90) > 0, "yes", "no")
    model = CastleClassifier(max_epochs=5, random_state=0).fit(X, y)
    parameters, batch = model.standardized(X, y)
    layout = model.model_.networks.layout
    together = squared_errors(parameters, batch, layout)
    brier = (model.predict_proba(X)[:, 1] - (y == "yes")) ** 2
    without = together - brier
    assert (without > -1e-6).all()
    gaps = np.asarray(batch.observed)[:, [node.missing for node in layout.nodes]]
    assert gaps.sum() == 90 - len(range(0, 90, 7))
    assert generalization_bound(model, X, y).total > together.mean()


def test_fold_networks_have_bounds_of_their_own() -> None:
    X, y = _rows(60)
    model = CastleRegressorCV([0.01], cv=2, max_epochs=2, random_state=0).fit(X, y)
    assert generalization_bound(model, X, y, member=0).total != generalization_bound(model, X, y, member=1).total


# --- the theorem and the steps of its proof ---------------------------------------------------------


def test_the_bound_is_above_the_loss_on_other_rows_for_twenty_networks(castle: CastleRegressor) -> None:
    X, y = _rows(200)
    strong = CastleRegressor(reg_beta=1.0, n_members=10, max_epochs=25, random_state=1).fit(X, y)
    for model in (castle, strong):
        for member in range(10):
            parameters, batch = model.standardized(*_rows(5000, seed=77), member=member)
            loss = squared_errors(parameters, batch, model.model_.networks.layout).mean()
            assert generalization_bound(model, X, y, member=member).total > loss


@pytest.mark.parametrize(("mean", "sigma"), [(0.7, 0.5), (-2.0, 1.3)])
def test_kl_step_against_an_integral(mean: float, sigma: float) -> None:
    ratio = lambda u: norm.logpdf(u, mean, sigma) - norm.logpdf(u, 0, sigma)  # noqa: E731
    integral = quad(lambda u: norm.pdf(u, mean, sigma) * ratio(u), mean - 12 * sigma, mean + 12 * sigma)[0]
    assert gaussian_kl([mean], sigma) == pytest.approx(integral, rel=1e-8)


def test_kl_step_against_draws() -> None:
    rng = np.random.default_rng(0)
    mean, sigma = rng.normal(size=30), 0.8
    drawn = mean + sigma * rng.standard_normal((100_000, 30))
    ratio = norm.logpdf(drawn, mean, sigma).sum(axis=1) - norm.logpdf(drawn, 0, sigma).sum(axis=1)
    assert gaussian_kl(mean, sigma) == pytest.approx(ratio.mean(), abs=5 * ratio.std() / np.sqrt(len(ratio)))


def test_last_step_of_eq_12_holds_only_for_small_weights(castle: CastleRegressor) -> None:
    X, y = _rows(200)
    bound = generalization_bound(castle, X, y)
    assert bound.kl_step_holds
    # A network with the same outputs but input weights 100 times as large: squares outgrow the l1 norm.
    large = GeneralizationBound(
        **{**vars(bound), "input_l1": 100 * bound.input_l1, "input_squares": 1e4 * bound.input_squares}
    )
    assert not large.kl_step_holds


@pytest.mark.parametrize("gamma", [0.01, 1.0, 50.0])
def test_perturbation_step_by_monte_carlo(castle: CastleRegressor, gamma: float) -> None:
    X, y = _rows(200)
    bound = generalization_bound(castle, X, y, gamma=gamma)
    parameters, batch = castle.standardized(X, y)
    mask = castle.model_.networks.layout.edge_mask()
    moved = sharpness(parameters, np.asarray(batch.inputs), bound.sigma, mask, n_draws=30)
    assert 0 < moved < gamma
    # The measure itself: a first-order expansion says it grows with the square of sigma.
    wider = sharpness(parameters, np.asarray(batch.inputs), 2 * bound.sigma, mask, n_draws=30)
    assert wider / moved == pytest.approx(4, rel=0.1)


# --- gamma, s^2 and the rest ------------------------------------------------------------------------


def test_gamma_is_the_best_power_of_two_and_pays_for_the_choice(castle: CastleRegressor) -> None:
    X, y = _rows(200)
    best = generalization_bound(castle, X, y)
    power = np.log2(best.gamma)
    assert power == round(power)
    assert best.price_of_gamma == pytest.approx(np.log(1.5 * (abs(power) + 1) * (abs(power) + 2)))
    for factor in (0.25, 0.5, 2.0, 4.0):
        given = generalization_bound(castle, X, y, gamma=factor * best.gamma)
        assert given.price_of_gamma == 0
        assert given.total > best.total - 2 / 200 * best.price_of_gamma
    powers = np.arange(-1000, 1000)
    assert np.sum(1 / (1.5 * (np.abs(powers) + 1) * (np.abs(powers) + 2))) == pytest.approx(1, abs=2e-3)


def test_sub_gaussian_factor() -> None:
    rng = np.random.default_rng(1)
    coin = rng.choice(
        [0.0, 1.0], size=10_000
    )  # Hoeffding: a quarter of the squared range, and no less than the variance
    assert sub_gaussian_factor(coin) == pytest.approx(0.25, rel=0.01)
    tailed = rng.standard_normal(2000) ** 2
    assert sub_gaussian_factor(tailed) > 1.5 * tailed.var()
    assert sub_gaussian_factor(np.full(10, 3.7)) == 0
    assert sub_gaussian_factor(100 * tailed) == pytest.approx(1e4 * sub_gaussian_factor(tailed), rel=1e-6)


def test_frame_adds_up_and_tells_what_it_is(castle: CastleRegressor) -> None:
    X, y = _rows(200)
    bound = generalization_bound(castle, X, y)
    frame = bound.to_frame()
    assert frame["adds"].iloc[:-1].sum() == pytest.approx(frame["adds"].iloc[-1])
    assert frame["share"].iloc[-1] == 1
    assert bound.constants()["c_2"] == bound.s2 + 6 * bound.gamma
    assert "probability 0.95" in str(bound)


def test_plot_has_a_bar_for_every_term(castle: CastleRegressor) -> None:
    X, y = _rows(200)
    bound = generalization_bound(castle, X, y)
    ax = bound.plot(test_loss=9.0)
    widths: NDArray[Any] = np.array([bar.get_width() + bar.get_x() for bar in ax.patches])  # type: ignore[attr-defined]
    assert len(widths) == 2 + sum(value > 0 for value in bound.parts.values())
    assert widths[0] == pytest.approx(bound.total)
    assert widths[-1] == pytest.approx(9.0)


def test_refuses(castle: CastleRegressor) -> None:
    X, y = _rows(30)
    with pytest.raises(ValueError, match="delta=2 must be a fraction"):
        generalization_bound(castle, X, y, delta=2)
    with pytest.raises(ValueError, match="gamma=0 "):
        generalization_bound(castle, X, y, gamma=0)
    with pytest.raises(ValueError, match="member=10 is out of range: the model has 10 networks"):
        generalization_bound(castle, X, y, member=10)
    with pytest.raises(NotFittedError):
        generalization_bound(CastleRegressor(), X, y)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        generalization_bound(castle, X, y[:10])


def test_a_loaded_model_has_the_same_bound(castle: CastleRegressor, tmp_path: Path) -> None:
    save(castle, tmp_path / "model.castle")
    bounds = [generalization_bound(model, *_rows(200)) for model in (castle, load(tmp_path / "model.castle"))]
    pd.testing.assert_frame_equal(bounds[0].to_frame(), bounds[1].to_frame())
