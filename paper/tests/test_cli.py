"""The command line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from counting import Counting

from castlereg_paper import experiments
from castlereg_paper.cli import main
from castlereg_paper.experiments import EXPERIMENTS

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def counting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(experiments.EXPERIMENTS, "counting", Counting())


@pytest.fixture
def homes(tmp_path: Path, rng: np.random.Generator) -> Path:
    frame = pd.DataFrame({"area": rng.normal(size=60), "rooms": rng.integers(1, 6, 60)})
    frame.assign(price=2.0 * frame["area"] + frame["rooms"]).to_csv(tmp_path / "homes.csv", index=False)
    return tmp_path / "homes.csv"


def test_list_names_every_experiment(capsys: Capture) -> None:
    assert main(["list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["name", *EXPERIMENTS]
    assert main(["list", "--json"]) == 0
    assert [one["name"] for one in json.loads(capsys.readouterr().out)["experiments"]] == list(EXPERIMENTS)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("run real_regresion", "there is no experiment 'real_regresion'; did you mean 'real_regression'?"),
        ("run", "no experiment is named: pass names or --all"),
        ("run ablation --scale papr", "--scale='papr' is not one of"),
        ("run ablation --all", "--all cannot be combined with names"),
        ("compare {homes} -t prise", "homes.csv has no column 'prise'; did you mean 'price'?"),
        ("compare {homes} -t price --categorical room", "no column 'room'; did you mean 'rooms'?"),
        ("compare nowhere.csv -t price", "nowhere.csv: No such file or directory"),
        ("compare {homes} -t price --method dropot", "unknown method 'dropot'"),
        ("datasets boston_hosing", "did you mean 'boston_housing'?"),
        ("datasets --variant default", "--variant needs the name of a table"),
        ("datasets --output x.csv", "--output needs the name of a table"),
    ],
)
def test_what_cannot_run_ends_with_one_line(arguments: str, message: str, homes: Path, capsys: Capture) -> None:
    assert main(arguments.format(homes=homes).split()) == 2
    captured = capsys.readouterr()
    assert captured.err.startswith("castlereg-paper: ") and captured.err.count("\n") == 1
    assert message in captured.err
    assert captured.out == ""


@pytest.mark.usefixtures("counting")
def test_run_writes_tables_and_a_page_and_continues(tmp_path: Path, capsys: Capture) -> None:
    page = tmp_path / "page.md"
    arguments = ["run", "counting", "--scale", "standard", "--output", str(tmp_path / "out"), "--quiet"]
    assert main([*arguments, "--dry-run"]) == 0
    assert "4 of 4 units to run" in capsys.readouterr().out
    assert main([*arguments, "--page", str(page)]) == 0
    table = (tmp_path / "out" / "counting" / "table.md").read_text()
    assert "| 3 | 1.286 | a\\|b |" in table
    assert "| squares grow | reproduced | up to 1.286 |" in table
    assert (tmp_path / "out" / "counting" / "table.csv").read_text().startswith("n,square,text\n0,0,a|b\n")
    assert "| Squares | Table 0 | squares grow | reproduced |" in page.read_text()
    assert "castlereg 0" in page.read_text()
    assert main([*arguments, "--dry-run"]) == 0
    assert "0 of 4 units to run" in capsys.readouterr().out
    assert main([*arguments, "--dry-run", "--json"]) == 0
    planned = json.loads(capsys.readouterr().out)
    assert planned["experiments"] == [{"name": "counting", "units": 4, "to_run": 0, "seconds": 0}]
    assert main([*arguments, "--json"]) == 0
    (facts,) = json.loads(capsys.readouterr().out)["experiments"]
    assert (facts["done"], facts["units"], facts["messages"]) == (4, 4, [])
    assert str(tmp_path / "out" / "counting" / "table.md") in facts["files"]


@pytest.mark.usefixtures("counting")
def test_paths_that_cannot_be_written_are_named_before_anything_runs(tmp_path: Path, capsys: Capture) -> None:
    assert main(["run", "counting", "--output", str(tmp_path / "out"), "--page", str(tmp_path)]) == 2
    assert "it is a folder; name a file in it" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
    (tmp_path / "file").write_text("")
    assert main(["run", "counting", "--output", str(tmp_path / "file" / "out"), "--quiet"]) == 2
    assert "Not a directory" in capsys.readouterr().err


@pytest.mark.usefixtures("counting")
def test_a_full_disk_leaves_the_older_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    page = tmp_path / "page" / "page.md"
    arguments = ["run", "counting", "--output", str(tmp_path / "out"), "--page", str(page), "--quiet"]
    assert main(arguments) == 0
    before = page.read_text()

    def fails(_: int) -> None:
        raise OSError(28, "No space left on device", "page.md")

    monkeypatch.setattr("castlereg_paper.pages.machine", lambda: "another machine")
    monkeypatch.setattr("castlereg_paper.pages.write_results", lambda *_: [])
    monkeypatch.setattr(os, "fsync", fails)
    assert main(arguments) == 2
    assert "No space left on device; the results are saved: run the command again" in capsys.readouterr().err
    assert page.read_text() == before
    assert [path.name for path in page.parent.iterdir() if path.is_file()] == ["page.md"]


def test_the_quick_scale_gives_no_verdict_and_a_missing_table_is_named_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setitem(experiments.EXPERIMENTS, "counting", Counting(fails_at=1))
    assert main(["run", "counting", "--output", str(tmp_path), "--quiet"]) == 1
    captured = capsys.readouterr()
    assert "3 of 4 units done" in captured.out
    assert "1 unit: FileNotFoundError: no table 1" in captured.err
    table = (tmp_path / "counting" / "table.md").read_text()
    assert "**3 of 4 units done.**" in table
    assert "squares grow" not in table
    assert "are not comparable with the paper" in table


def test_compare_prints_the_methods(homes: Path, tmp_path: Path, capsys: Capture) -> None:
    arguments = ["compare", str(homes), "-t", "price", "--method", "Baseline", "--method", "L2", "--folds", "2"]
    arguments += ["--epochs", "2", "--drop", "rooms", "--output", str(tmp_path / "results")]
    assert main(arguments) == 0
    assert "2 methods on 60 rows x 1 features, regression of 'price'" in capsys.readouterr().out
    assert len(list((tmp_path / "results").iterdir())) == 2
    assert main([*arguments, "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert {row["method"] for row in facts["methods"]} == {"Baseline", "L2"}
    assert (facts["rows"], facts["target"]) == (60, "price")


def test_datasets_are_listed_and_written(tmp_path: Path, capsys: Capture) -> None:
    assert main(["datasets", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)["tables"]
    assert {"name": "diabetes", "rows": 442, "columns": 11}.items() <= {one["name"]: one for one in listed}[
        "diabetes"
    ].items()
    assert main(["datasets", "diabetes", "-o", str(tmp_path / "diabetes.csv")]) == 0
    assert "442" in capsys.readouterr().out
    assert pd.read_csv(tmp_path / "diabetes.csv").shape == (442, 11)


def test_the_module_is_a_command() -> None:
    result = subprocess.run(
        [sys.executable, "-m", "castlereg_paper", "list"], capture_output=True, text=True, check=True
    )
    assert "toy_nonlinear" in result.stdout
