"""Write the tables that compare the PyTorch loop with the estimator to ``docs/speed.md``."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmarks.marked_figures import DOCS, write_figures
from castlereg.causal.graph.scores import structural_hamming_distance
from castlereg.markdown import markdown_table

RESULTS = Path(__file__).parent / "results.csv"
COMMAND = "python -m benchmarks.torch_loop page"
NODES = 11
Graphs = dict[tuple[str, int, int], NDArray[np.bool_]]  # by method, seed and order of the batches
METHODS = {"loop": "the loop", "estimator": "`CastleRegressor`"}


def as_text(edges: NDArray[np.bool_]) -> str:
    """Encode a matrix of edges as hexadecimal digits."""
    return np.packbits(edges).tobytes().hex()


def as_edges(text: str) -> NDArray[np.bool_]:
    """Decode the output of :func:`as_text`."""
    bits = np.unpackbits(np.frombuffer(bytes.fromhex(text), np.uint8))
    return bits[: NODES * NODES].reshape(NODES, NODES).astype(bool)


def figures() -> str:
    """Return the tables of errors and edges and of distances between graphs, with a summary."""
    results = pd.read_csv(RESULTS)
    results["graph"] = results["edges"].map(as_edges)
    results["edges"] = results["graph"].map(np.sum)
    one_split, splits = results[results["split"] == 0], results[results["split"] > 0]
    seeds = one_split[one_split["batches"] == 0]
    table = pd.DataFrame(
        {
            "ten fits": list(METHODS.values()),
            "test error, ten seeds": _spread(seeds, "test_error", 3),
            "edges, ten seeds": _spread(seeds, "edges", 1),
            "test error, ten splits": _spread(splits, "test_error", 3),
        }
    )
    graphs: Graphs = {(row.method, row.seed, row.batches): row.graph for row in one_split.itertuples()}
    of_two = {key: graph for key, graph in graphs.items() if key[0] in METHODS}
    farther, share = excess(of_two)
    return "\n\n".join(
        [
            f"""- **With the estimator's own batches**, ten seeds: test errors differ by at most {_replayed(seeds)}, and
  {_same_graphs(graphs)} of the ten graphs have the same edges.
- **With its own batches**, the test error of the loop minus that of the estimator is {_difference(one_split, "seed")}
  over ten seeds and {_difference(splits, "split")} over ten splits (mean ± standard error).
- **Graphs of the same seed** differ by {farther:.1f} more edges between the two methods than within one method. With
  randomly swapped labels, the difference is at least as large in {share:.0%} of the cases.""",
            markdown_table(table),
            markdown_table(distances(of_two)),
        ]
    )


def _replayed(results: pd.DataFrame) -> str:
    errors = results.pivot_table(index="seed", columns="method", values="test_error")
    return f"{(errors['replay'] - errors['estimator']).abs().max():.1g}"


def _same_graphs(graphs: Graphs) -> int:
    replayed = [
        (graph, graphs["estimator", seed, b]) for (method, seed, b), graph in graphs.items() if method == "replay"
    ]
    return sum(np.array_equal(graph, other) for graph, other in replayed)


def _spread(results: pd.DataFrame, column: str, digits: int) -> list[str]:
    by_method = [results.loc[results["method"] == name, column] for name in METHODS]
    shown = [[f"{v:.{digits}f}" for v in (x.mean(), x.std(), x.min(), x.max())] for x in by_method]
    return [f"{mean} ± {std} ({lowest} to {highest})" for mean, std, lowest, highest in shown]


def _difference(results: pd.DataFrame, by: str) -> str:
    means = results.pivot_table(index=by, columns="method", values="test_error")
    differences = means["loop"] - means["estimator"]
    return f"{differences.mean():+.3f} ± {differences.std() / len(differences) ** 0.5:.3f}"


def distances(graphs: Graphs) -> pd.DataFrame:
    """Return mean and standard deviation of the structural Hamming distance between graphs of one split."""
    table = []
    for left, right in (("loop", "estimator"), ("estimator", "estimator"), ("loop", "loop")):
        pairs = [(a, b) for a in graphs for b in graphs if (a[0], b[0]) == (left, right) and a != b]
        row = [f"{METHODS[left]} and {METHODS[right]}"]
        for same_seed in (True, False):
            found = [structural_hamming_distance(graphs[a], graphs[b]) for a, b in pairs if (a[1] == b[1]) == same_seed]
            row.append(f"{np.mean(found):.1f} ± {np.std(found):.1f}")
        table.append(row)
    columns = ["distance between graphs of", "same seed, batches in any order", "other seed"]
    return pd.DataFrame(table, columns=columns)


def excess(graphs: Graphs, repeats: int = 2000) -> tuple[float, float]:
    """Return how much larger distances are between graphs of the two methods than within one method, seed by seed.

    The second figure is the share of random labels within each seed that give at least this excess.
    """
    seeds = sorted({seed for _, seed, _ in graphs})
    by_seed = [[graph for key, graph in graphs.items() if key[1] == seed] for seed in seeds]
    labels = [np.array([key[0] == "loop" for key in graphs if key[1] == seed]) for seed in seeds]
    tables = [np.array([[structural_hamming_distance(a, b) for b in found] for a in found]) for found in by_seed]
    rng = np.random.default_rng(0)

    def mean_excess(labels: list[NDArray[np.bool_]]) -> float:
        found = []
        for table, label in zip(tables, labels, strict=True):
            same = label[:, None] == label
            found.append(table[~same].mean() - table[same & ~np.eye(len(table), dtype=bool)].mean())
        return float(np.mean(found))

    observed = mean_excess(labels)
    drawn = [mean_excess([rng.permutation(label) for label in labels]) for _ in range(repeats)]
    return observed, float(np.mean(np.array(drawn) >= observed))


def write() -> None:
    """Write the tables into the page."""
    write_figures(DOCS / "speed.md", COMMAND, figures())
