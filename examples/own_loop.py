"""Your own training loop: the paper's formulas in plain JAX and optax.

``castlereg.castle`` has the whole objective as a pure function of arrays, and each of its terms. Here it trains a
network without any estimator: a layout, starting weights, one loss, one update, one ``scan`` over steps. The weights
of the input layers become a graph in the end. Change a term, the optimizer or the whole loop; ``CastleRegressor`` does
the same with early stopping and standardization by fold.
"""

from __future__ import annotations

from pathlib import Path

import jax
import jax.numpy as jnp
import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import optax
from jax import Array

from castlereg import InputGraph
from castlereg.acyclicity.cut import weakest_strong_weight
from castlereg.castle import castle_loss
from castlereg.causal import KnownWorld, example_dag
from castlereg.layout import Layout, Node
from castlereg.losses import Batch
from castlereg.network import Parameters, initialize, mask_inputs, squared_adjacency

State = tuple[Parameters, optax.OptState]


def main(folder: Path, max_epochs: int = 200) -> list[Path]:
    """Train, print and draw; return the figures."""
    rows = KnownWorld(example_dag(), function="sine", noise_std=0.5).sample(1000, random_state=0)
    rows = rows[[*rows.columns.drop("Y"), "Y"]]  # targets come after all features
    table = ((rows - rows.mean()) / rows.std()).to_numpy(np.float32)
    layout = Layout((*(Node() for _ in rows.columns[1:]), Node(target=True)))
    mask = jnp.asarray(layout.edge_mask())  # no node predicts itself
    optimizer = optax.adam(1e-3)

    def loss(parameters: Parameters, x: Array) -> tuple[Array, dict[str, Array]]:
        batch = Batch(x, x[:, :, None], jnp.full(len(x), 1 / len(x)))
        return castle_loss(mask_inputs(parameters, mask), batch, layout, reg_beta=0.03)

    def step(state: State, x: Array) -> tuple[State, dict[str, Array]]:
        parameters, moments = state
        (_, terms), gradient = jax.value_and_grad(loss, has_aux=True)(parameters, x)
        updates, moments = optimizer.update(gradient, moments, parameters)
        return (optax.apply_updates(parameters, updates), moments), terms

    epoch = jax.jit(lambda state, batches: jax.lax.scan(step, state, batches))
    start = jax.tree.map(jnp.asarray, initialize(layout, (10, 10), seed=0))
    state, history, rng = (start, optimizer.init(start)), [], np.random.default_rng(0)
    for _ in range(max_epochs):
        state, terms = epoch(state, rng.permutation(table)[:992].reshape(31, 32, -1))
        history.append({name: float(values.mean()) for name, values in terms.items()})
    for name, value in history[-1].items():
        print(f"{name:15} {history[0][name]:9.3g} -> {value:9.3g}")

    trained = mask_inputs(state[0], mask)
    weights = np.sqrt(np.asarray(squared_adjacency(trained.input_weights, layout), np.float64))
    cut = weakest_strong_weight(weights)  # best separation of strong and weak edges
    graph = InputGraph.from_networks(weights[None], list(rows.columns), "Y", threshold=cut)
    print(
        f"\n{graph.dropped_weight:.0%} of the edge weight above {cut:.3f} closed cycles and was cut; parents of Y: ",
        end="",
    )
    print(", ".join(graph.parents("Y")) or "none", "(truth: X2, X3)")
    return [draw(history, graph, folder / "own_loop.png")]


def draw(history: list[dict[str, float]], graph: InputGraph, path: Path) -> Path:
    """Draw the four terms, and the graph."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained", width_ratios=(2, 3))
    for name, colour in zip(history[0], ("#2f9e44", "#52616f", "#1971c2", "#d9480f"), strict=True):
        left.plot([terms[name] for terms in history], color=colour, label=name)
    left.set(xlabel="epoch", yscale="log", title="terms of the objective")
    left.spines[["top", "right"]].set_visible(False)
    left.legend(frameon=False, fontsize=8)
    graph.plot(right)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    plt.close(figure)
    return path


if __name__ == "__main__":
    mpl.use("agg")
    main(Path("demo"))
