"""``castlereg fit``, ``evaluate``, ``predict``, ``report`` and ``demo``: train models, score them and use them."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from castlereg.cli import files, graphs
from castlereg.cli import options as opt
from castlereg.cli.console import note, print_facts, print_json, print_lines, write_output
from castlereg.options import check_choice

if TYPE_CHECKING:
    import pandas as pd

_MOST_ROWS_OF_SEARCH = 20_000  # a search trains tens of networks: with more rows, one network is trained instead
_FIRST_ROWS = 65_536  # of a streamed table; they decide the task
_FEWEST_SCORED_ROWS = 10  # held-out rows
_MEASURES = ("R2", "RMSE", "accuracy", "AUROC", "log loss")  # shown after a fit
_SUFFIXES = ".csv, .tsv, .jsonl (also .gz), .parquet, .feather or .xlsx"
_ROWS_AT_ONCE = 1000  # for intervals, which compare each row with all training rows


def fit(
    table: opt.Table,
    target: Annotated[list[str], Option("--target", "-t", help="Column to predict; repeat for several.")],
    *,
    output: Annotated[Path | None, Option("--output", "-o", help="Write the model to this file.")] = None,
    report: Annotated[Path | None, Option(help="Write an HTML report on the model to this file.")] = None,
    task: Annotated[str, Option(help="regression or classification (default: from the target's values).")] = "auto",
    drop: opt.Dropped = None,
    categorical: opt.Categorical = None,
    known: opt.Knowledge,
    loss: Annotated[str, Option(help="squared, huber, poisson, or quantile levels such as 0.1,0.5,0.9.")] = "squared",
    rises: Annotated[opt.Names, Option(help="Column whose increase never lowers the prediction; repeat.")] = None,
    falls: Annotated[opt.Names, Option(help="Column whose increase never raises the prediction; repeat.")] = None,
    search: Annotated[str | None, Option(help="fast (default), best, or paper: only beta, by folds.")] = None,
    folds: Annotated[int | None, Option(min=2, help="Folds of the search (default: 5; 10 for paper).")] = None,
    beta: Annotated[float | None, Option(min=0, help="Fixed regularization strength, instead of a search.")] = None,
    members: Annotated[int | None, Option(min=1, help="Networks to average without a search (default: 1).")] = None,
    time_limit: Annotated[float | None, Option(min=1, help="Stop training after this many seconds.")] = None,
    groups: Annotated[str | None, Option(help="Column of group labels, which no split divides.")] = None,
    time: Annotated[str | None, Option(help="Column of numbers or dates: validate on later rows.")] = None,
    epochs: opt.Epochs = None,
    stream: Annotated[bool, Option("--stream", help="Read the table in pieces, if it is larger than memory.")] = False,
    seed: opt.Seed = 0,
    text: opt.TextFormat,
    shown: opt.Output,
) -> None:
    """Train networks on a table, and write the model and a report."""
    rises, falls, drop, codes = rises or [], falls or [], drop or [], categorical or []
    check_choice("--task", task, ["auto", "regression", "classification"])
    check_choice("--search", search or "fast", ["fast", "best", "paper"])
    is_search, has_splits = search is not None or folds is not None, groups is not None or time is not None
    rules = {
        "--search and --folds have no effect with --beta: drop it, or them": is_search and beta is not None,
        "--report scores the model on random folds: drop it, or --groups and --time": has_splits and bool(report),
        "--stream reads the file twice: write standard input to a file first": stream and str(table) == "-",
        "--stream takes one --target: pass it once": stream and len(target) > 1,
        "--report needs the whole table in memory: drop it or --stream": stream and report is not None,
        "--groups and --time need the whole table in memory: drop them or --stream": stream and has_splits,
        "--loss is for numeric targets: drop it": loss != "squared" and task == "classification",
        "--rises and --falls contradict each other: name a column once": not {*rises}.isdisjoint(falls),
    }
    opt.check(rules)
    files.check_paths({"table": table}, {"--output": output, "--report": report})
    files.check_name("--output", output, "model")
    files.check_name("--report", report, "page")
    from castlereg.callbacks import TimeLimit
    from castlereg.losses import Quantiles
    from castlereg.table.files import check_columns

    file, rows, splits = text.open(table), None, {}
    task = task if loss == "squared" else "regression"
    if stream:
        features = files.feature_names(file, target, drop)
        first = next(file.frames(target, _FIRST_ROWS), None)
        if first is None:
            raise ValueError(f"{file} has no rows")
        chosen, why = files.chosen_task(first, task)
    else:
        rows = files.training_rows(file, target, drop)
        check_columns([name for name in (groups, time) if name is not None], list(rows.X.columns), file)
        splits = {} if time is None else {"time_column": time}
        splits |= {} if groups is None else {"groups": rows.X.pop(groups)}
        features = list(rows.X.columns)
        chosen, why = files.chosen_task(rows.targets, task)
        is_search |= beta is None and len(target) == 1 and len(rows.X) <= _MOST_ROWS_OF_SEARCH
    check_columns([*codes, *rises, *falls], features, file)
    opt.check({"--members has no effect on a search: pass --beta, or drop --members": is_search and bool(members)})
    monotone = dict.fromkeys(rises, 1) | dict.fromkeys(falls, -1)
    options: dict[str, Any] = {"constraints": known.constraints([*features, *target]), "monotone": monotone or None}
    if loss != "squared":
        options["loss"] = Quantiles(tuple(map(float, loss.split(",")))) if loss[0] in "0123456789." else loss
    options |= {"max_epochs": epochs, "categorical_features": categorical, "random_state": seed}
    if is_search:
        options |= {"search": search or "fast", "cv": folds}
    else:
        options |= {"n_members": members, "reg_beta": beta}
    model = _estimator(chosen, is_search, options, shown.progress)
    callbacks = [] if time_limit is None else [TimeLimit(time_limit)]
    if rows is None:
        model.fit_file(table, target[0], columns=features, callbacks=callbacks, **text.given)
    else:
        model.fit(rows.X, rows.y, callbacks=callbacks, **splits)
    if output is not None:
        from castlereg import save

        save(model, output)
    if report is not None and rows is not None:
        from castlereg.report import write_report

        write_report(model, rows.X, rows.y, report, title=_title(rows, table), verbose=shown.progress)
    facts, labels = _summary(model, is_search)
    n_rows, n_left_out = (None, 0) if rows is None else (len(rows.X), rows.n_without_target)
    about = {"table": str(table), "rows": n_rows, "rows_without_target": n_left_out, "targets": target, "task": chosen}
    missing = f", {facts['missing_values']} missing values" if facts["missing_values"] else ""
    size = "read in pieces," if rows is None else f"{files.counted(len(rows.X))} x"
    labels = {
        "table": f"{table}, {size} {files.counted(facts['columns'], 'column')}{missing}{files.left_out(n_left_out)}",
        "target": f"{', '.join(target)}: {why}, so {chosen}" + (" (override with --task)" if task == "auto" else ""),
        **labels,
        "model": str(output or "not saved: pass --output to write it to a file"),
        **({} if report is None else {"report": str(report)}),
    }
    print_facts(about | facts | {"model": output, "report": report}, labels, shown.as_json)


def _estimator(task: str, is_search: bool, options: dict[str, Any], progress: bool) -> Any:
    """Return an estimator with those options that are not None."""
    import castlereg

    name = "CastleRegressor" if task == "regression" else "CastleClassifier"
    given = {option: value for option, value in options.items() if value is not None}
    return getattr(castlereg, f"{name}CV" if is_search else name)(verbose=progress, **given)


def _summary(model: Any, is_search: bool) -> tuple[dict[str, Any], dict[str, str]]:
    """Return facts and lines about a fit: what it has chosen, its scores on held-out rows, and the columns it uses."""
    from castlereg.evaluation import held_out_evaluation

    evaluation = held_out_evaluation(model)
    assert evaluation is not None  # a model that was just fitted has held-out rows
    is_pool = is_search and model.search != "paper"
    facts: dict[str, Any] = {
        "columns": model.n_features_in_,
        "missing_values": int(model.schema_["missing"].sum()),
        "search": model.search if is_search else None,
        "reg_beta": None if is_pool else model.reg_beta_ if is_search else model.reg_beta,
        "held_out_loss": float(model.validation_loss_),
        "held_out": {
            "rows": evaluation.n_rows,
            "by_folds": is_search,
            "scores": evaluation.to_frame().to_dict(orient="records"),
            "verdicts": {scores.target: scores.verdict for scores in evaluation.targets if scores.verdict},
        },
        "uses": {t.name: _used_columns(model.input_graph_, t.name) for t in model.model_.targets},
    }
    if is_pool:
        labels = {"search": f"{model.search}, predictions averaged over a pool of networks"}
    else:
        labels = {"beta": f"{facts['reg_beta']:g}" + (", chosen by cross-validation" if is_search else "")}
    labels["held-out loss"] = f"{facts['held_out_loss']:.4g} (about 1 if the mean or the base rates are predicted)"
    labels |= _held_out_labels(facts["held_out"])
    for name, columns in facts["uses"].items():
        quoted = (repr(column) if "," in column else column for column in columns)
        labels["uses" if len(facts["uses"]) == 1 else f"uses, for {name}"] = ", ".join(quoted) or "no column stands out"
    return facts, labels


def _held_out_labels(held_out: dict[str, Any]) -> dict[str, str]:
    """Format the scores on held-out rows, one line per target, with the rows that they are computed on."""
    rows = files.counted(held_out["rows"], "row" if held_out["by_folds"] else "validation row")
    if held_out["rows"] < _FEWEST_SCORED_ROWS:
        return {"scores": f"{rows} {'is' if held_out['rows'] == 1 else 'are'} too few to score"}
    rows += ", each predicted by a network that was not trained on it" if held_out["by_folds"] else ""
    lines: dict[str, str] = {}
    for target, measure, value in ((score["target"], score["measure"], score["score"]) for score in held_out["scores"]):
        if measure in _MEASURES:
            written = f"{measure} {value:.0f}" if abs(value) >= 1000 else f"{measure} {value:.3g}"
            lines[target] = f"{lines[target]}, {written}" if target in lines else written
    verdicts = {target: f"; {verdict}" for target, verdict in held_out["verdicts"].items()}
    lines = {target: f"{line} on {rows}{verdicts.get(target, '')}" for target, line in lines.items()}
    return {"scores" if len(lines) == 1 else f"scores, {target}": line for target, line in lines.items()}


def _used_columns(graph: Any, target: str) -> list[str]:
    """Return the columns that help networks to predict the target and share an edge with it, strongest first."""
    weights, parents = graph.learned_weights[target].sort_values(ascending=False), graph.parents(target)
    away = [name for name in graph.children(target) if weights[name] >= graph.threshold]
    return [str(name) for name in weights.index if name in (*parents, *away)]


def evaluate(
    model: opt.Model, table: opt.Table, *, seed: opt.Seed = 0, text: opt.TextFormat, shown: opt.Output
) -> None:
    """Score a model on a table that has the target, with 95 % confidence intervals."""
    files.check_paths({"model": model, "table": table}, {})
    fitted, rows, facts = files.loaded(model, table, text)
    from castlereg import evaluate as evaluate_model

    evaluation = evaluate_model(fitted, rows.X, rows.y, random_state=seed, verbose=shown.progress)
    evaluation = replace(evaluation, n_without_target=rows.n_without_target)
    if shown.as_json:
        print_json(facts | {"scores": evaluation.to_frame().to_dict(orient="records")})
    else:
        print_lines(str(evaluation))


def report(
    model: opt.Model,
    table: opt.Table,
    *,
    output: Annotated[Path | None, Option("--output", "-o", help="Page (default: the model's name, .html).")] = None,
    title: Annotated[str | None, Option(help="Title of the page.")] = None,
    evaluate: Annotated[bool, Option("--evaluate/--no-evaluate", help="Score networks on folds of the table.")] = True,
    text: opt.TextFormat,
    shown: opt.Output,
) -> None:
    """Write an HTML report on a model and the table that it was fitted on."""
    page = Path(model.with_suffix(".html").name) if output is None else output
    files.check_paths({"model": model, "table": table}, {"--output": page})
    files.check_name("--output", page, "page")
    if output is None and page.exists():
        raise FileExistsError(f"{page} exists: pass --output {page} to replace it, or choose another name")
    fitted, rows, facts = files.loaded(model, table, text)
    from castlereg.report import write_report

    title = title or _title(rows, table)
    write_report(fitted, rows.X, rows.y, page, title=title, evaluate=evaluate, verbose=shown.progress)
    remark = files.left_out(rows.n_without_target)
    labels = {"table": f"{table}, {files.counted(len(rows.X))}{remark}", "report": str(page)}
    print_facts(facts | {"report": page}, labels, shown.as_json)


def _title(rows: files.Rows, table: Path) -> str:
    return f"{', '.join(rows.targets.columns)} in {'standard input' if str(table) == '-' else table.name}"


def predict(
    model: opt.Model,
    table: opt.Table,
    *,
    output: Annotated[Path | None, Option("--output", "-o", help=f"{_SUFFIXES} file (default: print CSV).")] = None,
    proba: Annotated[bool, Option("--proba", help="Add the probability of each class.")] = False,
    interval: Annotated[float | None, Option(help="Add an interval with this coverage, such as 0.9.")] = None,
    keep: Annotated[bool, Option("--keep", help="Keep the columns of the table next to the predictions.")] = False,
    text: opt.TextFormat,
    shown: opt.Output,
) -> None:
    """Predict the target of every row of a table; --json prints one object per row."""
    files.check_paths({"model": model, "table": table}, {"--output": output})
    is_file = output is not None and (output.is_file() or not output.exists())  # not a pipe or a device
    is_other = is_file and output is not None and output.suffix.lower() not in (".jsonl", ".ndjson")
    rules = {
        f"--json contradicts --output {output}: use a name that ends in .jsonl": shown.as_json and is_other,
        f"--interval {interval} must be between 0 and 1, such as 0.9": interval is not None and not 0 < interval < 1,
    }
    opt.check(rules)
    import pandas as pd

    from castlereg import load
    from castlereg.table.files import check_table_suffix, write_table

    if is_file and output is not None:
        check_table_suffix(output)
    fitted = load(model)
    numeric = [target.is_numeric for target in fitted.model_.targets]
    without_folds = interval is not None and fitted.model_.folds is None
    rules = {
        "--proba is for a classifier with one target: drop it": proba and numeric != [False],
        "--interval is for numeric targets: use --proba instead": interval is not None and not all(numeric),
        "--interval needs a model fitted by a search: run `castlereg fit` without --beta": without_folds,
    }
    opt.check(rules)
    file = files.open_for(fitted, table, text)
    rows = file.read()
    names = files.features_of(fitted, rows, file)
    known = {*names, *(target.name for target in fitted.model_.targets)}
    extra = [str(column) for column in rows.columns if column not in known]
    if extra and not keep and not shown.quiet:
        note(f"ignoring columns that the model does not use: {', '.join(extra)}")
    # With --json the progress bar stays: it is drawn on standard error.
    predicted = _predictions(fitted, rows[names], proba, interval, replace(shown, as_json=False).progress)
    predicted.columns = distinct(predicted.columns, rows.columns if keep else ())
    predicted.index = rows.index
    frame = pd.concat([rows, predicted], axis=1) if keep else predicted
    if is_file and output is not None:
        write_table(frame, output)
    elif shown.as_json:
        with tempfile.TemporaryDirectory() as folder:
            write_table(frame, Path(folder) / "rows.jsonl")
            write_output((Path(folder) / "rows.jsonl").read_bytes(), output)
    else:
        write_output(frame.to_csv(index=False), output)


def _predictions(fitted: Any, X: pd.DataFrame, proba: bool, interval: float | None, progress: bool) -> pd.DataFrame:
    """Predict the targets and their quantiles, then probabilities and intervals on request; names may repeat."""
    import numpy as np
    import pandas as pd

    from castlereg.losses import Quantiles

    targets = [target.name for target in fitted.model_.targets]
    names, parts = list(targets), [fitted.predict(X)]
    loss = fitted.model_.targets[0].node.loss
    if isinstance(loss, Quantiles):
        names += [f"{target}_{level:g}" for target in targets for level in loss.levels]
        parts.append(fitted.predict_quantiles(X))
    if proba:
        names += [f"P({label})" for label in fitted.classes_]
        parts.append(fitted.predict_proba(X))
    if interval is not None:
        names += [end if len(targets) == 1 else f"{name}_{end}" for name in targets for end in ("lower", "upper")]
        parts.append(_intervals(fitted, X, interval, progress))
    columns = [column for part in parts for column in np.asarray(part).reshape(len(X), -1).T]
    predicted = pd.DataFrame(dict(enumerate(columns)))
    predicted.columns = names
    return predicted


def _intervals(fitted: Any, X: pd.DataFrame, coverage: float, progress: bool) -> Any:
    """Predict intervals in blocks of rows, because each row is compared with all training rows."""
    import numpy as np
    from tqdm.auto import tqdm

    starts = range(0, len(X), _ROWS_AT_ONCE)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the predictions have warned already
        bar = tqdm(starts, desc="intervals", unit_scale=_ROWS_AT_ONCE, unit="row", disable=not progress, delay=2)
        blocks = [fitted.predict_interval(X[start : start + _ROWS_AT_ONCE], coverage=coverage) for start in bar]
    return np.concatenate(blocks)


def distinct(names: Iterable[str], taken: Iterable[str]) -> list[str]:
    """Rename columns whose names are taken or duplicated.

    >>> distinct(["price", "lower", "lower"], ["area", "price"])
    ['price_predicted', 'lower', 'lower_predicted']
    """
    known, renamed = set(map(str, taken)), []
    for name in names:
        tries = [name, f"{name}_predicted", *(f"{name}_predicted_{n}" for n in range(2, len(known) + 2))]
        renamed.append(next(tried for tried in tries if tried not in known))
        known.add(renamed[-1])
    return renamed


def demo(
    *,
    output: Annotated[Path, Option("--output", "-o", help="Folder to write to.")] = Path("castlereg-demo"),
    epochs: opt.Epochs = None,
    shown: opt.Output,
) -> None:
    """Fit scikit-learn's diabetes table; write the table, the model, its graph and an HTML report."""
    from sklearn.datasets import load_diabetes

    output.mkdir(parents=True, exist_ok=True)
    table, model = output / "diabetes.csv", output / "diabetes.castle"
    frame = load_diabetes(as_frame=True, scaled=False).frame.rename(columns={"target": "progression"})
    write_output(frame.to_csv(index=False), table)
    groups: dict[str, Any] = {"known": opt.Knowledge(), "text": opt.TextFormat()}
    page = output / "report.html"
    fit(table, ["progression"], output=model, report=page, search="paper", epochs=epochs, shown=shown, **groups)
    graphs.graph(model, output=output / "graph.svg", shown=replace(shown, as_json=False), **groups)
