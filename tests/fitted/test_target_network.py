"""Networks arranged for prediction, against the network as it is trained."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import jax
import numpy as np
import pytest

from castlereg.fitted.target_network import ROWS_OF_A_PRODUCT, TargetNetwork
from castlereg.layout import Layout, Node
from castlereg.network import WAVES, Parameters, forward, initialize, select

LAYOUT = Layout((Node(), Node("binary"), Node(), Node(target=True), Node("binary", target=True)))


def drawn(rng: np.random.Generator, embedding: int, sizes: tuple[int, ...], activation: Any) -> Parameters:
    """Draw the targets' sub-networks, in float64, of features only."""
    layout = replace(LAYOUT, embedding=embedding)
    nodes = select(initialize(layout, sizes, seed=0, activation=activation), np.array(layout.targets))
    parameters: Parameters = jax.tree.map(lambda a: rng.normal(size=a.shape) / 2, nodes)
    features = np.r_[: layout.n_feature_channels, layout.n_channels : layout.n_inputs]
    return parameters._replace(input_weights=parameters.input_weights[features])


@pytest.mark.parametrize("embedding", [0, 3])
@pytest.mark.parametrize("sizes", [(), (6,), (5, 7)])
@pytest.mark.parametrize("activation", ["relu", "silu"])
def test_outputs_are_those_of_the_network(
    rng: np.random.Generator, embedding: int, sizes: tuple[int, ...], activation: str
) -> None:
    parameters = drawn(rng, embedding, sizes, activation)
    x = rng.normal(size=(3 * ROWS_OF_A_PRODUCT, 3))
    x[0] *= 1e6  # waves of large values lose no digits
    expected: Any = forward(parameters, x)  # type: ignore[arg-type]
    found = TargetNetwork.of(parameters).outputs(x, {})
    size = np.abs(expected).max(axis=(1, 2), keepdims=True)
    size = np.maximum(size, np.median(size))  # rounding is relative to the terms of a sum, which may cancel
    np.testing.assert_allclose(found / size, expected / size, rtol=0, atol=2e-6 if embedding else 1e-13)


def test_columns_without_weights_have_no_waves(rng: np.random.Generator) -> None:
    parameters = drawn(rng, 3, (6,), "relu")
    weights = np.array(parameters.input_weights)
    weights[3:6] = 0  # of the first column that is embedded
    parameters = parameters._replace(input_weights=weights)  # type: ignore[arg-type]
    network = TargetNetwork.of(parameters)
    assert parameters.embedding is not None
    assert network.embedded == parameters.embedding.channels.indices[1:]
    assert network.of_waves.shape == (WAVES * len(network.embedded), 12)
    x = rng.normal(size=(ROWS_OF_A_PRODUCT, 3))
    np.testing.assert_allclose(network.outputs(x, {}), forward(parameters, x), rtol=1e-4, atol=1e-5)  # type: ignore[arg-type]


def test_networks_share_repeated_values(rng: np.random.Generator) -> None:
    x, repeated = rng.normal(size=(ROWS_OF_A_PRODUCT, 3)), {}  # type: ignore[var-annotated]
    first, second = (TargetNetwork.of(drawn(rng, 3, (6,), "relu")) for _ in range(2))
    alone = second.outputs(x, {})
    first.outputs(x, repeated)
    (values,) = repeated.values()
    np.testing.assert_array_equal(second.outputs(x, repeated), alone)
    assert values is repeated[second.embedded]
