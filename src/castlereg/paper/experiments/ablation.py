"""Table 7: CASTLE with some of its terms, and with only the sparsity term, which the paper does not have."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from castlereg.comparison.methods import Candidates
from castlereg.paper.datasets import load
from castlereg.paper.experiments import printed
from castlereg.paper.experiments.description import Experiment, Record, Scale, Settings, Verdict
from castlereg.paper.experiments.protocol import castle_candidates, fold_scores
from castlereg.paper.experiments.real_classification import RealClassification
from castlereg.paper.experiments.real_regression import RealRegression
from castlereg.paper.experiments.real_tables import FOLD, RealTables, protocol_of
from castlereg.regularizers import Castle

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# L is reconstruction, R acyclicity and V sparsity, as in the table of the paper.
PARTS: dict[str, Candidates] = {
    "V": castle_candidates(reconstruction=False, acyclicity=None),
    "L + V": castle_candidates(acyclicity=None),
    "R + V": castle_candidates(reconstruction=False),
    "L + R": ((Castle(sparsity=None),),),
}
_WHOLE = "L + R + V"
_NONE = "none"
_TASKS: dict[str, RealTables] = {"regression": RealRegression(), "classification": RealClassification()}


class Ablation(Experiment):
    """The contribution of each term, table by table."""

    name = "ablation"
    title = "Ablation of CASTLE's terms"
    shown_in = "Table 7"
    sources = ("real_regression", "real_classification")  # they provide CASTLE with all terms and with none

    def units(self, scale: Scale) -> list[Settings]:
        """List table x split x part."""
        units: list[Settings] = []
        for task, real in _TASKS.items():
            if scale == "quick" and task == "classification":
                continue
            whole = [unit for unit in real.units(scale) if unit["method"] == "CASTLE"]
            shared = [{name: value for name, value in unit.items() if name != "method"} for unit in whole]
            units += [{**unit, "task": task, "part": part} for unit in shared for part in PARTS]
        return units

    def measure(self, settings: Settings) -> list[Record]:
        """Score one part on one split."""
        data = load(str(settings["table"]), variant=str(settings["variant"]))
        return fold_scores(
            data.X,
            data.y,
            PARTS[str(settings["part"])],
            task=str(settings["task"]),
            **protocol_of(settings),
        )

    def cost(self, settings: Settings) -> float:
        """Estimate from the cost of CASTLE with all terms."""
        whole = _TASKS[str(settings["task"])].cost({**settings, "method": "CASTLE"})
        return whole * {"V": 0.2, "L + R": 0.3}.get(str(settings["part"]), 1.0)

    def _joined(self, results: pd.DataFrame) -> pd.DataFrame:
        """Join the parts with CASTLE and the baseline, on the splits that all of them have."""
        parts = results[results["experiment"] == self.name]
        others = results[results["method"].isin(["CASTLE", "Baseline"])]
        task = others["experiment"].str.removeprefix("real_")
        others = others.assign(task=task, part=np.where(others["method"] == "CASTLE", _WHOLE, _NONE))
        both = pd.concat([others, parts], ignore_index=True)
        complete = both.groupby([*FOLD, "task"])["part"].transform("nunique") == len(PARTS) + 2
        return both[complete]

    def summary(self, results: pd.DataFrame) -> pd.DataFrame:
        """Average scores by table and part, and add those of the paper."""
        both = self._joined(results)
        frame = both.groupby(["task", "table", "part"], sort=False).agg(
            splits=("split", "nunique"), ours=("score", "mean"), sd=("score", "std")
        )
        frame = frame.reset_index()
        paper = pd.concat(
            [
                printed.ABLATION_REGRESSION.assign(task="regression"),
                printed.ABLATION_CLASSIFICATION.assign(task="classification"),
            ]
        ).set_index(["task", "row", "column"])["mean"]
        frame["paper"] = paper.reindex(pd.MultiIndex.from_frame(frame[["task", "table", "part"]])).to_numpy()
        frame["difference"] = frame["ours"] - frame["paper"]
        sign = np.where(frame["task"] == "classification", -1, 1)
        frame["place"] = (frame["ours"] * sign).groupby([frame["task"], frame["table"]]).rank().to_numpy()
        order = {part: place for place, part in enumerate([_NONE, *PARTS, _WHOLE])}
        tables = {name: place for place, name in enumerate(dict.fromkeys(frame["table"]))}
        keys = frame["task"].map({"regression": 0, "classification": 1}), frame["table"].map(tables)
        return frame.iloc[np.lexsort((frame["part"].map(order), keys[1], keys[0]))].reset_index(drop=True)

    def draw(self, results: pd.DataFrame) -> Figure:
        """Draw the gain of each part over the plain network."""
        import matplotlib.pyplot as plt

        frame = self.summary(results)
        order = [*PARTS, _WHOLE]
        tasks = list(dict.fromkeys(frame["task"]))
        figure, axes = plt.subplots(1, len(tasks), figsize=(5 * len(tasks), 3.8), layout="constrained", squeeze=False)
        for ax, task in zip(axes.flat, tasks, strict=True):
            scores = frame[frame["task"] == task].pivot_table(index="table", columns="part", values="ours", sort=False)
            if task == "regression":
                gain, label = 100 * (1 - scores[order].div(scores[_NONE], axis=0)), "error below the plain network, %"
            else:
                gain, label = scores[order].sub(scores[_NONE], axis=0), "AUROC above the plain network"
            for k, part in enumerate(order):
                ax.bar(np.arange(len(gain)) + 0.16 * (k - 2), gain[part], 0.15, label=part, zorder=2)
            ax.axhline(0, color="black", lw=0.8)
            ax.set_xticks(np.arange(len(gain)), list(gain.index))
            ax.set(ylabel=label, title=task)
            ax.spines[["top", "right"]].set_visible(False)
        axes[0, 0].legend(frameon=False, fontsize=8)
        return figure

    def verdicts(self, results: pd.DataFrame) -> list[Verdict]:
        """Judge whether all terms together are better than some of them."""
        frame = self.summary(results)
        best = frame.loc[frame.groupby(["task", "table"], sort=False)["place"].idxmin()]
        whole = best["part"] == _WHOLE
        places = frame.groupby("part")["place"].mean().sort_values()
        mean_places = ", ".join(f"{part} {place:.2f}" for part, place in places.items())
        by_part = frame.pivot_table(index=["task", "table"], columns="part", values="place", sort=False)
        without = {"reconstruction": "R + V", "acyclicity": "L + V", "sparsity": "L + R"}
        better = {term: by_part[_WHOLE] < by_part[part] for term, part in without.items()}
        by_term = "; ".join(
            f"{term} on {int(pays.sum())} of {len(pays)} "
            f"({', '.join(table for _, table in pays[pays].index) or 'none'})"
            for term, pays in better.items()
        )
        majority = [term for term, pays in better.items() if pays.mean() > 0.5]
        return [
            Verdict(
                "all three terms together are best on every table",
                "reproduced" if whole.all() else "partly" if places.index[0] == _WHOLE else "not reproduced",
                f"best on {int(whole.sum())} of {len(best)} tables; mean place among {len(places)} (1 is best): "
                f"{mean_places}",
            ),
            Verdict(
                "each of the three terms improves the predictions",
                "reproduced" if len(majority) == len(without) else "partly" if majority else "not reproduced",
                f"tables on which CASTLE is worse without a term: {by_term}",
            ),
        ]

    def notes(self) -> str:
        """Explain the letters."""
        return (
            "L is reconstruction, R acyclicity and V sparsity of the input layers; 'none' is the plain network. The "
            "paper does not have the column 'V'. All use the same rows, folds and initial weights."
        )
