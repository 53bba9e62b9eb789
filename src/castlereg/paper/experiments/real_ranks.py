"""Figure 6: average ranks on real tables, and the significance of their differences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from castlereg.comparison.methods import LATER_METHODS
from castlereg.comparison.significance import significance
from castlereg.paper.experiments.description import Experiment, Judgement, Record, Scale, Settings, Verdict
from castlereg.paper.experiments.lines import COLOURS
from castlereg.paper.experiments.protocol import METHODS, OURS, TWELVE, ranks_among
from castlereg.paper.experiments.real_tables import FOLD

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_TASKS = ("regression", "classification")
_SPLIT = ["table", "split"]
_COLUMN = "average rank over tables and splits"


def _among(results: pd.DataFrame) -> list[Sequence[str]]:
    """Return the sets of methods to rank that were run: those of the paper, and these plus two later ones."""
    run = set(results["method"].dropna())
    return [
        [method for method in METHODS if method in run],
        *([[method for method in TWELVE if method in run]] if run & set(LATER_METHODS) else []),
    ]


class RealRanks(Experiment):
    """Ranks computed from the two experiments on real tables; it has no units."""

    name = "real_ranks"
    title = "Average ranks on real tables"
    shown_in = "Figure 6"
    sources = ("real_regression", "real_classification")

    def units(self, scale: Scale) -> list[Settings]:
        """Return no units."""
        return []

    def measure(self, settings: Settings) -> list[Record]:
        """Not used, because there are no units."""
        raise NotImplementedError

    def _ranked(self, results: pd.DataFrame, methods: Sequence[str], within: list[str]) -> pd.DataFrame:
        """Rank methods by their mean score within a fold or a split; the best has the highest rank."""
        parts = []
        for task in _TASKS:
            of_task = results[results["experiment"] == f"real_{task}"]
            if len(of_task):
                means = of_task.groupby([*within, "method"], sort=False)["score"].mean().reset_index()
                ranked = ranks_among(means, methods, within, higher_is_better=task == "classification")
                parts.append(means.assign(task=task, rank=ranked))
        return pd.concat(parts, ignore_index=True).dropna(subset="rank")

    def _by_split(self, results: pd.DataFrame, task: str, methods: Sequence[str]) -> pd.DataFrame:
        """Return ranks on every table and split, with 1 as the best, as the significance test requires."""
        ranked = self._ranked(results, methods, _SPLIT)
        of_task = ranked[(ranked["task"] == task) & ranked["method"].isin(methods)]
        return len(methods) + 1 - of_task.pivot_table(index=_SPLIT, columns="method", values="rank", sort=False)

    def summary(self, results: pd.DataFrame) -> pd.DataFrame:
        """Average the rank of every method among ten and among twelve, over folds and over tables and splits."""
        parts = [self._summary(results, methods) for methods in _among(results)]
        return pd.concat(parts, ignore_index=True)

    def _summary(self, results: pd.DataFrame, methods: Sequence[str]) -> pd.DataFrame:
        groups = self._ranked(results, methods, FOLD).groupby(["task", "method"], sort=False)
        frame = groups["rank"].agg(["mean", "std"])
        frame.columns = pd.Index(["average rank over folds", "sd"])
        by_split = self._ranked(results, methods, _SPLIT).groupby(["task", "method"])["rank"].mean()
        frame[_COLUMN] = by_split.reindex(frame.index)
        frame = frame.reset_index()
        frame.insert(1, "among", len(methods))
        competing = frame[frame["method"].isin(methods)]
        frame["place"] = [
            1 + int(((rivals[_COLUMN] > rank) & (rivals["task"] == task)).sum())
            for task, method, rank in zip(frame["task"], frame["method"], frame[_COLUMN], strict=True)
            for rivals in [competing[competing["method"] != "CASTLE"] if method in OURS else competing]
        ]
        return frame.sort_values(["task", "place"], ascending=[False, True], ignore_index=True)

    def draw(self, results: pd.DataFrame) -> Figure:
        """Draw ranks table by table as in the paper, and critical-difference diagrams of twelve methods below."""
        import matplotlib.pyplot as plt

        ten, most = _among(results)[0], _among(results)[-1]
        ranked = self._ranked(results, ten, FOLD)
        tasks = [task for task in _TASKS if task in set(ranked["task"])]
        figure, axes = plt.subplots(2, len(tasks), figsize=(6 * len(tasks), 7), layout="constrained", squeeze=False)
        for column, task in enumerate(tasks):
            ax = axes[0, column]
            of_task = ranked[(ranked["task"] == task) & ranked["method"].isin(ten)]
            means = of_task.pivot_table(index="table", columns="method", values="rank", aggfunc="mean", sort=False)
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
            ax.set(ylabel=f"average rank ({len(ten)} is best)", title=task, ylim=(0.5, len(ten) + 0.5))
            ax.spines[["top", "right"]].set_visible(False)
            critical_difference(axes[1, column], self._by_split(results, task, most), len(most))
        axes[0, -1].legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5))
        return figure

    def verdicts(self, results: pd.DataFrame) -> list[Verdict]:
        """Judge the claim of first place among ten methods, and report the place among twelve."""
        frame = self.summary(results)
        verdicts = []
        for is_claim, methods in zip((True, False), _among(results), strict=False):
            for task in frame["task"].unique():
                among = len(methods)
                of_task = frame[(frame["task"] == task) & (frame["among"] == among)].set_index("method")
                check = significance(self._by_split(results, task, methods), "split")
                castle = of_task.loc["CASTLE"]
                others = of_task[of_task.index.isin(methods)].drop(index="CASTLE")[_COLUMN]
                searches = "".join(
                    f"; {name} instead of CASTLE {of_task.loc[name, _COLUMN]:.2f}"
                    for name in OURS
                    if name in of_task.index
                )
                lead = castle[_COLUMN] - others.max()
                judged: Judgement = "reproduced" if lead > 0 else "partly" if lead == 0 else "not reproduced"
                verdicts.append(
                    Verdict(
                        f"CASTLE ranks first of {'ten' if is_claim else 'twelve'}, {task}",
                        judged if is_claim else "not in the paper",
                        f"average rank {castle[_COLUMN]:.2f} over tables and splits ({among} is best), place "
                        f"{castle['place']}; the best other method is {others.idxmax()} with {others.max():.2f}; "
                        f"critical difference {check.critical_difference:.2f} at 5 %{searches}",
                    )
                )
        return verdicts

    def notes(self) -> str:
        """Explain the diagrams and their assumptions."""
        return (
            "Upper panels: average rank over folds and splits, as in the paper. Lower panels: average ranks over "
            "tables and splits, with TANGOS and Deep Lasso; methods within the critical difference of the Nemenyi "
            "test (5 %) cannot be distinguished. Splits of one table overlap, so the test finds differences too "
            "easily. Our two searches are ranked instead of CASTLE, one at a time."
        )


def critical_difference(ax: Axes, by_split: pd.DataFrame, n_methods: int) -> None:
    """Draw mean ranks, and shade the ranks that cannot be distinguished from the best."""
    check = significance(by_split, "split")
    ordered = (n_methods + 1 - by_split.mean()).sort_values(ascending=False)
    positions = np.arange(len(ordered))
    best = ordered.iloc[0]
    if np.isfinite(check.critical_difference):
        ax.axvspan(best - check.critical_difference, best, color="#ffe8cc", zorder=0)
    colours = [COLOURS.get(str(name), "#adb5bd") for name in ordered.index]
    ax.hlines(positions, 1, ordered, color="#dee2e6", zorder=1)
    ax.scatter(ordered, positions, color=colours, zorder=2)
    ax.set_yticks(positions, [str(name) for name in ordered.index], fontsize=8)
    ax.invert_yaxis()
    ax.set(
        xlim=(0.8, n_methods + 0.2),
        xlabel=f"average rank ({n_methods} is best); shaded: not distinguishable from the best",
    )
    ax.spines[["top", "right"]].set_visible(False)
