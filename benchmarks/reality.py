"""Discovery on real data with a known answer: pairs, tiers, a physical device, and three tables of the literature.

Nothing is chosen on these data, except, at most, two constants on the pairs with odd numbers. Every run adds a line for
each data set and figure to ``benchmarks/recovery/reality.csv``, with its date and commit, good or bad.

- ``python -m benchmarks.reality run [pairs | tiers | chamber | tables | orders ...]``: run discovery, all by
  default. The last one is the Chamber with its columns in ten other orders.
- ``... export FOLDER`` and ``... collect FOLDER``: tables for ``benchmarks/peers/recover.py``, and its figures.
- ``... latest``: print the last figures of each method.

Data are read from the folder ``reality`` next to ``CASTLEREG_DATA``; Sachs, Asia and Alarm from ``CASTLEREG_DATA``.
"""

from __future__ import annotations

import itertools
import json
import os
import sys
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before BLAS is loaded

import numpy as np
import pandas as pd

from benchmarks.graph_recovery import TABLES, frame_of, table_with_graph
from benchmarks.real_columns import (
    CLAIM,
    STORED,
    Pairs,
    Values,
    calibration_error,
    claims,
    commit,
    found_in,
    peer_edges,
    same_graphs,
    values_for_peers,
)

LOG = STORED / "reality.csv"
TIERS = ("adult", "airfoil-self-noise", "auto-mpg", "covertype", "wine-quality")
CHAMBER_COLUMNS = (
    *("red", "green", "blue", "current", "pol_1", "pol_2", "ir_1", "vis_1", "ir_2", "vis_2", "ir_3", "vis_3"),
    *("angle_1", "angle_2", "l_11", "l_12", "l_21", "l_22", "l_31", "l_32"),
)
CLAIM_BINS = (0.5, 0.6, 0.75, 0.9, 0.97, 1.0)
SETS = ("pairs", "tiers", "chamber", "tables", "orders")
PEERS = ("lingam", "ges", "boss", "fci")


class Figure(NamedTuple):
    """A line of the log."""

    data: str
    name: str
    value: float
    n: float = np.nan  # number of pairs, arrows or tables
    low: float = np.nan  # 95 % interval
    high: float = np.nan


class Graph(NamedTuple):
    """What a method says about a table."""

    edges: Values  # 1 for an edge, one half in both directions for an undirected edge
    claims: Pairs  # arrows with both probabilities of at least 0.9; all arrows of peers without probabilities
    joined: Values | None = None  # probabilities of edges


def folder() -> Path:
    """Return the folder of real data."""
    return Path(os.environ["CASTLEREG_DATA"]).parent / "reality"


def interval(right: Values, weight: Values) -> tuple[float, float, float]:
    """Return a weighted share and Wilson's 95 % interval for the effective number of pairs."""
    if not len(right):
        return np.nan, np.nan, np.nan
    share, n, z = float(weight @ right / weight.sum()), float(weight.sum() ** 2 / (weight @ weight)), 1.96
    center, half = share + z**2 / (2 * n), z * np.sqrt(share * (1 - share) / n + z**2 / (4 * n**2))
    return share, (center - half) / (1 + z**2 / n), (center + half) / (1 + z**2 / n)


# --- cause-effect pairs ------------------------------------------------------------------------------


def directed_pairs() -> pd.DataFrame:
    """Return the probability of the right direction for every pair; half of the pairs are swapped at random."""
    rows = []
    for number, pair in pd.read_csv(folder() / "tuebingen_102.csv.gz").groupby("pair"):
        is_swapped = np.random.default_rng([int(number), 102]).random() < 0.5
        frame = pair[["effect", "cause"] if is_swapped else ["cause", "effect"]].set_axis(["a", "b"], axis=1)
        found, _, _ = found_in(frame)
        cause, effect = (1, 0) if is_swapped else (0, 1)
        direction = float(found.direction[cause, effect])
        distinct = int(pair[["cause", "effect"]].nunique().min())
        known = direction if np.isfinite(direction) else 0.5
        rows.append((int(number), float(pair["weight"].iloc[0]), distinct, float(found.joined[0, 1]), known))
    return pd.DataFrame(rows, columns=["pair", "weight", "distinct", "joined", "probability"])


