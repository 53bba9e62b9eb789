"""Housing: prices with intervals, compared with least squares and a random forest.

Boston's 506 districts. The model averages the fold networks, and each network's errors on its held-out rows determine
the intervals: cross-validation provides them without another model. Column ``B`` encodes race; it is left out here.
Least squares and the forest are trained on the same rows.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import train_test_split

from castlereg import CastleRegressorCV
from castlereg_paper.datasets import load


def main(folder: Path, max_epochs: int = 200) -> list[Path]:
    """Fit, print and draw; return the figures, none if the table is missing."""
    try:
        table = load("boston_housing", download=False)
    except FileNotFoundError as missing:
        print(f'{missing}\nOr run load("boston_housing") once with internet access.')
        return []
    X, y = table.X.drop(columns="B"), table.y
    X, X_new, y, y_new = train_test_split(X, y, test_size=0.2, random_state=1)

    castle = CastleRegressorCV(search="paper", cv=10, max_epochs=max_epochs, random_state=0).fit(X, y)
    rivals = {"least squares": LinearRegression(), "random forest": RandomForestRegressor(random_state=0)}
    fitted = {"CASTLE, mean of ten folds": castle, **{name: rival.fit(X, y) for name, rival in rivals.items()}}
    print("Mean squared error on new districts, in units of the price variance (one split, not a ranking)")
    for name, model in fitted.items():
        print(f"{name:26} {((model.predict(X_new) - y_new) ** 2).mean() / y_new.var(ddof=0):.3f}")

    interval = castle.predict_interval(X_new, coverage=0.9)
    inside = (interval[:, 0] <= y_new) & (y_new <= interval[:, 1])
    width = (interval[:, 1] - interval[:, 0]).mean()
    print(
        f"\n90 % intervals: {inside.mean():.0%} of the new prices are inside, mean width {width:.1f} thousand dollars"
    )
    strongest = castle.input_graph_.learned_weights["MEDV"].nlargest(5)
    print("The network depends most on " + ", ".join(f"{name} ({weight:.2f})" for name, weight in strongest.items()))
    return [draw(castle.predict(X_new), interval, y_new.to_numpy(), folder / "housing_intervals.png")]


def draw(predicted: NDArray[np.float64], interval: NDArray[np.float64], true: NDArray[np.float64], path: Path) -> Path:
    """Draw the interval of every new district, and its price as a dot, orange if outside."""
    order = np.argsort(predicted)
    low, high = interval[order].T
    true = true[order]
    outside = (true < low) | (true > high)
    positions = np.arange(len(order))
    figure, ax = plt.subplots(figsize=(7.5, 3.6), layout="constrained")
    ax.vlines(positions, low, high, color="#c3cbd3", lw=3, label="90 % interval")
    ax.scatter(positions[~outside], true[~outside], s=14, color="#52616f", zorder=2, label="price")
    ax.scatter(positions[outside], true[outside], s=20, color="#d9480f", zorder=2, label="price outside")
    ax.set(xlabel="new districts, by predicted price", ylabel="price in thousand dollars", xticks=[])
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False, loc="upper left")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    plt.close(figure)
    return path


if __name__ == "__main__":
    mpl.use("agg")
    main(Path("demo"))
