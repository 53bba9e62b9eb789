"""Units run once, anywhere, and their results are kept; experiments read others; packed results come back."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
import types
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from counting import Counting, Doubling, Locating
from joblib import parallel_config
from paper import reproduce

from castlereg_paper import framework
from castlereg_paper.framework import Results, Scale, collected, item_key, run, run_units, waiting_units

TESTS = Path(__file__).parent
SCRIPT = """
import sys
from pathlib import Path
from castlereg_paper import framework
from castlereg_paper.framework import run
from castlereg_paper.pages import write_results
from counting import Counting
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
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, [TESTS, *filter(None, sys.path)]))},
    )


# --- units -------------------------------------------------------------------------------------------


def squared(item: dict[str, int]) -> Any:
    if item["n"] == 3:
        raise ArithmeticError("three")
    return object() if item["n"] == 4 else item["n"] ** 2


def test_items_without_a_result_run_and_errors_keep_none(tmp_path: Path) -> None:
    items = [{"n": n} for n in (1, 2, 3, 4)]
    results = Results(tmp_path / "units")
    done = list(run_units(squared, items, results))
    assert {one.item["n"]: one.result for one in done if one.error is None} == {1: 1, 2: 4}
    assert sorted(type(one.error).__name__ for one in done if one.error) == ["ArithmeticError", "TypeError"]
    assert results.keys() == {item_key(item) for item in items[:2]}
    assert [one.item["n"] for one in run_units(squared, items, results)] == [3, 4]
    assert list(run_units(squared, items[:2], results)) == []


@pytest.mark.parametrize("backend", ["threading", "loky"])
@pytest.mark.parametrize("has_generators", [True, False])
def test_any_backend_of_joblib_runs_units(
    backend: str, has_generators: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of multiprocessing and Ray return only lists, so units are run in parts."""
    capable = types.SimpleNamespace(supports_return_generator=has_generators)
    monkeypatch.setattr(framework, "get_active_backend", lambda: (capable, 2))
    with parallel_config(backend, n_jobs=2):
        done = list(run_units(squared, [{"n": n} for n in range(10, 30)], Results(tmp_path)))
    assert sorted(one.result for one in done) == [n**2 for n in range(10, 30)]
    assert len(list(tmp_path.iterdir())) == 20


# --- experiments -------------------------------------------------------------------------------------


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


def test_experiments_read_others(tmp_path: Path) -> None:
    outcomes = run([Doubling(count=2)], "quick", tmp_path, verbose=False)
    assert list(outcomes) == ["doubling"]
    assert outcomes["doubling"].results["experiment"].tolist() == ["counting"] * 4 + ["doubling"] * 2


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    run([Counting()], "quick", tmp_path, verbose=False)
    damaged = sorted((tmp_path / "units").iterdir())[0]
    damaged.write_bytes(damaged.read_bytes()[:20])
    with pytest.raises(ValueError, match=rf"{damaged.name} is not the result of a unit .* delete it and run again"):
        run([Counting()], "quick", tmp_path, verbose=False)
    damaged.unlink()
    assert run([Counting()], "quick", tmp_path, verbose=False)["counting"].n_new == 1


def test_stopped_by_the_keyboard_keeps_what_is_done(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(f"import signal\nsignal.signal(2, signal.default_int_handler)\n{SCRIPT}")
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


def test_a_dask_cluster_gives_what_this_machine_gives(tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed")
    here = run([Counting()], "quick", tmp_path / "here", verbose=False)["counting"]
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": "127.0.0.1:0", "silence_logs": 50}
    with (
        distributed.LocalCluster(host="127.0.0.1", **options) as cluster,
        distributed.Client(cluster) as client,
        parallel_config("dask", client=client),
    ):
        client.run(sys.path.insert, 0, str(TESTS))
        there = run([Counting()], "quick", tmp_path / "there", verbose=False)["counting"]
        processes = run([Locating()], "quick", tmp_path / "processes", verbose=False)["counting"].results["process"]
    assert there.results.equals(here.results)
    assert os.getpid() not in set(processes)


# --- packed results ----------------------------------------------------------------------------------


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> Scale:
    monkeypatch.setattr(reproduce, "SCALE", "quick")
    return "quick"


def test_packed_results_come_back_and_are_not_run_again(tmp_path: Path, quick: Scale) -> None:
    experiment = Counting()
    outcome = run([experiment], quick, tmp_path / "first", verbose=False)["counting"]
    reproduce.pack([experiment], tmp_path / "first" / "units", tmp_path / "packed")
    lines = [json.loads(line) for line in (tmp_path / "packed" / "counting.jsonl").read_text().splitlines()]
    assert [line["item"]["experiment"] for line in lines] == ["counting"] * 4
    assert all(line["seconds"] >= 0 for line in lines)
    reproduce.unpack(tmp_path / "second" / "units", tmp_path / "packed")
    assert waiting_units(experiment, quick, tmp_path / "second") == []
    again = collected([experiment], quick, tmp_path / "second")["counting"]
    pd.testing.assert_frame_equal(again.results, outcome.results, rtol=1e-8)
    assert again.complete


def test_what_was_not_run_is_counted(tmp_path: Path, quick: Scale) -> None:
    run([Counting()], quick, tmp_path, verbose=False)
    next((tmp_path / "units").glob("*.json")).unlink()
    outcome = collected([Counting()], quick, tmp_path)["counting"]
    assert (len(outcome.results), outcome.messages) == (3, ["1 unit: not run"])


def test_all_stored_results_belong_to_units() -> None:
    """No unit of the standard scale is missing, so that `make experiments` continues."""
    assert all(outcome.complete for outcome in reproduce.outcomes().values())
