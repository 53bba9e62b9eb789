"""The network of the paper's Figure 2: one sub-network per node, hidden layers shared by all.

:func:`forward` runs any subset of the sub-networks. A plain network has only the target's sub-network, and CASTLE
trains all of them. Sub-sampling trains the target's and a few others in each step, and prediction runs only the
target's. All functions work on one network; use ``vmap`` for a stack. :func:`forward` accepts NumPy arrays as well as
JAX arrays, so fitted models predict without compilation.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy.special
from jax import Array
from numpy.typing import NDArray

from castlereg.layout import Layout
from castlereg.random_streams import OfNetwork, network_stream

InputInit = Literal["small", "glorot"]
ActivationName = Literal["relu", "silu"]
_LayerHook = Callable[[int, Array], Array]

WAVES = 16  # waves of each embedded value
_SPREAD_OF_FREQUENCIES = 0.05  # initial: slow waves, almost linear within the usual range of a column
# Coefficients of cos(2 pi t) in powers of t squared, highest first; error below 8e-7 for t from -1/2 to 1/2.
_COSINE = (-21.0711056, 58.7904921, -85.2716215, 64.9286574, -19.7389804, 0.999999211)
_SPREAD_OF_LOGITS = np.pi / np.sqrt(3)  # standard deviation of the logistic distribution


class Dense(NamedTuple):
    """A hidden layer shared by all sub-networks (eq. 3: ``W_m``, m = 2..M-1)."""

    weights: Array  # (in, out)
    bias: Array  # (out,)


@jax.tree_util.register_static
@dataclass(frozen=True)
class Activation:
    """Activation of hidden units: ``max(z, 0)`` or ``z / (1 + exp(-z))``."""

    name: ActivationName = "relu"

    def __call__(self, z: Array) -> Array:
        """Apply the activation to an array of any shape."""
        if isinstance(z, np.ndarray):
            return np.maximum(z, 0) if self.name == "relu" else np.asarray(z * scipy.special.expit(z))
        # The gradient of maximum is slower, because JAX splits it between ties.
        return jnp.where(z > 0, z, 0) if self.name == "relu" else z * jax.nn.sigmoid(z)


@jax.tree_util.register_static
@dataclass(frozen=True)
class Channels:
    """Indices of channels, constant at compile time."""

    indices: tuple[int, ...]


class Embedding(NamedTuple):
    """Additional inputs computed from the values of numeric columns: learned waves, mixed into a few inputs.

    From a plain number, a layer can form only linear functions with a few kinks; waves with learned frequencies add
    thresholds and bumps. In addition to ``x`` itself, each value ``x`` gives the inputs
    ``cos(2 pi (frequencies x + phases)) @ weights``. All inputs of a column belong to its node.
    """

    frequencies: Array  # (embedded nodes, waves)
    phases: Array  # (embedded nodes, waves)
    weights: Array  # (embedded nodes, waves, inputs of a node)
    channels: Channels  # of the embedded values


class Parameters(NamedTuple):
    """All weights of one network.

    In the linear form (no hidden layer, eq. 1) the input layer is also the output layer: its width is the layout's
    output width, ``hidden`` is empty and the output fields are None. Eq. 1 has no intercept, but ``input_bias`` acts as
    one, because classes need it. For standardized numeric columns its optimum is zero.
    """

    input_weights: Array  # (inputs, nodes, width), eq. 3: W_1^k is [:, k, :]
    input_bias: Array  # (nodes, width)
    hidden: tuple[Dense, ...]
    output_weights: Array | None  # (nodes, width, outputs), eq. 3: W_M^k
    output_bias: Array | None  # (nodes, outputs)
    embedding: Embedding | None = None  # shared by all sub-networks; without it, the inputs are the channels
    activation: Activation = Activation()


def select(parameters: Parameters, nodes: Array | NDArray[np.int64]) -> Parameters:
    """Return the sub-networks of some nodes, given by their positions on the node axis, with the shared layers."""
    return parameters._replace(
        input_weights=parameters.input_weights[:, nodes],
        input_bias=parameters.input_bias[nodes],
        output_weights=None if parameters.output_weights is None else parameters.output_weights[nodes],
        output_bias=None if parameters.output_bias is None else parameters.output_bias[nodes],
    )


def mask_inputs(parameters: Parameters, edge_mask: Array) -> Parameters:
    """Set the weights of forbidden edges to zero; the mask is :meth:`castlereg.layout.Layout.edge_mask`."""
    return parameters._replace(input_weights=parameters.input_weights * edge_mask[:, :, None])


def forward(parameters: Parameters, x: Array, nodes: Array | NDArray[np.int64] | None = None) -> Array:
    """Predict nodes from the channels of all others (eq. 3).

    Parameters
    ----------
    parameters : Parameters
        Weights, zero for forbidden edges, see :func:`mask_inputs`.
    x : array of shape (rows, channels)
        Standardized rows.
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
    z = input_layer(parameters, x)
    return z if parameters.output_weights is None else output_layer(parameters, hidden_units(parameters, z))


