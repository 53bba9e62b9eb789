"""Tables in files, whole and in pieces."""

from __future__ import annotations

import bz2
import csv
import datetime
import gzip
import io
import json
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

from castlereg.table import files, schema
from castlereg.table.files import (
    _SEPARATORS,
    _WHITESPACE,
    TableFile,
    _detect_format,
    _plain_numbers,
    _Source,
    _TextFormat,
    check_table_suffix,
    note_unnamed,
    write_table,
)
from castlereg.table.reading import ALWAYS_MISSING, Columns, read_columns
from castlereg.table.schema import coded_columns, infer_schema

FRAME = pd.DataFrame({"a": [1.5, 2.5, np.nan], "b": ["x", "y, z", "x"]})


def check(path: Path | str, frame: pd.DataFrame = FRAME) -> None:
    """The table is the same whole and in pieces."""
    file = TableFile.open(path)
    assert list(file.names) == list(frame.columns)
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
    with pytest.raises(ValueError, match="standard input is not text: byte 0 is 0x1f"):
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
    as_text = file.with_text("number").read()
    assert as_text["number"].dropna().tolist() == ["1", "2"]


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
        ("zipped.csv", gzip.compress(b"a,b\n1,2\n", mtime=0), "is not text: byte 0 is 0x1f; pass a CSV.* right suffix"),
        ("zipped.parquet", gzip.compress(b"", mtime=0), "is not a Parquet file"),
        ("old.xls", b"\xd0\xcf\x11\xe0", "has the suffix '.xls', which is not supported: pass a file that ends in"),
    ],
)
def test_what_is_not_a_table_is_rejected(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=message) as raised:
        TableFile.open(tmp_path / name).read()
    assert "\n" not in str(raised.value)


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
    assert file.names == ("a", "a.1", "Unnamed: 2")
    with pytest.warns(UserWarning, match="columns without names, read as 'Unnamed: 2'"):
        note_unnamed(file.names, file)


def test_a_column_may_be_named_like_the_magic_of_parquet(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("PAR1,PAR2\n1,2\n")
    assert TableFile.open(tmp_path / "a.csv").names == ("PAR1", "PAR2")


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
        "a.feather": (feather, "is not a Feather file|is damaged"),
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
    monkeypatch.setattr(files, "_LARGEST_UNPACKED", 1000)
    monkeypatch.setattr(files, "_LARGEST_RATIO", 100)
    with pytest.raises(ValueError, match=r"would expand from .* to 40,004 bytes"):
        TableFile.open(path)


def test_options_are_for_text(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"a": 1}')
    with pytest.raises(ValueError, match=r"decimal=',' applies only to text files.*a.jsonl' is not one: drop this"):
        TableFile.open(tmp_path / "a.jsonl", decimal=",")


def test_duplicate_names_in_feather_are_rejected(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    table = pa.table([[1], [2]], names=["a", "a"])
    with pa.ipc.new_file(str(tmp_path / "a.feather"), table.schema) as file:
        file.write_table(table)
    with pytest.raises(ValueError, match="duplicate field names"):
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


# --- tables larger than memory ---


def table(n: int = 200) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "number": np.where(rng.random(n) < 0.2, np.nan, rng.normal(size=n)),
            "whole": rng.integers(0, 5, n),
            "city": np.where(rng.random(n) < 0.2, None, rng.choice(["Rome", "Oslo", "Lima, \u00c9"], n)),
            "when": pd.date_range("2024-01-31", periods=n, freq="31h").strftime("%Y-%m-%d %H:%M"),
            "flag": rng.random(n) < 0.5,
            "late": [None] * 40 + list(rng.choice(["x", "y"], n - 40)),  # no values in the first pieces
            "y": rng.normal(size=n),
        }
    )


def assert_alike(columns: Columns, expected: Columns) -> None:
    assert columns.on_disk and columns.names == expected.names
    first, second = (infer_schema(read, [False] * len(read.types)) for read in (columns, expected))
    assert first == second
    np.testing.assert_array_equal(coded_columns(columns, first).cells, coded_columns(expected, first).cells)


