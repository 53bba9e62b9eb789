"""The paper's ten methods on scikit-learn's diabetes table, the graph that CASTLE learns, and a report.

Run it with ``make demo``. Pictures and the report are written to the folder ``demo``.
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib as mpl
from sklearn.datasets import load_diabetes

from castlereg import CastleRegressor, Comparison, compare
from castlereg.report import write_report


def main(folder: Path, max_epochs: int = 200, report_folds: int = 5) -> Comparison:
    """Compare, fit, print, draw and report; return the comparison."""
    X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    y = y.rename("progression")
    result = compare(X, y, n_splits=5, max_epochs=max_epochs, random_state=0, verbose=sys.stderr.isatty())
    print(result)
    print("MSE 1 is no better than guessing the mean.")

    castle = result.by_split.set_index("method").loc["CASTLE", "chosen"].mode()[0]
    beta = float(castle.removeprefix("reg_beta="))
    model = CastleRegressor(reg_beta=beta, n_members=10, max_epochs=max_epochs, random_state=0).fit(X, y)
    graph = model.graph_
    print(
        f"\nStrongest edges of the graph that ten CASTLE networks with {castle} learned on all rows "
        f"({graph.dropped_weight:.0%} of the weight closed cycles and was cut):"
    )
    print(graph.edges().head(8).round(3).to_string(index=False))
    print("The graph is an aid to prediction, not proof of cause.")
    pictures = [
        _save(result.plot(), folder / "comparison.png"),
        draw_graph(model, folder),
        draw_curves(model, folder),
    ]
    print("\nPictures: " + ", ".join(str(picture) for picture in pictures))
    print(f"Report: {write_report(model, X, y, folder / 'report.html', cv=report_folds)}")
    return result


def draw_graph(model: CastleRegressor, folder: Path) -> Path:
    """Save the picture of the graph."""
    ax = model.graph_.plot()
    ax.set_title("Learned graph: strongest edges, into the target in red", fontsize=11)
    return _save(ax.figure.figure, folder / "graph.png")


def draw_curves(model: CastleRegressor, folder: Path) -> Path:
    """Save the picture of the training curves: every network, and the mean while all of them train."""
    import matplotlib.pyplot as plt

    figure, ax = plt.subplots(figsize=(6, 3.6), layout="constrained")
    for column, color, label in (("supervised", "#5c6b7a", "training"), ("validation_loss", "#d9480f", "validation")):
        epochs = model.history_.pivot(index="epoch", columns="member", values=column)
        ax.plot(epochs, color=color, lw=0.7, alpha=0.35)
        ax.plot(epochs.mean(axis=1)[epochs.notna().all(axis=1)], color=color, lw=2, label=label)
    ax.set(title="Ten CASTLE networks", xlabel="epoch", ylabel="target's MSE (variance = 1)")
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False)
    return _save(figure, folder / "training.png")


def _save(figure: mpl.figure.Figure, path: Path) -> Path:
    import matplotlib.pyplot as plt

    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130, bbox_inches="tight", pad_inches=0.2)
    plt.close(figure)
    return path


if __name__ == "__main__":
    mpl.use("agg")
    main(Path("demo"))
