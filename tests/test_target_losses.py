"""Losses of targets, against those of scikit-learn and against their definitions."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.metrics import mean_pinball_loss, mean_poisson_deviance

from castlereg.layout import Layout, Node
from castlereg.losses import Batch, cell_losses
from castlereg.table.encoding import Encoded, measure
from castlereg.target_losses import Huber, Poisson, Quantiles, TargetLoss, target_loss

LOSSES = [Huber(0.7), Poisson(), Quantiles((0.1, 0.4, 0.9))]


def targets_of(loss: TargetLoss, n_rows: int = 4000) -> np.ndarray:
    """Draw values that the loss is for, scaled as it says."""
    rng = np.random.default_rng(0)
    y = rng.poisson(3.0, n_rows).astype(np.float64) if isinstance(loss, Poisson) else rng.normal(5, 2, n_rows)
    center, spread = loss.center_and_spread(y, y.mean(), y.std())
    return (y - center) / spread


def test_huber_is_the_squared_error_near_and_straight_beyond() -> None:
    errors = np.array([-5.0, -0.5, 0.0, 0.7, 2.0])
    near, far = errors**2, 2 * 0.7 * np.abs(errors) - 0.7**2
    expected = np.where(np.abs(errors) <= 0.7, near, far)
    np.testing.assert_allclose(Huber(0.7).losses(errors[:, None], np.zeros(5)), expected)


def test_poisson_is_the_deviance_of_scikit_learn(rng: np.random.Generator) -> None:
    log_rates, counts = rng.normal(size=200), rng.poisson(2.0, 200).astype(np.float64)
    found = Poisson().losses(log_rates[:, None], counts).mean()
    assert found == pytest.approx(mean_poisson_deviance(counts, np.exp(log_rates)))


def test_quantiles_have_the_pinball_loss_of_scikit_learn(rng: np.random.Generator) -> None:
    loss = Quantiles((0.1, 0.4, 0.9))
    outputs, truth = rng.normal(size=(200, 3)), rng.normal(size=200)
    quantiles = loss.meaning(outputs)
    expected = np.mean([mean_pinball_loss(truth, q, alpha=a) for q, a in zip(quantiles.T, loss.levels, strict=True)])
    assert loss.losses(outputs, truth).mean() == pytest.approx(expected)


@pytest.mark.parametrize("levels", [(0.5,), (0.1, 0.9), (0.05, 0.2, 0.5, 0.8, 0.95), (0.6, 0.7, 0.8)])
def test_quantiles_never_cross(levels: tuple[float, ...], rng: np.random.Generator) -> None:
    outputs = rng.normal(scale=[[1.0], [100.0], [1e-8]], size=(1000, 3, len(levels)))
    quantiles = Quantiles(levels).meaning(outputs)
    assert quantiles.shape == outputs.shape
    assert (np.diff(quantiles, axis=-1) >= 0).all()
    middle = Quantiles(levels).middle
    np.testing.assert_array_equal(quantiles[..., middle], outputs[..., middle])


@pytest.mark.parametrize("loss", LOSSES)
def test_the_unit_is_what_the_best_constant_costs(loss: TargetLoss) -> None:
    y = targets_of(loss)
    constant = np.broadcast_to(loss.constant(y), (len(y), loss.n_outputs))
    unit = loss.null_loss(y)
    assert unit == pytest.approx(loss.errors(constant, y).mean())
    for other in (constant * 1.2 + 0.1, constant * 0.8 - 0.1):
        assert loss.errors(np.maximum(other, 0.01) if isinstance(loss, Poisson) else other, y).mean() > unit
    if isinstance(loss, Poisson):
        assert unit == pytest.approx(mean_poisson_deviance(y, np.full_like(y, y.mean())))


@pytest.mark.parametrize("loss", LOSSES)
def test_members_have_the_units_of_their_training_rows(loss: TargetLoss) -> None:
    y = targets_of(loss, 300)
    layout = Layout((Node(), Node("binary"), Node(target=True, loss=loss)))
    columns = [np.linspace(-1, 1, 300), np.arange(300) % 2, y]
    table = Encoded(np.column_stack(columns).astype(np.float32), layout, np.linspace(0.5, 1.5, 300).astype(np.float32))
    rows = [np.arange(200), np.arange(100, 300)]
    units = measure(table, rows)[0].null_loss
    assert units is not None
    for unit, of_member in zip(units, rows, strict=True):
        assert unit[2] == pytest.approx(loss.null_loss(y[of_member], np.linspace(0.5, 1.5, 300)[of_member]), rel=1e-4)
        assert unit[0] == 1 and unit[1] == pytest.approx(np.log(2), rel=1e-4)


@pytest.mark.parametrize("loss", LOSSES)
def test_a_target_beside_other_kinds(loss: TargetLoss, rng: np.random.Generator) -> None:
    """The columns keep their losses, whether all sub-networks are run or some."""
    layout = Layout((Node(), Node("binary"), Node("categorical", 3), Node(target=True, loss=loss)))
    plain = Layout((Node(), Node("binary"), Node("categorical", 3), Node(target=True)))
    width = layout.output_width
    assert width == max(3, loss.n_outputs) and layout.output_used[3].sum() == loss.n_outputs
    outputs = jnp.asarray(rng.normal(size=(50, 4, width)), jnp.float32)
    truth = rng.random(size=(50, 4, width)).astype(np.float32)
    truth[:, 2] = np.eye(width)[rng.integers(3, size=50)]
    batch = Batch(jnp.zeros((50, layout.n_channels)), jnp.asarray(truth), jnp.full(50, 1 / 50))
    losses = cell_losses(outputs, batch, layout)
    np.testing.assert_allclose(losses[:, :3], cell_losses(outputs, batch, plain)[:, :3])
    own = loss.losses(np.asarray(outputs, np.float64)[:, 3, : loss.n_outputs], truth[:, 3, 0].astype(np.float64))
    np.testing.assert_allclose(losses[:, 3], own, rtol=1e-5, atol=1e-6)
    for chosen in (jnp.array([0, 3]), jnp.array([3]), jnp.arange(4)):
        part = cell_losses(outputs[:, chosen], batch, layout, chosen)
        np.testing.assert_allclose(part, losses[:, chosen], rtol=1e-6)


def test_large_outputs_of_columns_leave_the_gradient_of_counts_finite() -> None:
    """Where only some sub-networks are run, the exponential of a column's output would overflow."""
    layout = Layout((Node(), Node(target=True, loss=Poisson())))
    batch = Batch(jnp.zeros((1, 2)), jnp.ones((1, 2, 1)), jnp.ones(1))

    def total(outputs: Any) -> Any:
        return cell_losses(outputs, batch, layout, jnp.array([0, 1])).sum()

    slope = jax.grad(total)(jnp.array([[[500.0], [0.5]]]))
    np.testing.assert_allclose(slope[0, :, 0], [2 * 499, 2 * (np.exp(0.5) - 1)], rtol=1e-5)