@pytest.mark.parametrize("rows", [7, 1000])
@pytest.mark.parametrize("name", ["a.csv", "a.tsv.gz", "a.jsonl", "a.parquet", "a.feather"])
def test_columns_on_disk_are_those_in_memory(tmp_path: Path, name: str, rows: int) -> None:
    write_table(table(), tmp_path / name)
    file = TableFile.open(tmp_path / name)
    frame, names = file.read(), ["city", "number", "when", "whole", "flag", "late"]
    columns, y = file.columns_on_disk(names, "y", rows=rows)
    assert_alike(columns, read_columns(frame[names]))
    np.testing.assert_array_equal(y, frame["y"])


def test_categories_on_disk_keep_their_order(tmp_path: Path) -> None:
    frame = table().assign(
        size=pd.Categorical(["S", "M", "L", "M"] * 50, ["S", "M", "L"], ordered=True), kind=pd.Categorical([3, 1] * 100)
    )
    frame[:120].to_parquet(tmp_path / "1.parquet")
    frame[120:].to_parquet(tmp_path / "2.parquet")
    file = TableFile.open(tmp_path)
    columns, _ = file.columns_on_disk(["size", "kind"], "y", rows=50)
    assert_alike(columns, read_columns(file.read()[["size", "kind"]]))
    assert columns.types[0].ordered and columns.types[0].levels == ("S", "M", "L")


def test_columns_of_several_types_are_read_again_as_text(tmp_path: Path) -> None:
    cells = ["1", "2", "3", "-", "4", "?", "5", "6"]
    frame = pd.DataFrame(
        {
            "marked": cells,  # numbers, and marks of missing values in some pieces
            "mixed": [*cells[:7], "many"],  # text, found at the end
            "codes": ["10", "11", "12", "13", "14", "x1", "16", "017"],
            "y": ["1", "2", "1", "2", "1", "2", "1", "b"],
        }
    )
    frame.to_csv(tmp_path / "a.csv", index=False)
    file = TableFile.open(tmp_path / "a.csv")
    columns, y = file.columns_on_disk(["marked", "mixed", "codes"], "y", rows=2)
    assert [column.holds for column in columns.types] == ["numbers", "text", "text"]
    assert columns.types[0].marks == ("-",)
    np.testing.assert_array_equal(columns.column(0), [1, 2, 3, np.nan, 4, np.nan, 5, 6])
    levels = columns.types[2].levels
    assert levels is not None and [levels[int(code)] for code in columns.column(2)] == frame["codes"].tolist()
    assert y.tolist() == frame["y"].tolist()
    frame.astype(object).replace({"1": 1}).to_json(tmp_path / "a.jsonl", orient="records", lines=True)
    with pytest.raises(ValueError, match=r"mixes|has different types in different rows: write one type"):
        TableFile.open(tmp_path / "a.jsonl").columns_on_disk(["marked"], "y", rows=2)


def test_many_different_texts_are_dates_or_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MOST_TEXTS", 50)
    monkeypatch.setattr(schema, "MOST_TEXTS", 50)
    frame = table().assign(code=[f"id{i}" for i in range(200)])
    frame.to_csv(tmp_path / "a.csv", index=False)
    columns, _ = TableFile.open(tmp_path / "a.csv").columns_on_disk(["when", "code", "number"], "y", rows=30)
    with pytest.warns(UserWarning, match=r"left out: 'code' \(an identifier"):
        (when, code, _) = infer_schema(columns, [False] * 3)
    assert (when.holds, when.reading, when.seasons, code.kind) == ("dates", "year first", ("week", "day"), "unusable")
    days = (pd.to_datetime(frame["when"]) - pd.Timestamp(0)) / pd.Timedelta(days=1)
    np.testing.assert_allclose(columns.column(0), days)
    frame.loc[170, "when"] = "soon"
    frame.to_csv(tmp_path / "a.csv", index=False)
    columns, _ = TableFile.open(tmp_path / "a.csv").columns_on_disk(["when"], "y", rows=30)
    assert columns.types[0].holds == "text"
    often = pd.DataFrame({"kind": [f"kind {i % 80}" for i in range(1000)], "y": range(1000)})
    often.to_csv(tmp_path / "b.csv", index=False)
    columns, _ = TableFile.open(tmp_path / "b.csv").columns_on_disk(["kind"], "y", rows=25)
    (kind,) = infer_schema(columns, [False])
    assert kind.kind == "categorical" and kind.levels is not None and "(other)" in kind.levels


