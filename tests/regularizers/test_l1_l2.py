"""The norms against a hand computation."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

from castlereg.layout import Layout, Node
from castlereg.losses import Batch
from castlereg.network import Dense, Parameters
from castlereg.regularizers import L1, L2, Castle
from castlereg.regularizers.engine import regularized_loss
from tests.regularizers.cases import problem

LAYOUT = Layout((Node(), Node(), Node(target=True)))
# One target, two hidden layers: weights that can be added up in the head. Biases are large, and free.
NETWORK = Parameters(
    input_weights=jnp.asarray([[[1.0, -2.0]], [[0.5, 0.0]], [[0.0, 0.0]]]),
    input_bias=jnp.asarray([[100.0, 100.0]]),
    hidden=(Dense(jnp.asarray([[3.0, 0.0], [0.0, -1.0]]), jnp.asarray([50.0, 50.0])),),
    output_weights=jnp.asarray([[[2.0], [-0.25]]]),
    output_bias=jnp.asarray([[7.0]]),
)
BATCH = Batch(jnp.ones((2, 3)), jnp.ones((2, 3, 1)), jnp.full(2, 0.5))


@pytest.mark.parametrize(
    ("regularizer", "name", "norm"),
    [
        (L1(0.1), "l1", 1 + 2 + 0.5 + 3 + 1 + 2 + 0.25),
        (L2(0.1), "l2", 1 + 4 + 0.25 + 9 + 1 + 4 + 0.0625),
    ],
)
def test_norm_of_every_dense_layer_without_biases(regularizer: L1 | L2, name: str, norm: float) -> None:
    total, (terms, _) = regularized_loss(NETWORK, BATCH, [regularizer], LAYOUT)
    np.testing.assert_allclose(terms[name], norm, rtol=1e-6)
    np.testing.assert_allclose(total, terms["supervised"] + 0.1 * norm, rtol=1e-6)


def test_composition_is_the_sum_of_the_parts(mixed_layout: Layout, rng: np.random.Generator) -> None:
    parts = [Castle(0.3, 0.7), L1(0.02), L2(0.05)]
    one = problem(parts[0], mixed_layout, rng)

    def loss(*regularizers: Castle | L1 | L2) -> float:
        # A Castle of strength zero asks for all sub-networks and adds nothing.
        all_nodes = [] if any(isinstance(r, Castle) for r in regularizers) else [Castle(0.0, 0.0)]
        return float(regularized_loss(one.parameters, one.batch, [*regularizers, *all_nodes], mixed_layout)[0])

    plain = loss()
    added = sum(loss(part) - plain for part in parts)
    np.testing.assert_allclose(loss(*parts) - plain, added, rtol=1e-5)


@pytest.mark.parametrize("make", [L1, L2])
def test_bad_strengths_are_named(make: type[L1] | type[L2]) -> None:
    with pytest.raises(ValueError, match=rf"{make.__name__}'s strength=-0.1 must be at least 0"):
        make(-0.1)
