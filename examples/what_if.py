"""What if: the direction of one edge decides whether advertising helps, and you know this direction.

800 shops; each column is the deviation from the mean of the chain. Busy streets need no advertising, so head office
advertises where footfall is low: shops that advertise more sell less. Does advertising lower sales? The rows do not
determine whether footfall leads to advertising or advertising to footfall. The answer averages over both directions, so
its band is wide. But you know that footfall was counted before the shops opened. With this arrow, the answer is clear
and correct: the rows come from known equations, so the truth can be printed next to it.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from castlereg import CastleRegressor, CausalGraph
from castlereg.causal import Effect, KnownWorld, StructuralModel

ARROWS = {
    ("footfall", "advertising"): -0.8,
    ("footfall", "visitors"): 1.0,
    ("advertising", "visitors"): 0.5,
    ("price", "visitors"): -0.6,
    ("price", "sales"): 0.5,
    ("visitors", "sales"): 1.0,
}


def main(folder: Path, max_epochs: int = 200) -> list[Path]:
    """Fit, estimate effects, reverse an edge and estimate again; return the figures."""
    truth = shops()
    rows = truth.sample(800, random_state=1)
    X, y = rows.drop(columns="sales"), rows["sales"]
    model = CastleRegressor(max_epochs=max_epochs, random_state=0).fit(X, y)
    print("Edges whose direction is uncertain:")
    print(
        model.graph_.uncertain_edges()[["cause", "effect", "confidence", "direction"]].round(2).to_string(index=False)
    )

    learned = model.structural_model()  # averages over plausible graphs
    worlds = {
        "the arrow may point either way": learned,
        "advertising -> footfall": model.structural_model(with_arrow(model.graph_, "advertising", "footfall")),
        "footfall -> advertising": model.structural_model(with_arrow(model.graph_, "footfall", "advertising")),
        "truth": truth,
    }
    print("\nEffect of one more unit of advertising on mean sales:")
    for name, world in worlds.items():
        print(f"  {changes(world)}  {name}")
    print("\nAdvertising one unit above the mean in all shops, prices one unit below:")
    do = {"advertising": 1.0, "price": -1.0}
    print(worlds["footfall -> advertising"].what_if(do, "sales").summary())
    print(f"Truth: {truth.what_if(do, 'sales').after.estimate[0]:.2f}.")

    titles = {
        "before: the arrow may point either way": "the arrow may point either way",
        "after the edit: footfall -> advertising": "footfall -> advertising",
    }
    shown = {title: worlds[name].effect("advertising", "sales") for title, name in titles.items()}
    return [draw_graph(learned, folder / "what_if_graph.png"), draw(shown, truth, folder / "what_if_effects.png")]


def shops() -> KnownWorld:
    """Return the equations that the rows come from."""
    names = ["footfall", "advertising", "price", "visitors", "sales"]
    dag = pd.DataFrame(0.0, index=names, columns=names)
    for arrow, weight in ARROWS.items():
        dag.loc[arrow] = weight
    noise = dict.fromkeys(
        ["price", "visitors", "sales"], "laplace"
    )  # the others are Gaussian, so their direction is not identifiable
    return KnownWorld(
        dag, function="linear", noise=noise, noise_std={"advertising": 0.6, "visitors": 0.7, "sales": 0.5}
    )


def with_arrow(graph: CausalGraph, cause: str, effect: str) -> CausalGraph:
    """Return the graph with the edge between two columns pointing this way."""
    return graph if cause in graph.parents(effect) else graph.reversed_edge(effect, cause)


def changes(world: StructuralModel) -> str:
    """Format the effect of one unit of advertising, with its band."""
    effect = world.effect("advertising", "sales", by=1.0)
    (row,) = effect.to_frame().itertuples()
    band = "" if pd.isna(row.low) else f"({row.low:+.2f} to {row.high:+.2f})"
    return f"{row.estimate:+.2f} {band:16}"


def draw(effects: dict[str, Effect], truth: KnownWorld, path: Path) -> Path:
    """Draw the effect in each case, with the true one."""
    figure, axes = plt.subplots(1, len(effects), figsize=(10, 4), sharey=True, layout="constrained")
    for ax, (name, effect) in zip(axes, effects.items(), strict=True):
        effect.plot(ax)
        true = truth.effect("advertising", "sales", values=list(effect.values))
        ax.plot(true.values, true.estimate, ":", color="black", label="truth")
        ax.set_title(name, fontsize="medium")
        ax.legend(fontsize="small", frameon=False)
        ax.label_outer()
    return save(figure, path)


def draw_graph(world: StructuralModel, path: Path) -> Path:
    """Draw the learned graph."""
    ax = world.graph().plot()
    ax.set_title("learned graph", fontsize=11)
    return save(ax.figure.figure, path)


def save(figure: Figure, path: Path) -> Path:
    """Save a figure."""
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=90, bbox_inches="tight")
    plt.close("all")
    return path


if __name__ == "__main__":
    mpl.use("agg")
    main(Path("demo"))
