"""``castlereg graph`` and ``castlereg what-if``: the causal graph of a table, and the effects of interventions."""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from castlereg.cli import files
from castlereg.cli import options as opt
from castlereg.cli.console import print_json, print_lines, write_output
from castlereg.options import check_choice, did_you_mean

if TYPE_CHECKING:
    from castlereg import CausalGraph

_FORMATS = ("svg", "dot", "json", "gml", "dagitty", "lavaan", "csv", "png", "text")
_PICTURES = (".png", ".svg", ".pdf")


def graph(
    path: opt.ModelOrTable,
    *,
    target: Annotated[opt.Names, Option("--target", "-t", help="Target column of a table; repeat for several.")] = None,
    drop: opt.Dropped = None,
    categorical: opt.Categorical = None,
    known: opt.Knowledge,
    form: Annotated[str | None, Option("--format", "-f", help=f"{', '.join(_FORMATS)} (csv: edges).")] = None,
    output: Annotated[Path | None, Option("--output", "-o", help="Output file (default: standard output).")] = None,
    confidence: Annotated[float, Option(min=0, max=1, help="Leave out edges with a lower confidence.")] = 0.0,
    seed: opt.Seed = 0,
    text: opt.TextFormat,
    shown: opt.Output,
) -> None:
    """Write the causal graph of a model, or of a table without training networks."""
    form = _format(form, output, shown.as_json)
    is_shown = form == "png" and output is None and sys.stdout.isatty()
    needs_table = target is None and bool(drop or categorical or text.given)
    rules = {
        "a PNG cannot be shown in a terminal: pass --output, or redirect the output to a file or a pipe": is_shown,
        "--drop, --categorical, --sep, --decimal and --encoding are for a table: pass its --target": needs_table,
        f"{path} is a table: pass its --target, or a model": target is None and files.is_table(path),
    }
    opt.check(rules)
    files.check_paths({"model" if target is None else "table": path}, {"--output": output})
    if target is None:
        from castlereg import load

        found = _graph_of_model(load(path), known, seed, shown.progress)
    else:
        from castlereg.table.files import check_columns

        file = text.open(path)
        rows = files.training_rows(file, target, drop or [])
        names = [*rows.X.columns, *target]
        check_columns(categorical or [], list(rows.X.columns), file)
        found = _graph_of_table(rows, known.constraints(names), categorical, seed=seed, progress=shown.progress)
    for cause, effect, share in found.edges()[["cause", "effect", "confidence"]].itertuples(index=False):
        found = found.without_edge(cause, effect) if share < confidence else found
    write_output(_written(found, form), output)


def _graph_of_table(rows: Any, known: Any, categorical: Sequence[str] | None, **options: Any) -> CausalGraph:
    """Discover the graph of a table."""
    from castlereg.causal import discover_graph, graph_rules
    from castlereg.table.encoding import Preprocessing, Rows
    from castlereg.table.reading import read_columns
    from castlereg.table.schema import named_columns
    from castlereg.table.targets import check_target, fit_target, read_target, target_kinds

    columns, kinds, (truths, names) = read_columns(rows.X), target_kinds(rows.targets, "any"), read_target(rows.targets)
    values = [check_target(*target) for target in zip(truths, names, kinds, strict=True)]
    as_read, targets = Rows(columns, tuple(values)), tuple(map(fit_target, values, names, kinds))
    preprocessing = Preprocessing.fit(as_read, targets, categorical=named_columns(categorical or None, columns.names))
    edges = graph_rules(known, None, [*columns.names, *names], len(names))
    return discover_graph(preprocessing, preprocessing.coded(as_read), edges=edges, **options)


def _graph_of_model(fitted: Any, known: opt.Knowledge, seed: int, progress: bool, rows: Any = None) -> CausalGraph:
    """Return the graph of a model, discovered again if more is known than at its fit."""
    before = getattr(fitted, "constraints", None)
    names = _node_names(fitted)
    constraints = known.constraints(names, before)
    if constraints is before:
        try:
            return fitted.graph_  # type: ignore[no-any-return, unused-ignore]
        except AttributeError as error:  # such as a model that was saved without rows
            raise ValueError(str(error)) from error
    rows = fitted.model_.rows if rows is None else rows
    if rows is None:
        raise ValueError("the model was saved without rows, so its graph cannot change: pass a table and its --target")
    from castlereg.causal import discover_graph, graph_rules

    edges = graph_rules(constraints, None, names, len(fitted.model_.targets))
    return discover_graph(fitted.model_.preprocessing, rows, edges=edges, seed=seed, progress=progress)


def _node_names(fitted: Any) -> list[str]:
    """Return the names of a model's columns and targets."""
    return [each.name for each in (*fitted.model_.preprocessing.schema, *fitted.model_.targets)]


