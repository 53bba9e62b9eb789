"""Healthcare: predict heart disease with its uncertainty, and find related columns.

The table has only 270 patients, and half of the columns are codes. Ten folds x four betas train as one program. The ten
networks of the chosen beta are averaged for predictions, and rule out classes: a set of both classes means "uncertain".
The graph is discovered from the rows, with a probability for every edge and direction. Without the heart table,
scikit-learn's breast cancer table is used.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.model_selection import train_test_split

from castlereg import CastleClassifierCV
from castlereg_paper.datasets import Dataset, load


def main(folder: Path, max_epochs: int = 200) -> list[Path]:
    """Fit, print and draw; return the figures."""
    table = heart_or_breast_cancer()
    X, X_new, y, y_new = train_test_split(table.X, table.y, test_size=0.3, stratify=table.y, random_state=0)
    model = CastleClassifierCV(search="paper", cv=10, max_epochs=max_epochs, random_state=0).fit(X, y)

    probability = np.asarray(model.predict_proba(X_new))
    sets = np.asarray(model.predict_set(X_new, coverage=0.9))
    truth = y_new.to_numpy()[:, None] == model.classes_
    print(f"{table.name}: {len(X)} training rows, {len(X_new)} new rows, chosen beta {model.reg_beta_:g}")
    print(f"AUROC {roc_auc_score(y_new, probability[:, 1]):.3f}, log loss {log_loss(y_new, probability):.3f}")
    print(f"a single class for {(sets.sum(axis=1) == 1).mean():.0%} of the new rows; the set contains", end=" ")
    print(f"the true class for {(sets & truth).any(axis=1).mean():.0%} (requested: 90 %)")

    graph = model.graph_
    edges = graph.edges()
    at_target = edges[(edges["cause"] == graph.target) | (edges["effect"] == graph.target)]
    print(f"\nEdges at {graph.target}, with the probabilities of edge and direction:")
    print(at_target.head(6).round(2).to_string(index=False))

    ax = graph.plot(max_edges=18)
    ax.set_title(f"{table.name}: the 18 strongest edges", fontsize=11)
    return [save(ax, folder / "healthcare_graph.png")]


def heart_or_breast_cancer() -> Dataset:
    """Load the heart table or, if it is missing, print a message and load the breast cancer table."""
    try:
        return load("statlog_heart", download=False)
    except FileNotFoundError as missing:
        print(f"{missing}\nUsing the breast cancer table instead.\n")
        return load("breast_cancer")


def save(ax: mpl.axes.Axes, path: Path) -> Path:
    """Save a figure."""
    path.parent.mkdir(parents=True, exist_ok=True)
    ax.figure.figure.savefig(path, dpi=110, bbox_inches="tight")
    plt.close("all")
    return path


if __name__ == "__main__":
    mpl.use("agg")
    main(Path("demo"))
