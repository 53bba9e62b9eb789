"""``castlereg fit``: from a table to a model and a report."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import pandas as pd
import typer

from castlereg.cli.console import Debug, Json, Quiet, command, print_facts, shows_progress, stop
from castlereg.cli.tables import inferred_task, read_problem
from castlereg.graph import CausalGraph
from castlereg.options import check_choice

# Ten folds of four betas train forty networks: beyond this many rows one network is trained instead.
_MOST_ROWS_OF_FOLDS = 20_000

Targets = Annotated[list[str], typer.Option("--target", "-t", help="Column to predict; repeat it for several.")]
Task = Annotated[str, typer.Option(help="auto, regression or classification; auto looks at the target.")]
Dropped = Annotated[list[str] | None, typer.Option("--drop", help="Column to leave out; repeat it for several.")]
Seed = Annotated[int, typer.Option(min=0, help="The same seed gives the same model.")]


@command
def fit(
    table: Annotated[Path, typer.Argument(help="CSV, TSV or Parquet file; - is CSV from standard input.")],
    target: Targets,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write the model to this file.")] = None,
    report: Annotated[Path | None, typer.Option(help="Write a page on the model to this file.")] = None,
    task: Task = "auto",
    drop: Dropped = None,
    beta: Annotated[float | None, typer.Option(min=0, help="Strength of sparsity; by default chosen by folds.")] = None,
    folds: Annotated[int, typer.Option(min=2, help="Folds to choose beta by.")] = 10,
    members: Annotated[int, typer.Option(min=1, help="Networks to average, with --beta.")] = 1,
    epochs: Annotated[int, typer.Option(min=1, help="Most passes over the rows.")] = 200,
    seed: Seed = 0,
    quiet: Quiet = False,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Train a network on a table and learn the graph of its columns."""
    check_choice("--task", task, ["auto", "regression", "classification"])
    for path in (output, report):
        check_writable(path)
    X, y, dropped = read_problem(table, target, drop)
    chosen, why = chosen_task(y, task)
    by_folds = beta is None and len(target) == 1 and len(X) <= _MOST_ROWS_OF_FOLDS
    options = {"max_epochs": epochs, "random_state": seed, "verbose": shows_progress(quiet or as_json)}
    model = _estimator(chosen, by_folds, len(target), beta, folds, members, options)
    model.fit(X, y.iloc[:, 0] if len(target) == 1 else y)
    if output is not None:
        from castlereg import save

        save(model, output)
    if report is not None:
        _write_report(model, X, y, report, table, quiet or as_json)
    facts = _facts(model, table, X, target, chosen, dropped, by_folds, output, report)
    print_facts(facts, _labels(facts, why, task), as_json)


def check_writable(path: Path | None) -> None:
    """Refuse a file that cannot be written before hours of training, not after."""
    if path is None:
        return
    if path.is_dir():
        stop(f"{path} is a folder: name a file in it")
    if not path.parent.is_dir():
        stop(f"{path}: there is no folder {path.parent}; make it first")


def chosen_task(y: pd.DataFrame, task: str) -> tuple[str, str]:
    """Return the task of the targets and why; several targets are each what they look like."""
    if y.shape[1] > 1:
        if task != "auto":
            stop(f"--task {task} is for one target; of several, numbers are regressed and all else is classified")
        return "several targets", "numbers and classes side by side"
    inferred, why = inferred_task(y.iloc[:, 0])
    if task == "auto":
        return inferred, why
    if task == "regression" and not pd.api.types.is_numeric_dtype(y.iloc[:, 0]):
        stop(f"--task regression, but {y.columns[0]!r} is not a column of numbers")
    return task, "as you said"


def _estimator(
    task: str, by_folds: bool, n_targets: int, beta: float | None, folds: int, members: int, options: dict[str, Any]
) -> Any:
    from castlereg import (
        CastleClassifier,
        CastleClassifierCV,
        CastleMultiOutput,
        CastleRegressor,
        CastleRegressorCV,
    )

    if by_folds:
        kind = CastleRegressorCV if task == "regression" else CastleClassifierCV
        return kind(cv=folds, **options)
    single = {"regression": CastleRegressor, "classification": CastleClassifier}.get(task, CastleMultiOutput)
    return single(0.01 if beta is None else beta, n_members=members, **options)


def _write_report(model: Any, X: pd.DataFrame, y: pd.DataFrame, path: Path, table: Path, quiet: bool) -> None:
    from castlereg.report import write_report

    truth = y.iloc[:, 0] if y.shape[1] == 1 else y
    write_report(model, X, truth, path, title=f"{', '.join(y.columns)} in {table.name}", progress=shows_progress(quiet))


def _facts(
    model: Any,
    table: Path,
    X: pd.DataFrame,
    targets: list[str],
    task: str,
    dropped: int,
    by_folds: bool,
    output: Path | None,
    report: Path | None,
) -> dict[str, Any]:
    graph = model.graph_
    return {
        "table": str(table),
        "rows": len(X),
        "columns": X.shape[1],
        "gaps": int(X.isna().sum().sum()),
        "rows_without_target": dropped,
        "targets": targets,
        "task": task,
        "reg_beta": float(model.reg_beta_ if by_folds else model.reg_beta),
        "chosen_by_folds": by_folds,
        "held_out_loss": float(model.validation_loss_),
        "leans_on": {name: leaned_on(graph, name) for name in targets},
        "edges": len(graph.edges()),
        "model": None if output is None else str(output),
        "report": None if report is None else str(report),
    }


def leaned_on(graph: CausalGraph, target: str) -> list[str]:
    """Name the columns with a weight into the target's sub-network that counts, strongest first."""
    weights = graph.learned_weights[target].sort_values(ascending=False)
    return [str(name) for name in weights.index[weights >= max(graph.threshold, 1e-9)]]


def _rows(n: int) -> str:
    return f"{n} row" if n == 1 else f"{n} rows"


def _quoted(name: str) -> str:
    return repr(name) if "," in name else name


def _labels(facts: dict[str, Any], why: str, task: str) -> dict[str, str]:
    targets = ", ".join(facts["targets"])
    gaps = f", {facts['gaps']} gaps" if facts["gaps"] else ""
    without = (
        f"; {_rows(facts['rows_without_target'])} without a target left out" if facts["rows_without_target"] else ""
    )
    hint = " (--task overrules)" if task == "auto" and len(facts["targets"]) == 1 else ""
    labels = {
        "table": f"{facts['table']}, {_rows(facts['rows'])} x {facts['columns']} columns{gaps}{without}",
        "target": f"{targets}: {why}, so {facts['task']}{hint}",
        "beta": f"{facts['reg_beta']:g}" + (", chosen by folds" if facts["chosen_by_folds"] else ""),
        "held-out loss": f"{facts['held_out_loss']:.4g} (1 is no better than guessing the mean or the base rates)",
    }
    for name, columns in facts["leans_on"].items():
        label = f"leans on, for {name}" if len(facts["targets"]) > 1 else "leans on"
        labels[label] = ", ".join(map(_quoted, columns)) or "no column in particular"
    labels["graph"] = f"{facts['edges']} edges; an aid to prediction, not proof of cause"
    for kept in ("model", "report"):
        if facts[kept]:
            labels[kept] = facts[kept]
    if not facts["model"]:
        labels["model"] = "not kept: give --output to write it to a file"
    return labels
