"""``castlereg fit``: from a table to a model and a report; ``castlereg demo``: the same on a table of scikit-learn."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from castlereg.atomic_write import check_writable
from castlereg.cli.console import Debug, Epochs, Json, Quiet, Seed, command, print_facts, stop, write_output
from castlereg.notices import shows_progress
from castlereg.options import check_choice

if TYPE_CHECKING:
    import pandas as pd

    from castlereg.graph import CausalGraph

Model = Annotated[Path, typer.Argument(help="File that `castlereg fit --output` wrote.")]
Table = Annotated[Path, typer.Argument(help="CSV, TSV or Parquet file, or folder of Parquet; - is standard input.")]
Targets = Annotated[list[str], typer.Option("--target", "-t", help="Column to predict; repeat it for several.")]
TaskName = Annotated[str, typer.Option("--task", help="auto (by the target's values), regression or classification.")]
Dropped = Annotated[list[str] | None, typer.Option("--drop", help="Column to leave out; repeat it for several.")]


def read_problem(path: Path, targets: list[str], drop: list[str] | None) -> tuple[pd.DataFrame, pd.DataFrame, int]:
    """Read a table; return features, targets, and how many rows were dropped for want of a target."""
    from castlereg.data.files import TableFile, check_columns

    file = TableFile.open(path)
    frame = file.read()
    check_columns([*targets, *(drop or [])], list(frame.columns), file)
    has_target = frame[targets].notna().all(axis=1)
    rows = frame[has_target]
    if rows.empty:
        raise ValueError(f"every row of {file} lacks a value of {', '.join(map(repr, targets))}: fill some of them")
    features = rows.drop(columns=[*targets, *(drop or [])])
    if features.shape[1] == 0:
        raise ValueError(f"{file} has no column besides the target: there is nothing to predict from")
    return features, rows[targets], int((~has_target).sum())


def chosen_task(y: pd.DataFrame, task: str) -> tuple[str, str]:
    """Return the task of the targets and the reason; each of several targets is what its values suggest."""
    from castlereg.data.targets import inferred_task

    check_choice("--task", task, ["auto", "regression", "classification"])
    if y.shape[1] > 1:
        if task != "auto":
            stop(f"--task {task} is for one target; the task of each of several follows from its values")
        return "several targets", "numbers and classes side by side"
    if task == "auto":
        return inferred_task(y.iloc[:, 0])
    if task == "regression" and y.iloc[:, 0].dtype.kind not in "biuf":
        stop(f"--task regression, but {y.columns[0]!r} is not a column of numbers")
    return task, "as --task says"


# Ten folds of four betas train forty networks: beyond this many rows one network is trained instead.
_MOST_ROWS_OF_FOLDS = 20_000
_FIRST_ROWS = 65_536  # of a streamed table, which decide the task


@command
def fit(
    table: Table,
    target: Targets,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write the model to this file.")] = None,
    report: Annotated[Path | None, typer.Option(help="Write a page on the model to this file.")] = None,
    task: TaskName = "auto",
    drop: Dropped = None,
    beta: Annotated[
        float | None, typer.Option(min=0, help="Strength of sparsity (default: chosen by folds; 0.01 with --stream).")
    ] = None,
    folds: Annotated[int | None, typer.Option(min=2, help="Folds to choose beta by (default: 10).")] = None,
    members: Annotated[
        int | None, typer.Option(min=1, help="Networks to average, with --beta or --stream (default: 1).")
    ] = None,
    epochs: Epochs = 200,
    stream: Annotated[bool, typer.Option("--stream", help="Read the table in pieces, if it exceeds memory.")] = False,
    seed: Seed = 0,
    quiet: Quiet = False,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Train a network on a table and learn the graph of its columns."""
    check_writable(output, report)
    verbose = shows_progress(False if quiet or as_json else None)
    options: dict[str, Any] = {"max_epochs": epochs, "random_state": seed, "verbose": verbose}
    single = {"reg_beta": 0.01 if beta is None else beta, "n_members": members or 1, **options}
    facts: dict[str, Any] = {"table": str(table), "rows": None, "rows_without_target": 0, "targets": target}
    if stream:
        _check_stream(table, target, folds, report)
        by_folds = False
        model, chosen, why = _streamed(table, target[0], task, drop, single)
    else:
        X, y, facts["rows_without_target"] = read_problem(table, target, drop)
        facts["rows"] = len(X)
        chosen, why = chosen_task(y, task)
        by_folds = beta is None and len(target) == 1 and len(X) <= _MOST_ROWS_OF_FOLDS
        if by_folds and members is not None:
            stop("--members has no effect when folds choose beta, one network each; give --beta or leave --members out")
        if folds is not None and not by_folds:
            limits = f"one --target, no --beta and at most {_MOST_ROWS_OF_FOLDS} rows"
            stop(f"--folds has no effect here: folds choose beta with {limits}; leave --folds out")
        truth = y.iloc[:, 0] if len(target) == 1 else y
        model = _estimator(chosen, {"cv": folds or 10, **options} if by_folds else single, by_folds).fit(X, truth)
    if output is not None:
        from castlereg import save

        save(model, output)
    if report is not None:
        from castlereg.report import write_report

        write_report(model, X, truth, report, title=f"{', '.join(target)} in {table.name}", verbose=verbose)
    facts |= {
        "columns": model.n_features_in_,
        "missing_values": int(model.schema_["missing"].sum()),
        "task": chosen,
        "reg_beta": float(model.reg_beta_ if by_folds else model.reg_beta),
        "chosen_by_folds": by_folds,
        "held_out_loss": float(model.validation_loss_),
        "uses": {name: used_columns(model.graph_, name) for name in target},
        "edges": len(model.graph_.edges()),
        "model": None if output is None else str(output),
        "report": None if report is None else str(report),
    }
    print_facts(facts, _labels(facts, why, task), as_json)