def test_errors_of_pieces_name_the_rows(tmp_path: Path) -> None:
    pd.DataFrame({"a": [1.0, 2, 3, 4, 1e300], "y": range(5)}).to_csv(tmp_path / "a.csv", index=False)
    with pytest.raises(ValueError, match=r"a.csv' \(rows counted from row 4\) has 1e\+300 in row 0 of column 'a'"):
        TableFile.open(tmp_path / "a.csv").columns_on_disk(["a"], "y", rows=2)
    (tmp_path / "b.csv").write_text("a,y\n")
    with pytest.raises(ValueError, match="has no rows"):
        TableFile.open(tmp_path / "b.csv").columns_on_disk(["a"], "y")


# --- workbooks ---


def book(path: Path, *sheets: list[list[Any]]) -> Path:
    workbook = pytest.importorskip("openpyxl").Workbook()
    workbook.remove(workbook.active)
    for k, rows in enumerate(sheets, 1):
        sheet = workbook.create_sheet(f"Sheet {k}")
        for row in rows:
            sheet.append(row)
    workbook.save(path)
    return path


def test_kinds_of_cells(tmp_path: Path) -> None:
    day = datetime.datetime(2024, 2, 1)
    rows = [[], ["n", "text", "day", "flag"], [1, "x", day, True], [None, "N/A", day, False], [2.5, "z", None, True]]
    frame = TableFile.open(book(tmp_path / "a.xlsx", [*rows, [None] * 6])).read()
    expected = pd.DataFrame({"n": [1, np.nan, 2.5], "text": ["x", None, "z"], "day": [day, day, None]})
    pd.testing.assert_frame_equal(frame, expected.assign(flag=[True, False, True]), check_dtype=False)


