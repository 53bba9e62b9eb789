"""The command line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from castlereg.cli import app
from castlereg.paper.experiments import registry
from castlereg.paper.experiments.registry import EXPERIMENTS
from tests.paper.experiments.counting import Counting

RUN = CliRunner()


@pytest.fixture
def counting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(registry.EXPERIMENTS, "counting", Counting())


def test_list_names_every_experiment() -> None:
    result = RUN.invoke(app, ["experiment", "--list"])
    assert result.exit_code == 0
    assert all(name in result.output for name in EXPERIMENTS)
    listed = json.loads(RUN.invoke(app, ["experiment", "--list", "--json"]).stdout)["experiments"]
    assert [one["name"] for one in listed] == list(EXPERIMENTS)


def test_a_misspelt_name_suggests_the_nearest() -> None:
    result = RUN.invoke(app, ["experiment", "real_regresion"])
    assert result.exit_code == 2
    assert "there is no experiment 'real_regresion'; did you mean 'real_regression'?" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["experiment"], "no experiment is named: pass names or --all"),
        (["experiment", "ablation", "--scale", "papr"], "--scale='papr'"),
    ],
)
def test_what_cannot_run_is_rejected(arguments: list[str], message: str) -> None:
    result = RUN.invoke(app, arguments)
    assert result.exit_code == 2
    assert message in result.stderr


@pytest.mark.usefixtures("counting")
def test_run_writes_tables_and_a_page_and_goes_on_where_it_was(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    arguments = ["experiment", "counting", "--scale", "standard", "--output", str(tmp_path / "out"), "--quiet"]
    assert "4 of 4 units to run" in RUN.invoke(app, [*arguments, "--dry-run"]).output
    result = RUN.invoke(app, [*arguments, "--page", str(page)])
    assert result.exit_code == 0, result.output
    table = (tmp_path / "out" / "counting" / "table.md").read_text()
    assert "| 3 | 1.286 | a\\|b |" in table
    assert "| squares grow | reproduced | up to 1.286 |" in table
    assert (tmp_path / "out" / "counting" / "table.csv").read_text().startswith("n,square,text\n0,0,a|b\n")
    assert "| Squares | Table 0 | squares grow | reproduced |" in page.read_text()
    assert "castlereg 0" in page.read_text()
    assert "0 of 4 units to run" in RUN.invoke(app, [*arguments, "--dry-run"]).output
    planned = json.loads(RUN.invoke(app, [*arguments, "--dry-run", "--json"]).stdout)
    assert planned["experiments"] == [{"name": "counting", "units": 4, "to_run": 0, "seconds": 0}]
    (facts,) = json.loads(RUN.invoke(app, [*arguments, "--json"]).stdout)["experiments"]
    assert (facts["done"], facts["units"], facts["messages"]) == (4, 4, [])
    assert str(tmp_path / "out" / "counting" / "table.md") in facts["files"]


@pytest.mark.usefixtures("counting")
def test_a_page_that_cannot_be_written_is_named_before_anything_runs(tmp_path: Path) -> None:
    result = RUN.invoke(app, ["experiment", "counting", "--output", str(tmp_path / "out"), "--page", str(tmp_path)])
    assert result.exit_code == 2
    assert "it is a folder; name a file in it" in result.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.usefixtures("counting")
def test_a_full_disk_leaves_the_older_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "page" / "page.md"
    arguments = ["experiment", "counting", "--output", str(tmp_path / "out"), "--page", str(page), "--quiet"]
    assert RUN.invoke(app, arguments).exit_code == 0
    before = page.read_text()

    def fails(_: int) -> None:
        raise OSError(28, "No space left on device", "page.md")

    monkeypatch.setattr("castlereg.paper.experiments.results.machine", lambda: "another machine")
    monkeypatch.setattr("castlereg.paper.experiments.results.write_results", lambda *_: [])
    monkeypatch.setattr(os, "fsync", fails)
    result = RUN.invoke(app, arguments)
    assert result.exit_code == 2
    assert "page.md: No space left on device; the results are saved: run the command again" in result.stderr
    assert page.read_text() == before
    assert [path.name for path in page.parent.iterdir() if path.is_file()] == ["page.md"]


@pytest.mark.usefixtures("counting")
def test_the_quick_scale_gives_no_verdict(tmp_path: Path) -> None:
    RUN.invoke(app, ["experiment", "counting", "--output", str(tmp_path), "--quiet"])
    table = (tmp_path / "counting" / "table.md").read_text()
    assert "squares grow" not in table
    assert "are not comparable with the paper" in table


def test_a_missing_table_is_named_once_and_the_rest_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(registry.EXPERIMENTS, "counting", Counting(fails_at=1))
    result = RUN.invoke(app, ["experiment", "counting", "--output", str(tmp_path), "--quiet"])
    assert result.exit_code == 1
    assert "3 of 4 units done" in result.output
    assert "1 unit: FileNotFoundError: no table 1" in result.stderr
    assert "**3 of 4 units done.**" in (tmp_path / "counting" / "table.md").read_text()


@pytest.mark.usefixtures("counting")
def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    result = RUN.invoke(app, ["experiment", "counting", "--output", str(tmp_path / "file" / "out"), "--quiet"])
    assert result.exit_code == 2
    assert "the folder for the results cannot be created" in result.stderr
    assert "choose another --output" in result.stderr


def test_help_without_arguments() -> None:
    result = RUN.invoke(app, [])
    assert "experiment" in result.output


def test_without_typer_a_message_names_the_extra() -> None:
    script = "import sys; sys.modules['typer'] = None\nfrom castlereg.__main__ import main\nmain()"
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert result.returncode == 1
    assert result.stderr.strip() == 'the command line needs typer: pip install "castlereg[cli]"'