def _estimator(task: str, options: dict[str, Any], by_folds: bool = False) -> Any:
    import castlereg

    name = {"regression": "CastleRegressor", "classification": "CastleClassifier"}.get(task, "CastleMultiOutput")
    return getattr(castlereg, f"{name}CV" if by_folds else name)(**options)


def _check_stream(table: Path, targets: list[str], folds: int | None, report: Path | None) -> None:
    if str(table) == "-":
        stop("--stream reads the table twice, which standard input does not allow: write it to a file")
    if len(targets) > 1:
        stop("--stream takes one --target")
    if folds is not None:
        stop("--folds has no effect with --stream: beta is fixed; give --beta, or leave --stream out")
    if report is not None:
        stop("--report needs the whole table in memory: leave it or --stream out")


def _streamed(
    table: Path, target: str, task: str, drop: list[str] | None, options: dict[str, Any]
) -> tuple[Any, str, str]:
    """Fit the table piece by piece; return the model, its task by the first piece, and why."""
    from castlereg.data.files import TableFile, check_columns

    file = TableFile.open(table)
    columns = file.columns()
    check_columns([target, *(drop or [])], columns, file)
    first = next(file.frames([target], _FIRST_ROWS), None)
    if first is None or first.empty:
        raise ValueError(f"{file} has no rows")
    chosen, why = chosen_task(first, task)
    features = [name for name in columns if name not in (target, *(drop or []))]
    return _estimator(chosen, options).fit_file(table, target, columns=features), chosen, why


def used_columns(graph: CausalGraph, target: str) -> list[str]:
    """Name the columns that help to predict the target and that an edge joins to it, either way, strongest first."""
    weights, parents = graph.learned_weights[target].sort_values(ascending=False), graph.parents(target)
    away = [name for name in graph.children(target) if weights[name] >= graph.threshold]
    return [str(name) for name in weights.index if name in (*parents, *away)]


def _labels(facts: dict[str, Any], why: str, task: str) -> dict[str, str]:
    several = len(facts["targets"]) > 1
    rows = "read in pieces," if facts["rows"] is None else f"{_rows(facts['rows'])} x"
    missing = f", {facts['missing_values']} missing values" if facts["missing_values"] else ""
    dropped = facts["rows_without_target"]
    labels = {
        "table": f"{facts['table']}, {rows} {facts['columns']} columns{missing}"
        + (f"; {_rows(dropped)} without a target left out" if dropped else ""),
        "target": f"{', '.join(facts['targets'])}: {why}, so {facts['task']}"
        + (" (--task overrules)" if task == "auto" and not several else ""),
        "beta": f"{facts['reg_beta']:g}" + (", chosen by folds" if facts["chosen_by_folds"] else ""),
        "held-out loss": f"{facts['held_out_loss']:.4g} (predicting the mean or the base rates has 1)",
    }
    for name, columns in facts["uses"].items():
        quoted = (repr(column) if "," in column else column for column in columns)
        labels[f"uses, for {name}" if several else "uses"] = ", ".join(quoted) or "no column in particular"
    labels["graph"] = f"{facts['edges']} edges; an aid to prediction, not proof of cause"
    labels["model"] = facts["model"] or "not kept: give --output to write it to a file"
    if facts["report"]:
        labels["report"] = facts["report"]
    return labels


def _rows(n: int) -> str:
    return f"{n} row" if n == 1 else f"{n} rows"


@command
def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder to write to.")] = Path("castlereg-demo"),
    epochs: Epochs = 200,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Fit the diabetes table; write its model, its graph and a report."""
    from sklearn.datasets import load_diabetes

    from castlereg import CastleRegressorCV, save
    from castlereg.report import write_report

    X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    y = y.rename("progression")
    output.mkdir(parents=True, exist_ok=True)
    verbose = shows_progress(False if quiet else None)
    model = CastleRegressorCV(max_epochs=epochs, random_state=0, verbose=verbose).fit(X, y)
    save(model, output / "diabetes.castle")
    write_output(model.graph_.to_svg(), output / "graph.svg")
    write_report(model, X, y, output / "report.html", title="Progression of diabetes", verbose=verbose)
    labels = {
        "table": f"scikit-learn's diabetes, {len(X)} rows x {X.shape[1]} columns",
        "beta": f"{model.reg_beta_:g}, chosen among {', '.join(f'{b:g}' for b in model.reg_betas)} by ten folds",
        "held-out loss": f"{model.validation_loss_:.3f} (predicting the mean has 1)",
        "uses": ", ".join(used_columns(model.graph_, "progression")),
        "report": str(output / "report.html"),
        "graph": str(output / "graph.svg"),
        "model": f"{output / 'diabetes.castle'} (castlereg predict {output / 'diabetes.castle'} TABLE)",
    }
    print_facts({}, labels, as_json=False)
