"""The map from the paper to the code names things that exist, and misses no equation, table or figure."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROWS = [
    [cell.strip() for cell in line.strip().strip("|").split("|")]
    for line in (ROOT / "docs" / "paper_map.md").read_text(encoding="utf-8").splitlines()
    if line.startswith("|") and not line.startswith(("| paper", "| ---"))
]
NAMES = sorted({name for row in ROWS for name in re.findall(r"`((?:castlereg|benchmarks)\.[\w.]+)`", row[-1])})


@pytest.mark.parametrize("name", NAMES)
def test_every_name_exists(name: str) -> None:
    module, attribute = name.rsplit(".", 1)
    assert hasattr(importlib.import_module(module), attribute)


def test_every_row_has_code_or_says_that_it_has_none() -> None:
    for row in ROWS:
        assert len(row) == 3, row
        assert re.search(r"`(castlereg|benchmarks)\.|no code", row[-1]), row


def test_every_equation_table_and_figure_has_a_row() -> None:
    listed = " ".join(row[0] for row in ROWS)
    expected = (
        [f"eq. {i}" for i in range(1, 9)] + [f"Table {i}" for i in range(1, 9)] + [f"Figure {i}" for i in range(1, 9)]
    )
    missing = [item for item in [*expected, "eq. 9 to 12", "Algorithm 1", "Theorem 1"] if item not in listed]
    assert not missing
