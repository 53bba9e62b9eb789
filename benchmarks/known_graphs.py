"""Test error on data with a known graph: CASTLE, the plain network with both starts, and least squares.

Ten folds on the training rows, beta by validation, mean of the ten fold networks' errors on fresh test rows.
All networks of a draw share folds and seeds. Errors are in units of the target's variance.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import KFold
from sklearn.preprocessing import StandardScaler

from benchmarks.problems import by_fold_network
from castlereg import NetworkRegressorCV, Recipe
from castlereg.regularizers import Castle, Regularizer
from castlereg.synthetic import example_dag, random_dag, sample

BETAS = (0.001, 0.01, 0.1, 1.0)


@dataclass(frozen=True)
class Draw:
    """Training and test rows, the target last and standardized by the training rows."""

    train: NDArray[np.float64]
    test: NDArray[np.float64]


def example_draw(seed: int, n_train: int = 500, n_test: int = 2000) -> Draw:
    """Draw from the paper's example graph with true sigmoids and unit noise."""
    rows = sample(example_dag(), n_train + n_test, random_state=seed).to_numpy()
    return _standardized(rows, n_train)


def noise_columns_draw(seed: int, strong: bool, n_train: int = 300, n_test: int = 2000) -> Draw:
    """Draw from a random sigmoid graph of 15 nodes and 45 edges with 20 columns of pure noise beside it.

    As in the paper's appendix the noise of a graph has a standard deviation between 0.3 and 1. The target is a random
    node with parents. Edges weigh 1 as in the paper, which leaves little to predict, or, when strong, between 2 and 4
    with a random sign, which brings the error to about 0.4.
    """
    rng = np.random.default_rng(seed)
    dag = random_dag(15, 45, rng)
    if strong:
        dag = dag * rng.uniform(2, 4, dag.shape) * rng.choice([-1, 1], dag.shape)
    target = rng.choice(dag.columns[(dag != 0).any(axis=0)])
    rows = sample(dag, n_train + n_test, noise_std=rng.uniform(0.3, 1.0), random_state=rng)
    features = rows.drop(columns=target).to_numpy()
    noise = rng.standard_normal((len(rows), 20))
    return _standardized(np.column_stack([features, noise, rows[target]]), n_train)


def _standardized(rows: NDArray[np.float64], n_train: int) -> Draw:
    train, test = rows[:n_train], rows[n_train:]
    scaler = StandardScaler().fit(train)
    return Draw(scaler.transform(train), scaler.transform(test))


def network_error(
    draw: Draw, candidates: Sequence[Sequence[Regularizer]], seed: int, start: Literal["small", "glorot"]
) -> float:
    """Return the mean test error of the ten fold networks of the best candidate."""
    folds = KFold(10, shuffle=True, random_state=seed)
    model = NetworkRegressorCV(candidates, cv=folds, recipe=Recipe(input_init=start), random_state=seed)
    model.fit(draw.train[:, :-1], draw.train[:, -1])
    return float(((by_fold_network(model, draw.test[:, :-1]) - draw.test[:, -1]) ** 2).mean())


def errors(draw: Draw, seed: int) -> dict[str, float]:
    """Return the test error of every method on one draw."""
    ols = LinearRegression().fit(draw.train[:, :-1], draw.train[:, -1])
    return {
        "CASTLE": network_error(draw, [(Castle(beta),) for beta in BETAS], seed, "small"),
        "plain, small start": network_error(draw, [()], seed, "small"),
        "plain, usual start": network_error(draw, [()], seed, "glorot"),
        "OLS": float(((ols.predict(draw.test[:, :-1]) - draw.test[:, -1]) ** 2).mean()),
    }


def main(n_draws: int = 10) -> None:
    """Print the tables."""
    seeds = range(n_draws)
    for name, draws in (
        ("example graph, sigmoid, 500 rows", [example_draw(seed) for seed in seeds]),
        ("15 nodes + 20 noise columns, strong edges, 300 rows", [noise_columns_draw(s, True) for s in seeds]),
        ("15 nodes + 20 noise columns, edges of 1, 300 rows", [noise_columns_draw(s, False) for s in seeds]),
    ):
        table = pd.DataFrame([errors(draw, seed) for seed, draw in enumerate(draws)])
        print(f"\n{name}: test MSE over {n_draws} draws, target standardized")
        print(table.round(4).to_string())
        print(table.mean().round(4).to_string())
        for other in list(table)[1:]:
            difference = table["CASTLE"] - table[other]
            error = difference.std(ddof=1) / np.sqrt(len(difference))
            share = table["CASTLE"].mean() / table[other].mean() - 1
            print(f"CASTLE less {other}: {difference.mean():+.4f} +- {error:.4f} (standard error), {share:+.1%}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10)
