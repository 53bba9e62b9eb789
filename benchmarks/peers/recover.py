"""Run a peer on exported recovery problems; needs an environment of its own with the peer installed.

``python benchmarks/peers/recover.py dagma|dagma_short|notears FOLDER NAME ...``, after
``python -m benchmarks.graph_recovery export FOLDER``. Weights and processor seconds are written beside the problems;
what is there already is left alone. ``dagma_short`` has a tenth of DAGMA's iterations.

Their layers are computed by ``quick_equations.py``, the same to rounding: seconds here are the peers' at their best.
"""

from __future__ import annotations

import os
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"  # a core each, counted in processor seconds

import numpy as np
import torch
from quick_equations import equations, keep_freed_memory, replace_forward

ADAM = torch.optim.Adam


def dagma(values: Any, **iterations: int) -> Any:
    """Run DAGMA with an MLP as in its documentation."""
    from dagma.nonlinear import DagmaMLP, DagmaNonlinear

    torch.optim.Adam = partial(ADAM, fused=True)  # one call instead of a dozen

    def quick(model: Any, inputs: Any) -> Any:
        return equations(inputs, model.fc1.weight, model.fc1.bias, model.fc2[0])

    sizes = [values.shape[1], 10, 1]
    example = DagmaMLP(dims=sizes, bias=True)
    torch.nn.init.normal_(example.fc1.weight)
    replace_forward(DagmaMLP, quick, example, torch.from_numpy(values))
    torch.manual_seed(0)
    model = DagmaNonlinear(DagmaMLP(dims=sizes, bias=True))
    return model.fit(values, lambda1=0.02, lambda2=0.005, w_threshold=0.0, **iterations)


def dagma_short(values: Any) -> Any:
    """Run DAGMA with a tenth of its iterations."""
    return dagma(values, warm_iter=5000, max_iter=8000)


def notears(values: Any) -> Any:
    """Run NOTEARS with an MLP with gCastle's defaults, but without its threshold."""
    from castle.algorithms import NotearsNonlinear
    from castle.algorithms.gradient.notears.torch.models import MLPModel

    def quick(model: Any, inputs: Any) -> Any:
        first, start = (getattr(model.fc1_pos, of) - getattr(model.fc1_neg, of) for of in ("weight", "bias"))
        return equations(inputs, first, start, model.fc2[0])

    replace_forward(MLPModel, quick, MLPModel([values.shape[1], 10, 1]), torch.from_numpy(values))
    torch.manual_seed(0)
    model = NotearsNonlinear(model_type="mlp", w_threshold=0.0)
    model.learn(values)
    return model.weight_causal_matrix


PEERS = {"dagma": dagma, "dagma_short": dagma_short, "notears": notears}


def main(peer: str, folder: Path, names: list[str]) -> None:
    """Run one peer on the named problems."""
    torch.set_num_threads(1)
    keep_freed_memory()
    for name in names:
        written = folder / f"{peer}-{name}.npz"
        if written.exists():
            continue
        values = np.load(folder / f"{name}.npz")["values"]
        start = time.process_time()
        weights = np.abs(np.asarray(PEERS[peer](values), dtype=np.float64))
        seconds = time.process_time() - start
        np.savez(written, weights=weights, seconds=seconds)
        print(peer, name, f"{seconds:.1f} s", flush=True)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3:])
