"""Batch normalization: centre and scale the units of every hidden layer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from castlereg.layout import Layout
from castlereg.network import Dense, Parameters
from castlereg.options import check_share
from castlereg.regularizers.protocol import Own, Regularizer

# Keeps a rare row from inflating units that hardly vary in most batches. With 1e-5, single networks became much worse
# (small start: diabetes 0.59 instead of 0.57, Facebook 0.36 instead of 0.30 over five splits).
_EPSILON = 1e-3


class _Statistics(NamedTuple):
    """Running mean and variance of the units of a layer, and how many batches they are from."""

    mean: Array
    variance: Array
    batches: Array


class _Affine(NamedTuple):
    """The trained scale and shift of a layer's normalized units."""

    gamma: Array
    beta: Array


@dataclass(frozen=True)
class BatchNorm(Regularizer):
    """Normalize the outputs of every hidden dense layer by the mean and variance of the batch, before the ReLU.

    The input layers, one for each sub-network, are normalized over the rows; the shared layers over rows and
    sub-networks. Predictions use running statistics, which are folded into the weights after each epoch: the network
    that predicts has ordinary dense layers, and the prediction of a row never depends on other rows. A batch of a
    single row is normalized by the running statistics.

    Combined with CASTLE, it weakens the sparsity term, because the scale of the input layers no longer matters.

    Parameters
    ----------
    momentum : float
        Share of the running statistics that is kept after each batch.

    Examples
    --------
    >>> from castlereg import NetworkRegressor
    >>> model = NetworkRegressor([BatchNorm(0.9)], max_epochs=2, random_state=0).fit([[0], [1], [2], [3]], [0, 1, 2, 3])
    """

    momentum: float = 0.9

    needs_hidden_layers = True

    def __post_init__(self) -> None:
        check_share("BatchNorm's momentum", self.momentum)

    def start(
        self, layout: Layout, hidden_layer_sizes: tuple[int, ...], n_trained: int, rng: np.random.Generator
    ) -> Own:
        """Start with scale 1 and shift 0; with mean 0 and variance 1, which the first batch replaces."""
        first, *later = hidden_layer_sizes
        shapes = [(n_trained, first), *((width,) for width in later)]
        trained = tuple(_Affine(_full(1, shape), _full(0, shape)) for shape in shapes)
        return Own(trained, tuple(_Statistics(_full(0, s), _full(1, s), _full(0, s[:-1])) for s in shapes))

    def on_parameters(self, parameters: Parameters, drawn: tuple[()]) -> Parameters:
        """Fix the biases: normalization cancels them, and Adam would turn their rounding errors into steps."""
        fixed = jax.lax.stop_gradient
        return parameters._replace(
            input_bias=fixed(parameters.input_bias),
            hidden=tuple(layer._replace(bias=fixed(layer.bias)) for layer in parameters.hidden),
        )

    def on_dense(self, z: Array, layer: int, weight: Array, sampled: Array | None, own: Own) -> tuple[Array, Own]:
        """Normalize the units; update the running statistics."""
        nodes = sampled if layer == 0 else None  # only the input layers have statistics for each node
        gamma, beta = (_rows(array, nodes) for array in own.trained[layer])
        mean, variance, batches = (_rows(array, nodes) for array in own.running[layer])

        several = jnp.sum(weight > 0) > 1
        here = _moments(z, weight, over_nodes=layer > 0)
        here_mean, here_variance = (jnp.where(several, *pair) for pair in zip(here, (mean, variance), strict=True))
        normalized = (z - here_mean) / jnp.sqrt(here_variance + _EPSILON)

        # The plain mean of the first batches; later the running mean, with this momentum.
        keep = jnp.minimum(self.momentum, batches / (batches + 1))[..., None]
        moved = (keep * mean + (1 - keep) * here_mean, keep * variance + (1 - keep) * here_variance, batches + several)
        running = list(own.running)
        running[layer] = _Statistics(*(_put(a, nodes, b) for a, b in zip(running[layer], moved, strict=True)))
        return gamma * normalized + beta, own._replace(running=tuple(running))

    def folded(self, parameters: Parameters, own: Own) -> Parameters:
        """Fold the running statistics, the scales and the shifts into the dense layers."""
        factors, shifts = [], []
        for (gamma, beta), (mean, variance, _) in zip(own.trained, own.running, strict=True):
            factor = gamma / jnp.sqrt(variance + _EPSILON)
            factors.append(factor)
            shifts.append(beta - mean * factor)
        hidden = tuple(
            Dense(layer.weights * factor, layer.bias * factor + shift)
            for layer, factor, shift in zip(parameters.hidden, factors[1:], shifts[1:], strict=True)
        )
        return parameters._replace(
            input_weights=parameters.input_weights * factors[0],
            input_bias=parameters.input_bias * factors[0] + shifts[0],
            hidden=hidden,
        )


def _moments(z: Array, weight: Array, over_nodes: bool) -> tuple[Array, Array]:
    """Return the weighted mean and variance over the rows, and over the sub-networks if they share the layer."""
    share = (weight / jnp.sum(weight))[:, None, None]
    axes = (0, 1) if over_nodes else (0,)
    if over_nodes:
        share = share / z.shape[1]
    mean = jnp.sum(share * z, axis=axes)
    return mean, jnp.sum(share * (z - mean) ** 2, axis=axes)


def _full(value: float, shape: tuple[int, ...]) -> Any:
    return np.full(shape, value, np.float32)


def _rows(array: Array, nodes: Array | None) -> Array:
    return array if nodes is None else array[nodes]


def _put(array: Array, nodes: Array | None, values: Array) -> Array:
    return values if nodes is None else jnp.asarray(array).at[nodes].set(values)
