"""What the commands say, and how they fail: one readable line, a traceback only with ``--debug``."""

from __future__ import annotations

import functools
import json
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, Any, NoReturn, ParamSpec, TypeVar

import typer
from rich.console import Console

P = ParamSpec("P")
R = TypeVar("R")

out = Console(soft_wrap=True, highlight=False)
err = Console(stderr=True, soft_wrap=True, highlight=False)

USAGE, INTERRUPTED = 2, 130

Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar, no notes.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]


def stop(message: str, code: int = USAGE) -> NoReturn:
    """Say why, in one line, and end with an exit code."""
    err.print(f"castlereg: {message}", markup=False)
    raise typer.Exit(code)


def shows_progress(quiet: bool) -> bool:
    """Whether there is somebody to watch a progress bar."""
    return not quiet and sys.stderr.isatty()


def print_facts(facts: dict[str, Any], labels: dict[str, str], as_json: bool) -> None:
    """Print what a command found: one JSON object, or the labelled ones line by line.

    Parameters
    ----------
    facts : dict
        All of them, for scripts.
    labels : dict of str to str
        What people read, by its label.
    as_json : bool
    """
    if as_json:
        sys.stdout.write(json.dumps(facts, ensure_ascii=False, allow_nan=False) + "\n")
        return
    width = max(map(len, labels), default=0)
    for label, text in labels.items():
        out.print(f"{label:<{width}}  {one_line(text)}", markup=False)


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
                # Who read our output has had enough, as `head` does.
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
                raise typer.Exit(0) from None
            except KeyboardInterrupt:
                stop("stopped", INTERRUPTED)
            except (ArithmeticError, ImportError, MemoryError, OSError, ValueError) as error:
                if kwargs.get("debug"):
                    raise
                stop(_reason(error))

    return wrapped


def _reason(error: BaseException) -> str:
    if isinstance(error, OSError) and error.strerror is not None and error.filename is not None:
        return one_line(f"{error.filename}: {error.strerror}")
    if isinstance(error, MemoryError):
        return "not enough memory: try fewer rows or columns, or --stream for a large file"
    return one_line(str(error)) or type(error).__name__


@contextmanager
def _notes(silent: bool) -> Iterator[None]:
    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        if not silent:
            err.print(f"castlereg: note: {one_line(str(message))}", markup=False)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", UserWarning)  # what concerns the user; deprecations concern us
        warnings.showwarning = show  # put back by catch_warnings
        yield
