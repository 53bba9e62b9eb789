"""Accuracy of learned graphs: discovered ones, input graphs of CASTLE, the correlation, and peers; with calibration.

Scores are stored in ``benchmarks/peers/recovery_scores.csv``; stored scores are not computed again.

- ``python -m benchmarks.graph_recovery run [METHOD ...]``: our methods on all problems.
- ``... export FOLDER``: write the problems for ``benchmarks/peers/recover.py``, which needs its own environments.
- ``... collect FOLDER``: score the output of the peers in the folder.
- ``... calibration``: the share of correct edges by probability, on separate graphs.
- ``... classes``: directions on linear Gaussian data, compared with the equivalence class.
- ``... pairs``: the Tuebingen pairs.
- ``... page``: write ``docs/recovery.md`` and its figures.

The tables of Sachs, Asia, Alarm and the pairs are read from the folder ``CASTLEREG_DATA``.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmarks.recovery_problems import DENSE, FAMILIES, SPARSE, Recovery, mixed_problem, recovery_problem
from castlereg import CastleClassifier, CastleRegressor
from castlereg.acyclicity.cut import acyclic_cut, strong_edges
from castlereg.causal.discovery import Discovery, discover
from castlereg.causal.variables import Variables
from castlereg_paper.graph_scores import ranking_scores

STORED = Path(__file__).parent / "peers" / "recovery_scores.csv"
CALIBRATION = Path(__file__).parent / "peers" / "recovery_calibration.csv"
PEERS = ("dagma", "dagma_short", "notears", "lingam", "ges", "ges_levels", "score")
PEERS_OWN_THRESHOLD = 0.3  # the default of NOTEARS and DAGMA
# Nodes, rows, edges per node, graphs of each family.
SMALL = ((12, 1000, SPARSE, 10), (12, 1000, DENSE, 5))
LARGE = ((30, 3000, SPARSE, 3), (30, 3000, DENSE, 1))
MIXED = 10  # graphs of mixed columns
MOST_ROWS_OF_LEVELS = 5000  # of the Alarm table
TABLES = ("sachs", "asia", "alarm")


class Graph(NamedTuple):
    """The graph that a method learned."""

    weights: NDArray[np.float64]  # (nodes, nodes), by which edges are ranked
    edges: NDArray[np.float64]  # 1 for an edge, one half in both directions for an undirected edge
    seconds: float  # of the processor


def problem_name(family: str, n_nodes: int, edges_per_node: float, seed: int) -> str:
    """Name a problem."""
    return f"{family}_{n_nodes}{'d' if edges_per_node == DENSE else ''}_{seed}"


def problems() -> Iterator[tuple[str, Recovery]]:
    """Draw all problems, the large ones last."""
    yield from _random(SMALL)
    for seed in range(MIXED):
        yield f"mixed_12_{seed}", mixed_problem(seed)
    if "CASTLEREG_DATA" in os.environ:
        for name in TABLES:
            yield name, table_with_graph(name, Path(os.environ["CASTLEREG_DATA"]))
    yield from _random(LARGE)


def _random(sizes: tuple[tuple[int, int, float, int], ...]) -> Iterator[tuple[str, Recovery]]:
    for n_nodes, n_rows, edges_per_node, n_graphs in sizes:
        for family in FAMILIES:
            for seed in range(n_graphs):
                name = problem_name(family, n_nodes, edges_per_node, seed)
                yield name, recovery_problem(family, n_nodes, n_rows, seed, edges_per_node)


def table_with_graph(name: str, folder: Path) -> Recovery:
    """Read a table whose graph is known: the observational Sachs table with 17 edges, Asia, or Alarm."""
    if name == "sachs":
        data = pd.read_csv(folder / "sachs_observational.csv")
        edges = pd.read_csv(folder / "sachs_edges.csv").query("in_17_edge_graph == 1")
        values, levels = ((data - data.mean()) / data.std(ddof=0)).to_numpy(), np.zeros(data.shape[1], bool)
    else:
        data = pd.read_csv(folder / f"bnlearn_{name}.csv", dtype=str)[:MOST_ROWS_OF_LEVELS]
        edges = pd.read_csv(folder / f"bnlearn_{name}_edges.csv")
        data = data.loc[:, data.nunique() > 1]
        values, levels = data.apply(lambda column: pd.factorize(column, sort=True)[0]).to_numpy(float), None
        levels = np.ones(data.shape[1], bool)
    edges = edges[edges["cause"].isin(data.columns) & edges["effect"].isin(data.columns)]
    truth = np.zeros((data.shape[1],) * 2, dtype=bool)
    truth[data.columns.get_indexer(edges["cause"]), data.columns.get_indexer(edges["effect"])] = True
    return Recovery(truth, values, levels)


def frame_of(problem: Recovery) -> pd.DataFrame:
    """Return the rows as a table, with categories for levels."""
    data = pd.DataFrame(problem.values, columns=[f"x{k}" for k in range(problem.values.shape[1])])
    for k in np.flatnonzero(np.zeros(0) if problem.levels is None else problem.levels):
        data[f"x{k}"] = pd.Categorical([f"level {int(level)}" for level in problem.values[:, k]])
    return data


def _discovered(problem: Recovery) -> Graph:
    """Return the graph that estimators discover."""
    table = Variables.of_frame(frame_of(problem))
    start = time.process_time()
    found = discover(table)
    direction = np.nan_to_num(found.direction, nan=0.5)
    return Graph(found.joined * direction, found.edges.astype(float), time.process_time() - start)


def _input_graph(problem: Recovery) -> Graph:
    """Return the paper's graph, of the networks of CASTLE."""
    data = frame_of(problem)
    X, y = data.iloc[:, :-1], data.iloc[:, -1]
    estimator = CastleClassifier if problem.levels is not None and problem.levels[-1] else CastleRegressor
    start = time.process_time()
    model = estimator(random_state=0).fit(X, y)
    learned = model.input_graph_.learned_array
    seconds = time.process_time() - start
    return Graph(learned, strong_edges(acyclic_cut(learned)).astype(float), seconds)


