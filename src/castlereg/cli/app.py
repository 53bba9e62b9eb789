"""The commands with their errors and exit codes; an error is one line, ``--debug`` shows the traceback."""

from __future__ import annotations

import functools
import inspect
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import is_dataclass
from inspect import Parameter
from typing import Any, NoReturn

import typer

from castlereg.cli import graphs, models
from castlereg.cli.console import notes, reason
from castlereg.signals import INTERRUPTED

_USAGE = 2

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Train neural networks on tables, discover the causal graph of the columns, and answer what-if questions.",
)


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


def command(run: Callable[..., None]) -> Callable[..., None]:
    """Turn groups of options into options, errors into one line and an exit code, and warnings into notes."""
    own = inspect.signature(run, eval_str=True).parameters
    groups: dict[str, Any] = {name: p.annotation for name, p in own.items() if is_dataclass(p.annotation)}
    fields = {name: inspect.signature(group, eval_str=True).parameters for name, group in groups.items()}
    parameters = [option for name, p in own.items() for option in fields.get(name, {name: p}).values()]

    @functools.wraps(run)
    def wrapped(**given: Any) -> None:
        grouped = {name: group(**{field: given[field] for field in fields[name]}) for name, group in groups.items()}
        with notes(silent=given["quiet"]):
            try:
                run(**{name: value for name, value in given.items() if name in own}, **grouped)
            except BrokenPipeError:
                _drop_output()  # the reader has closed the pipe, as `head` does
                raise typer.Exit(0) from None
            except KeyboardInterrupt:
                _end("stopped", INTERRUPTED)
            except (typer.Exit, typer.Abort, typer.BadParameter):
                raise
            except Exception as error:
                if isinstance(error, OSError) and error.strerror is not None and error.filename is None:
                    _drop_output()  # the disk may be full
                if given["debug"]:
                    raise
                _end(reason(error), _USAGE)

    vars(wrapped)["__signature__"] = inspect.Signature([p.replace(kind=Parameter.KEYWORD_ONLY) for p in parameters])
    wrapped.__annotations__ = {p.name: p.annotation for p in parameters}
    return wrapped


def _end(message: str, code: int) -> NoReturn:
    """Print the error in one line and end with an exit code."""
    if sys.stderr is not None:  # not through rich, which may still have to be imported when memory has run out
        with suppress(OSError):
            sys.stderr.write(f"castlereg: {message}\n")
    raise typer.Exit(code)


def _drop_output() -> None:
    """Discard the rest of standard output; otherwise Python tries to flush it at exit, and fails again."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


for _run in (models.demo, models.fit, models.predict, models.evaluate, models.report, graphs.graph, graphs.what_if):
    app.command()(command(_run))
