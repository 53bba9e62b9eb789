"""CASTLE and a plain network on the same folds of scikit-learn's diabetes table: errors, graph, training curves.

Run it with ``make demo``. Pictures are written to the folder ``demo``.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd
from sklearn.datasets import load_diabetes
from sklearn.model_selection import KFold, train_test_split

from castlereg import CausalGraph
from castlereg.estimators.fitted_network import FittedNetwork
from castlereg.objective import CastleObjective, Objective, SupervisedObjective
from castlereg.selection import FoldGrid, train_folds
from castlereg.tables.encoding import Scaling, numeric_layout, target_node
from castlereg.training import Table

BETAS = (0.001, 0.01, 0.1, 1.0)
FOLDS = 10


def main(folder: Path, max_epochs: int = 200) -> pd.DataFrame:
    """Train, print and draw; return the table of errors."""
    from castlereg.training import Schedule

    X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.2, random_state=0)
    scaling, target_scaling = Scaling.fit(X_train.to_numpy()), Scaling.fit(y_train.to_numpy()[:, None])
    layout = numeric_layout(X.shape[1], target_node(None))
    encoded = np.hstack([scaling.encode(X_train.to_numpy()), target_scaling.encode(y_train.to_numpy()[:, None])])
    table = Table(encoded.astype(np.float32), layout)
    folds = list(KFold(FOLDS, shuffle=True, random_state=0).split(X_train))
    truth = target_scaling.encode(y_test.to_numpy()[:, None])[:, 0]
    print(
        f"diabetes: {len(X_train)} rows to train on in {FOLDS} folds, {len(X_test)} held out, {X.shape[1]} features\n"
    )

    methods: dict[str, tuple[Objective, tuple[float, ...]]] = {
        "CASTLE": (CastleObjective(layout), BETAS),
        "plain network": (SupervisedObjective(layout), (0.0,)),
    }
    rows, grids, networks = {}, {}, {}
    for name, (objective, betas) in methods.items():
        start = time.perf_counter()
        grid = train_folds(
            objective,
            table,
            folds,
            strengths=[(1.0, beta) for beta in betas],
            hidden_layer_sizes=(X.shape[1] + 1,) * 2,
            schedule=Schedule(max_epochs=max_epochs),
            progress=sys.stderr.isatty(),
        )
        seconds = time.perf_counter() - start
        network = FittedNetwork.from_stack(grid.chosen(), layout, scaling)
        predicted = network.target_outputs(X_test.to_numpy())[:, :, 0]
        errors = ((predicted - truth) ** 2).mean(axis=1)
        rows[name] = {
            "test MSE, mean of 10 networks": errors.mean(),
            "sd": errors.std(ddof=1),
            "test MSE of their mean": ((predicted.mean(axis=0) - truth) ** 2).mean(),
            "beta": betas[grid.best] if len(betas) > 1 else np.nan,
            "networks": len(grid.stack.shift),
            "seconds": seconds,
        }
        grids[name], networks[name] = grid, network
    rows["mean of y"] = {"test MSE, mean of 10 networks": (truth**2).mean()}
    result = pd.DataFrame(rows).T
    print(result.to_string(float_format=lambda v: f"{v:.3f}", na_rep="", formatters={"networks": "{:.0f}".format}))
    print("\nMSE is in units of the target's variance; 1 is no better than guessing the mean.")

    names = [*X.columns, "progression"]
    graph = CausalGraph.from_weights(networks["CASTLE"].edge_weights().mean(axis=0), names, target="progression")
    print(
        f"\nStrongest edges of the learned graph ({graph.dropped_weight:.0%} of the weight closed cycles and was cut):"
    )
    print(graph.edges().head(8).round(3).to_string(index=False))
    print("The graph is an aid to prediction, not proof of cause.")
    pictures = [draw_graph(graph, folder), draw_curves(grids, folder)]
    print("\nPictures: " + ", ".join(str(picture) for picture in pictures))
    return result


def draw_graph(graph: CausalGraph, folder: Path) -> Path:
    """Save the picture of the graph."""
    import matplotlib.pyplot as plt

    ax = graph.plot()
    ax.set_title("Learned graph: strongest edges, into the target in red", fontsize=11)
    return _save(plt.gcf(), folder / "graph.png")


def draw_curves(grids: dict[str, FoldGrid], folder: Path) -> Path:
    """Save the picture of the training curves: every fold network, and the mean while all of them train."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, len(grids), figsize=(9, 3.6), sharey=True, layout="constrained")
    for ax, (name, grid) in zip(axes, grids.items(), strict=True):
        history = grid.chosen().history
        for column, color, label in (
            ("supervised", "#5c6b7a", "training"),
            ("validation_loss", "#d9480f", "validation"),
        ):
            epochs = history.pivot(index="epoch", columns="member", values=column)
            ax.plot(epochs, color=color, lw=0.7, alpha=0.35)
            ax.plot(epochs.mean(axis=1)[epochs.notna().all(axis=1)], color=color, lw=2, label=label)
        ax.set(title=name, xlabel="epoch")
        ax.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("target's MSE (variance = 1)")
    axes[0].legend(frameon=False)
    return _save(figure, folder / "training.png")


def _save(figure: mpl.figure.Figure, path: Path) -> Path:
    import matplotlib.pyplot as plt

    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)
    plt.close(figure)
    return path


if __name__ == "__main__":
    mpl.use("agg")
    main(Path("demo"))
