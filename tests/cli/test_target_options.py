"""Losses and directions on the command line."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import castlereg
from castlereg.cli import app
from castlereg.losses import Quantiles


def run(*arguments: Any) -> Any:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"age": rng.uniform(20, 80, 80), "dose": rng.normal(size=80)})
    frame["visits"] = rng.poisson(np.exp(frame["age"] / 40))
    frame["change"] = frame["dose"] + rng.normal(size=80)
    frame["sick"] = np.where(frame["change"] > 0, "yes", "no")
    path = tmp_path_factory.mktemp("visits") / "visits.csv"
    frame.to_csv(path, index=False)
    return path


def test_quantiles_and_directions_from_fit_to_predict(table: Path, tmp_path: Path) -> None:
    model = tmp_path / "visits.castle"
    # Few whole numbers would be classes without a loss.
    options = ["--loss", "0.2,0.5,0.8", "--rises", "age", "--falls", "dose", "--epochs", 3, "--folds", 2, "-q"]
    done = run("fit", table, "-t", "visits", "--drop", "sick", "--drop", "change", "-o", model, *options)
    assert done.exit_code == 0, done.output
    fitted = castlereg.load(model)
    assert (fitted.loss, fitted.monotone) == (Quantiles((0.2, 0.5, 0.8)), {"age": 1, "dose": -1})
    predicted = run("predict", model, table, "-q")
    assert predicted.exit_code == 0, predicted.output
    frame = pd.read_csv(io.StringIO(predicted.stdout))
    assert list(frame) == ["visits", "visits_0.2", "visits_0.5", "visits_0.8"]
    rows = pd.read_csv(table)[["age", "dose"]]
    np.testing.assert_allclose(frame.iloc[:, 1:], fitted.predict_quantiles(rows), rtol=1e-6)


def test_a_stream_takes_the_same_options(table: Path, tmp_path: Path) -> None:
    model = tmp_path / "visits.castle"
    drop = ["--drop", "sick", "--drop", "change"]
    done = run("fit", table, "-t", "visits", *drop, "--stream", "--loss", "poisson", "--epochs", 1, "-o", model, "-q")
    assert done.exit_code == 0, done.output
    assert castlereg.load(model).loss == "poisson"


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["-t", "change", "--loss", "hubber"], "loss='hubber' must be one of"),
        (["-t", "change", "--loss", "0.9,0.1"], "levels=(0.9, 0.1) must be in ascending order"),
        (["-t", "change", "--loss", "poisson"], "loss='poisson' is for counts"),
        (["-t", "sick", "--loss", "huber"], "sick"),
        (["-t", "sick", "-t", "change", "--loss", "huber"], "--loss is for one numeric --target"),
        (["-t", "change", "--loss", "huber", "--time-limit", "5"], "--loss cannot be combined with --time-limit"),
        (["-t", "change", "--loss", "huber", "--search", "fast"], "--loss cannot be combined with --search fast"),
        (["-t", "change", "--rises", "aeg"], "did you mean 'age'"),
        (["-t", "change", "--rises", "age", "--falls", "age"], "contradict each other"),
    ],
)
def test_errors_are_one_line_with_the_fix(table: Path, arguments: list[str], message: str) -> None:
    done = run("fit", table, *arguments, "-q")
    assert done.exit_code == 2 and message in " ".join(done.output.split()), done.output
    assert "Traceback" not in done.output
