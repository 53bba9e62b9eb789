from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from castlereg.paper.experiments.store import Store, StoreError


def test_what_is_put_comes_back_to_the_last_bit(tmp_path: Path) -> None:
    store = Store(tmp_path / "a" / "b.sqlite")
    records = [{"score": 0.1 + 0.2, "text": "é|\n"}, {"score": 1e-320, "fold": 3}]
    store.put("k", {"n": 1}, records, 2.5)
    assert Store(tmp_path / "a" / "b.sqlite").records(["k", "other"]) == {"k": records}
    assert store.seconds() == {"k": 2.5}


def test_what_is_there_stays(tmp_path: Path) -> None:
    store = Store(tmp_path / "b.sqlite")
    store.put("k", {}, [{"score": 1}], 1)
    store.put("k", {}, [{"score": 2}], 1)
    assert store.records(["k"]) == {"k": [{"score": 1}]}


def test_a_file_of_another_format_is_refused_and_kept(tmp_path: Path) -> None:
    path = tmp_path / "b.sqlite"
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(StoreError, match="has format 99, and this version of castlereg writes format 1"):
        Store(path)
    assert path.read_bytes() == before


def test_a_file_that_is_no_database_is_refused_and_kept(tmp_path: Path) -> None:
    path = tmp_path / "b.sqlite"
    path.write_bytes(b"my thesis, chapter one, which is rather long" * 50)
    with pytest.raises(StoreError, match="not a results file, or it is damaged: move it away"):
        Store(path)
    assert path.read_bytes().startswith(b"my thesis")


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match=r"cannot make the folder .* give another --output"):
        Store(tmp_path / "file" / "b.sqlite")


def test_a_full_disk_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(tmp_path / "b.sqlite")
    store.put("k", {}, [{"score": 1}], 1)
    connect = sqlite3.connect

    def full(*args: Any, **options: Any) -> sqlite3.Connection:
        connection = connect(*args, **options)
        connection.execute("PRAGMA max_page_count = 1")  # no more pages than there are
        return connection

    monkeypatch.setattr(sqlite3, "connect", full)
    with pytest.raises(StoreError, match=r"full. Make room and run again: what is done is kept"):
        store.put("large", {}, [{"text": "x" * 100_000}], 1)
    monkeypatch.undo()
    assert store.records(["k", "large"]) == {"k": [{"score": 1}]}
    store.put("large", {}, [{"text": "x" * 100_000}], 1)
    assert len(store.records(["large"])) == 1