def figures_of_pairs(pairs: pd.DataFrame, data: str) -> list[Figure]:
    """Return forced accuracy, calibration error, and the share that is right by what is claimed."""
    right = np.where(pairs["probability"] == 0.5, 0.5, pairs["probability"] > 0.5)
    sure = np.maximum(pairs["probability"], 1 - pairs["probability"]).to_numpy(float)
    weight = pairs["weight"].to_numpy(float)

    def share(name: str, of: Pairs) -> Figure:
        value, low, high = interval(right[of], weight[of])
        return Figure(data, name, value, int(of.sum()), low, high)

    lower = itertools.pairwise(CLAIM_BINS)
    bins = [share(f"right, claims of {a:g} to {b:g}", (sure >= a) & (sure < b + (b == 1))) for a, b in lower]
    distinct = pairs["distinct"].to_numpy()
    return [
        share("forced accuracy", np.ones(len(pairs), dtype=bool)),
        Figure(data, "expected calibration error", calibration_error(sure, right, weight), len(pairs)),
        share(f"right, claims of at least {CLAIM}", sure >= CLAIM),
        *bins,
        share("forced accuracy, fewer than 50 distinct values", distinct < 50),
        share("forced accuracy, more than 200 distinct values", distinct > 200),
        Figure(data, "pairs with an edge", float((pairs["joined"] >= 0.5).mean()), len(pairs)),
    ]


# --- tables ------------------------------------------------------------------------------------------


def tier_table(name: str) -> tuple[pd.DataFrame, Values]:
    """Read a table of the known tiers and the tier of each column, NaN for unknown; texts are levels."""
    frame = pd.read_csv(folder() / "tiers" / f"{name}.csv")
    for column in frame.columns[[not pd.api.types.is_numeric_dtype(kind) for kind in frame.dtypes]]:
        frame[column] = pd.Categorical(frame[column])
    tiers = json.loads((folder() / "tiers" / "tiers.json").read_text(encoding="utf-8"))[name]
    tier = {column: float(position) for position, columns in enumerate(tiers) for column in columns}
    return frame, np.array([tier.get(column, np.nan) for column in frame])


def chamber() -> tuple[pd.DataFrame, Pairs]:
    """Read 2,000 rows of the light tunnel and the edges among its columns."""
    columns = list(CHAMBER_COLUMNS)
    frame = pd.read_csv(folder() / "chamber" / "uniform_reference.csv")[columns].sample(2000, random_state=0)
    edges = pd.read_csv(folder() / "chamber" / "dag.csv").query("source in @columns and target in @columns")
    truth = np.zeros((len(columns),) * 2, dtype=bool)
    truth[frame.columns.get_indexer(edges["source"]), frame.columns.get_indexer(edges["target"])] = True
    return frame.reset_index(drop=True), truth


def tables(sets: Iterable[str]) -> Iterable[tuple[str, pd.DataFrame, Values | None, Pairs | None]]:
    """Read tables: name, rows, and the tiers of the columns or the graph."""
    if "tiers" in sets:
        for name in TIERS:
            yield f"tiers {name}", *tier_table(name), None
    if "chamber" in sets:
        frame, truth = chamber()
        yield "chamber", frame, None, truth
    if "tables" in sets:
        for name in TABLES:
            problem = table_with_graph(name, Path(os.environ["CASTLEREG_DATA"]))
            yield name, frame_of(problem), None, problem.truth


def figures_with_graph(data: str, graph: Graph, truth: Pairs) -> list[Figure]:
    """Compare a graph with the known one."""
    edges, sure = graph.edges, graph.claims
    either, is_joined = np.minimum(edges + edges.T, 1), truth | truth.T
    both = max(edges.sum() + truth.sum(), 1)
    is_false = np.triu(either > 0) & ~is_joined
    figures = [
        Figure(data, "F1", 2 * float(edges[truth].sum()) / both, float(edges.sum())),
        Figure(data, "F1 without directions", 2 * float(either[truth].sum()) / both, float(edges.sum())),
        Figure(data, "right, claimed arrows", _share(truth[sure]), int(sure.sum())),
    ]
    if graph.joined is not None:
        share = _share(graph.joined[is_false] >= CLAIM)
        figures.append(Figure(data, "false edges that are confident", share, int(is_false.sum())))
    return figures


def figures_with_tiers(graphs: dict[str, tuple[Graph, Values]]) -> list[Figure]:
    """Count arrows between columns of different known tiers, and those that point to the later one."""
    figures, shares = [], []
    for kind in ("claimed arrows", "all arrows"):
        right: list[Values] = []
        for data, (graph, tier) in graphs.items():
            j, k = np.nonzero(graph.claims if kind == "claimed arrows" else graph.edges == 1)
            between = np.isfinite(tier[j] + tier[k]) & (tier[j] != tier[k])
            right.append((tier[j] < tier[k])[between].astype(float))
            figures.append(Figure(data, f"right, {kind}", _share(right[-1]), len(right[-1])))
        shares = [share.mean() for share in right if len(share)]
        pooled, low, high = interval(np.concatenate(right), np.ones(sum(map(len, right))))
        figures.append(Figure("tiers", f"right, {kind}", pooled, sum(map(len, right)), low, high))
        figures.append(Figure("tiers", f"right, {kind}, mean over tables", _share(np.array(shares)), len(shares)))
    return figures


