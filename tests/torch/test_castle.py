"""Terms, objective and gradients against those of JAX, and training against the trainer."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from castlereg import castle as of_jax
from castlereg.layout import Layout, Node
from castlereg.losses import as_batch, cell_losses
from castlereg.network import Parameters, forward, initialize, mask_inputs
from castlereg.regularizers import Castle
from castlereg.table.table import Table, measure
from castlereg.training import Member, Phase, Plan, train
from castlereg.training.sources import BatchStream
from tests.small_problems import random_batch

torch = pytest.importorskip("torch")
from castlereg import torch as ours  # noqa: E402  # needs torch

TERMS = ("supervised", "reconstruction", "acyclicity", "sparsity")
NUMERIC = Layout((*[Node()] * 4, Node(target=True)))
MIXED = Layout((Node(), Node("binary"), Node("categorical", 3), Node("categorical", 4), Node(target=True)))
MISSING = Layout(
    (
        Node(missing=True),
        Node("binary", missing=True),
        Node("categorical", 3, missing=True),
        Node(extra=2, missing=True),
        Node("binary", target=True),
    )
)
EMBEDDED = Layout((*MISSING.nodes[:-1], Node("categorical", 5, target=True)), embedding=3)
TWO_TARGETS = Layout((Node(), Node("binary"), Node(target=True), Node("categorical", 3, target=True)))

CASES: list[tuple[Layout, tuple[int, ...], Any]] = [
    (NUMERIC, (6, 5, 4), "relu"),
    (MIXED, (), "relu"),
    (MISSING, (6, 5), "relu"),
    (EMBEDDED, (6, 5), "silu"),
    (TWO_TARGETS, (6, 5), "relu"),
]


def problem(layout: Layout, sizes: tuple[int, ...], activation: Any, dtype: Any) -> tuple[Parameters, Any, Any]:
    """Random weights that also have cycles, a weighted batch with missing cells where they may be, and units."""
    rng = np.random.default_rng(1)
    start = initialize(layout, sizes, seed=0, activation=activation)
    parameters = jax.tree.map(lambda a: rng.normal(scale=0.3, size=a.shape).astype(dtype), start)
    parameters = mask_inputs(parameters, layout.edge_mask().astype(dtype))  # type: ignore[arg-type]
    batch = random_batch(layout, rng, rows=9, dtype=dtype)
    weight = rng.random(9)
    batch = batch._replace(weight=jnp.asarray(weight / weight.sum(), dtype))
    if layout.has_missing:
        observed = (rng.random((9, layout.n_nodes)) < 0.7) | [node.target for node in layout.nodes]
        batch = batch._replace(observed=jnp.asarray(observed, dtype))
    return parameters, batch, np.where(layout.is_kind("numeric"), 1.0, rng.uniform(0.5, 1.5, layout.n_nodes))


def close(found: Any, expected: Any, tolerance: float) -> None:
    """Compare numbers, in units of the largest."""
    found, expected = (np.asarray(a, np.float64) for a in (found, expected))
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance * max(np.abs(expected).max(), 1))


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float32, 1e-5), (np.float64, 1e-9)])
@pytest.mark.parametrize(("layout", "sizes", "activation"), CASES)
def test_objective_terms_and_gradients_equal_those_of_jax(
    layout: Layout, sizes: tuple[int, ...], activation: Any, dtype: Any, tolerance: float
) -> None:
    with jax.enable_x64(dtype is np.float64):
        parameters, batch, units = problem(layout, sizes, activation, dtype)

        def loss(parameters: Parameters) -> Any:
            masked = mask_inputs(parameters, jnp.asarray(layout.edge_mask(), dtype))
            return of_jax.castle_loss(masked, batch, layout, 0.3, 0.7, jnp.asarray(units, dtype))

        (total, terms), slope = jax.jit(jax.value_and_grad(loss, has_aux=True))(parameters)
        slope = jax.tree.map(np.asarray, slope)
        assert total.dtype == dtype
    precision = torch.float64 if dtype is np.float64 else torch.float32
    network = ours.CastleNetwork.from_parameters(parameters, layout).to(precision)
    _copy_into(network, parameters)  # in full precision: modules start in PyTorch's default, float32
    rows = ours.Batch.of_arrays(batch, precision)
    found, found_terms = ours.castle_loss(network, rows, 0.3, 0.7, torch.tensor(units, dtype=precision))
    found.backward()
    assert found.dtype == precision
    close(found.detach(), total, tolerance)
    for name in TERMS:
        close(found_terms[name].detach(), terms[name], tolerance)
    pairs = _pairs(network, slope)
    assert {id(tensor) for tensor, _ in pairs} == {id(tensor) for tensor in network.parameters()}
    for tensor, expected in pairs:
        close(tensor.grad, expected, tolerance)


def _pairs(network: Any, parameters: Parameters) -> list[tuple[Any, Any]]:
    """Return every tensor of a network beside its array."""
    pairs = [(network.input_weights, parameters.input_weights), (network.input_bias, parameters.input_bias)]
    for layer, dense in zip(network.hidden, parameters.hidden, strict=True):
        pairs += [(layer.weight, np.asarray(dense.weights).T), (layer.bias, dense.bias)]
    if parameters.output_weights is not None:
        pairs += [(network.output_weights, parameters.output_weights), (network.output_bias, parameters.output_bias)]
    if parameters.embedding is not None:
        names = ("frequencies", "phases", "weights")
        pairs += [(getattr(network.embedding, name), getattr(parameters.embedding, name)) for name in names]
    return pairs


def _copy_into(network: Any, parameters: Parameters) -> None:
    with torch.no_grad():
        for tensor, array in _pairs(network, parameters):
            tensor.copy_(torch.tensor(np.asarray(array)))


def test_losses_of_some_nodes_are_those_of_jax() -> None:
    parameters, batch, units = problem(EMBEDDED, (6, 5), "relu", np.float32)
    arrays: Any = jax.tree.map(np.asarray, batch)
    outputs: Any = forward(parameters, arrays.inputs)
    expected: Any = cell_losses(outputs, arrays, EMBEDDED, null_loss=units)
    nodes = [1, 3, 4]
    rows = ours.Batch.of_arrays(batch)
    found = ours.cell_losses(torch.tensor(outputs[:, nodes]), rows, EMBEDDED, nodes, torch.tensor(units))
    close(found, expected[:, nodes], 1e-6)


def test_sparsity_leaves_required_edges_alone() -> None:
    weights = torch.randn(3, 3, 4, generator=torch.Generator().manual_seed(0))
    penalized = torch.ones(3, 3)
    penalized[0, 2] = 0
    without = weights.clone()
    without[0, 2] = 0
    torch.testing.assert_close(ours.l1_norm(weights, penalized), without.abs().sum())


def test_any_acyclicity_function_can_be_given() -> None:
    weights = torch.randn(5, 5, 2, generator=torch.Generator().manual_seed(0))
    found = ours.acyclicity_loss(weights, NUMERIC, lambda adjacency: adjacency[0, 1])
    torch.testing.assert_close(found, (weights[0, 1] ** 2).sum() ** 2)


def test_rows_that_are_taken_weigh_as_a_batch_of_their_own() -> None:
    x = torch.randn(8, 5, generator=torch.Generator().manual_seed(0))
    network = ours.CastleNetwork(NUMERIC, (4,), seed=0)
    part = ours.castle_loss(network, ours.Batch.of_numbers(x).take([0, 3, 5]))[0]
    torch.testing.assert_close(part, ours.castle_loss(network, ours.Batch.of_numbers(x[[0, 3, 5]]))[0])


def test_a_plain_network_has_no_castle_loss() -> None:
    network = ours.CastleNetwork(3, (4,), targets_only=True)
    with pytest.raises(ValueError, match="has 1 of 4 sub-networks"):
        ours.castle_loss(network, ours.Batch.of_numbers(torch.zeros(2, 4)))


def test_adam_on_the_loss_is_the_trainer() -> None:
    """Ten steps in float64 from the same start with the same batches: every weight to nine digits."""
    rng, seed, sizes, epochs = np.random.default_rng(2), np.random.SeedSequence(7), (5, 4), 2
    x = rng.normal(2, 3, size=(37, 3))
    levels = np.eye(3)[np.digitize(5 * np.tanh(x[:, 0]) - x[:, 1], [-3, 1])]
    layout = Layout((Node(), Node(), Node(), Node("categorical", 3, target=True)), embedding=2)
    table, rows = Table(np.hstack([x, levels]), Layout(layout.nodes)), np.arange(37)
    plan = Plan(sizes, (Phase(epochs),), learning_rate=0.01, batch_size=8, patience=9, embedding=2)
    with jax.enable_x64(True):
        trained = train(table, [Member(rows, rows, seed, (Castle(0.05, 0.7),))], plan)
    assert trained.best_epoch[0] == epochs

    by = measure(table, [rows])[0].of_member(0)
    network = ours.CastleNetwork(layout, sizes, seed=seed).double()
    adam = torch.optim.Adam(network.parameters(), lr=0.01)
    weight: Any = np.full(37, 1 / 37)
    batch = ours.Batch.of_arrays(as_batch(table.inputs, weight, by, layout), torch.float64)
    stream = BatchStream(rows.astype(np.int32), 8, seed)
    for _ in range(epochs):
        drawn = np.full((1, 5, 8), -1, np.int32)
        stream.fill_rows(drawn)
        for step in drawn[0]:
            loss, _ = ours.castle_loss(
                network, batch.take(step[step >= 0].tolist()), 0.05, 0.7, torch.tensor(by.null_loss)
            )
            adam.zero_grad()
            loss.backward()
            adam.step()
    for tensor, array in _pairs(network, jax.tree.map(lambda a: a[0], trained.parameters)):
        np.testing.assert_allclose(tensor.detach(), array, rtol=1e-8, atol=1e-9)
    moved = network.to_parameters().input_weights - initialize(layout, sizes, seed).input_weights
    assert np.abs(moved).max() > 0.05, "the steps should have gone somewhere"
