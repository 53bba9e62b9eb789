"""What commands print and write, and how they fail: in one readable line, with a traceback only for ``--debug``."""

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
_OF_WRITING = (errno.EPIPE, errno.ENOSPC, errno.EFBIG)


def stop(message: str, code: int = USAGE) -> NoReturn:
    """Say why, in one line, and end with an exit code."""
    if sys.stderr is not None:  # not by rich, which may have to be loaded when there is no memory left
        with suppress(OSError):
            sys.stderr.write(f"castlereg: {message}\n")
    raise typer.Exit(code)


def print_facts(facts: dict[str, Any], labels: dict[str, str], as_json: bool) -> None:
    """Print all facts as one JSON object for scripts, or labelled lines for people."""
    if as_json:
        print_json(facts)
        return
    width = max(map(len, labels), default=0)
    for label, text in labels.items():
        out.print(f"{label:<{width}}  {one_line(text)}", markup=False)


def print_json(facts: dict[str, Any]) -> None:
    """Print one JSON object; numbers that JSON does not have are null."""
    sys.stdout.write(json.dumps(as_json(facts), ensure_ascii=False, allow_nan=False) + "\n")
    sys.stdout.flush()


def as_json(value: Any) -> Any:
    """Return a value with what JSON has: NumPy's numbers as Python's, and neither NaN nor infinity.

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
    """Print a table, numbers to the right; a line is as long as it needs to be, so that nothing is cut."""
    cells = [list(row) for row in rows]
    texts = [list(headings), *([one_line("" if cell is None else str(cell)) for cell in row] for row in cells)]
    widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
    right = [all(isinstance(cell, int | float) for cell in column) for column in zip(*cells, strict=True)]
    for row in texts:
        padded = (f"{t:>{w}}" if r else f"{t:<{w}}" for t, w, r in zip(row, widths, right, strict=True))
        out.print("  ".join(padded).rstrip(), markup=False)


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
                _drop_output()  # its reader has closed it, as `head` does
                raise typer.Exit(0) from None
            except KeyboardInterrupt:
                stop("stopped", INTERRUPTED)
            except (ArithmeticError, ImportError, MemoryError, OSError, ValueError) as error:
                if isinstance(error, OSError) and error.strerror is not None and error.filename is None:
                    _drop_output()  # perhaps its disk is full
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
    """Send what is left of standard output nowhere; otherwise Python would try again at the end, and fail again."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def reason(error: BaseException) -> str:
    """Say in one line what went wrong."""
    if isinstance(error, OSError) and error.strerror is not None:
        where = error.filename or ("standard output" if error.errno in _OF_WRITING else "")
        return one_line(f"{where}: {error.strerror}" if where else error.strerror)
    if isinstance(error, MemoryError) and "ulimit" not in str(error):
        return "not enough memory: try fewer rows or columns, or castlereg fit --stream"
    return one_line(str(error)) or type(error).__name__


def unexpected(error: Exception) -> str:
    """Say in one line that something went wrong that nobody has thought of, or that memory ran out elsewhere."""
    if "RESOURCE_EXHAUSTED" in str(error) or "out of memory" in str(error).lower():
        return reason(MemoryError())
    return f"unexpected {type(error).__name__}: {one_line(str(error))}; --debug shows where"


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
