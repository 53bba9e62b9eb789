"""Terms, gradients and modules against those of JAX, training against the trainer, and CASTLE around a network."""

from __future__ import annotations

import copy
import math
import subprocess
import sys
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.typing import NDArray

from castlereg import castle as of_jax
from castlereg.acyclicity import trace_exponential as exponential_of_jax
from castlereg.layout import Layout, Node
from castlereg.losses import as_batch, cell_losses
from castlereg.network import Parameters, edge_weights, forward, initialize, mask_inputs
from castlereg.regularizers import Castle
from castlereg.table.encoding import Encoded, measure
from castlereg.target_losses import Poisson
from castlereg.training import Member, Phase, Plan, train
from castlereg.training.loop import BatchStream
from tests.small_problems import random_batch

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402  # needs torch

from castlereg import torch as castle_torch  # noqa: E402  # needs torch
from castlereg.torch import Batch, CastleNetwork, WrappedNetwork, castle_loss  # noqa: E402  # needs torch

torch.set_num_threads(1)  # tensors are small, and tests run side by side

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
CLASSES = Layout((*MISSING.nodes[:-1], Node("categorical", 5, target=True)))
TWO_TARGETS = Layout((Node(), Node("binary"), Node(target=True), Node("categorical", 3, target=True)))

CASES: list[tuple[Layout, tuple[int, ...], Any]] = [
    (NUMERIC, (6, 5, 4), "relu"),
    (MIXED, (), "relu"),
    (MISSING, (6, 5), "relu"),
    (CLASSES, (6, 5), "silu"),
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
    network = CastleNetwork(layout, sizes, activation=activation).to(precision)
    _copy_into(network, parameters)  # in full precision: modules start in PyTorch's default, float32
    rows = as_tensors(batch, precision)
    found, found_terms = castle_loss(network, rows, 0.3, 0.7, torch.tensor(units, dtype=precision))
    found.backward()
    assert found.dtype == precision
    close(found.detach(), total, tolerance)
    for name in TERMS:
        close(found_terms[name].detach(), terms[name], tolerance)
    pairs = _pairs(network, slope)
    assert {id(tensor) for tensor, _ in pairs} == {id(tensor) for tensor in network.parameters()}
    for tensor, expected in pairs:
        close(tensor.grad, expected, tolerance)


def as_tensors(batch: Any, dtype: Any) -> Any:
    return Batch(*(None if array is None else torch.tensor(np.asarray(array), dtype=dtype) for array in batch))


def _pairs(network: Any, parameters: Parameters) -> list[tuple[Any, Any]]:
    """Return every tensor of a network beside its array."""
    pairs: list[tuple[Any, Any]] = [
        (network.input_weights, parameters.input_weights),
        (network.input_bias, parameters.input_bias),
    ]
    for layer, dense in zip(network.hidden, parameters.hidden, strict=True):
        pairs += [(layer.weight, np.asarray(dense.weights).T), (layer.bias, dense.bias)]
    if parameters.output_weights is not None:
        pairs += [(network.output_weights, parameters.output_weights), (network.output_bias, parameters.output_bias)]
    return pairs


def _copy_into(network: Any, parameters: Parameters) -> None:
    with torch.no_grad():
        for tensor, array in _pairs(network, parameters):
            tensor.copy_(torch.tensor(np.asarray(array)))


def test_losses_of_some_nodes_are_those_of_jax() -> None:
    parameters, batch, units = problem(CLASSES, (6, 5), "relu", np.float32)
    arrays: Any = jax.tree.map(np.asarray, batch)
    outputs: Any = forward(parameters, arrays.inputs)
    expected: Any = cell_losses(outputs, arrays, CLASSES, null_loss=units)
    nodes = [1, 3, 4]
    rows = as_tensors(batch, torch.float32)
    found = castle_torch.cell_losses(torch.tensor(outputs[:, nodes]), rows, CLASSES, nodes, torch.tensor(units))
    close(found, expected[:, nodes], 1e-6)


def test_sparsity_leaves_required_edges_alone() -> None:
    weights = torch.randn(3, 3, 4, generator=torch.Generator().manual_seed(0))
    penalized = torch.ones(3, 3)
    penalized[0, 2] = 0
    without = weights.clone()
    without[0, 2] = 0
    torch.testing.assert_close(castle_torch.l1_norm(weights, penalized), without.abs().sum())


def test_any_acyclicity_function_can_be_given() -> None:
    weights = torch.randn(5, 5, 2, generator=torch.Generator().manual_seed(0))
    found = castle_torch.acyclicity_loss(weights, NUMERIC, lambda adjacency: adjacency[0, 1])
    torch.testing.assert_close(found, (weights[0, 1] ** 2).sum() ** 2)


def test_rows_that_are_taken_weigh_as_a_batch_of_their_own() -> None:
    x = torch.randn(8, 5, generator=torch.Generator().manual_seed(0))
    network = CastleNetwork(NUMERIC, (4,), seed=0)
    part = castle_loss(network, Batch.of_numbers(x).take([0, 3, 5]))[0]
    torch.testing.assert_close(part, castle_loss(network, Batch.of_numbers(x[[0, 3, 5]]))[0])


def test_adam_on_the_loss_is_the_trainer() -> None:
    """Ten steps in float64 from the same start with the same batches: every weight to nine digits."""
    rng, seed, sizes, epochs = np.random.default_rng(2), np.random.SeedSequence(7), (5, 4), 2
    x = rng.normal(2, 3, size=(37, 3))
    levels = np.eye(3)[np.digitize(5 * np.tanh(x[:, 0]) - x[:, 1], [-3, 1])]
    layout = Layout((Node(), Node(), Node(), Node("categorical", 3, target=True)))
    table, rows = Encoded(np.hstack([x, levels]), layout), np.arange(37)
    plan = Plan(sizes, (Phase(epochs),), learning_rate=0.01, batch_size=8, patience=9)
    with jax.enable_x64(True):
        trained = train(table, [Member(rows, rows, seed, (Castle(0.05, 0.7),))], plan)
    assert trained.best_epoch[0] == epochs

    by = measure(table, [rows])[0].take(0)
    network = CastleNetwork(layout, sizes, seed=seed).double()
    adam = torch.optim.Adam(network.parameters(), lr=0.01)
    weight: Any = np.full(37, 1 / 37)
    batch = as_tensors(as_batch(table.inputs, weight, by, layout), torch.float64)
    stream = BatchStream(rows.astype(np.int32), 8, seed)
    for _ in range(epochs):
        drawn = np.full((1, 5, 8), -1, np.int32)
        stream.fill_rows(drawn)
        for step in drawn[0]:
            loss, _ = castle_loss(network, batch.take(step[step >= 0].tolist()), 0.05, 0.7, torch.tensor(by.null_loss))
            adam.zero_grad()
            loss.backward()
            adam.step()
    for tensor, array in _pairs(network, jax.tree.map(lambda a: a[0], trained.parameters)):
        np.testing.assert_allclose(tensor.detach(), array, rtol=1e-8, atol=1e-9)
    moved = network.input_weights.detach().numpy() - initialize(layout, sizes, seed).input_weights
    assert np.abs(moved).max() > 0.05, "the steps should have gone somewhere"


# --- the acyclicity function -----------------------------------------------------------------------


def dense(p: int, scale: float) -> NDArray[np.float64]:
    return scale * np.random.default_rng(p).random((p, p)) * (1 - np.eye(p))


def ring(p: int, weight: float) -> NDArray[np.float64]:
    """One cycle through all nodes."""
    return weight * np.roll(np.eye(p), 1, axis=1)


MATRICES = {
    "none": np.zeros((20, 20)),
    "small": dense(20, 1e-3),
    "middling": dense(20, 0.2),
    "large": dense(20, 0.7),
    "long cycle": ring(12, 4.0),
    "far": dense(20, 20.0),
    "farther": dense(20, 1e20),
    "beyond": dense(20, 1.0) * 1e36,
}
OF_JAX = jax.jit(jax.value_and_grad(exponential_of_jax))


def value_and_gradient(matrix: NDArray[np.float64], dtype: Any) -> tuple[float, NDArray[np.float64]]:
    adjacency = torch.tensor(matrix, dtype=dtype, requires_grad=True)
    value = castle_torch.trace_exponential(adjacency)
    value.backward()
    return float(value.detach()), adjacency.grad.numpy().astype(np.float64)


@pytest.mark.parametrize("name", MATRICES)
def test_value_and_gradient_equal_those_of_jax(name: str) -> None:
    for precise, tolerance in ((False, 1e-5), (True, 1e-9)):
        with jax.enable_x64(precise):
            matrix = jnp.asarray(MATRICES[name])
            value, slope = OF_JAX(matrix)
        found, gradient = value_and_gradient(MATRICES[name], torch.float64 if precise else torch.float32)
        assert np.isfinite(found)
        np.testing.assert_allclose(found, value, rtol=tolerance)
        if name == "beyond":  # weights that the objective never passes on
            assert np.isfinite(gradient).all()
            continue
        np.testing.assert_allclose(gradient, slope, rtol=tolerance, atol=tolerance * float(np.abs(slope).max()))


@pytest.mark.parametrize("name", ["small", "middling", "large"])
def test_value_and_gradient_equal_the_matrix_exponential(name: str) -> None:
    found, gradient = value_and_gradient(MATRICES[name], torch.float64)
    exact = torch.matrix_exp(torch.tensor(MATRICES[name]))
    assert found == pytest.approx(float(exact.trace()) - len(exact), rel=1e-6)
    np.testing.assert_allclose(gradient, exact.T, rtol=1e-6, atol=1e-8)


def test_a_graph_without_cycles_has_exactly_zero() -> None:
    assert value_and_gradient(np.triu(dense(12, 3.0), 1), torch.float32)[0] == 0


def test_a_long_cycle_counts() -> None:
    """20 nodes, weight 8: the only closed walks have lengths 20, 40, ..."""
    found = value_and_gradient(ring(20, 8.0), torch.float64)[0]
    exact = 20 * sum(8.0**n / math.factorial(n) for n in range(20, 100, 20))
    assert found == pytest.approx(exact, rel=1e-9)


def test_weights_that_are_not_numbers_stay_so() -> None:
    assert np.isnan(value_and_gradient(np.full((3, 3), np.nan), torch.float32)[0])


# --- modules ---------------------------------------------------------------------------------------

WITH_MISSING = Layout((Node(missing=True), Node("binary"), Node("categorical", 3), Node(target=True)))
FORMS: list[tuple[tuple[int, ...], Any]] = [
    ((), {}),
    ((5,), {"activation": "silu"}),
    ((5, 4, 3), {"input_init": "glorot"}),
]


def random_inputs(layout: Layout, rows: int = 6) -> Any:
    return np.random.default_rng(0).normal(size=(rows, layout.n_channels)).astype(np.float32)


@pytest.mark.parametrize(("sizes", "options"), FORMS)
def test_starts_from_the_same_weights_and_gives_the_same_outputs(sizes: tuple[int, ...], options: Any) -> None:
    network, start = (
        CastleNetwork(WITH_MISSING, sizes, seed=3, **options),
        initialize(WITH_MISSING, sizes, seed=3, **options),
    )
    x = random_inputs(WITH_MISSING)
    expected: Any = forward(start, x)
    with torch.no_grad():
        found = network(torch.tensor(x))
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
        torch.testing.assert_close(network.target_outputs(torch.tensor(x)), found[:, -1:])
    weights: Any = start.input_weights
    np.testing.assert_allclose(network.edge_weights(), edge_weights(weights, WITH_MISSING, linear=not sizes), rtol=1e-6)


def test_own_channels_and_forbidden_edges_never_reach_the_output() -> None:
    allowed = np.ones((4, 4), bool)
    allowed[1, 3] = False
    network = CastleNetwork(WITH_MISSING, (5, 4), input_init="glorot", allowed=allowed)
    optimizer = torch.optim.Adam(network.parameters(), lr=0.1, weight_decay=0.1)
    x = torch.tensor(random_inputs(WITH_MISSING))
    network(x).square().sum().backward()
    optimizer.step()
    assert (network.edge_weights() == 0).tolist() == (np.eye(4, dtype=bool) | ~allowed).tolist()
    with torch.no_grad():
        before = network(x)
        for k in range(4):
            other = x.clone()
            other[:, WITH_MISSING.channel_nodes == k] = 1e3
            for j in range(4):
                assert torch.equal(network(other)[:, j], before[:, j]) == (j == k or (k, j) == (1, 3))


def test_neither_uses_nor_changes_the_random_state_of_torch() -> None:
    before = torch.get_rng_state()
    one = CastleNetwork(3, (4, 4), seed=5)
    assert torch.equal(torch.get_rng_state(), before)
    torch.rand(1)
    two = CastleNetwork(3, (4, 4), seed=5)
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), two.parameters(), strict=True))


