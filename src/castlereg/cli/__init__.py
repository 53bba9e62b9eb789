"""The command line: thin wrappers around public functions."""

from __future__ import annotations

import typer

from castlereg.cli.compare import compare
from castlereg.cli.demo import demo
from castlereg.cli.evaluate import evaluate
from castlereg.cli.fit import fit
from castlereg.cli.graph import graph
from castlereg.cli.paper import datasets, experiment
from castlereg.cli.predict import predict
from castlereg.cli.report import report
from castlereg.cli.what_if import what_if

app = typer.Typer(
    no_args_is_help=True, pretty_exceptions_enable=False, help="Train neural networks on tables, regularized by CASTLE."
)
for _command in (demo, fit, predict, evaluate, report, graph, what_if, compare, experiment, datasets):
    app.command()(_command)


@app.callback(invoke_without_command=True)
def _options(version: bool = typer.Option(False, "--version", help="Show the version and exit.")) -> None:
    if version:
        import platform
        from importlib.metadata import version as version_of

        from castlereg import __version__

        versions = f"Python {platform.python_version()}, jax {version_of('jax')}"
        typer.echo(f"castlereg {__version__} ({versions}; {_engines()})")
        raise typer.Exit


def _engines() -> str:
    """Return the training engines that are available, without loading JAX."""
    try:
        import castlereg_kernels
    except ImportError:
        return "engine: jax; castlereg-kernels is not installed"
    return f"engines: native {castlereg_kernels.instruction_set()}, jax"


__all__ = ["app"]
