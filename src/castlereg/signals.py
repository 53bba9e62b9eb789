"""Ctrl-C and SIGTERM end the program immediately: unfinished files are removed, and threads are not awaited."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import NoReturn

INTERRUPTED = 128 + signal.SIGINT
_TERMINATED = 128 + signal.SIGTERM
_LATER = 0.05  # seconds


def run(main: Callable[[], None]) -> NoReturn:
    """Run a program, and exit with its exit code."""
    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) is not signal.SIG_IGN:  # ignored for background jobs of a shell
            signal.signal(number, _end)
    try:
        main()
        code: int | str | None = 0
    except KeyboardInterrupt:
        print("castlereg: stopped", file=sys.stderr)
        code = INTERRUPTED
    except SystemExit as end:
        code = end.code
    if code in (INTERRUPTED, _TERMINATED):
        # XLA may still be computing: Python would wait for it, or crash.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(int(code))
    sys.exit(code)


def _end(number: int, frame: FrameType | None) -> None:
    """Interrupt the program, but wait for running imports: interrupted extension modules may crash or continue."""
    if _is_importing(frame):
        later = threading.Timer(_LATER, os.kill, (os.getpid(), number))
        later.daemon = True
        later.start()
    elif number == signal.SIGINT:
        raise KeyboardInterrupt
    else:
        print("castlereg: terminated", file=sys.stderr)
        sys.exit(_TERMINATED)


def _is_importing(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False
