"""The module against the network of JAX: the same weights, the same outputs, nothing through forbidden edges."""

from __future__ import annotations

import copy
from typing import Any

import jax
import numpy as np
import pytest

from castlereg.layout import Layout, Node
from castlereg.network import forward, initialize
from castlereg.target_losses import Poisson

torch = pytest.importorskip("torch")
from castlereg.torch import CastleNetwork  # noqa: E402  # needs torch

MIXED = (Node(missing=True), Node("binary"), Node("categorical", 3), Node(target=True))
FORMS: list[tuple[Layout, tuple[int, ...], Any]] = [
    (Layout(MIXED), (), {}),
    (Layout(MIXED), (5,), {"activation": "silu"}),
    (Layout(MIXED, embedding=2), (5, 4, 3), {"input_init": "glorot"}),
]


def random_inputs(layout: Layout, rows: int = 6) -> Any:
    return np.random.default_rng(0).normal(size=(rows, layout.n_channels)).astype(np.float32)


@pytest.mark.parametrize("targets_only", [False, True])
@pytest.mark.parametrize(("layout", "sizes", "options"), FORMS)
def test_starts_from_the_same_weights_and_gives_the_same_outputs(
    layout: Layout, sizes: tuple[int, ...], options: dict[str, Any], targets_only: bool
) -> None:
    network = CastleNetwork(layout, sizes, seed=3, targets_only=targets_only, **options)
    start = initialize(layout, sizes, seed=3, nodes=layout.targets if targets_only else None, **options)
    jax.tree.map(np.testing.assert_array_equal, network.to_parameters(), start)
    assert network.to_parameters().activation == start.activation
    assert network.hidden_layer_sizes == sizes
    x = random_inputs(layout)
    expected: Any = forward(start, x)
    with torch.no_grad():
        found = network(torch.tensor(x))
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
        torch.testing.assert_close(network.target_outputs(torch.tensor(x)), found[:, -1:])
        if not targets_only:
            torch.testing.assert_close(network(torch.tensor(x), nodes=(1, 3)), found[:, [1, 3]])


@pytest.mark.parametrize(("layout", "sizes", "options"), FORMS)
def test_parameters_become_a_network_and_back(layout: Layout, sizes: tuple[int, ...], options: dict[str, Any]) -> None:
    start = CastleNetwork(layout, sizes, seed=3, **options).to_parameters()
    again = CastleNetwork.from_parameters(start, layout)
    jax.tree.map(np.testing.assert_array_equal, again.to_parameters(), start)
    np.testing.assert_array_equal(again.edge_mask, layout.edge_mask())


def test_own_channels_and_forbidden_edges_never_reach_the_output() -> None:
    layout = Layout(MIXED, embedding=2)
    allowed = np.ones((4, 4), bool)
    allowed[1, 3] = False
    network = CastleNetwork(layout, (5, 4), input_init="glorot", allowed=allowed)
    optimizer = torch.optim.Adam(network.parameters(), lr=0.1, weight_decay=0.1)
    x = torch.tensor(random_inputs(layout))
    network(x).square().sum().backward()
    optimizer.step()
    with torch.no_grad():
        before = network(x)
        for k in range(4):
            other = x.clone()
            other[:, layout.channel_nodes == k] = 1e3
            assert torch.equal(network(other)[:, k], before[:, k])
            assert k != 1 or torch.equal(network(other)[:, 3], before[:, 3])
            assert not torch.equal(
                network(other)[:, (k + 1) % 4 if k != 1 else 0], before[:, (k + 1) % 4 if k != 1 else 0]
            )
    masked = network.to_parameters()
    assert CastleNetwork.from_parameters(masked, layout).edge_mask.equal(network.edge_mask)


def test_neither_uses_nor_changes_the_random_state_of_torch() -> None:
    before = torch.get_rng_state()
    one = CastleNetwork(3, (4, 4), seed=5)
    assert torch.equal(torch.get_rng_state(), before)
    torch.rand(1)
    two = CastleNetwork(3, (4, 4), seed=5)
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), two.parameters(), strict=True))


def test_is_a_module_as_any_other() -> None:
    """State, copies, precision."""
    network = CastleNetwork(Layout(MIXED, embedding=2), (4, 4), seed=1)
    other = CastleNetwork(Layout(MIXED, embedding=2), (4, 4), seed=2)
    other.load_state_dict(network.state_dict())
    x = torch.tensor(random_inputs(network.layout))
    with torch.no_grad():
        assert torch.equal(other(x), network(x))
        assert torch.equal(copy.deepcopy(network)(x), network(x))
        torch.testing.assert_close(copy.deepcopy(network).double()(x.double()).float(), network(x))
    assert "nodes=4, hidden_layer_sizes=(4, 4)" in repr(network)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"layout": 0}, "layout=0 must be a whole number of at least 1"),
        ({"hidden_layer_sizes": "auto"}, "hidden_layer_sizes='auto' must be a sequence of widths"),
        ({"hidden_layer_sizes": (4, 0)}, "each width in hidden_layer_sizes=0"),
        ({"activation": "gelu"}, "activation='gelu' is not one of 'relu', 'silu'"),
        ({"names": ["a", "b"]}, "names must be 4 different names, one for each node"),
    ],
)
def test_wrong_options_raise(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        CastleNetwork(**{"layout": 3, "hidden_layer_sizes": (4,), **options})


def test_inputs_of_another_width_raise() -> None:
    with pytest.raises(ValueError, match=r"x has shape \(2, 3\), but the network takes \(rows, 4\)"):
        CastleNetwork(3, (4,))(torch.zeros(2, 3))


@pytest.mark.parametrize(
    "nodes, message",
    [
        ((Node(), Node(target=True, loss=Poisson())), r"not Poisson\(\); use loss='squared'"),
        ((Node(monotone=1), Node(target=True)), "modules do not support monotone columns; fit without monotone"),
    ],
)
def test_what_a_module_would_not_keep(nodes: tuple[Node, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        CastleNetwork(Layout(nodes), (3,))