def hidden_units(parameters: Parameters, z: Array, activate: _LayerHook | None = None) -> Array:
    """Run the hidden layers, from the result of :func:`input_layer` to the units of the last one; the same shape.

    ``activate`` replaces the activation; it gets the number of a layer, from 0, and the outputs of its dense part.
    """
    rows, n_nodes = z.shape[:2]
    activate = activate or (lambda layer, z: parameters.activation(z))
    z = activate(0, z)
    for number, layer in enumerate(parameters.hidden, start=1):
        z = _plus_bias(z.reshape(rows * n_nodes, -1) @ layer.weights, layer.bias).reshape(rows, n_nodes, -1)
        z = activate(number, z)
    return z


def output_layer(parameters: Parameters, units: Array) -> Array:
    """Compute outputs, shape (rows, nodes, outputs), from the last hidden layer, shape (rows, nodes, width)."""
    matmul = units.__array_namespace__().matmul
    return matmul(units.swapaxes(0, 1), parameters.output_weights).swapaxes(0, 1) + parameters.output_bias


def _plus_bias(z: Array, bias: Array) -> Array:
    return z + bias if isinstance(z, np.ndarray) else _traced_plus_bias(z, bias)


@jax.custom_vjp
def _traced_plus_bias(z: Array, bias: Array) -> Array:
    """Add a bias. Its gradient is a product with ones, which on one core is faster than a sum over rows."""
    return z + bias


def _backward_bias(bias: Array, cotangent: Array) -> tuple[Array, Array]:
    rows = cotangent.shape[0]
    summed = jnp.ones((1, rows), cotangent.dtype) @ cotangent.reshape(rows, -1)
    return cotangent, summed.reshape(bias.shape)


_traced_plus_bias.defvjp(lambda z, bias: (z + bias, bias), _backward_bias)


def _network_inputs(embedding: Embedding | None, x: Array) -> Array:
    """Append the embedded inputs to the channels, shape (rows, channels) to (rows, inputs)."""
    if embedding is None:
        return x
    xp = x.__array_namespace__()
    values = x[:, np.array(embedding.channels.indices)]
    turns = values[:, :, None] * embedding.frequencies
    turns += embedding.phases
    waves = _wave(turns)
    mixed = xp.matmul(waves.swapaxes(0, 1), embedding.weights.astype(waves.dtype)).swapaxes(0, 1)
    return xp.concat([x, mixed.reshape(len(x), -1)], axis=1)


def _wave(turns: Array) -> Array:
    """Return ``cos(2 pi turns)``; a NumPy array of turns is overwritten."""
    if isinstance(turns, np.ndarray):
        # The cosine in float32 takes a fifth of the time; reducing the turns in float64 first keeps precision.
        turns -= np.rint(turns)
        turns *= 2 * np.pi
        return np.cos(turns.astype(np.float32))
    # XLA calls a library function for each cosine. A polynomial takes a fraction of the time.
    remainder = turns - jnp.round(turns)
    square = remainder * remainder
    value = jnp.full_like(square, _COSINE[0])
    for coefficient in _COSINE[1:]:
        value = value * square + coefficient
    return value


def input_layer(parameters: Parameters, x: Array) -> Array:
    """Run the first layer of every sub-network, shape (rows, channels) to (rows, nodes, width)."""
    inputs, n_nodes, width = parameters.input_weights.shape
    x = _network_inputs(parameters.embedding, x)
    z = (x @ parameters.input_weights.reshape(inputs, n_nodes * width)).reshape(x.shape[0], n_nodes, width)
    return _plus_bias(z, parameters.input_bias)


