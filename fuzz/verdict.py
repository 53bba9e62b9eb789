"""Verdicts: a case may succeed or end in a deliberate error; everything else is a finding."""

from __future__ import annotations

import linecache
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import sklearn

import castlereg

Counts = dict[str, int]

_CASTLEREG, _SKLEARN = (str(Path(str(package.__file__)).parent) for package in (castlereg, sklearn))


class Finding(Exception):
    """A property of castlereg that does not hold."""


def expect(holds: object, message: str) -> None:
    """Raise a finding unless a condition holds."""
    if not holds:
        raise Finding(message)


def check_clear(
    error: Exception, kinds: tuple[type[Exception], ...] = (ValueError, TypeError), names: Iterable[str] = ()
) -> None:
    """Raise a finding unless an error is of these kinds, has one line, and comes from a ``raise`` of castlereg.

    Names from the user may have several lines, and so may scikit-learn's messages on the shape of arrays.
    """
    shown = f"{type(error).__name__}: {error}"
    if not isinstance(error, kinds) or isinstance(error, UnicodeError):
        raise Finding(f"unhandled {shown}") from error
    file, number = _origin(error)
    if not file.startswith((_CASTLEREG, _SKLEARN)) or not linecache.getline(file, number).strip().startswith("raise"):
        raise Finding(f"not raised on purpose ({Path(file).name}:{number}): {shown}") from error
    message = str(error)
    for name in names:
        message = message.replace(name, " ") if name else message
    if not str(error).strip() or ("\n" in message and not file.startswith(_SKLEARN)):
        raise Finding(f"not a message of one line: {shown!r}") from error


def is_of_sklearn(error: Exception) -> bool:
    """Return whether scikit-learn raised an error."""
    return _origin(error)[0].startswith(_SKLEARN)


def _origin(error: Exception) -> tuple[str, int]:
    """Return the file and the line that raised an error."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return ("", 0) if trace is None else (trace.tb_frame.f_code.co_filename, trace.tb_lineno)


@contextmanager
def strict_warnings() -> Iterator[None]:
    """Turn warnings that are not for users, such as arithmetic warnings, into findings."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", UserWarning)
        yield
