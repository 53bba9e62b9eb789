"""Validation rows of a benchmark, as folds of castlereg's searches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

Splits = list[tuple[NDArray[np.int64], NDArray[np.int64]]]


def joined(rows: Any, validation: Any) -> Any:
    """Append validation rows to training rows, with a new index.

    Frames stay frames, and columns keep their type if both have the same.

    Examples
    --------
    >>> joined(np.zeros((2, 3)), np.ones((1, 3))).shape
    (3, 3)
    >>> joined(pd.Series(["a", "b"]), pd.Series(["a"])).tolist()
    ['a', 'b', 'a']
    """
    if isinstance(rows, pd.DataFrame | pd.Series):
        return pd.concat([rows, validation], ignore_index=True)
    return np.concatenate([np.asarray(rows), np.asarray(validation)])


def splits_of(n_rows: int, validation: ArrayLike, n_networks: int) -> Splits:
    """Return splits for ``cv`` with these validation rows.

    Parameters
    ----------
    n_rows : int
    validation : array-like of shape (rows,) or (splits, rows)
        Indices of the validation rows; all others are training rows.
    n_networks : int
        How often a single split is repeated: the networks have different starting weights and predict together.

    Examples
    --------
    >>> [(train.tolist(), held.tolist()) for train, held in splits_of(4, [1], 2)]
    [([0, 2, 3], [1]), ([0, 2, 3], [1])]
    """
    of_splits: Sequence[NDArray[np.int64]] = list(np.atleast_2d(np.asarray(validation, dtype=np.int64)))
    splits = [(np.setdiff1d(np.arange(n_rows), held), held) for held in of_splits]
    return splits * n_networks if len(splits) == 1 else splits
