"""Files that are written completely or not at all."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

import pytest

from castlereg.atomic_write import atomic_write


def test_a_failure_leaves_the_older_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"older")
    with pytest.raises(RuntimeError), atomic_write(path) as file:
        file.write(b"half")
        raise RuntimeError
    assert path.read_bytes() == b"older"
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"older")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    with atomic_write(tmp_path / "link") as file:
        file.write(b"newer")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").read_bytes() == b"newer"


@pytest.mark.skipif(os.name != "posix", reason="permissions are POSIX's")
def test_permissions_of_the_older_file_stay(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.touch(mode=0o600)
    with atomic_write(path) as file:
        file.write(b"private")
        assert {stat.S_IMODE(p.stat().st_mode) for p in tmp_path.iterdir()} == {0o600}  # the unfinished one too
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_pipe_is_written_and_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    received: list[bytes] = []
    reader = threading.Thread(target=lambda: received.append(path.read_bytes()))
    reader.start()
    with atomic_write(path) as file:
        file.write(b"through")
    reader.join(timeout=10)
    assert received == [b"through"]
    assert path.is_fifo()


def test_folders_are_rejected(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError, match="name a file in it"), atomic_write(tmp_path):
        pass
    with (
        pytest.raises(FileNotFoundError, match="nowhere first"),
        atomic_write(tmp_path / "nowhere/x"),
    ):
        pass


@pytest.mark.skipif(os.name != "posix", reason="limits of files are POSIX's")
def test_a_full_disk_leaves_the_older_file_and_names_it(tmp_path: Path) -> None:
    import resource

    path = tmp_path / "file"
    path.write_bytes(b"older")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    with pytest.raises(OSError, match="too large") as caught:
        resource.setrlimit(resource.RLIMIT_FSIZE, (10_000_000, hard))  # of any file that this process writes
        try:
            with atomic_write(path) as file:
                file.write(bytes(10_000_001))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert caught.value.filename == str(path)
    assert path.read_bytes() == b"older"
    assert [p.name for p in tmp_path.iterdir()] == ["file"]
