"""Many noisy columns, few rows: where CASTLE pays.

Fifteen nodes of a random graph with strong edges, twenty additional columns of pure noise, 300 rows. All networks share
folds, seeds and the small initialization of the input layers, so only the terms of the penalty differ. The true graph
is known: the figure shows the edge weights into the target from columns near it and from noise. A few draws only show a
tendency; the page [when CASTLE pays](when_it_pays.md) has means with error bars.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from castlereg import Castle, CastleRegressorCV
from castlereg.causal import KnownWorld, random_dag, weighted_dag
from castlereg_paper import best_error, choose_target, roles


def main(folder: Path, max_epochs: int = 200, n_draws: int = 4) -> list[Path]:
    """Fit every draw, print and draw; return the figures."""
    rows, weights = [], []
    for seed in range(n_draws):
        dag = weighted_dag(random_dag(15, 45, random_state=seed), 2.0, 4.0, random_state=seed)
        target = choose_target(dag, "with_parents", random_state=seed)
        world = KnownWorld(dag, function="sigmoid", noise_std=0.6, random_state=seed).with_noise_columns(20)
        train, test = world.sample(300, random_state=seed), world.sample(2000, random_state=1000 + seed)
        X, y, X_new, y_new = train.drop(columns=target), train[target], test.drop(columns=target), test[target]

        penalties = {
            "CASTLE": Castle(),
            "sparsity only": Castle(reconstruction=False, acyclicity=None),
            "plain network": Castle(reconstruction=False, acyclicity=None, sparsity=None),
        }
        options: dict[str, Any] = {"search": "paper", "cv": 5, "max_epochs": max_epochs, "random_state": seed}
        candidates = {name: CastleRegressorCV(castle=penalty, **options) for name, penalty in penalties.items()}
        errors = {}
        for name, model in candidates.items():
            errors[name] = ((model.fit(X, y).predict(X_new) - y_new) ** 2).mean() / y_new.var()
        rows.append(errors | {"best possible": best_error(world, target, n_rows=2000).standardized})

        kin = roles(dag, target)
        near = {*kin.parents, *kin.children, *kin.spouses}
        learned = candidates["CASTLE"].input_graph_.learned_weights[target].drop(target)
        kind = ["near" if name in near else "elsewhere" if name in dag else "noise" for name in learned.index]
        weights.append(pd.DataFrame({"kind": kind, "weight": learned.to_numpy()}))

    print("Mean squared error on 2000 new rows, in units of the target's variance, by draw")
    print(pd.DataFrame(rows).rename_axis("draw").round(3).to_string())
    spread = pd.concat(weights).groupby("kind")["weight"].describe()[["count", "50%", "max"]]
    print(f"\nWeights into the target, all draws:\n{spread.round(3).to_string()}")
    return [draw(pd.concat(weights), folder / "noisy_columns_weights.png")]


def draw(weights: pd.DataFrame, path: Path) -> Path:
    """Draw every weight into the target by the true role of its column."""
    labels = {"near": "parents, children,\nspouses", "elsewhere": "other nodes", "noise": "noise columns"}
    rng = np.random.default_rng(0)
    figure, ax = plt.subplots(figsize=(6.5, 3.4), layout="constrained")
    for position, (kind, colour) in enumerate(zip(labels, ("#d9480f", "#52616f", "#9aa5b1"), strict=True)):
        of_kind = weights.loc[weights["kind"] == kind, "weight"]
        ax.scatter(position + rng.uniform(-0.18, 0.18, len(of_kind)), of_kind, s=16, alpha=0.7, color=colour, lw=0)
        ax.hlines(of_kind.median(), position - 0.3, position + 0.3, color=colour, lw=2)
    ax.set(xticks=range(3), xticklabels=labels.values(), ylabel="learned weight into the target", ylim=(0, None))
    ax.spines[["top", "right"]].set_visible(False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    plt.close(figure)
    return path


if __name__ == "__main__":
    mpl.use("agg")
    main(Path("demo"))
