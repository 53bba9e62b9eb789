"""Experiments that TabArena runs by itself, on tables of our own; runs where ``tabarena`` is installed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("tabarena")

from tabarena.benchmark.experiment import TabArenaV0pt1ExperimentBundle
from tabarena.benchmark.task import UserTask
from tabarena.benchmark.task.metadata import TaskMetadataCollection
from tabarena.contexts import AbstractArenaContext

from castlereg import CastleClassifierCV, CastleRegressor, CastleRegressorCV
from castlereg.estimators.base import checked_plan
from castlereg.integrations.flat_options import estimator_options, usual_options
from castlereg.integrations.tabarena import CastleSystem, network_configs, system_configs

pytestmark = pytest.mark.filterwarnings("default")  # those of AutoGluon and OpenML
ROWS = 90


def table(problem: str) -> pd.DataFrame:
    """Numbers, text and a date with missing values; classes are words."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "area": rng.normal(80, 20, ROWS),
            "city": rng.choice(["Lima", "Oslo", "Rome"], ROWS),
            "built": pd.Timestamp("2000-01-01") + pd.to_timedelta(rng.integers(0, 7000, ROWS), "D"),
        }
    )
    value = 0.1 * (frame["area"] - 80) + (frame["city"] == "Oslo") + 0.1 * rng.normal(size=ROWS)
    frame.loc[::5, "area"] = np.nan
    frame.loc[::7, "city"] = None
    labels = {"binary": ["low", "high"], "multiclass": ["low", "mid", "high"]}.get(problem)
    target = value if labels is None else pd.qcut(value, len(labels), labels=labels).astype(object)
    return frame.assign(target=target).astype({"city": "string"} | ({} if labels is None else {"target": "string"}))


def task_of(problem: str, folder: Path) -> tuple[UserTask, Any]:
    task = UserTask(task_name=f"flats_{problem}", task_cache_path=folder)
    kind = "regression" if problem == "regression" else "classification"
    rows = np.random.default_rng(1).permutation(ROWS).tolist()
    made = task.create_task(
        dataset=table(problem), target_feature="target", problem_type=kind, splits={0: {0: (rows[:60], rows[60:])}}
    )
    task.save_task(made)
    return task, made.metadata


@pytest.mark.parametrize("problem", ["regression", "binary", "multiclass"])
def test_tabarena_runs_networks_and_a_search(problem: str, tmp_path: Path) -> None:
    """A default and a drawn network, bagged by TabArena's protocol, and the search as a system."""
    task, metadata = task_of(problem, tmp_path / "tasks")
    context = AbstractArenaContext(task_metadata=TaskMetadataCollection.from_source([metadata]), methods=[])
    networks = TabArenaV0pt1ExperimentBundle(models=[(network_configs(), 1, {"max_epochs": 2})], model_verbosity=None)
    systems = TabArenaV0pt1ExperimentBundle(models=[(system_configs(), 0)], system_experiments=True)
    experiments = [*networks.build_experiments(time_limit=60), *systems.build_experiments(time_limit=2)]
    results = context.build_and_run_jobs(
        experiments, expname=str(tmp_path / "runs"), register=False, user_tasks=[task], debug_mode=True
    )
    assert [result["framework"].split("_")[0] for result in results] == ["CASTLE", "CASTLE", *["CASTLE search"] * 2]
    worst = table(problem)["target"].std() if problem == "regression" else 0.5 if problem == "binary" else np.log(3)
    assert all(result["metric_error"] < 1.5 * worst for result in results)  # no worse than chance, after two epochs
    assert results[-1]["metric_error"] < worst


def test_drawn_configurations_are_valid_options_of_a_network() -> None:
    widths = set()
    for config in network_configs().generate_all_configs_lst(20):
        options = {name: value for name, value in config.items() if name != "ag_args"}
        plan = checked_plan(CastleRegressor(**estimator_options(usual_options(100) | options)), 5)
        widths.add(plan.hidden_layer_sizes)
    assert len(widths) > 3


@pytest.mark.parametrize("problem", ["regression", "multiclass"])
def test_the_system_is_the_search(problem: str) -> None:
    frame = table(problem)
    X, y = frame.drop(columns="target"), frame["target"]
    system = CastleSystem(search="fast", problem_type=problem, eval_metric=None)
    system._fit_system(X, y, problem_type=problem, time_limit=1e-3, random_state=4)
    make = CastleRegressorCV if problem == "regression" else CastleClassifierCV
    by_hand = make(search="fast", time_limit=1e-3, unusable_columns="drop", random_state=4).fit(X, y)
    if problem == "regression":
        np.testing.assert_array_equal(system._predict(X), by_hand.predict(X))
    else:
        shares = system._predict_proba(X)
        assert list(shares.columns) == ["high", "low", "mid"]
        np.testing.assert_array_equal(shares, by_hand.predict_proba(X))
