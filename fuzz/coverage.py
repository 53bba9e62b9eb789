"""Which lines of a few modules a call reaches: what tells a new mutant from one more of the same."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

Lines = set[tuple[str, int]]


def lines_of(run: Callable[[], Any], parts: tuple[str, ...]) -> Lines:
    """Run something that does not raise; return the lines it reached in files whose paths contain one of the parts."""
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
