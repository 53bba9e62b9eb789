"""The result of a comparison: tables for the terminal, Markdown and pandas, ranks, and a figure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import pandas as pd

from castlereg.comparison.significance import Significance, significance
from castlereg.markdown import markdown_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Comparison:
    """Methods compared on the same rows, folds and starting weights.

    Attributes
    ----------
    scores : DataFrame
        One row per method, split and fold: the score of the fold's network on the held-out rows, and its validation
        loss. A network that never had a finite loss has no score (NaN).
    by_split : DataFrame
        One row per method and split: the score of the mean of the fold networks, the strengths chosen by mean
        validation loss, and the unit of MSE, the variance of the target.
    seconds : Series
        Wall time of each method, compilation included.
    metric : {"MSE", "AUROC"}
        MSE in units of the target's variance, lower is better; AUROC, higher is better.
    about : str
        The table, the task, the folds and the splits, in a sentence.
    """

    scores: pd.DataFrame
    by_split: pd.DataFrame
    seconds: pd.Series
    metric: Literal["MSE", "AUROC"]
    about: str

    @property
    def higher_is_better(self) -> bool:
        """Whether a high score is good."""
        return self.metric == "AUROC"

    def ranks(self, by: Literal["fold", "split"] = "fold") -> pd.DataFrame:
        """Rank the methods, 1 being the best; equal scores share a rank, and networks without a score rank last.

        Parameters
        ----------
        by : {"fold", "split"}
            Rank the networks of each fold, or the mean scores of each split.

        Returns
        -------
        DataFrame
            One row per split and fold, or per split; one column per method.
        """
        table = self.scores.pivot(index=["split", "fold"], columns="method", values="score")[list(self.seconds.index)]
        if by == "split":
            table = table.groupby("split").agg(lambda scores: scores.mean(skipna=False))
        ranks = table.rank(axis=1, ascending=not self.higher_is_better, na_option="bottom")
        ranks.columns.name = None
        return ranks

    def significance(self, by: Literal["fold", "split"] = "fold") -> Significance:
        """Test whether the ranks differ by more than chance; the result also says what the test assumes."""
        return significance(self.ranks(by), by)

    def to_frame(self) -> pd.DataFrame:
        """Return one row per method, the best mean rank first.

        Returns
        -------
        DataFrame
            Mean and standard deviation of the fold networks' scores, score of their mean prediction, mean rank over
            folds (1 is best), seconds, and the strengths that were chosen most often.
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
        """Return the table of :meth:`to_frame` in Markdown."""
        return markdown_table(self._rounded().reset_index())

    def plot(self) -> Figure:
        """Draw every fold network's score and the mean ranks.

        Returns
        -------
        matplotlib Figure
        """
        from castlereg.comparison.drawing import draw

        return draw(self)

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
