"""A network of one's own with CASTLE around it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from castlereg.layout import Layout, Node

torch = pytest.importorskip("torch")
from castlereg.torch import Batch, CastleNetwork, WrappedNetwork, castle_loss, input_graph  # noqa: E402  # needs torch

nn = torch.nn


def mlp(channels: int, hidden: list[int], outputs: int, dropout: float = 0.0, activation: Any = nn.ReLU) -> Any:
    """Build layers as torchvision's MLP does: linear, activation, dropout, ..., linear, dropout."""
    layers, width = [], channels
    torch.manual_seed(0)
    for size in hidden:
        layers += [nn.Linear(width, size), activation(), nn.Dropout(dropout)]
        width = size
    return nn.Sequential(*layers, nn.Linear(width, outputs), nn.Dropout(dropout))


@pytest.mark.parametrize(
    "layout", [Layout((Node(), Node("binary"), Node("categorical", 4), Node("categorical", 3, target=True)))]
)
@pytest.mark.parametrize("hidden", [[5], [6, 5, 4]])
def test_equals_a_castle_network_of_the_same_weights(layout: Layout, hidden: list[int]) -> None:
    network = mlp(layout.n_feature_channels, hidden, 3, activation=nn.SiLU)
    wrapped = WrappedNetwork(network, layout)
    same = CastleNetwork.from_parameters(wrapped.to_parameters(), layout)
    assert same.hidden_layer_sizes == tuple(hidden)
    x = torch.randn(7, layout.n_channels, generator=torch.Generator().manual_seed(1))
    truth = torch.rand(7, 4, 4, generator=torch.Generator().manual_seed(2))
    batch = Batch(x, truth, torch.full((7,), 1 / 7))
    torch.testing.assert_close(wrapped(x)[..., :3], same(x)[..., :3])
    torch.testing.assert_close(wrapped.masked_input_weights, same.masked_input_weights)
    (found, _), (expected, _) = castle_loss(wrapped, batch, 0.1, 0.5), castle_loss(same, batch, 0.1, 0.5)
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(wrapped.target_outputs(x)[:, 0, :3], network(x[:, : layout.n_feature_channels]))
    found.backward()
    assert all(tensor.grad is not None for tensor in wrapped.parameters())


def test_a_torchvision_style_mlp_trains() -> None:
    """The network itself learns the target, and the graph has the edges of the columns that are related."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 6)).astype(np.float32)
    x[:, 1] = 0.9 * x[:, 0] + 0.3 * x[:, 1]
    x[:, 5] = np.tanh(x[:, 2]) - x[:, 3] + 0.2 * x[:, 5]
    rows = torch.tensor((x - x.mean(axis=0)) / x.std(axis=0))
    network = mlp(5, [16, 16], 1, dropout=0.05)
    wrapped = WrappedNetwork(network, names=[*"abcde", "y"])
    before = [tensor.clone() for tensor in network.parameters()]
    optimizer = torch.optim.Adam(wrapped.parameters(), lr=0.01)
    order, losses = torch.Generator().manual_seed(0), []
    for _ in range(40):
        for step in torch.randperm(300, generator=order).split(50):
            loss, _ = castle_loss(wrapped, Batch.of_numbers(rows[step]), reg_beta=0.01)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        losses.append(float(loss.detach()))
    assert losses[-1] < 0.7 * losses[0]
    assert all(not torch.equal(a, b) for a, b in zip(before, network.parameters(), strict=True))
    graph = input_graph(wrapped, validation=Batch.of_numbers(rows[300:]))
    assert wrapped.training and network.training  # left in the mode that they were in
    assert {*graph.parents("y"), *graph.children("y")} == {"c", "d"}
    assert {*graph.parents("a"), *graph.children("a")} == {"b"}
    with torch.no_grad():
        error = ((network.eval()(rows[300:, :5])[:, 0] - rows[300:, 5]) ** 2).mean()
    assert float(error) < 0.15


@pytest.mark.parametrize(
    ("network", "message"),
    [
        (nn.Sequential(nn.ReLU(), nn.Linear(3, 1)), "must begin with nn.Linear"),
        (nn.Sequential(nn.Linear(3, 1)), r"for a linear model use CastleNetwork\(layout, \(\)\)"),
        (nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1), nn.Sigmoid()), r"ends with Sigmoid\(\); end it"),
        (nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 1)), "use nn.LayerNorm"),
        (nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2)), "maps 3 channels to 2 outputs"),
    ],
)
def test_networks_that_cannot_be_wrapped_raise(network: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        WrappedNetwork(network, Layout((Node(), Node(), Node(), Node(target=True))))


def test_other_things_that_cannot_be_wrapped_raise() -> None:
    with pytest.raises(TypeError, match="a Linear cannot be wrapped"):
        WrappedNetwork(nn.Linear(3, 1))
    with pytest.raises(ValueError, match="2 targets, but a wrapped network predicts one"):
        WrappedNetwork(mlp(1, [4], 1), Layout((Node(), Node(target=True), Node(target=True))))
    with pytest.raises(ValueError, match="the layout has an embedding"):
        WrappedNetwork(mlp(1, [4], 1), Layout((Node(), Node(target=True)), embedding=2))
    between = nn.Sequential(nn.Linear(3, 4), nn.LayerNorm(4), nn.ReLU(), nn.Linear(4, 1))
    wrapped = WrappedNetwork(between)
    assert wrapped(torch.zeros(2, 4)).shape == (2, 4, 1)
    with pytest.raises(ValueError, match="between the first and the last are LayerNorm"):
        wrapped.to_parameters()
