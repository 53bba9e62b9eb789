"""Commands killed at random moments, or at the moment when they open, rename or remove a file."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from fuzz.commands import QUICK, Ended, run, write_table
from fuzz.verdict import Counts, expect

_EXPERIMENT = "lambda_sensitivity"


@dataclass(frozen=True)
class Command:
    """A command, and the file or folder that it writes."""

    arguments: tuple[str, ...]
    output: str


COMMANDS = {
    "fit": Command(("fit", "table.csv", "-t", "y", "-o", "out.castle", *QUICK), "out.castle"),
    "fit --report": Command(("fit", "table.csv", "-t", "y", "--report", "out.html", *QUICK), "out.html"),
    "predict": Command(("predict", "model.castle", "table.csv", "-o", "out.csv", "--quiet"), "out.csv"),
    "report": Command(("report", "model.castle", "table.csv", "-o", "out.html", "--quiet"), "out.html"),
    "graph": Command(("graph", "model.castle", "-o", "out.svg"), "out.svg"),
    "experiment": Command(("experiment", _EXPERIMENT, "--output", "results", "--quiet"), "results"),
}


@dataclass(frozen=True)
class Reference:
    """The output of an undisturbed command."""

    content: Any
    seconds: float
    again: Any  # the same, the second time


@cache
def reference(name: str, folder: Path) -> Reference:
    """Run a command to its end twice."""
    command = COMMANDS[name]
    written, ended = [], []
    for number in (1, 2):
        place = prepared(folder / f"reference-{name.replace(' ', '')}-{number}", folder)
        ended.append(_finished(run(list(command.arguments), place)))
        written.append(_content(place / command.output))
    return Reference(written[0], ended[1].seconds, written[1])


def check(seed: int, folder: Path) -> Counts:
    """Kill a command; its output must be the old or the new file, and the next run must succeed."""
    rng = np.random.default_rng([6, seed])
    name = str(rng.choice(list(COMMANDS)))
    command, shared = COMMANDS[name], folder.parent
    expected = reference(name, shared)
    is_same = expected.content == expected.again  # otherwise the file contains a date or similar
    place = prepared(folder / "run", shared)
    output = place / command.output
    old = None
    if rng.random() < 0.6 and name != "experiment":
        old = b"old " * int(rng.choice([1, 100_000]))
        output.write_bytes(old)
    if rng.random() < 0.5:
        delay = float(rng.uniform(0, 1.05 * expected.seconds))
        ended = run(list(command.arguments), place, watch=lambda child: _kill_after(child, delay))
    else:
        at = int(rng.integers(12))
        ended = run(list(command.arguments), place, inside=lambda: _die_at_event(place, at))
    was_killed = ended.code == -signal.SIGKILL
    if not was_killed:
        _finished(ended)
    unfinished = list(place.glob(".*.unfinished"))
    allowed = {"table.csv", "model.castle", command.output, *(path.name for path in unfinished)}
    expect(
        {path.name for path in place.iterdir()} <= allowed, f"unknown files: {sorted(p.name for p in place.iterdir())}"
    )
    counts = {"kills": int(was_killed), "ended before": int(not was_killed), "unfinished files": len(unfinished)}
    if name == "experiment":
        _finished(run(list(command.arguments), place))
        expect(not is_same or _content(output) == expected.content, "the continued experiment has other results")
        return {**counts, "resumed": int(was_killed)}
    found = output.read_bytes() if output.exists() else None
    if found != old:
        expect(found is not None, "the old file is lost")
        assert found is not None
        complete = found == expected.content if is_same else _is_complete(found, expected.content)
        expect(complete, f"{command.output} is damaged: {len(found)} bytes, and {len(expected.content)} were expected")
        counts["new file"] = 1
    if rng.random() < 0.3:
        _finished(run(list(command.arguments), place))
        expect(not is_same or output.read_bytes() == expected.content, "the next run wrote another file")
        counts["run again"] = 1
    return counts


def prepared(place: Path, shared: Path) -> Path:
    """Make a folder with a table and a model, which is fitted once."""
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    write_table(place / "table.csv")
    model = shared / "model.castle"
    if not model.exists():
        _finished(run([*COMMANDS["fit"].arguments], place))
        os.replace(place / "out.castle", model)
    shutil.copy(model, place / "model.castle")
    return place


def _finished(ended: Ended) -> Ended:
    expect(ended.code == 0, f"exit {ended.code}: {ended.errors.strip()[-1500:]}")
    return ended


def _content(path: Path) -> Any:
    """Return the bytes of a file, or the results and tables of an experiment."""
    if path.is_file():
        return path.read_bytes()
    found: dict[str, Any] = {}
    for file in sorted(path.rglob("*")):
        if file.suffix == ".json":
            unit = json.loads(file.read_bytes())
            found[file.name] = [unit["item"], unit["result"]]
        elif file.suffix in (".csv", ".md"):
            found[str(file.relative_to(path))] = file.read_text(encoding="utf-8")
    return json.loads(json.dumps(found))


def _is_complete(found: bytes, expected: bytes) -> bool:
    return abs(len(found) - len(expected)) < 200 and found[-20:] == expected[-20:]


def _kill_after(child: int, delay: float) -> None:
    time.sleep(delay)
    try:
        os.kill(child, signal.SIGKILL)
    except ProcessLookupError:
        pass


def _die_at_event(place: Path, at: int) -> None:
    """Kill this process at its n-th operation on files of a folder."""
    remaining = [at]
    die: Callable[[], None] = lambda: os.kill(os.getpid(), signal.SIGKILL)  # noqa: E731

    def count() -> None:
        remaining[0] -= 1
        if remaining[0] < 0:
            die()

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event in ("open", "os.rename", "os.remove", "os.chmod", "os.mkdir"):
            path = str(arguments[0])
            if str(place) in path or not path.startswith("/"):
                count()

    fsync = os.fsync

    def counted_fsync(number: int) -> None:
        count()
        fsync(number)
        count()

    os.fsync = counted_fsync  # type: ignore[assignment]
    sys.addaudithook(hook)
