"""Fits in threads that Python does not wait for when it ends: they stop first, as Python would abort inside of JAX."""

from __future__ import annotations

import atexit
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

_ending = threading.Event()
_running: set[int] = set()  # threads that train
_MOST_SECONDS = 30  # for programs to be compiled


@contextmanager
def stopped_at_exit() -> Iterator[None]:
    """Mark this thread as one that trains, and calls :func:`stop_if_ending` every now and then."""
    _running.add(threading.get_ident())
    try:
        stop_if_ending()
        yield
    finally:
        _running.discard(threading.get_ident())


def stop_if_ending() -> None:
    """End this thread if Python ends."""
    if _ending.is_set():
        raise SystemExit


@atexit.register
def _wait_for_threads() -> None:
    _ending.set()
    latest = time.monotonic() + _MOST_SECONDS
    while _running and time.monotonic() < latest:
        time.sleep(0.01)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_running.clear)  # they stay behind in the process that was forked
