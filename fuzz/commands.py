"""Commands in forked processes, which start quickly and can be killed or restricted."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

QUICK = ("--beta", "0.01", "--epochs", "2", "--quiet")


class Ended(NamedTuple):
    """How a command ended; ``code`` is negative for a signal."""

    code: int
    output: str
    errors: str
    seconds: float


@cache
def preload() -> None:
    """Import the modules of commands without starting JAX, because a process with a running JAX cannot be forked."""
    import jinja2  # noqa: F401
    import matplotlib.pyplot  # noqa: F401
    import pyarrow.parquet  # noqa: F401

    import castlereg.cli
    import castlereg.onnx
    import castlereg.paper.experiments.registry
    import castlereg.persistence
    import castlereg.report  # noqa: F401


def run(
    arguments: list[str],
    folder: Path,
    *,
    inside: Callable[[], None] = lambda: None,
    watch: Callable[[int], None] = lambda _: None,
    limit: float = 120.0,
) -> Ended:
    """Run ``castlereg`` in a folder; ``inside`` is called in its process first, ``watch`` here with its process id."""
    preload()
    streams = [folder.parent / f"{folder.name}.{name}" for name in ("out", "err")]
    start = time.perf_counter()
    child = os.fork()
    if child == 0:
        _become(arguments, folder, streams, inside)
    try:
        watch(child)
    finally:
        code = _wait(child, limit)
    output, errors = (stream.read_text(encoding="utf-8", errors="replace") for stream in streams)
    return Ended(code, output, errors, time.perf_counter() - start)


def _become(arguments: list[str], folder: Path, streams: list[Path], inside: Callable[[], None]) -> None:
    """Turn this process into the command; never returns."""
    code = 70
    try:
        os.chdir(folder)
        for number, path in zip((1, 2), streams, strict=True):
            os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        sys.stdin, sys.stdout, sys.stderr = (open(n, m, closefd=False) for n, m in ((0, "r"), (1, "w"), (2, "w")))  # noqa: SIM115
        from castlereg.cli import app
        from castlereg.cli.console import err, out

        out.file, err.file = sys.stdout, sys.stderr
        inside()
        try:
            app(arguments)
            code = 0
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else int(end.code is not None)
        sys.stdout.flush()
        sys.stderr.flush()
    except BaseException:
        import traceback

        os.write(2, traceback.format_exc().encode(errors="replace"))
    finally:
        os._exit(code)


def _wait(child: int, limit: float) -> int:
    until = time.monotonic() + limit
    while time.monotonic() < until:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.005)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    raise TimeoutError(f"a command hangs: it has not ended after {limit:g} s")


def write_table(path: Path, rows: int = 40) -> None:
    """Write a small table with a target ``y``."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"a": rng.normal(size=rows), "b": rng.choice(["u", "v", "w"], rows), "c": rng.normal(size=rows)}
    )
    frame.assign(y=frame["a"] * 2 + rng.normal(size=rows)).to_csv(path, index=False)
