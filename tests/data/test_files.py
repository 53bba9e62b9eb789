"""Tables in files, whole and in pieces."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from castlereg.data.files import TableFile
from castlereg.data.reading import ALWAYS_MISSING

FRAME = pd.DataFrame({"a": [1.5, 2.5, np.nan], "b": ["x", "y, z", "x"]})


def check(path: Path | str, frame: pd.DataFrame = FRAME) -> None:
    """The table is the same whole and in pieces."""
    file = TableFile.open(path)
    assert file.columns() == list(frame.columns)
    pd.testing.assert_frame_equal(file.read(), frame)
    pieces = list(file.frames(["b", "a"], 2))
    assert max(map(len, pieces)) == 2
    pd.testing.assert_frame_equal(pd.concat(pieces, ignore_index=True), frame[["b", "a"]], check_dtype=False)


@pytest.mark.parametrize(
    ("name", "separator"),
    [
        ("a.csv", ","),
        ("b.csv", ";"),
        ("c.tsv", "\t"),
        ("d.TAB", "\t"),
        ("e.txt", "|"),
        ("f.txt", " "),
        ("g.csv.gz", ","),
        ("h.tsv.bz2", "\t"),
        ("i.txt.xz", ";"),
        ("j.csv.zip", ";"),
    ],
)
def test_text_of_any_separator(tmp_path: Path, name: str, separator: str) -> None:
    FRAME.to_csv(tmp_path / name, sep=separator, index=False, na_rep="?")
    check(tmp_path / name)


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_standard_input(monkeypatch: pytest.MonkeyPatch, separator: str) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(FRAME.to_csv(index=False, sep=separator)))
    file = TableFile.open("-")
    pd.testing.assert_frame_equal(file.read(), FRAME)
    pd.testing.assert_frame_equal(file.read(), FRAME)  # as often as needed
    assert str(file) == "standard input"


def test_parquet_without_the_index_of_pandas(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    FRAME.set_axis([5, 6, 7]).to_parquet(tmp_path / "a.parquet")
    check(tmp_path / "a.parquet")
    FRAME.set_axis(pd.Index(["u", "v", "w"], name="id")).to_parquet(tmp_path / "b.parquet")
    check(tmp_path / "b.parquet")


def test_a_folder_of_parquet(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    frame = FRAME.assign(c=pd.Categorical(["u", "v", "w"]))
    frame[:2].to_parquet(tmp_path / "1.parquet")
    frame[2:].to_parquet(tmp_path / "2.parquet")
    (tmp_path / "_metadata.parquet").write_text("not a part")
    check(tmp_path, frame)


def test_marks_are_missing_and_levels_are_not(tmp_path: Path) -> None:
    path = tmp_path / "marks.csv"
    path.write_text("number,text\n" + "".join(f'"{mark}","{mark}"\n' for mark in ALWAYS_MISSING) + "1,-\n2,none\n")
    file = TableFile.open(path)
    frame = file.read()
    assert frame["number"].dropna().tolist() == [1, 2]
    assert frame["text"].dropna().tolist() == ["-", "none"]  # which may be classes
    marked = file.with_marks("text", ["-"]).with_text("number").read()
    assert marked["text"].dropna().tolist() == ["none"]
    assert marked["number"].dropna().tolist() == ["1", "2"]


def test_a_name_that_comes_twice_is_numbered(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a,a,b\n1,?,x\n2,3,y\n")
    frame = TableFile.open(tmp_path / "a.csv").read()
    assert list(frame.columns) == ["a", "a.1", "b"]
    assert frame["a.1"].isna().tolist() == [True, False]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("empty.csv", b"", "empty.csv' cannot be read as a table: it is empty"),
        ("bare.csv", b"a,b\n", "bare.csv' has no rows"),
        ("torn.csv", b"a,b\n1,2\n1,2,3,4\n", r"torn.csv' cannot be read as a table \(.*header line, in UTF-8"),
        ("latin.csv", "a,b\n1,é\n".encode("latin-1"), "in UTF-8"),
        ("torn.parquet", b"PAR1", "is not a Parquet file"),
        ("notes.doc", b"a,b\n", "suffix '.doc': tables end in .csv, .tsv"),
    ],
)
def test_what_is_not_a_table_is_rejected(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=message):
        TableFile.open(tmp_path / name).read()
