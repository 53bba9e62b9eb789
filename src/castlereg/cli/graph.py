"""``castlereg graph``: the graph of a saved model in other forms."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from castlereg.cli.console import Debug, Quiet, command, stop
from castlereg.cli.fit import check_writable
from castlereg.graph import CausalGraph
from castlereg.options import check_choice

_FORMATS = ("svg", "dot", "json", "gml", "csv", "png", "text")


@command
def graph(
    model: Annotated[Path, typer.Argument(help="File that `castlereg fit --output` wrote.")],
    form: Annotated[
        str | None, typer.Option("--format", "-f", help="svg, dot, json, gml, csv (edges), png or text.")
    ] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="File; standard output else.")] = None,
    threshold: Annotated[float | None, typer.Option(min=0, help="Leave weaker edges out; 0 has all.")] = None,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Write the graph that a model learned."""
    from castlereg import load

    form = form or (output.suffix.lower().lstrip(".") if output is not None else "text")
    check_choice("--format", form, _FORMATS)
    check_writable(output)
    fitted = load(model)
    if not hasattr(fitted, "graph_"):
        stop(f"{model} has no graph: it is a network without CASTLE")
    learned: CausalGraph = fitted.graph_ if threshold is None else fitted.graph_.above(threshold)
    if form == "png":
        _draw(learned, output)
        return
    text = _text(learned, form)
    if output is None:
        sys.stdout.write(text if text.endswith("\n") else text + "\n")
        sys.stdout.flush()
    else:
        output.write_text(text, encoding="utf-8")


def _text(learned: CausalGraph, form: str) -> str:
    if form == "csv":
        return learned.edges().to_csv(index=False)
    if form == "text":
        return f"{learned.summary()}\n\n{learned.edges().round(3).to_string(index=False)}\n"
    written: str = {"svg": learned.to_svg, "dot": learned.to_dot, "json": learned.to_json, "gml": learned.to_gml}[
        form
    ]()
    return written


def _draw(learned: CausalGraph, output: Path | None) -> None:
    if output is None and sys.stdout.isatty():
        stop("a PNG is no text: give --output, or send it into a file or a pipe")
    figure = learned.plot().figure.figure
    figure.savefig(output or sys.stdout.buffer, format="png", dpi=130)
