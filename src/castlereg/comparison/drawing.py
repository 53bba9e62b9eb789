"""A figure of a comparison: scores of all fold networks, and mean ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from castlereg.comparison.result import Comparison

_POINTS, _MEAN, _LEVEL = "#9aa7b4", "#d9480f", "#ffe8cc"


def draw(comparison: Comparison) -> Figure:
    """Draw the methods from top to bottom, the best mean rank first."""
    import matplotlib.pyplot as plt

    frame, test = comparison.to_frame(), comparison.significance()
    position = np.arange(len(frame))
    figure, (left, right) = plt.subplots(
        1,
        2,
        figsize=(9, 1.6 + 0.34 * len(frame)),
        sharey=True,
        layout="constrained",
        gridspec_kw={"width_ratios": [3, 2]},
    )
    for y, method in zip(position, frame.index, strict=True):
        scores = comparison.scores.loc[comparison.scores["method"] == method, "score"]
        left.plot(scores, np.full(len(scores), y), "o", color=_POINTS, ms=4, alpha=0.5, mew=0)
    left.plot(frame[comparison.metric], position, "D", color=_MEAN, ms=6, label="mean of fold networks")
    left.plot(
        frame[f"{comparison.metric} of the mean"], position, "|", color="black", ms=12, label="average of the networks"
    )
    better = "higher" if comparison.higher_is_better else "lower"
    left.set(xlabel=f"{comparison.metric} on held-out rows ({better} is better)")
    left.set_yticks(position, [str(name) for name in frame.index], parse_math=False)
    left.invert_yaxis()
    left.legend(frameon=False, fontsize=8, loc="best")

    best = frame["rank"].min()
    if np.isfinite(test.critical_difference):
        right.axvspan(best, best + test.critical_difference, color=_LEVEL, zorder=0)
        right.set_title("shaded: level with the best (Nemenyi, 5 %)", fontsize=9)
    right.plot(frame["rank"], position, "D", color=_MEAN, ms=6)
    right.set(xlabel="mean rank over folds (1 is best)")
    for ax in (left, right):
        ax.grid(axis="y", color="#eeeeee")
        ax.set_axisbelow(True)
        ax.spines[["top", "right"]].set_visible(False)
    return figure