def _discovery(values: NDArray[np.float64]) -> Discovery:
    """Discover the graph of columns of numbers."""
    return discover(Variables.of_frame(pd.DataFrame(values)))


def _correlation(problem: Recovery) -> Graph:
    """Return the absolute correlation, which has no direction."""
    start = time.process_time()
    weights = np.abs(np.corrcoef(problem.values.T))
    np.fill_diagonal(weights, 0)
    edges = strong_edges(np.triu(weights)).astype(float)
    return Graph(weights, (edges + edges.T) / 2, time.process_time() - start)


OURS = {
    "graph": _discovered,
    "prediction": _input_graph,
    "correlation": _correlation,
}


def scores(graph: Graph, truth: NDArray[np.bool_]) -> dict[str, float]:
    """Score a graph; an undirected edge counts as half right."""
    found, right = float(graph.edges.sum()), float(graph.edges[truth].sum())
    either = np.minimum(graph.edges + graph.edges.T, 1)
    joined = float(either[truth].sum())
    both = max(found + truth.sum(), 1)
    return {
        "AUROC": ranking_scores(graph.weights, truth)["auroc"],
        "F1": 2 * right / both,
        "F1 without directions": 2 * joined / both,
        "direction right": right / joined if joined else np.nan,
        "edges": found,
        "seconds": graph.seconds,
    }


def stored() -> pd.DataFrame:
    """Read all scores."""
    return pd.read_csv(STORED)


def _store(row: dict[str, Any]) -> None:
    columns = list(pd.read_csv(STORED, nrows=0))
    pd.DataFrame([row])[columns].round(4).to_csv(STORED, mode="a", header=False, index=False)
    print(*(f"{value:.3f}" if isinstance(value, float) else value for value in row.values()), flush=True)


def run(methods: list[str]) -> None:
    """Run our methods on the problems without a stored score."""
    known = set(map(tuple, stored()[["problem", "method"]].to_numpy()))
    for name, problem in problems():
        for method in methods or list(OURS):
            if (name, method) not in known:
                _store({"problem": name, "method": method, **scores(OURS[method](problem), problem.truth)})


