"""The threshold of a graph's edges, by held-out prediction."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from castlereg.estimators.fitted_network import FittedNetwork
from castlereg.tables.rows import Coding, Rows
from castlereg.tables.targets import ClassTarget

_MOST_THRESHOLDS = 32


def sparsest_threshold(
    network: FittedNetwork, coding: Coding, parts: Sequence[Rows], held_out: Sequence[NDArray[np.int64]]
) -> float:
    """Choose the highest threshold at which the targets are still predicted nearly as well as at the best one.

    At a threshold, inputs whose mean learned weight into every target is below it are taken out of the targets'
    sub-networks. Nearly is within one standard error of the mean loss of held-out rows.

    Parameters
    ----------
    network : FittedNetwork
    coding : Coding
    parts : sequence of Rows
        The rows it was trained and stopped by, one part after the other.
    held_out : sequence of array of int
        For each member, the places of the rows that it was stopped by.

    Returns
    -------
    float
    """
    cells = np.concatenate([coding.cells(part) for part in parts])
    truth = [np.concatenate(columns) for columns in zip(*(part.targets for part in parts), strict=True)]
    into_targets = network.edge_weights().mean(axis=0)[: len(coding.encoder.order), -len(coding.targets) :].max(axis=1)
    thresholds = _candidates(into_targets)
    means, errors = [], []
    for threshold in thresholds:
        losses = _losses(network.of_features(into_targets >= threshold), coding, cells, truth, held_out)
        means.append(losses.mean())
        errors.append(losses.std(ddof=1) / np.sqrt(len(losses)) if len(losses) > 1 else 0.0)
    best = int(np.argmin(means))
    near = np.flatnonzero(np.array(means) <= means[best] + errors[best])
    return float(thresholds[near[-1]])


def _candidates(weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return ascending thresholds: zero, and weights at which one more feature is left out."""
    ascending = np.unique(weights[weights > 0])
    if len(ascending) > _MOST_THRESHOLDS:
        ascending = ascending[np.linspace(0, len(ascending) - 1, _MOST_THRESHOLDS).astype(int)]
    return np.r_[0.0, ascending]


def _losses(
    network: FittedNetwork,
    coding: Coding,
    cells: NDArray[np.float64],
    truth: list[NDArray[np.float64]],
    held_out: Sequence[NDArray[np.int64]],
) -> NDArray[np.float64]:
    """Return the loss of every row that was held out, summed over targets and averaged over the members it was for."""
    total, count = np.zeros(len(cells)), np.zeros(len(cells))
    for member, rows in enumerate(held_out):
        wanted = np.unique(rows)
        outputs = network.of_members(np.array([member])).target_outputs(cells[wanted])[0]
        count[wanted] += 1
        for k, target in enumerate(coding.targets):
            predicted, values = target.decode(outputs[:, k]), truth[k]
            if isinstance(target, ClassTarget):
                likely = predicted[np.arange(len(wanted)), target.codes(values[wanted])]
                total[wanted] -= np.log(np.maximum(likely, 1e-12))
            else:
                total[wanted] += ((predicted - values[wanted]) / values.std()) ** 2
    seen = count > 0
    losses: NDArray[np.float64] = total[seen] / count[seen]
    return losses
