"""Signs of weights, and what they promise of random networks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import jax
import numpy as np
import pytest

from castlereg.layout import Layout, Node
from castlereg.monotone import keep_signs, weight_signs, with_signs
from castlereg.network import Parameters, initialize, mask_inputs, target_outputs
from castlereg.target_losses import Quantiles

NODES = (
    Node(monotone=1),
    Node(monotone=-1, missing=True),
    Node("binary", monotone=1),
    Node("categorical", 3),
    Node(extra=2, monotone=1),
    Node(),
    Node(target=True),
)
SIZES: list[tuple[int, ...]] = [(), (5,), (6, 7), (4, 3, 5)]


def random_network(layout: Layout, sizes: tuple[int, ...], seed: int) -> Parameters:
    """Weights of the usual size, and biases too."""
    rng = np.random.default_rng(seed)
    network = initialize(layout, sizes, seed)
    drawn: Parameters = jax.tree.map(lambda a: rng.normal(size=a.shape), network)
    return mask_inputs(with_signs(drawn, layout), layout.edge_mask())  # type: ignore[arg-type]


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("embedding", [0, 3])
def test_random_networks_are_monotone(sizes: tuple[int, ...], embedding: int) -> None:
    loss = Quantiles((0.1, 0.3, 0.5, 0.9))
    layout = Layout((*NODES[:-1], Node(target=True, loss=loss)), embedding)
    rng = np.random.default_rng(0)
    first = np.searchsorted(layout.channel_nodes, np.arange(layout.n_nodes))
    moved_by = 0
    for seed in range(20):
        network = random_network(layout, sizes, seed)
        x = rng.normal(size=(500, layout.n_channels))
        before = loss.meaning(target_outputs(network, x, layout))
        for k, node in enumerate(layout.nodes[:-1]):
            if not node.monotone:
                continue
            more = x.copy()
            more[:, first[k]] += rng.exponential(size=500)
            more[:, first[k] + 1 : first[k] + 1 + node.extra] = rng.normal(size=(500, node.extra))  # seasons
            change = node.monotone * (loss.meaning(target_outputs(network, more, layout)) - before)
            assert (change >= 0).all()
            moved_by += int((change > 0).sum())
    assert moved_by > 1000  # the columns have an influence


def test_columns_without_a_direction_are_free() -> None:
    layout = Layout(NODES)
    signs = weight_signs(initialize(layout, (6, 7), 0), layout)
    of_target = signs.input_weights[:, -1]
    free = [k for k, node in enumerate(layout.nodes) if not node.monotone]
    assert not of_target[np.isin(layout.channel_nodes, free)].any()
    assert not signs.input_weights[:, :-1].any(), "the sub-networks of columns may use any edge"
    assert not np.any(signs.input_bias) and not np.any(signs.output_bias)
    missing = np.flatnonzero(layout.is_input_only & (layout.channel_nodes == 1))
    assert not of_target[missing].any()
    np.testing.assert_array_equal(np.abs(signs.hidden[0].weights), 1)
    np.testing.assert_array_equal(signs.output_weights[-1][:, 0], [1, -1, 1, -1, 1, -1, 1])


def test_waves_and_seasons_of_monotone_columns_do_not_enter_the_target() -> None:
    layout = Layout(NODES, embedding=2)
    free = Layout(tuple(replace(node, monotone=0) for node in NODES), embedding=2)
    mask, of_free = layout.edge_mask(), free.edge_mask()
    np.testing.assert_array_equal(mask[:, :-1], of_free[:, :-1])
    lost = np.flatnonzero(mask[:, -1] != of_free[:, -1])
    seasons = np.flatnonzero((layout.channel_nodes == 4) & layout.is_input_only)
    embedded = layout.n_channels + np.flatnonzero(np.isin(layout.input_nodes[layout.n_channels :], [0, 1, 4]))
    np.testing.assert_array_equal(lost, np.r_[seasons, embedded])


def test_a_step_across_zero_ends_at_zero() -> None:
    layout = Layout((Node(monotone=1), Node(target=True)))
    network = initialize(layout, (2,), 0)
    weights = np.array([[[1.0, 1.0], [0.3, 0.4]], [[0.0, 0.0], [0.0, 0.0]]])
    moved: Any = keep_signs(network._replace(input_weights=weights), layout)  # type: ignore[arg-type]
    np.testing.assert_allclose(moved.input_weights[0], [[1.0, 1.0], [0.3, 0.0]])  # units are + and -
    plain = Layout((Node(), Node(target=True)))
    assert keep_signs(network, plain) is network and with_signs(network, plain) is network


@pytest.mark.parametrize("node", [{"kind": "categorical", "levels": 3}, {"target": True}])
def test_what_has_no_order_is_not_monotone(node: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="only features whose values have an order"):
        Node(**node, monotone=1)
