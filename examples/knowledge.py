"""Knowledge: say what you know of the graph, edit what was learned, and train again.

Rows of the paper's example graph, where the truth is known. First the network knows nothing; then that X1 has no
causes and that X8 and X9 come last; then two learned edges are edited by hand and the network is trained with the edges
of that graph only. Knowledge makes the graph better, and here the prediction worse: X8 and X9 are effects of Y and
predict it, and a network that must not use them knows less. Say what you know for the sake of the graph, or when
such columns come too late to predict from.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import pandas as pd

from castlereg import CastleRegressor, CausalGraph, EdgeConstraints
from castlereg.graph.scores import graph_scores
from castlereg.paper import best_error
from castlereg.synthetic import KnownWorld, example_dag


def main(folder: Path, max_epochs: int = 200) -> list[Path]:
    """Fit three times, print and draw; return the pictures."""
    world = KnownWorld(example_dag(), function="sine", noise_std=0.5)
    train, test = world.sample(500, random_state=3), world.sample(2000, random_state=4)
    X, y, X_new, y_new = train.drop(columns="Y"), train["Y"], test.drop(columns="Y"), test["Y"]

    nothing_known = CastleRegressor(0.03, n_members=5, max_epochs=max_epochs, random_state=0).fit(X, y)
    known = EdgeConstraints(sources=["X1"], tiers=[["X1", "X2", "X3", "X4", "X5", "X6", "X7", "Y"], ["X8", "X9"]])
    informed = CastleRegressor(0.03, n_members=5, constraints=known, max_epochs=max_epochs, random_state=0).fit(X, y)

    edited = corrected(strong(informed.graph_), world.dag)
    refitted = CastleRegressor(0.03, n_members=5, max_epochs=max_epochs, random_state=0).fit(X, y, graph=edited)

    print(f"\n{'':22} error    F1  directions right")
    for name, model, graph in (
        ("nothing known", nothing_known, strong(nothing_known.graph_)),
        ("sources and tiers", informed, strong(informed.graph_)),
        ("edited and refitted", refitted, edited),
    ):
        error = ((model.predict(X_new) - y_new) ** 2).mean() / y_new.var()
        scores = graph_scores(graph, world.dag)
        print(f"{name:22} {error:.3f}  {scores['f1']:.2f}  {scores['direction_accuracy']:.2f}")
    print(f"best possible error    {best_error(world, 'Y', n_rows=2000).standardized:.3f}")

    shown = {"nothing_known": strong(nothing_known.graph_), "edited": edited, "truth": world.graph("Y")}
    return [draw(graph, name.replace("_", " "), folder / f"knowledge_{name}.png") for name, graph in shown.items()]


def strong(graph: CausalGraph) -> CausalGraph:
    """Keep the edges that most of the networks have."""
    weak = graph.edges().query("confidence < 0.5")
    for cause, effect in pairs(weak):
        graph = graph.without_edge(cause, effect)
    return graph


def corrected(graph: CausalGraph, truth: pd.DataFrame) -> CausalGraph:
    """Take the strongest false edge out and put one missing edge in, as somebody would who knows these two better."""
    false = [edge for edge in pairs(graph.edges()) if truth.loc[edge] == 0][:1]
    for cause, effect in false:
        graph = graph.without_edge(cause, effect)
        print(f"taken out by hand: {cause} -> {effect}")
    true = [(cause, effect) for cause in truth.index for effect in truth.columns if truth.loc[cause, effect] != 0]
    missing = [edge for edge in true if edge not in pairs(graph.edges())]
    for cause, effect in missing[:1]:
        try:
            graph = graph.with_edge(cause, effect)
        except ValueError:  # it would close a cycle with what was learned
            continue
        print(f"put in by hand: {cause} -> {effect}")
    return graph


def pairs(edges: pd.DataFrame) -> list[tuple[str, str]]:
    """List cause and effect of edges."""
    return list(zip(edges["cause"], edges["effect"], strict=True))


def draw(graph: CausalGraph, title: str, path: Path) -> Path:
    """Write a picture."""
    ax = graph.plot()
    ax.set_title(title, fontsize=11)
    path.parent.mkdir(parents=True, exist_ok=True)
    ax.figure.figure.savefig(path, dpi=90, bbox_inches="tight")
    plt.close("all")
    return path


if __name__ == "__main__":
    mpl.use("agg")
    main(Path("demo"))
