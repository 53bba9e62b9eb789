"""Greedy selection: which candidates predict together, and with which weights (Caruana et al., ICML 2004)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

Losses = Callable[[Sequence[NDArray[np.float64]]], NDArray[np.float64]]

_FIRST = 5  # best candidates that the selection begins with
_ROUNDS = 20  # additions after these


def greedy_weights(
    predictions: Sequence[Sequence[NDArray[np.float64]]], losses: Losses, first: int = _FIRST, rounds: int = _ROUNDS
) -> NDArray[np.float64]:
    """Return weights of candidates, summing to 1, that make their mean prediction of held-out rows good.

    Half of the weight goes to the best candidates alike, which is robust where rows are few. The other half is a greedy
    selection: each round adds the candidate, again if it was added before, whose addition lowers the loss of the mean
    most, and the weights are how often each was added.

    Parameters
    ----------
    predictions : sequence of sequence of array
        Of each candidate and each target, for rows that its networks were not trained on.
    losses : callable
        From predictions of every target to the loss of each row, see :class:`castlereg.fitted.row_losses.RowLosses`.
    first : int
        Best candidates that share half of the weight; 0 for the greedy selection only.
    rounds : int

    Examples
    --------
    Two candidates whose errors cancel, and one that knows nothing:

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
    alone = np.argsort([losses(candidate).mean() for candidate in predictions], kind="stable")[:first]
    share = np.zeros(len(predictions))
    share[alone] = 1 / len(alone)
    return np.asarray((counts / rounds + share) / 2)
