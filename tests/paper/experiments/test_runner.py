from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from castlereg.paper.experiments import cluster as dask_cluster
from castlereg.paper.experiments import registry
from castlereg.paper.experiments.cluster import on_cluster
from castlereg.paper.experiments.runner import run, waiting_units
from tests.paper.experiments.counting import Counting, Doubling, Locating

ROOT = Path(__file__).parents[3]
SCRIPT = """
import sys
from pathlib import Path
from castlereg.paper.experiments.results import write_results
from castlereg.paper.experiments.runner import run
from tests.paper.experiments.counting import Counting
if __name__ == "__main__":
    folder, experiment = Path(sys.argv[1]), Counting(count=12, seconds=0.1)
    outcome = run([experiment], "quick", folder, jobs=2, verbose=False)["counting"]
    write_results(experiment, outcome, folder)
    print(outcome.n_new)
"""


def started(folder: Path, name: str) -> subprocess.Popen[str]:
    """Start the script, which keeps its results under this name, as a group of processes."""
    return subprocess.Popen(
        [sys.executable, str(folder / "script.py"), str(folder / name)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'src'}"},
    )


def test_units_run_once_and_come_back_in_order(tmp_path: Path) -> None:
    experiment = Counting()
    first = run([experiment], "quick", tmp_path, verbose=False)["counting"]
    assert (first.n_units, first.n_new, first.complete) == (4, 4, True)
    assert first.results["square"].tolist() == [0, 1 / 7, 4 / 7, 9 / 7]
    again = run([experiment], "quick", tmp_path, verbose=False)["counting"]
    assert again.n_new == 0
    assert again.results.equals(first.results)


def test_a_changed_description_does_not_mix_with_old_results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run([Counting()], "quick", tmp_path, verbose=False)
    larger = run([Counting(count=5)], "quick", tmp_path, verbose=False)["counting"]
    assert (larger.n_new, len(larger.results)) == (1, 5)
    assert len(waiting_units(Counting(), "standard", tmp_path)) == 4
    monkeypatch.setattr(Counting, "revision", 2)
    assert len(waiting_units(Counting(), "quick", tmp_path)) == 4
    monkeypatch.undo()
    assert waiting_units(Counting(), "quick", tmp_path) == []  # the old ones are still there


def test_a_unit_that_fails_stops_no_other_and_is_tried_again(tmp_path: Path) -> None:
    outcome = run([Counting(fails_at=2)], "quick", tmp_path, verbose=False)["counting"]
    assert outcome.messages == ["1 unit: FileNotFoundError: no table 2"]
    assert outcome.results["n"].tolist() == [0, 1, 3]
    assert run([Counting()], "quick", tmp_path, verbose=False)["counting"].n_new == 1


def test_experiments_read_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(registry.EXPERIMENTS, "counting", Counting())
    outcomes = run([Doubling(count=2)], "quick", tmp_path, verbose=False)
    assert list(outcomes) == ["doubling"]
    assert outcomes["doubling"].results["experiment"].tolist() == ["counting"] * 4 + ["doubling"] * 2


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    run([Counting()], "quick", tmp_path, verbose=False)
    damaged = sorted((tmp_path / "units").iterdir())[0]
    damaged.write_bytes(damaged.read_bytes()[:20])
    with pytest.raises(ValueError, match=rf"{damaged.name} is not the result of an item .* delete it and run again"):
        run([Counting()], "quick", tmp_path, verbose=False)
    damaged.unlink()
    assert run([Counting()], "quick", tmp_path, verbose=False)["counting"].n_new == 1


def test_stopped_by_the_keyboard_keeps_what_is_done(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    process = started(tmp_path, "stopped")
    experiment = Counting(count=12, seconds=0.1)
    for _ in range(2400):
        if process.poll() is not None or len(waiting_units(experiment, "quick", tmp_path / "stopped")) < 12:
            break
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    _, errors = process.communicate(timeout=60)
    assert process.returncode != 0
    assert "KeyboardInterrupt" in errors
    assert 0 < len(waiting_units(experiment, "quick", tmp_path / "stopped")) < 12


def test_killed_three_times_gives_the_same_bytes(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    whole = started(tmp_path, "whole")
    draw, store = random.Random(3), tmp_path / "killed" / "units"
    for _ in range(3):
        process = started(tmp_path, "killed")
        for _ in range(600):  # until it has begun
            if store.exists() or process.poll() is not None:
                break
            time.sleep(0.05)
        time.sleep(draw.uniform(0.0, 1.5))
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        for stream in (process.stdout, process.stderr):
            assert stream is not None
            stream.close()
    last, _ = started(tmp_path, "killed").communicate(timeout=120)
    assert int(last) <= 12
    assert whole.communicate(timeout=120)[0].strip() == "12"
    for name in ("table.csv", "table.md"):
        paths = [tmp_path / folder / "counting" / name for folder in ("whole", "killed")]
        assert paths[0].read_bytes() == paths[1].read_bytes()


@pytest.mark.xdist_group("dask")
def test_a_cluster_gives_what_this_machine_gives(tmp_path: Path, dask_cluster: Any) -> None:
    here = run([Counting()], "quick", tmp_path / "here", verbose=False)["counting"]
    with on_cluster(dask_cluster.scheduler_address):
        there = run([Counting()], "quick", tmp_path / "there", verbose=False)["counting"]
        processes = run([Locating()], "quick", tmp_path / "processes", verbose=False)["counting"].results["process"]
    assert there.results.equals(here.results)
    assert os.getpid() not in set(processes)


def test_a_scheduler_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("distributed")
    monkeypatch.setattr(dask_cluster, "_PATIENCE", "1s")
    with (
        pytest.raises(ConnectionError, match=r"no Dask scheduler responds at tcp://127.0.0.1:9"),
        on_cluster("tcp://127.0.0.1:9"),
    ):
        pass
