"""Base of Figures 7 and 8: learned edge weights into the target, by the role of the other column."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import pandas as pd

from castlereg.estimators.regressor import CastleRegressorCV
from castlereg.paper.experiments.description import Experiment, Record, Scale, Settings
from castlereg.paper.experiments.synthetic_ranks import castle_cost
from castlereg.paper.problems import random_problem
from castlereg.paper.targets import roles

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class WeightRoles(Experiment):
    """Mean learned weight of edges into the target, over random graphs."""

    role: ClassVar[str]  # of the target
    kinds: ClassVar[tuple[str, ...]]  # of the other columns

    def units(self, scale: Scale) -> list[Settings]:
        """List graphs with and without noise columns."""
        if scale == "quick":
            return [{"n_nodes": 6, "n_noise": 2, "n_rows": 100, "draw": 0, "cv": 2, "max_epochs": 3}]
        standard = {(10, 0): 10, (10, 20): 10, (20, 0): 10, (50, 0): 3}
        draws = standard if scale == "standard" else {(50, 0): 10, (50, 50): 10}
        return [
            {"n_nodes": nodes, "n_noise": noise, "n_rows": 50 * nodes, "draw": draw, "cv": 5, "max_epochs": 200}
            for (nodes, noise), n_draws in draws.items()
            for draw in range(n_draws)
        ]

    def measure(self, settings: Settings) -> list[Record]:
        """Learn a graph, with beta chosen by cross-validation, and group the weights into the target by role."""
        problem = random_problem(
            int(settings["n_nodes"]),
            int(settings["n_rows"]),
            n_noise_columns=int(settings["n_noise"]),
            role=self.role,
            branching=2,
            random_state=int(settings["draw"]),
        )
        model = CastleRegressorCV(
            search="paper",
            cv=int(settings["cv"]),
            max_epochs=int(settings["max_epochs"]),
            random_state=int(settings["draw"]),
        ).fit(problem.X, problem.y)
        learned = pd.DataFrame(model.graph_.learned_array, model.graph_.nodes, model.graph_.nodes)["Y"]
        by_role = roles(problem.dag, "Y")._asdict()
        by_role["noise"] = [name for name in problem.X if name not in set().union(*map(set, by_role.values()))]
        by_role["noise"] += by_role.pop("unrelated")
        return [
            {"kind": kind, "column": name, "weight": float(learned[name])}
            for kind, names in by_role.items()
            for name in dict.fromkeys(names)
        ]

    def cost(self, settings: Settings) -> float:
        """Estimate from nodes and rows."""
        return 1 + castle_cost(settings)

    def summary(self, results: pd.DataFrame) -> pd.DataFrame:
        """Average weights by kind of column, over graphs."""
        means = results.groupby(["draw", "n_nodes", "n_noise", "kind"], sort=False)["weight"].mean().reset_index()
        frame = means.groupby("kind", sort=False)["weight"].agg(["mean", "std", "count"]).reset_index()
        frame.columns = pd.Index(["kind", "mean weight", "sd over graphs", "graphs"])
        order = {kind: position for position, kind in enumerate(self.kinds)}
        frame = frame[frame["kind"].isin(order)]
        return frame.sort_values("kind", key=lambda kinds: kinds.map(order), ignore_index=True)

    def draw(self, results: pd.DataFrame) -> Figure:
        """Draw the means as bars."""
        import matplotlib.pyplot as plt

        frame = self.summary(results)
        figure, ax = plt.subplots(figsize=(5.2, 3.4), layout="constrained")
        error = frame["sd over graphs"].fillna(0) / frame["graphs"].pow(0.5)
        ax.bar(frame["kind"], frame["mean weight"], yerr=error, color="#9aa7b4", capsize=3)
        ax.set(ylabel="mean weight into the target")
        ax.set_title("error bars: standard error over graphs", fontsize=9)
        ax.spines[["top", "right"]].set_visible(False)
        return figure

    def notes(self) -> str:
        """Explain how weights are averaged."""
        return (
            "Graphs with two edges per node, sums of sigmoids; beta chosen by cross-validation. Weights are the "
            "learned weights before the threshold, averaged over fold networks, then over columns of a kind, then "
            "over graphs. A column counts once, as the first kind that fits: parent, child, spouse, sibling; "
            "'distant' columns are connected to the target by a longer path, 'noise' columns by none."
        )
