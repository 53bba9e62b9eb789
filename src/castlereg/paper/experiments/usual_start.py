"""Beyond the paper: the benchmarks with the usual start of their input layers, CASTLE with its small one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from castlereg.paper.datasets import load
from castlereg.paper.experiments.description import Experiment, Record, Scale, Settings, Verdict
from castlereg.paper.experiments.protocol import OURS, method_scores, ranks
from castlereg.paper.experiments.real_classification import RealClassification
from castlereg.paper.experiments.real_regression import RealRegression
from castlereg.paper.experiments.real_tables import FOLD, RealTables, protocol_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_TASKS: dict[str, RealTables] = {"regression": RealRegression(), "classification": RealClassification()}


class UsualStart(Experiment):
    """How much of CASTLE's lead is the small start of its input layers, which it cannot do without.

    The paper says that all methods start from the same weights; its networks may yet have started as networks usually
    do. Everything else is as in the experiments on real tables, whose scores stand beside.
    """

    name = "usual_start"
    title = "Benchmarks with the usual start"
    shown_in = "beyond the paper"
    sources = ("real_regression", "real_classification")

    def units(self, scale: Scale) -> list[Settings]:
        """List the units of the real tables without CASTLE, with another start."""
        return [
            {**unit, "task": task, "input_init": "glorot"}
            for task, real in _TASKS.items()
            for unit in real.units(scale)
            if unit["method"] not in ("CASTLE", *OURS)
            if scale != "quick" or task == "regression"
        ]

    def measure(self, settings: Settings) -> list[Record]:
        """Score one method on one split of one table."""
        data = load(str(settings["table"]), variant=str(settings["variant"]))
        return method_scores(
            str(settings["method"]),
            data.X,
            data.y,
            task=str(settings["task"]),
            input_init=str(settings["input_init"]),
            **protocol_of(settings),
        )

    def cost(self, settings: Settings) -> float:
        """Guess as on the real tables."""
        return _TASKS[str(settings["task"])].cost(settings)

    def _ranked(self, results: pd.DataFrame) -> pd.DataFrame:
        """Rank CASTLE with its small start among the others with the usual one."""
        usual = results[results["experiment"] == self.name]
        castle = results[(results["experiment"] != self.name) & (results["method"] == "CASTLE")]
        castle = castle.assign(task=castle["experiment"].str.removeprefix("real_"))
        both = pd.concat([usual, castle], ignore_index=True)
        parts = [
            own.assign(rank=ranks(own, FOLD, higher_is_better=task == "classification"))
            for task, own in both.groupby("task", sort=False)
        ]
        return pd.concat(parts, ignore_index=True).dropna(subset="rank")

    def summary(self, results: pd.DataFrame) -> pd.DataFrame:
        """Scores with both starts by table and method, and ranks against CASTLE."""
        ranked = self._ranked(results)
        frame = ranked.groupby(["task", "table", "method"], sort=False).agg(
            splits=("split", "nunique"), usual=("score", "mean"), rank=("rank", "mean")
        )
        small = results[results["experiment"] != self.name]
        kept = ranked[["task", "table", "split"]].drop_duplicates()
        small = small.assign(task=small["experiment"].str.removeprefix("real_")).merge(
            kept, on=["task", "table", "split"]
        )
        frame.insert(2, "small", small.groupby(["task", "table", "method"])["score"].mean().reindex(frame.index))
        frame = frame.reset_index()
        frame.loc[frame["method"] == "CASTLE", "usual"] = np.nan
        return frame

    def draw(self, results: pd.DataFrame) -> Figure:
        """Draw the average ranks of CASTLE and of the others with the usual start."""
        import matplotlib.pyplot as plt

        ranked = self._ranked(results)
        tasks = list(dict.fromkeys(ranked["task"]))
        figure, axes = plt.subplots(1, len(tasks), figsize=(4.8 * len(tasks), 3.4), layout="constrained", squeeze=False)
        for ax, task in zip(axes.flat, tasks, strict=True):
            means = ranked[ranked["task"] == task].groupby("method")["rank"].mean().sort_values()
            colours = ["#d9480f" if method == "CASTLE" else "#9aa7b4" for method in means.index]
            ax.barh(list(means.index), means, color=colours)
            ax.set(title=task, xlabel=f"average rank over folds ({len(means)} is best)")
            ax.spines[["top", "right"]].set_visible(False)
        return figure

    def verdicts(self, results: pd.DataFrame) -> list[Verdict]:
        """Say where CASTLE stands, and what the start does to the others."""
        ranked, found = self._ranked(results), []
        frame = self.summary(results)
        for task, own in ranked.groupby("task", sort=False):
            means = own.groupby("method")["rank"].mean().sort_values(ascending=False)
            place = int((means > means["CASTLE"]).sum()) + 1
            base = frame[(frame["task"] == task) & (frame["method"] == "Baseline")].set_index("table")
            worse = (base["usual"] > base["small"]) if task == "regression" else (base["usual"] < base["small"])
            found.append(
                Verdict(
                    f"CASTLE among benchmarks that start as networks usually do, {task}",
                    "not in the paper",
                    f"average rank over folds {means['CASTLE']:.2f} ({len(means)} is best), place {place}; next "
                    f"{means.drop('CASTLE').index[0]} {means.drop('CASTLE').iloc[0]:.2f}. The plain network is "
                    "worse with "
                    f"the usual start on {int(worse.sum())} of {len(worse)} tables",
                )
            )
        return found

    def notes(self) -> str:
        """Say what differs."""
        return (
            "'usual' is the Glorot-uniform start of the input layers, 'small' the normal one with standard "
            "deviation 0.01 that "
            "all other experiments here give to every method. Ranks are those of CASTLE (small start) among the "
            "others (usual "
            "start), on the same rows and folds."
        )
