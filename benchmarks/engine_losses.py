"""Validation losses of 200 networks that each engine has trained on the diabetes table: the same distribution.

CASTLE has a sub-network for each of the ten columns and the target, with two hidden layers of ten units. Seeds decide
the split, the starting weights and the batches. With the same seeds the engines are compared pair by pair: a test of
two distributions, which takes the samples as independent, says little there, so it is made with other seeds too. The
Wilcoxon test counts differences of rounding as it does others; those above 1e-6 have a row of figures too.
``python -m benchmarks.engine_losses`` writes ``benchmarks/engine_losses.json``.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import ks_2samp, wilcoxon
from sklearn.datasets import load_diabetes

from castlereg.layout import Layout, Node
from castlereg.regularizers import Castle
from castlereg.table.encoding import Encoded
from castlereg.training import Member, Phase, Plan, train
from castlereg.training.state import EngineName

SEEDS, MAX_EPOCHS, PATIENCE = 200, 200, 20
ROUNDING = 1e-6  # relative differences that are nothing else
STORED = Path(__file__).with_suffix(".json")


def losses(engine: EngineName, first_seed: int = 0) -> dict[str, Any]:
    """Train a network per seed, and return validation losses and best epochs."""
    X, y = load_diabetes(return_X_y=True)
    rows = np.column_stack([X / X.std(axis=0), (y - y.mean()) / y.std()]).astype(np.float32)
    table = Encoded(rows, Layout((*(Node() for _ in range(X.shape[1])), Node(target=True))))
    members = []
    for seed in range(first_seed, first_seed + SEEDS):
        order = np.random.default_rng(seed).permutation(len(rows))
        n = len(rows) // 5
        members.append(Member(order[n:], order[:n], np.random.SeedSequence(seed), (Castle(),)))
    stack = train(table, members, Plan((10, 10), (Phase(MAX_EPOCHS),), patience=PATIENCE, engine=engine))
    return {"validation_loss": stack.validation_loss, "best_epoch": stack.best_epoch}


def run() -> pd.DataFrame:
    """Compare the engines, and store the figures."""
    native, jax = losses("native"), losses("jax")
    ours, theirs = (of["validation_loss"].astype(np.float64) for of in (native, jax))
    others = losses("jax", SEEDS)["validation_loss"]
    difference = (ours - theirs) / theirs
    rounding = np.abs(difference) <= ROUNDING
    found = {
        "networks": SEEDS,
        "mean_jax": theirs.mean(),
        "mean_native": ours.mean(),
        "deviation_jax": theirs.std(ddof=1),
        "deviation_native": ours.std(ddof=1),
        "same_best_epoch": int(np.sum(native["best_epoch"] == jax["best_epoch"])),
        "median_relative_difference": np.median(np.abs(difference)),
        "largest_relative_difference": np.max(np.abs(difference)),
        "kolmogorov_smirnov_p_same_seeds": ks_2samp(ours, theirs).pvalue,
        "kolmogorov_smirnov_p_other_seeds": ks_2samp(ours, others).pvalue,
        "wilcoxon_p": wilcoxon(difference).pvalue,
        "differences_of_rounding": int(np.sum(rounding & (difference != 0))),
        "differences_of_rounding_native_lower": int(np.sum(rounding & (difference < 0))),
        "larger_differences": int(np.sum(~rounding)),
        "larger_differences_native_lower": int(np.sum(~rounding & (difference < 0))),
        "wilcoxon_p_of_larger_differences": wilcoxon(difference[~rounding]).pvalue,
    }
    found = {name: value if isinstance(value, int) else float(value) for name, value in found.items()}
    STORED.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    return pd.DataFrame({"figure": list(found), "value": list(found.values())})


if __name__ == "__main__":
    print(run().to_string(index=False))
