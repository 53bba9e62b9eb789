"""The command line: thin commands over public functions."""

from __future__ import annotations

import typer

from castlereg.cli.compare import compare
from castlereg.cli.fit import demo, fit
from castlereg.cli.paper import datasets, experiment
from castlereg.cli.saved_model import graph, predict

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False, help="Neural networks on tables, with CASTLE.")
for _command in (demo, fit, predict, graph, compare, experiment, datasets):
    app.command()(_command)


@app.callback(invoke_without_command=True)
def _options(version: bool = typer.Option(False, "--version", help="Show the version and stop.")) -> None:
    if version:
        from castlereg import __version__

        typer.echo(f"castlereg {__version__}")
        raise typer.Exit


__all__ = ["app"]
