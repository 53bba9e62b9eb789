"""CASTLE in plain PyTorch: a custom training loop on the diabetes table.

``castlereg.torch`` provides the network and the objective; you write the loop, the optimizer and early stopping. The
edge weights of the trained network are the paper's graph.
"""

from __future__ import annotations

import copy
import math

import pandas as pd
import torch
from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split

from castlereg.layout import Layout, Node
from castlereg.torch import Batch, CastleNetwork, castle_loss, standardization

LAYOUT = Layout((Node(), Node("binary"), *[Node()] * 8, Node(target=True)))  # sex has two values


def train(network: CastleNetwork, rows: Batch, validation: Batch, seed: int = 0, max_epochs: int = 200) -> None:
    """Train until the validation error has not improved for 30 epochs; keep the weights of the best epoch."""
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-3)
    order = torch.Generator().manual_seed(seed)
    best, best_error, best_epoch = network.state_dict(), math.inf, 0
    for epoch in range(max_epochs):
        for step in torch.randperm(len(rows.weight), generator=order).split(32):
            loss, _ = castle_loss(network, rows.take(step), reg_beta=0.01)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        error = squared_error(network, validation)
        if error < best_error:
            best, best_error, best_epoch = copy.deepcopy(network.state_dict()), error, epoch
        if epoch - best_epoch >= 30:
            break
    network.load_state_dict(best)


def squared_error(network: CastleNetwork, rows: Batch) -> float:
    """Return the mean squared error of the target, in units of its variance."""
    with torch.no_grad():
        return float(((network.target_outputs(rows.inputs)[:, 0, 0] - rows.truth[:, -1, 0]) ** 2).mean())


def main(max_epochs: int = 200) -> float:
    """Train, print the test error and the strongest edges, and return the error."""
    X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    table = X.assign(sex=X["sex"] - 1, progression=y)
    training, held_out = train_test_split(table, random_state=0)
    parts = *train_test_split(training, test_size=0.1, random_state=0), held_out
    by = standardization(parts[0], LAYOUT)
    rows, validation, test = (Batch.of_table(part, LAYOUT, by) for part in parts)
    network = CastleNetwork(LAYOUT, (11, 11), seed=0, null_loss=by.null_loss)
    train(network, rows, validation, max_epochs=max_epochs)
    error = squared_error(network, test)
    weights = pd.DataFrame(network.edge_weights(), table.columns, table.columns)
    print(f"test error {error:.3f} in units of the variance; edges with the largest weights:")
    print(weights.rename_axis("cause").rename_axis("effect", axis=1).stack().nlargest(5).round(2).to_string())
    return error


if __name__ == "__main__":
    main()
