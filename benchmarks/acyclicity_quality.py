"""Effect of the acyclicity function on held-out error and graph: CASTLE on random graphs of smooth functions and sines.

``python -m benchmarks.acyclicity_quality [n_nodes n_rows n_graphs]``; the error is a share of the target's variance.
"""

from __future__ import annotations

import sys

import numpy as np
import pandas as pd

from benchmarks.acyclicity_speed import FUNCTIONS
from benchmarks.recovery_problems import recovery_problem
from castlereg import Castle, CastleRegressor
from castlereg.acyclicity.cut import acyclic_cut, strong_edges
from castlereg_paper.graph_scores import edge_scores, ranking_scores

N_TEST = 1000


def run(n_nodes: int = 20, n_rows: int = 500, n_graphs: int = 3) -> pd.DataFrame:
    """Return mean error, AUROC and F1 by acyclicity function, printing each graph's as it comes."""
    names = [f"x{k}" for k in range(n_nodes)]
    table = []
    for seed in range(n_graphs):
        for family in ("smooth", "sine"):
            problem = recovery_problem(family, n_nodes, n_rows + N_TEST, seed)
            data = pd.DataFrame(problem.values, columns=names)
            # A node with the most parents: a target that can be predicted.
            target = names[int(np.argmax(problem.truth.sum(axis=0)))]
            columns = [name for name in names if name != target]
            order = [*(names.index(name) for name in columns), names.index(target)]
            truth = problem.truth[np.ix_(order, order)]
            seen, held = data[:n_rows], data[n_rows:]
            for name, function in FUNCTIONS.items():
                model = CastleRegressor(castle=Castle(acyclicity=function), max_epochs=60, random_state=0)
                model.fit(seen[columns], seen[target])
                error = np.mean((held[target] - model.predict(held[columns])) ** 2) / np.var(held[target])
                weights = model.input_graph_.learned_array
                found = {"AUROC": ranking_scores(weights, truth)["auroc"]}
                found["F1"] = edge_scores(strong_edges(acyclic_cut(weights)), truth)["f1"]
                table.append({"function": name, "error": error, **found})
                print(family, seed, name, *(f"{value:.3f}" for value in (error, *found.values())), flush=True)
    return pd.DataFrame(table).groupby("function", sort=False).mean().reset_index()


if __name__ == "__main__":
    print(run(*map(int, sys.argv[1:])).round(3).to_string(index=False))