def _format(form: str | None, output: Path | None, as_json: bool) -> str:
    """Return the requested format, from the options or the suffix of the output file."""
    suffix = "" if output is None else output.suffix.lower().lstrip(".")
    form = form or suffix or ("text" if output is None and not as_json else "")
    rules = {
        f"--json contradicts the format {form!r}: drop one of them": as_json and (form or "json") != "json",
        f"--output {output} has no suffix: add one, such as .svg, or pass --format": not form and not as_json,
    }
    opt.check(rules)
    check_choice("--format", form or "json", _FORMATS)
    return form or "json"


def _written(found: CausalGraph, form: str) -> str | bytes:
    if form == "png":
        return _picture(found, "png")
    if form == "csv":
        return found.edges().to_csv(index=False)
    if form == "text":
        edges, questions, hidden = found.edges(), found.questions(), found.hidden_causes()
        known = edges.columns[edges.notna().any() | edges.empty]
        parts = [found.summary(), edges[known].round(3).to_string(index=False)]
        if len(hidden):
            parts.append(f"Suspected hidden common causes:\n{hidden.round(3).to_string(index=False)}")
        if len(questions):
            parts.append("\n".join(["Questions worth asking:", *questions["question"]]))
        return "\n\n".join(parts) + "\n"
    writers = {name: getattr(found, f"to_{name}") for name in ("svg", "dot", "json", "gml", "dagitty", "lavaan")}
    return str(writers[form]()).rstrip("\n") + "\n"


def _picture(drawable: Any, form: str) -> bytes:
    drawn = io.BytesIO()
    drawable.plot().figure.figure.savefig(drawn, format=form, dpi=130)
    return drawn.getvalue()


def what_if(
    model: opt.Model,
    table: opt.Table,
    *,
    do: Annotated[opt.Names, Option("--do", help="column=value to set in every row; repeat for several.")] = None,
    effect_of: Annotated[str | None, Option(help="Instead of --do: column to set to one value after another.")] = None,
    values: Annotated[str | None, Option(help="For --effect-of, such as 20,25,30 (default: over its range).")] = None,
    outcome: Annotated[str | None, Option(help="Outcome (default: the target, if there is only one).")] = None,
    given: Annotated[
        opt.Names, Option(help="column=level or column=low:high: average over these rows; repeat.")
    ] = None,
    level: Annotated[str | None, Option(help="Level of an outcome with levels (default: the last).")] = None,
    known: opt.Knowledge,
    coverage: Annotated[float, Option(help="Coverage of the intervals.")] = 0.9,
    draws: Annotated[int, Option(min=0, help="Graphs and samples of rows for the intervals; 0 for none.")] = 50,
    plot: Annotated[Path | None, Option(help="Write a plot of --effect-of to this .png, .svg or .pdf file.")] = None,
    seed: opt.Seed = 0,
    text: opt.TextFormat,
    shown: opt.Output,
) -> None:
    """Estimate how an outcome changes when columns are set to values, and how certain the graph is."""
    is_effect, is_picture = effect_of is not None, plot is None or plot.suffix.lower() in _PICTURES
    rules = {
        "nothing to estimate: pass --do column=value or --effect-of column": not do and not is_effect,
        "--do and --effect-of cannot be combined: pass one of them": bool(do) and is_effect,
        "--values has no effect with --do: it is for --effect-of; drop it": values is not None and not is_effect,
        "--plot has no effect with --do: it is for --effect-of; drop it": plot is not None and not is_effect,
        f"--plot {plot}: the name of a plot must end in .png, .svg or .pdf": not is_picture,
        f"--coverage {coverage:g} must be between 0 and 1, such as 0.9": not 0 < coverage < 1,
    }
    opt.check(rules)
    files.check_paths({"model": model, "table": table}, {"--plot": plot})
    fitted, rows, facts = files.loaded(model, table, text)
    names, targets = _node_names(fitted), [target.name for target in fitted.model_.targets]
    if outcome is None and len(targets) > 1:
        raise ValueError(f"--outcome is missing: the model has several targets; choose from {', '.join(targets)}")
    outcome = targets[0] if outcome is None else outcome
    for option, name in (("--outcome", outcome), ("--effect-of", effect_of)):
        if name is not None and name not in names:
            raise ValueError(_unknown(option, name, names))
    set_to, among = _assignments("--do", do or [], names), _assignments("--given", given or [], names)
    if outcome in (*set_to, effect_of):
        raise ValueError(f"{outcome!r} is the outcome: it cannot be set as well; choose another --outcome")
    from castlereg.causal import structural_model
    from castlereg.estimators.base import read_known_rows

    preprocessing = fitted.model_.preprocessing
    coded = preprocessing.coded(read_known_rows(fitted, rows.X, rows.y, fitted.model_.target_kinds))
    found = _graph_of_model(fitted, known, seed, shown.progress, coded)
    how: dict[str, Any] = {"n_draws": draws, "random_state": seed, "progress": shown.progress}
    world = structural_model(preprocessing, coded, found, is_graph_given=False, **how)
    variables = {variable.name: variable for variable in world.variables}
    options: dict[str, Any] = {
        "given": {name: _given_value(variables[name], value) for name, value in among.items()},
        "level": None if level is None else typed(variables[outcome], level),
        "coverage": coverage,
    }
    if effect_of is None:
        answer = world.what_if({name: typed(variables[name], v) for name, v in set_to.items()}, outcome, **options)
        _print_answer(answer, facts, shown.as_json)
        return
    series = None if values is None else [typed(variables[effect_of], value) for value in opt.listed(values)]
    effect = world.effect(effect_of, outcome, values=series, **options)
    if plot is not None:
        write_output(_picture(effect, plot.suffix.lower().lstrip(".")), plot)
    _print_effect(effect, facts | ({} if plot is None else {"plot": plot}), shown.as_json)


