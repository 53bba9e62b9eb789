"""The catalogue agrees with the paper, with the files and with itself."""

from __future__ import annotations

from typing import Any

import pytest

from castlereg.paper.datasets import catalogue
from castlereg.paper.datasets.catalogue import GRAPHS, TABLES, find_graph, find_table
from castlereg.paper.datasets.verification import known_figures

# The paper's table of datasets: rows and features.
PAPER = {
    "BH": (506, 14),
    "WQ": (4894, 12),
    "FB": (500, 19),
    "BC": (779, 14),
    "SP": (649, 33),
    "CM": (1994, 128),
    "CC": (1472, 9),
    "PD": (768, 9),
    "LV": (504, 20),
    "SH": (270, 13),
    "RP": (1151, 20),
    "ME": (15786, 139),
    "MG": (40367, 33),
}


def test_the_papers_13_tables_are_there() -> None:
    assert {entry.abbreviation: entry.paper_size for entry in TABLES.values() if entry.abbreviation} == PAPER


def test_one_row_per_table_and_nothing_empty_that_matters() -> None:
    table = catalogue()
    assert list(table.index) == [*TABLES, *GRAPHS]
    assert table.index.is_unique
    assert (table[["title", "task", "page", "licence", "citation", "place"]] != "").all(axis=None)


def test_columns_that_entries_name_exist() -> None:
    for entry in TABLES.values():
        if entry.place != "file":
            continue
        columns = set(known_figures()[entry.file].columns)
        named = {entry.target, *entry.binary, *entry.nominal, *entry.ordinal}
        for variant in entry.variants.values():
            named |= {*variant.drop, *variant.missing_codes, variant.target or entry.target}
        assert named <= columns, entry.name
        assert len(entry.binary + entry.nominal + entry.ordinal) == len(
            {*entry.binary, *entry.nominal, *entry.ordinal}
        ), entry.name


def test_binary_columns_have_two_values_and_the_half_empty_ones_are_dropped() -> None:
    for entry in TABLES.values():
        if entry.place != "file":
            continue
        figures = known_figures()[entry.file]
        kept = set(figures.columns) - set(entry.variants["default"].drop)
        for name in kept:
            levels, missing = figures.columns[name].levels, figures.columns[name].missing
            assert (levels is not None and len(levels) == 2) == (name in entry.binary) or name in (
                "B02[C-N]",
                entry.target,
            )
            assert 2 * missing <= figures.rows


@pytest.mark.parametrize("name", ["BH", "bh", "boston_housing", "Boston_Housing"])
def test_names_in_any_case(name: str) -> None:
    assert find_table(name).abbreviation == "BH"


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("bostn_housing", "did you mean 'boston_housing'"),
        ("heart", "did you mean 'statlog_heart'"),
        ("wine_quality", "'wine_quality_white'"),
        ("../boston_housing", "did you mean 'boston_housing'"),
        ("/etc/passwd", "choose from boston_housing, "),
        ("", "choose from boston_housing, "),
        (None, "choose from boston_housing, "),
        (["BH"], "choose from"),
        ("sachs", r"load_graph_data\('sachs'\)"),
        ("tuebingen_pairs", r"load_pairs\(\)"),
    ],
)
def test_unknown_names_are_refused_with_the_nearest(name: Any, hint: str) -> None:
    with pytest.raises(ValueError, match=hint):
        find_table(name)


def test_unknown_graphs_are_refused() -> None:
    assert find_graph("Asia").name == "asia"
    with pytest.raises(ValueError, match="did you mean 'sachs_observational'"):
        find_graph("sachs_observation")
    with pytest.raises(ValueError, match="choose from sachs, sachs_observational, asia, alarm"):
        find_graph("tuebingen_pairs")
