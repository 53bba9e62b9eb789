"""Horizontal bars for columns, with the first at the top."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from castlereg.options import check_integer

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COLOUR = "#1f6fb2"
_OTHERS = ("#d9480f", "#2b8a3e", "#f2b134", "#7048a8", "#868e96", "#0ca6a6", "#c2255c")
_LONGEST = 40  # maximum number of characters of a name


def draw_bars(
    columns: Sequence[str],
    bars: Sequence[NDArray[np.float64]],
    label: str,
    ax: Axes | None,
    most: int,
    *,
    spread: NDArray[np.float64] | None = None,
    names: Sequence[str] = (),
) -> Axes:
    """Draw one bar per column, or several stacked bars.

    Parameters
    ----------
    columns : sequence of str
        Names in the order of the bars, with the first at the top.
    bars : sequence of array of shape (columns,)
        Lengths; several arrays are stacked, with ``names`` as the legend.
    label : str
        Label of the axis of lengths.
    ax : matplotlib Axes, optional
        By default new axes.
    most : int
        Maximum number of columns; the title states how many are shown.
    spread : array of shape (columns,), optional
        Half the length of the error bars.
    """
    try:
        from matplotlib import pyplot as plt
    except ImportError:
        raise ImportError("plot needs the package matplotlib: pip install 'castlereg[plot]'") from None

    check_integer("most", most)
    n = min(len(columns), most)
    axes: Any = ax
    if axes is None:
        _, axes = plt.subplots(figsize=(7, 0.3 * n + 1.2), layout="constrained")
    colours = [_COLOUR, *_OTHERS]
    left = np.zeros(n)
    for k, lengths in enumerate(bars):
        error = None if spread is None else spread[:n]
        name = names[k] if names else None
        axes.barh(
            range(n), lengths[:n], 0.7, left, color=colours[k % len(colours)], label=name, xerr=error, ecolor="0.35"
        )
        left += lengths[:n]
    axes.set_yticks(range(n), [_shortened(name) for name in columns[:n]])
    axes.set_ylim(n - 0.4, -0.6)
    axes.axvline(0, color="black", lw=0.8)
    axes.set_xlabel(label)
    if n < len(columns):
        axes.set_title(f"the first {n} of {len(columns)} columns", fontsize="small", loc="right")
    if len(bars) > 1:
        axes.legend(frameon=False, loc="lower right")
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)
    drawn: Axes = axes
    return drawn


def _shortened(name: str) -> str:
    """Shorten a long name, and escape it so that matplotlib does not parse formulas."""
    cut = name if len(name) <= _LONGEST else name[: _LONGEST - 1] + "\N{HORIZONTAL ELLIPSIS}"
    return cut.replace("$", r"\$")
