"""Properties that hold for any table and any file: a result that keeps the promises, or an intended error.

``PROPERTIES=100 python -m pytest tests/properties`` checks a hundred times as many cases as the test suite, new ones.
"""

from __future__ import annotations

import linecache
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import sklearn
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st

import castlereg

_FACTOR = int(os.environ.get("PROPERTIES", "1"))
_RAISING = tuple(str(Path(str(package.__file__)).parent) for package in (castlereg, sklearn))


def cases(n: int) -> Callable[[Any], Any]:
    """Check a property in n cases, the same ones in every run of the test suite."""
    slow = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.function_scoped_fixture]
    again: Any = {"derandomize": _FACTOR == 1, "database": None, "phases": (Phase.generate, Phase.shrink)}
    return settings(max_examples=n * _FACTOR, deadline=None, suppress_health_check=slow, **again)


def check_clear(error: Exception, *kinds: type[Exception], names: tuple[str, ...] = ()) -> None:
    """Fail unless an error is of these kinds, has one line, and comes from a ``raise`` of castlereg or scikit-learn.

    Names from the user may have several lines, and so may scikit-learn's messages on the shape of arrays.
    """
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    assert trace is not None
    file, line = (
        trace.tb_frame.f_code.co_filename,
        linecache.getline(trace.tb_frame.f_code.co_filename, trace.tb_lineno),
    )
    is_intended = isinstance(error, kinds or (ValueError, TypeError)) and not isinstance(error, UnicodeError)
    if not (is_intended and file.startswith(_RAISING) and line.strip().startswith("raise")):
        raise AssertionError(f"not an intended error: {error!r} from {file}, {line.strip()}") from error
    message = str(error)
    for name in filter(None, names):
        message = message.replace(name, " ")
    assert str(error).strip() and ("\n" not in message or file.startswith(_RAISING[1])), repr(error)


@st.composite
def mutated(draw: Any, content: bytes) -> bytes:
    """Cut, delete, flip a bit, insert, repeat, zero, move, or change a length, once or several times."""
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(content)))
        end = min(len(content), start + draw(st.integers(0, 64)))
        before, piece, after = content[:start], content[start:end], content[end:]
        number = draw(st.sampled_from([0, 1, 2**31, 2**63, 2**64 - 1])).to_bytes(8, "little")
        flipped = bytes(byte ^ (1 << draw(st.integers(0, 7))) for byte in piece[:1]) + piece[1:]
        ways = [before, before + after, before + flipped + after, before + draw(st.binary(max_size=9)) + piece + after]
        ways += [before + piece * 2 + after, before + bytes(len(piece)) + after, after + piece, number + content[8:]]
        content = draw(st.sampled_from(ways))  # lengths are often in the first bytes
    return content
