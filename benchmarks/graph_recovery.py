"""How well graphs are recovered: CASTLE by both objectives, the correlation, and peers, whose scores are stored.

``python -m benchmarks.graph_recovery [n_nodes n_rows n_graphs]`` prints a table, ``... sachs`` that of the table in the
folder ``CASTLEREG_DATA``, ``... plot FILE`` draws both sizes with ten graphs each.

Peers take hours and an environment of their own. ``... export FOLDER`` writes the problems for
``benchmarks/peers/recover.py``, which leaves its results in FOLDER; ``... collect FOLDER`` scores them and stores the
scores in ``benchmarks/peers/recovery_scores.csv``, from where the other commands take them.
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
from castlereg.acyclicity.cut import acyclic_cut, strong_edges
from castlereg.graph.scores import direction_accuracy, edge_scores, ranking_scores, skeleton_scores

SIZES = ((12, 1000), (30, 3000))
PEERS = ("dagma", "dagma_short", "notears")
LARGEST_FOR_ENSEMBLES = 20  # nodes; beyond, five networks take minutes a graph
PEERS_OWN_THRESHOLD = 0.3  # the default of both
STORED = Path(__file__).parent / "peers" / "recovery_scores.csv"
FAMILY_NAMES = {
    "sigmoid": "sums of sigmoids",
    "sine": "sums of sines",
    "smooth": "sums of smooth functions",
    "linear": "linear, Laplace noise",
}
DRAWN = {  # label, colour and marker
    "graph": ("CASTLE, graph objective", "#c2410c", "o"),
    "graph, form by held-out rows": ("CASTLE, graph objective, form by held-out rows", "#c026d3", "o"),
    "prediction": ("CASTLE, prediction", "#eab308", "o"),
    "notears": ("NOTEARS-MLP", "#1d4ed8", "s"),
    "dagma": ("DAGMA-MLP", "#0f766e", "D"),
}

GRAPH: dict[str, Any] = {"reg_beta": 0.03, "objective": "graph"}

Graph = tuple[NDArray[np.float64], NDArray[np.bool_], float]  # weights, edges, seconds


def _castle(problem: Recovery, **options: Any) -> Graph:
    names = [f"x{k}" for k in range(problem.values.shape[1])]
    data = pd.DataFrame(problem.values, columns=names)
    start = time.process_time()
    graph = CastleRegressor(random_state=0, **options).fit(data[names[:-1]], data[names[-1]]).graph_
    seconds = time.process_time() - start
    return graph.learned_array, strong_edges(acyclic_cut(graph.learned_array)), seconds


def _chosen_form(problem: Recovery) -> Graph:
    """Take the linear form or two hidden layers, by the likelihood of the validation rows, a tenth."""
    names = [f"x{k}" for k in range(problem.values.shape[1])]
    data = pd.DataFrame(problem.values, columns=names)
    held_out = len(data) // 10
    X, y = data[names[:-1]][held_out:], data[names[-1]][held_out:]
    X_val, y_val = data[names[:-1]][:held_out], data[names[-1]][:held_out]
    start = time.process_time()
    fits = [
        CastleRegressor(random_state=0, hidden_layer_sizes=sizes, **GRAPH).fit(X, y, X_val=X_val, y_val=y_val)
        for sizes in ((), "auto")
    ]
    graph = max(fits, key=lambda one: one.log_likelihood(X_val, y_val)).graph_
    seconds = time.process_time() - start
    return graph.learned_array, strong_edges(acyclic_cut(graph.learned_array)), seconds


def _correlation(problem: Recovery) -> Graph:
    """The absolute correlation, which knows no direction: the graph has each pair in the order of the columns."""
    start = time.process_time()
    weights = np.abs(np.corrcoef(problem.values.T))
    np.fill_diagonal(weights, 0)
    return weights, strong_edges(np.triu(weights)), time.process_time() - start


OURS = {
    "prediction": lambda problem: _castle(problem),
    "graph": lambda problem: _castle(problem, **GRAPH),
    "graph, linear form": lambda problem: _castle(problem, **GRAPH, hidden_layer_sizes=()),
    "graph, form by held-out rows": _chosen_form,
    "graph, mean of 5": lambda problem: _castle(problem, **GRAPH, n_members=5),
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


def collect(folder: Path) -> pd.DataFrame:
    """Score the peers' results in the folder and store the scores beside those of other problems."""
    found = []
    for file in sorted(folder.glob("*.npz")):
        peer, _, name = file.stem.partition("-")
        if peer in PEERS:
            problem = Recovery(**np.load(folder / f"{name}.npz"))
            found.append({"problem": name, "method": peer, **_peer(file, problem)})
    scores = pd.concat([pd.DataFrame(found), pd.read_csv(STORED)] if STORED.exists() else [pd.DataFrame(found)])
    scores = scores.drop_duplicates(["problem", "method"]).sort_values(["problem", "method"])
    scores.round(4).to_csv(STORED, index=False)
    return scores


