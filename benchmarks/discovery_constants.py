"""Fit the constants of discovery on random worlds of ``calibration_worlds.py``, and print them with their calibration.

``python -m benchmarks.discovery_constants draw FIRST:LAST FILE.csv.gz`` stores the evidence for every pair of columns
of worlds with these seeds; ``... fit FILE.csv.gz ...`` prints the constants. Version 0.3 used the seeds 2001 to 2359.
"""

from __future__ import annotations

import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"

import sys
import warnings
from typing import Any

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression

from benchmarks.calibration_worlds import World, draw
from castlereg.causal.discovery import search
from castlereg.causal.variables import Variables


def pairs(seed: int, world: World) -> list[dict[str, Any]]:
    """Return the evidence for each pair of columns, from the cause that it prefers to the effect, with the truth."""
    searched = search(Variables.of_frame(world.frame))
    evidence, order = searched.evidence, searched.order
    truth, hidden, scored = (array[np.ix_(order, order)] for array in (world.truth, world.hidden, world.scored))
    column, break_ = world.name.split("/")
    agreeing, contradicting = evidence.agreement
    kinds = [each.kind for each in searched.judge.columns]
    rows = []
    for j, k in np.argwhere(np.triu(np.ones_like(truth), 1)).tolist():
        cause, effect = (j, k) if evidence.edges[j, k] else (k, j)
        rows.append({
            "seed": seed, "column": column, "break": break_, "rows": evidence.n_rows, "columns": len(truth),
            "edge": evidence.edges[cause, effect], "loss": evidence.loss[cause, effect], "gain": evidence.gain[j, k],
            "reversal": evidence.reversal[cause, effect], "compelled": evidence.compelled[cause, effect],
            "back": evidence.compelled[effect, cause], "either": evidence.either[j, k],
            "agreeing": agreeing, "contradicting": contradicting, "kinds": f"{kinds[cause]} {kinds[effect]}",
            "joined": truth[j, k] or truth[k, j], "right": truth[cause, effect], "hidden": hidden[j, k],
            "scored": scored[j, k],
        })  # fmt: skip
    return rows


def fit(table: pd.DataFrame) -> None:
    """Print the constants of edges and hidden causes."""
    share = table["compelled"] + table["back"] + table["either"]
    with_edge, gain = table["edge"] & table["loss"].notna(), table["gain"].clip(-10, 0)
    inputs = {
        "_EDGE": (with_edge, "joined", [np.log1p(table["loss"].clip(0, 20)), share, np.log(table["rows"])]),
        "_NO_EDGE": (~table["edge"] & np.isfinite(table["gain"]), "joined", [gain, share]),
        "_HIDDEN": (
            with_edge & table["reversal"].notna(), "hidden",
            [table[["compelled", "back"]].min(axis=1), table["reversal"].clip(0, 6)],
        ),
        "_HIDDEN_ONLY": (~table["edge"], "hidden", [table[["compelled", "back"]].min(axis=1)]),
    }  # fmt: skip
    for name, (chosen, truth, features) in inputs.items():
        X, y = np.stack([np.asarray(feature)[chosen] for feature in features], axis=1), table.loc[chosen, truth]
        model = LogisticRegression(C=1e3).fit(X, y.astype(int))
        p = model.predict_proba(X)[:, 1]
        error = pd.DataFrame({"p": p, "y": y.astype(float)}).groupby(np.minimum((p * 10).astype(int), 9))
        ece = (error.size() * (error["p"].mean() - error["y"].mean()).abs()).sum() / len(p)
        print(name, model.intercept_.round(2), model.coef_.round(2), f"{len(p)} pairs, calibration error {ece:.3f}")


def main(arguments: list[str]) -> None:
    """Run a command."""
    match arguments:
        case ["draw", seeds, file]:
            first, last = map(int, seeds.split(":"))
            rows = []
            for seed in range(first, last):
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    rows += pairs(seed, draw(seed))
                if seed % 20 == 0:
                    print(seed, flush=True)
            pd.DataFrame(rows).round(4).to_csv(file, index=False)
        case ["fit", *files]:
            fit(pd.concat([pd.read_csv(file) for file in files]))
        case _:
            raise SystemExit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
