"""Greedy ensemble selection: the candidates of a blend and their weights (Caruana et al., ICML 2004)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

Losses = Callable[[Sequence[NDArray[np.float64]]], NDArray[np.float64]]

_FIRST = 5  # best candidates that share half of the weight
_ROUNDS = 20  # rounds of the greedy selection


def greedy_weights(
    predictions: Sequence[Sequence[NDArray[np.float64]]], losses: Losses, first: int = _FIRST, rounds: int = _ROUNDS
) -> NDArray[np.float64]:
    """Return weights of candidates, with sum 1, for which their mean prediction of held-out rows has a low loss.

    Half of the weight is shared equally by the best candidates, which is robust for few rows. The other half comes from
    a greedy selection: each round adds the candidate that lowers the loss of the mean most, possibly one that was added
    before, and the weights are proportional to how often each candidate was added.

    Parameters
    ----------
    predictions : sequence of sequence of array
        Predictions of each candidate for each target, on rows that its networks were not trained on.
    losses : callable
        Function from predictions of all targets to the loss of each row, see
        :class:`castlereg.fitted.row_losses.RowLosses`.
    first : int
        Number of best candidates that share half of the weight; 0 for the greedy selection only.
    rounds : int
        Number of rounds of the greedy selection.

    Examples
    --------
    Two candidates whose errors cancel, and an uninformative one:

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> truth, wrong = rng.normal(size=200), rng.normal(size=200)
    >>> predictions = [[truth + wrong], [truth - wrong], [np.full(200, 9.0)]]
    >>> greedy_weights(predictions, lambda p: (p[0] - truth) ** 2, first=0).round(2)
    array([0.5, 0.5, 0. ])
    """
    counts = np.zeros(len(predictions))
    total: list[NDArray[np.float64]] = [np.zeros_like(of_target) for of_target in predictions[0]]
    for size in range(1, rounds + 1):
        means = [
            losses([(t + p) / size for t, p in zip(total, candidate, strict=True)]).mean() for candidate in predictions
        ]
        best = int(np.argmin(means))
        counts[best] += 1
        total = [t + p for t, p in zip(total, predictions[best], strict=True)]
    if not first:
        return counts / rounds
    leaders = np.argsort([losses(candidate).mean() for candidate in predictions], kind="stable")[:first]
    share = np.zeros(len(predictions))
    share[leaders] = 1 / len(leaders)
    return np.asarray((counts / rounds + share) / 2)
