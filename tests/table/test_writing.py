"""Tables written to files."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from castlereg.table.files import TableFile, check_table_suffix, write_table

FRAME = pd.DataFrame(
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
    write_table(FRAME, tmp_path / name)
    frame = TableFile.open(tmp_path / name).read()
    assert list(frame.columns) == list(FRAME.columns)
    assert frame["number"][0] == pytest.approx(0.1 + 0.2, abs=1e-16 if name == "a.xlsx" else 0)  # every digit
    assert frame["text"].tolist() == FRAME["text"].tolist()  # not a formula
    assert frame["nullable"][0] == 1
    assert str(frame["time"][0]) == "2024-02-01 12:30:00+00:00"
    assert frame.iloc[1][["number", "nullable", "time"]].isna().all()


def test_json_keeps_numbers(tmp_path: Path) -> None:
    write_table(FRAME, tmp_path / "a.jsonl")
    first = json.loads((tmp_path / "a.jsonl").read_text(encoding="utf-8").splitlines()[0])
    assert (first["number"], first["nullable"], first["single"]) == (0.1 + 0.2, 1, 0.5)


def test_the_same_table_gives_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a.csv.gz", "b.csv.gz"):
        write_table(FRAME, tmp_path / name)
    assert (tmp_path / "a.csv.gz").read_bytes() == (tmp_path / "b.csv.gz").read_bytes()


@pytest.mark.parametrize("name", ["a.doc", "a", "a.txt", "a.parquet.gz", "a.xlsx.gz", "a.csv.zip"])
def test_unknown_suffixes_are_rejected_before_anything_is_written(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("before")
    for write in (check_table_suffix, lambda path: write_table(FRAME, path)):
        with pytest.raises(ValueError, match=r"cannot write a table to .*: use a name that ends in .csv, .tsv"):
            write(tmp_path / name)
    assert (tmp_path / name).read_text() == "before"


def test_what_excel_cannot_hold_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "a.xlsx"
    path.write_text("before")
    with pytest.raises(ValueError, match="control character"):
        write_table(pd.DataFrame({"a": ["x\x01"]}), path)
    assert path.read_text() == "before"
