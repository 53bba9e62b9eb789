"""Output and errors of commands: an error is one readable line; ``--debug`` shows the traceback."""

from __future__ import annotations

import errno
import functools
import json
import math
import os
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NoReturn, ParamSpec, TypeVar

import typer
from rich.console import Console

from castlereg.atomic_write import atomic_write
from castlereg.signals import INTERRUPTED

P = ParamSpec("P")
R = TypeVar("R")

out = Console(soft_wrap=True, highlight=False)
err = Console(stderr=True, soft_wrap=True, highlight=False)

USAGE = 2
_WRITE_ERRORS = (errno.EPIPE, errno.ENOSPC, errno.EFBIG)


def stop(message: str, code: int = USAGE) -> NoReturn:
    """Print the error in one line and end with an exit code."""
    if sys.stderr is not None:  # not through rich, which may still have to be imported when memory has run out
        with suppress(OSError):
            sys.stderr.write(f"castlereg: {message}\n")
    raise typer.Exit(code)


def print_facts(facts: dict[str, Any], labels: dict[str, str], as_json: bool) -> None:
    """Print all facts as one JSON object, or as labelled lines."""
    if as_json:
        print_json(facts)
        return
    width = max(map(len, labels), default=0)
    for label, text in labels.items():
        out.print(f"{label:<{width}}  {one_line(text)}", markup=False)


def print_json(facts: dict[str, Any]) -> None:
    """Print one JSON object; NaN and infinity become null."""
    sys.stdout.write(json.dumps(as_json(facts), ensure_ascii=False, allow_nan=False) + "\n")
    sys.stdout.flush()


def as_json(value: Any) -> Any:
    """Convert a value to JSON types: NumPy numbers become Python numbers; NaN and infinity become None.

    >>> as_json({"a": [1.0, float("nan")], "b": Path("file")})
    {'a': [1.0, None], 'b': 'file'}
    """
    if isinstance(value, Mapping):
        return {str(key): as_json(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [as_json(part) for part in value]
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def print_table(headings: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Print a table with right-aligned numbers; lines are as long as needed, so nothing is truncated."""
    cells = [list(row) for row in rows]
    texts = [list(headings), *([one_line("" if cell is None else str(cell)) for cell in row] for row in cells)]
    widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
    right = [all(isinstance(cell, int | float) for cell in column) for column in zip(*cells, strict=True)]
    for row in texts:
        padded = (f"{t:>{w}}" if r else f"{t:<{w}}" for t, w, r in zip(row, widths, right, strict=True))
        out.print("  ".join(padded).rstrip(), markup=False)


def write_output(content: str | bytes, output: Path | None) -> None:
    """Write the content to a file, or to standard output."""
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
    """Join lines, and escape control characters that a terminal would act on."""
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
                _drop_output()  # the reader has closed the pipe, as `head` does
                raise typer.Exit(0) from None
            except KeyboardInterrupt:
                stop("stopped", INTERRUPTED)
            except (ArithmeticError, ImportError, MemoryError, OSError, ValueError) as error:
                if isinstance(error, OSError) and error.strerror is not None and error.filename is None:
                    _drop_output()  # the disk may be full
                if kwargs.get("debug"):
                    raise
                stop(reason(error))
            except (typer.Exit, typer.Abort, typer.BadParameter):
                raise
            except Exception as error:
                if kwargs.get("debug"):
                    raise
                stop(unexpected(error))

    return wrapped


def _drop_output() -> None:
    """Discard the rest of standard output; otherwise Python tries to flush it at exit, and fails again."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def reason(error: BaseException) -> str:
    """Return the reason for an error in one line."""
    if isinstance(error, OSError) and error.strerror is not None:
        where = error.filename or ("standard output" if error.errno in _WRITE_ERRORS else "")
        return one_line(f"{where}: {error.strerror}" if where else error.strerror)
    if isinstance(error, MemoryError) and "ulimit" not in str(error):
        return "not enough memory: use fewer rows or columns, or castlereg fit --stream"
    return one_line(str(error)) or type(error).__name__


def unexpected(error: Exception) -> str:
    """Return one line for an unexpected error, or for memory that ran out in other code."""
    if "RESOURCE_EXHAUSTED" in str(error) or "out of memory" in str(error).lower():
        return reason(MemoryError())
    return f"unexpected {type(error).__name__}: {one_line(str(error))}; pass --debug to see the traceback"


@contextmanager
def _notes(silent: bool) -> Iterator[None]:
    shown: set[str] = set()

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        text = one_line(str(message))
        if not silent and text not in shown:
            err.print(f"castlereg: note: {text}", markup=False)
        shown.add(text)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter(
            "always", UserWarning
        )  # UserWarnings are for users; deprecation warnings are for developers
        warnings.showwarning = show  # restored by catch_warnings
        yield
