"""``castlereg fit``: train a model on a table, and write the model and a report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from castlereg.cli.arguments import (
    Categorical,
    Debug,
    Decimal,
    Dropped,
    DropUnusable,
    Encoding,
    Epochs,
    Json,
    Quiet,
    Seed,
    Separator,
    Table,
    Targets,
    TaskName,
)
from castlereg.cli.console import command, print_facts, stop
from castlereg.cli.paths import check_model_name, check_page_name, check_paths
from castlereg.cli.tables import (
    check_problem,
    chosen_task,
    column_options,
    counted,
    named,
    one_or_all,
    read_problem,
    text_options,
)
from castlereg.cli.target_options import Falls, LossName, Rises, check_target_options, target_options
from castlereg.notices import shows_progress

if TYPE_CHECKING:
    from castlereg.causal.graph import CausalGraph
    from castlereg.table.files import TableFile

# Cross-validation over betas trains tens of networks: with more rows than this, one network is trained instead.
_MAX_ROWS_FOR_FOLDS = 20_000
_EPOCHS = 200
_FIRST_ROWS = 65_536  # of a streamed table; they decide the task
_MIN_SCORED_ROWS = 10  # held-out rows
_SHOWN_MEASURES = ("R2", "RMSE", "accuracy", "AUROC", "log loss")  # on held-out rows


@command
def fit(
    table: Table,
    target: Targets,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write the model to this file.")] = None,
    report: Annotated[Path | None, typer.Option(help="Write an HTML report on the model to this file.")] = None,
    task: TaskName = "auto",
    drop: Dropped = None,
    categorical: Categorical = None,
    drop_unusable: DropUnusable = False,
    loss: LossName = None,
    rises: Rises = None,
    falls: Falls = None,
    beta: Annotated[
        float | None,
        typer.Option(min=0, help="Regularization strength (default: chosen by cross-validation; 0.01 with --stream)."),
    ] = None,
    folds: Annotated[
        int | None, typer.Option(min=2, help="Number of folds of the search (default: 5; 10 with --search paper).")
    ] = None,
    search: Annotated[
        str | None,
        typer.Option(
            help="fast (default) and best train a pool of networks and average the best; paper chooses beta by folds."
        ),
    ] = None,
    time_limit: Annotated[
        float | None, typer.Option(min=1, help="Time limit in seconds of --search fast or best.")
    ] = None,
    members: Annotated[
        int | None, typer.Option(min=1, help="Number of networks to average, with --beta or --stream (default: 1).")
    ] = None,
    groups: Annotated[
        str | None,
        typer.Option(
            help="Column of group labels: a group is never split between training and validation. Not a feature."
        ),
    ] = None,
    time: Annotated[
        str | None,
        typer.Option(help="Numeric or date column to split by: validation rows are later than training rows."),
    ] = None,
    epochs: Epochs = _EPOCHS,
    stream: Annotated[
        bool, typer.Option("--stream", help="Read the table in pieces, for tables larger than memory.")
    ] = False,
    seed: Seed = 0,
    separator: Separator = None,
    decimal: Decimal = None,
    encoding: Encoding = None,
    quiet: Quiet = False,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Train a network on a table and learn the graph of its columns."""
    of_target = target_options(loss, rises, falls)
    check_problem(target, drop, task)
    task = check_target_options(of_target, target, task, search, time_limit)
    check_paths({"table": table}, {"--output": output, "--report": report})
    check_model_name("--output", output)
    check_page_name("--report", report)
    if (groups is not None or time is not None) and report is not None:
        stop("--report scores the model on random folds, so drop it, or --groups and --time")
    if stream:
        _check_stream(table, target, folds, search, time_limit, report)
        if groups is not None or time is not None:
            stop("--groups and --time need the whole table in memory: drop them or --stream")
    from castlereg.table.files import TableFile, check_columns

    text = text_options(separator, decimal, encoding)
    file = TableFile.open(table, **text)
    verbose = shows_progress(False if quiet or as_json else None)
    options: dict[str, Any] = {"max_epochs": epochs, "random_state": seed, "verbose": verbose}
    options |= column_options(categorical, drop_unusable) | of_target
    single = {"reg_beta": 0.01 if beta is None else beta, "n_members": members or 1, **options}
    facts: dict[str, Any] = {"table": str(table), "rows": None, "rows_without_target": 0, "targets": target}
    if stream:
        by_folds = False
        model, chosen, task_reason = _streamed(file, target[0], task, drop, single, text)
    else:
        X, y, facts["rows_without_target"] = read_problem(file, target, drop)
        split_options: dict[str, Any] = {}
        if groups is not None:
            check_columns([groups], list(X.columns), file)
            split_options["groups"] = X.pop(groups)
        if time is not None:
            check_columns([time], list(X.columns), file)
            split_options["time_column"] = time
        check_columns(categorical or [], list(X.columns), file)
        facts["rows"] = len(X)
        chosen, task_reason = chosen_task(y, task)
        check_columns([*(rises or ()), *(falls or ())], list(X.columns), file)
        by_folds = beta is None and len(target) == 1 and len(X) <= _MAX_ROWS_FOR_FOLDS
        if by_folds and members is not None:
            stop("--members has no effect on a search by folds; pass --beta, or drop --members")
        if folds is not None and not by_folds:
            limits = f"one --target, no --beta and at most {_MAX_ROWS_FOR_FOLDS} rows"
            stop(f"--folds has no effect here: a search by folds needs {limits}; drop --folds")
        _check_search(search, time_limit, epochs, by_folds)
        search = search or ("fast" if epochs == _EPOCHS and not of_target else "paper")
        if search != "paper":
            del options["max_epochs"]
        searched = {"cv": folds, "search": search, "time_limit": time_limit, **options}
        truth = one_or_all(y)
        model = _estimator(chosen, searched if by_folds else single, by_folds).fit(X, truth, **split_options)
    if output is not None:
        from castlereg import save

        save(model, output)
    if report is not None:
        from castlereg.report import write_report

        write_report(model, X, truth, report, title=f"{', '.join(target)} in {named(table)}", verbose=verbose)
    facts |= {
        "columns": model.n_features_in_,
        "missing_values": int(model.schema_["missing"].sum()),
        "task": chosen,
        "reg_beta": float(model.reg_beta_ if by_folds else model.reg_beta),
        "chosen_by_folds": by_folds,
        "search": search if by_folds else None,
        "held_out_loss": float(model.validation_loss_),
        "held_out": held_out_facts(model),
        "uses": {name: used_columns(model.graph_, name) for name in target},
        "edges": len(model.graph_.edges()),
        "model": None if output is None else str(output),
        "report": None if report is None else str(report),
    }
    print_facts(facts, _labels(facts, task_reason, task), as_json)


