"""An order of the columns from the shape of their noise, for linear equations (DirectLiNGAM)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def linear_order(values: NDArray[np.float64]) -> list[int]:
    """Order columns, causes first, assuming linear equations with noise that is not normal.

    The first column is the one that depends least on the residuals of the others when they are regressed on it. The
    residuals take the place of the other columns, and the search repeats (Shimizu et al. 2011). Dependence is measured
    by approximate entropies.

    Parameters
    ----------
    values : array of shape (rows, columns)

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> cause = rng.laplace(size=2000)
    >>> linear_order(np.column_stack([cause + rng.laplace(size=2000), cause]))
    [1, 0]
    """
    remaining = (values - values.mean(axis=0)) / np.maximum(values.std(axis=0), 1e-9)
    columns, order = list(range(remaining.shape[1])), []
    while len(columns) > 1:
        correlation = np.clip(remaining.T @ remaining / len(remaining), -1, 1)
        entropy, entropy_given = _entropy(remaining), np.empty_like(correlation)
        for i in range(len(columns)):
            residuals = remaining - remaining[:, [i]] * correlation[i]
            entropy_given[i] = _entropy(residuals / np.maximum(residuals.std(axis=0), 1e-9))
        # How much simpler the noise is in the direction from row to column than in the reverse direction.
        simpler = (entropy[None, :] + entropy_given.T) - (entropy[:, None] + entropy_given)
        np.fill_diagonal(simpler, 0)
        first = int(np.argmax(-np.square(np.minimum(simpler, 0)).sum(axis=1)))
        order.append(columns.pop(first))
        remaining = np.delete(remaining - remaining[:, [first]] * correlation[first], first, axis=1)
        remaining /= np.maximum(remaining.std(axis=0), 1e-9)
    return order + columns


def _entropy(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Approximate the entropy of standardized columns (Hyvarinen 1998)."""
    cosh = np.abs(values) + np.log1p(np.exp(-2 * np.abs(values))) - np.log(2)
    first = np.square(cosh.mean(axis=0) - 0.37457)
    second = np.square((values * np.exp(-np.square(values) / 2)).mean(axis=0))
    return np.asarray((1 + np.log(2 * np.pi)) / 2 - 79.047 * first - 7.4129 * second)
