"""Tables in files, whole and in pieces."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import lzma
import sys
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from castlereg.table import byte_streams
from castlereg.table.files import TableFile, note_unnamed, write_table
from castlereg.table.texts import ALWAYS_MISSING

FRAME = pd.DataFrame({"a": [1.5, 2.5, np.nan], "b": ["x", "y, z", "x"]})


def check(path: Path | str, frame: pd.DataFrame = FRAME) -> None:
    """The table is the same whole and in pieces."""
    file = TableFile.open(path)
    assert file.columns() == list(frame.columns)
    pd.testing.assert_frame_equal(file.read(), frame)
    pieces = list(file.frames(["b", "a"], 2))
    assert max(map(len, pieces)) == 2
    expected = frame[["b", "a"]]
    pd.testing.assert_frame_equal(pd.concat(pieces, ignore_index=True).astype(expected.dtypes), expected)


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
        ("k.csv.zst", ","),
        ("l.csv", "\t"),
        ("m.csv", "|"),
        ("n.tsv", ","),
        ("o.data", " "),
    ],
)
def test_text_of_any_separator(tmp_path: Path, name: str, separator: str) -> None:
    content = FRAME.to_csv(sep=separator, index=False, na_rep="?").encode()
    if name.endswith(".zst"):
        pa = pytest.importorskip("pyarrow")
        with pa.CompressedOutputStream(str(tmp_path / name), "zstd") as file:
            file.write(content)
    else:
        FRAME.to_csv(tmp_path / name, sep=separator, index=False, na_rep="?")
    check(tmp_path / name)


@pytest.mark.parametrize("name", ["a.csv", "a.tsv.gz", "a.jsonl", "a.ndjson.gz", "a.parquet", "a.feather", "a.xlsx"])
def test_every_format_that_is_written_is_read(tmp_path: Path, name: str) -> None:
    write_table(FRAME, tmp_path / name)
    check(tmp_path / name)


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_standard_input(monkeypatch: pytest.MonkeyPatch, separator: str) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(FRAME.to_csv(index=False, sep=separator)))
    file = TableFile.open("-")
    pd.testing.assert_frame_equal(file.read(), FRAME)
    pd.testing.assert_frame_equal(file.read(), FRAME)  # as often as needed
    assert str(file) == "standard input"


def test_bytes_on_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    content = "größe;b\n1,5;x\n".encode("cp1252")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content), encoding="ascii"))
    with pytest.warns(UserWarning, match="standard input is not UTF-8 and was read as Windows-1252"):
        file = TableFile.open("-")
    assert file.read()["größe"].tolist() == [1.5]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(gzip.compress(content))))
    with pytest.raises(ValueError, match="standard input is compressed with gzip: unpack it first"):
        TableFile.open("-")


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


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("empty.csv", b"", "empty.csv' cannot be read as a table: it is empty"),
        ("blank.csv", b" \n\n", "blank.csv' cannot be read as a table: it is empty"),
        ("bare.csv", b"a,b\n", "bare.csv' has no rows"),
        ("quote.csv", b'a,b\n1,2\n3,"x\n', "EOF inside string starting at row 2.*: check for an unclosed quote"),
        ("torn.parquet", b"PAR1", "is not a Parquet file"),
        ("torn.feather", b"ARROW1\0\0", "is not a Feather"),
        (
            "torn.csv.gz",
            gzip.compress(b"a,b\n1,2\n", mtime=0)[:-4],
            r"cannot be decompressed as .gz \(.*\): get a new copy",
        ),
        ("text.csv.xz", b"a,b\n", "cannot be decompressed as .xz"),
        ("text.csv.zst", b"a,b\n", "cannot be decompressed as .zst"),
        ("text.zip", b"a,b\n", "is not a valid zip archive"),
        ("notes.doc", b"a,b\n", "suffix '.doc', which is not supported: pass a file that ends in .csv, .tsv"),
        ("table.gz", gzip.compress(b"a,b\n1,2\n", mtime=0), "rename it to show its format, such as table.csv.gz"),
        ("table.parquet.gz", b"", "format '.parquet', which cannot be read: unpack it first"),
        ("bytes.csv", bytes(range(256)), "is not text: byte 0 is 0x00"),
        ("page.csv", b"\n<!DOCTYPE html>", "is a web page, not .csv: save the table as"),
        (
            "zipped.csv",
            gzip.compress(b"a,b\n1,2\n", mtime=0),
            "is compressed with gzip, not .csv: rename it.* in .csv.gz",
        ),
        ("zipped.parquet", gzip.compress(b"", mtime=0), "is compressed with gzip: unpack it first"),
        ("old.xls", b"\xd0\xcf\x11\xe0", "is an old Excel workbook.*: save the table as .csv"),
    ],
)
def test_what_is_not_a_table_is_rejected(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=message) as raised:
        TableFile.open(tmp_path / name).read()
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("suffix", [".parquet", ".feather", ".xlsx"])
def test_a_name_that_hides_the_format_is_rejected(tmp_path: Path, suffix: str) -> None:
    write_table(FRAME, tmp_path / f"a{suffix}")
    (tmp_path / f"a{suffix}").rename(tmp_path / "a.csv")
    with pytest.raises(ValueError, match=rf"not .csv: rename it to end in {suffix}"):
        TableFile.open(tmp_path / "a.csv")


@pytest.mark.parametrize("header", ["", "Unnamed: 0"])
def test_a_saved_index_is_noted(tmp_path: Path, header: str) -> None:
    (tmp_path / "a.csv").write_text(f"{header},a\n0,1\n")
    with warnings.catch_warnings(action="error"):
        file = TableFile.open(tmp_path / "a.csv")
        note_unnamed(["a"], file)  # it was dropped
    with pytest.warns(UserWarning, match=r"first column without a name \('Unnamed: 0'\), .* saved index: drop it"):
        note_unnamed(["Unnamed: 0", "a"], file)
    write_table(file.read(), tmp_path / "a.jsonl")
    with pytest.warns(UserWarning, match="looks like a saved index"):
        note_unnamed(["Unnamed: 0", "a"], TableFile.open(tmp_path / "a.jsonl"))


def test_other_columns_without_a_name_are_noted(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a,a.1,\n0,1,\n")
    file = TableFile.open(tmp_path / "a.csv")
    assert file.columns() == ["a", "a.1", "Unnamed: 2"]
    with pytest.warns(UserWarning, match="columns without names, read as 'Unnamed: 2'"):
        note_unnamed(file.columns(), file)


def test_a_column_may_be_named_like_the_magic_of_parquet(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("PAR1,PAR2\n1,2\n")
    assert TableFile.open(tmp_path / "a.csv").columns() == ["PAR1", "PAR2"]


def zipped(path: Path, members: dict[str, str | bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


def test_a_zip_holds_one_table(tmp_path: Path) -> None:
    content = FRAME.to_csv(index=False)
    check(zipped(tmp_path / "a.zip", {"x/a.csv": content, "readme.md": "about", "__MACOSX/x/._a.csv": "hidden"}))
    check(zipped(tmp_path / "b.csv.zip", {"data": content}))
    with pytest.raises(ValueError, match=r"b.zip' contains 2 tables \('a.csv', 'b.tsv'\): unpack it"):
        TableFile.open(zipped(tmp_path / "b.zip", {"a.csv": content, "b.tsv": content}))
    with pytest.raises(ValueError, match="contains no table"):
        TableFile.open(zipped(tmp_path / "c.zip", {}))
    nameless = zipped(tmp_path / "e.zip", {"a": content}).read_bytes()
    central = nameless.rindex(b"PK\1\2")
    cut = nameless[central + 28 : central + 30]
    assert cut == b"\1\0"
    (tmp_path / "e.zip").write_bytes(nameless[: central + 28] + b"\0\0\1\0" + nameless[central + 32 :])
    with pytest.raises(ValueError, match=r"e.zip' "):
        TableFile.open(tmp_path / "e.zip")
    with pytest.raises(ValueError, match=r"format '.parquet', which cannot be read: unpack it"):
        TableFile.open(zipped(tmp_path / "d.zip", {"a.parquet": content}))


def test_damaged_content_is_one_line(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    write_table(FRAME, tmp_path / "a.feather")
    feather = (tmp_path / "a.feather").read_bytes().replace(b'"index_columns"', b'"index_column\xff"')
    packed = zipped(
        tmp_path / "a.csv.zip", {"a.csv": "a,b\n" + "".join(f"{k},{k * k}\n" for k in range(99))}
    ).read_bytes()
    book = tmp_path / "a.xlsx"
    write_table(FRAME, book)
    damaged = {
        "a.feather": (feather, "is damaged"),
        "a.csv.zip": (packed[:40] + b"\xff" * 8 + packed[48:], "cannot be decompressed as .zip"),
        "a.xlsx": (book.read_bytes().replace(b"xl/workbook.xml", b"xl/workbook.xyz"), "cannot be read as an Excel"),
    }
    for name, (content, message) in damaged.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(ValueError, match=message) as raised:
            TableFile.open(tmp_path / name)
        assert "\n" not in str(raised.value)


def test_a_zip_that_grows_absurdly_is_rejected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = zipped(tmp_path / "a.csv.zip", {"a.csv": "a,b\n" + "0,0\n" * 10_000})
    TableFile.open(path)
    monkeypatch.setattr(byte_streams, "_LARGEST_UNPACKED", 1000)
    monkeypatch.setattr(byte_streams, "_LARGEST_RATIO", 100)
    with pytest.raises(ValueError, match=r"would expand from .* to 40,004 bytes"):
        TableFile.open(path)


def test_options_are_for_text(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"a": 1}')
    with pytest.raises(ValueError, match=r"decimal=',' applies only to text files.*a.jsonl' is not one: drop this"):
        TableFile.open(tmp_path / "a.jsonl", decimal=",")


def test_feather_streams(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    table = pa.Table.from_pandas(FRAME)
    with pa.ipc.new_stream(str(tmp_path / "a.arrow"), table.schema) as stream:
        stream.write_table(table)
    check(tmp_path / "a.arrow")


def test_duplicate_names_in_feather_are_rejected(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    table = pa.table([[1], [2]], names=["a", "a"])
    with pa.ipc.new_file(str(tmp_path / "a.feather"), table.schema) as file:
        file.write_table(table)
    with pytest.raises(ValueError, match="several columns named 'a': rename"):
        TableFile.open(tmp_path / "a.feather")


TEXT = st.text(st.characters(codec="cp1252", exclude_categories=["Cc"]), max_size=6).map(lambda text: f"x{text}y")
COMPRESSED: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
}
NUMBERS = st.floats(-1e6, 1e6, width=32)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    names=st.lists(TEXT, min_size=2, max_size=4, unique=True),
    data=st.data(),
    separator=st.sampled_from(",;\t| "),
    decimal=st.sampled_from(".,"),
    encoding=st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "utf-32", "cp1252"]),
    quoting=st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC]),
    suffix=st.sampled_from(["", ".gz", ".bz2", ".xz", ".zip"]),
)
def test_what_was_written_is_read(
    names: list[str],
    data: st.DataObject,
    separator: str,
    decimal: str,
    encoding: str,
    quoting: Any,
    suffix: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    n_rows = data.draw(st.integers(2, 5))
    columns = [
        data.draw(st.lists(TEXT if j == 0 else NUMBERS, min_size=n_rows, max_size=n_rows)) for j in range(len(names))
    ]
    frame = pd.DataFrame(dict(zip(names, columns, strict=True)))
    name = "table.txt" if separator == " " else "table.csv"
    path = tmp_path_factory.mktemp("written") / f"{name}{suffix}"
    content = frame.to_csv(index=False, sep=separator, decimal=decimal, quoting=quoting).encode(encoding)
    assume(encoding != "cp1252" or content.isascii() or "\ufffd" in content.decode("utf-8", "replace"))
    if suffix == ".zip":
        zipped(path, {name: content})
    else:
        path.write_bytes(COMPRESSED[suffix](content))
    options = {"separator": separator, "decimal": decimal, "encoding": encoding}
    if decimal == separator:
        del options["separator"]
    read = TableFile.open(path, **options).read()
    pd.testing.assert_frame_equal(read, frame, check_dtype=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # not UTF-8
        try:
            detected = TableFile.open(path).read()
        except ValueError as error:
            assert "give decimal" in str(error)  # 1,234 may be either
            return
    pd.testing.assert_frame_equal(detected, frame, check_dtype=False)
