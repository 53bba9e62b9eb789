"""The real files, where ``CASTLEREG_DATA`` names their folder: whole ones pass, damaged copies are refused."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

from castlereg.paper.datasets import load
from castlereg.paper.datasets.catalogue import TABLES, all_files
from castlereg.paper.datasets.cells import as_cells, read_cells
from castlereg.paper.datasets.make_figures import main
from castlereg.paper.datasets.stored import write_whole
from castlereg.paper.datasets.verification import differences, figures_of, from_json, known_figures

STORED = [name for name, entry in TABLES.items() if entry.place == "file"]


@pytest.mark.parametrize("file", sorted(all_files()))
def test_every_file_passes_its_figures(file: str, real_folder: Path) -> None:
    cells = read_cells(real_folder / file)
    assert differences(figures_of(cells), known_figures()[file]) == []


@pytest.mark.parametrize("name", STORED)
def test_numbers_that_another_program_read_pass(name: str, real_folder: Path) -> None:
    """As an origin sends them: through pandas, whose parser may be off in the last digit."""
    frame = pd.read_csv(real_folder / TABLES[name].file)
    assert differences(figures_of(as_cells(frame)), known_figures()[TABLES[name].file]) == []


@pytest.mark.parametrize("name", STORED)
def test_a_dropped_row_and_swapped_columns_are_refused(
    name: str, real_folder: Path, folders: tuple[Path, Path]
) -> None:
    path = folders[0] / TABLES[name].file
    cells = read_cells(real_folder / path.name)
    write_whole(cells.drop(index=len(cells) // 2), path)
    with pytest.raises(ValueError, match=f"{len(cells) - 1} rows instead of {len(cells)}"):
        load(name)
    names = list(cells.columns)
    write_whole(cells[[*names[:-2], names[-1], names[-2]]], path)
    with pytest.raises(ValueError, match="columns in another order"):
        load(name)
    write_whole(cells[[*names[:-2], names[-1], names[-2]]].set_axis(names, axis=1), path)
    with pytest.raises(ValueError, match="is not the table of the catalogue"):
        load(name)


def test_the_figures_can_be_made_anew(real_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    some = ["boston_housing.csv", "facebook_metrics.csv", "sachs_edges.csv"]
    monkeypatch.setattr("castlereg.paper.datasets.make_figures.all_files", lambda: set(some))
    main(real_folder, tmp_path / "figures.json")
    made = json.loads((tmp_path / "figures.json").read_text())
    assert {file: from_json(content) for file, content in made.items()} == {
        file: known_figures()[file] for file in some
    }
