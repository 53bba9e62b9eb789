"""Whether a ranking of methods could be chance, and what that question assumes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
import scipy.stats


@dataclass(frozen=True)
class Significance:
    """A test of the hypothesis that all methods rank alike.

    Attributes
    ----------
    test : str
    p_value : float
        Chance of ranks at least as far apart if all methods were equal.
    critical_difference : float
        Mean ranks further apart than this differ between two methods at level 0.05 (Nemenyi); NaN for two methods.
    level_with_best : list of str
        Methods whose mean rank is within the critical difference of the best one's.
    blocks : int
        Folds, or splits, that were ranked.
    assumptions : str
        What the test takes for granted.
    """

    test: str
    p_value: float
    critical_difference: float
    level_with_best: list[str]
    blocks: int
    assumptions: str

    def __str__(self) -> str:
        return f"{self.test}: p = {self.p_value:.2g}. {self.assumptions}"


_LEVEL = 0.05
_OVER_FOLDS = (
    "The test takes folds for independent draws. They are not: their networks share most training rows and are scored "
    "on the same held-out rows, so p is too small. It tells whether the order is more than noise between folds of this "
    "table, not that it holds on another."
)
_OVER_SPLITS = (
    "The test takes random splits for independent draws. They overlap in rows, so p is somewhat too small, and it "
    "speaks of this table alone."
)


def significance(ranks: pd.DataFrame, by: str) -> Significance:
    """Test the ranks of methods.

    Parameters
    ----------
    ranks : DataFrame
        One row per fold or split, one column per method; 1 is best.
    by : {"fold", "split"}
        What the rows are.

    Returns
    -------
    Significance

    Examples
    --------
    >>> ranks = pd.DataFrame({"a": [1] * 8, "b": [2] * 8, "c": [3] * 8})
    >>> result = significance(ranks, "fold")
    >>> result.level_with_best, round(result.p_value, 5)
    (['a', 'b'], 0.00034)
    """
    blocks, methods = ranks.shape
    assumptions = _OVER_FOLDS if by == "fold" else _OVER_SPLITS
    means = ranks.mean()
    if methods < 2 or blocks < 2:
        return Significance("no test, too little to rank", np.nan, np.nan, list(ranks), blocks, assumptions)
    differ = (ranks.nunique(axis=1) > 1).any()
    if methods == 2:
        difference = ranks.iloc[:, 0] - ranks.iloc[:, 1]
        p = scipy.stats.binomtest(int((difference < 0).sum()), int((difference != 0).sum())).pvalue if differ else 1.0
        level = list(ranks) if p > _LEVEL else [means.idxmin()]
        return Significance(f"Sign test over {blocks} {by}s", float(p), np.nan, level, blocks, assumptions)
    p = scipy.stats.friedmanchisquare(*ranks.to_numpy().T).pvalue if differ else 1.0
    quantile = scipy.stats.studentized_range.ppf(1 - _LEVEL, methods, np.inf) / np.sqrt(2)
    critical = float(quantile * np.sqrt(methods * (methods + 1) / (6 * blocks)))
    level = list(means.index[means <= means.min() + critical])
    return Significance(f"Friedman test over {blocks} {by}s", float(p), critical, level, blocks, assumptions)
