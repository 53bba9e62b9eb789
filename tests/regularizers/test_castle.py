"""CASTLE's switches, the capacity term, and the objective for the graph."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest

from castlereg.layout import Layout
from castlereg.losses import node_losses
from castlereg.network import forward
from castlereg.regularizers import Castle
from castlereg.regularizers.engine import regularized_loss
from tests.regularizers.cases import problem


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


def test_the_objective_for_the_graph_has_h_itself_with_its_factor(mixed_layout: Layout) -> None:
    at = {f: terms_of(Castle(0.3, 0.7, "graph", acyclicity_strength=f), mixed_layout) for f in (0.1, 1.0, 10.0)}
    h = at[1.0][1]["acyclicity"]
    np.testing.assert_allclose(h, np.sqrt(terms_of(Castle(), mixed_layout)[1]["acyclicity"]), rtol=1e-9)
    np.testing.assert_allclose(at[10.0][0] - at[0.1][0], 0.7 * (10 - 0.1) * h, rtol=1e-9)
    np.testing.assert_allclose(at[1.0][0] - at[0.1][0], 0.7 * (1 - 0.1) * h, rtol=1e-9)


def test_the_objective_for_the_graph_scores_columns_by_likelihood(mixed_layout: Layout) -> None:
    """And has a tenth of the capacity beside the sparsity."""
    one = problem(Castle(), mixed_layout, np.random.default_rng(3))
    total, terms = terms_of(Castle(0.3, 0.7, "graph"), mixed_layout)
    losses = np.asarray(node_losses(forward(one.parameters, one.batch.inputs), one.batch.truth, mixed_layout))
    numeric = mixed_layout.is_kind("numeric")
    scores = np.where(numeric, 0.5 * np.log(losses.mean(axis=0)), losses.mean(axis=0))
    np.testing.assert_allclose(terms["reconstruction"], scores.sum(), rtol=1e-5)
    size = terms["sparsity"] + 0.1 * terms["capacity"]
    expected = terms["supervised"] + 0.7 * (terms["reconstruction"] + terms["acyclicity"] + 0.3 * size)
    np.testing.assert_allclose(total, expected, rtol=1e-9)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"reg_beta": -1.0}, "reg_beta=-1.0 must be at least 0"),
        ({"acyclicity": "exmp"}, "acyclicity='exmp' is not one of .*; did you mean 'expm'?"),
        ({"sparsity": "l2"}, "sparsity='l2' is not one of"),
        ({"objective": "graphs"}, "objective='graphs' is not one of .*; did you mean 'graph'?"),
        ({"acyclicity_strength": -1.0}, "acyclicity_strength=-1.0 must be at least 0"),
        ({"objective": "graph", "sparsity": None}, "objective='graph' needs reconstruction, acyclicity and sparsity"),
        ({"objective": "graph", "features_per_step": 2}, "cannot be combined with features_per_step=2; set it to None"),
        ({"features_per_step": 0}, "features_per_step=0 must be a whole number of at least 1"),
    ],
)
def test_bad_options_are_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message.replace("?", r"\?")):
        Castle(**options)
