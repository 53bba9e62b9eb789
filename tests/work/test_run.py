from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from joblib import parallel_config

from castlereg.work import Done, ItemsFailed, ResultFolder, finished_items, item_key, run_items
from castlereg.work import workers as of_joblib
from castlereg.work.claims import Claims
from tests.work.jobs import dies_at_five, dies_once, fails_at_two, process_of, square
from tests.work.test_claims import write_claim


def test_items_run_once_and_come_back_in_order(tmp_path: Path) -> None:
    calls = []

    def counted(n: int) -> float:
        calls.append(n)
        return square(n)

    assert run_items(counted, [3, 1, 3, 2], tmp_path) == [9 / 7, 1 / 7, 9 / 7, 4 / 7]
    assert run_items(counted, iter([1, 2, 4]), tmp_path) == [1 / 7, 4 / 7, 16 / 7]
    assert calls == [3, 1, 2, 4]
    assert run_items(counted, [], tmp_path) == []


def test_an_item_that_fails_stops_no_other_and_is_tried_again(tmp_path: Path) -> None:
    with pytest.raises(
        ItemsFailed, match=r"1 of 4 items failed \(1 of them: FileNotFoundError: no table 2\)"
    ) as caught:
        run_items(fails_at_two, range(4), tmp_path)
    assert [done.item for done in caught.value.failed] == [2]
    assert [done.item for done in finished_items(square, range(4), tmp_path)] == [2]
    assert run_items(square, range(4), tmp_path) == [0, 1 / 7, 4 / 7, 9 / 7]


def test_a_result_that_cannot_be_kept_is_an_error_of_its_item(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (done,) = finished_items(lambda n: {n}, [1], tmp_path)
    assert done.error.startswith("its result cannot be written as JSON")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    (done,) = finished_items(square, [1], tmp_path)
    assert done.error.startswith("its result could not be written: [Errno 28] No space left on device")
    monkeypatch.undo()
    assert run_items(square, [1], tmp_path) == [1 / 7]


def test_processes_that_share_a_folder_run_each_item_once(tmp_path: Path) -> None:
    calls: list[int] = []
    barrier = threading.Barrier(2)

    def counted(n: int) -> float:
        if n == 0:
            barrier.wait(30)  # until the other has begun with another item
        calls.append(n)
        if n == 1:
            barrier.wait(30)
        return square(n)

    def run() -> None:
        results.append(run_items(counted, range(20), tmp_path, stale_after=1))

    results: list[Any] = []
    threads = [threading.Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(calls) == list(range(20))
    assert results == [[square(n) for n in range(20)]] * 2


def test_items_of_a_process_that_has_ended_are_taken_over(tmp_path: Path) -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    write_claim(tmp_path, item_key(1), socket.gethostname(), ended.pid)
    write_claim(tmp_path, item_key(2), "another machine", ended.pid)
    assert run_items(square, [1, 2, 3], tmp_path, stale_after=0.3) == [1 / 7, 4 / 7, 9 / 7]
    assert {path.suffix for path in tmp_path.iterdir()} == {".json"}


def test_an_item_that_its_former_owner_has_just_finished_is_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Late(Claims):
        def take(self, key: str) -> bool:
            ResultFolder(tmp_path).write(1, "finished by another", 0)
            return super().take(key)

    monkeypatch.setattr("castlereg.work.run.Claims", Late)
    assert run_items(square, [1], tmp_path) == ["finished by another"]
    assert {path.suffix for path in tmp_path.iterdir()} == {".json"}


def test_a_wrong_time_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="stale_after=0 must be greater than 0"):
        run_items(square, [1], tmp_path, stale_after=0)


def test_joblibs_configuration_decides_where_items_run(tmp_path: Path) -> None:
    def processes(folder: str, **options: Any) -> set[int]:
        return set(run_items(process_of, range(4), tmp_path / folder, **options))

    assert processes("default") == {os.getpid()}
    with parallel_config(n_jobs=2):
        assert os.getpid() not in processes("configured")
        assert processes("one", n_jobs=1) == {os.getpid()}
    with parallel_config("threading", n_jobs=2):
        assert processes("threads") == {os.getpid()}


def test_items_whose_workers_die_run_again_and_then_are_reported(tmp_path: Path) -> None:
    marks = tmp_path / "marks"
    marks.mkdir()
    items = [{"n": n, "marks": str(marks)} for n in range(8)]
    assert run_items(dies_once, items, tmp_path / "once", n_jobs=2) == [square(n) for n in range(8)]
    with pytest.raises(ItemsFailed, match=r"1 of 8 items failed \(1 of them: its workers died \(Terminated") as caught:
        run_items(dies_at_five, range(8), tmp_path / "always", n_jobs=2)
    assert [done.item for done in caught.value.failed] == [5]
    assert run_items(square, range(8), tmp_path / "always") == [square(n) for n in range(8)]


def test_a_backend_that_cannot_run_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> Iterator[tuple[str, Done]]:
        raise ValueError("no such backend")
        yield

    monkeypatch.setattr(of_joblib, "_parallel", broken)
    with pytest.raises(ValueError, match="no such backend"):
        list(of_joblib.run_in_workers(square, [("a", 1)]))
