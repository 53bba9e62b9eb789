"""``castlereg datasets``: what there is to load, and a table of it as a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Column, Table

from castlereg.atomic_write import check_writable
from castlereg.cli.console import Debug, Json, Quiet, command, out, print_facts, write_output


@command
def datasets(
    name: Annotated[str | None, typer.Argument(help="Table to show or write; all are listed without it.")] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write the table to this CSV file.")] = None,
    variant: Annotated[str, typer.Option(help="Which problem to make of the table.")] = "default",
    quiet: Quiet = False,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """List the tables of the catalogue, or write one to a file."""
    from castlereg.paper.datasets import catalogue, load

    if name is None:
        listed = catalogue().reset_index()[["name", "rows", "columns", "task", "target", "title"]]
        listed = listed.astype(object).where(listed.notna(), None)
        if as_json:
            print_facts({"tables": listed.to_dict(orient="records")}, {}, True)
            return
        headings = [Column(name, justify="right" if name in ("rows", "columns") else "left") for name in listed]
        shown = Table(*headings, box=None, header_style="bold")
        for row in listed.itertuples(index=False):
            shown.add_row(*("" if cell is None else str(cell) for cell in row))
        out.print(shown)
        return
    check_writable(output)
    loaded = load(name, variant=variant)
    if output is not None:
        write_output(loaded.X.assign(**{str(loaded.y.name): loaded.y}).to_csv(index=False), output)
    facts = {
        "name": loaded.name,
        "variant": loaded.variant,
        "task": loaded.task,
        "rows": len(loaded.X),
        "columns": loaded.X.shape[1],
        "target": str(loaded.y.name),
        "file": None if output is None else str(output),
    }
    labels = {
        "table": f"{loaded.name} ({loaded.variant}), {len(loaded.X)} rows x {loaded.X.shape[1]} columns",
        "target": f"{loaded.y.name}, {loaded.task}",
    }
    if output is not None:
        labels["file"] = str(output)
    print_facts(facts, labels, as_json)
