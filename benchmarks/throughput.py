"""Achieved operations per second of training as a share of a large float32 product in the same run."""

from __future__ import annotations

import pandas as pd

from benchmarks.limit import product_rate
from benchmarks.problems import Stack

STACKS = (
    Stack(n_nodes=10, width=10, n_members=40, n_rows=500, epochs=100),
    Stack(n_nodes=50, width=50, n_members=10, n_rows=2500, epochs=20),
    Stack(n_nodes=100, width=100, n_members=1, n_rows=5000, epochs=10),
)


def run() -> pd.DataFrame:
    """Return the table."""
    table = []
    for stack in STACKS:
        stack.train()  # compile
        before = product_rate()
        seconds = min(stack.train() for _ in range(5))
        limit = max(before, product_rate())
        rate = stack.flops / seconds
        name = f"{stack.n_nodes} nodes x width {stack.width}, {stack.n_members} members"
        table.append((name, seconds / stack.epochs, rate / 1e9, limit / 1e9, rate / limit))
    return pd.DataFrame(table, columns=["", "seconds an epoch", "GFLOP/s", "product, GFLOP/s", "share"])
