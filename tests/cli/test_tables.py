"""Targets of a table as commands read them."""

from __future__ import annotations

import io
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from castlereg.cli.tables import chosen_task, open_for, with_targets
from castlereg.table.files import TableFile
from castlereg.table.schema import ColumnSchema
from castlereg.table.targets import ClassTarget


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
    assert chosen_task(y, "regression") == ("regression", "set by --task")
    with pytest.raises(ValueError, match="--task regression needs a numeric target: price has 'dear' in row 1"):
        chosen_task(pd.DataFrame({"price": ["1", "dear"]}), "regression")


def test_marks_among_numbers_are_missing_targets(tmp_path: Path) -> None:
    path = tmp_path / "homes.csv"
    path.write_text("rooms,kind,price\n1,3,1.5\n2,4,-\n3,-,3\n4,3,none\n5,4,2.5\n")
    file = TableFile.open(path)
    _, price, left_out = with_targets(file.read(), ["rooms"], ["price"], file)
    assert (price["price"].tolist(), left_out) == ([1.5, 3, 2.5], 2)
    assert chosen_task(price, "auto")[0] == chosen_task(price, "regression")[0] == "regression"
    _, kind, _ = with_targets(file.read(), ["rooms"], ["kind"], file)
    assert kind["kind"].tolist() == [3, 4, 3, 4]  # as in a file without "-"


def test_text_of_training_is_text_in_a_table_that_holds_only_numbers(tmp_path: Path) -> None:
    schema = tuple(
        ColumnSchema(name, "categorical", holds, None, 0, False) for name, holds in [("c", "text"), ("x", "numbers")]
    )
    fitted = SimpleNamespace(
        preprocessing=SimpleNamespace(schema=schema), targets=[ClassTarget("y", np.array(["1", "A"]))]
    )
    path = tmp_path / "new.csv"
    path.write_text("c,x,y\n1,1,1\n2,2,1\n")
    file = open_for(SimpleNamespace(model_=fitted), path, {"separator": ","})
    X, y, _ = with_targets(file.read(), ["c", "x"], ["y"], file)
    assert (X["c"].tolist(), X["x"].tolist(), y["y"].tolist()) == (["1", "2"], [1, 2], ["1", "1"])
