"""``castlereg fit``: from a table to a model and a report."""

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
    from castlereg.data.files import TableFile
    from castlereg.graph import CausalGraph

# Ten folds of four betas train forty networks: beyond this many rows one network is trained instead.
_MOST_ROWS_OF_FOLDS = 20_000
_EPOCHS = 200
_FIRST_ROWS = 65_536  # of a streamed table, which decide the task
_FEWEST_SCORED = 10  # held-out rows
_SHOWN = ("R2", "RMSE", "accuracy", "AUROC", "log loss")  # of the scores of held-out rows


@command
def fit(
    table: Table,
    target: Targets,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write the model to this file.")] = None,
    report: Annotated[Path | None, typer.Option(help="Write a page on the model to this file.")] = None,
    task: TaskName = "auto",
    drop: Dropped = None,
    categorical: Categorical = None,
    drop_unusable: DropUnusable = False,
    loss: LossName = None,
    rises: Rises = None,
    falls: Falls = None,
    beta: Annotated[
        float | None, typer.Option(min=0, help="Strength of sparsity (default: chosen by folds; 0.01 with --stream).")
    ] = None,
    folds: Annotated[
        int | None, typer.Option(min=2, help="Folds to search by (default: 5; 10 with --search paper).")
    ] = None,
    search: Annotated[
        str | None,
        typer.Option(help="fast (default) and best are pools of networks; paper chooses beta."),
    ] = None,
    time_limit: Annotated[
        float | None, typer.Option(min=1, help="Seconds after which --search fast or best ends with the best so far.")
    ] = None,
    members: Annotated[
        int | None, typer.Option(min=1, help="Networks to average, with --beta or --stream (default: 1).")
    ] = None,
    groups: Annotated[
        str | None,
        typer.Option(help="Column whose equal values are kept together, in training or validation; not a feature."),
    ] = None,
    time: Annotated[
        str | None, typer.Option(help="Column of numbers or dates: validation rows are later than training rows.")
    ] = None,
    epochs: Epochs = _EPOCHS,
    stream: Annotated[bool, typer.Option("--stream", help="Read the table in pieces, if it exceeds memory.")] = False,
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
        stop("--report scores the model on random folds, whatever --groups and --time say: leave it or these out")
    if stream:
        _check_stream(table, target, folds, search, time_limit, report)
        if groups is not None or time is not None:
            stop("--groups and --time need the whole table in memory: leave them or --stream out")
    from castlereg.data.files import TableFile, check_columns

    text = text_options(separator, decimal, encoding)
    file = TableFile.open(table, **text)
    verbose = shows_progress(False if quiet or as_json else None)
    options: dict[str, Any] = {"max_epochs": epochs, "random_state": seed, "verbose": verbose}
    options |= column_options(categorical, drop_unusable) | of_target
    single = {"reg_beta": 0.01 if beta is None else beta, "n_members": members or 1, **options}
    facts: dict[str, Any] = {"table": str(table), "rows": None, "rows_without_target": 0, "targets": target}
    if stream:
        by_folds = False
        model, chosen, why = _streamed(file, target[0], task, drop, single, text)
    else:
        X, y, facts["rows_without_target"] = read_problem(file, target, drop)
        related: dict[str, Any] = {}
        if groups is not None:
            check_columns([groups], list(X.columns), file)
            related["groups"] = X.pop(groups)
        if time is not None:
            check_columns([time], list(X.columns), file)
            related["time_column"] = time
        check_columns(categorical or [], list(X.columns), file)
        facts["rows"] = len(X)
        chosen, why = chosen_task(y, task)
        check_columns([*(rises or ()), *(falls or ())], list(X.columns), file)
        by_folds = beta is None and len(target) == 1 and len(X) <= _MOST_ROWS_OF_FOLDS
        if by_folds and members is not None:
            stop("--members has no effect when folds choose beta, one network each; give --beta or leave --members out")
        if folds is not None and not by_folds:
            limits = f"one --target, no --beta and at most {_MOST_ROWS_OF_FOLDS} rows"
            stop(f"--folds has no effect here: folds choose beta with {limits}; leave --folds out")
        _check_search(search, time_limit, epochs, by_folds)
        search = search or ("fast" if epochs == _EPOCHS and not of_target else "paper")
        if search != "paper":
            del options["max_epochs"]
        searched = {"cv": folds, "search": search, "time_limit": time_limit, **options}
        truth = one_or_all(y)
        model = _estimator(chosen, searched if by_folds else single, by_folds).fit(X, truth, **related)
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
    print_facts(facts, _labels(facts, why, task), as_json)


def _check_search(search: str | None, time_limit: float | None, epochs: int, by_folds: bool) -> None:
    if search is not None and not by_folds:
        limits = f"one --target, no --beta and at most {_MOST_ROWS_OF_FOLDS} rows"
        stop(f"--search has no effect here: it chooses by folds with {limits}; leave --search out")
    if search not in (None, "paper", "fast", "best"):
        stop(f"--search {search} is not one of paper, fast, best")
    if time_limit is not None and not by_folds:
        stop("--time-limit has no effect here: it ends a search by folds; leave it out")
    if time_limit is not None and search == "paper":
        stop("--time-limit has no effect with --search paper; leave it out")
    if time_limit is not None and epochs != _EPOCHS:
        stop("--time-limit and --epochs do not go together: a search with a time limit has its own epochs")
    if search in ("fast", "best") and epochs != _EPOCHS:
        stop(f"--epochs has no effect with --search {search}, whose candidates have their own; leave it out")


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
        stop("--stream reads the table twice, which standard input does not allow: write it to a file")
    if len(targets) > 1:
        stop("--stream takes one --target")
    if search is not None:
        stop("--search has no effect with --stream: beta is fixed; give --beta, or leave --stream out")
    if time_limit is not None:
        stop("--time-limit has no effect with --stream: one network is trained; give --epochs, or leave --stream out")
    if folds is not None:
        stop("--folds has no effect with --stream: beta is fixed; give --beta, or leave --stream out")
    if report is not None:
        stop("--report needs the whole table in memory: leave it or --stream out")


def _streamed(
    file: TableFile, target: str, task: str, drop: list[str] | None, options: dict[str, Any], text: dict[str, Any]
) -> tuple[Any, str, str]:
    """Fit the table piece by piece; return the model, its task by the first piece, and why."""
    from castlereg.data.files import check_columns

    columns = file.columns()
    check_columns([target, *(drop or [])], columns, file)
    first = next(file.frames([target], _FIRST_ROWS), None)
    if first is None or first.empty:
        raise ValueError(f"{file} has no rows")
    chosen, why = chosen_task(first, task)
    features = [name for name in columns if name not in (target, *(drop or []))]
    check_columns([*options.get("categorical_features", []), *options.get("monotone", [])], features, file)
    return _estimator(chosen, options).fit_file(file.path, target, columns=features, **text), chosen, why


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
    """Write the scores of held-out rows, one line per target, and say which rows they are."""
    rows = counted(held_out["rows"], "row" if held_out["by_folds"] else "validation row")
    if held_out["rows"] < _FEWEST_SCORED:
        return {"scores": f"{rows} {'is' if held_out['rows'] == 1 else 'are'} too few to score"}
    how = ", each predicted by a network that was not trained on it" if held_out["by_folds"] else ""
    by_target: dict[str, list[str]] = {}
    for score in held_out["scores"]:
        if score["measure"] in _SHOWN:
            by_target.setdefault(score["target"], []).append(f"{score['measure']} {_short(score['score'])}")
    return {
        "scores" if len(by_target) == 1 else f"scores, {name}": f"{', '.join(scores)} on {rows}{how}"
        + (f"; {held_out['verdicts'][name]}" if name in held_out["verdicts"] else "")
        for name, scores in by_target.items()
    }


def _short(value: float) -> str:
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def used_columns(graph: CausalGraph, target: str) -> list[str]:
    """Name the columns that help to predict the target and that an edge joins to it, either way, strongest first."""
    weights, parents = graph.learned_weights[target].sort_values(ascending=False), graph.parents(target)
    away = [name for name in graph.children(target) if weights[name] >= graph.threshold]
    return [str(name) for name in weights.index if name in (*parents, *away)]


def _search_label(facts: dict[str, Any]) -> dict[str, str]:
    if facts["search"] in ("fast", "best"):
        return {"search": f"{facts['search']}, a pool of networks that predict together"}
    return {"beta": f"{facts['reg_beta']:g}" + (", chosen by folds" if facts["chosen_by_folds"] else "")}


def _labels(facts: dict[str, Any], why: str, task: str) -> dict[str, str]:
    several = len(facts["targets"]) > 1
    rows = "read in pieces," if facts["rows"] is None else f"{counted(facts['rows'])} x"
    missing = f", {facts['missing_values']} missing values" if facts["missing_values"] else ""
    dropped = facts["rows_without_target"]
    labels = {
        "table": f"{facts['table']}, {rows} {counted(facts['columns'], 'column')}{missing}"
        + (f"; {counted(dropped)} without a target left out" if dropped else ""),
        "target": f"{', '.join(facts['targets'])}: {why}, so {facts['task']}"
        + (" (--task overrules)" if task == "auto" and not several else ""),
        **_search_label(facts),
        "held-out loss": f"{facts['held_out_loss']:.4g} (predicting the mean or the base rates has about 1)",
        **held_out_labels(facts["held_out"]),
    }
    for name, columns in facts["uses"].items():
        quoted = (repr(column) if "," in column else column for column in columns)
        labels[f"uses, for {name}" if several else "uses"] = ", ".join(quoted) or "no column in particular"
    labels["graph"] = f"{counted(facts['edges'], 'edge')}; an aid to prediction, not proof of cause"
    labels["model"] = facts["model"] or "not kept: give --output to write it to a file"
    if facts["report"]:
        labels["report"] = facts["report"]
    return labels
