"""Results of experiments as files: nothing is lost on the way, and a run goes on with what they have."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest
from benchmarks.paper import files
from benchmarks.paper.files import pack, unpack

from castlereg.paper.experiments.description import Scale
from castlereg.paper.experiments.runner import collected, run, waiting_units
from tests.paper.experiments.counting import Counting


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> Scale:
    monkeypatch.setattr(files, "SCALE", "quick")
    return "quick"


def test_packed_results_come_back_and_are_not_run_again(tmp_path: Path, quick: Scale) -> None:
    experiment = Counting()
    outcome = run([experiment], quick, tmp_path / "first", verbose=False)["counting"]
    pack([experiment], tmp_path / "first" / "units", tmp_path / "packed")
    unpack(tmp_path / "second" / "units", tmp_path / "packed")
    assert waiting_units(experiment, quick, tmp_path / "second") == []
    again = collected([experiment], quick, tmp_path / "second")["counting"]
    pd.testing.assert_frame_equal(again.results, outcome.results, rtol=1e-8)
    assert again.complete


def test_a_file_says_what_each_unit_took(tmp_path: Path, quick: Scale) -> None:
    experiment = Counting()
    run([experiment], quick, tmp_path, verbose=False)
    pack([experiment], tmp_path / "units", tmp_path / "packed")
    lines = [json.loads(line) for line in (tmp_path / "packed" / "counting.jsonl").read_text().splitlines()]
    assert [line["item"]["experiment"] for line in lines] == ["counting"] * 4
    assert all(line["seconds"] >= 0 for line in lines)


def test_what_was_not_run_is_counted(tmp_path: Path, quick: Scale) -> None:
    experiment = Counting()
    run([experiment], quick, tmp_path, verbose=False)
    next((tmp_path / "units").glob("*.json")).unlink()
    outcome = collected([experiment], quick, tmp_path)["counting"]
    assert (len(outcome.results), outcome.messages) == (3, ["1 unit: not run"])
