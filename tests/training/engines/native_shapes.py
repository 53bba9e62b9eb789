"""Random networks, tables and regularizers through the native engine, without JAX.

Run as a module with a file and a number of problems, it records the calls of the kernels for ``kernel_calls``.
"""

from __future__ import annotations

import pickle
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from castlereg.layout import EdgeRules, Layout, Node
from castlereg.losses import Huber, Poisson, Quantiles
from castlereg.regularizers import (
    L1,
    L2,
    Autoencoder,
    Castle,
    Corruption,
    Dropout,
    InputNoise,
    MixUp,
    Regularizer,
)
from castlereg.table.encoding import Encoded
from castlereg.training import Member, Plan, TrainedStack, train
from castlereg.training.engines import native
from castlereg.training.state import phases_for

Call = tuple[dict[str, Any], str]  # arguments of the kernels: arrays and their precision


class Problem(NamedTuple):
    """A problem that the engine trains."""

    table: Encoded
    members: list[Member]
    plan: Plan


def rows_of(layout: Layout, n_rows: int, seed: int = 0, dtype: Any = np.float32) -> NDArray[Any]:
    """Draw encoded rows; a fifth of the cells is missing where allowed."""
    rng = np.random.default_rng(seed)
    columns = []
    for node in layout.nodes:
        if isinstance(node.loss, Poisson):
            column = rng.poisson(2.0, (n_rows, 1)) / 2
        elif node.kind == "numeric":
            column = rng.normal(size=(n_rows, 1 + node.extra))
        elif node.kind == "binary":
            column = (rng.random((n_rows, 1)) < 0.4).astype(float)
        else:
            column = np.eye(node.levels)[rng.integers(0, node.levels, n_rows)]
        if node.missing:
            missing = rng.random(n_rows) < 0.2
            column[missing] = np.nan
            column = np.column_stack([column, missing])
        columns.append(column)
    return np.concatenate(columns, axis=1).astype(dtype)