def _check_search(search: str | None, time_limit: float | None, epochs: int, by_folds: bool) -> None:
    if search is not None and not by_folds:
        limits = f"one --target, no --beta and at most {_MAX_ROWS_FOR_FOLDS} rows"
        stop(f"--search has no effect here: a search by folds needs {limits}; drop --search")
    if search not in (None, "paper", "fast", "best"):
        stop(f"--search {search} is not one of paper, fast, best")
    if time_limit is not None and not by_folds:
        stop("--time-limit has no effect here: it limits a search by folds, and there is none; drop it")
    if time_limit is not None and search == "paper":
        stop("--time-limit has no effect with --search paper; drop it")
    if time_limit is not None and epochs != _EPOCHS:
        stop("--time-limit cannot be combined with --epochs: a search with a time limit sets its own epochs")
    if search in ("fast", "best") and epochs != _EPOCHS:
        stop(f"--epochs has no effect with --search {search}: each candidate sets its own epochs; drop it")


def _estimator(task: str, options: dict[str, Any], by_folds: bool = False) -> Any:
    import castlereg

    name = {"regression": "CastleRegressor", "classification": "CastleClassifier"}.get(task, "CastleMultiOutput")
    return getattr(castlereg, f"{name}CV" if by_folds else name)(**options)


def _check_stream(
    table: Path,
    targets: list[str],
    folds: int | None,
    search: str | None,
    time_limit: float | None,
    report: Path | None,
) -> None:
    if str(table) == "-":
        stop(
            "--stream reads the table twice, but standard input can be read only once: write the table to a file first"
        )
    if len(targets) > 1:
        stop("--stream takes one --target: pass it once")
    if search is not None:
        stop("--search has no effect with --stream: one network is trained; pass --beta, or drop --stream")
    if time_limit is not None:
        stop("--time-limit has no effect with --stream: one network is trained; pass --epochs, or drop --stream")
    if folds is not None:
        stop("--folds has no effect with --stream: one network is trained; pass --beta, or drop --stream")
    if report is not None:
        stop("--report needs the whole table in memory: drop it or --stream")


