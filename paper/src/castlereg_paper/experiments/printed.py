"""What the paper prints: mean and standard deviation by row and column of its tables, and the form of its charts."""

from __future__ import annotations

import tomllib
from importlib.resources import files
from typing import TYPE_CHECKING, Final

import numpy as np
import pandas as pd

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def _tables() -> dict[str, pd.DataFrame]:
    """Read "mean±sd" pairs; a dash marks a cell that the paper leaves out."""
    content = tomllib.loads(files("castlereg_paper.experiments").joinpath("printed.toml").read_text("utf-8"))
    return {
        name: pd.DataFrame(
            [
                {"row": row, "column": column, "mean": float(pair.split("±")[0]), "sd": float(pair.split("±")[1])}
                for row, line in table["rows"].items()
                for column, pair in zip(table["columns"], line.split(), strict=True)
                if pair != "-"
            ]
        )
        for name, table in content.items()
    }


TABLES: Final = _tables()  # by the names in printed.toml

COLOURS = {
    "CASTLE": "#d9480f",
    "Baseline": "#495057",
    "L1": "#1971c2",
    "L2": "#74c0fc",
    "Dropout 0.2": "#2f9e44",
    "Dropout 0.5": "#8ce99a",
    "SAE": "#9c36b5",
    "Batch Norm": "#f08c00",
    "Input Noise": "#0c8599",
    "MixUp": "#e64980",
    "TANGOS": "#66a80f",
    "Deep Lasso": "#5f3dc4",
}


def rank_lines(ranked: pd.DataFrame, x: str, label: str, n_methods: int) -> Figure:
    """Draw one line per method."""
    import matplotlib.pyplot as plt

    means = ranked.pivot_table(index=x, columns="method", values="rank", aggfunc="mean", sort=True)
    figure, ax = plt.subplots(figsize=(6.4, 4.2), layout="constrained")
    positions = np.arange(len(means))
    for method in sorted(means.columns, key=lambda name: name == "CASTLE"):
        strong = method == "CASTLE"
        ax.plot(
            positions,
            means[method],
            "o-",
            color=COLOURS.get(method, "#adb5bd"),
            lw=2.6 if strong else 1.2,
            ms=6 if strong else 4,
            alpha=1 if strong else 0.85,
            label=method,
        )
    ax.set_xticks(positions, [f"{value:g}" if isinstance(value, int | float) else str(value) for value in means.index])
    ax.set(xlabel=label, ylabel=f"average rank ({n_methods} is best)", ylim=(0.5, n_methods + 0.5))
    ax.grid(axis="y", color="#eeeeee")
    ax.legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5))
    return figure
