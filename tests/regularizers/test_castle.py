"""CASTLE's switches, its norms, and its options."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from castlereg.layout import Layout
from castlereg.regularizers import Castle
from castlereg.regularizers.engine import regularized_loss
from tests.regularizers.cases import problem
from tests.small_problems import numeric_layout


def terms_of(castle: Castle, layout: Layout) -> tuple[float, dict[str, float]]:
    """In float64: the acyclicity term is large here, and differences of totals would be lost in its rounding."""
    with jax.enable_x64(True):
        one = problem(castle, layout, np.random.default_rng(3), dtype=np.float64)
        total, (terms, _) = regularized_loss(one.parameters, one.batch, [castle], layout)
    return float(total), {name: float(value) for name, value in terms.items()}


@pytest.mark.parametrize(
    ("switch", "term"),
    [
        ({"reconstruction": False}, "reconstruction"),
        ({"acyclicity": None}, "acyclicity"),
        ({"sparsity": None}, "sparsity"),
    ],
)
def test_a_switch_takes_out_its_term_and_nothing_else(mixed_layout: Layout, switch: dict[str, Any], term: str) -> None:
    whole, terms = terms_of(Castle(0.3, 0.7), mixed_layout)
    without, left = terms_of(Castle(0.3, 0.7, **switch), mixed_layout)
    assert set(terms) - set(left) == {term}
    weight = {"reconstruction": 0.7, "acyclicity": 0.7, "sparsity": 0.7 * 0.3}[term]
    np.testing.assert_allclose(whole - without, weight * terms[term], rtol=1e-9)


def test_only_sparsity_is_an_l1_penalty_on_the_targets_input_layer(mixed_layout: Layout) -> None:
    castle = Castle(0.3, 2.0, reconstruction=False, acyclicity=None)
    assert not castle.needs_all_nodes
    one = problem(castle, mixed_layout, np.random.default_rng(3))
    total, terms = terms_of(castle, mixed_layout)
    assert one.parameters.input_weights.shape[1] == 1
    norm = np.abs(np.asarray(one.parameters.input_weights)).sum()
    np.testing.assert_allclose(total, terms["supervised"] + 2.0 * 0.3 * norm, rtol=1e-6)


def test_capacity_is_the_sum_of_squares_behind_the_input_layer(mixed_layout: Layout) -> None:
    castle = Castle(0.3, 0.7, capacity=True)
    one = problem(castle, mixed_layout, np.random.default_rng(3))
    whole, terms = terms_of(castle, mixed_layout)
    later = [one.parameters.hidden[0].weights, one.parameters.output_weights]
    expected = sum((np.asarray(weights, np.float64) ** 2).sum() for weights in later)
    np.testing.assert_allclose(terms["capacity"], expected, rtol=1e-6)
    np.testing.assert_allclose(whole - terms_of(Castle(0.3, 0.7), mixed_layout)[0], 0.7 * 0.3 * expected, rtol=1e-6)


def test_the_group_norm_has_no_nan_gradient_and_leaves_required_edges_alone(rng: np.random.Generator) -> None:
    layout = numeric_layout(3)
    castle = Castle(1.0, reconstruction=False, acyclicity=None, sparsity="group")
    one = problem(castle, layout, rng)
    penalized = np.ones((4, 1), np.float32)
    penalized[1] = 0

    def sparsity(weights: Any) -> Any:
        parameters = one.parameters._replace(input_weights=weights)
        arguments = {"penalized": jnp.asarray(penalized)}
        return regularized_loss(parameters, one.batch, [castle], layout, **arguments)[1][0]["sparsity"]

    norms = np.linalg.norm(np.asarray(one.parameters.input_weights)[:, 0], axis=1)
    np.testing.assert_allclose(sparsity(one.parameters.input_weights), norms[0] + norms[2], rtol=1e-6)
    assert norms[3] == 0 and np.isfinite(jax.grad(sparsity)(one.parameters.input_weights)).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"reg_beta": -1.0}, "reg_beta=-1.0 must be at least 0"),
        ({"acyclicity": "exmp"}, "acyclicity='exmp' is not one of .*; did you mean 'expm'?"),
        ({"sparsity": "l2"}, "sparsity='l2' is not one of"),
        ({"features_per_step": 0}, "features_per_step=0 must be a whole number of at least 1"),
    ],
)
def test_bad_options_are_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message.replace("?", r"\?")):
        Castle(**options)
