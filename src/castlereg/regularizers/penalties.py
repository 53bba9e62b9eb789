"""Regularizers that add a term to the loss: L1, L2, the supervised autoencoder, TANGOS, Deep Lasso."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from castlereg.castle import supervised_loss
from castlereg.layout import Layout
from castlereg.losses import cell_losses
from castlereg.network import Parameters, absolute, forward, glorot, hidden_units, input_layer, root, select
from castlereg.options import check_integer
from castlereg.regularizers.protocol import Own, Pass, Regularizer

_LEAST_NORM = 1e-6  # smallest divisor of attributions, which are zero for a unit whose ReLU is off


@dataclass(frozen=True)
class L1(Regularizer):
    """Add ``strength`` times the sum of the absolute weights of every dense layer to the loss, without biases.

    >>> from castlereg import NetworkRegressor
    >>> model = NetworkRegressor([L1(0.01)], max_epochs=2, random_state=0).fit([[0], [1], [2], [3]], [0, 1, 2, 3])
    >>> "l1" in model.history_
    True
    """

    strength: float = 0.01  # the paper tries 0.1, 0.01 and 0.001

    terms = ("l1",)

    def penalty(self, seen: Pass, own: Own) -> tuple[Array, dict[str, Array]]:
        """Return the weighted norm and the norm."""
        norm = _weight_norm(seen, absolute)
        return self.strength * norm, {"l1": norm}


@dataclass(frozen=True)
class L2(Regularizer):
    """Add ``strength`` times the sum of the squared weights of every dense layer to the loss, without biases.

    >>> from castlereg import NetworkRegressor
    >>> model = NetworkRegressor([L2(0.01)], max_epochs=2, random_state=0).fit([[0], [1], [2], [3]], [0, 1, 2, 3])
    >>> "l2" in model.history_
    True
    """

    strength: float = 0.01  # the paper tries 0.1, 0.01 and 0.001

    terms = ("l2",)

    def penalty(self, seen: Pass, own: Own) -> tuple[Array, dict[str, Array]]:
        """Return the weighted norm and the norm."""
        norm = _weight_norm(seen, jnp.square)
        return self.strength * norm, {"l2": norm}


def _weight_norm(seen: Pass, size: Callable[[Array], Array]) -> Array:
    """Return the sum of the sizes of the weights of every dense layer, without biases."""
    parameters = seen.parameters
    by_node = jnp.sum(size(parameters.input_weights), axis=(0, 2))
    if parameters.output_weights is not None:
        by_node = by_node + jnp.sum(size(parameters.output_weights), axis=(1, 2))
    shared = [jnp.sum(size(layer.weights)) for layer in parameters.hidden]
    return sum(shared, jnp.sum(seen.node_share * by_node))


@dataclass(frozen=True)
class Autoencoder(Regularizer):
    """Add the loss of reconstructing all features from the last hidden layer of the target's sub-network (SAE).

    The reconstruction head is one dense layer, which is trained with the network and dropped afterwards. The loss is
    the mean over the features of the squared error, logistic or softmax loss, by the kind of the column; missing values
    do not count. Unlike in CASTLE, every feature is reconstructed from all features, including itself.

    Parameters
    ----------
    strength : float
        Factor of the loss. At 1, the mean loss of the features has the same weight as the loss of the target.

    Examples
    --------
    >>> from castlereg import NetworkRegressor
    >>> model = NetworkRegressor([Autoencoder()], max_epochs=2, random_state=0).fit([[0], [1], [2], [3]], [0, 1, 2, 3])
    """

    strength: float = 1.0

    needs_hidden_layers = True
    terms = ("autoencoder",)

    def start(
        self, layout: Layout, hidden_layer_sizes: tuple[int, ...], n_trained: int, rng: np.random.Generator
    ) -> Own:
        """Draw the weights of one head per target."""
        outputs = layout.n_features * layout.output_width
        weights = np.stack([glorot(rng, hidden_layer_sizes[-1], outputs) for _ in layout.targets])
        return Own({"weights": weights, "bias": np.zeros((len(layout.targets), outputs), np.float32)})

    def penalty(self, seen: Pass, own: Own) -> tuple[Array, dict[str, Array]]:
        """Return the weighted loss and the loss."""
        layout = seen.layout
        assert seen.units is not None  # needs_hidden_layers
        features = jnp.arange(layout.n_features)
        units = seen.units[:, -len(layout.targets) :].swapaxes(0, 1)  # (targets, rows, width)
        heads = (units @ own.trained["weights"] + own.trained["bias"][:, None]).reshape(
            len(layout.targets), -1, layout.n_features, layout.output_width
        )
        weight = seen.node_weight[features]
        each = [cell_losses(outputs, seen.batch, layout, features, seen.null_loss) for outputs in heads]
        losses = jnp.stack(each).mean(axis=0)
        loss = jnp.sum(seen.batch.weight[:, None] * losses * weight) / jnp.maximum(jnp.sum(weight), 1.0)
        return self.strength * loss, {"autoencoder": loss}


@dataclass(frozen=True)
class Tangos(Regularizer):
    """Add a penalty on hidden units that depend on many inputs, and on pairs of units that depend on the same ones.

    TANGOS [1]_ is newer than the CASTLE paper, which does not include it. The attribution ``a_i(x)`` of a unit ``h_i``
    of the last hidden layer is its gradient in the inputs of a row, ``d h_i(x) / d x``. With ``B`` rows, ``d`` units
    and ``C = d (d - 1) / 2`` pairs of units, the penalty is::

          specialization    / (B d)  sum_b  sum_i      ||a_i(x_b)||_1
        + orthogonalization / (B C)  sum_b  sum_{i<j}  |cos(a_i(x_b), a_j(x_b))|

    Parameters
    ----------
    specialization : float
        Factor of the first term.
    orthogonalization : float
        Factor of the second term.
    pairs : int
        Number of pairs of units whose cosines are averaged, drawn at random in each step with equal probability. All
        pairs if there are not more than this.

    Notes
    -----
    The units are those of the targets' sub-networks; with several targets the penalties add up, as their losses do.
    The inputs are the standardized channels: every level of a categorical column, and every missing indicator, is a
    separate input, and embeddings of numbers are differentiated through. Rows are weighted as in the loss. The
    gradients ignore what other regularizers do between the layers, such as dropout and batch norm.

    The authors' code also divides the first term by the number of inputs: divide its ``lambda_1`` by that number to get
    ``specialization``. It omits both terms in the first epochs; here they act from the start. In the cosines, norms
    below 1e-6 count as 1e-6, so that units whose ReLU is off have cosine 0.

    References
    ----------
    .. [1] Jeffares, Liu, Crabbe, Imrie, van der Schaar: TANGOS: Regularizing Tabular Neural Networks through Gradient
       Orthogonalization and Specialization. ICLR 2023.

    Examples
    --------
    >>> from castlereg import NetworkRegressor
    >>> model = NetworkRegressor([Tangos(0.1, 0.1)], max_epochs=2, random_state=0)
    >>> model = model.fit([[0, 1], [1, 0], [2, 2], [3, 1]], [0, 1, 2, 3])
    >>> {"specialization", "orthogonalization"} <= set(model.history_)
    True
    """

    specialization: float = 0.1
    orthogonalization: float = 0.1
    pairs: int = 50

    needs_hidden_layers = True
    terms = ("specialization", "orthogonalization")

    def __post_init__(self) -> None:
        super().__post_init__()
        check_integer("Tangos's pairs", self.pairs)

    def draw(self, rng: np.random.Generator, steps: int, hidden_layer_sizes: tuple[int, ...]) -> Any:
        """Draw the pairs of units of every step, shape (steps, pairs, 2); nothing if all pairs are used."""
        units = hidden_layer_sizes[-1]
        if units * (units - 1) // 2 <= self.pairs:
            return ()
        first = rng.integers(0, units, (steps, self.pairs), np.int32)
        distance = rng.integers(1, units, (steps, self.pairs), np.int32)
        return np.stack([first, (first + distance) % units], axis=-1)

    def penalty(self, seen: Pass, own: Own) -> tuple[Array, dict[str, Array]]:
        """Return the weighted terms and the terms."""
        attributions = _attributions(seen.target_parameters, seen.batch.inputs)
        weight, pairs = seen.batch.weight, None if isinstance(seen.drawn, tuple) else seen.drawn
        specialization = jnp.sum(weight[:, None] * absolute(attributions)) / attributions.shape[1]
        orthogonalization = _mean_cosine(attributions, weight, pairs)
        total = self.specialization * specialization + self.orthogonalization * orthogonalization
        return total, {"specialization": specialization, "orthogonalization": orthogonalization}


def _attributions(parameters: Parameters, x: Array) -> Array:
    """Return the gradients of the last hidden units in the channels of each row, (nodes, width, rows, channels)."""

    def node_attributions(position: Array) -> Array:
        network = select(parameters, position[None])
        units, pull_back = jax.vjp(lambda x: hidden_units(network, input_layer(network, x))[:, 0], x)

        def unit_attribution(unit: Array) -> Array:  # rows are independent: all rows in one call
            (gradient,) = pull_back(jnp.broadcast_to(unit, units.shape))
            return gradient

        return jax.vmap(unit_attribution)(jnp.eye(units.shape[1], dtype=units.dtype))

    return jax.vmap(node_attributions)(jnp.arange(parameters.input_weights.shape[1]))


def _mean_cosine(attributions: Array, weight: Array, pairs: Array | None) -> Array:
    """Return the mean over rows and pairs of units (all by default) of absolute cosines, summed over nodes."""
    units = attributions.shape[1]
    squares = jnp.sum(attributions**2, axis=-1, keepdims=True)
    least = _LEAST_NORM**2
    directions = attributions / jnp.sqrt(jnp.where(squares > least, squares, least))
    if pairs is not None:
        cosines = jnp.sum(directions[:, pairs[:, 0]] * directions[:, pairs[:, 1]], axis=-1)  # (nodes, pairs, rows)
        return jnp.sum(weight * absolute(cosines)) / len(pairs)
    by_row = directions.swapaxes(1, 2)
    cosines = by_row @ by_row.swapaxes(2, 3)  # (nodes, rows, width, width)
    is_pair = np.triu(np.ones((units, units), bool), k=1)
    return jnp.sum(weight[:, None, None] * jnp.where(is_pair, absolute(cosines), 0.0)) / max(is_pair.sum(), 1)


@dataclass(frozen=True)
class DeepLasso(Regularizer):
    """Add ``strength * sum_j ||dL / dX_j||_2``: for every column, the norm of the gradient of the loss in it.

    Deep Lasso [1]_ is newer than the CASTLE paper, which does not include it. ``L`` is the loss of the targets on the
    rows of a step, and ``X_j`` are the inputs of column j in these rows. A column that the network does not use has
    norm zero: the sum acts on the columns of a network as the lasso acts on those of a linear model.

    Parameters
    ----------
    strength : float
        Factor of the sum.

    Notes
    -----
    All inputs of a column are one group: the levels of a category, a missing indicator, the seasons of a date. The
    columns are standardized, embeddings of numbers are differentiated through, and rows are weighted as in the loss.
    The gradient ignores what other regularizers do between the layers, such as dropout and batch norm.

    ``L`` is a mean over the rows of a step, as in the paper. The norms are therefore root mean squares of the gradients
    of single rows, divided by the root of the number of rows: larger batches need a larger strength. The paper weighs
    loss and penalty by ``1 - w`` and ``w``, which is ``strength = w / (1 - w)`` up to a common factor; the authors'
    code tries ``w`` from 0.01 to 0.5. It has a group for every numeric input, none for categories, and adds 1e-8 under
    the root.

    References
    ----------
    .. [1] Cherepanova, Levin, Somepalli, Geiping, Bruss, Wilson, Goldstein, Goldblum: A Performance-Driven Benchmark
       for Feature Selection in Tabular Deep Learning. NeurIPS 2023.

    Examples
    --------
    >>> from castlereg import NetworkRegressor
    >>> model = NetworkRegressor([DeepLasso(0.1)], max_epochs=2, random_state=0).fit([[0], [1], [2], [3]], [0, 1, 2, 3])
    >>> "deep_lasso" in model.history_
    True
    """

    strength: float = 0.1

    terms = ("deep_lasso",)

    def penalty(self, seen: Pass, own: Own) -> tuple[Array, dict[str, Array]]:
        """Return the weighted sum and the sum."""
        layout, batch = seen.layout, seen.batch

        def loss(x: Array) -> Array:
            outputs = forward(seen.target_parameters, x)
            losses = cell_losses(outputs, batch, layout, jnp.asarray(layout.targets), seen.null_loss)
            return supervised_loss(losses, batch)

        squares = jnp.sum(jax.grad(loss)(batch.inputs) ** 2, axis=0)
        membership = layout.channel_nodes == np.arange(layout.n_nodes)[:, None]
        norms = root(membership.astype(squares.dtype) @ squares)
        return self.strength * jnp.sum(norms), {"deep_lasso": jnp.sum(norms)}
