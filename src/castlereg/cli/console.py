"""What commands print and write, and how they fail: in one readable line, with a traceback only for ``--debug``."""

from __future__ import annotations

import functools
import json
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, NoReturn, ParamSpec, TypeVar

import typer
from rich.console import Console

from castlereg.atomic_write import atomic_write

P = ParamSpec("P")
R = TypeVar("R")

out = Console(soft_wrap=True, highlight=False)
err = Console(stderr=True, soft_wrap=True, highlight=False)

USAGE, INTERRUPTED = 2, 130

Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar, no notes.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]
Seed = Annotated[int, typer.Option(min=0, help="The same seed gives the same result.")]
Epochs = Annotated[int, typer.Option(min=1, help="Most passes over the rows.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]


def stop(message: str, code: int = USAGE) -> NoReturn:
    """Say why, in one line, and end with an exit code."""
    err.print(f"castlereg: {message}", markup=False)
    raise typer.Exit(code)


def print_facts(facts: dict[str, Any], labels: dict[str, str], as_json: bool) -> None:
    """Print all facts as one JSON object for scripts, or labelled lines for people."""
    if as_json:
        sys.stdout.write(json.dumps(facts, ensure_ascii=False, allow_nan=False) + "\n")
        return
    width = max(map(len, labels), default=0)
    for label, text in labels.items():
        out.print(f"{label:<{width}}  {one_line(text)}", markup=False)


def write_output(content: str | bytes, output: Path | None) -> None:
    """Write a whole file, or to standard output."""
    if output is not None:
        with atomic_write(output) as file:
            file.write(content.encode() if isinstance(content, str) else content)
        return
    if isinstance(content, str):
        sys.stdout.write(content)
    else:
        sys.stdout.buffer.write(content)
    sys.stdout.flush()


def one_line(text: str) -> str:
    """Join lines, and show what a terminal would act upon instead of passing it on."""
    joined = " ".join(text.split("\n"))
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in joined)


def command(run: Callable[P, R]) -> Callable[P, R]:
    """Turn errors into one line and an exit code, and warnings into notes."""

    @functools.wraps(run)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        with _notes(silent=bool(kwargs.get("quiet"))):
            try:
                return run(*args, **kwargs)
            except BrokenPipeError:
                # The reader of our output has closed it, as `head` does.
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
                raise typer.Exit(0) from None
            except KeyboardInterrupt:
                stop("stopped", INTERRUPTED)
            except (ArithmeticError, ImportError, MemoryError, OSError, ValueError) as error:
                if kwargs.get("debug"):
                    raise
                stop(reason(error))

    return wrapped


def reason(error: BaseException) -> str:
    """Say in one line what went wrong."""
    if isinstance(error, OSError) and error.strerror is not None and error.filename is not None:
        return one_line(f"{error.filename}: {error.strerror}")
    if isinstance(error, MemoryError):
        return "not enough memory: try fewer rows or columns, or castlereg fit --stream"
    return one_line(str(error)) or type(error).__name__


@contextmanager
def _notes(silent: bool) -> Iterator[None]:
    said: set[str] = set()

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        text = one_line(str(message))
        if not silent and text not in said:
            err.print(f"castlereg: note: {text}", markup=False)
        said.add(text)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", UserWarning)  # for users; deprecations are for us
        warnings.showwarning = show  # restored by catch_warnings
        yield
