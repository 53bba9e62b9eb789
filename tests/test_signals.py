"""Signals end the program without half-written files."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals are POSIX's")

SCRIPT = """
import os, signal, sys
from pathlib import Path
signal.signal(signal.SIGINT, signal.default_int_handler)  # processes in the background of a shell ignore it
from castlereg.atomic_write import atomic_write
from castlereg.signals import run

def main():
    with atomic_write(Path("file")) as file:
        file.write(b"half")
        file.flush()
        print("written")
        WHERE
    print("not reached")

run(main)
"""


@pytest.mark.parametrize(("name", "code", "message"), [("SIGINT", 130, "stopped"), ("SIGTERM", 143, "terminated")])
@pytest.mark.parametrize("importing", [False, True])
def test_a_signal_ends_the_program(tmp_path: Path, name: str, code: int, message: str, importing: bool) -> None:
    kill = f"os.kill(os.getpid(), signal.{name})"
    # An import that is interrupted comes to its end; the signal is heard after it.
    (tmp_path / "slow.py").write_text(f"import os, signal\n{kill}\nprint('imported')")
    where = "import slow, time; time.sleep(10)" if importing else kill
    (tmp_path / "file").write_text("older")
    script = SCRIPT.replace("WHERE", where)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == code
    assert done.stderr == f"castlereg: {message}\n"
    assert done.stdout == ("written\nimported\n" if importing else "written\n")
    assert (tmp_path / "file").read_text() == "older"
    assert not list(tmp_path.glob(".*.unfinished"))
