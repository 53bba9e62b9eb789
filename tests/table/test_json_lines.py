"""Tables in JSON."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from castlereg.table.files import TableFile


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.jsonl", '{"a": 1, "b": "é"}\n\n{"a": 2.5}\n{"b": null, "c": true}\n'),
        ("a.ndjson", '\ufeff{"a": 1, "b": "é"}\n{"a": 2.5}\n{"c": true}'),
        ("a.json", '[{"a": 1, "b": "é"},\n{"a": 2.5}, {"c": true}]'),
    ],
)
def test_records_may_leave_fields_out(tmp_path: Path, name: str, content: str) -> None:
    (tmp_path / name).write_text(content, encoding="utf-8")
    file = TableFile.open(tmp_path / name)
    expected = pd.DataFrame({"a": [1, 2.5, None], "b": ["é", None, None], "c": [None, None, True]})
    pd.testing.assert_frame_equal(file.read(), expected)
    assert [len(frame) for frame in file.frames(["c"], 2)] == [2, 1]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "it is empty"),
        ("[]", "has no rows"),
        ('{"a": 1}\n{"a": [1]}', r"line 2 of .* has \[1\] in 'a': a cell must be"),
        ('{"a": 1, "a": 2}', r"line 1 of .*\('a' is duplicated\)"),
        ('{"a": 1}\n{"a":', "line 2 of .* cannot be read as JSON"),
        ("[1, 2]", "record 1 of .* is 1, not a record"),
        ("[" * 10_000, "cannot be read as JSON"),
        ('{\n"a": 1}', "write one record per line, or an array of records"),
    ],
)
def test_what_is_not_a_table_is_rejected(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "a.json").write_text(content)
    with pytest.raises(ValueError, match=message):
        TableFile.open(tmp_path / "a.json")


def test_json_is_utf8(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes('{"a": "é"}'.encode("latin-1"))
    with pytest.raises(ValueError, match="is not valid UTF-8"):
        TableFile.open(tmp_path / "a.jsonl")
