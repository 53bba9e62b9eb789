"""Decimal commas and thousands."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from castlereg.table.files import TableFile
from castlereg.table.number_marks import plain_numbers


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
    with pytest.warns(UserWarning, match=r"'1,234' in column 'a' of line 2, read with .*: pass decimal=','"):
        frame = read(tmp_path / "a.csv", 'a,b\n"1,234",x\n"12,500",y\n')
    assert frame["a"].tolist() == [1234, 12500]


def test_marks_of_missing_values_among_decimal_commas(tmp_path: Path) -> None:
    frame = read(tmp_path / "a.csv", "a;b\n1,5;x\n-;y\n2,5;z\n")
    assert frame["a"].tolist() == ["1.5", "-", "2.5"]  # numbers, once the mark is known


def test_marks_that_come_late(tmp_path: Path) -> None:
    early = "a;b\n" + f"1;{'x' * 60}\n" * 1_200
    assert read(tmp_path / "a.csv", early + "1,5;x\n")["a"].max() == 1.5
    assert read(tmp_path / "a.csv", early + "1.234;x\n1,5;x\n")["a"].max() == 1234
    assert read(tmp_path / "a.csv", early + "1.234;x\nnew;x\n")["a"].iloc[-2] == "1.234"
    for late in ("1.234", "1,234"):
        with pytest.raises(ValueError, match=f"'{late}' in column 'a' of line 1202, which may have decimals .*: pass"):
            read(tmp_path / "a.csv", early + f"{late};x\n")
    with pytest.raises(ValueError, match=r"'1,5' in column 'a', but numbers are read with decimal='.': pass"):
        read(tmp_path / "a.csv", early.replace(";", ",") + '"1,5",x\n')


def test_whole_numbers_beyond_64_bits(tmp_path: Path) -> None:
    frame = read(tmp_path / "a.csv", "id,gap\n12345678901234567890123,-1e400\n2,\n")
    assert frame["id"].tolist() == [12345678901234567890123.0, 2]
    for cells in ([10**22, 2], [10**22, None], [int("1" * 400)]):
        numbers = plain_numbers(pd.Series(cells, dtype=object), ".", "file")
        assert numbers.dtype.kind == "f"
        assert numbers[0] == float(str(cells[0]))


def test_text_stays_text() -> None:
    for cells in (["1,2,3", "1"], ["1.5 m", "2 m"], ["x", "1,5"], ["0,123.4", "1"]):
        column = pd.Series(cells)
        assert plain_numbers(column, ".", "file") is column
