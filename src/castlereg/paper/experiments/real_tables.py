"""Base of the experiments on real tables: ten methods, the paper's protocol, several random splits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd

from castlereg.paper.datasets import load
from castlereg.paper.experiments.description import Experiment, Record, Scale, Settings, Verdict
from castlereg.paper.experiments.protocol import METHODS, OURS, REFIT, TWELVE, WIDE_GRID, method_scores, ranks_among

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FOLD = ["table", "split", "fold"]

_N_SPLITS = 5
# Seconds of CASTLE on one core for one split with ten folds and all betas; the other methods take a fraction of it.
_CASTLE_SECONDS = {"CM": 500, "WQ": 15, "SP": 10, "LV": 8, "RP": 5, "CC": 5}


@dataclass(frozen=True)
class RealTables(Experiment):
    """Ten methods on the tables of one task.

    It uses the publicly available tables of the paper, in the default variants of the catalogue.
    """

    task: ClassVar[str]
    tables: ClassVar[tuple[str, ...]]
    variants: ClassVar[dict[str, str]] = {}
    bundled: ClassVar[str]  # table of the quick scale, which needs no download
    printed: ClassVar[pd.DataFrame]

    @property
    def higher_is_better(self) -> bool:
        """Whether the score is AUROC rather than an error."""
        return self.task == "classification"

    def units(self, scale: Scale) -> list[Settings]:
        """List table x split x method."""
        if scale == "quick":
            return [
                {"table": self.bundled, "variant": "default", "split": 0, "method": method, "cv": 2, "max_epochs": 3}
                for method in ("Baseline", "L2", "CASTLE")
            ]
        return [
            {
                "table": table,
                "variant": self.variants.get(table, "default"),
                "split": split,
                "method": method,
                "cv": 10,
                "max_epochs": 200,
                **_fewer_folds(table, scale),
            }
            for table in self.tables
            for split in range(_N_SPLITS)
            for method in (*TWELVE, *OURS)
        ]

    def measure(self, settings: Settings) -> list[Record]:
        """Score one method on one split of one table."""
        data = load(str(settings["table"]), variant=str(settings["variant"]))
        return method_scores(str(settings["method"]), data.X, data.y, task=self.task, **protocol_of(settings))

    def cost(self, settings: Settings) -> float:
        """Estimate from table and method."""
        if settings["max_epochs"] != 200:
            return 3
        whole = _CASTLE_SECONDS.get(str(settings["table"]), 2) * int(settings.get("folds", 10)) / 10
        factors = {"CASTLE": 1.0, WIDE_GRID: 4.0, REFIT: 1.1, "TANGOS": 6.0}
        return float(whole * factors.get(str(settings["method"]), 0.1))

    def summary(self, results: pd.DataFrame) -> pd.DataFrame:
        """Compare our scores with those of the paper, table by table."""
        options: dict[str, Any] = {"within": FOLD, "higher_is_better": self.higher_is_better}
        results = results.assign(
            **{"rank of ten": ranks_among(results, METHODS, **options)},
            **{"rank of twelve": ranks_among(results, TWELVE, **options)},
        )
        ours = results.groupby(["table", "method"], sort=False).agg(
            splits=("split", "nunique"), ours=("score", "mean"), sd=("score", "std")
        )
        for among in ("rank of ten", "rank of twelve"):
            ours[among] = results.groupby(["table", "method"], sort=False)[among].mean()
        averaged = results.drop_duplicates(["table", "split", "method"]).groupby(["table", "method"], sort=False)
        ours.insert(3, "mean of networks", averaged["averaged"].mean())
        paper = self.printed.rename(columns={"row": "table", "column": "method"}).set_index(["table", "method"])
        ours["paper"] = paper["mean"].reindex(ours.index)
        ours["difference"] = ours["ours"] - ours["paper"]
        printed_ranks = paper.groupby("table")["mean"].rank(ascending=self.higher_is_better)
        ours["paper's rank"] = printed_ranks.reindex(ours.index)
        return ours.reset_index()

    def draw(self, results: pd.DataFrame) -> Figure:
        """Draw our scores and those of the paper for each table."""
        import matplotlib.pyplot as plt

        frame = self.summary(results)
        tables = list(dict.fromkeys(frame["table"]))
        columns = min(3, len(tables))
        n_rows = -(-len(tables) // columns)
        figure, axes = plt.subplots(
            n_rows, columns, figsize=(3.6 * columns, 3.1 * n_rows), layout="constrained", squeeze=False
        )
        for ax in axes.flat[len(tables) :]:
            ax.set_axis_off()
        for ax, table in zip(axes.flat, tables, strict=False):
            rows = frame[frame["table"] == table]
            positions = np.arange(len(rows))
            ax.errorbar(
                rows["ours"], positions, xerr=rows["sd"].fillna(0), fmt="o", color="#364fc7", ms=5, label="ours"
            )
            ax.plot(rows["paper"], positions, "D", color="#d9480f", ms=5, mfc="none", label="paper")
            ax.set_yticks(positions, list(rows["method"]), fontsize=8)
            ax.invert_yaxis()
            ax.set_title(table, fontsize=10)
            ax.grid(axis="x", color="#eeeeee")
            ax.spines[["top", "right"]].set_visible(False)
        handles = axes[0, 0].get_legend_handles_labels()
        figure.legend(*handles, loc="outside upper right", ncols=2, frameon=False, fontsize=9)
        better = "higher" if self.higher_is_better else "lower"
        score = "AUROC" if self.higher_is_better else "MSE, standardized"
        figure.supxlabel(f"{score} on held-out rows ({better} is better); bars: sd over the fold networks", fontsize=9)
        return figure

    def verdicts(self, results: pd.DataFrame) -> list[Verdict]:
        """Judge the claim that CASTLE is best on every table."""
        frame = self.summary(results[results["method"].isin(METHODS)])
        if not set(frame["table"]) & set(self.tables):
            return []
        by_table = frame.groupby("table", sort=False)
        best = {
            table: rows.loc[rows["ours"].idxmax() if self.higher_is_better else rows["ours"].idxmin(), "method"]
            for table, rows in by_table
        }
        first = [table for table, method in best.items() if method == "CASTLE"]
        mean_ranks = frame.groupby("method")["rank of ten"].mean().sort_values(ascending=False)
        place = int((mean_ranks > mean_ranks["CASTLE"]).sum()) + 1
        winners = ", ".join(f"{table} {method}" for table, method in best.items() if method != "CASTLE")
        return [
            Verdict(
                f"CASTLE is the best of ten on every {self.task} table",
                "reproduced" if len(first) == len(best) else "partly" if place == 1 else "not reproduced",
                f"best mean score on {len(first)} of {len(best)} tables ({', '.join(first) or 'none'}); best on the "
                f"others: {winners or 'none'}. Mean rank over the tables {mean_ranks['CASTLE']:.2f} of ten (10 is "
                f"best), place {place}; {mean_ranks.index[0]} is first with {mean_ranks.iloc[0]:.2f}",
            )
        ]

    def notes(self) -> str:
        """Describe the comparison."""
        return (
            "Mean and standard deviation over all fold networks of all splits, on the held-out fifth of the rows; "
            "ranks per fold, 10 or 12 is best; 'mean of networks' is the score of the averaged fold networks. All "
            "methods share rows, folds, initial weights and the small initialization of the input layers. 'CASTLE, "
            "wide grid' chooses from fifteen pairs of lambda and beta instead of four betas; 'CASTLE, refit' trains "
            "plain networks on the columns that CASTLE selects. Each of the two is ranked instead of CASTLE."
        )


def protocol_of(settings: Settings) -> dict[str, Any]:
    """Return the options of :func:`~castlereg.paper.experiments.protocol.fold_scores` from the settings of a unit."""
    named = {"seed": "split", "cv": "cv", "folds": "folds", "max_epochs": "max_epochs"}
    return {option: int(settings[name]) for option, name in named.items() if name in settings}


def _fewer_folds(table: str, scale: Scale) -> dict[str, int]:
    """Train one of the ten folds of the widest table, which would otherwise cost more than all others together."""
    return {"folds": 1} if table == "CM" and scale == "standard" else {}
