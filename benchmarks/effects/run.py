"""Run estimates of effects on known worlds, and append to the table of results."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.linear_model import LinearRegression

from benchmarks.effects.worlds import Problem
from castlereg.causal import CausalGraph, FittedWorld
from castlereg.causal.discovery import discover
from castlereg.causal.variables import Variables

RESULTS = Path(__file__).with_name("results.csv")
COLUMNS = ("kind", "seed", "method", "graph", "error", "error_of_causes", "coverage", "width", "fit", "questions")
DRAWS = 50

Bands = tuple[NDArray[np.float64], NDArray[np.float64]]
Estimates = dict[str, tuple[NDArray[np.float64], Bands | None]]


def score(
    problem: Problem, estimates: Estimates, seconds: tuple[float, float], method: str, graph: str
) -> dict[str, Any]:
    """Compare curves with the truth: root mean squared errors in units of the outcome's standard deviation."""
    spread = float(problem.rows[problem.outcome].std())
    reaches = reaching(problem)
    errors, of_causes, inside, widths = [], [], [], []
    for cause, curve in problem.truth.items():
        truth = np.array([mean for _, mean in curve])
        estimate, bands = estimates[cause]
        errors.append(float(np.sqrt(np.square(estimate - truth).mean()) / spread))
        if cause in reaches:
            of_causes.append(errors[-1])
        if bands is not None:
            inside.append(float(((bands[0] <= truth) & (truth <= bands[1])).mean()))
            widths.append(float((bands[1] - bands[0]).mean() / spread))
    means = [float(np.mean(values)) if values else np.nan for values in (errors, of_causes, inside, widths)]
    return dict(zip(COLUMNS, (problem.kind, problem.seed, method, graph, *means, *seconds), strict=True))


def reaching(problem: Problem) -> list[str]:
    """Return the columns with a path to the outcome in the true graph."""
    return true_graph(problem).ancestors(problem.outcome)


def true_graph(problem: Problem) -> CausalGraph:
    """Return the graph of the world."""
    return CausalGraph.from_weights(problem.dag.to_numpy().astype(float), list(problem.rows), problem.outcome)


def learned_graph(problem: Problem) -> CausalGraph:
    """Discover the graph of the rows, as estimators do."""
    found = discover(Variables.of_frame(problem.rows))
    return CausalGraph(tuple(problem.rows), (problem.outcome,), found.strength, found.joined, found.direction)


def ours(problem: Problem, graph: CausalGraph, known: bool) -> tuple[Estimates, tuple[float, float]]:
    """Learn the equations of a graph and estimate every curve."""
    begun = time.process_time()
    world = FittedWorld.fit(Variables.of_frame(problem.rows), graph, is_graph_given=known, n_draws=DRAWS)
    fitted = time.process_time()
    estimates: Estimates = {}
    for cause, curve in problem.truth.items():
        answer = world.effect(cause, problem.outcome, values=[value for value, _ in curve]).answer
        estimates[cause] = answer.estimate, (answer.low, answer.high)
    return estimates, (fitted - begun, time.process_time() - fitted)


def adjusted(problem: Problem, graph: CausalGraph) -> tuple[Estimates, tuple[float, float]]:
    """Regress the outcome linearly on the cause and its parents; columns after the outcome have no effect."""
    begun, rows = time.process_time(), problem.rows
    estimates: Estimates = {}
    for cause, curve in problem.truth.items():
        used = [cause, *(parent for parent in graph.parents(cause) if parent != problem.outcome)]
        if problem.outcome in graph.ancestors(cause):
            estimates[cause] = np.full(len(curve), rows[problem.outcome].mean()), None
            continue
        columns = pd.get_dummies(rows[used], drop_first=True, dtype=float)
        model, means = LinearRegression().fit(columns, rows[problem.outcome]), []
        for value, _ in curve:
            held = rows[used].copy()
            is_level = held[cause].dtype == "category"
            held[cause] = pd.Categorical([value] * len(held), rows[cause].cat.categories) if is_level else value
            means.append(
                float(model.predict(pd.get_dummies(held, drop_first=True, dtype=float)[columns.columns]).mean())
            )
        estimates[cause] = np.array(means), None
    return estimates, (time.process_time() - begun, 0.0)


def associated(problem: Problem) -> tuple[Estimates, tuple[float, float]]:
    """Take the mean outcome of the rows nearest to each value."""
    begun, outcome = time.process_time(), problem.rows[problem.outcome].to_numpy()
    estimates: Estimates = {}
    for cause, curve in problem.truth.items():
        column, means = problem.rows[cause], []
        for value, _ in curve:
            if column.dtype == "category":
                means.append(float(outcome[column == value].mean()))
            else:
                apart = np.abs(column.to_numpy() - value)
                means.append(float(outcome[apart <= np.quantile(apart, 0.1)].mean()))
        estimates[cause] = np.array(means), None
    return estimates, (time.process_time() - begun, 0.0)


def run(problems: list[Problem], folder: Path, path: Path = RESULTS) -> None:
    """Run our estimates and the simple ones on every world; write learned graphs for the peers."""
    known = pd.read_csv(path) if path.exists() else pd.DataFrame(columns=list(COLUMNS))
    done = set(zip(known["kind"], known["seed"], strict=True))
    for problem in problems:
        if (problem.kind, problem.seed) in done:
            continue
        truth, learned = true_graph(problem), learned_graph(problem)
        edges = learned.edge_array.astype(int).tolist()
        (folder / f"{problem.kind}_{problem.seed}.learned").write_text(json.dumps(edges))
        of: dict[tuple[str, str], Callable[[], tuple[Estimates, tuple[float, float]]]] = {
            ("castlereg", "true"): lambda p=problem, g=truth: ours(p, g, True),  # type: ignore[misc]
            ("castlereg", "learned"): lambda p=problem, g=learned: ours(p, g, False),  # type: ignore[misc]
            ("linear adjustment", "true"): lambda p=problem, g=truth: adjusted(p, g),  # type: ignore[misc]
            ("linear adjustment", "learned"): lambda p=problem, g=learned: adjusted(p, g),  # type: ignore[misc]
            ("association", "none"): lambda p=problem: associated(p),  # type: ignore[misc]
        }
        scored = [score(problem, *ask(), *name) for name, ask in of.items()]
        append(scored, path)
        print(
            problem.kind,
            problem.seed,
            *(f"{row['method']}/{row['graph']} {row['error']:.3f}" for row in scored),
            flush=True,
        )


def append(rows: list[dict[str, Any]], path: Path = RESULTS) -> None:
    """Add rows to the table of results."""
    pd.DataFrame(rows, columns=list(COLUMNS)).to_csv(
        path, mode="a", header=not path.exists(), index=False, float_format="%.5g"
    )
