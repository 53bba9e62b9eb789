"""Files are found in order and refused when they are not the table; nothing of the user's is ever overwritten."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from castlereg.paper.datasets import load
from castlereg.paper.datasets.cells import as_cells
from castlereg.paper.datasets.stored import write_whole
from tests.paper.datasets.conftest import MadeUp

FILE = "boston_housing.csv"


@pytest.fixture
def frame(made_up: MadeUp) -> pd.DataFrame:
    return made_up.make(FILE)


def test_the_first_folder_wins(made_up: MadeUp, frame: pd.DataFrame) -> None:
    write_whole(as_cells(frame), made_up.second / FILE)
    assert load("BH", download=False).source == str(made_up.second / FILE)
    write_whole(as_cells(frame), made_up.first / FILE)
    assert load("BH", download=False).source == str(made_up.first / FILE)
    assert load("BH", download=False, path=made_up.second / FILE).source == str(made_up.second / FILE)


def corrupted(frame: pd.DataFrame) -> dict[str, tuple[str, str]]:
    """Return contents of bad files and what should be said of them."""

    def text(changed: pd.DataFrame) -> str:
        return changed.to_csv(index=False)

    one_cell = frame.copy()
    one_cell.loc[2, "RM"] += 1
    swapped = list(frame.columns)
    swapped[3], swapped[5] = swapped[5], swapped[3]
    return {
        "a dropped row": (text(frame.iloc[1:]), "5 rows instead of 6"),
        "columns that changed places": (text(frame[swapped]), "columns in another order: 'RM' instead of 'CHAS'"),
        "headers that changed places": (text(frame.set_axis(swapped, axis=1)), "columns in another order"),
        "values that changed columns": (text(frame.assign(CHAS=frame["RM"], RM=frame["CHAS"])), "column 'CHAS' has"),
        "a changed cell": (text(one_cell), "column 'RM' has"),
        "a changed header": (
            text(frame.rename(columns={"MEDV": "price"})),
            "no column 'MEDV'; an unknown column 'price'",
        ),
        "no header": (frame.to_csv(index=False, header=False), "5 rows instead of 6"),
        "a truncated file": (text(frame)[:-10], "column "),
        "another separator": (frame.to_csv(index=False, sep=";"), "1 columns instead of 14"),
        "an HTML page": ("<!DOCTYPE html>\n<html><body>Not found</body></html>\n", "1 columns instead of 14"),
        "an HTML page with commas": ("<!DOCTYPE html>\n<a title='x, y, z'>\n", "is not a comma-separated table"),
        "nothing": ("", "is not a comma-separated table"),
    }


def test_a_corrupted_file_is_refused_and_left_alone(
    made_up: MadeUp, frame: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "castlereg.paper.datasets.download.OpenMl.fetch", lambda _: pytest.fail("it must not be downloaded")
    )
    for folder in (made_up.first, made_up.second):
        path = folder / FILE
        path.parent.mkdir(exist_ok=True, parents=True)
        for what, (content, message) in corrupted(frame).items():
            path.write_text(content, encoding="utf-8")
            with pytest.raises(ValueError) as refused:
                load("BH")
            assert message in str(refused.value), what
            assert str(path) in str(refused.value)
            assert path.read_text(encoding="utf-8") == content
        path.unlink()


def test_a_refusal_says_what_to_do(made_up: MadeUp, frame: pd.DataFrame) -> None:
    path = made_up.first / FILE
    write_whole(as_cells(frame.iloc[1:]), path)
    with pytest.raises(ValueError) as refused:
        load("BH")
    assert str(refused.value) == (
        f"boston_housing.csv: 5 rows instead of 6. The file {path} is not the table of the catalogue: "
        "delete it, or replace it with a complete copy"
    )


def test_a_file_that_is_not_there_says_where_to_put_it(made_up: MadeUp, frame: pd.DataFrame) -> None:
    with pytest.raises(FileNotFoundError) as absent:
        load("BH", download=False)
    message = str(absent.value)
    for part in (
        f"{made_up.first} (CASTLEREG_DATA), {made_up.second} (the user's data folder)",
        "downloads are disabled",
        "Save it there as boston_housing.csv: comma-separated, 6 rows and 14 columns, with the header CRIM, ZN, ",
        "https://www.openml.org/d/531",
    ):
        assert part in message
    with pytest.raises(FileNotFoundError, match=r"path='nowhere\.csv' is not a file"):
        load("BH", path="nowhere.csv")


def test_writing_leaves_a_whole_file_or_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cells = pd.DataFrame({"a": ["1"]}, dtype=object)
    path = tmp_path / "new" / "a.csv"
    write_whole(cells, path)
    assert path.read_bytes() == b"a\n1\n"

    def fails(*_: object, **__: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(pd.DataFrame, "to_csv", fails)
    with pytest.raises(OSError, match="no space left"):
        write_whole(cells, path)
    assert [one.name for one in path.parent.iterdir()] == ["a.csv"]
    assert path.read_bytes() == b"a\n1\n"
