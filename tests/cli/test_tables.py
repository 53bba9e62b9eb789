"""Targets of a table as commands read them."""

from __future__ import annotations

import io
from pathlib import Path

import pandas as pd
import pytest

from castlereg.cli.tables import chosen_task, with_targets
from castlereg.data.files import TableFile


def test_classes_that_are_whole_numbers_stay_so_where_some_are_missing(tmp_path: Path) -> None:
    path = tmp_path / "homes.csv"
    path.write_text("rooms,sold,price\n1,0,1.5\n2,,2\n3,1,3\n")
    file = TableFile.open(path)
    _, targets, left_out = with_targets(file.read(), ["rooms"], ["sold", "price"], file)
    assert left_out == 1
    assert targets["sold"].tolist() == [0, 1]
    assert [dtype.kind for dtype in targets.dtypes] == ["i", "f"]


def test_regression_takes_numbers_written_as_text() -> None:
    """Parquet files may hold them; --task auto reads them as numbers too."""
    y = pd.read_csv(io.StringIO("price\n1.5\n2.5\n4"), dtype=str)
    assert chosen_task(y, "regression") == ("regression", "as --task says")
    with pytest.raises(ValueError, match="--task regression needs a target of numbers: price has 'dear' in row 1"):
        chosen_task(pd.DataFrame({"price": ["1", "dear"]}), "regression")
