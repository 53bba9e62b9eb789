"""Fits in daemon threads: they stop before Python exits, because exiting while JAX runs would abort the process."""

from __future__ import annotations

import atexit
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

_ending = threading.Event()
_running: set[int] = set()  # threads that train
_MOST_SECONDS = 30  # to wait for threads, which may be compiling a program


@contextmanager
def stopped_at_exit() -> Iterator[None]:
    """Mark this thread as training; it must call :func:`stop_if_ending` regularly."""
    _running.add(threading.get_ident())
    try:
        stop_if_ending()
        yield
    finally:
        _running.discard(threading.get_ident())


def stop_if_ending() -> None:
    """End this thread if Python is exiting."""
    if _ending.is_set():
        raise SystemExit


@atexit.register
def _wait_for_threads() -> None:
    _ending.set()
    latest = time.monotonic() + _MOST_SECONDS
    while _running and time.monotonic() < latest:
        time.sleep(0.01)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_running.clear)  # a forked child does not have these threads
