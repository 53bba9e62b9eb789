"""A test of whether the ranks of methods differ by more than chance, and its assumptions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd
import scipy.stats


@dataclass(frozen=True)
class Significance:
    """A test of the hypothesis that all methods are equally good.

    Attributes
    ----------
    test : str
    p_value : float
        Probability of ranks at least this far apart if all methods were equally good.
    critical_difference : float
        Two methods whose mean ranks differ by more than this are different at level 0.05 (Nemenyi); NaN if only two
        methods are compared.
    level_with_best : list of str
        Methods whose mean rank is within the critical difference of the best mean rank.
    blocks : int
        Number of folds or splits with ranks.
    assumptions : str
        Assumptions of the test, and how well they hold.
    """

    test: str
    p_value: float
    critical_difference: float
    level_with_best: list[str]
    blocks: int
    assumptions: str

    def __str__(self) -> str:
        return self.test if np.isnan(self.p_value) else f"{self.test}: p = {self.p_value:.2g}. {self.assumptions}"


_LEVEL = 0.05
_ASSUMPTIONS = {
    "fold": "The test assumes that folds are independent. They are not: their networks share most training rows and "
    "are scored on the same held-out rows, so p is too small. It tests whether the order is more than noise between "
    "folds of this table, not whether it holds on another table.",
    "split": "The test assumes that random splits are independent. They share rows, so p is somewhat too small, and it "
    "applies to this table only.",
}


def significance(ranks: pd.DataFrame, by: Literal["fold", "split"]) -> Significance:
    """Test ranks, where 1 is the best: one row per fold or split, depending on ``by``, and one column per method.

    >>> ranks = pd.DataFrame({"a": [1] * 8, "b": [2] * 8, "c": [3] * 8})
    >>> result = significance(ranks, "fold")
    >>> result.level_with_best, round(result.p_value, 5)
    (['a', 'b'], 0.00034)
    """
    blocks, methods = ranks.shape
    assumptions, means = _ASSUMPTIONS[by], ranks.mean()
    if methods < 2 or blocks < 2:
        test = f"No significance test: it needs at least two methods and two {by}s."
        return Significance(test, np.nan, np.nan, list(ranks), blocks, assumptions)
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
