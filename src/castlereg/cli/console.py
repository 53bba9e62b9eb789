"""What commands print: facts, JSON, notes, and the reason for an error in one line."""

from __future__ import annotations

import errno
import json
import math
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console

from castlereg.atomic_write import atomic_write

out = Console(soft_wrap=True, highlight=False)
err = Console(stderr=True, soft_wrap=True, highlight=False)

_WRITE_ERRORS = (errno.EPIPE, errno.ENOSPC, errno.EFBIG)
_EXPECTED = (ArithmeticError, ImportError, MemoryError, OSError, ValueError)  # others are our mistakes


def reason(error: BaseException) -> str:
    """Return the reason for an error in one line."""
    text = _one_line(str(error))
    if isinstance(error, OSError) and error.strerror is not None:
        where = error.filename or ("standard output" if error.errno in _WRITE_ERRORS else "")
        return _one_line(f"{where}: {error.strerror}" if where else error.strerror)
    is_expected = isinstance(error, _EXPECTED)
    is_of_library = not is_expected and ("RESOURCE_EXHAUSTED" in text or "out of memory" in text.lower())
    if is_of_library or (isinstance(error, MemoryError) and "ulimit" not in text):
        return "not enough memory: use fewer rows or columns, or castlereg fit --stream"
    if is_expected:
        return text or type(error).__name__
    return f"unexpected {type(error).__name__}: {text}; pass --debug to see the traceback"


@contextmanager
def notes(silent: bool) -> Iterator[None]:
    """Print each warning for users once, as a note."""
    printed: set[str] = set()

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        if not silent and str(message) not in printed:
            note(str(message))
        printed.add(str(message))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # deprecation warnings are for developers
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = show  # restored by catch_warnings
        yield


def note(text: str) -> None:
    """Print a note on standard error."""
    err.print(f"castlereg: note: {_one_line(text)}", markup=False)


def _one_line(text: str) -> str:
    """Join lines, and escape control characters that a terminal would act on."""
    joined = " ".join(text.split("\n"))
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in joined)


def print_lines(text: str) -> None:
    """Print text of several lines."""
    for line in text.split("\n"):
        out.print(_one_line(line), markup=False)


def print_facts(facts: Mapping[str, Any], labels: Mapping[str, str], as_json: bool) -> None:
    """Print all facts as one JSON object, or as labelled lines."""
    if as_json:
        print_json(facts)
        return
    width = max(map(len, labels))
    for label, text in labels.items():
        print_lines(f"{label:<{width}}  {_one_line(text)}")


def print_json(facts: Mapping[str, Any]) -> None:
    """Print one JSON object; NaN and infinity become null."""
    write_output(json.dumps(as_json(facts), ensure_ascii=False, allow_nan=False) + "\n", None)


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


def write_output(content: str | bytes, output: Path | None) -> None:
    """Write the content to a file, or to standard output."""
    content = content.encode() if isinstance(content, str) else content
    if output is not None:
        with atomic_write(output) as file:
            file.write(content)
        return
    sys.stdout.flush()
    sys.stdout.buffer.write(content)
    sys.stdout.flush()
