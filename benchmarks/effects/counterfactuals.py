"""Errors of counterfactuals on known numeric worlds, with fitted and with true equations.

The truth comes from the world: the same rows, drawn with the same noise while a column is held fixed.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.effects.worlds import KINDS, ROWS, known_world, problem_outcome
from castlereg.causal import FittedWorld
from castlereg.causal.variables import Variables

RESULTS = Path(__file__).with_name("counterfactuals.csv")


def measure(seeds: range, path: Path = RESULTS) -> None:
    """Set every cause of the outcome to its upper quartile, and compare the outcome of every row."""
    results = []
    for kind in KINDS[:-1]:
        for seed in seeds:
            world, _ = known_world(kind, seed)
            rows, outcome = world.sample(ROWS, random_state=seed), problem_outcome(world)
            fitted = FittedWorld.fit(Variables.of_frame(rows), world.graph(outcome), is_graph_given=True, n_draws=0)
            spread, errors, exact, unchanged = rows[outcome].std(), [], [], []
            for cause in world.graph(outcome).ancestors(outcome):
                value = float(rows[cause].quantile(0.75))
                truth = world.do({cause: value}).sample(ROWS, random_state=seed)[outcome]
                found, given = (model.counterfactual(rows, {cause: value})[outcome] for model in (fitted, world))
                errors.append(float((found - truth).abs().mean() / spread))
                exact.append(float((given - truth).abs().max()))
                unchanged.append(float((rows[outcome] - truth).abs().mean() / spread))
            row = {"kind": kind, "seed": seed, "error": np.mean(errors), "nothing changes": np.mean(unchanged)}
            results.append(row | {"given equations": np.max(exact)})
            print(results[-1], flush=True)
    pd.DataFrame(results).to_csv(path, index=False, float_format="%.4g")
