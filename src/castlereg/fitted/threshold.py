"""The threshold of a graph's edges, by held-out prediction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from castlereg.data.rows import Rows
from castlereg.data.targets import ClassTarget, Target
from castlereg.fitted.networks import Networks

_MOST_THRESHOLDS = 32
_MOST_ROWS = 20_000  # enough to know a mean loss; of more, evenly spaced ones are used


@dataclass(frozen=True)
class HeldOut:
    """Validation rows of networks.

    Parameters
    ----------
    cells : array of shape (rows, features)
        Coded by the schema.
    truth : sequence of array of shape (rows,)
        Values of each target.
    spread : sequence of float
        Standard deviation of each numeric target over all rows; not used for classes.
    by_member : sequence of array of int
        Which of the rows were each network's validation rows, each once.
    """

    cells: NDArray[np.float64]
    truth: Sequence[NDArray[Any]]
    spread: Sequence[float]
    by_member: Sequence[NDArray[np.int64]]

    @classmethod
    def of(cls, targets: Sequence[Target], parts: Sequence[Rows], by_member: Sequence[NDArray[Any]]) -> HeldOut:
        """Collect coded rows of parts, one below the other, by the indices of every member's validation rows."""
        indices = [np.unique(rows).astype(np.int64) for rows in by_member]
        chosen = evenly(np.unique(np.concatenate(indices)), _MOST_ROWS)
        cells, first = [], 0
        for part in parts:
            of_part = chosen[(chosen >= first) & (chosen < first + len(part))] - first
            cells.append(part.take(of_part).columns.cells)
            first += len(part)
        truth = [np.concatenate(columns) for columns in zip(*(part.targets for part in parts), strict=True)]
        spread = [
            1.0 if isinstance(target, ClassTarget) else float(values.std())
            for target, values in zip(targets, truth, strict=True)
        ]
        positions = [np.searchsorted(chosen, np.intersect1d(rows, chosen)) for rows in indices]
        return cls(np.concatenate(cells), [values[chosen] for values in truth], spread, positions)


def sparsest_threshold(networks: Networks, weights: NDArray[np.float64], held_out: HeldOut) -> float:
    """Choose the highest threshold at which the targets are still predicted nearly as well as at the best one.

    At a threshold, inputs whose mean learned weight into every target is below it are removed from the targets'
    sub-networks. Nearly is within one standard error of the mean loss of held-out rows.

    Parameters
    ----------
    networks : Networks
    weights : array of shape (nodes, nodes)
        Mean learned weights of the edges.
    held_out : HeldOut
    """
    n_features = networks.layout.n_features
    into_targets = weights[:n_features, n_features:].max(axis=1)
    thresholds = _candidates(into_targets)
    means, errors = [], []
    for threshold in thresholds:
        losses = _losses(networks.of_features(into_targets >= threshold), held_out)
        means.append(losses.mean())
        errors.append(losses.std(ddof=1) / np.sqrt(len(losses)) if len(losses) > 1 else 0.0)
    best = int(np.argmin(means))
    near = np.flatnonzero(np.array(means) <= means[best] + errors[best])
    return float(thresholds[near[-1]])


def evenly(rows: NDArray[np.int64], most: int) -> NDArray[np.int64]:
    """Keep at most ``most`` rows, evenly spaced.

    Examples
    --------
    >>> import numpy as np
    >>> evenly(np.arange(10), 4)
    array([0, 3, 6, 9])
    """
    return rows if len(rows) <= most else rows[np.linspace(0, len(rows) - 1, most).astype(np.int64)]


def _candidates(weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return ascending thresholds: zero, and weights at which one more feature is left out."""
    return np.r_[0.0, evenly(np.unique(weights[weights > 0]), _MOST_THRESHOLDS)]


def _losses(networks: Networks, held_out: HeldOut) -> NDArray[np.float64]:
    """Return the loss of every held-out row, summed over targets and averaged over the members it was for."""
    total, count = np.zeros((2, len(held_out.cells)))
    for member, rows in enumerate(held_out.by_member):
        count[rows] += 1
        predictions = networks.of_members(np.array([member])).predict(held_out.cells[rows])
        for k, (target, predicted) in enumerate(zip(networks.preprocessing.targets, predictions, strict=True)):
            values = held_out.truth[k][rows]
            if isinstance(target, ClassTarget):
                likely = predicted[0, np.arange(len(rows)), target.codes(values)]
                total[rows] -= np.log(np.maximum(likely, 1e-12))
            else:
                total[rows] += ((predicted[0] - values) / held_out.spread[k]) ** 2
    counted = count > 0
    losses: NDArray[np.float64] = total[counted] / count[counted]
    return losses
