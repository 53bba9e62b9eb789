"""Seconds of a question about a long, wide table: 10,000 rows, 50 columns, 20 values, with error bars."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pandas as pd

from castlereg.causal import FittedWorld, KnownWorld, random_dag, weighted_dag
from castlereg.causal.graph import CausalGraph
from castlereg.causal.variables import Variables

RESULTS = Path(__file__).with_name("speed.csv")
ROWS, NODES, EDGES, VALUES = 10_000, 50, 100, 20


def world_and_rows() -> tuple[KnownWorld, pd.DataFrame]:
    """Draw the rows."""
    dag = weighted_dag(random_dag(NODES, EDGES, random_state=0), 0.5, 2.0, random_state=0)
    world = KnownWorld(dag, function="sine")
    return world, world.sample(ROWS, random_state=0)


def longest(graph: CausalGraph) -> tuple[str, str]:
    """Return the cause and the outcome with the most columns in between."""
    pairs = [(len(set(graph.descendants(a)) & set(graph.ancestors(b))), a, b) for a in graph.names for b in graph.names]
    return max(pairs)[1:]


def measure(path: Path = RESULTS) -> None:
    """Time the fit and the questions."""
    world, rows = world_and_rows()
    graph = world.graph()
    cause, outcome = longest(graph)
    values = np.linspace(-1, 1, VALUES).tolist()
    results = []
    for draws in (0, 50):
        begun = time.perf_counter()
        fitted = FittedWorld.fit(Variables.of_frame(rows), graph, is_graph_given=True, n_draws=draws)
        seconds = {"fit": time.perf_counter() - begun}
        begun = time.perf_counter()
        fitted.effect(cause, outcome, values=values)
        seconds["effect, 20 values"] = time.perf_counter() - begun
        begun = time.perf_counter()
        fitted.counterfactual(rows, {cause: 0.5})
        seconds["counterfactuals of all rows"] = time.perf_counter() - begun
        begun = time.perf_counter()
        fitted.sample(ROWS, random_state=0, do={cause: 0.5})
        seconds["10,000 rows drawn"] = time.perf_counter() - begun
        results.append({"method": "castlereg", "draws": draws} | seconds)
        print(results[-1], flush=True)
    pd.DataFrame(results).to_csv(path, index=False, float_format="%.3g")


def write_for_peers(folder: Path) -> None:
    """Write rows, edges and the question for benchmarks/peers/dowhy_speed.py."""
    world, rows = world_and_rows()
    folder.mkdir(parents=True, exist_ok=True)
    rows.to_csv(folder / "speed_rows.csv", index=False)
    pd.DataFrame(world.graph().edges()[["cause", "effect"]]).to_csv(folder / "speed_edges.csv", index=False)
    pd.DataFrame([longest(world.graph())], columns=["cause", "outcome"]).to_csv(
        folder / "speed_question.csv", index=False
    )