def _share(right: Values | Pairs) -> float:
    return float(np.mean(right)) if len(right) else np.nan


def figures_of_tables(graphs: Iterable[tuple[str, Graph, Values | None, Pairs | None]]) -> list[Figure]:
    """Return the figures of graphs with tiers or known graphs."""
    figures, with_tiers = [], {}
    for data, graph, tier, truth in graphs:
        if tier is not None:
            with_tiers[data] = graph, tier
        if truth is not None:
            figures += figures_with_graph(data, graph, truth)
    return [*(figures_with_tiers(with_tiers) if with_tiers else []), *figures]


# --- log and commands --------------------------------------------------------------------------------


def now() -> str:
    """Return the date and time that name a run."""
    return datetime.now(UTC).strftime("%Y-%m-%d %H:%M")


def log(figures: Iterable[Figure], method: str, name: str, date: str) -> None:
    """Append figures to the log."""
    table = pd.DataFrame(figures).rename(columns={"name": "figure"})
    table.insert(0, "date", date)
    table.insert(1, "commit", name)
    table.insert(2, "method", method)
    STORED.mkdir(exist_ok=True)
    table.round(4).to_csv(LOG, mode="a", header=not LOG.exists(), index=False)
    print(table.to_string(index=False, float_format=lambda value: f"{value:.3f}"), flush=True)


def runs() -> pd.DataFrame:
    """Read the log."""
    return pd.read_csv(LOG, dtype={"commit": str})


def latest() -> pd.DataFrame:
    """Return the last value of every figure of each method."""
    return runs().drop_duplicates(["method", "data", "figure"], keep="last")


def run(sets: Sequence[str]) -> None:
    """Discover graphs of the data sets."""
    name, date = commit(), now()
    if "pairs" in sets:
        pairs = directed_pairs()
        is_even = pairs["pair"] % 2 == 0
        for data, part in (("pairs", pairs), ("odd pairs", pairs[~is_even]), ("even pairs", pairs[is_even])):
            log(figures_of_pairs(part, data), "castlereg", name, date)
    graphs = []
    for data, frame, tier, truth in tables(sets):
        found, _, seconds = found_in(frame)
        print(f"{data}: {int(found.edges.sum())} edges, {seconds:.1f} s", flush=True)
        graphs.append((data, Graph(found.edges.astype(float), claims(found), found.joined), tier, truth))
    if graphs:
        log(figures_of_tables(graphs), "castlereg", name, date)
    if "orders" in sets:
        same = same_graphs(chamber()[0], "order", seed=0)[0]
        log([Figure("chamber", "same graph in other orders", same / 10, 10)], "castlereg", name, date)


def export(place: Path) -> None:
    """Write the tables as files, for peers."""
    place.mkdir(parents=True, exist_ok=True)
    for data, frame, _, _ in tables(SETS):
        values, levels = values_for_peers(frame)
        np.savez(place / f"{data}.npz", values=values, levels=levels)


def collect(place: Path) -> None:
    """Add the figures of peers; all of their arrows are claims."""
    date = now()
    for peer in PEERS:
        graphs = []
        for data, frame, tier, truth in tables(SETS):
            of = "ges_levels" if peer == "ges" and data in ("asia", "alarm") else peer
            file = place / f"{of}-{data}.npz"
            if file.exists():
                edges = peer_edges(of, np.load(file)["weights"], np.load(place / f"{data}.npz")["values"])
                if edges.shape == (frame.shape[1],) * 2:
                    graphs.append((data, Graph(edges, edges == 1), tier, truth))
        if graphs:
            log(figures_of_tables(graphs), peer, "", date)


def main(arguments: Sequence[str]) -> None:
    """Run a command."""
    match arguments:
        case ["run", *sets] if set(sets) <= set(SETS):
            run(sets or SETS)
        case ["export", place]:
            export(Path(place))
        case ["collect", place]:
            collect(Path(place))
        case ["latest"]:
            print(latest().to_string(index=False))
        case _:
            sys.exit(str(__doc__))


if __name__ == "__main__":
    main(sys.argv[1:])
