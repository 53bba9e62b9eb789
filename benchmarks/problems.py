"""Tables and stacks that the benchmarks share, and the machine's limit."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from castlereg.acyclicity import Acyclicity
from castlereg.layout import Layout, Node
from castlereg.regularizers import Castle
from castlereg.table.encoding import Encoded
from castlereg.training import Member, Phase, Plan, TrainedStack, train
from castlereg.training.engines.jax_engine import prepare_jax


def rows(n_rows: int, n_nodes: int, seed: int = 0) -> NDArray[np.float32]:
    """Return columns of which the last depends on the first two."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n_rows, n_nodes))
    x[:, -1] = x[:, 0] - np.tanh(x[:, 1]) + 0.3 * x[:, -1]
    return x.astype(np.float32)


def product_rate(n: int = 2048, repeats: int = 8) -> float:
    """Return the floating-point operations per second of an n x n float32 product on all cores, the best of some."""
    prepare_jax()
    a = jnp.ones((n, n), jnp.float32)
    product = jax.jit(lambda x: x @ x)
    product(a).block_until_ready()
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        product(a).block_until_ready()
        seconds.append(time.perf_counter() - start)
    return 2 * n**3 / min(seconds)


@dataclass(frozen=True)
class Stack:
    """A stack of CASTLE networks in folds of nine tenths, all trained for the same number of epochs."""

    n_nodes: int
    width: int
    n_members: int
    n_rows: int
    epochs: int
    features_per_step: int | None = None
    betas: tuple[float, ...] = (0.01,)
    acyclicity: str | Acyclicity = "expm"
    data: NDArray[np.float32] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "data", rows(self.n_rows, self.n_nodes))

    @property
    def layout(self) -> Layout:
        """The nodes."""
        return Layout((*(Node() for _ in range(self.n_nodes - 1)), Node(target=True)))

    def train(self) -> float:
        """Train the stack once; return the seconds it took."""
        start = time.perf_counter()
        self.trained()
        return time.perf_counter() - start

    def trained(self) -> TrainedStack:
        """Train the stack once."""
        fold = np.arange(self.n_rows) % 10
        members = [
            Member(
                np.flatnonzero(fold != i % 10),
                np.flatnonzero(fold == i % 10),
                np.random.SeedSequence(i % 10),
                (
                    Castle(
                        self.betas[i // 10 % len(self.betas)],
                        acyclicity=self.acyclicity,
                        features_per_step=self.features_per_step,
                    ),
                ),
            )
            for i in range(self.n_members)
        ]
        plan = Plan((self.width, self.width), (Phase(self.epochs),), patience=self.epochs)
        return train(Encoded(self.data, self.layout), members, plan)

    @property
    def flops(self) -> float:
        """Return the operations of the matrix products of the layers, forward and backward; nothing else is counted."""
        per_row = self.n_nodes * (4 * self.n_nodes * self.width + 6 * self.width**2 + 6 * self.width)
        return float(self.n_members * self.epochs * (self.n_rows * 0.9) * per_row)
