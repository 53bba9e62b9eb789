"""A few cases of the campaign, and the campaign itself: it finds what is wrong, goes on, and shows its figures."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from fuzz import kills, limits, model_files, table_files, tables, threads
from fuzz.byte_mutations import MUTATIONS, mutated
from fuzz.campaign import PARTS, Log, Part, Worker, run
from fuzz.odd_tables import problem
from fuzz.page import PAGE, RESULTS, rendered
from fuzz.verdict import Finding, check_clear
from fuzz.worker import MODULES

import castlereg
from castlereg.estimators.base import NetworkEstimator
from castlereg.table.reading import read_columns
from tests.fitted_models import fitted

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.xdist_group("model files")]


@pytest.fixture(autouse=True)
def _models_of_other_tests(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    saved = []
    for which in ("CastleRegressor", "CastleClassifierCV"):
        model, X, _, _ = fitted(which)
        castlereg.save(model, tmp_path / "model")
        saved.append(model_files.Original((tmp_path / "model").read_bytes(), pd.DataFrame(X), model.predict(X)))
    (tmp_path / "model").unlink()
    for module in (model_files, threads):
        monkeypatch.setattr(module, "originals", lambda _: saved)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_tables(seed: int, tmp_path: Path) -> None:
    assert tables.check(seed, tmp_path)["tables"] == 1


def test_odd_tables_are_read_or_raise_on_purpose() -> None:
    """The part of the cases that needs no training."""
    for seed in range(200):
        try:
            read_columns(problem(seed).X)
        except Exception as error:
            check_clear(error)


def test_model_files(tmp_path: Path) -> None:
    counts = [model_files.check(seed, _new(tmp_path / str(seed))) for seed in range(6)]
    assert sum(count["files"] for count in counts) > 50
    assert sum(count["rejected"] for count in counts) > 40


def test_table_files(tmp_path: Path) -> None:
    for seed in range(25):
        assert table_files.check(seed, _new(tmp_path / str(seed)))["files"] == table_files.FILES_OF_CASE


def test_threads(tmp_path: Path) -> None:
    assert threads.check(0, _new(tmp_path / "case"))["threads"] == 150


def _new(folder: Path) -> Path:
    folder.mkdir()
    return folder


# --- the campaign --------------------------------------------------------------------------------


def test_the_same_seed_is_the_same_problem() -> None:
    for seed in range(20):
        first, again = problem(seed), problem(seed)
        assert first.names == again.names
        assert repr(first.X) == repr(again.X)
        assert repr(first.estimator) == repr(again.estimator)
        assert isinstance(first.estimator, NetworkEstimator)


def test_errors_that_were_not_raised_on_purpose_are_findings() -> None:
    def caught(function: object) -> Exception:
        try:
            function()  # type: ignore[operator]
        except Exception as error:
            return error
        raise AssertionError

    for function in (lambda: {}["a"], lambda: np.zeros(2) @ np.zeros(3), lambda: int("x")):
        with pytest.raises(Finding, match=r"unhandled|on purpose"):
            check_clear(caught(function))
    check_clear(caught(lambda: read_columns([["a", 1], [2, "b"]])))


def test_every_mutation_changes_bytes() -> None:
    content = bytes(range(256)) * 4
    for mutation in MUTATIONS:
        rng = np.random.default_rng(0)
        assert any(mutation(content, rng) != content for _ in range(3))
    assert mutated(content, np.random.default_rng(1)) == mutated(content, np.random.default_rng(1))


def test_a_campaign_goes_on_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def answer(self: Worker, seed: int) -> dict[str, object]:
        asked.append(seed)
        wrong = {"finding": "KeyError: 'a'", "trace": ""} if seed == 3 and len(asked) < 5 else {"counts": {"tables": 1}}
        return {"seed": seed, "seconds": 0.1, **wrong}

    monkeypatch.setattr(Worker, "answer", answer)
    part = Part("tables", "", 10)
    log = run(part, tmp_path, count=4, jobs=1, seconds=None)
    assert asked == [0, 1, 2, 3]
    assert [answer["seed"] for answer in log.findings()] == [3]
    (tmp_path / "tables.jsonl").open("a").write('{"seed": 4, "sec')  # killed while it was writing
    log = run(part, tmp_path, count=6, jobs=1, seconds=None)
    assert asked[4:] == [3, 4, 5]
    assert log.totals() == {"tables": 6}
    assert run(part, tmp_path, count=10, jobs=1, seconds=0.0).waiting(10) == [6, 7, 8, 9]


def test_a_killed_worker_is_a_finding(tmp_path: Path) -> None:
    worker = Worker(Part("nothing", "", 1), tmp_path)  # ends at once: there is no such part
    assert "crashed" in worker.answer(0)["finding"]


def test_parts_have_modules() -> None:
    assert PARTS.keys() == MODULES.keys()
    assert {"fit", "fit --report", "predict", "experiment"} <= kills.COMMANDS.keys()
    assert len(limits.CASES) > 8


def test_the_page_shows_the_recorded_figures() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert page == rendered(page, json.loads(RESULTS.read_text(encoding="utf-8")))


def test_a_log_keeps_the_last_answer(tmp_path: Path) -> None:
    log = Log(tmp_path, "csv")
    log.add({"seed": 0, "finding": "x", "trace": "", "seconds": 1.0})
    log.add({"seed": 0, "counts": {"files": 10}, "seconds": 1.0})
    assert Log(tmp_path, "csv").findings() == []
    assert Log(tmp_path, "csv").totals() == {"files": 10}