def export(folder: Path) -> None:
    """Write the problems as files."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, problem in problems():
        np.savez(folder / f"{name}.npz", truth=problem.truth, values=problem.values)


def collect(folder: Path) -> None:
    """Score the results of peers in the folder that have no stored score."""
    known = set(map(tuple, stored()[["problem", "method"]].to_numpy()))
    for file in sorted(folder.glob("*-*.npz")):
        peer, _, name = file.stem.partition("-")
        if peer in PEERS and (name, peer) not in known:
            result, truth = np.load(file), np.load(folder / f"{name}.npz")["truth"]
            weights, seconds = result["weights"], float(result["seconds"])
            graphs = [(weights > 0) * np.minimum(weights, 1) if peer.startswith("ges") else (weights > 0).astype(float)]
            if peer in ("dagma", "dagma_short", "notears"):  # the better of two thresholds, for each graph
                cut = acyclic_cut(weights)
                graphs = [(cut > PEERS_OWN_THRESHOLD).astype(float), strong_edges(cut).astype(float)]
            elif peer == "lingam":
                graphs = [(weights > least).astype(float) for least in (0.01, 0.05, 0.1)]
            of_graphs = [scores(Graph(weights, edges, seconds), truth) for edges in graphs]
            _store({"problem": name, "method": peer, **max(of_graphs, key=lambda of_graph: of_graph["F1"])})


def calibration(first: int = 300, n_seeds: int = 20) -> pd.DataFrame:
    """Store probabilities of edges and directions with the truth, for graphs of all families."""
    rows = []
    for seed in range(first, first + n_seeds):
        for family in FAMILIES:
            rng = np.random.default_rng([seed, 5])
            n_nodes, n_rows = int(rng.choice([6, 9, 12, 15])), int(rng.choice([200, 500, 1000]))
            problem = recovery_problem(family, n_nodes, n_rows, seed, float(rng.choice([1.2, SPARSE, 2.5])))
            found = _discovery(problem.values)
            for j, k in np.argwhere(np.triu(np.ones_like(problem.truth), 1)):
                either = bool(problem.truth[j, k] or problem.truth[k, j])
                forward = found.direction[j, k]
                sure, right = (forward, problem.truth[j, k]) if forward >= 0.5 else (1 - forward, problem.truth[k, j])
                direction = (sure, right) if either and np.isfinite(forward) else (np.nan, np.nan)
                rows.append((family, seed, found.joined[j, k], either, *map(float, direction)))
        print("calibration", seed, flush=True)
    table = pd.DataFrame(rows, columns=["family", "seed", "joined", "is_joined", "direction", "is_right"])
    table.round(4).to_csv(CALIBRATION, index=False)
    return table


def calibration_error(probability: pd.Series, truth: pd.Series, n_bins: int = 10) -> float:
    """Return the expected calibration error over bins of equal width."""
    bins = np.minimum((probability * n_bins).astype(int), n_bins - 1)
    by_bin = pd.DataFrame({"p": probability, "t": truth.astype(float)}).groupby(bins)
    return float((by_bin.size() * (by_bin["p"].mean() - by_bin["t"].mean()).abs()).sum() / len(probability))


def reversible(truth: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return which edges of a graph have either direction in its equivalence class (Meek's rules)."""
    either = truth | truth.T
    compelled = np.zeros_like(truth)
    for k in range(len(truth)):
        causes = np.flatnonzero(truth[:, k])
        for i in causes:
            compelled[i, k] |= any(i != j and not either[i, j] for j in causes)
    while True:
        before = compelled.copy()
        for j, k in np.argwhere(truth & ~compelled):
            first = any(compelled[i, j] and not either[i, k] for i in range(len(truth)))
            second = any(compelled[j, i] and compelled[i, k] for i in range(len(truth)))
            middle = [i for i in range(len(truth)) if compelled[i, k] and either[i, j] and not compelled[i, j]]
            third = any(not either[a, b] for a in middle for b in middle if a != b)
            compelled[j, k] = first or second or third
        if np.array_equal(before, compelled):
            return truth & ~compelled


def classes(n_graphs: int = 20) -> pd.DataFrame:
    """Count edges on linear Gaussian data by whether their direction is identifiable and whether it is reported."""
    rows = []
    for seed in range(400, 400 + n_graphs):
        problem = recovery_problem("gaussian", 12, 1000, seed)
        found = _discovery(problem.values)
        free = reversible(problem.truth)
        for j, k in np.argwhere(problem.truth & (found.edges | found.edges.T)):
            sure = max(found.direction[j, k], found.direction[k, j]) >= 0.75
            rows.append((bool(free[j, k]), bool(sure), bool(found.edges[j, k])))
    table = pd.DataFrame(rows, columns=["either way", "said to be known", "right"])
    return table.groupby(["either way", "said to be known"])["right"].agg(["size", "mean"])


def pairs(folder: Path) -> pd.DataFrame:
    """Direct the Tuebingen pairs, in both orders of their columns."""
    rows = []
    for pair in pd.read_csv(folder / "tuebingen_pairs.csv").itertuples():
        cause, effect = (np.array(text.split(), float) for text in (pair.A, pair.B))
        sample = np.linspace(0, len(cause) - 1, min(len(cause), 2000)).astype(int)
        for columns, way in (((cause, effect), (0, 1)), ((effect, cause), (1, 0))):
            found = _discovery(np.column_stack(columns)[sample])
            probability = found.direction[way] if found.edges.any() else 0.5
            rows.append((pair.SampleID, way == (0, 1), probability))
    return pd.DataFrame(rows, columns=["pair", "in order", "probability of the right direction"])


def main(arguments: list[str]) -> None:
    """Run a command."""
    match arguments:
        case ["export", folder]:
            export(Path(folder))
        case ["collect", folder]:
            collect(Path(folder))
        case ["calibration"]:
            table = calibration()
            known = table.dropna()
            print(calibration_error(table["joined"], table["is_joined"]))
            print(calibration_error(known["direction"], known["is_right"]))
        case ["classes"]:
            print(classes().to_string())
        case ["pairs"]:
            table = pairs(Path(os.environ["CASTLEREG_DATA"]))
            print(table.groupby("in order")["probability of the right direction"].agg(lambda p: (p > 0.5).mean()))
        case ["page"]:
            from benchmarks.recovery_page import write_page

            write_page()
        case ["run", *methods]:
            run(methods)
        case _:
            run([])


if __name__ == "__main__":
    main(sys.argv[1:])
