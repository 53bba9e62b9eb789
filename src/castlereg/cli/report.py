"""``castlereg report``: an HTML page on a saved model and a table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from castlereg.cli.arguments import Debug, Decimal, Encoding, Json, Model, Quiet, Separator, Table
from castlereg.cli.console import command, print_facts
from castlereg.cli.paths import check_page_name, check_paths
from castlereg.cli.tables import columns_for, counted, named, one_or_all, open_for, text_options, with_targets


@command
def report(
    model: Model,
    table: Table,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Page to write (default: the model's name with .html).")
    ] = None,
    title: Annotated[str | None, typer.Option(help="Title of the page.")] = None,
    evaluate: Annotated[
        bool,
        typer.Option("--evaluate/--no-evaluate", help="Score the model by training networks on folds of the table."),
    ] = True,
    separator: Separator = None,
    decimal: Decimal = None,
    encoding: Encoding = None,
    quiet: Quiet = False,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Write an HTML report on a model and the table that it was fitted on."""
    page = Path(model.with_suffix(".html").name) if output is None else output
    check_paths({"model": model, "table": table}, {"--output": page})
    check_page_name("--output", page)
    if output is None and page.exists():
        raise FileExistsError(f"{page} exists: pass --output {page} to replace it, or choose another name")
    from castlereg import load
    from castlereg.report import write_report

    fitted = load(model)
    file = open_for(fitted, table, text_options(separator, decimal, encoding))
    frame = file.read()
    X, y, without_target = with_targets(frame, *columns_for(fitted, frame, file), file)
    title = title or f"{', '.join(y.columns)} in {named(table)}"
    verbose = False if quiet or as_json else None
    write_report(fitted, X, one_or_all(y), page, title=title, evaluate=evaluate, verbose=verbose)
    facts = {"model": model, "table": table, "rows": len(X), "rows_without_target": without_target, "report": page}
    left_out = f"; {counted(without_target)} without a target left out" if without_target else ""
    labels = {"table": f"{table}, {counted(len(X))}{left_out}", "report": str(page)}
    print_facts(facts, labels, as_json)
