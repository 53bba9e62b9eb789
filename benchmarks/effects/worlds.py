"""Known worlds with questions and their true answers, written as files that peers in other environments read."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from castlereg.causal import KnownWorld, random_dag, weighted_dag

KINDS = ("linear", "sigmoid", "sine", "smooth", "mixed")
NODES, EDGES, ROWS = 12, 20, 1000
VALUES = 10  # per cause, from the 5 % to the 95 % quantile
SIMULATED = 20_000  # rows that the truth is computed from


class Problem(NamedTuple):
    """Rows of a world, its graph, and the true mean of an outcome when each other column is set to values."""

    kind: str
    seed: int
    rows: pd.DataFrame
    dag: pd.DataFrame
    outcome: str
    truth: dict[str, list[tuple[Any, float]]]


def known_world(kind: str, seed: int) -> tuple[KnownWorld, pd.DataFrame]:
    """Draw a world and rows of it; a mixed one has four columns of two or three levels."""
    rng = np.random.default_rng([seed, KINDS.index(kind)])
    dag = weighted_dag(random_dag(NODES, EDGES, rng), 0.5, 2.0, random_state=rng)
    function, levels = kind, {}
    if kind == "mixed":
        function = ("linear", "sigmoid", "sine", "smooth")[seed % 4]
        levels = dict(zip(rng.choice(list(dag)[:-1], 4, replace=False), (2, 2, 3, 3), strict=True))
    noise = "laplace" if kind == "linear" else "gaussian"
    drawn = int(rng.integers(2**31))
    world = KnownWorld(dag, function=function, noise=noise, categorical=levels, random_state=drawn)
    return world, world.sample(ROWS, random_state=rng)


def problem_outcome(world: KnownWorld) -> str:
    """Return the numeric column with the most causes."""
    graph, numbers = world.graph(), [name for name in world.names if name not in world.categorical]
    return max(numbers, key=lambda name: (len(graph.ancestors(name)), name))


def problem(kind: str, seed: int) -> Problem:
    """Draw a world, and compute the effect of every column on the numeric column with the most causes."""
    world, rows = known_world(kind, seed)
    graph, outcome = world.graph(), problem_outcome(world)
    truth = {}
    for cause in rows.columns.drop(outcome):
        if cause in world.categorical:
            values: list[Any] = list(rows[cause].cat.categories)
        else:
            values = np.quantile(rows[cause], np.linspace(0.05, 0.95, VALUES)).tolist()
        reaches = cause in graph.ancestors(outcome)
        means = [
            float(world.do({cause: value}).sample(SIMULATED, random_state=77)[outcome].mean())
            for value in (values if reaches else values[:1])
        ]
        truth[str(cause)] = list(zip(values, means if reaches else means * len(values), strict=True))
    return Problem(kind, seed, rows, (world.dag != 0).astype(int), outcome, truth)


def write(problem: Problem, folder: Path) -> None:
    """Write a problem as two files."""
    folder.mkdir(parents=True, exist_ok=True)
    name = f"{problem.kind}_{problem.seed}"
    problem.rows.to_csv(folder / f"{name}.csv", index=False)
    content = {
        "kind": problem.kind,
        "seed": problem.seed,
        "dag": problem.dag.to_numpy().tolist(),
        "outcome": problem.outcome,
        "truth": problem.truth,
    }
    (folder / f"{name}.json").write_text(json.dumps(content))


def read(folder: Path, kinds: Sequence[str] = KINDS) -> list[Problem]:
    """Read all problems of a folder."""
    problems = []
    for path in sorted(folder.glob("*.json"), key=lambda path: (path.stem.split("_")[0], int(path.stem.split("_")[1]))):
        content = json.loads(path.read_text())
        if content["kind"] not in kinds:
            continue
        rows = pd.read_csv(path.with_suffix(".csv"), dtype_backend="numpy_nullable")
        for name in rows:
            rows[name] = rows[name].astype("float64" if pd.api.types.is_numeric_dtype(rows[name]) else "category")
        dag = pd.DataFrame(content.pop("dag"), index=rows.columns, columns=rows.columns)
        problems.append(Problem(rows=rows, dag=dag, **content))
    return problems