def test_the_first_sheet_or_the_one_that_is_named(tmp_path: Path) -> None:
    path = book(tmp_path / "a.xlsx", [["a"], [1]], [["b"], [2], [3]])
    with pytest.warns(UserWarning, match="has 2 sheets, and only the first, 'Sheet 1', is read: to read another"):
        assert TableFile.open(path).names == ("a",)
    file = TableFile.open(f"{path}#Sheet 2")
    assert [frame["b"].tolist() for frame in file.frames(["b"], 1)] == [[2], [3]]
    with pytest.raises(ValueError, match="has no sheet 'Sheet'; did you mean"):
        TableFile.open(f"{path}#Sheet")


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], "is empty"),
        ([["a", "a"], [1, 2]], r"2 columns named 'a' \(1 and 2\): rename them in row 1 of sheet 'Sheet 1'"),
        ([["Report"], ["a", "b", "c"], [1, 2, 3]], "row 1 of sheet .* names 1 of 3 columns"),
        ([[1, 2], [3, 4]], "has only numbers"),
        ([["a", "b"]], "has no rows"),
    ],
)
def test_what_is_not_a_sheet_of_a_table_is_rejected(tmp_path: Path, rows: list[list[Any]], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        TableFile.open(book(tmp_path / "a.xlsx", rows)).read()


def test_sheets_that_claim_to_be_smaller_are_read_whole(tmp_path: Path) -> None:
    path = book(tmp_path / "a.xlsx", [["a", "b"], [1], [None, None], [2, 3], ["#DIV/0!", 4]])
    claims = tmp_path / "b.xlsx"
    with zipfile.ZipFile(path) as whole, zipfile.ZipFile(claims, "w") as changed:
        for name in whole.namelist():
            changed.writestr(name, whole.read(name).replace(b'<dimension ref="A1:B5"', b'<dimension ref="A1:A2"'))
    assert claims.read_bytes() != path.read_bytes()
    assert TableFile.open(claims).read().to_csv(index=False) == "a,b\n1.0,\n2.0,3.0\n,4.0\n"


def test_damaged_workbooks_are_rejected(tmp_path: Path) -> None:
    whole = book(tmp_path / "a.xlsx", [["a"], [1]]).read_bytes()
    for content in (b"a,b\n", whole[:-100]):
        (tmp_path / "b.xlsx").write_bytes(content)
        with pytest.raises(ValueError, match="is not a"):
            TableFile.open(tmp_path / "b.xlsx")


# --- JSON ---


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
        ("", "has no rows"),
        ("[]", "has no rows"),
        ('{"a": 1}\n{"a":', "line 2 of .* cannot be read as JSON"),
        ("[1, 2]", "cannot be read as JSON .*: write one record per line"),
        ("[" * 10_000, "cannot be read as JSON"),
        ('{\n"a": 1}', "write one record per line, or an array of records"),
    ],
)
def test_what_is_not_json_of_a_table_is_rejected(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "a.json").write_text(content)
    with pytest.raises(ValueError, match=message):
        TableFile.open(tmp_path / "a.json")


