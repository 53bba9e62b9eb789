"""Train the loop and the estimator from the same starting weights, on the same training and validation rows."""

from __future__ import annotations

import importlib.util
from functools import cache, partial
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split
from tqdm import tqdm

from benchmarks.torch_loop.page import RESULTS, as_text
from castlereg import CastleRegressor, CausalGraph, Recipe
from castlereg.layout import Layout
from castlereg.network import Parameters, initialize
from castlereg.random_streams import OfFit, fit_stream
from castlereg.torch import Batch, CastleNetwork, castle_loss, input_graph, standardization, to_estimator
from castlereg.training.sources import BatchStream

SEEDS, ORDERS = 10, 3
SIZES = (11, 11)  # what the estimator has by default


class Problem(NamedTuple):
    """Rows of the diabetes table, progression last."""

    train: pd.DataFrame
    validation: pd.DataFrame
    test: pd.DataFrame


def problem(split: int, seed: int) -> Problem:
    """Split the table: the split decides the test rows, the seed the validation rows."""
    X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    rows, test = train_test_split(X.assign(sex=X["sex"] - 1, progression=y), random_state=split)
    train, validation = train_test_split(rows, test_size=0.1, random_state=seed)
    return Problem(train, validation, test)


def loop(rows: Problem, seed: int, batches: int) -> tuple[float, CausalGraph]:
    """Return test error and graph of the example's loop; ``batches`` decides the order of its batches."""
    layout = example().LAYOUT
    by = standardization(rows.train, layout)
    train, validation, test = (Batch.of_table(part, layout, by) for part in rows)
    network = CastleNetwork(layout, SIZES, seed=seed, null_loss=by.null_loss)
    example().train(network, train, validation, seed=batches)
    graph = input_graph(network, list(rows.train.columns), validation=validation)
    return example().squared_error(network, test), graph


def estimator(rows: Problem, seed: int, batches: int) -> tuple[float, CausalGraph]:
    """Return test error and graph of the estimator, from the starting weights of the loop."""
    return scored(fitted(rows, seed, batches), rows)


def fitted(rows: Problem, seed: int, batches: int) -> CastleRegressor:
    """Fit the estimator from the starting weights of the loop."""
    (X, y), (X_val, y_val), _ = map(features_and_target, rows)

    def fit(**options: Any) -> CastleRegressor:
        model = CastleRegressor(0.01, random_state=batches, **options)
        return model.fit(X, y, X_val=X_val, y_val=y_val)

    order = fit(max_epochs=1).model_.preprocessing.node_order()  # networks see the columns in their own order
    return fit(recipe=Recipe(input_init=partial(start, order=order, number=seed)))


def replay(rows: Problem, seed: int, batches: int) -> tuple[float, CausalGraph]:
    """Train the estimator's network again in PyTorch, with the estimator's own batches, in as many epochs."""
    model = fitted(rows, seed, batches)
    networks, coded = model.model_.networks, model.model_.rows
    assert coded is not None
    order = networks.preprocessing.node_order()
    by, key = networks.standardization.of_member(0), np.random.SeedSequence(batches)
    network = CastleNetwork.from_parameters(
        start(networks.layout, SIZES, key, (), order=order, number=seed), networks.layout, null_loss=by.null_loss
    )
    batch = Batch.of_table(networks.preprocessing.table(coded).inputs, networks.layout, by)
    stream = BatchStream(np.arange(len(coded), dtype=np.int32), 32, fit_stream(key, OfFit.NETWORKS, 0))
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-3)
    for _ in range(int(model.history_["validation_loss"].argmin()) + 1):
        drawn = np.full((1, -(-len(coded) // 32), 32), -1, np.int32)
        stream.fill_rows(drawn)
        for step in drawn[0]:
            loss, _ = castle_loss(network, batch.take(torch.tensor(step[step >= 0])), reg_beta=0.01)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return scored(to_estimator(network, model, *features_and_target(rows.validation)), rows)


def scored(model: CastleRegressor, rows: Problem) -> tuple[float, CausalGraph]:
    """Return the test error, in units of the variance of the training rows, and the graph."""
    X, y = features_and_target(rows.test)
    return float(((model.predict(X) - y) ** 2).mean() / rows.train["progression"].var(ddof=0)), model.graph_


def features_and_target(part: pd.DataFrame) -> tuple[pd.DataFrame, pd.Series]:
    """Take the target apart."""
    return part.drop(columns="progression"), part["progression"]


def start(
    layout: Layout,
    sizes: tuple[int, ...],
    seed: np.random.SeedSequence,
    nodes: tuple[int, ...],
    *,
    order: NDArray[np.int64],
    number: int,
) -> Parameters:
    """Return the starting weights of the loop with this seed, in the order of the estimator's nodes."""
    drawn: Any = initialize(example().LAYOUT, sizes, number)
    return Parameters(
        drawn.input_weights[order][:, order],
        drawn.input_bias[order],
        drawn.hidden,
        drawn.output_weights[order],
        drawn.output_bias[order],
    )


@cache
def example() -> ModuleType:
    """Load the example."""
    path = Path(__file__).parents[2] / "examples" / "torch_loop.py"
    spec = importlib.util.spec_from_file_location("torch_loop", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run() -> None:
    """Train all, and write the results.

    One split with ten seeds, each with three orders of batches; then ten more splits with one seed and one order each.
    """
    cases = [(0, seed, batches) for seed in range(SEEDS) for batches in range(ORDERS)]
    cases += [(split, split, 0) for split in range(1, SEEDS + 1)]
    table = []
    for split, seed, batches in tqdm(cases):
        rows = problem(split, seed)
        for name, train in (("loop", loop), ("estimator", estimator), ("replay", replay)):
            if name == "replay" and (split or batches):
                continue
            error, graph = train(rows, seed, batches)
            edges = graph.weights.loc[list(rows.train.columns), list(rows.train.columns)].to_numpy() > 0
            table.append((split, seed, batches, name, error, as_text(edges)))
    columns = ["split", "seed", "batches", "method", "test_error", "edges"]
    pd.DataFrame(table, columns=columns).to_csv(RESULTS, index=False, float_format="%.6f")