def test_the_scale_of_a_robust_loss_ignores_wild_values(rng: np.random.Generator) -> None:
    y = rng.normal(10, 2, 1000)
    y[:50] = 1e6
    center, spread = Huber().center_and_spread(y, y.mean(), y.std())
    assert center == pytest.approx(10, abs=0.3) and spread == pytest.approx(2, rel=0.2)


@pytest.mark.parametrize("usual", [0.0, 0.3])
def test_quartiles_that_are_equal_but_for_rounding_are_no_scale(usual: float) -> None:
    y = np.r_[np.full(80, usual), np.full(10, usual + 2**-54), np.ones(10)]
    assert Huber().center_and_spread(y, y.mean(), y.std()) == (usual, pytest.approx(y.std()))


@pytest.mark.parametrize(
    "levels, expected", [((0.1, 0.9), [0.5, 0.5]), ((0.1, 0.5, 0.9), [0, 1, 0]), ((0.2, 0.3), [0, 1]), ((0.7,), [1])]
)
def test_what_predict_returns_of_quantiles(levels: tuple[float, ...], expected: list[float]) -> None:
    loss = Quantiles(levels)
    np.testing.assert_array_equal(loss.shares, expected)
    level = float(loss.shares @ np.array(levels))
    found = loss.errors_of_predictions(np.array([1.0, -1.0]), np.array([0.0, 3.0]))
    np.testing.assert_allclose(found, [1 - level, 4 * level])


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: target_loss("hubber"), r"loss='hubber' must be one of 'squared', .* did you mean 'huber'"),
        (lambda: target_loss(3), r"loss=3 must be one of"),
        (lambda: Huber(0), r"delta=0 must be greater than 0"),
        (lambda: Quantiles((0.9, 0.1)), r"levels=\(0.9, 0.1\) must be in ascending order"),
        (lambda: Quantiles((0.5, 0.5)), r"must be in ascending order"),
        (lambda: Quantiles((0.1, 1.0)), r"each of levels=1.0 must be a fraction"),
        (lambda: Quantiles(()), r"levels=\(\) must be a sequence of numbers between 0 and 1"),
        (lambda: Quantiles(0.5), r"levels=0.5 must be a sequence of numbers"),  # type: ignore[arg-type]
        (lambda: target_loss(np.ones(3)), r"loss=array.* must be one of"),
        (lambda: Poisson().check(np.array([1.0, -2.0]), "y"), r"y has negative values, such as -2: loss='poisson'"),
        (lambda: Node(loss=Poisson()), r"only numeric targets can have their own loss"),
        (lambda: Node("binary", target=True, loss=Huber()), r"only numeric targets can have their own loss"),
    ],
)
def test_clear_errors(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()
