"""Errors, notes, exit codes, and commands in processes of their own."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

import castlereg
from castlereg.__main__ import _command_line
from castlereg.cli.console import _one_line, as_json, notes, reason
from tests.cli import check_rejected, done, run


def test_unexpected_errors_are_one_line(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As libraries raise them when there is no memory left."""
    said = {
        SystemError("error return"): "unexpected SystemError: error return; pass --debug to see the traceback",
        RuntimeError("RESOURCE_EXHAUSTED: 8 GB"): "not enough memory: use fewer rows",
        MemoryError(): "not enough memory: use fewer rows",
    }
    for error, message in said.items():

        def fail(*_: Any, error: BaseException = error, **__: Any) -> None:
            raise error

        monkeypatch.setattr("castlereg.table.files.TableFile.read", fail)
        check_rejected(message, "fit", folder / "homes.csv", "-t", "price")


def test_a_read_error_is_not_blamed_on_standard_output() -> None:
    assert reason(OSError(errno.EIO, "Input/output error")) == "Input/output error"
    assert reason(OSError(errno.ENOSPC, "No space left")) == "standard output: No space left"
    assert reason(OSError(errno.EIO, "Input/output error", "a.csv")) == "a.csv: Input/output error"


def test_a_note_is_printed_once(capsys: pytest.CaptureFixture[str]) -> None:
    for silent, printed in ((False, "castlereg: note: few rows\ncastlereg: note: a rare class\n"), (True, "")):
        with notes(silent):
            for text in ("few rows", "few rows", "a rare class"):
                warnings.warn(text, stacklevel=1)
        assert capsys.readouterr().err == printed


def test_control_characters_do_not_reach_the_terminal() -> None:
    assert _one_line("a\x1b[31mb\nc") == "a\\x1b[31mb c"


def test_json_has_neither_nan_nor_infinity() -> None:
    facts = {"a": np.float64("nan"), "b": [np.int64(3), float("inf")], "c": np.bool_(True)}
    assert as_json(facts) == {"a": None, "b": [3, None], "c": True}


def test_the_version_names_the_engines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "castlereg_kernels", None)
    assert run("--version").stdout.endswith("; engine: jax; castlereg-kernels is not installed)\n")
    kernels = SimpleNamespace(instruction_set=lambda: "AVX-512")
    monkeypatch.setitem(sys.modules, "castlereg_kernels", kernels)
    assert run("--version").stdout.endswith("; engines: native AVX-512, jax)\n")


def test_every_command_has_help() -> None:
    for name in ("demo", "fit", "predict", "evaluate", "report", "graph", "what-if"):
        assert "--debug" in done(name, "--help").stdout


def test_help_and_typos_wait_for_no_heavy_package() -> None:
    code = """
import sys
from castlereg.__main__ import main
typos = [["fti"], ["fit", "--tarket", "y", "x.csv"], ["fit", "nowhere.csv", "-t", "y"]]
for arguments in [["--version"], ["--help"], ["fit", "--help"], *typos]:
    sys.argv = ["castlereg", *arguments]
    try:
        main()
    except SystemExit as end:
        print(end.code)
print(sorted({"jax", "numpy", "pandas", "sklearn", "networkx", "matplotlib"} & set(sys.modules)))
"""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout.startswith(f"castlereg {castlereg.__version__} (Python ")
    assert ended.stdout.splitlines()[-4:] == ["2", "2", "2", "[]"]
    for hint in ("Did you mean 'fit'?", "--target", "file 'nowhere.csv' does not exist"):
        assert hint in ended.stderr


# A process started in the background inherits an ignored SIGINT, and a function between fork and exec is not safe here.
HEEDS_INTERRUPTS = """import runpy, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
runpy.run_module("castlereg", run_name="__main__", alter_sys=True)
"""


@pytest.mark.skipif(os.name != "posix", reason="signals are POSIX's")
def test_ctrl_c_leaves_the_older_file_and_nothing_else(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    noise = pd.DataFrame(rng.normal(size=(4000, 3)), columns=["a", "b", "y"]).assign(constant=1)
    noise.to_csv(tmp_path / "noise.csv", index=False)
    (tmp_path / "model").write_text("older")
    arguments = ["fit", "noise.csv", "-t", "y", "-o", "model", "--search", "best"]
    command, pipe = [sys.executable, "-c", HEEDS_INTERRUPTS, *arguments], subprocess.PIPE
    with subprocess.Popen(command, cwd=tmp_path, stdout=pipe, stderr=pipe, text=True) as process:
        try:
            assert process.stderr is not None
            assert "constant" in process.stderr.readline()  # a note, just before training
            time.sleep(0.5)
            process.send_signal(signal.SIGINT)
            _, said = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == 130
    assert said.splitlines()[-1] == "castlereg: stopped"
    assert "Traceback" not in said
    assert (tmp_path / "model").read_text() == "older"
    assert {path.name for path in tmp_path.iterdir()} == {"noise.csv", "model"}


def test_a_reader_that_closes_the_pipe_is_no_error(folder: Path) -> None:
    command = f"{sys.executable} -m castlereg graph {folder / 'price.castle'} --format svg | head -c 5"
    ended = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert ended.stdout == "<svg "
    assert "Traceback" not in ended.stderr


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("castlereg.cli")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "typer", None)
    with pytest.raises(SystemExit, match=r'needs typer: pip install "castlereg\[cli\]"'):
        _command_line()
