"""CASTLE as in the authors' released code, which differs from the paper."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import jax.numpy as jnp
import numpy as np
from jax import Array

from castlereg import Recipe
from castlereg.acyclicity import Acyclicity
from castlereg.layout import Layout
from castlereg.network import Parameters, initialize, node_stream
from castlereg.random_streams import OfNetwork, network_stream
from castlereg.regularizers import Castle
from castlereg.regularizers.protocol import Pass
from castlereg_paper.acyclicity import truncated_series


@dataclass(frozen=True)
class ReleasedCastle(Castle):
    """The objective of the authors' released code.

    It differs from the paper in four points: the reconstruction is summed over the rows of a batch, while the
    supervised loss is a mean; lambda multiplies the supervised loss; the acyclicity term is ``h + h**2 / 2`` with a
    series that stops at the ninth power; and the sparsity term is a group norm.
    The options are those of :class:`castlereg.regularizers.Castle`; ``reg_beta`` is the factor of the sparsity term.
    """

    reg_beta: float = 5.0
    acyclicity: str | Acyclicity | None = truncated_series
    sparsity: Literal["l1", "group"] | None = "group"

    def total(self, terms: dict[str, Array], seen: Pass) -> Array:
        """Combine the terms."""
        rows = jnp.sum(seen.batch.weight > 0)
        size = terms["sparsity"] + terms["capacity"]
        supervised = (self.reg_lambda - 1) * seen.supervised  # the loss already contains it once
        return supervised + rows * terms["reconstruction"] + terms["acyclicity"] + self.reg_beta * size

    def acyclicity_term(self, seen: Pass) -> Array:
        """Return ``h + h**2 / 2``."""
        h = self.h(seen)
        return h + 0.5 * h**2


def released_start(
    layout: Layout, hidden_layer_sizes: tuple[int, ...], seed: np.random.SeedSequence, nodes: tuple[int, ...]
) -> Parameters:
    """Draw the initial weights of the released code: equal input layers, normal output layers with sd 1."""
    start = initialize(layout, hidden_layer_sizes, seed, nodes=nodes)
    shape = start.input_weights.shape
    rng = network_stream(seed, OfNetwork.SHARED_LAYERS, 0)
    drawn = 0.01 * rng.standard_normal((shape[0], shape[2]), np.float32)
    changed: dict[str, Any] = {"input_weights": drawn[:, None] * layout.edge_mask()[:, list(nodes), None]}
    if start.output_weights is not None:
        streams = [network_stream(seed, OfNetwork.SUB_NETWORK, node_stream(layout, node)) for node in nodes]
        shape = start.output_weights.shape[1:]
        changed["output_weights"] = np.stack([stream.standard_normal(shape, np.float32) for stream in streams])
    return start._replace(**changed)


def released_options(reg_beta: float = 5.0, reg_lambda: float = 1.0, **castle: Any) -> dict[str, Any]:
    """Return estimator options that train in the same way as the released code.

    These are two hidden layers of width 32, the initial weights of that code, independently drawn batches, and
    checkpoints and patience from epoch 50 on.

    Examples
    --------
    >>> from castlereg import CastleRegressor
    >>> from castlereg_paper import released_options
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True)
    >>> CastleRegressor(**released_options(), max_epochs=5, random_state=0).fit(X, y).predict(X).shape
    (442,)
    """
    return {
        "reg_beta": reg_beta,
        "reg_lambda": reg_lambda,
        "castle": ReleasedCastle(**castle),
        "hidden_layer_sizes": (32, 32),
        "recipe": Recipe(input_init=released_start, warmup=50, batches="independent"),
    }
