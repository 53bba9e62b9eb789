"""How well graphs are recovered: CASTLE as in the paper, exact, the correlation, and peers whose results are given.

``python -m benchmarks.graph_recovery [n_nodes n_rows n_graphs [FOLDER]]`` prints a table; ``... export FOLDER`` writes
the problems for ``benchmarks/peers/recover.py``, and FOLDER is where that leaves its results.
``python -m benchmarks.graph_recovery sachs`` takes the table of the folder in ``CASTLEREG_DATA``.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmarks.recovery_problems import FAMILIES, Recovery, recovery_problem
from castlereg import CastleRegressor
from castlereg.graph.acyclic_cut import acyclic_cut
from castlereg.graph.scores import direction_accuracy, edge_scores, ranking_scores, skeleton_scores
from castlereg.graph.strong_edges import strong_edges

SIZES = ((12, 1000), (30, 3000))
PEERS = ("dagma", "dagma_short", "notears")
LARGEST_FOR_ENSEMBLES = 20  # nodes; beyond, five networks take minutes a graph
PEERS_OWN_THRESHOLD = 0.3  # the default of both

Graph = tuple[NDArray[np.float64], NDArray[np.bool_], float]  # weights, edges, seconds


def _castle(problem: Recovery, **options: Any) -> Graph:
    names = [f"x{k}" for k in range(problem.values.shape[1])]
    data = pd.DataFrame(problem.values, columns=names)
    start = time.perf_counter()
    graph = CastleRegressor(random_state=0, **options).fit(data[names[:-1]], data[names[-1]]).graph_
    seconds = time.perf_counter() - start
    return graph.learned_array, strong_edges(acyclic_cut(graph.learned_array)), seconds


def _correlation(problem: Recovery) -> Graph:
    """The absolute correlation, which knows no direction: the graph has each pair in the order of the columns."""
    start = time.perf_counter()
    weights = np.abs(np.corrcoef(problem.values.T))
    np.fill_diagonal(weights, 0)
    return weights, strong_edges(np.triu(weights)), time.perf_counter() - start


OURS = {
    "paper": lambda problem: _castle(problem),
    "exact": lambda problem: _castle(problem, reg_beta=0.03, acyclicity_schedule="exact"),
    "exact, mean of 5": lambda problem: _castle(problem, reg_beta=0.03, acyclicity_schedule="exact", n_members=5),
    "correlation": _correlation,
}


def _scores(graph: Graph, problem: Recovery) -> dict[str, float]:
    weights, edges, seconds = graph
    return {
        "AUROC": ranking_scores(weights, problem.truth)["auroc"],
        "F1": edge_scores(edges, problem.truth)["f1"],
        "F1 without directions": skeleton_scores(edges, problem.truth)["f1"],
        "direction right": direction_accuracy(edges, problem.truth),
        "edges": int(edges.sum()),
        "seconds": seconds,
    }


def sachs(folder: Path) -> Recovery:
    """Read the observational Sachs table, standardized, and the conventional graph of 17 edges."""
    data = pd.read_csv(folder / "sachs_observational.csv")
    edges = pd.read_csv(folder / "sachs_edges.csv").query("in_17_edge_graph == 1")
    truth = np.zeros((data.shape[1],) * 2, dtype=bool)
    truth[data.columns.get_indexer(edges["cause"]), data.columns.get_indexer(edges["effect"])] = True
    return Recovery(truth, ((data - data.mean()) / data.std(ddof=0)).to_numpy())


def _peer(file: Path, problem: Recovery) -> dict[str, float]:
    """Score a peer's graph with its own threshold or ours, whichever is better for it."""
    stored = np.load(file)
    cut = acyclic_cut(stored["weights"])
    graphs = (cut > PEERS_OWN_THRESHOLD, strong_edges(cut))
    scores = [_scores((stored["weights"], edges, float(stored["seconds"])), problem) for edges in graphs]
    return max(scores, key=lambda one: one["F1"])


def compared(problem: Recovery, name: str, folder: Path | None) -> dict[str, dict[str, float]]:
    """Score all methods on a problem, peers where their results lie in the folder."""
    small = len(problem.truth) <= LARGEST_FOR_ENSEMBLES
    ours = {method: recover for method, recover in OURS.items() if small or "mean of" not in method}
    found = {method: _scores(recover(problem), problem) for method, recover in ours.items()}
    for peer in PEERS:
        file = None if folder is None else folder / f"{peer}_{name}.npz"
        if file is not None and file.exists():
            found[peer] = _peer(file, problem)
    return found


def run(n_nodes: int = 12, n_rows: int = 1000, n_graphs: int = 10, folder: Path | None = None) -> pd.DataFrame:
    """Return mean scores by family and method."""
    table: list[dict[str, Any]] = []
    for family in FAMILIES:
        for seed in range(n_graphs):
            problem = recovery_problem(family, n_nodes, n_rows, seed)
            found = compared(problem, f"{family}_{n_nodes}_{seed}", folder)
            table += [{"family": family, "method": name, **scores} for name, scores in found.items()]
        means = pd.DataFrame(table).query("family == @family").groupby("method", sort=False)
        print(means.mean(numeric_only=True).assign(graphs=means.size()).round(3).to_string(), flush=True)
    frame = pd.DataFrame(table).groupby(["family", "method"], sort=False)
    return frame.mean(numeric_only=True).assign(graphs=frame.size()).reset_index()


def export(folder: Path) -> None:
    """Write the problems as files."""
    folder.mkdir(parents=True, exist_ok=True)
    for n_nodes, n_rows in SIZES:
        for family in FAMILIES:
            for seed in range(10):
                problem = recovery_problem(family, n_nodes, n_rows, seed)
                np.savez(folder / f"{family}_{n_nodes}_{seed}.npz", **problem._asdict())
    if "CASTLEREG_DATA" in os.environ:
        np.savez(folder / "sachs.npz", **sachs(Path(os.environ["CASTLEREG_DATA"]))._asdict())


def main(arguments: list[str]) -> None:
    """Run what is asked for."""
    match arguments:
        case ["export", folder]:
            export(Path(folder))
        case ["sachs", *rest]:
            problem = sachs(Path(os.environ["CASTLEREG_DATA"]))
            found = compared(problem, "sachs", Path(rest[0]) if rest else None)
            print(pd.DataFrame(found).T.round(3).to_string())
        case [n_nodes, n_rows, n_graphs, *rest]:
            run(int(n_nodes), int(n_rows), int(n_graphs), Path(rest[0]) if rest else None)
        case _:
            run()


if __name__ == "__main__":
    main(sys.argv[1:])
