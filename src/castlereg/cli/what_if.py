"""``castlereg what-if``: estimate the effect of setting columns on an outcome, using the graph of a saved model."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from castlereg.cli.arguments import Debug, Decimal, Encoding, Json, Model, Quiet, Seed, Separator, Table
from castlereg.cli.assignments import assignments, given_value, listed_values, typed, unknown_column
from castlereg.cli.console import command, one_line, out, print_json, print_table, stop, write_output
from castlereg.cli.paths import check_paths
from castlereg.cli.tables import columns_for, one_or_all, open_for, text_options, with_targets
from castlereg.notices import shows_progress

if TYPE_CHECKING:
    from castlereg.causal.structural import Effect, WhatIf

_PICTURES = (".png", ".svg", ".pdf")


@command
def what_if(
    model: Model,
    table: Table,
    do: Annotated[
        list[str] | None, typer.Option("--do", help="column=value to set in every row; repeat for several.")
    ] = None,
    effect_of: Annotated[
        str | None, typer.Option(help="Instead of --do: column to set to a series of values, one at a time.")
    ] = None,
    outcome: Annotated[
        str | None, typer.Option(help="Outcome column (default: the model's target, if it has only one).")
    ] = None,
    values: Annotated[
        str | None, typer.Option(help="Values for --effect-of, such as 20,25,30 (default: values over its range).")
    ] = None,
    given: Annotated[
        list[str] | None,
        typer.Option(help="column=level or column=low:high: average over these rows only; repeat for several."),
    ] = None,
    level: Annotated[
        str | None,
        typer.Option(help="Level of a categorical outcome whose probability to estimate (default: the last)."),
    ] = None,
    coverage: Annotated[float, typer.Option(help="Coverage of the intervals.")] = 0.9,
    draws: Annotated[
        int,
        typer.Option(min=0, help="Number of draws (a graph and a sample of the rows) for the intervals; 0 for none."),
    ] = 50,
    plot: Annotated[
        Path | None, typer.Option(help="Write a plot of --effect-of to this file: .png, .svg or .pdf.")
    ] = None,
    seed: Seed = 0,
    separator: Separator = None,
    decimal: Decimal = None,
    encoding: Encoding = None,
    quiet: Quiet = False,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Estimate how an outcome changes when columns are set to values, and how certain the graph is."""
    _check_options(do, effect_of, values, plot, coverage)
    check_paths({"model": model, "table": table}, {"--plot": plot})
    from castlereg import load

    fitted = load(model)
    if not hasattr(fitted, "graph_"):
        stop(f"{model} has no graph: it was fitted without CASTLE")
    names = [column.name for column in fitted.model_.preprocessing.schema]
    names += [target.name for target in fitted.model_.targets]
    outcome = _outcome(fitted, outcome, names)
    set_to, among = assignments("--do", do or [], names), assignments("--given", given or [], names)
    if effect_of is not None and effect_of not in names:
        raise ValueError(unknown_column("--effect-of", effect_of, names))
    if outcome in set_to or outcome == effect_of:
        raise ValueError(f"{outcome!r} is the outcome: it cannot be set as well; choose another --outcome")
    file = open_for(fitted, table, text_options(separator, decimal, encoding))
    frame = file.read()
    X, y, without_target = with_targets(frame, *columns_for(fitted, frame, file), file)
    fitted.set_params(verbose=shows_progress(False if quiet or as_json else None))
    world = fitted.structural_model(X=X, y=one_or_all(y), n_draws=draws, random_state=seed)
    variables = {variable.name: variable for variable in world.variables}
    options = {
        "given": {name: given_value(variables[name], text) for name, text in among.items()},
        "level": None if level is None else typed(variables[outcome], level),
        "coverage": coverage,
    }
    facts = {"model": model, "table": table, "rows": len(X), "rows_without_target": without_target}
    if effect_of is None:
        answer = world.what_if(
            {name: typed(variables[name], text) for name, text in set_to.items()}, outcome, **options
        )
        _print_answer(answer, facts, as_json)
        return
    listed = None if values is None else listed_values(variables[effect_of], values)
    effect = world.effect(effect_of, outcome, values=listed, **options)
    if plot is not None:
        write_output(_picture(effect, plot), plot)
    _print_effect(effect, facts | ({} if plot is None else {"plot": plot}), as_json)