def test_is_a_module_as_any_other() -> None:
    """State, copies, precision."""
    network, other = CastleNetwork(WITH_MISSING, (4, 4), seed=1), CastleNetwork(WITH_MISSING, (4, 4), seed=2)
    other.load_state_dict(network.state_dict())
    x = torch.tensor(random_inputs(WITH_MISSING))
    with torch.no_grad():
        assert torch.equal(other(x), network(x))
        assert torch.equal(copy.deepcopy(network)(x), network(x))
        torch.testing.assert_close(copy.deepcopy(network).double()(x.double()).float(), network(x))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"layout": 0}, "layout=0 must be a whole number of at least 1"),
        ({"layout": Layout((Node(), Node(target=True, loss=Poisson())))}, r"not Poisson\(\); use loss='squared'"),
        (
            {"layout": Layout((Node(monotone=1), Node(target=True)))},
            "do not support monotone columns; use an estim",
        ),
        ({"layout": Layout((Node(), Node(target=True)), embedding=2)}, "do not support embeddings; use an estimator"),
        ({"hidden_layer_sizes": "auto"}, "hidden_layer_sizes='auto' must be a sequence of widths"),
        ({"hidden_layer_sizes": (4, 0)}, "each width in hidden_layer_sizes=0"),
        ({"activation": "gelu"}, "activation='gelu' is not one of 'relu', 'silu'"),
    ],
)
def test_wrong_options_raise(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        CastleNetwork(**{"layout": 3, "hidden_layer_sizes": (4,), **options})


def test_inputs_of_another_width_raise() -> None:
    with pytest.raises(ValueError, match=r"x has shape \(2, 3\), but the network takes \(rows, 4\)"):
        CastleNetwork(3, (4,))(torch.zeros(2, 3))


# --- around your own network -----------------------------------------------------------------------


def mlp(inputs: int, hidden: list[int], outputs: int, activation: Any = nn.ReLU, dropout: float = 0.0) -> Any:
    """An MLP as torchvision builds it."""
    layers: list[Any] = []
    for width in hidden:
        layers += [nn.Linear(inputs, width), activation(), nn.Dropout(dropout)]
        inputs = width
    return nn.Sequential(*layers, nn.Linear(inputs, outputs), nn.Dropout(dropout))


@pytest.mark.parametrize("hidden", [[5], [6, 5, 4]])
def test_equals_a_castle_network_of_the_same_weights(hidden: list[int]) -> None:
    layout = Layout((Node(), Node("binary"), Node("categorical", 4), Node("categorical", 3, target=True)))
    network = mlp(layout.n_feature_channels, hidden, 3, activation=nn.SiLU)
    wrapped, same = WrappedNetwork(network, layout), CastleNetwork(layout, hidden, activation="silu")
    first, *between, last = (module for module in network if isinstance(module, nn.Linear))
    with torch.no_grad():
        same.input_weights.copy_(wrapped.masked_input_weights)
        same.input_bias.copy_(torch.cat([wrapped.input_bias, first.bias[None]]))
        for ours, theirs in zip(same.hidden, between, strict=True):
            ours.load_state_dict(theirs.state_dict())
        same.output_weights.zero_()[:-1] = wrapped.output_weights
        same.output_weights[-1, :, :3] = last.weight.T
        same.output_bias.zero_()[:-1] = wrapped.output_bias
        same.output_bias[-1, :3] = last.bias
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
    """The network itself learns the target, and the strongest edges join the columns that are related."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 6)).astype(np.float32)
    x[:, 1] = 0.9 * x[:, 0] + 0.3 * x[:, 1]
    x[:, 5] = np.tanh(x[:, 2]) - x[:, 3] + 0.2 * x[:, 5]
    rows = torch.tensor((x - x.mean(axis=0)) / x.std(axis=0))
    network = mlp(5, [16, 16], 1, dropout=0.05)
    wrapped = WrappedNetwork(network)
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
    weights = wrapped.edge_weights()
    strength = np.maximum(weights, weights.T)
    assert set(np.argsort(strength[5, :5])[-2:]) == {2, 3}
    assert strength[0].argmax() == 1
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
    with pytest.raises(ValueError, match="do not support embeddings"):
        WrappedNetwork(mlp(1, [4], 1), Layout((Node(), Node(target=True)), embedding=2))
    between = nn.Sequential(nn.Linear(3, 4), nn.LayerNorm(4), nn.ReLU(), nn.Linear(4, 1))
    assert WrappedNetwork(between)(torch.zeros(2, 4)).shape == (2, 4, 1)


# --- the package -----------------------------------------------------------------------------------


def test_the_estimators_do_not_load_pytorch() -> None:
    code = "import sys, castlereg; castlereg.CastleRegressor; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_without_pytorch_the_error_says_what_to_install() -> None:
    code = "import sys; sys.modules['torch'] = None; import castlereg.torch"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "ImportError: castlereg.torch needs the package torch: pip install 'castlereg[torch]'" in found.stderr
