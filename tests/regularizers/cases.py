"""What the tests of the regularizers share: every strategy with settings, and small problems."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from castlereg.layout import Layout
from castlereg.losses import Batch
from castlereg.network import Parameters, initialize, mask_inputs
from castlereg.regularizers import (
    L1,
    L2,
    Autoencoder,
    BatchNorm,
    Castle,
    Corruption,
    DeepLasso,
    Dropout,
    InputNoise,
    MixUp,
    Own,
    Regularizer,
    Tangos,
)
from castlereg.regularizers.engine import trained_nodes
from tests.small_problems import random_batch

# Each strategy with two settings that differ only in strength.
STRATEGIES: dict[str, tuple[Regularizer, Regularizer]] = {
    "castle with sampling": (Castle(0.01, features_per_step=2), Castle(0.3, features_per_step=2)),
    "l1": (L1(0.001), L1(0.01)),
    "l2": (L2(0.001), L2(0.1)),
    "dropout": (Dropout(0.2), Dropout(0.5)),
    "autoencoder": (Autoencoder(1.0), Autoencoder(0.1)),
    "batch norm": (BatchNorm(0.9), BatchNorm(0.5)),
    "input noise": (InputNoise(0.1), InputNoise(0.01)),
    "mixup": (MixUp(0.2), MixUp(1.0)),
    "corruption": (Corruption(0.1), Corruption(0.4)),
    "tangos with drawn pairs": (Tangos(0.1, 0.3, pairs=2), Tangos(0.5, 1.0, pairs=2)),
    "deep lasso": (DeepLasso(0.1), DeepLasso(1.0)),
}
# CASTLE's switches, for the tests that train nothing.
VARIANTS: dict[str, tuple[Regularizer, Regularizer]] = STRATEGIES | {
    "tangos": (Tangos(0.1, 0.3), Tangos(0.5, 1.0)),
    "castle": (Castle(0.01), Castle(0.3, 0.5)),
    "castle without reconstruction": (Castle(0.01, reconstruction=False), Castle(0.3, reconstruction=False)),
    "castle without acyclicity": (Castle(0.01, acyclicity=None), Castle(0.3, acyclicity=None)),
    "castle without sparsity": (Castle(0.01, sparsity=None), Castle(0.01, 0.3, sparsity=None)),
    "only sparsity": (
        Castle(0.01, reconstruction=False, acyclicity=None),
        Castle(0.3, reconstruction=False, acyclicity=None),
    ),
    "castle with capacity": (Castle(0.01, capacity=True), Castle(0.3, capacity=True)),
}


@dataclass
class Problem:
    """One step of one network with one regularizer, its own arrays included."""

    regularizer: Regularizer
    layout: Layout
    parameters: Parameters
    batch: Batch
    own: tuple[Own]
    drawn: tuple[Any]

    @property
    def arguments(self) -> dict[str, Any]:
        return {"own": self.own, "drawn": self.drawn}


def problem(
    regularizer: Regularizer,
    layout: Layout,
    rng: np.random.Generator,
    sizes: tuple[int, ...] = (4, 3),
    rows: int = 8,
    dtype: Any = np.float32,
) -> Problem:
    nodes = trained_nodes([regularizer], layout)
    batch = random_batch(layout, rng, rows, dtype)
    start = initialize(layout, sizes, seed=0, nodes=nodes)
    parameters = jax.tree.map(lambda a: jnp.asarray(rng.normal(scale=0.4, size=a.shape), dtype), start)
    mask = jnp.asarray(layout.edge_mask()[:, list(nodes)], dtype)

    def converted(tree: Any) -> Any:
        return jax.tree.map(lambda a: jnp.asarray(a, dtype if a.dtype.kind == "f" else a.dtype), tree)

    return Problem(
        regularizer,
        layout,
        mask_inputs(parameters, mask),
        batch,
        (converted(regularizer.start(layout, sizes, len(nodes), rng)),),
        (converted(jax.tree.map(lambda a: a[0], regularizer.draw(rng, 1, sizes))),),
    )