def test_json_is_utf8(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes('{"a": "é"}'.encode("latin-1"))
    with pytest.raises(ValueError, match=r"cannot be read as JSON .*in UTF-8"):
        TableFile.open(tmp_path / "a.jsonl")


# --- writing ---

WRITTEN = pd.DataFrame(
    {
        "number": [0.1 + 0.2, np.nan],
        "nullable": pd.array([1, None], "Int64"),
        "single": np.array([0.5, 2], np.float32),
        "text": ["=1+1", 'é, "x"\n'],
        "time": pd.to_datetime(["2024-02-01 12:30", None], utc=True),
    },
    index=[7, 8],
)


@pytest.mark.parametrize("name", ["a.csv", "a.TSV", "a.tab.gz", "a.jsonl", "a.parquet", "a.arrow", "a.xlsx"])
def test_cells_come_back(tmp_path: Path, name: str) -> None:
    write_table(WRITTEN, tmp_path / name)
    frame = TableFile.open(tmp_path / name).read()
    assert list(frame.columns) == list(WRITTEN.columns)
    assert frame["number"][0] == pytest.approx(0.1 + 0.2, abs=1e-16 if name == "a.xlsx" else 0)  # every digit
    assert frame["text"].tolist() == WRITTEN["text"].tolist()  # not a formula
    assert frame["nullable"][0] == 1
    assert str(frame["time"][0]) == "2024-02-01 12:30:00+00:00"
    assert frame.iloc[1][["number", "nullable", "time"]].isna().all()


def test_json_keeps_numbers(tmp_path: Path) -> None:
    write_table(WRITTEN, tmp_path / "a.jsonl")
    first = json.loads((tmp_path / "a.jsonl").read_text(encoding="utf-8").splitlines()[0])
    assert (first["number"], first["nullable"], first["single"]) == (0.1 + 0.2, 1, 0.5)


def test_the_same_table_gives_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a.csv.gz", "b.csv.gz"):
        write_table(WRITTEN, tmp_path / name)
    assert (tmp_path / "a.csv.gz").read_bytes() == (tmp_path / "b.csv.gz").read_bytes()


@pytest.mark.parametrize("name", ["a.doc", "a", "a.txt", "a.parquet.gz", "a.xlsx.gz", "a.csv.zip"])
def test_unknown_suffixes_are_rejected_before_anything_is_written(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("before")
    for write in (check_table_suffix, lambda path: write_table(WRITTEN, path)):
        with pytest.raises(ValueError, match=r"cannot write a table to .*: use a name that ends in .csv, .tsv"):
            write(tmp_path / name)
    assert (tmp_path / name).read_text() == "before"


def test_what_excel_cannot_hold_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "a.xlsx"
    path.write_text("before")
    with pytest.raises(ValueError, match="control character"):
        write_table(pd.DataFrame({"a": ["x\x01"]}), path)
    assert path.read_text() == "before"


# --- the format of text files ---

ALL = (*_SEPARATORS, _WHITESPACE)
PLAIN = _TextFormat(("a",), 1)


def detected(content: str | bytes, **given: str | None) -> _TextFormat:
    stored = content if isinstance(content, bytes) else content.encode()
    options = {"separator": None, "decimal": None, "encoding": None} | given
    return _detect_format(_Source(Path("-"), content=stored), ALL, **options)


@pytest.mark.parametrize("content", ["\t\n\t\n", " \n\t \n", '""\n'])
def test_blank_lines_are_not_a_table(content: str) -> None:
    with pytest.raises(ValueError, match=r"cannot be read as a table|names 0 of 2 columns"):
        detected(content)


@pytest.mark.parametrize(
    ("content", "names", "separator"),
    [
        ("a,b\n1,2\n", "a b", ","),
        ("a;b\n1,5;2,5\n", "a b", ";"),
        ('a,b\n"x;y",1\n"z;u",2\n', "a b", ","),
        ("a, EUR;b\n1,5;2\n", "a, EUR|b", ";"),
        ('"a;b",c\n1,2\n', "a;b|c", ","),
        ("first a,last b\nx y,z w\n", "first a|last b", ","),  # more columns of words, but not all fit
        ("  a   b\n  1   x\n 10   y\n", "a b", _WHITESPACE),
        ("a\n1,5\n2,5\n", "a", ";"),  # one column of decimal commas
        ("a\nx\ny\n", "a", ","),
        ("\n\na,b\n\n1,2\n", "a b", ","),
        ("a,b\r1,2\r", "a b", ","),
        ('a,b\r\n"x\r\ny",2\r\n', "a b", ","),
        ("a\tb\n1\t2\n\t\n", "a b", "\t"),  # a row of missing values
        ("0,1,2\n5,6,7\n", "0 1 2", ","),  # pandas' names of an array's columns
    ],
)
def test_separators(content: str, names: str, separator: str) -> None:
    text = detected(content)
    assert text.names == tuple(names.split("|" if "|" in names else " "))
    assert text.separator == separator


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_lines_longer_than_the_sample(end: str) -> None:
    names = [f"column number {j}" for j in range(8000)]
    assert detected(",".join(names) + end + ",".join(["1"] * 8000) + end).names == tuple(names)
    cells = f'"word{end}word";2,5{end}' * 10_000
    assert detected(f"a;b{end}{cells}").decimal == ","


@pytest.mark.parametrize(
    ("encoding", "expected"),
    [
        ("utf-8", "utf-8"),
        ("utf-8-sig", "utf-8-sig"),
        ("utf-16", "utf-16"),
        ("utf-32", "utf-32"),
    ],
)
def test_encodings(encoding: str, expected: str) -> None:
    text = detected("é;b\n1;2\n".encode(encoding))
    assert text.names == ("é", "b")
    assert text.encoding == expected


@pytest.mark.parametrize(("extra", "expected"), [("", "Windows-1252"), ("\x81", "Latin-1")])
def test_what_is_not_utf8_is_noted(extra: str, expected: str) -> None:
    late = ("a,b\n" + "1,x\n" * 30_000 + f"1,é{extra}\n").encode("latin-1")
    with pytest.warns(UserWarning, match=f"is not UTF-8 and was read as {expected}: pass its encoding"):
        assert detected(late).names == ("a", "b")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        detected(late, encoding="latin-1")


@pytest.mark.parametrize(
    ("content", "given", "message"),
    [
        # Separators and lines.
        ("a,b\n1,2\n3\n", {}, "line 3 of .* has 1 value between commas, but line 1 has 2 names: correct the line"),
        (
            "a,b\n1,2\n3,4,5\n",
            {},
            "line 3 of .* has 3 values between commas, but line 1 has 2 names.* text that contains commas",
        ),
        ('a,b\n"x\ny",2\n3,4\n5,6,7\n', {}, "line 5 of .* has 3 values"),
        (
            "My report\n\na,b\n1,2\n3,4\n",
            {},
            "line 3 of .* has 2 values between commas, but line 1 has 1 name: .*delete titles",
        ),
        ("# made today\na;b\n1;2\n3;4\n", {}, "line 2 of .* has 2 values between semicolons, but line 1 has 1 name"),
        ("a b\n1 5 6\n2 7 8\n", {}, "line 2 of .* has 3 values between spaces, but line 1 has 2 names"),
        ("a,b\n1,2,\n3,4,\n", {}, "line 2 of .* has 3 values between commas, but line 1 has 2 names"),
        ("title,,,\na,b,c,d\n1,2,3,4\n", {}, "line 1 of .* names 1 of 4 columns"),
        ("sep=;\na;b;c\n1;2;3\n4;5;6\n", {}, "line 2 of .* has 3 values .* line 1 has 2 names: .*delete titles"),
        ("a,b\n1,2\n", {"separator": "::"}, "must be one character"),
        ("a,b\n1,2\n", {"separator": "a"}, "must be one character"),
        ("a,b\n" + '1,"' + "x" * 200_000, {}, "check for an unclosed quote"),
        # Names.
        ("1,2.5\n3,4\n", {}, r"line 1 of .* has only numbers \(1, 2.5\): add a first line"),
        ("a,b,a\n1,2,3\n", {}, r"has 2 columns named 'a' \(1 and 3\): rename them in line 1"),
        # Decimal marks.
        ("a;b\n1,5;1.5\n", {}, "'1.5' in column 'b' and '1,5' in column 'a': pass decimal"),
        ("a;b\n1,234;x\n", {}, "'1,234' in column 'a', which may have decimals .*: pass decimal"),
        ("a;b\n1.234;x\n", {}, "'1.234' in column 'a', which may have decimals .*: pass decimal"),
        ("a;b\n1.5;x\n", {"decimal": "'"}, "must be '.' or ','"),
        ("a,b\n1,2\n", {"decimal": ",", "separator": ","}, "and not the separator"),
        # Encodings.
        ("a,é\n1,2\n".encode("latin-1"), {"encoding": "utf-8"}, r"is not valid utf-8 \(.*\): pass another encoding"),
        (b"\xef\xbb\xbfa,\xe9\n1,2\n", {}, r"is not valid utf-8-sig \(.*\): save it again in a single encoding"),
        ("a,é\n1,2\n".encode("utf-16-le"), {}, "is not text: byte 1 is 0x00.* encoding='utf-16-le'"),
        ("a,b\n1,2\n", {"encoding": "klingon"}, "encoding='klingon' is unknown"),
        ("a,b\n1,2\n", {"encoding": "base64"}, "encoding='base64' is unknown"),
    ],
)
def test_errors_say_where_and_what_to_do(content: str | bytes, given: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=message) as raised:
        detected(content, **given)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("separator", ["\t", r"\t"])
def test_given_options_win(separator: str) -> None:
    assert detected("a,b\tc\n1,2\t3\n", separator=separator).names == ("a,b", "c")
    assert detected("a  b\n1  2\n", separator=" ").names == ("a", "b")
    assert detected("é,b\n1,2\n".encode("cp1250"), encoding="cp1250").names == ("é", "b")
    assert detected("é,b\n1,2\n".encode("utf-16-le"), encoding="utf-16-le").names == ("é", "b")


# --- decimal marks and thousands separators ---


def read(path: Path, content: str, **given: str | None) -> pd.DataFrame:
    path.write_text(content, encoding="utf-8")
    return TableFile.open(path, **given).read()


@pytest.mark.parametrize(
    ("content", "decimal", "values"),
    [
        ("a;b\n1,5;x\n2;y\n", None, [1.5, 2]),
        ('a,b\n"1,5",x\n"2",y\n', None, [1.5, 2]),
        ('a,b\n"1,234.5",x\n12,y\n', None, [1234.5, 12]),
        ("a;b\n1.234,5;x\n1.000;y\n", None, [1234.5, 1000]),
        ("a;b\n1 234,5;x\n-12\u00a0000;y\n", None, [1234.5, -12000]),
        ("a;b\n1'234.5;x\n12;y\n", None, [1234.5, 12]),
        ("a;b\n1.234.567;01.02.2024\n1.000;03.04.2024\n", None, [1234567, 1000]),
        ("a;b\n1,234;x\n12,5e3;y\n", None, [1.234, 12500]),
        ("a;b\n1,234;x\n12,500;y\n", ",", [1.234, 12.5]),
        ("a;b\n1,234;x\n12,500;y\n", ".", [1234, 12500]),
    ],
)
def test_decimal_marks_and_thousands(tmp_path: Path, content: str, decimal: str | None, values: list[float]) -> None:
    frame = read(tmp_path / "a.csv", content, decimal=decimal)
    assert frame["a"].tolist() == values
    assert frame["b"].dtype.kind == "O"  # dates with points are not thousands


def test_a_comma_among_commas_is_read_as_thousands_with_a_note(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match=r"'1,234' in column 'a', read with .*: pass decimal=','"):
        frame = read(tmp_path / "a.csv", 'a,b\n"1,234",x\n"12,500",y\n')
    assert frame["a"].tolist() == [1234, 12500]


def test_marks_of_missing_values_among_decimal_commas(tmp_path: Path) -> None:
    frame = read(tmp_path / "a.csv", "a;b\n1,5;x\n-;y\n2,5;z\n")
    assert frame["a"].tolist() == ["1.5", "-", "2.5"]  # numbers, once the mark is known


def test_marks_that_come_late(tmp_path: Path) -> None:
    early = "a;b\n" + "1;x\n" * 9_000
    assert read(tmp_path / "a.csv", early + "1,5;x\n")["a"].max() == 1.5
    assert read(tmp_path / "a.csv", early + "1.234;x\n1,5;x\n")["a"].max() == 1234
    with pytest.raises(ValueError, match=r"'1,234' in column 'a', which may have decimals .*: pass"):
        read(tmp_path / "a.csv", early + "1,234;x\n")
    for separator in ",;":  # too late
        with pytest.raises(ValueError, match=r"'1,5' in column 'a', but numbers are read with decimal='.': pass"):
            read(tmp_path / "a.csv", (early + "1;x\n" * 1_000).replace(";", separator) + f'"1,5"{separator}x\n')


def test_whole_numbers_beyond_64_bits(tmp_path: Path) -> None:
    frame = read(tmp_path / "a.csv", "id,gap\n12345678901234567890123,-1e400\n2,\n")
    assert frame["id"].tolist() == [12345678901234567890123.0, 2]
    for cells in ([10**22, 2], [10**22, None], [int("1" * 400)]):
        numbers = _plain_numbers(pd.Series(cells, dtype=object), PLAIN, "file")
        assert numbers.dtype.kind == "f"
        assert numbers[0] == float(str(cells[0]))


def test_text_stays_text() -> None:
    for cells in (["1,2,3", "1"], ["1.5 m", "2 m"], ["x", "1,5"], ["0,123.4", "1"]):
        column = pd.Series(cells)
        assert _plain_numbers(column, PLAIN, "file") is column
