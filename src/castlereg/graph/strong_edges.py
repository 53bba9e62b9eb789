"""Which edges of one network stand out from the rest."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def strong_edges(weights: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Tell strong edges from weak ones, see :func:`weakest_strong_weight`.

    Parameters
    ----------
    weights : array of any shape
        Not negative; zero where there is no edge.

    Returns
    -------
    array of bool, same shape
        True for strong edges; for all edges when they weigh the same.

    Examples
    --------
    >>> import numpy as np
    >>> strong_edges(np.array([0.0, 0.05, 0.04, 0.2, 0.17, 0.06]))
    array([False, False, False,  True,  True, False])
    """
    return (weights > 0) & (weights >= weakest_strong_weight(weights))


def weakest_strong_weight(weights: NDArray[np.float64]) -> float:
    """Split weights into strong and weak ones where the two groups differ most (Otsu's method).

    A network gives some weight to nearly every edge, and how much depends on the table: a fixed threshold means
    nothing. The split is the one that explains most of the variance of the weights.

    Parameters
    ----------
    weights : array of any shape
        Not negative; zero where there is no edge.

    Returns
    -------
    float
        The least weight of the strong ones; 0 when there are none.

    Examples
    --------
    >>> import numpy as np
    >>> weakest_strong_weight(np.array([0.0, 0.05, 0.04, 0.2, 0.17, 0.06]))
    0.17
    """
    ascending = np.sort(weights[weights > 0], axis=None)
    if len(ascending) == 0 or ascending[0] == ascending[-1]:
        return float(ascending[0]) if len(ascending) else 0.0
    below = np.arange(1, len(ascending))
    above = len(ascending) - below
    sums = np.cumsum(ascending)
    means = sums[:-1] / below, (sums[-1] - sums[:-1]) / above
    variance_between = below * above * (means[1] - means[0]) ** 2
    return float(ascending[1:][variance_between.argmax()])
