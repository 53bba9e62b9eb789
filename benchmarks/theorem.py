"""Theorem 1 on trained networks: whether it holds, how tight it is, and whether the steps of its proof hold.

``python -m benchmarks.theorem [FIGURE]`` prints three tables, and writes the picture of the first bound.
"""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import spearmanr

from castlereg import CastleRegressor, NetworkRegressor
from castlereg.causal import example_dag, random_dag, sample
from castlereg_paper.bound import generalization_bound, sharpness, squared_errors

BETAS = (0.001, 0.01, 0.1, 1.0)
WORLDS = {"example": example_dag(), "random": random_dag(10, 20, 7).rename(index={"X9": "Y"}, columns={"X9": "Y"})}


def _rows(dag: pd.DataFrame, n_rows: int, seed: int) -> tuple[pd.DataFrame, pd.Series]:
    data = sample(dag, n_rows, random_state=seed)
    return data.drop(columns="Y"), data["Y"]


def _networks(seed: int) -> dict[str, Any]:
    plain = {"plain": NetworkRegressor(random_state=seed)}
    return {**{f"CASTLE, beta {beta:g}": CastleRegressor(beta, random_state=seed) for beta in BETAS}, **plain}


def bounds(n_rows: int = 200, n_seeds: int = 3) -> pd.DataFrame:
    """Return bound, losses on training and other rows, and the terms, for every network."""
    table = []
    for world, dag in WORLDS.items():
        for seed in range(n_seeds):
            X, y = _rows(dag, n_rows, seed)
            other = _rows(dag, 10_000, 1000 + seed)
            for name, model in _networks(seed).items():
                bound = generalization_bound(model.fit(X, y), X, y)
                parameters, batch = model.standardized(*other)
                loss = float(squared_errors(parameters, batch, model.model_.networks.layout).mean())
                table.append(
                    {
                        "world": world,
                        "network": name,
                        "bound": bound.total,
                        "loss on other rows": loss,
                        "loss on these": bound.empirical_loss,
                        "excess": loss - bound.empirical_loss,
                        "R": bound.acyclicity,
                        "V_Theta1": bound.input_l1,
                        "V_Theta2": bound.later_squares + bound.bias_squares,
                        "kappa": bound.kappa,
                        "C_1 (V_Theta1 + V_Theta2)": bound.c_1
                        * bound.gamma**2
                        * (bound.input_l1 + bound.later_squares + bound.bias_squares),
                        "squares of input weights below l1": bound.kl_step_holds,
                    }
                )
    return pd.DataFrame(table)


def orders(table: pd.DataFrame) -> pd.DataFrame:
    """Return Spearman's correlation of the excess loss with each term, among the CASTLE networks of one world."""
    castle = table[table["network"] != "plain"]
    columns = ["R", "V_Theta1", "V_Theta2", "kappa", "C_1 (V_Theta1 + V_Theta2)", "bound", "loss on these"]
    found = {
        world: {name: spearmanr(own[name], own["excess"]).statistic for name in columns}
        for world, own in castle.groupby("world")
    }
    return pd.DataFrame(found)


def perturbations(n_draws: int = 200) -> pd.DataFrame:
    """Return the actual change of outputs compared with gamma, and spectral norms of noise compared with the proof."""
    X, y = _rows(example_dag(), 200, 0)
    rng = np.random.default_rng(0)
    table = []
    for width, gamma in [(4, 0.1), (4, 1.0), (4, 100.0), (10, 0.1), (10, 1.0), (10, 100.0), (40, 1.0)]:
        model = CastleRegressor(hidden_layer_sizes=(width, width), random_state=0).fit(X, y)
        bound = generalization_bound(model, X, y, gamma=gamma)
        parameters, batch = model.standardized(X, y)
        moved = sharpness(
            parameters, np.asarray(batch.inputs), bound.sigma, model.model_.networks.layout.edge_mask(), n_draws=n_draws
        )
        norm = np.mean([np.linalg.norm(rng.standard_normal((width, width)), 2) for _ in range(n_draws)])
        claimed = np.sqrt(2 * np.log(2 * math.e * bound.width))
        table.append(
            {
                "width": width,
                "gamma": gamma,
                "sigma": bound.sigma,
                "outputs move by": moved,
                "share of gamma": moved / gamma,
                "spectral norm of noise / sigma": norm,
                "the proof's r": claimed,
            }
        )
    return pd.DataFrame(table)


def main(arguments: list[str]) -> None:
    """Print everything."""
    pd.set_option("display.width", 200)
    table = bounds()
    print(
        table.groupby(["world", "network"], sort=False)
        .mean(numeric_only=True)
        .T.to_string(float_format="{:.4g}".format)
    )
    held = (table["bound"] >= table["loss on other rows"]).sum()
    print(
        f"\nThe bound held for {held} of {len(table)} networks; smallest ratio to the loss on other rows: "
        f"{(table['bound'] / table['loss on other rows']).min():.3g}"
    )
    print("\nSpearman's correlation of the generalization gap with:")
    print(orders(table).round(2).to_string())
    print("\nPerturbation step:")
    print(perturbations().to_string(index=False, float_format="{:.4g}".format))
    if arguments:
        import matplotlib as mpl

        mpl.use("Agg")
        from matplotlib import pyplot as plt

        X, y = _rows(example_dag(), 200, 0)
        model = CastleRegressor(random_state=0).fit(X, y)
        parameters, batch = model.standardized(*_rows(example_dag(), 10_000, 1000))
        loss = float(squared_errors(parameters, batch, model.model_.networks.layout).mean())
        generalization_bound(model, X, y).plot(test_loss=loss)
        plt.savefig(arguments[0])


if __name__ == "__main__":
    main(sys.argv[1:])
