"""Which way arrows point between numeric and categorical columns of random graphs, by objective.

``python -m benchmarks.mixed_recovery [n_graphs [first]]`` prints F1 of the strong edges, the share of right directions
among the true edges that were found, by the kinds of their ends, and what is explained of the target.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from castlereg import CastleClassifier, CastleRegressor
from castlereg.acyclicity.cut import acyclic_cut, strong_edges
from castlereg.graph.scores import edge_scores
from castlereg.synthetic import KnownWorld, random_dag

N_NODES, N_EDGES, N_ROWS = 12, 20, 1000
LEVELS = (2, 2, 2, 3, 3)  # of the categorical columns
OBJECTIVES: dict[str, dict[str, Any]] = {"prediction": {}, "graph": {"reg_beta": 0.03, "objective": "graph"}}


def problem(function: str, seed: int) -> tuple[NDArray[np.bool_], pd.DataFrame, NDArray[np.bool_]]:
    """Draw a graph, rows of it, and which of its columns are categorical; the last one never is."""
    rng = np.random.default_rng([seed, 77])
    dag = random_dag(N_NODES, N_EDGES, rng)
    names = list(dag.columns)
    chosen = rng.choice(names[:-1], len(LEVELS), replace=False)
    model = KnownWorld(2.0 * dag, function=function, categorical=dict(zip(chosen, LEVELS, strict=True)))
    return dag.to_numpy() != 0, model.sample(N_ROWS, random_state=seed)[names], np.isin(names, chosen)


def scores(
    data: pd.DataFrame, truth: NDArray[np.bool_], nominal: NDArray[np.bool_], classes: bool, options: dict[str, Any]
) -> dict[str, float]:
    """Fit the last column of the wanted kind on all others, and score the graph; pairs are right and found counts."""
    target = data.columns[nominal == classes][-1]
    model = (CastleClassifier if classes else CastleRegressor)(random_state=0, **options)
    features = data.drop(columns=target)
    graph = model.fit(features, data[target]).graph_
    place = [graph.nodes.index(name) for name in data.columns]
    edges = strong_edges(acyclic_cut(graph.learned_array[np.ix_(place, place)]))
    row = {"F1": edge_scores(edges, truth)["f1"], "score": model.score(features, data[target])}
    found = truth & (edges | edges.T)
    for name, cause, effect in (
        ("category to number", nominal, ~nominal),
        ("number to category", ~nominal, nominal),
        ("numbers", ~nominal, ~nominal),
    ):
        ends = found & np.outer(cause, effect)
        row |= {f"{name}, right": int((ends & edges).sum()), f"{name}, found": int(ends.sum())}
    return row


def run(n_graphs: int = 10, first: int = 0) -> pd.DataFrame:
    """Return means of the scores and sums of the counts, by function, target and objective."""
    table = []
    for function in ("sigmoid", "sine", "smooth"):
        for seed in range(first, first + n_graphs):
            truth, data, nominal = problem(function, seed)
            for classes in (False, True):
                for objective, options in OBJECTIVES.items():
                    row = {"function": function, "target": "class" if classes else "number", "objective": objective}
                    table.append(row | scores(data, truth, nominal, classes, options))
    groups = pd.DataFrame(table).groupby(["function", "target", "objective"], sort=False)
    means, sums = groups[["F1", "score"]].mean(), groups.sum(numeric_only=True)
    for name in ("category to number", "number to category", "numbers"):
        means[name] = sums[f"{name}, right"] / sums[f"{name}, found"]
        means[f"{name}, found"] = sums[f"{name}, found"]
    return means.reset_index()


def main(arguments: list[str]) -> None:
    """Print the table."""
    print(run(*map(int, arguments)).round(3).to_string(index=False))


if __name__ == "__main__":
    main(sys.argv[1:])
