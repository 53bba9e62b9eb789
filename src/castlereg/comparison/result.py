"""The result of a comparison: tables for the terminal, Markdown and pandas; ranks; and a figure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
import pandas as pd

from castlereg.comparison.significance import Significance, significance
from castlereg.markdown import markdown_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_POINTS, _MEAN, _LEVEL = "#9aa7b4", "#d9480f", "#ffe8cc"


@dataclass(frozen=True)
class Comparison:
    """Methods compared on the same rows, folds and initial weights.

    Attributes
    ----------
    scores : DataFrame
        One row per method, split and fold: the score of the fold's network on the held-out rows, and its validation
        loss. The score of a network that never had a finite loss is NaN.
    by_split : DataFrame
        One row per method and split: the score of the mean prediction of the fold networks, the strengths chosen by
        mean validation loss, and the unit of MSE, which is the variance of the target.
    seconds : Series
        Wall time of each method, including compilation.
    metric : {"MSE", "AUROC"}
        MSE in units of the target's variance, lower is better; AUROC, higher is better.
    about : str
        A sentence on the table, the task, the folds and the splits.
    """

    scores: pd.DataFrame
    by_split: pd.DataFrame
    seconds: pd.Series
    metric: Literal["MSE", "AUROC"]
    about: str

    @property
    def higher_is_better(self) -> bool:
        """Whether higher scores are better."""
        return self.metric == "AUROC"

    def ranks(self, by: Literal["fold", "split"] = "fold") -> pd.DataFrame:
        """Rank the methods in each fold, or by the mean score in each split: one column per method.

        Rank 1 is the best; equal scores share a rank, and networks without a score rank last.
        """
        table = self.scores.pivot(index=["split", "fold"], columns="method", values="score")[list(self.seconds.index)]
        if by == "split":
            table = table.groupby("split").agg(lambda scores: scores.mean(skipna=False))
        ranks = table.rank(axis=1, ascending=not self.higher_is_better, na_option="bottom")
        ranks.columns.name = None
        return ranks

    def significance(self, by: Literal["fold", "split"] = "fold") -> Significance:
        """Test whether the ranks differ by more than chance; the result also states the assumptions of the test."""
        return significance(self.ranks(by), by)

    def to_frame(self) -> pd.DataFrame:
        """Return one row per method, the best mean rank first.

        The columns are the mean and standard deviation of the fold networks' scores, the score of their mean
        prediction, the mean rank over folds (1 is best), seconds, and the strengths that were chosen most often.
        """
        groups = self.scores.groupby("method", sort=False)["score"]
        splits = self.by_split.groupby("method", sort=False)
        frame = pd.DataFrame(
            {
                self.metric: groups.mean(),
                "sd": groups.std(),
                f"{self.metric} of the mean": splits["score"].mean(),
                "rank": self.ranks().mean(),
                "seconds": self.seconds,
                "chosen": splits["chosen"].agg(_most_frequent),
            }
        )
        frame.index.name = "method"
        return frame.sort_values("rank", kind="stable")

    def to_markdown(self) -> str:
        """Return the table of :meth:`to_frame` as Markdown."""
        return markdown_table(self._rounded().reset_index())

    def plot(self) -> Figure:
        """Draw the scores of all fold networks and the mean ranks, with the best method on top."""
        import matplotlib.pyplot as plt

        frame, test = self.to_frame(), self.significance()
        position = np.arange(len(frame))
        size = (9, 1.6 + 0.34 * len(frame))
        figure, (left, right) = plt.subplots(1, 2, figsize=size, sharey=True, layout="constrained", width_ratios=[3, 2])
        for y, method in zip(position, frame.index, strict=True):
            scores = self.scores.loc[self.scores["method"] == method, "score"]
            left.plot(scores, np.full(len(scores), y), "o", color=_POINTS, ms=4, alpha=0.5, mew=0)
        left.plot(frame[self.metric], position, "D", color=_MEAN, ms=6, label="mean of fold networks")
        averaged = frame[f"{self.metric} of the mean"]
        left.plot(averaged, position, "|", color="black", ms=12, label="average of the networks")
        better = "higher" if self.higher_is_better else "lower"
        left.set_xlabel(f"{self.metric} on held-out rows ({better} is better)")
        left.set_yticks(position, [str(name) for name in frame.index], parse_math=False)
        left.invert_yaxis()
        left.legend(frameon=False, fontsize=8, loc="best")

        best = frame["rank"].min()
        if np.isfinite(test.critical_difference):
            right.axvspan(best, best + test.critical_difference, color=_LEVEL, zorder=0)
            right.set_title("shaded: level with the best (Nemenyi, 5 %)", fontsize=9)
        right.plot(frame["rank"], position, "D", color=_MEAN, ms=6)
        right.set_xlabel("mean rank over folds (1 is best)")
        for ax in (left, right):
            ax.grid(axis="y", color="#eeeeee")
            ax.set_axisbelow(True)
            ax.spines[["top", "right"]].set_visible(False)
        return figure

    def __str__(self) -> str:
        better = "higher" if self.higher_is_better else "lower"
        scale = "" if self.higher_is_better else " in units of the target's variance"
        failed = int(self.scores["score"].isna().sum())
        return (
            f"{self.about}\n\n{self._rounded().to_string()}\n\n"
            f"{self.metric}{scale} of the fold networks on held-out rows, {better} is better; rank 1 is best.\n"
            + (f"{failed} of the networks never had a finite loss: no score, ranked last.\n" if failed else "")
            + f"{self.significance()}"
        )

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return self._rounded().to_html()

    def _rounded(self) -> pd.DataFrame:
        frame = self.to_frame()
        formats = {"rank": "{:.2f}", "seconds": "{:.1f}", "chosen": "{}"}
        return frame.apply(lambda column: column.map(formats.get(column.name, "{:.4f}").format))


def _most_frequent(chosen: pd.Series) -> str:
    counts = chosen.value_counts()
    times = "" if len(chosen) == 1 or not counts.index[0] else f" ({counts.iloc[0]} of {len(chosen)})"
    return f"{counts.index[0]}{times}"
