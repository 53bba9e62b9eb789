"""Figures tell a whole table from one that was cut, converted or mixed up."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from castlereg.paper.datasets.catalogue import TABLES, all_files
from castlereg.paper.datasets.cells import as_cells
from castlereg.paper.datasets.verification import (
    ColumnFigures,
    differences,
    figures_of,
    from_json,
    known_figures,
    to_json,
)


@pytest.fixture
def table(rng: np.random.Generator) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "size": rng.normal(10, 2, 30).round(2),
            "weight": rng.normal(70, 9, 30).round(1),
            "kind": rng.choice(["a", "b", "c"], 30),
            "code": rng.integers(0, 3, 30),
        }
    )


def remarks(changed: pd.DataFrame, table: pd.DataFrame) -> list[str]:
    return differences(figures_of(as_cells(changed)), figures_of(as_cells(table)))


def test_the_same_table_in_another_order_of_rows_and_spelling_passes(table: pd.DataFrame) -> None:
    cells = as_cells(table.sample(frac=1, random_state=0))
    cells["weight"] = [f"{float(cell):.3f}" for cell in cells["weight"]]
    cells["code"] = [f"{float(cell):.1e}" for cell in cells["code"]]
    assert differences(figures_of(cells), figures_of(as_cells(table))) == []


def test_a_dropped_row(table: pd.DataFrame) -> None:
    assert remarks(table.drop(index=7), table) == ["29 rows instead of 30"]


def test_a_doubled_row(table: pd.DataFrame) -> None:
    assert remarks(table.iloc[[0, 0, *range(2, 30)]], table)
    assert remarks(pd.concat([table, table.iloc[:1]]), table) == ["31 rows instead of 30"]


def test_columns_that_changed_places(table: pd.DataFrame) -> None:
    swapped = table[["weight", "size", "kind", "code"]]
    assert remarks(swapped, table) == ["columns in another order: 'weight' instead of 'size'"]


def test_values_that_changed_columns(table: pd.DataFrame) -> None:
    swapped = table.assign(size=table["weight"], weight=table["size"])
    first, second = remarks(swapped, table)
    assert first.startswith("column 'size' has mean 7")
    assert second.startswith("column 'weight' has mean ")


def test_a_changed_cell(table: pd.DataFrame) -> None:
    table_of_three = table.copy()
    table_of_three.loc[3, "size"] += 0.01
    (remark,) = remarks(table_of_three, table)
    assert remark.startswith("column 'size' has mean ")


def test_cells_that_changed_rows(table: pd.DataFrame) -> None:
    mixed = table.assign(size=table["size"].to_numpy()[::-1])
    (remark,) = remarks(mixed, table)
    assert remark == "counts and means match, but some cells have other values or are in other rows"


def test_a_lost_cell_another_level_and_text_for_numbers(table: pd.DataFrame) -> None:
    changed = table.astype({"code": object})
    changed.loc[0, "size"] = np.nan
    changed.loc[1, "kind"] = "d"
    changed.loc[2, "code"] = "two"
    assert remarks(changed, table) == [
        "column 'size' has 1 missing values instead of 0",
        "column 'kind' has other counts of its values",
        "column 'code' has text instead of numbers",
    ]


def test_changed_headers(table: pd.DataFrame) -> None:
    assert remarks(table.rename(columns={"kind": "sort"}), table) == ["no column 'kind'", "an unknown column 'sort'"]
    assert remarks(table.drop(columns="kind"), table) == ["3 columns instead of 4", "no column 'kind'"]


def test_of_many_differences_a_few_are_shown() -> None:
    table = pd.DataFrame({f"x{j}": [1.0, 2.0] for j in range(9)})
    found = remarks(table + 1, table)
    assert len(found) == 4
    assert found[-1] == "6 more columns differ"


def test_figures_survive_json(table: pd.DataFrame) -> None:
    table["centred"] = np.resize([-1, 1], len(table))  # with a mean of zero
    table.loc[4, "size"] = np.nan
    figures = figures_of(as_cells(table))
    assert figures.columns["centred"] == ColumnFigures(0, 0.0, {"-1": 15, "1": 15})
    assert from_json(json.loads(json.dumps(to_json(figures)))) == figures


def test_every_file_of_the_catalogue_has_figures_of_its_size() -> None:
    assert set(known_figures()) == all_files()
    for entry in TABLES.values():
        if entry.place == "file":
            figures = known_figures()[entry.file]
            assert (figures.rows, len(figures.columns)) == (entry.rows, entry.columns), entry.name


def test_figures_hold_no_rows() -> None:
    for file, figures in known_figures().items():
        for name, column in figures.columns.items():
            assert len(column.levels or ()) <= 10, (file, name)
