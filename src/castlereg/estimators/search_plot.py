"""Plot of a search: the loss of each candidate on held-out rows, and its weight in the prediction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

_CHOSEN, _OTHER = "#1f6fb2", "#c3cbd3"


def plot_search(results: pd.DataFrame, blend_loss: float, ax: Axes | None = None) -> Axes:
    """Draw the losses of candidates as bars, best at the top; those with a weight in the prediction are coloured.

    Parameters
    ----------
    results : DataFrame
        ``search_results_`` of an estimator.
    blend_loss : float
        Loss of the blend of the candidates, drawn as a line.
    ax : matplotlib Axes, optional
        Axes to draw on; by default those of a new figure.
    """
    try:
        from matplotlib import pyplot as plt
    except ImportError:
        raise ImportError("plot_search needs the package matplotlib: pip install 'castlereg[plot]'") from None

    shown = results[::-1]
    axes: Any = ax
    if axes is None:
        _, axes = plt.subplots(figsize=(7.5, 0.27 * len(shown) + 1.2), layout="constrained")
    colours = [_CHOSEN if weight > 0 else _OTHER for weight in shown["weight"]]
    axes.barh(range(len(shown)), shown["loss"], color=colours, height=0.7)
    axes.set_yticks(range(len(shown)), shown["candidate"], fontsize=8)
    for y, (loss, weight) in enumerate(zip(shown["loss"], shown["weight"], strict=True)):
        if weight > 0:
            axes.text(loss, y, f" {100 * weight:.0f} %", va="center", fontsize=8, color=_CHOSEN)
    axes.axvline(blend_loss, color="black", lw=1, ls="--")
    axes.text(blend_loss, len(shown) - 0.4, "together", ha="center", va="bottom", fontsize=8)
    axes.set_xlabel("loss of held-out rows (1: predicting the mean or the class shares)")
    axes.set_ylim(-0.6, len(shown) - 0.4)
    axes.spines[["top", "right"]].set_visible(False)
    drawn: Axes = axes
    return drawn
