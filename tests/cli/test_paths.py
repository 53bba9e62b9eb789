"""Nothing is written over what is read."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from castlereg.cli.paths import check_model_name, check_page_name, check_paths


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "Table.csv"
    path.write_text("a,b\n1,2\n")
    return path


def test_a_new_file_is_fine(table: Path) -> None:
    check_paths({"table": table}, {"--output": table.parent / "other.csv", "--report": None})
    check_paths({"table": Path("-")}, {"--output": Path(os.devnull), "--report": Path(os.devnull)})


@pytest.mark.parametrize("how", ["itself", "relative", "link", "hard link", "link in a linked folder"])
def test_no_output_is_an_input(table: Path, how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, output = table.parent, table
    if how == "relative":
        (folder / "sub").mkdir()
        monkeypatch.chdir(folder / "sub")
        output = Path("../sub/../Table.csv")
    elif how == "link":
        output = folder / "link.csv"
        output.symlink_to(table)
    elif how == "hard link":
        output = folder / "hard.csv"
        output.hardlink_to(table)
    elif how == "link in a linked folder":
        (folder / "same").symlink_to(folder)
        output = folder / "same" / "Table.csv"
    with pytest.raises(ValueError, match=r"--output .* would overwrite the table, .*Table\.csv: choose another file"):
        check_paths({"table": table}, {"--output": output})


def test_no_output_goes_into_a_folder_that_is_read(tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    with pytest.raises(ValueError, match="would overwrite the table"):
        check_paths({"table": tmp_path / "parts"}, {"--output": tmp_path / "parts" / "new.parquet"})


def test_a_workbook_is_an_input_by_any_of_its_sheets(tmp_path: Path) -> None:
    book = tmp_path / "book.xlsx"
    book.touch()
    check_paths({"table": tmp_path / "book.xlsx#Prices"}, {})
    with pytest.raises(ValueError, match="would overwrite the table"):
        check_paths({"table": tmp_path / "book.xlsx#Prices"}, {"--output": book})


def test_standard_input_from_a_file_is_an_input(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with open(table) as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        with pytest.raises(ValueError, match="would overwrite the table, -"):
            check_paths({"table": Path("-")}, {"--output": table})


@pytest.mark.parametrize("report", ["model", "MODEL", "./model", "link"])
def test_two_outputs_are_two_files(tmp_path: Path, report: str) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "model")
    with pytest.raises(ValueError, match="--output and --report are the same file"):
        check_paths({}, {"--output": tmp_path / "model", "--report": tmp_path / report})


def test_a_missing_input_suggests_the_nearest(table: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"file .* does not exist; did you mean 'Table.csv'\?"):
        check_paths({"table": table.parent / "tabel.csv"}, {})


def test_names_that_are_likely_mistakes() -> None:
    for name in ("model.csv", "model.CSV.gz", "model.parquet", "model.html"):
        with pytest.raises(ValueError, match=r"end it in \.castle"):
            check_model_name("--output", Path(name))
    for name in ("page.castle", "page.tsv"):
        with pytest.raises(ValueError, match=r"end it in \.html"):
            check_page_name("--report", Path(name))
    check_model_name("--output", Path("model"))
    check_page_name("--report", Path("page.html"))
