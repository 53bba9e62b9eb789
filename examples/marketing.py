"""Marketing: predict the interactions with a post, from a table with text, a missing value and long tails.

500 posts of a cosmetics brand. A few posts went viral: one value of 6334 among values of a few hundred.
``Recipe(scaling="robust")`` limits the influence of extreme values in the columns, and the model predicts the logarithm
of the target. The four regularizers share rows, folds and initial weights, so only the regularizer differs.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import train_test_split

from castlereg import CastleRegressorCV, Recipe
from castlereg_paper import compare
from castlereg_paper.datasets import load

METHODS = ("Baseline", "L1", "MixUp", "CASTLE")


def main(folder: Path, max_epochs: int = 200, n_splits: int = 3, methods: Sequence[str] = METHODS) -> list[Path]:
    """Fit, compare, print and draw; return the figures, none if the table is missing."""
    try:
        table = load("facebook_metrics", download=False)
    except FileNotFoundError as missing:
        print(f'{missing}\nOr run load("facebook_metrics") once with internet access.')
        return []
    X = table.X.rename(columns=shortened)
    y = np.log1p(table.y).rename("log interactions")
    result = compare(X, y, methods=methods, cv=5, n_splits=n_splits, max_epochs=max_epochs, random_state=0)
    print(result.to_frame().drop(columns="seconds").round(3).to_string())
    print("Predicting the mean has an MSE of 1.")

    X, X_new, y, y_new = train_test_split(X, y, test_size=0.2, random_state=0)
    print("\nMean of five fold networks on another split, by scaling of the columns:")
    for recipe in (Recipe(scaling="standard"), Recipe(scaling="robust")):
        model = CastleRegressorCV(search="paper", cv=5, recipe=recipe, max_epochs=max_epochs, random_state=0).fit(X, y)
        print(f"{recipe.scaling:9} {((model.predict(X_new) - y_new) ** 2).mean() / y_new.var(ddof=0):.3f}")
    print(model.schema_[["kind", "levels", "missing"]].loc[["type", "category", "paid", "reach"]].to_string())

    ax = model.graph_.plot_neighbourhood()
    ax.set_title("Around the target", fontsize=11)
    path = folder / "marketing_neighbourhood.png"
    path.parent.mkdir(parents=True, exist_ok=True)
    ax.figure.figure.savefig(path, dpi=110, bbox_inches="tight")
    plt.close("all")
    return [path]


def shortened(column: str) -> str:
    """Shorten long column names for the figure."""
    short = {
        "Lifetime Post Total Reach": "reach",
        "Lifetime Post Total Impressions": "impressions",
        "Lifetime Post Impressions by people who have liked your Page": "impressions, fans",
        "Lifetime Post reach by people who like your Page": "reach, fans",
        "Lifetime People who have liked your Page and engaged with your post": "engaged fans",
    }
    return short.get(column, column.removeprefix("Lifetime ").lower())


if __name__ == "__main__":
    mpl.use("agg")
    main(Path("demo"))
