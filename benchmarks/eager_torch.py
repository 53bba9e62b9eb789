"""Seconds per epoch, compared with the same objective in eager PyTorch, which needs its own environment.

The environment variable ``CASTLEREG_PEERS`` names its Python interpreter.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pandas as pd

from benchmarks.throughput import STACKS

SCRIPT = Path(__file__).parent / "peers" / "eager_castle.py"


def run() -> pd.DataFrame:
    """Return the table; empty if the peer is not installed."""
    python = os.environ.get("CASTLEREG_PEERS")
    columns = ["", "eager PyTorch, s an epoch", "castlereg, s an epoch", "times as fast"]
    if python is None:
        print("set CASTLEREG_PEERS to a Python with torch to compare with eager PyTorch")
        return pd.DataFrame(columns=columns)
    table = []
    for stack in STACKS:
        size = (stack.n_nodes, stack.width, stack.n_members, stack.n_rows, max(1, stack.epochs // 5))
        out = subprocess.run([python, SCRIPT, *map(str, size)], check=True, capture_output=True, text=True)
        theirs = float(out.stdout.split()[-1])
        stack.train()  # compile
        ours = min(stack.train() for _ in range(3)) / stack.epochs
        name = f"{stack.n_nodes} nodes x width {stack.width}, {stack.n_members} members"
        table.append((name, theirs, ours, theirs / ours))
    return pd.DataFrame(table, columns=columns)