def _print_answer(answer: Any, facts: dict[str, Any], as_json: bool) -> None:
    if not as_json:
        print_lines(answer.summary())
        return
    question = {"do": answer.do, "outcome": answer.outcome, "level": answer.level, "coverage": answer.coverage}
    estimates = {"before": answer.before, **answer.to_frame().to_dict(orient="index")}
    quantiles = {f"quantiles_{when}": getattr(answer, f"quantiles_{when}").tolist() for when in ("before", "after")}
    print_json(facts | question | estimates | quantiles | _trust(answer, " and ".join(answer.do)))


def _print_effect(effect: Any, facts: dict[str, Any], as_json: bool) -> None:
    table, trust = effect.to_frame(), _trust(effect, effect.cause)
    if as_json:
        question = {"effect_of": effect.cause, "outcome": effect.outcome, "level": effect.level}
        rows = table.rename(columns={table.columns[0]: "value"}).to_dict(orient="records")
        print_json(facts | question | {"coverage": effect.coverage, "values": rows} | trust)
        return
    table = table.drop(columns=["within", "between"]).rename(columns={"estimate": "caused"})
    written = table.to_string(index=False, float_format="{:.4g}".format)
    remarks = trust["notes"][: len(trust["notes"]) - len(effect.notes)]
    print_lines("\n".join([*remarks, f"The {effect.measured}, if {effect.cause} is set:", written, *effect.notes]))


def _trust(answer: Any, cause: str) -> dict[str, Any]:
    """Return the facts that show how far to trust an answer."""
    direction, remark = answer.direction, answer.direction.remark(cause, answer.outcome)
    shares = {"graphs_with_a_path": direction.forward, "graphs_with_a_path_back": direction.backward}
    return shares | {"direction_is_known": direction.is_known, "notes": [*([remark] if remark else []), *answer.notes]}


def _assignments(option: str, texts: Sequence[str], names: Sequence[str]) -> dict[str, str]:
    """Parse ``column=value``, each split after the longest known column name; names and levels may contain ``=``.

    >>> _assignments("--do", ["size=a=b", "city=x=y"], ["size", "size=a", "city"])
    {'size=a': 'b', 'city': 'x=y'}
    """
    values: dict[str, str] = {}
    for text in texts:
        name, equals, _ = text.partition("=")
        if not equals:
            raise ValueError(f"{option} {text} must have the form column=value")
        matching = [known for known in names if text.startswith(f"{known}=")]
        if not matching:
            raise ValueError(_unknown(option, name, names))
        name = max(matching, key=len)
        if name in values:
            raise ValueError(f"{option} {name} is duplicated: pass each column only once")
        values[name] = text[len(name) + 1 :]
    return values


def _unknown(option: str, name: str, names: Sequence[str]) -> str:
    hint = did_you_mean(name, names) or f"; its columns are {', '.join(names[:20])}{', ...' if len(names) > 20 else ''}"
    return f"{option} {name}: the model has no such column{hint}"


def typed(variable: Any, text: str) -> Any:
    """Convert a text to a value of a column; other code rejects a text that is neither a number nor a level."""
    levels = variable.levels or ()
    has_texts = any(isinstance(level, str) for level in levels)
    if not has_texts and text not in map(str, levels) and variable.holds != "dates":
        with suppress(ValueError):
            return float(text)
    return text


def _given_value(variable: Any, text: str) -> Any:
    """Parse a level of a column, or a range ``low:high`` of its numbers; times have the same colons at both ends."""
    if variable.levels is not None:
        return typed(variable, text)
    parts = text.split(":")
    half, odd = divmod(len(parts), 2)
    if odd or not half:
        raise ValueError(f"--given {variable.name}={text}: the column is numeric, so pass a range low:high")
    return tuple(typed(variable, ":".join(end)) for end in (parts[:half], parts[half:]))
