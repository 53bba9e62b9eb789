"""The graph of a module: acyclic, by the rules of the estimators."""

from __future__ import annotations

import numpy as np
import pytest

from castlereg.acyclicity.cut import acyclic_cut, weakest_strong_weight
from castlereg.layout import Layout, Node
from castlereg.network import edge_weights

torch = pytest.importorskip("torch")
from castlereg.torch import Batch, CastleNetwork, input_graph  # noqa: E402  # needs torch


@pytest.mark.parametrize("sizes", [(), (6, 5)])
def test_edges_are_the_strong_ones_without_cycles(sizes: tuple[int, ...]) -> None:
    layout = Layout((Node(), Node("binary"), Node("categorical", 3), Node(), Node(target=True)))
    network = CastleNetwork(layout, sizes, seed=1, input_init="glorot")
    weights = edge_weights(network.to_parameters().input_weights, layout, linear=not sizes)
    threshold = weakest_strong_weight(acyclic_cut(weights))
    expected = acyclic_cut(np.where(weights >= threshold, weights, 0.0))
    graph = input_graph(network)
    np.testing.assert_allclose(graph.weights, expected, rtol=1e-6)
    assert graph.names == ("x0", "x1", "x2", "x3", "y")
    assert graph.is_dag
    full = input_graph(network, list("abcde"), threshold=0.0)
    assert full.targets == ("e",)
    assert len(full.edges()) == 10  # all pairs, one direction each


def test_validation_rows_keep_a_column_that_the_target_needs() -> None:
    """Two columns with weak edges into the target: one that predicts it and one that does not."""
    network = CastleNetwork(3, (), seed=0)
    with torch.no_grad():
        network.input_weights.zero_()
        network.input_weights[0, 1] = network.input_weights[1, 2] = 2.0  # strong edges among the columns
        network.input_weights[0, 3], network.input_weights[1, 3] = 0.4, 0.01
    rng = np.random.default_rng(0)
    rows = torch.tensor(rng.normal(size=(50, 4)), dtype=torch.float32)
    rows[:, 3] = 0.4 * rows[:, 0]
    assert input_graph(network).parents("y") == []
    found = input_graph(network, validation=Batch.of_numbers(rows))
    assert found.parents("y") == ["x0"]
    assert found.threshold == pytest.approx(0.4)


def test_several_targets_and_names_of_the_network() -> None:
    layout = Layout((Node(), Node(target=True), Node(target=True)))
    assert input_graph(CastleNetwork(layout, (3,))).targets == ("y0", "y1")
    graph = input_graph(CastleNetwork(layout, (3,), names=["age", "height", "weight"]))
    assert graph.targets == ("height", "weight")


def test_a_plain_network_has_no_graph() -> None:
    with pytest.raises(ValueError, match="only the targets' sub-networks"):
        input_graph(CastleNetwork(2, (3,), targets_only=True))
