"""No output overwrites an input, and tables are read as the model needs them."""

from __future__ import annotations

import io
import os
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from castlereg.cli.files import _with_targets, check_name, check_paths, chosen_task, is_table, left_out, open_for
from castlereg.cli.options import TextFormat
from castlereg.table.files import TableFile


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


def test_folders_workbooks_and_standard_input_are_inputs(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, book = table.parent / "parts", table.parent / "book.xlsx"
    folder.mkdir()
    book.touch()
    sheet = table.parent / "book.xlsx#Prices"
    check_paths({"table": sheet}, {})
    with open(table) as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        for source, output in ((folder, folder / "new.parquet"), (sheet, book), (Path("-"), table)):
            with pytest.raises(ValueError, match="would overwrite the table"):
                check_paths({"table": source}, {"--output": output})


@pytest.mark.parametrize("report", ["model", "MODEL", "./model", "link"])
def test_two_outputs_are_two_files(tmp_path: Path, report: str) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "model")
    with pytest.raises(ValueError, match="--output and --report are the same file"):
        check_paths({}, {"--output": tmp_path / "model", "--report": tmp_path / report})


def test_a_missing_input_suggests_the_nearest(table: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"file .* does not exist; did you mean 'Table.csv'\?"):
        check_paths({"table": table.parent / "tabel.csv"}, {})


def test_names_that_are_likely_mistakes(tmp_path: Path) -> None:
    for name in ("model.csv", "model.CSV.gz", "model.parquet", "model.html"):
        with pytest.raises(ValueError, match=r"end it in \.castle"):
            check_name("--output", Path(name), "model")
    for name in ("page.castle", "page.tsv"):
        with pytest.raises(ValueError, match=r"end it in \.html"):
            check_name("--report", Path(name), "page")
    check_name("--output", Path("model"), "model")
    check_name("--report", Path("page.html"), "page")
    assert all(is_table(path) for path in (Path("-"), tmp_path, Path("a.csv.gz"), Path("book.xlsx#Prices")))
    assert not is_table(Path("homes.castle"))


def test_classes_that_are_whole_numbers_stay_so_where_some_are_missing(tmp_path: Path) -> None:
    path = tmp_path / "homes.csv"
    path.write_text("rooms,sold,price\n1,0,1.5\n2,,2\n3,1,3\n")
    file = TableFile.open(path)
    rows = _with_targets(file.read(), ["rooms"], ["sold", "price"], file)
    assert (rows.n_without_target, left_out(rows.n_without_target)) == (1, "; 1 row without a target left out")
    assert rows.targets["sold"].tolist() == [0, 1]
    assert [dtype.kind for dtype in rows.targets.dtypes] == ["i", "f"]


def test_regression_takes_numbers_written_as_text() -> None:
    """Parquet files may hold them; --task auto reads them as numbers too."""
    y = pd.read_csv(io.StringIO("price\n1.5\n2.5\n4"), dtype=str)
    assert chosen_task(y, "regression") == ("regression", "set by --task")
    with pytest.raises(ValueError, match="--task regression needs a numeric target: price has 'dear' in row 1"):
        chosen_task(pd.DataFrame({"price": ["1", "dear"]}), "regression")


def test_marks_among_numbers_are_missing_targets(tmp_path: Path) -> None:
    path = tmp_path / "homes.csv"
    path.write_text("rooms,kind,price\n1,3,1.5\n2,4,-\n3,-,3\n4,3,none\n5,4,2.5\n")
    file = TableFile.open(path)
    price = _with_targets(file.read(), ["rooms"], ["price"], file)
    assert (price.targets["price"].tolist(), price.n_without_target) == ([1.5, 3, 2.5], 2)
    assert chosen_task(price.targets, "auto")[0] == chosen_task(price.targets, "regression")[0] == "regression"
    kind = _with_targets(file.read(), ["rooms"], ["kind"], file)
    assert kind.y.tolist() == [3, 4, 3, 4]  # as in a file without "-"


def test_text_of_training_is_text_in_a_table_that_holds_only_numbers(tmp_path: Path) -> None:
    schema = [SimpleNamespace(name="c", holds="text"), SimpleNamespace(name="x", holds="numbers")]
    target = SimpleNamespace(name="y", is_numeric=False, classes=np.array(["1", "A"]))
    fitted = SimpleNamespace(preprocessing=SimpleNamespace(schema=schema), targets=[target])
    path = tmp_path / "new.csv"
    path.write_text("c,x,y\n1,1,1\n2,2,1\n")
    file = open_for(SimpleNamespace(model_=fitted), path, TextFormat(sep=","))
    rows = _with_targets(file.read(), ["c", "x"], ["y"], file)
    assert (rows.X["c"].tolist(), rows.X["x"].tolist(), rows.y.tolist()) == (["1", "2"], [1, 2], ["1", "1"])
