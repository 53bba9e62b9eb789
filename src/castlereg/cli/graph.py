"""``castlereg graph``: the graph of a saved model, in seven formats."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from castlereg.cli.arguments import Debug, Model, Quiet
from castlereg.cli.console import command, stop, write_output
from castlereg.cli.paths import check_paths
from castlereg.options import check_choice

if TYPE_CHECKING:
    from castlereg.causal.graph import CausalGraph

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
    threshold: Annotated[
        float | None, typer.Option(min=0, help="Leave out edges weaker than this; 0 keeps all.")
    ] = None,
    quiet: Quiet = False,
    as_json: Annotated[bool, typer.Option("--json", help="Same as --format json.")] = False,
    debug: Debug = False,
) -> None:
    """Write the graph that a model has learned."""
    form = _format(form, output, as_json)
    check_paths({"model": model}, {"--output": output})
    if form == "png" and output is None and sys.stdout.isatty():
        stop("a PNG cannot be shown in a terminal: pass --output, or redirect the output to a file or a pipe")
    from castlereg import load

    fitted = load(model)
    if not hasattr(fitted, "graph_"):
        stop(f"{model} has no graph: it was fitted without CASTLE")
    write_output(_written(fitted.graph_ if threshold is None else fitted.graph_.above(threshold), form), output)


def _format(form: str | None, output: Path | None, as_json: bool) -> str:
    """Return the requested format, from the options or the suffix of the output file."""
    suffix = "" if output is None else output.suffix.lower().lstrip(".")
    if as_json and (form or suffix or "json") != "json":
        stop(f"--json contradicts the format {form or suffix!r}: drop one of them")
    form = "json" if as_json else form or suffix or ("text" if output is None else "")
    if not form:
        stop(f"--output {output} has no suffix: add one, such as .svg, or pass --format")
    check_choice("--format", form, _FORMATS)
    return form


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