def problem(seed: int) -> Problem:
    """Draw a problem that the native engine covers."""
    rng = np.random.default_rng([11, seed])
    dtype = np.float64 if rng.random() < 0.15 else np.float32
    widths = (1, 2, 3, 5, 7, 8, 10, 15, 16, 17, 31, 33, 64, 70)
    sizes = tuple(int(n) for n in rng.choice(widths, rng.choice([0, 1, 2, 2, 3, 5])))
    silu, embedding = rng.random() < 0.25, int(rng.choice([0, 0, 0, 1, 3, 8]))
    layout = _layout(rng, monotone=not silu and not embedding and rng.random() < 0.2)
    n_rows = int(rng.choice([20, 40, 67, 100, 200, 300]))
    inputs = rows_of(layout, n_rows, int(rng.integers(1 << 30)), dtype)
    weight = rng.uniform(0.1, 2, n_rows).astype(dtype) if rng.random() < 0.3 else None
    constant = (0,) if rng.random() < 0.1 and layout.n_features > 1 else ()
    table = Encoded(inputs, layout, weight, constant, _edges(rng, layout) if rng.random() < 0.2 else None)
    regularizers = _regularizers(rng, layout, sizes, random=dtype == np.float32)
    members = []
    for i in range(rng.integers(1, 5)):
        rows = rng.permutation(n_rows)
        n_validation = int(rng.integers(1, n_rows // 3))
        rows = rows[: len(rows) - int(rng.integers(0, 5))]
        members.append(
            Member(rows[n_validation:], rows[:n_validation], np.random.SeedSequence([seed, i]), regularizers)
        )
    plan = Plan(
        sizes,
        phases_for(int(rng.integers(2, 5)), warmup=int(rng.integers(0, 2)), schedule="cosine"),
        learning_rate=float(rng.choice([1e-3, 1e-2, 1e4, 1e30], p=[0.55, 0.3, 0.1, 0.05])),
        batch_size=int(rng.choice([1, 2, 7, 16, 17, 32, 33, 64, 65, 100, 150, 260])),
        patience=int(rng.integers(1, 4)),
        activation="silu" if silu else "relu",
        averaging=0.5 if rng.random() < 0.2 else None,
        weight_decay=0.1 if rng.random() < 0.2 else None,
        embedding=embedding,
        engine="native",
    )
    return Problem(table, members, plan)


def _layout(rng: np.random.Generator, monotone: bool) -> Layout:
    def node(**options: Any) -> Node:
        kind = rng.choice(["numeric", "binary", "categorical"], p=[0.6, 0.2, 0.2])
        if kind == "categorical":
            return Node("categorical", int(rng.integers(2, 7)), **options)
        if kind == "binary" or options.get("target"):
            return Node(kind, **options)
        return Node(clipped=rng.random() < 0.2, extra=int(rng.choice([0, 0, 0, 1, 3])), **options)

    with_missing = rng.random() < 0.4
    n = int(rng.integers(17, 40)) if rng.random() < 0.1 else int(rng.integers(1, 10))
    features = [node(missing=bool(with_missing and rng.random() < 0.4)) for _ in range(n)]
    if monotone and features[0].kind != "categorical":
        features[0] = Node(features[0].kind, monotone=1)
    targets = [node(target=True) for _ in range(rng.choice([1, 1, 1, 2, 3]))]
    losses = (Huber(0.7), Poisson(), Quantiles((0.5,)), Quantiles((0.05, 0.2, 0.4, 0.5, 0.9)))
    if rng.random() < 0.3:
        targets[0] = Node(target=True, loss=losses[rng.integers(len(losses))])
    return Layout((*features, *targets))


def _edges(rng: np.random.Generator, layout: Layout) -> EdgeRules:
    """Forbid some edges, and require some that point forward."""
    n = layout.n_nodes
    allowed = rng.random((n, n)) < 0.7
    return EdgeRules(allowed, np.triu(allowed & (rng.random((n, n)) < 0.1), 1))


def _regularizers(
    rng: np.random.Generator, layout: Layout, sizes: tuple[int, ...], random: bool
) -> tuple[Regularizer, ...]:
    sampled = layout.n_features > 1 and rng.random() < 0.3
    castle = Castle(
        0.1,
        1.0,
        acyclicity=rng.choice(["expm", "logdet"]),
        sparsity=rng.choice(["l1", "group"]),
        capacity=bool(sizes and rng.random() < 0.3),
        features_per_step=int(rng.integers(1, layout.n_features)) if sampled else None,
    )
    chosen: list[Regularizer] = [castle] if rng.random() < 0.7 else []
    chosen += [regularizer for regularizer in (L1(0.01), L2(0.01)) if rng.random() < 0.15]
    if sizes and rng.random() < 0.15:
        chosen.append(Autoencoder(0.5))
    if random:
        chosen += [change for change in (InputNoise(0.1), MixUp(0.4), Corruption(0.2)) if rng.random() < 0.12]
        chosen += [Dropout(0.2)] if sizes and rng.random() < 0.2 else []
    return tuple(chosen[i] for i in rng.permutation(len(chosen)))


def quiet_train(given: Problem) -> TrainedStack:
    """Train without the warnings of rates that are too high."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return train(*given)


@contextmanager
def threads(n: int) -> Iterator[None]:
    """Let the native engine have some threads."""

    def engine(setup: Any, of: Callable[[Any], Any] = native.NativeEngine) -> Any:
        made = of(setup)
        made.n_threads = n
        return made

    with patch.object(native, "NativeEngine", engine):
        yield


class Recorder:
    """Kernels that keep a copy of their arguments."""

    def __init__(self, kernels: Any) -> None:
        self.kernels, self.calls = kernels, list[Call]()

    def train(self, arrays: dict[str, Any], dtype: str, n_threads: int) -> None:
        """Store copies of the arrays before the call, and train."""
        self.calls.append((deepcopy(arrays), dtype))
        self.kernels.train(arrays, dtype, n_threads)


@contextmanager
def recorded() -> Iterator[list[Call]]:
    """Return the list of calls of the kernels, which grows."""
    recorder = Recorder(native.kernels())
    with patch.object(native, "kernels", lambda: recorder):
        yield recorder.calls


def main(path: Path, count: int) -> None:
    """Record the first two calls of some problems."""
    kept: list[Call] = []
    for seed in range(count):
        with recorded() as calls:
            try:
                quiet_train(problem(seed))
            except FloatingPointError:
                pass
        kept += calls[:2]
    path.write_bytes(pickle.dumps(kept))
    print(f"{len(kept)} calls of {count} problems")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 300)