class Packed(NamedTuple):
    """Parameters as two arrays, so that a training step updates two arrays instead of one per layer."""

    input_weights: Array  # (inputs, nodes, width)
    rest: Array  # all others, concatenated


class Form(NamedTuple):
    """Architecture of a network in addition to its layout."""

    hidden_layer_sizes: tuple[int, ...]  # empty for the linear form
    activation: ActivationName = "relu"


def pack(parameters: Parameters) -> Packed:
    """Concatenate all parameters except the input weights."""
    xp = parameters.input_weights.__array_namespace__()
    rest = jax.tree.leaves(parameters._replace(input_weights=None))  # type: ignore[arg-type]
    return Packed(parameters.input_weights, xp.concatenate([array.ravel() for array in rest]))


def unpack(packed: Packed, form: Form, layout: Layout) -> Parameters:
    """Invert :func:`pack`; the arrays are views if the library supports them."""
    shapes = _shapes(form, layout, packed.input_weights.shape[1], packed.input_weights.shape[2])
    leaves, structure = jax.tree.flatten(shapes)
    ends = np.cumsum([leaf.size for leaf in leaves])
    arrays = [packed.rest[end - leaf.size : end].reshape(leaf.shape) for end, leaf in zip(ends, leaves, strict=True)]
    parameters: Parameters = jax.tree.unflatten(structure, arrays)
    return parameters._replace(input_weights=packed.input_weights)


def _shapes(form: Form, layout: Layout, nodes: int, width: int) -> Any:
    """Return the shapes of the parameters in their structure; None for the input weights."""

    def shape(*lengths: int) -> Any:
        return jax.ShapeDtypeStruct(lengths, np.float32)

    sizes, outputs, n = form.hidden_layer_sizes, layout.output_width, len(layout.embedded_nodes)
    waves, mixed = shape(n, WAVES), shape(n, WAVES, layout.embedding)
    return Parameters(
        input_weights=None,  # type: ignore[arg-type]
        input_bias=shape(nodes, width),
        hidden=tuple(Dense(shape(i, o), shape(o)) for i, o in itertools.pairwise(sizes)),
        output_weights=shape(nodes, sizes[-1], outputs) if sizes else None,
        output_bias=shape(nodes, outputs) if sizes else None,
        embedding=Embedding(waves, waves, mixed, _value_channels(layout)) if n else None,
        activation=Activation(form.activation),
    )


def _value_channels(layout: Layout) -> Channels:
    """Return the channels whose values are embedded."""
    return Channels(tuple(int(layout.output_channels[k, 0]) for k in layout.embedded_nodes))


def squared_adjacency(input_weights: Array, layout: Layout) -> Array:
    """Return the squared weight of every edge, ``A = M * M`` (eq. 7), shape (inputs, nodes, width) to (nodes, nodes).

    ``A[j, k]`` is the sum of the squares of all weights from the inputs of node j into the sub-network of node k.
    Its square root ``M`` is never computed: for a masked row, the gradient of the root would be 0/0.
    """
    # Edge weights above 1e12 count as 1e12, to keep their squares within float32.
    xp = input_weights.__array_namespace__()
    by_input = xp.minimum(xp.sum(input_weights * input_weights, axis=-1), 1e24)
    if layout.n_inputs == layout.n_nodes:
        return by_input
    membership = (layout.input_nodes == np.arange(layout.n_nodes)[:, None]).astype(by_input.dtype)
    return membership @ by_input


def absolute(weights: Array) -> Array:
    """Return the absolute value of every weight, with gradient zero at zero, where that of JAX is one.

    A weight that is held at zero, such as those of monotone columns, then stays at zero unless the loss moves it.
    """
    return weights * weights.__array_namespace__().sign(weights)


def root(squares: Array) -> Array:
    """Return square roots, of any shape, with slope zero at zero, where that of a masked edge would be 0/0."""
    present = squares > 0
    return jnp.where(present, jnp.sqrt(jnp.where(present, squares, 1.0)), 0.0)


