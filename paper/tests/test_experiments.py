"""Every experiment at the quick scale, and what holds for all of them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from castlereg_paper.cli import main
from castlereg_paper.comparison import METHODS, REFIT, fold_scores, ranks, ranks_among
from castlereg_paper.experiments import EXPERIMENTS, SCALES, printed
from castlereg_paper.framework import item_key


@pytest.mark.parametrize("name", EXPERIMENTS)
@pytest.mark.parametrize("scale", SCALES)
def test_units_are_plain_and_different(name: str, scale: str) -> None:
    experiment = EXPERIMENTS[name]
    units = experiment.units(scale)  # type: ignore[arg-type]
    assert len({item_key(experiment.item(unit)) for unit in units}) == len(units)
    assert units or experiment.sources
    for unit in units:
        assert json.loads(json.dumps(unit)) == dict(unit)
        assert experiment.cost(unit) > 0


def test_all_experiments_run_at_the_quick_scale(tmp_path: Path) -> None:
    arguments = ["run", "--all", "--scale", "quick", "--jobs", "2", "--output", str(tmp_path), "--quiet"]
    assert main([*arguments, "--page", str(tmp_path / "results.md")]) == 0
    for name, experiment in EXPERIMENTS.items():
        assert len(pd.read_csv(tmp_path / name / "table.csv")) > 0
        if name != "dataset_table":
            assert (tmp_path / name / "figure.png").stat().st_size > 5000
        assert experiment.title in (tmp_path / "results.md").read_text()


def test_ranks_are_highest_for_the_best_and_need_every_method() -> None:
    results = pd.DataFrame(
        {"fold": [0, 0, 0, 1, 1], "method": ["a", "b", "c", "a", "b"], "score": [0.3, 0.1, 0.2, 0.5, 0.4]}
    )
    assert ranks(results, ["fold"]).tolist()[:3] == [1, 3, 2]
    assert ranks(results, ["fold"], higher_is_better=True).tolist()[:3] == [3, 1, 2]
    assert ranks(results, ["fold"]).isna().tolist() == [False, False, False, True, True]


def test_printed_figures_are_those_of_the_paper() -> None:
    regression = printed.TABLES["regression"].pivot_table(index="row", columns="column", values="mean")
    classification = printed.TABLES["classification"].pivot_table(index="row", columns="column", values="mean")
    assert regression.shape == classification.shape == (7, 10)
    assert set(regression.columns) == set(METHODS)
    assert (regression.idxmin(axis=1) == "CASTLE").all()  # bold in the paper
    assert (classification.drop(index="LV").idxmax(axis=1) == "CASTLE").all()
    assert classification.loc["LV"].idxmax() == "Input Noise"  # 0.597 against the bold 0.595
    assert printed.TABLES["linear_toy"].query("row == 'CASTLE' and column == 50000")["mean"].item() == 1.004
    whole = printed.TABLES["ablation_regression"].query("column == 'L + R + V'").set_index("row")["mean"]
    assert (whole == regression.loc[whole.index, "CASTLE"]).all()


def test_a_search_of_ours_is_ranked_in_the_place_of_castle() -> None:
    results = pd.DataFrame({"method": ["Baseline", "L1", "CASTLE", REFIT], "score": [0.4, 0.2, 0.3, 0.1]})
    results["fold"] = 0
    assert ranks_among(results, METHODS, ["fold"]).tolist() == [1, 3, 2, 3]
    without = results[results["method"] != REFIT]
    assert ranks_among(without, METHODS, ["fold"]).tolist() == [1, 3, 2]


def test_the_first_folds_are_those_of_a_whole_run() -> None:
    rng = np.random.default_rng(0)
    X, y = pd.DataFrame(rng.standard_normal((120, 3))), pd.Series(rng.standard_normal(120))
    options = {"task": "regression", "seed": 3, "cv": 4, "max_epochs": 3}
    whole = fold_scores(X, y, ((),), **options)
    first = fold_scores(X, y, ((),), folds=2, **options)
    assert [record["score"] for record in first] == [record["score"] for record in whole[:2]]
