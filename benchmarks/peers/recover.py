"""Run a peer on exported recovery problems; needs an environment of its own with the peer installed.

``python benchmarks/peers/recover.py dagma|dagma_short|notears FOLDER NAME ...``, after
``python -m benchmarks.graph_recovery export FOLDER``. Weights and seconds are written beside the problems.
``dagma_short`` has a tenth of DAGMA's iterations.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch


def dagma(values: Any, share: float = 1.0) -> Any:
    """Run DAGMA with an MLP as in its documentation."""
    from dagma.nonlinear import DagmaMLP, DagmaNonlinear

    torch.set_default_dtype(torch.double)
    equations = DagmaMLP(dims=[values.shape[1], 10, 1], bias=True, dtype=torch.double)
    model = DagmaNonlinear(equations, dtype=torch.double)
    options = {"warm_iter": int(7e4 * share), "max_iter": int(8e4 * share)}
    return model.fit(values, lambda1=0.02, lambda2=0.005, w_threshold=0.0, **options)


def notears(values: Any) -> Any:
    """Run NOTEARS with an MLP with gCastle's defaults, but without its threshold."""
    from castle.algorithms import NotearsNonlinear

    model = NotearsNonlinear(model_type="mlp", w_threshold=0.0)
    model.learn(values)
    return model.weight_causal_matrix


PEERS = {"dagma": dagma, "dagma_short": lambda values: dagma(values, 0.1), "notears": notears}


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
