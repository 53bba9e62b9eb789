"""Which columns the targets need: the threshold of the graph, and the columns of a refit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from castlereg.fitted.held_out import HeldOut, evenly
from castlereg.fitted.networks import Networks
from castlereg.table.preprocessing import Preprocessing
from castlereg.table.targets import ClassTarget

_MOST_THRESHOLDS = 32


def sparsest_threshold(networks: Networks, weights: NDArray[np.float64], held_out: HeldOut) -> float:
    """Choose the highest threshold at which the targets are still predicted nearly as well as at the best one.

    At a threshold, inputs whose mean learned weight into every target is below it are removed from the targets'
    sub-networks. "Nearly" means within one standard error of the mean loss of held-out rows.
    """
    n_features = networks.layout.n_features

    def losses_of(choices: NDArray[np.bool_]) -> NDArray[np.float64]:
        return _losses(networks, np.repeat(choices[:, None], networks.n_members, axis=1), held_out)

    return highest_harmless(weights[:n_features, n_features:].max(axis=1), losses_of)


def highest_harmless(strongest: NDArray[np.float64], losses_of: Callable[[NDArray[np.bool_]], Any]) -> float:
    """Choose the highest threshold whose mean loss is within one standard error of the lowest.

    Parameters
    ----------
    strongest : array of shape (features,)
        Weight of each feature's strongest edge into a target.
    losses_of : callable
        From the features to keep, shape (choices, features), to the losses of held-out rows, shape (choices, rows).

    Examples
    --------
    >>> import numpy as np
    >>> highest_harmless(np.array([0.1, 0.9]), lambda kept: np.where(kept[:, 1:], [1.0, 1.2], [3.0, 3.2]))
    0.9
    """
    # Zero, and weights at which one more feature is left out.
    thresholds = np.r_[0.0, evenly(np.unique(strongest[strongest > 0]), _MOST_THRESHOLDS)]
    losses = losses_of(strongest >= thresholds[:, None])
    return float(thresholds[_as_good_as_the_best(losses)[-1]])


def _as_good_as_the_best(losses: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the choices whose mean loss is within one standard error of the lowest; losses are (choices, rows)."""
    means = losses.mean(axis=1)
    best = int(np.argmin(means))
    error = losses[best].std(ddof=1) / np.sqrt(losses.shape[1]) if losses.shape[1] > 1 else 0.0
    return np.flatnonzero(means <= means[best] + error)


def selected_columns(networks: Networks, held_out: HeldOut) -> NDArray[np.bool_]:
    """Choose the columns that each network needs for the targets, shape (members, features), in the user's order.

    Each network keeps its strongest columns, by the weight of their edges into the targets. All networks keep the same
    number of columns: the smallest whose loss on held-out rows is within one standard error of the lowest.
    """
    n_features = networks.layout.n_features
    strengths = into_targets(networks)
    rank = np.argsort(np.argsort(-strengths, axis=1, kind="stable"), axis=1)
    numbers = np.unique(np.geomspace(1, n_features, min(n_features, _MOST_THRESHOLDS)).round().astype(np.int64))
    choices = (rank < numbers[:, None, None]) & (strengths > 0)
    losses = _losses(networks, choices, held_out)
    chosen: NDArray[np.bool_] = choices[_as_good_as_the_best(losses)[0]]
    return chosen


def by_node(used: NDArray[np.bool_], preprocessing: Preprocessing) -> list[NDArray[np.bool_]]:
    """Turn masks of columns in the user's order, one for each member, into masks of nodes, the targets included."""
    targets = np.ones(len(preprocessing.targets), bool)
    return [np.r_[of_member[list(preprocessing.order)], targets] for of_member in used]


def usual_columns(used: NDArray[np.bool_]) -> tuple[int, ...]:
    """Return the columns that at least half of the members use."""
    return tuple(int(j) for j in np.flatnonzero(used.mean(axis=0) >= 0.5))


def into_targets(networks: Networks) -> NDArray[np.float64]:
    """Return the largest weight of each column into a target, shape (members, features), in the user's order."""
    layout, n_targets = networks.layout, len(networks.layout.targets)
    weights: Any = networks.parameters.input_weights
    squares = np.zeros((layout.n_nodes, len(weights), n_targets))
    of_targets = np.square(weights[:, :, -n_targets:].astype(np.float64)).sum(axis=-1)
    np.add.at(squares, layout.input_nodes, of_targets.swapaxes(0, 1))
    position = np.argsort(networks.preprocessing.node_order()[:-n_targets])
    return np.asarray(np.sqrt(squares[: layout.n_features]).max(axis=-1).T[:, position])


def _losses(networks: Networks, choices: NDArray[np.bool_], held_out: HeldOut) -> NDArray[np.float64]:
    """Return the loss of every held-out row when only some features are kept, shape (choices of features, rows).

    ``choices`` has shape (choices, members, features), in the user's order of features. Losses are summed over targets,
    averaged over the members that the row was held out for, and multiplied by the row's weight. Rows are encoded once
    for all choices, and once for consecutive members that share them.
    """
    total, count = np.zeros((len(choices), len(held_out.cells))), np.zeros(len(held_out.cells))
    encoded_rows: NDArray[np.int64] | None = None
    for member, rows in enumerate(held_out.by_member):
        count[rows] += 1
        if encoded_rows is None or not np.array_equal(rows, encoded_rows):
            encoded_rows, blocks = rows, list(networks.encoded_blocks(held_out.cells[rows]))
        network = networks.of_members(np.array([member]))
        for of_choice, features in zip(total, choices, strict=True):
            (outputs,) = network.of_features(features[member]).outputs_of_blocks(blocks, len(rows))
            for k, target in enumerate(networks.preprocessing.targets):
                predicted, values = target.decode(outputs[:, k]), held_out.truth[k][rows]
                if isinstance(target, ClassTarget):
                    likely = predicted[np.arange(len(rows)), target.codes(values)]
                    of_choice[rows] -= np.log(np.maximum(likely, 1e-12))
                elif target.loss is None:
                    of_choice[rows] += ((predicted - values) / held_out.spread[k]) ** 2
                else:
                    of_choice[rows] += target.errors(predicted, values)
    counted = count > 0
    share = (1.0 if held_out.weight is None else held_out.weight[counted]) / count[counted]
    return np.stack([of_choice[counted] * share for of_choice in total])
