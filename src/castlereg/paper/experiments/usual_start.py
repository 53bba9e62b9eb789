"""Beyond the paper: the other methods with the usual initialization of input layers, CASTLE with its small one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pandas as pd

from castlereg.paper.datasets import load
from castlereg.paper.experiments.description import Experiment, Record, Scale, Settings, Verdict
from castlereg.paper.experiments.protocol import METHODS, OURS, TWELVE, method_scores, ranks_among
from castlereg.paper.experiments.real_classification import RealClassification
from castlereg.paper.experiments.real_ranks import critical_difference
from castlereg.paper.experiments.real_regression import RealRegression
from castlereg.paper.experiments.real_tables import FOLD, RealTables, protocol_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_TASKS: dict[str, RealTables] = {"regression": RealRegression(), "classification": RealClassification()}


class UsualStart(Experiment):
    """How much of the lead of CASTLE is due to the small initialization of the input layers, which CASTLE requires.

    According to the paper, all methods start from the same weights, but its networks may have used the usual
    initialization. Everything else is as in the experiments on real tables, whose scores are shown for comparison.
    """

    name = "usual_start"
    title = "Other methods with the usual initialization"
    shown_in = "beyond the paper"
    sources = ("real_regression", "real_classification")

    def units(self, scale: Scale) -> list[Settings]:
        """List the units of the real tables without CASTLE, with the usual initialization."""
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
        """Estimate as for the real tables."""
        return _TASKS[str(settings["task"])].cost(settings)

    def _ranked(self, results: pd.DataFrame, methods: Sequence[str]) -> pd.DataFrame:
        """Rank CASTLE with its small initialization among the others with the usual one."""
        usual = results[results["experiment"] == self.name]
        castle = results[(results["experiment"] != self.name) & (results["method"] == "CASTLE")]
        castle = castle.assign(task=castle["experiment"].str.removeprefix("real_"))
        both = pd.concat([usual, castle], ignore_index=True)
        parts = [
            of_task.assign(rank=ranks_among(of_task, methods, FOLD, higher_is_better=task == "classification"))
            for task, of_task in both.groupby("task", sort=False)
        ]
        return pd.concat(parts, ignore_index=True).dropna(subset="rank")

    def summary(self, results: pd.DataFrame) -> pd.DataFrame:
        """Return scores with both initializations by table and method, and ranks against CASTLE."""
        parts = [
            self._ranked(results, methods).groupby(["task", "table", "method"], sort=False)["rank"].mean()
            for methods in (METHODS, TWELVE)
        ]
        frame = pd.concat(parts, axis=1, keys=["rank of ten", "rank of twelve"])
        both = results.assign(task=results["task"].fillna(results["experiment"].str.removeprefix("real_")))
        for start, is_usual in (("small", False), ("usual", True)):
            scores = both[(both["experiment"] == self.name) == is_usual]
            means = scores.groupby(["task", "table", "method"])["score"].mean()
            frame.insert(frame.shape[1] - 2, start, means.reindex(frame.index))
        usual = both[both["experiment"] == self.name]
        frame.insert(0, "splits", usual.groupby(["task", "table", "method"])["split"].nunique().reindex(frame.index))
        return frame.reset_index()

    def draw(self, results: pd.DataFrame) -> Figure:
        """Draw the average ranks of CASTLE and of the others with the usual initialization."""
        import matplotlib.pyplot as plt

        ranked = self._ranked(results, TWELVE)
        tasks = list(dict.fromkeys(ranked["task"]))
        figure, axes = plt.subplots(1, len(tasks), figsize=(4.8 * len(tasks), 3.6), layout="constrained", squeeze=False)
        for ax, task in zip(axes.flat, tasks, strict=True):
            of_task = ranked[ranked["task"] == task]
            means = of_task.groupby(["table", "split", "method"], sort=False)["rank"].mean().unstack("method")
            critical_difference(ax, means.rank(axis=1, ascending=False), means.shape[1])
            ax.set_title(task)
        return figure

    def verdicts(self, results: pd.DataFrame) -> list[Verdict]:
        """Report the place of CASTLE, and the effect of the initialization on the plain network."""
        verdicts = []
        frame = self.summary(results)
        for name, methods in (("ten", METHODS), ("twelve", TWELVE)):
            for task, of_task in self._ranked(results, methods).groupby("task", sort=False):
                means = of_task.groupby("method")["rank"].mean().sort_values(ascending=False)
                place = int((means > means["CASTLE"]).sum()) + 1
                base = frame[(frame["task"] == task) & (frame["method"] == "Baseline")].set_index("table")
                worse = (base["usual"] > base["small"]) if task == "regression" else (base["usual"] < base["small"])
                others = means.drop("CASTLE")
                verdicts.append(
                    Verdict(
                        f"CASTLE among {name} methods with the usual initialization, {task}",
                        "not in the paper",
                        f"average rank over folds {means['CASTLE']:.2f} ({len(means)} is best), place {place}; the "
                        f"best other method is {others.index[0]} with {others.iloc[0]:.2f}. The plain network is worse "
                        f"with the usual initialization on {int(worse.sum())} of {len(worse)} tables",
                    )
                )
        return verdicts

    def notes(self) -> str:
        """Explain the difference."""
        return (
            "'usual' is the Glorot-uniform initialization of the input layers, 'small' the normal initialization with "
            "standard deviation 0.01 that all other experiments use for every method. Ranks compare CASTLE (small) "
            "with the other methods (usual), on the same rows and folds."
        )
