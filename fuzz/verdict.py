"""What a case may do: hold, or end in an error that was raised on purpose; anything else is a finding."""

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
    """Raise a finding unless something holds."""
    if not holds:
        raise Finding(message)


def check_clear(
    error: Exception, kinds: tuple[type[Exception], ...] = (ValueError, TypeError), names: Iterable[str] = ()
) -> None:
    """Raise a finding unless an error is of these kinds, in one line, and from a ``raise`` of castlereg.

    The user's own names may have several lines. So do scikit-learn's messages on the shape of arrays, which its users
    expect.
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
    """Tell whether scikit-learn raised an error."""
    return _origin(error)[0].startswith(_SKLEARN)


def _origin(error: Exception) -> tuple[str, int]:
    """Return the file and the line that raised an error."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return ("", 0) if trace is None else (trace.tb_frame.f_code.co_filename, trace.tb_lineno)


@contextmanager
def strict_warnings() -> Iterator[None]:
    """Make findings of warnings that are not for users, such as those of arithmetic."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", UserWarning)
        yield
