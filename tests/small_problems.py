"""Random batches and weights for tests that train nothing."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from castlereg.layout import Layout, Node
from castlereg.losses import Batch
from castlereg.network import Parameters, initialize, mask_inputs


def numeric_layout(d: int) -> Layout:
    return Layout((*(Node() for _ in range(d)), Node(target=True)))


def random_batch(layout: Layout, rng: np.random.Generator, rows: int = 7, dtype: Any = np.float32) -> Batch:
    x = rng.normal(size=(rows, layout.n_channels))
    truth = np.zeros((rows, layout.n_nodes, layout.output_width))
    for k, node in enumerate(layout.nodes):
        if node.kind == "numeric":
            truth[:, k, 0] = x[:, layout.output_channels[k, 0]]
        elif node.kind == "binary":
            truth[:, k, 0] = rng.integers(0, 2, rows)
        else:
            truth[np.arange(rows), k, rng.integers(0, node.levels, rows)] = 1
    return Batch(*(jnp.asarray(a, dtype) for a in (x, truth, np.full(rows, 1 / rows))))


def random_parameters(layout: Layout, sizes: tuple[int, ...], rng: np.random.Generator, dtype: Any) -> Parameters:
    start = initialize(layout, sizes, seed=0)
    drawn: Parameters = jax.tree.map(lambda a: jnp.asarray(rng.normal(scale=0.4, size=a.shape), dtype), start)
    return mask_inputs(drawn, jnp.asarray(layout.edge_mask(), dtype))
