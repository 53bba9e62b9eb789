"""Commands short of disk, memory, files or permissions: a result, or one line and exit code 2, and no data lost."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from fuzz.campaign import ROOT
from fuzz.commands import Ended, run
from fuzz.kills import COMMANDS, Command, prepared
from fuzz.verdict import Counts, expect

_NOBODY = 65534
_MEGABYTE = 1 << 20
Case = Callable[[np.random.Generator, Path], str]


def check(seed: int, folder: Path) -> Counts:
    """Run one of the cases, in cyclic order."""
    rng = np.random.default_rng([8, seed])
    case = CASES[seed % len(CASES)]
    return {case.__name__.strip("_").replace("_", " "): 1, case(rng, prepared(folder / "run", folder.parent)): 1}


def clear(ended: Ended, code: int = 2) -> str:
    """Raise a finding unless a command succeeded or reported the error in one line."""
    if ended.code == 0:
        return "succeeded"
    lines = [line for line in ended.errors.splitlines() if not line.startswith("castlereg: note:")]
    said = len(lines) == 1 and lines[0].startswith("castlereg: ")
    expect(ended.code == code and said, f"exit {ended.code}: {ended.errors.strip()[-1500:]}")
    return "one line"


def _written(rng: np.random.Generator, place: Path) -> tuple[Command, Path]:
    """Choose a command that writes a file that already exists."""
    known = {name: command for name, command in COMMANDS.items() if name != "experiment"}
    command = known[str(rng.choice(list(known)))]
    output = place / command.output
    output.write_bytes(b"old")
    return command, output


def _unharmed(ended: Ended, output: Path, may_abort: bool = False) -> str:
    """Raise a finding unless the command ended clearly and left the old file unchanged; out of memory, it may abort."""
    aborted = may_abort and ended.code in (-signal.SIGABRT, -signal.SIGSEGV, -signal.SIGBUS)
    verdict = "aborted in a library" if aborted else clear(ended)
    if verdict != "succeeded":
        expect(output.read_bytes() == b"old", "the old file is lost")
    expect(not list(output.parent.glob(".*.unfinished")), "an unfinished file was left")
    return verdict


def _limited(kind: int, most: int) -> Callable[[], None]:
    return lambda: resource.setrlimit(kind, (most, most))


def _file_size(rng: np.random.Generator, place: Path) -> str:
    """The size of files is limited."""
    command, output = _written(rng, place)
    most = int(rng.choice([0, 10, 1000, 4000, 20_000]))
    # Standard error is a file here, in which an error must find room.
    return _unharmed(
        run(list(command.arguments), place, inside=_piped(_limited(resource.RLIMIT_FSIZE, most), place)), output
    )


def _piped(inside: Callable[[], None], place: Path) -> Callable[[], None]:
    """Send standard error to its file through a pipe, which has no size limit."""

    def set_up() -> None:
        target = os.dup(2)
        reading, writing = os.pipe()
        if os.fork() == 0:
            os.close(writing)
            while piece := os.read(reading, 4096):
                os.write(target, piece)
            os._exit(0)
        os.close(reading)
        os.dup2(writing, 2)
        os.close(writing)
        inside()

    return set_up


def _full_disk(rng: np.random.Generator, place: Path) -> str:
    """The disk of the output is full: a small separate file system, if it can be mounted."""
    command, _ = _written(rng, place)
    disk = place / "disk"
    disk.mkdir()
    with _mounted(disk, int(rng.choice([4, 8, 16]))) as is_mounted:
        if not is_mounted:
            return "not possible here"
        output = disk / command.output
        output.write_bytes(b"old")
        filler = os.open(disk / "filler", os.O_WRONLY | os.O_CREAT)
        try:
            while True:
                os.write(filler, bytes(512))
        except OSError:
            os.close(filler)
        arguments = [f"disk/{a}" if a == command.output else a for a in command.arguments]
        return _unharmed(run(arguments, place), output)


@contextmanager
def _mounted(folder: Path, kilobytes: int) -> Iterator[bool]:
    mount = ["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "none", str(folder)]
    is_mounted = subprocess.run(mount, capture_output=True, check=False).returncode == 0
    try:
        yield is_mounted
    finally:
        if is_mounted:
            subprocess.run(["umount", str(folder)], check=True)


def _full_experiment(rng: np.random.Generator, place: Path) -> str:
    """The folder of an experiment is full: it reports this, and continues when there is space."""
    disk = place / "results"
    disk.mkdir()
    with _mounted(disk, int(rng.choice([4, 12]))) as is_mounted:
        if not is_mounted:
            return "not possible here"
        ended = run(list(COMMANDS["experiment"].arguments), place)
        expect(
            ended.code in (0, 1, 2) and "Traceback" not in ended.errors, f"exit {ended.code}: {ended.errors[-1500:]}"
        )
        subprocess.run(["mount", "-o", "remount,size=10m", str(disk)], check=True, capture_output=True)
        again = run(list(COMMANDS["experiment"].arguments), place)
        expect(again.code == 0, f"exit {again.code}: {again.errors[-1500:]}")
    return "one line" if ended.code else "succeeded"


def _device_without_room(rng: np.random.Generator, place: Path) -> str:
    """The output is a device that is always full."""
    command, _ = _written(rng, place)
    arguments = ["/dev/full" if a == command.output else a for a in command.arguments]
    return clear(run(arguments, place))


def _memory(rng: np.random.Generator, place: Path) -> str:
    """The additional memory of a command is limited after its start."""
    command, output = _written(rng, place)
    more = int(rng.choice([16, 64, 128, 256, 512, 1024, 2048])) * _MEGABYTE

    def inside() -> None:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
        most = pages * resource.getpagesize() + more
        resource.setrlimit(resource.RLIMIT_AS, (most, most))

    return _unharmed(run(list(command.arguments), place, inside=inside), output, may_abort=True)


def _memory_of_a_shell(rng: np.random.Generator, place: Path) -> str:
    """``ulimit -v`` before the command starts."""
    command, output = _written(rng, place)
    most = int(rng.choice([300, 600, 1000, 1500, 2500, 4000])) * _MEGABYTE
    return _unharmed(_started(command.arguments, place, _limited(resource.RLIMIT_AS, most)), output, may_abort=True)


def _files_that_are_open(rng: np.random.Generator, place: Path) -> str:
    """The number of open files is limited."""
    command, output = _written(rng, place)
    most = int(rng.integers(12, 40))
    return _unharmed(run(list(command.arguments), place, inside=_limited(resource.RLIMIT_NOFILE, most)), output)


def _folder_without_permission(rng: np.random.Generator, place: Path) -> str:
    """The folder of the output can be read but not written."""
    command, output = _written(rng, place)
    if os.getuid() != 0:
        place.chmod(0o555)
    try:
        ended = run(list(command.arguments), place, inside=_as_nobody)
    finally:
        place.chmod(0o755)
    expect(ended.code != 0, "a folder without permission was written")
    return _unharmed(ended, output)


def _as_nobody() -> None:
    if os.getuid() == 0:
        os.setegid(_NOBODY)
        os.seteuid(_NOBODY)


def _cache_without_permission(rng: np.random.Generator, place: Path) -> str:
    """Compiled programs cannot be stored: the cache folder is a file, or it is missing and cannot be created."""
    command, _ = _written(rng, place)
    cache = str(rng.choice([str(place / "table.csv"), "/proc/none", "/dev/null"]))
    ended = _started(command.arguments, place, env={"XDG_CACHE_HOME": cache})
    expect(ended.code == 0, f"exit {ended.code}: {ended.errors[-1500:]}")
    return clear(ended)


def _no_home(rng: np.random.Generator, place: Path) -> str:
    """HOME is unset, empty, or a missing folder."""
    command, _ = _written(rng, place)
    home = [None, "", "/nowhere"][int(rng.integers(3))]
    ended = _started(command.arguments, place, env={"HOME": home, "XDG_CACHE_HOME": None})
    expect(ended.code == 0, f"exit {ended.code}: {ended.errors[-1500:]}")
    return clear(ended)


def _no_streams(rng: np.random.Generator, place: Path) -> str:
    """Standard output is closed, or full; or standard error, or standard input is closed."""
    command, _ = _written(rng, place)
    line = ['"$@" >&-', '"$@" >/dev/full', '"$@" 2>&-', '"$@" <&-'][int(rng.integers(4))]
    started = subprocess.run(
        ["sh", "-c", line, "sh", sys.executable, "-m", "castlereg", *command.arguments],
        cwd=place,
        env=_environment({}),
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    return clear(Ended(started.returncode, started.stdout, started.stderr, 0.0))


def _started(
    arguments: tuple[str, ...],
    place: Path,
    inside: Callable[[], None] | None = None,
    env: dict[str, str | None] | None = None,
) -> Ended:
    """Run a command as a shell would, in a new process."""
    started = subprocess.run(
        [sys.executable, "-m", "castlereg", *arguments],
        cwd=place,
        env=_environment(env or {}),
        preexec_fn=inside,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    return Ended(started.returncode, started.stdout, started.stderr, 0.0)


def _environment(changes: dict[str, Any]) -> dict[str, str]:
    path = os.pathsep.join([os.environ.get("PYTHONPATH", ""), str(ROOT / "src")]).strip(os.pathsep)
    merged = {**os.environ, "PYTHONPATH": path, **changes}
    return {name: value for name, value in merged.items() if value is not None}


CASES: tuple[Case, ...] = (
    *(_file_size, _full_disk, _device_without_room, _memory, _memory_of_a_shell, _files_that_are_open),
    *(_folder_without_permission, _cache_without_permission, _no_home, _no_streams, _full_experiment),
)
