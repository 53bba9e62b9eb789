"""Lines of a few modules that a call reaches, to distinguish new mutants from redundant ones."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

Lines = set[tuple[str, int]]


def lines_of(run: Callable[[], Any], parts: tuple[str, ...]) -> Lines:
    """Run a function that does not raise; return the lines it reached in files whose paths contain one of the parts."""
    reached: Lines = set()

    def local(frame: FrameType, event: str, _: Any) -> Any:
        if event == "line":
            reached.add((frame.f_code.co_filename, frame.f_lineno))
        return local

    def at_call(frame: FrameType, event: str, _: Any) -> Any:
        return local if any(part in frame.f_code.co_filename for part in parts) else None

    before = sys.gettrace()
    sys.settrace(at_call)
    try:
        run()
    finally:
        sys.settrace(before)
    return reached
