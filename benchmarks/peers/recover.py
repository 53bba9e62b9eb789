"""Run a peer on exported recovery problems; needs an environment of its own with the peer installed.

``python benchmarks/peers/recover.py dagma|dagma_short|notears FOLDER NAME ...``, after
``python -m benchmarks.graph_recovery export FOLDER``. Weights and seconds are written beside the problems.
``dagma_short`` has a tenth of DAGMA's iterations.

Both peers spend much of their time in their layer of one small network a column, written as a product of many
tiny matrices. It is replaced by a product and a sum, the same to rounding and up to 1.5 times as fast: seconds here are
the peers' at their best. ``MALLOC_TRIM_THRESHOLD_=2147483648 MALLOC_MMAP_THRESHOLD_=1073741824`` before the command
saves them as much again, by keeping freed memory.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch


def _one_output(layer: Any, values: Any) -> Any:
    """Weigh and add the hidden units of every column's network, which has one output."""
    return (values * layer.weight[:, :, 0]).sum(-1, keepdim=True) + layer.bias


def dagma(values: Any, **iterations: int) -> Any:
    """Run DAGMA with an MLP as in its documentation."""
    from dagma.locally_connected import LocallyConnected
    from dagma.nonlinear import DagmaMLP, DagmaNonlinear

    LocallyConnected.forward = _one_output
    torch.set_default_dtype(torch.double)
    equations = DagmaMLP(dims=[values.shape[1], 10, 1], bias=True, dtype=torch.double)
    model = DagmaNonlinear(equations, dtype=torch.double)
    return model.fit(values, lambda1=0.02, lambda2=0.005, w_threshold=0.0, **iterations)


def dagma_short(values: Any) -> Any:
    """Run DAGMA with a tenth of its iterations."""
    return dagma(values, warm_iter=5000, max_iter=8000)


def notears(values: Any) -> Any:
    """Run NOTEARS with an MLP with gCastle's defaults, but without its threshold."""
    from castle.algorithms import NotearsNonlinear
    from castle.algorithms.gradient.notears.torch.utils.locally_connected import LocallyConnected

    LocallyConnected.forward = _one_output
    model = NotearsNonlinear(model_type="mlp", w_threshold=0.0)
    model.learn(values)
    return model.weight_causal_matrix


PEERS = {"dagma": dagma, "dagma_short": dagma_short, "notears": notears}


def main(peer: str, folder: Path, names: list[str]) -> None:
    """Run one peer on the named problems."""
    torch.set_num_threads(1)
    for name in names:
        written = folder / f"{peer}_{name}.npz"
        if written.exists():
            continue
        values = np.load(folder / f"{name}.npz")["values"]
        torch.manual_seed(0)
        np.random.seed(0)  # the peers draw from it
        start = time.process_time()
        weights = np.abs(np.asarray(PEERS[peer](values), dtype=np.float64))
        np.savez(written, weights=weights, seconds=time.process_time() - start)
        print(peer, name, f"{time.process_time() - start:.1f} s", flush=True)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3:])
