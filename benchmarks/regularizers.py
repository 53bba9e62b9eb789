"""The paper's ten methods on real tables and on a known graph with noise columns, from small and from usual starts.

Real tables are read from the folder in ``CASTLEREG_DATA``; without it only the known graph is run. Each table has
five random splits (the graph five draws) of ten folds. CASTLE always starts small; the others start small in one
run, and from Glorot's scale in the other.

``python -m benchmarks.regularizers [table ...]``
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.known_graphs import noise_columns_draw
from castlereg import Comparison, compare
from castlereg.comparison import PAPER_METHODS

SPLITS = 5
STARTS = {"small start for all": "small", "usual start for the others": "glorot"}


def boston(folder: Path) -> tuple[pd.DataFrame, pd.Series]:
    """Read Boston Housing."""
    table = pd.read_csv(folder / "boston_housing.csv")
    return table.drop(columns="MEDV"), table["MEDV"]


def pima(folder: Path) -> tuple[pd.DataFrame, pd.Series]:
    """Read Pima Diabetes, zeros as they are."""
    table = pd.read_csv(folder / "pima_diabetes.csv")
    return table.drop(columns="Outcome"), table["Outcome"]


def heart(folder: Path) -> tuple[pd.DataFrame, pd.Series]:
    """Read Statlog Heart, whose nominal columns are codes."""
    table = pd.read_csv(folder / "statlog_heart.csv")
    nominal = ["chest-pain", "electrocardiographic", "thal"]
    return table.drop(columns="heart-disease").astype(dict.fromkeys(nominal, "category")), table["heart-disease"]


def facebook(folder: Path) -> tuple[pd.DataFrame, pd.Series]:
    """Read Facebook metrics without the three parts of the target."""
    table = pd.read_csv(folder / "facebook_metrics.csv").drop(columns=["comment", "like", "share"])
    return table.drop(columns="Total Interactions").astype({"Category": "category"}), table["Total Interactions"]


def facebook_log(folder: Path) -> tuple[pd.DataFrame, pd.Series]:
    """Read Facebook metrics with the logarithm of the target, of which one row has half the variance."""
    features, target = facebook(folder)
    return features, np.log1p(target)


TABLES: dict[str, Callable[[Path], tuple[pd.DataFrame, pd.Series]]] = {
    "Boston Housing": boston,
    "Pima": pima,
    "Statlog Heart": heart,
    "Facebook": facebook,
    "Facebook, log target": facebook_log,
}
GRAPH = "15 nodes + 20 noise columns"


def starts_of(other: str) -> dict[str, str]:
    """Return the start of every method: small for CASTLE."""
    return {name: "small" if name == "CASTLE" else other for name in PAPER_METHODS}


def on_graph(other: str) -> Comparison:
    """Compare on draws of the known graph, each a split of its own: 300 rows to learn from, 1200 to score."""
    results = []
    for draw in range(SPLITS):
        rows = noise_columns_draw(draw, strong=True, n_test=1200)
        table = pd.concat([pd.DataFrame(rows.train), pd.DataFrame(rows.test)])
        results.append(
            compare(
                table.iloc[:, :-1].to_numpy(),
                table.iloc[:, -1].to_numpy(),
                test_size=0.8,
                input_init=starts_of(other),
                random_state=draw,
            )
        )
    return merged(results)


def merged(results: list[Comparison]) -> Comparison:
    """Join comparisons of the same methods on different draws of data."""
    numbered = [
        tuple(frame.assign(split=number) for frame in (one.scores, one.by_split)) for number, one in enumerate(results)
    ]
    scores, by_split = (pd.concat(frames, ignore_index=True) for frames in zip(*numbered, strict=True))
    seconds = sum((one.seconds for one in results[1:]), results[0].seconds)
    about = results[0].about.replace("1 random split", f"{len(results)} draws")
    return Comparison(scores, by_split, seconds, results[0].metric, about)


def comparisons(names: list[str]) -> Iterator[tuple[str, str, Comparison]]:
    """Run the comparisons, table by table and start by start."""
    folder = os.environ.get("CASTLEREG_DATA")
    for name in names:
        for title, other in STARTS.items():
            if name == GRAPH:
                yield name, title, on_graph(other)
            elif folder is not None:
                features, target = TABLES[name](Path(folder))
                yield (
                    name,
                    title,
                    compare(features, target, n_splits=SPLITS, input_init=starts_of(other), random_state=0),
                )


def main(names: list[str]) -> None:
    """Print the tables."""
    known = [*TABLES, GRAPH]
    if unknown := set(names) - set(known):
        sys.exit(f"no table named {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    if "CASTLEREG_DATA" not in os.environ:
        print("CASTLEREG_DATA is not set: the real tables are left out")
    for name, title, result in comparisons(names or known):
        castle = result.ranks()["CASTLE"].mean()
        by_split = result.ranks("split")["CASTLE"].mean()
        print(f"\n## {name}, {title}\n\n{result.about}\n\n{result.to_markdown()}")
        print(f"\nCASTLE's mean rank: {castle:.2f} over folds, {by_split:.2f} over splits. {result.significance()}")
        sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
