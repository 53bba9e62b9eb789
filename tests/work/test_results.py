from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from castlereg.work import ResultFolder, item_key


def test_what_is_written_comes_back_to_the_last_bit(tmp_path: Path) -> None:
    folder = ResultFolder(tmp_path / "a" / "b")
    assert folder.keys() == set()
    result = [{"score": 0.1 + 0.2, "text": "é|\n"}, {"score": 1e-320, "fold": 3}]
    folder.write({"n": 1}, result, 2.5)
    key = item_key({"n": 1})
    assert ResultFolder(tmp_path / "a" / "b").read([key, "other"]) == {key: ({"n": 1}, result, 2.5, "")}
    assert (folder.keys(), folder.has(key), folder.has("other")) == ({key}, True, False)


def test_numbers_of_numpy_are_numbers(tmp_path: Path) -> None:
    folder = ResultFolder(tmp_path)
    folder.write({"n": np.int64(3)}, {"a": np.float32(0.1), "b": np.arange(3.0)}, 0)
    (done,) = folder.read([item_key({"n": 3})]).values()
    assert done.result == {"a": float(np.float32(0.1)), "b": [0.0, 1.0, 2.0]}


@pytest.mark.parametrize("value", [{1, 2}, object(), Path("a")])
def test_what_is_not_json_is_rejected(value: Any, tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=r"cannot be written as JSON .* use numbers, strings, lists and dicts"):
        item_key({"n": value})
    with pytest.raises(TypeError, match=r"its result cannot be written as JSON .* return numbers, strings, lists"):
        ResultFolder(tmp_path).write(1, value, 0)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("content", [b"", b'{"item": 1, "result": 2', b"[]", b'{"item": 1}', b"\xff\xff"])
def test_a_damaged_file_is_named(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / f"{item_key(1)}.json"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=rf"{path.name} is not the result of an item .* delete it and run again"):
        ResultFolder(tmp_path).read([item_key(1)])


def test_a_full_disk_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = ResultFolder(tmp_path)
    folder.write(1, "old", 0)

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    for item in (1, 2):
        with pytest.raises(OSError, match="No space left"):
            folder.write(item, "new", 0)
    (path,) = tmp_path.iterdir()
    assert json.loads(path.read_text())["result"] == "old"