def compared(problem: Recovery, name: str) -> pd.DataFrame:
    """Score all methods on a problem, peers where their scores are stored."""
    small = len(problem.truth) <= LARGEST_FOR_ENSEMBLES
    ours = {method: recover for method, recover in OURS.items() if small or "mean of" not in method}
    found = [
        {"problem": name, "method": method, **_scores(recover(problem), problem)} for method, recover in ours.items()
    ]
    return pd.concat([pd.DataFrame(found), pd.read_csv(STORED).query("problem == @name")])


def run(n_nodes: int = 12, n_rows: int = 1000, n_graphs: int = 10) -> pd.DataFrame:
    """Print mean scores by family and method; return the scores of every graph."""
    tables = []
    for family in FAMILIES:
        for seed in range(n_graphs):
            scores = compared(recovery_problem(family, n_nodes, n_rows, seed), f"{family}_{n_nodes}_{seed}")
            tables.append(scores.assign(family=family, nodes=n_nodes))
        by_method = pd.concat(tables[-n_graphs:]).groupby("method", sort=False)
        means = by_method.mean(numeric_only=True).drop(columns="nodes")
        print(f"{family}, {n_nodes} nodes\n{means.assign(graphs=by_method.size()).round(3).to_string()}", flush=True)
    return pd.concat(tables, ignore_index=True)


def plot(scores: pd.DataFrame, path: Path) -> None:
    """Draw F1 against seconds, a panel for every family and size: small points are graphs, large ones means."""
    import matplotlib.pyplot as plt

    sizes = list(scores["nodes"].unique())
    shape = (len(sizes), len(FAMILIES))
    figure, axes = plt.subplots(
        *shape, figsize=(11, 5.8), layout="constrained", sharex=True, sharey=True, squeeze=False
    )
    for (nodes, family), part in scores.groupby(["nodes", "family"]):
        ax = axes[sizes.index(nodes), list(FAMILIES).index(str(family))]
        for method, (label, color, marker) in DRAWN.items():
            points = part[part["method"] == method]
            ax.scatter(points["seconds"], points["F1"], s=10, color=color, alpha=0.35, marker=marker, linewidths=0)
            ax.scatter(points["seconds"].mean(), points["F1"].mean(), s=70, color=color, marker=marker, label=label)
        ax.set_title(f"{FAMILY_NAMES[str(family)]}, {nodes} nodes", fontsize=9)
        ax.spines[["top", "right"]].set_visible(False)
        ax.grid(axis="y", alpha=0.3)
    axes[0, 0].set(xscale="log", ylim=(0, 1))
    axes[0, 0].xaxis.set_major_formatter("{x:g}")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=len(labels), frameon=False, fontsize=8)
    figure.supxlabel("processor seconds a graph", fontsize=10)
    figure.supylabel("F1 of the directed edges", fontsize=10)
    figure.savefig(path, dpi=110)
    plt.close(figure)


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
        case ["collect", folder]:
            print(collect(Path(folder)).groupby("method").size().to_string())
        case ["plot", file]:
            plot(pd.concat([run(*size) for size in SIZES]), Path(file))
        case ["sachs"]:
            found = compared(sachs(Path(os.environ["CASTLEREG_DATA"])), "sachs")
            print(found.drop(columns="problem").round(3).to_string(index=False))
        case [n_nodes, n_rows, n_graphs]:
            run(int(n_nodes), int(n_rows), int(n_graphs))
        case _:
            run()


if __name__ == "__main__":
    main(sys.argv[1:])