def _streamed(
    file: TableFile, target: str, task: str, drop: list[str] | None, options: dict[str, Any], text: dict[str, Any]
) -> tuple[Any, str, str]:
    """Fit a streamed table; return the model, the task inferred from the first piece, and the reason for it."""
    from castlereg.table.files import check_columns

    columns = file.columns()
    check_columns([target, *(drop or [])], columns, file)
    first = next(file.frames([target], _FIRST_ROWS), None)
    if first is None or first.empty:
        raise ValueError(f"{file} has no rows")
    chosen, task_reason = chosen_task(first, task)
    features = [name for name in columns if name not in (target, *(drop or []))]
    check_columns([*options.get("categorical_features", []), *options.get("monotone", [])], features, file)
    return _estimator(chosen, options).fit_file(file.path, target, columns=features, **text), chosen, task_reason


def held_out_facts(model: Any) -> dict[str, Any]:
    """Score a model on its held-out rows."""
    from castlereg.evaluation import held_out_evaluation

    evaluation = held_out_evaluation(model)
    assert evaluation is not None  # a model that was just fitted has them
    return {
        "rows": evaluation.n_rows,
        "by_folds": model.model_.folds is not None,
        "scores": evaluation.to_frame().to_dict(orient="records"),
        "verdicts": {of.target: of.verdict for of in evaluation.targets if of.verdict},
    }


def held_out_labels(held_out: dict[str, Any]) -> dict[str, str]:
    """Format the scores on held-out rows, one line per target, with the rows that they are computed on."""
    rows = counted(held_out["rows"], "row" if held_out["by_folds"] else "validation row")
    if held_out["rows"] < _MIN_SCORED_ROWS:
        return {"scores": f"{rows} {'is' if held_out['rows'] == 1 else 'are'} too few to score"}
    how = ", each predicted by a network that was not trained on it" if held_out["by_folds"] else ""
    by_target: dict[str, list[str]] = {}
    for score in held_out["scores"]:
        if score["measure"] in _SHOWN_MEASURES:
            by_target.setdefault(score["target"], []).append(f"{score['measure']} {_short(score['score'])}")
    return {
        "scores" if len(by_target) == 1 else f"scores, {name}": f"{', '.join(scores)} on {rows}{how}"
        + (f"; {held_out['verdicts'][name]}" if name in held_out["verdicts"] else "")
        for name, scores in by_target.items()
    }


def _short(value: float) -> str:
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def used_columns(graph: CausalGraph, target: str) -> list[str]:
    """Return the columns that help to predict the target and share an edge with it, strongest first."""
    weights, parents = graph.learned_weights[target].sort_values(ascending=False), graph.parents(target)
    away = [name for name in graph.children(target) if weights[name] >= graph.threshold]
    return [str(name) for name in weights.index if name in (*parents, *away)]


def _search_label(facts: dict[str, Any]) -> dict[str, str]:
    if facts["search"] in ("fast", "best"):
        return {"search": f"{facts['search']}, predictions averaged over a pool of networks"}
    return {"beta": f"{facts['reg_beta']:g}" + (", chosen by cross-validation" if facts["chosen_by_folds"] else "")}


def _labels(facts: dict[str, Any], task_reason: str, task: str) -> dict[str, str]:
    several = len(facts["targets"]) > 1
    rows = "read in pieces," if facts["rows"] is None else f"{counted(facts['rows'])} x"
    missing = f", {facts['missing_values']} missing values" if facts["missing_values"] else ""
    dropped = facts["rows_without_target"]
    labels = {
        "table": f"{facts['table']}, {rows} {counted(facts['columns'], 'column')}{missing}"
        + (f"; {counted(dropped)} without a target left out" if dropped else ""),
        "target": f"{', '.join(facts['targets'])}: {task_reason}, so {facts['task']}"
        + (" (override with --task)" if task == "auto" and not several else ""),
        **_search_label(facts),
        "held-out loss": f"{facts['held_out_loss']:.4g} (about 1 if the mean or the base rates are predicted)",
        **held_out_labels(facts["held_out"]),
    }
    for name, columns in facts["uses"].items():
        quoted = (repr(column) if "," in column else column for column in columns)
        labels[f"uses, for {name}" if several else "uses"] = ", ".join(quoted) or "no column stands out"
    labels["graph"] = f"{counted(facts['edges'], 'edge')}; edges help prediction and do not prove causes"
    labels["model"] = facts["model"] or "not saved: pass --output to write it to a file"
    if facts["report"]:
        labels["report"] = facts["report"]
    return labels