def edge_weights(input_weights: NDArray[Any], layout: Layout, *, linear: bool = False) -> NDArray[np.float64]:
    """Return the weight of every edge, the paper's ``M``, shape (nodes, nodes), on a common scale for all kinds.

    The sub-network of a binary or categorical node returns logits, whose noise has a standard deviation of
    ``pi / sqrt(3)``, while that of a standardized column is at most 1. Weights into such nodes are divided by this
    number, or by its root if an output layer has its part of the scale (not ``linear``). Otherwise these nodes would
    appear to be the effects of almost all of their neighbours. ``input_weights`` have shape (channels, nodes, width).

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
    activation: ActivationName = "relu",
) -> Parameters:
    """Draw the starting weights.

    Every node has its own random stream, and so do the shared layers. The weights of a sub-network therefore depend
    only on the seed and the node: a plain network and CASTLE with the same seed start from the same weights.

    Parameters
    ----------
    layout : Layout
    hidden_layer_sizes : tuple of int
        Widths of the hidden layers; empty for the linear form.
    seed : int or SeedSequence
    nodes : tuple of int, optional
        Sub-networks to create; all by default.
    input_init : {"small", "glorot"}
        Distribution of the input weights: normal with standard deviation 0.01, which CASTLE needs, or Glorot uniform.
    activation : {"relu", "silu"}
        Activation of the hidden units.
    """
    seed = seed if isinstance(seed, np.random.SeedSequence) else np.random.SeedSequence(seed)
    nodes = tuple(range(layout.n_nodes)) if nodes is None else nodes
    width = hidden_layer_sizes[0] if hidden_layer_sizes else layout.output_width
    last = hidden_layer_sizes[-1] if hidden_layer_sizes else 0
    inputs = np.empty((layout.n_inputs, len(nodes), width), np.float32)
    outputs = np.empty((len(nodes), last, layout.output_width), np.float32)
    for position, node in enumerate(nodes):
        rng = network_stream(seed, OfNetwork.SUB_NETWORK, node_stream(layout, node))
        if input_init == "small":
            inputs[:, position] = 0.01 * rng.standard_normal((layout.n_inputs, width), np.float32)
        else:
            inputs[:, position] = glorot(rng, layout.n_inputs, width)
        if hidden_layer_sizes:
            outputs[position] = glorot(rng, *outputs.shape[1:])
    inputs *= layout.edge_mask()[:, list(nodes), None]

    rng = network_stream(seed, OfNetwork.SHARED_LAYERS, 1)
    hidden: list[Any] = [
        (glorot(rng, i, o), np.zeros(o, np.float32)) for i, o in itertools.pairwise(hidden_layer_sizes)
    ]
    fields: dict[str, Any] = {
        "input_weights": inputs,
        "input_bias": np.zeros((len(nodes), width), np.float32),
        "hidden": tuple(Dense(*layer) for layer in hidden),
        "output_weights": outputs if hidden_layer_sizes else None,
        "output_bias": np.zeros((len(nodes), layout.output_width), np.float32) if hidden_layer_sizes else None,
        "embedding": _start_embedding(layout, network_stream(seed, OfNetwork.SHARED_LAYERS, 0)),
        "activation": Activation(activation),
    }
    return Parameters(**fields)


def _start_embedding(layout: Layout, rng: np.random.Generator) -> Embedding | None:
    """Draw slow waves with random phases, and their mixture."""
    if not len(layout.embedded_nodes):
        return None
    shape = (len(layout.embedded_nodes), WAVES)
    start: list[Any] = [
        _SPREAD_OF_FREQUENCIES * rng.standard_normal(shape, np.float32),
        rng.random(shape, np.float32),
        rng.standard_normal((*shape, layout.embedding), np.float32) / np.float32(np.sqrt(WAVES)),
    ]
    return Embedding(start[0], start[1], start[2], _value_channels(layout))


def node_stream(layout: Layout, node: int) -> int:
    """Return the stream number of a node; targets come first, to be independent of the number of features."""
    return (node - layout.n_features) % layout.n_nodes


def glorot(rng: np.random.Generator, fan_in: int, fan_out: int) -> NDArray[np.float32]:
    """Draw Glorot uniform weights, with limit ``sqrt(6 / (fan_in + fan_out))``."""
    limit = np.float32(np.sqrt(6.0 / (fan_in + fan_out)))
    return (2 * rng.random((fan_in, fan_out), np.float32) - 1) * limit


def target_outputs(parameters: Parameters, x: Array, layout: Layout) -> Array:
    """Predict the targets, shape (rows, targets, outputs), from all sub-networks or only those of the targets."""
    first = parameters.input_weights.shape[1] - len(layout.targets)
    return forward(parameters, x, first + np.arange(len(layout.targets)))
