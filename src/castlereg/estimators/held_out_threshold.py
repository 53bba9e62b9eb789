"""The threshold of a graph's edges, by held-out prediction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from castlereg.data.preprocessing import Preprocessing
from castlereg.data.rows import Rows
from castlereg.data.targets import ClassTarget, Target
from castlereg.estimators.fitted_network import FittedNetwork

_MOST_THRESHOLDS = 32
_MOST_ROWS = 20_000  # of which a mean loss is known well enough; more are looked at in part, evenly


@dataclass(frozen=True)
class HeldOut:
    """Rows that networks were stopped by.

    Parameters
    ----------
    cells : array of shape (rows, features)
        Coded by the schema.
    truth : sequence of array of shape (rows,)
        Values of each target.
    spread : sequence of float
        Standard deviation of each target that is numbers, over all rows; not looked at for classes.
    by_member : sequence of array of int
        Which of the rows each network was stopped by, each once.
    """

    cells: NDArray[np.float64]
    truth: Sequence[NDArray[Any]]
    spread: Sequence[float]
    by_member: Sequence[NDArray[np.int64]]

    @classmethod
    def of(cls, targets: Sequence[Target], parts: Sequence[Rows], held_out: Sequence[NDArray[np.int64]]) -> HeldOut:
        """Collect coded rows of parts that stand one after the other, by their places."""
        places = [np.unique(rows) for rows in held_out]
        looked_at = evenly(np.unique(np.concatenate(places)), _MOST_ROWS)
        cells, first = [], 0
        for part in parts:
            own = looked_at[(looked_at >= first) & (looked_at < first + len(part))] - first
            cells.append(part.take(own).columns.cells)
            first += len(part)
        truth = [np.concatenate(columns) for columns in zip(*(part.targets for part in parts), strict=True)]
        return cls(
            np.concatenate(cells),
            [values[looked_at] for values in truth],
            [
                1.0 if isinstance(target, ClassTarget) else float(values.std())
                for target, values in zip(targets, truth, strict=True)
            ],
            [np.searchsorted(looked_at, np.intersect1d(own, looked_at)) for own in places],
        )


def sparsest_threshold(
    network: FittedNetwork, weights: NDArray[np.float64], coding: Preprocessing, held_out: HeldOut
) -> float:
    """Choose the highest threshold at which the targets are still predicted nearly as well as at the best one.

    At a threshold, inputs whose mean learned weight into every target is below it are taken out of the targets'
    sub-networks. Nearly is within one standard error of the mean loss of held-out rows.

    Parameters
    ----------
    network : FittedNetwork
    weights : array of shape (nodes, nodes)
        Mean learned weights of the edges.
    coding : Preprocessing
    held_out : HeldOut

    Returns
    -------
    float
    """
    into_targets = weights[: len(coding.order), -len(coding.targets) :].max(axis=1)
    thresholds = _candidates(into_targets)
    means, errors = [], []
    for threshold in thresholds:
        losses = _losses(network.of_features(into_targets >= threshold), coding, held_out)
        means.append(losses.mean())
        errors.append(losses.std(ddof=1) / np.sqrt(len(losses)) if len(losses) > 1 else 0.0)
    best = int(np.argmin(means))
    near = np.flatnonzero(np.array(means) <= means[best] + errors[best])
    return float(thresholds[near[-1]])


def evenly(rows: NDArray[np.int64], most: int) -> NDArray[np.int64]:
    """Keep at most so many rows, evenly spaced.

    Examples
    --------
    >>> import numpy as np
    >>> evenly(np.arange(10), 4)
    array([0, 3, 6, 9])
    """
    return rows if len(rows) <= most else rows[np.linspace(0, len(rows) - 1, most).astype(np.int64)]


def _candidates(weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return ascending thresholds: zero, and weights at which one more feature is left out."""
    ascending = np.unique(weights[weights > 0])
    if len(ascending) > _MOST_THRESHOLDS:
        ascending = ascending[np.linspace(0, len(ascending) - 1, _MOST_THRESHOLDS).astype(int)]
    return np.r_[0.0, ascending]


def _losses(network: FittedNetwork, coding: Preprocessing, held_out: HeldOut) -> NDArray[np.float64]:
    """Return the loss of every row that was held out, summed over targets and averaged over the members it was for."""
    total, count = np.zeros((2, len(held_out.cells)))
    for member, rows in enumerate(held_out.by_member):
        outputs = network.of_members(np.array([member])).target_outputs(held_out.cells[rows])[0]
        count[rows] += 1
        for k, target in enumerate(coding.targets):
            predicted, values = target.decode(outputs[:, k]), held_out.truth[k][rows]
            if isinstance(target, ClassTarget):
                likely = predicted[np.arange(len(rows)), target.codes(values)]
                total[rows] -= np.log(np.maximum(likely, 1e-12))
            else:
                total[rows] += ((predicted - values) / held_out.spread[k]) ** 2
    seen = count > 0
    losses: NDArray[np.float64] = total[seen] / count[seen]
    return losses