def _check_options(
    do: list[str] | None, effect_of: str | None, values: str | None, plot: Path | None, coverage: float
) -> None:
    if not do and effect_of is None:
        raise ValueError("nothing to estimate: pass --do column=value or --effect-of column")
    if do and effect_of is not None:
        raise ValueError("--do and --effect-of cannot be combined: pass one of them")
    for option, value in (("--values", values), ("--plot", plot)):
        if value is not None and effect_of is None:
            raise ValueError(f"{option} has no effect with --do: it is for --effect-of; drop it")
    if plot is not None and plot.suffix.lower() not in _PICTURES:
        raise ValueError(
            f"--plot {plot}: the name of a plot must end in {', '.join(_PICTURES[:-1])} or {_PICTURES[-1]}"
        )
    if not 0 < coverage < 1:
        raise ValueError(f"--coverage {coverage:g} must be between 0 and 1, such as 0.9")


def _outcome(fitted: Any, outcome: str | None, names: list[str]) -> str:
    targets = [target.name for target in fitted.model_.targets]
    if outcome is None:
        if len(targets) > 1:
            raise ValueError(
                f"--outcome is missing: the model has {len(targets)} targets; choose from {', '.join(targets)}"
            )
        return str(targets[0])
    if outcome not in names:
        raise ValueError(unknown_column("--outcome", outcome, names))
    return outcome


def _picture(effect: Effect, path: Path) -> bytes:
    drawn = io.BytesIO()
    effect.plot().figure.figure.savefig(drawn, format=path.suffix.lower().lstrip("."), dpi=130)
    return drawn.getvalue()


def _print_answer(answer: WhatIf, facts: dict[str, Any], as_json: bool) -> None:
    if not as_json:
        for line in answer.summary().split("\n"):
            out.print(one_line(line), markup=False)
        return
    remark = answer.direction.remark(" and ".join(answer.do), answer.outcome)
    print_json(
        facts
        | {"do": answer.do, "outcome": answer.outcome, "level": answer.level, "coverage": answer.coverage}
        | {"before": answer.before, **answer.to_frame().to_dict(orient="index")}
        | {"quantiles_before": answer.quantiles_before.tolist(), "quantiles_after": answer.quantiles_after.tolist()}
        | _trust(answer, remark)
    )


def _print_effect(effect: Effect, facts: dict[str, Any], as_json: bool) -> None:
    remark = effect.direction.remark(effect.cause, effect.outcome)
    if as_json:
        columns = {"value": list(effect.values)} | effect.answer._asdict() | {"associated": effect.associated}
        rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
        question = {"effect_of": effect.cause, "outcome": effect.outcome, "level": effect.level}
        print_json(facts | question | {"coverage": effect.coverage, "values": rows} | _trust(effect, remark))
        return
    if remark:
        out.print(one_line(remark), markup=False)
    out.print(one_line(f"The {effect.measured}, if {effect.cause} is set:"), markup=False)
    answer = effect.answer
    numbers = zip(answer.estimate, answer.low, answer.high, effect.associated, strict=True)
    cells = [[_shown(value), *map(_shown, of_value)] for value, of_value in zip(effect.values, numbers, strict=True)]
    print_table([one_line(effect.cause), "caused", "low", "high", "associated"], cells)
    for note in effect.notes:
        out.print(one_line(note), markup=False)


def _shown(value: Any) -> Any:
    """Round numbers to four significant digits."""
    return float(f"{value:.4g}") if isinstance(value, float) else value


def _trust(answer: WhatIf | Effect, remark: str) -> dict[str, Any]:
    """Return the facts that show how far to trust an answer."""
    direction = answer.direction
    shares = {"graphs_with_a_path": direction.forward, "graphs_with_a_path_back": direction.backward}
    return shares | {"direction_is_known": direction.is_known, "notes": [*([remark] if remark else []), *answer.notes]}
