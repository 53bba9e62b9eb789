from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from castlereg.work.claims import Claims


def write_claim(folder: Path, key: str, host: str, process: int) -> Path:
    path = folder / f"{key}.claim"
    path.write_text(json.dumps({"host": host, "process": process}))
    return path


def test_only_one_of_many_gets_a_claim(tmp_path: Path) -> None:
    taken: list[str] = []

    def take() -> None:
        with Claims(tmp_path, 60) as claims:
            barrier.wait()
            taken.extend(key for key in map(str, range(50)) if claims.take(key))
            barrier.wait()

    barrier = threading.Barrier(4)
    threads = [threading.Thread(target=take) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(taken, key=int) == [str(n) for n in range(50)]
    assert list(tmp_path.iterdir()) == []  # all given back


def test_a_process_that_has_ended_on_this_machine_is_noticed_at_once(tmp_path: Path) -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    write_claim(tmp_path, "a", socket.gethostname(), ended.pid)
    write_claim(tmp_path, "b", socket.gethostname(), os.getpid())
    write_claim(tmp_path, "c", "another machine", ended.pid)
    with Claims(tmp_path, 60) as claims:
        assert [claims.take(key) for key in "abc"] == [True, False, False]


def test_a_claim_that_nobody_touches_is_taken_over(tmp_path: Path) -> None:
    write_claim(tmp_path, "ended", "another machine", 1)
    alive = write_claim(tmp_path, "alive", "another machine", 1)
    with Claims(tmp_path, 0.4) as claims:
        for tick in range(8):  # as one of another machine does, by whatever clock
            os.utime(alive, (tick, tick))
            assert not claims.take("alive")
            if claims.take("ended"):
                break
            time.sleep(0.1)
        assert tick >= 4
        assert json.loads((tmp_path / "ended.claim").read_text())["process"] == os.getpid()


def test_the_owner_touches_its_claims(tmp_path: Path) -> None:
    with Claims(tmp_path, 0.1) as claims:
        claims.take("a")
        claims.take("b")
        claims.release("b")
        os.utime(tmp_path / "a.claim", (0, 0))
        for _ in range(100):
            if (tmp_path / "a.claim").stat().st_mtime > 0:
                break
            time.sleep(0.02)
        else:
            pytest.fail("nobody touched the claim")
        assert [path.name for path in tmp_path.iterdir()] == ["a.claim"]


@pytest.mark.parametrize("content", ["", "[]", '{"host": 3}', '{"process": "x"}', "{"])
def test_a_claim_without_an_owner_counts_by_its_time(content: str, tmp_path: Path) -> None:
    (tmp_path / "a.claim").write_text(content)
    with Claims(tmp_path, 60) as claims:
        assert not claims.take("a")


def test_without_room_for_a_claim_the_item_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("castlereg.work.claims.open", full, raising=False)
    with Claims(tmp_path, 60) as claims:
        assert claims.take("a")
