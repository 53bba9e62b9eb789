"""Figure 6: average ranks on real tables, and whether the differences are more than noise."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from castlereg.comparison.significance import significance
from castlereg.paper.experiments.description import Experiment, Record, Scale, Settings, Verdict
from castlereg.paper.experiments.lines import COLOURS
from castlereg.paper.experiments.protocol import ranks
from castlereg.paper.experiments.real_tables import FOLD

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_TASKS = ("regression", "classification")


class RealRanks(Experiment):
    """Made of the two experiments on real tables; has no units."""

    name = "real_ranks"
    title = "Average ranks on real tables"
    shown_in = "Figure 6"
    sources = ("real_regression", "real_classification")

    def units(self, scale: Scale) -> list[Settings]:
        """None."""
        return []

    def measure(self, settings: Settings) -> list[Record]:
        """Never asked for."""
        raise NotImplementedError

    def _ranked(self, results: pd.DataFrame) -> pd.DataFrame:
        parts = []
        for task in _TASKS:
            own = results[results["experiment"] == f"real_{task}"]
            if len(own):
                higher = task == "classification"
                parts.append(own.assign(task=task, rank=ranks(own, FOLD, higher_is_better=higher)))
        return pd.concat(parts, ignore_index=True)

    def _by_split(self, results: pd.DataFrame, task: str) -> pd.DataFrame:
        """Rank methods on every table and split by their mean score, 1 the best, as the test wants them."""
        own = results[results["experiment"] == f"real_{task}"]
        means = own.pivot_table(index=["table", "split"], columns="method", values="score", aggfunc="mean", sort=False)
        return means.dropna().rank(axis=1, ascending=task == "regression")

    def summary(self, results: pd.DataFrame) -> pd.DataFrame:
        """Average rank of every method: over folds, and over tables and splits."""
        ranked = self._ranked(results)
        frame = ranked.groupby(["task", "method"], sort=False)["rank"].agg(["mean", "std"]).reset_index()
        frame.columns = pd.Index(["task", "method", "average rank over folds", "sd"])
        n_methods = results["method"].nunique()
        by_split = {
            (task, method): n_methods + 1 - value
            for task in frame["task"].unique()
            for method, value in self._by_split(results, task).mean().items()
        }
        frame["average rank over tables and splits"] = [
            by_split[(task, method)] for task, method in zip(frame["task"], frame["method"], strict=True)
        ]
        frame["place"] = (
            frame.groupby("task")["average rank over tables and splits"].rank(ascending=False, method="min").astype(int)
        )
        return frame.sort_values(["task", "place"], ascending=[False, True], ignore_index=True)

    def draw(self, results: pd.DataFrame) -> Figure:
        """Draw ranks table by table as the paper does, and critical-difference diagrams below."""
        import matplotlib.pyplot as plt

        ranked = self._ranked(results)
        tasks = [task for task in _TASKS if task in set(ranked["task"])]
        n_methods = results["method"].nunique()
        figure, axes = plt.subplots(2, len(tasks), figsize=(6 * len(tasks), 7), layout="constrained", squeeze=False)
        for column, task in enumerate(tasks):
            ax = axes[0, column]
            own = ranked[ranked["task"] == task]
            means = own.pivot_table(index="table", columns="method", values="rank", aggfunc="mean", sort=False)
            means = means.sort_values("CASTLE", ascending=False)
            for method in sorted(means.columns, key=lambda name: name == "CASTLE"):
                strong = method == "CASTLE"
                ax.plot(
                    means.index,
                    means[method],
                    "o-",
                    color=COLOURS.get(method, "#adb5bd"),
                    lw=2.6 if strong else 1,
                    label=method,
                )
            ax.set(ylabel=f"average rank ({n_methods} is best)", title=task, ylim=(0.5, n_methods + 0.5))
            ax.spines[["top", "right"]].set_visible(False)
            _critical_difference(axes[1, column], self._by_split(results, task), n_methods)
        axes[0, -1].legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5))
        return figure

    def verdicts(self, results: pd.DataFrame) -> list[Verdict]:
        """Judge the claim of first place."""
        frame = self.summary(results)
        n_methods = results["method"].nunique()
        found = []
        for task in frame["task"].unique():
            own = frame[frame["task"] == task].set_index("method")
            check = significance(self._by_split(results, task), "split")
            column = "average rank over tables and splits"
            castle, others = own.loc["CASTLE"], own.drop(index="CASTLE")[column]
            lead = castle[column] - others.max()
            found.append(
                Verdict(
                    f"CASTLE ranks first of ten, {task}",
                    "reproduced" if lead > 0 else "partly" if lead == 0 else "not reproduced",
                    f"average rank {castle[column]:.2f} over tables and splits ({n_methods} is best), place "
                    f"{castle['place']}; the best of the others, {others.idxmax()}, has {others.max():.2f}; critical "
                    f"difference {check.critical_difference:.2f} at 5 %",
                )
            )
        return found

    def notes(self) -> str:
        """Say what the diagrams assume."""
        return (
            "Upper panels: average rank over folds and splits, as the paper draws it. Lower panels: average "
            "ranks over tables "
            "and splits; methods within the critical difference of Nemenyi's test (5 %) cannot be distinguished. "
            "Splits of "
            "one table overlap, so the test is too ready to find differences."
        )


def _critical_difference(ax: Axes, by_split: pd.DataFrame, n_methods: int) -> None:
    """Draw mean ranks, and shade those that cannot be distinguished from the best."""
    check = significance(by_split, "split")
    ordered = (n_methods + 1 - by_split.mean()).sort_values(ascending=False)
    place = np.arange(len(ordered))
    best = ordered.iloc[0]
    if np.isfinite(check.critical_difference):
        ax.axvspan(best - check.critical_difference, best, color="#ffe8cc", zorder=0)
    colours = [COLOURS.get(str(name), "#adb5bd") for name in ordered.index]
    ax.hlines(place, 1, ordered, color="#dee2e6", zorder=1)
    ax.scatter(ordered, place, color=colours, zorder=2)
    ax.set_yticks(place, [str(name) for name in ordered.index], fontsize=8)
    ax.invert_yaxis()
    ax.set(xlim=(0.8, n_methods + 0.2), xlabel=f"average rank ({n_methods} is best); shaded: level with the first")
    ax.spines[["top", "right"]].set_visible(False)
