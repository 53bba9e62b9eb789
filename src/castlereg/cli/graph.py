"""``castlereg graph``: the graph of a saved model in other forms."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from castlereg.atomic_write import check_writable
from castlereg.cli.console import Debug, Quiet, command, stop, write_output
from castlereg.cli.tables import Model
from castlereg.options import check_choice

if TYPE_CHECKING:
    from castlereg.graph import CausalGraph

_FORMATS = ("svg", "dot", "json", "gml", "csv", "png", "text")


@command
def graph(
    model: Model,
    form: Annotated[
        str | None, typer.Option("--format", "-f", help="svg, dot, json, gml, csv (edges), png or text.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Output file (default: standard output).")
    ] = None,
    threshold: Annotated[float | None, typer.Option(min=0, help="Leave weaker edges out; 0 keeps all.")] = None,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Write the graph that a model learned."""
    from castlereg import load

    form = form or (output.suffix.lower().lstrip(".") if output is not None else "text")
    check_choice("--format", form, _FORMATS)
    check_writable(output)
    if form == "png" and output is None and sys.stdout.isatty():
        stop("a PNG is not text: give --output, or send it into a file or a pipe")
    fitted = load(model)
    if not hasattr(fitted, "graph_"):
        stop(f"{model} has no graph: it is a network without CASTLE")
    write_output(_written(fitted.graph_ if threshold is None else fitted.graph_.above(threshold), form), output)


def _written(learned: CausalGraph, form: str) -> str | bytes:
    if form == "png":
        drawn = io.BytesIO()
        learned.plot().figure.figure.savefig(drawn, format="png", dpi=130)
        return drawn.getvalue()
    if form == "csv":
        return learned.edges().to_csv(index=False)
    if form == "text":
        return f"{learned.summary()}\n\n{learned.edges().round(3).to_string(index=False)}\n"
    writers = {"svg": learned.to_svg, "dot": learned.to_dot, "json": learned.to_json, "gml": learned.to_gml}
    text: str = writers[form]()
    return text if text.endswith("\n") else text + "\n"
