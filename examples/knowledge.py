"""Knowledge: constrain the graph, edit the learned graph, and train again.

The rows come from the paper's example graph, so the truth is known. The first network has no constraints. The second
has the constraints that X1 has no causes and that X8 and X9 come last. Then the learned graph is corrected by hand, and
the third network is trained with only the edges of that graph. Here, constraints improve the graph but not the
predictions: X8 and X9 are effects of Y and help to predict it. Use such constraints to obtain a better graph, or if
these columns are not yet available at prediction time.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import pandas as pd

from castlereg import CastleRegressor, CausalGraph, EdgeConstraints
from castlereg.causal import KnownWorld, example_dag
from castlereg_paper import best_error
from castlereg_paper.graph_scores import graph_scores


def main(folder: Path, max_epochs: int = 200) -> list[Path]:
    """Fit three times, print and draw; return the figures."""
    world = KnownWorld(example_dag(), function="sine", noise_std=0.5)
    train, test = world.sample(500, random_state=3), world.sample(2000, random_state=4)
    X, y, X_new, y_new = train.drop(columns="Y"), train["Y"], test.drop(columns="Y"), test["Y"]

    nothing_known = CastleRegressor(0.03, max_epochs=max_epochs, random_state=0).fit(X, y)
    known = EdgeConstraints(sources=["X1"], tiers=[["X1", "X2", "X3", "X4", "X5", "X6", "X7", "Y"], ["X8", "X9"]])
    informed = CastleRegressor(0.03, constraints=known, max_epochs=max_epochs, random_state=0).fit(X, y)

    edited = corrected(informed.graph_, world.dag)
    refitted = CastleRegressor(0.03, max_epochs=max_epochs, random_state=0).fit(X, y, graph=edited)

    print(f"\n{'':22} error    F1  directions right")
    for name, model, graph in (
        ("nothing known", nothing_known, nothing_known.graph_),
        ("sources and tiers", informed, informed.graph_),
        ("edited and refitted", refitted, edited),
    ):
        error = ((model.predict(X_new) - y_new) ** 2).mean() / y_new.var()
        scores = graph_scores(graph, world.dag)
        print(f"{name:22} {error:.3f}  {scores['f1']:.2f}  {scores['direction_accuracy']:.2f}")
    print(f"best possible error    {best_error(world, 'Y', n_rows=2000).standardized:.3f}")

    shown = {"nothing_known": nothing_known.graph_, "edited": edited, "truth": world.graph("Y")}
    return [draw(graph, name.replace("_", " "), folder / f"knowledge_{name}.png") for name, graph in shown.items()]


def corrected(graph: CausalGraph, truth: pd.DataFrame) -> CausalGraph:
    """Remove the strongest false edge and add a missing edge, as a user who knows these two edges would."""
    false = [edge for edge in pairs(graph.edges()) if truth.loc[edge] == 0][:1]
    for cause, effect in false:
        graph = graph.without_edge(cause, effect)
        print(f"removed by hand: {cause} -> {effect}")
    true = [(cause, effect) for cause in truth.index for effect in truth.columns if truth.loc[cause, effect] != 0]
    missing = [edge for edge in true if edge not in pairs(graph.edges())]
    for cause, effect in missing[:1]:
        try:
            graph = graph.with_edge(cause, effect)
        except ValueError:  # it would close a cycle with learned edges
            continue
        print(f"added by hand: {cause} -> {effect}")
    return graph


def pairs(edges: pd.DataFrame) -> list[tuple[str, str]]:
    """List the edges as pairs of cause and effect."""
    return list(zip(edges["cause"], edges["effect"], strict=True))


def draw(graph: CausalGraph, title: str, path: Path) -> Path:
    """Save a figure."""
    ax = graph.plot()
    ax.set_title(title, fontsize=11)
    path.parent.mkdir(parents=True, exist_ok=True)
    ax.figure.figure.savefig(path, dpi=90, bbox_inches="tight")
    plt.close("all")
    return path


if __name__ == "__main__":
    mpl.use("agg")
    main(Path("demo"))
