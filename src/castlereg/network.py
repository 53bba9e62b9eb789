"""The network of the paper's Figure 2: one sub-network per node, hidden layers shared by all.

:func:`forward` runs any subset of the sub-networks. A plain network is the target's
sub-network alone; CASTLE trains all of them; sub-sampling trains the target's and a few
others each step; prediction runs the target's again. All functions work on one network;
``vmap`` them for a stack. :func:`forward` takes NumPy arrays as well as JAX arrays, so
that a fitted model predicts without compiling anything.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, Literal, NamedTuple, cast

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from castlereg.layout import Layout
from castlereg.random_streams import OfNetwork, network_stream

InputInit = Literal["small", "glorot"]
LayerHook = Callable[[int, Array], Array]

_SPREAD_OF_LOGITS = np.pi / np.sqrt(3)  # standard deviation of the logistic distribution


def _as_it_is(layer: int, z: Array) -> Array:
    return z


class Dense(NamedTuple):
    """A hidden layer shared by all sub-networks (eq. 3: ``W_m``, m = 2..M-1)."""

    weights: Array  # (in, out)
    bias: Array  # (out,)


class Parameters(NamedTuple):
    """All weights of one network.

    In the linear form (no hidden layer, eq. 1) the input layer is also the output layer: its width is
    the layout's output width, ``hidden`` is empty and the output fields are None. Eq. 1 has no
    intercept; ``input_bias`` is one all the same, because classes need it. For standardized
    columns its best value is zero.
    """

    input_weights: Array  # (channels, nodes, width), eq. 3: W_1^k is [:, k, :]
    input_bias: Array  # (nodes, width)
    hidden: tuple[Dense, ...]
    output_weights: Array | None  # (nodes, width, outputs), eq. 3: W_M^k
    output_bias: Array | None  # (nodes, outputs)


def select(parameters: Parameters, nodes: Array | NDArray[np.int64]) -> Parameters:
    """Keep the sub-networks of some nodes, given by their positions along the node axis; the shared layers stay."""
    return Parameters(
        parameters.input_weights[:, nodes],
        parameters.input_bias[nodes],
        parameters.hidden,
        None if parameters.output_weights is None else parameters.output_weights[nodes],
        None if parameters.output_bias is None else parameters.output_bias[nodes],
    )


def mask_inputs(parameters: Parameters, edge_mask: Array) -> Parameters:
    """Set the weights of forbidden edges to zero; the mask is :meth:`castlereg.layout.Layout.edge_mask`."""
    return parameters._replace(input_weights=parameters.input_weights * edge_mask[:, :, None])


def forward(parameters: Parameters, x: Array, nodes: Array | NDArray[np.int64] | None = None) -> Array:
    """Predict nodes from the channels of all others (eq. 3).

    Parameters
    ----------
    parameters : Parameters
        With weights of forbidden edges at zero, see :func:`mask_inputs`.
    x : array of shape (rows, channels)
        Standardized.
    nodes : array of int, optional
        Sub-networks to run; all by default.

    Returns
    -------
    array of shape (rows, nodes, outputs)
        Predicted values of numeric nodes, logits of binary and categorical ones.

    Examples
    --------
    >>> import numpy as np
    >>> from castlereg.layout import Layout, Node
    >>> layout = Layout((Node(), Node(), Node(target=True)))
    >>> parameters = initialize(layout, hidden_layer_sizes=(4, 4), seed=0)
    >>> x = np.ones((5, 3), np.float32)
    >>> forward(parameters, x).shape
    (5, 3, 1)
    >>> forward(parameters, x, nodes=np.array([2])).shape
    (5, 1, 1)
    """
    if nodes is not None:
        parameters = select(parameters, nodes)
    return after_input_layer(parameters, input_layer(parameters, x))


def after_input_layer(parameters: Parameters, z: Array) -> Array:
    """Run all layers but the first: from the result of :func:`input_layer` to that of :func:`forward`."""
    if parameters.output_weights is None:
        return z
    return output_layer(parameters, hidden_units(parameters, z))


def hidden_units(
    parameters: Parameters, z: Array, on_dense: LayerHook = _as_it_is, on_hidden: LayerHook = _as_it_is
) -> Array:
    """Run the hidden layers, from the result of :func:`input_layer` to the units of the last one; the same shape.

    The hooks take the number of a layer, from 0, and its units: ``on_dense`` changes them before the ReLU,
    ``on_hidden`` after it.
    """
    rows, n_nodes = z.shape[:2]
    z = on_hidden(0, _relu(on_dense(0, z)))
    for number, layer in enumerate(parameters.hidden, start=1):
        z = _plus_bias(z.reshape(rows * n_nodes, -1) @ layer.weights, layer.bias).reshape(rows, n_nodes, -1)
        z = on_hidden(number, _relu(on_dense(number, z)))
    return z


def output_layer(parameters: Parameters, units: Array) -> Array:
    """Turn units of the last hidden layer, shape (rows, nodes, width), into outputs, shape (rows, nodes, outputs)."""
    matmul = units.__array_namespace__().matmul
    return matmul(units.swapaxes(0, 1), parameters.output_weights).swapaxes(0, 1) + parameters.output_bias


def _relu(z: Array) -> Array:
    if isinstance(z, np.ndarray):
        return np.maximum(z, 0)
    return jnp.where(z > 0, z, 0)  # the gradient of maximum costs more: JAX shares it out between ties


def _plus_bias(z: Array, bias: Array) -> Array:
    return z + bias if isinstance(z, np.ndarray) else _traced_plus_bias(z, bias)


@jax.custom_vjp
def _traced_plus_bias(z: Array, bias: Array) -> Array:
    """Add a bias whose gradient is a product with ones: on a core, faster than the sum over rows it stands for."""
    return z + bias


def _forward_bias(z: Array, bias: Array) -> tuple[Array, Array]:
    return z + bias, bias


def _backward_bias(bias: Array, cotangent: Array) -> tuple[Array, Array]:
    rows = cotangent.shape[0]
    summed = jnp.ones((1, rows), cotangent.dtype) @ cotangent.reshape(rows, -1)
    return cotangent, summed.reshape(bias.shape)


_traced_plus_bias.defvjp(_forward_bias, _backward_bias)


def input_layer(parameters: Parameters, x: Array) -> Array:
    """Weigh the channels, shape (rows, channels), for every sub-network, shape (rows, nodes, width)."""
    channels, n_nodes, width = parameters.input_weights.shape
    z = (x @ parameters.input_weights.reshape(channels, n_nodes * width)).reshape(x.shape[0], n_nodes, width)
    return _plus_bias(z, parameters.input_bias)


class Packed(NamedTuple):
    """Parameters as two arrays: a training step then updates two arrays, not one per layer."""

    input_weights: Array  # (channels, nodes, width)
    rest: Array  # all others, end to end


def pack(parameters: Parameters) -> Packed:
    """Lay all parameters but the input weights end to end."""
    xp = parameters.input_weights.__array_namespace__()
    layers = [array for layer in parameters.hidden for array in layer]
    arrays = [parameters.input_bias, *layers, parameters.output_weights, parameters.output_bias]
    return Packed(parameters.input_weights, xp.concatenate([a.ravel() for a in arrays if a is not None]))


def unpack(packed: Packed, hidden_layer_sizes: tuple[int, ...], output_width: int) -> Parameters:
    """Undo :func:`pack`; the arrays are views where the library allows."""
    _, nodes, width = packed.input_weights.shape
    shapes: list[tuple[int, ...]] = [(nodes, width)]
    for fan_in, fan_out in itertools.pairwise(hidden_layer_sizes):
        shapes += [(fan_in, fan_out), (fan_out,)]
    if hidden_layer_sizes:
        shapes += [(nodes, hidden_layer_sizes[-1], output_width), (nodes, output_width)]
    ends = np.cumsum([int(np.prod(shape)) for shape in shapes])
    bias, *layers = (
        packed.rest[end - int(np.prod(shape)) : end].reshape(shape) for end, shape in zip(ends, shapes, strict=True)
    )
    if not hidden_layer_sizes:
        return Parameters(packed.input_weights, bias, (), None, None)
    hidden = tuple(Dense(w, b) for w, b in zip(layers[:-2:2], layers[1:-2:2], strict=True))
    return Parameters(packed.input_weights, bias, hidden, *layers[-2:])


def squared_adjacency(input_weights: Array, layout: Layout) -> Array:
    """Squared weight of every edge, ``A = M * M`` (eq. 7), shape (channels, nodes, width) to (nodes, nodes).

    ``A[j, k]`` is the sum of the squares of all weights from the channels of node j into the sub-network of node k.
    ``M`` itself, its square root, is never formed: the gradient of the root of a masked row would be 0/0.
    """
    # Edges past 1e12 count as 1e12, so that their squares stay inside float32.
    xp = input_weights.__array_namespace__()
    by_channel = xp.minimum(xp.sum(input_weights * input_weights, axis=-1), 1e24)
    if layout.n_channels == layout.n_nodes:
        return by_channel
    membership = (layout.channel_nodes == np.arange(layout.n_nodes)[:, None]).astype(by_channel.dtype)
    return membership @ by_channel


def edge_weights(input_weights: NDArray[Any], layout: Layout, *, linear: bool = False) -> NDArray[np.float64]:
    """Weight of every edge, the paper's ``M``, shape (nodes, nodes), in units that effects of all kinds share.

    The sub-network of a binary or categorical node says logits, in which chance has a standard deviation of
    ``pi / sqrt(3)``; in a standardized column it has at most 1. Weights into such nodes are divided by that, or, where
    an output layer carries its part of the larger scale, by the root of it. As they are, these nodes would seem to be
    the effects of nearly whatever they are joined to.

    Parameters
    ----------
    input_weights : array of shape (channels, nodes, width)
    layout : Layout
    linear : bool
        Whether there is no other layer.

    Examples
    --------
    >>> import numpy as np
    >>> from castlereg.layout import Layout, Node
    >>> layout = Layout((Node(), Node("binary"), Node(target=True)))
    >>> edge_weights(np.ones((3, 3, 4)), layout).round(2)[0]
    array([2.  , 1.49, 2.  ])
    """
    squares: Any = squared_adjacency(input_weights.astype(np.float64), layout)  # type: ignore[arg-type]
    unit = _SPREAD_OF_LOGITS if linear else _SPREAD_OF_LOGITS**0.5
    return np.asarray(np.sqrt(squares) / np.where(layout.is_kind("numeric"), 1.0, unit))


def initialize(
    layout: Layout,
    hidden_layer_sizes: tuple[int, ...],
    seed: int | np.random.SeedSequence,
    *,
    nodes: tuple[int, ...] | None = None,
    input_init: InputInit = "small",
) -> Parameters:
    """Draw the starting weights.

    Every node has its own random stream and the shared layers have one, so the weights of a sub-network depend only on
    the seed and the node: a plain network and CASTLE with the same seed start from the same weights.

    Parameters
    ----------
    layout : Layout
    hidden_layer_sizes : tuple of int
        Widths; empty for the linear form.
    seed : int or SeedSequence
    nodes : tuple of int, optional
        Sub-networks to make; all by default.
    input_init : {"small", "glorot"}
        Input layers start at normal with sd 0.01, which CASTLE needs, or at the usual Glorot-uniform scale.
    """
    seed = seed if isinstance(seed, np.random.SeedSequence) else np.random.SeedSequence(seed)
    nodes = tuple(range(layout.n_nodes)) if nodes is None else nodes
    width = hidden_layer_sizes[0] if hidden_layer_sizes else layout.output_width
    last = hidden_layer_sizes[-1] if hidden_layer_sizes else 0
    inputs = np.empty((layout.n_channels, len(nodes), width), np.float32)
    outputs = np.empty((len(nodes), last, layout.output_width), np.float32)
    for position, node in enumerate(nodes):
        rng = network_stream(seed, OfNetwork.SUB_NETWORK, node_stream(layout, node))
        if input_init == "small":
            inputs[:, position] = 0.01 * rng.standard_normal((layout.n_channels, width), np.float32)
        else:
            inputs[:, position] = glorot(rng, layout.n_channels, width)
        if hidden_layer_sizes:
            outputs[position] = glorot(rng, *outputs.shape[1:])
    inputs *= layout.edge_mask()[:, list(nodes), None]

    rng = network_stream(seed, OfNetwork.SHARED_LAYERS, 1)
    fields: dict[str, Any] = {
        "input_weights": inputs,
        "input_bias": np.zeros((len(nodes), width), np.float32),
        "hidden": tuple(
            Dense(cast(Any, glorot(rng, i, o)), cast(Any, np.zeros(o, np.float32)))
            for i, o in itertools.pairwise(hidden_layer_sizes)
        ),
        "output_weights": outputs if hidden_layer_sizes else None,
        "output_bias": np.zeros((len(nodes), layout.output_width), np.float32) if hidden_layer_sizes else None,
    }
    return Parameters(**fields)


def node_stream(layout: Layout, node: int) -> int:
    """Number the targets first, so that a target's random stream does not depend on the number of features."""
    return (node - layout.n_features) % layout.n_nodes


def glorot(rng: np.random.Generator, fan_in: int, fan_out: int) -> NDArray[np.float32]:
    """Draw weights of the usual scale: uniform with limit ``sqrt(6 / (fan_in + fan_out))``."""
    limit = np.float32(np.sqrt(6.0 / (fan_in + fan_out)))
    return (2 * rng.random((fan_in, fan_out), np.float32) - 1) * limit


def target_outputs(parameters: Parameters, x: Array, layout: Layout) -> Array:
    """Predict the targets, shape (rows, targets, outputs), with all sub-networks or with only those of the targets."""
    first = parameters.input_weights.shape[1] - len(layout.targets)
    return forward(parameters, x, first + np.arange(len(layout.targets)))
