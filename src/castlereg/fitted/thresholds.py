"""Which columns the targets need: the threshold of the graph, and the columns of a refit."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from castlereg.data.preprocessing import Preprocessing
from castlereg.data.targets import ClassTarget
from castlereg.fitted.held_out import HeldOut, evenly
from castlereg.fitted.networks import Networks
from castlereg.layout import Layout

_MOST_THRESHOLDS = 32


def sparsest_threshold(networks: Networks, weights: NDArray[np.float64], held_out: HeldOut) -> float:
    """Choose the highest threshold at which the targets are still predicted nearly as well as at the best one.

    At a threshold, inputs whose mean learned weight into every target is below it are removed from the targets'
    sub-networks. Nearly is within one standard error of the mean loss of held-out rows.
    """
    n_features = networks.layout.n_features
    into_targets = weights[:n_features, n_features:].max(axis=1)
    # Zero, and weights at which one more feature is left out.
    thresholds = np.r_[0.0, evenly(np.unique(into_targets[into_targets > 0]), _MOST_THRESHOLDS)]
    kept = into_targets >= thresholds[:, None]
    losses = _losses(networks, np.repeat(kept[:, None], networks.n_members, axis=1), held_out)
    return float(thresholds[_as_good_as_the_best(losses)[-1]])


def _as_good_as_the_best(losses: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the choices whose mean loss is within one standard error of the lowest; losses are (choices, rows)."""
    means = losses.mean(axis=1)
    best = int(np.argmin(means))
    error = losses[best].std(ddof=1) / np.sqrt(losses.shape[1]) if losses.shape[1] > 1 else 0.0
    return np.flatnonzero(means <= means[best] + error)


def selected_columns(networks: Networks, held_out: HeldOut) -> NDArray[np.bool_]:
    """Choose the columns that each network needs for the targets, shape (members, features), in the user's order.

    Each network keeps its strongest columns, by the weight of their edges into the targets. How many is the same for
    all: the fewest with which held-out rows are predicted nearly as well as with the best number of them, that is
    within one standard error.
    """
    n_features, n_targets = networks.layout.n_features, len(networks.layout.targets)
    weights: Any = networks.parameters.input_weights
    strengths = np.stack([_into_targets(of_member, networks.layout) for of_member in weights])
    position = np.argsort(networks.preprocessing.node_order()[:-n_targets])
    strengths = strengths[:, position]
    rank = np.argsort(np.argsort(-strengths, axis=1, kind="stable"), axis=1)
    numbers = np.unique(np.geomspace(1, n_features, min(n_features, _MOST_THRESHOLDS)).round().astype(np.int64))
    kept = (rank < numbers[:, None, None]) & (strengths > 0)
    losses = _losses(networks, kept, held_out)
    chosen: NDArray[np.bool_] = kept[_as_good_as_the_best(losses)[0]]
    return chosen


def by_node(used: NDArray[np.bool_], preprocessing: Preprocessing) -> list[NDArray[np.bool_]]:
    """Turn masks of columns in the user's order, one for each member, into masks of nodes, the targets included."""
    targets = np.ones(len(preprocessing.targets), bool)
    return [np.r_[of_member[list(preprocessing.order)], targets] for of_member in used]


def usual_columns(used: NDArray[np.bool_]) -> tuple[int, ...]:
    """Return the columns that at least half of the members use."""
    return tuple(int(j) for j in np.flatnonzero(used.mean(axis=0) >= 0.5))


def _into_targets(weights: Any, layout: Layout) -> NDArray[np.float64]:
    """Return the largest weight of each feature into a target, shape (features,), of one network."""
    of_targets = weights[:, -len(layout.targets) :]
    squares = np.zeros((layout.n_nodes, len(layout.targets)))
    np.add.at(squares, layout.input_nodes, np.square(of_targets.astype(np.float64)).sum(axis=-1))
    return np.asarray(np.sqrt(squares[: layout.n_features]).max(axis=1))


def _losses(networks: Networks, kept: NDArray[np.bool_], held_out: HeldOut) -> NDArray[np.float64]:
    """Return the loss of every held-out row when only some features are kept, shape (choices of features, rows).

    ``kept`` has shape (choices, members, features), in the user's order of features. Losses are summed over targets and
    averaged over the members that the row was held out for. Rows are encoded once, whatever the number of choices, and
    once for all members in a row that share them.
    """
    total, count = np.zeros((len(kept), len(held_out.cells))), np.zeros(len(held_out.cells))
    encoded_rows: NDArray[np.int64] | None = None
    for member, rows in enumerate(held_out.by_member):
        count[rows] += 1
        if encoded_rows is None or not np.array_equal(rows, encoded_rows):
            encoded_rows, blocks = rows, list(networks.encoded_blocks(held_out.cells[rows]))
        network = networks.of_members(np.array([member]))
        for of_choice, features in zip(total, kept, strict=True):
            (outputs,) = network.of_features(features[member]).outputs_of_blocks(blocks, len(rows))
            for k, target in enumerate(networks.preprocessing.targets):
                predicted, values = target.decode(outputs[:, k]), held_out.truth[k][rows]
                if isinstance(target, ClassTarget):
                    likely = predicted[np.arange(len(rows)), target.codes(values)]
                    of_choice[rows] -= np.log(np.maximum(likely, 1e-12))
                else:
                    of_choice[rows] += ((predicted - values) / held_out.spread[k]) ** 2
    counted = count > 0
    return np.stack([of_choice[counted] / count[counted] for of_choice in total])
