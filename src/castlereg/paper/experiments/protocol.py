"""The paper's protocol for one method: rows held out, ten folds, early stopping, the strength by validation."""

from __future__ import annotations

from typing import Any, Final

import pandas as pd

from castlereg.comparison import compare
from castlereg.comparison.methods import CASTLE_BETAS, PAPER_METHODS, Candidates
from castlereg.paper.experiments.description import Record
from castlereg.regularizers import Castle

METHODS: Final = tuple(PAPER_METHODS)


def castle_candidates(**switches: Any) -> Candidates:
    """Return CASTLE with the paper's betas, and some of its terms switched."""
    return tuple((Castle(beta, **switches),) for beta in CASTLE_BETAS)


def fold_scores(
    X: Any,
    y: Any,
    candidates: Candidates,
    *,
    task: str,
    seed: int,
    cv: int,
    test_size: float | int = 0.2,
    input_init: str = "small",
    **network: Any,
) -> list[Record]:
    """Score the fold networks of one method on held-out rows.

    The seed decides the rows held out, the folds, the starting weights and the batches, whatever the method: methods
    that are run one by one share them all the same.

    Parameters
    ----------
    X, y : DataFrame and Series
    candidates : tuple of tuple of Regularizer
        The method, in all its strengths.
    task : {"regression", "classification"}
    seed : int
    cv : int
    test_size : float or int
    input_init : {"small", "glorot"}
    **network
        Options of :func:`castlereg.compare`.

    Returns
    -------
    list of dict
        One per fold: ``fold``, ``score`` on the held-out rows, ``averaged`` (score of the mean of the fold networks),
        ``chosen`` strengths and the ``unit`` of MSE.
    """
    result = compare(
        X,
        y,
        methods={"method": [list(candidate) for candidate in candidates]},
        cv=cv,
        test_size=test_size,
        task=task,  # type: ignore[arg-type]
        random_state=seed,
        input_init=input_init,
        verbose=False,
        **network,
    )
    of_split = result.by_split.iloc[0]
    shared = {
        "averaged": float(of_split["score"]),
        "chosen": str(of_split["chosen"]),
        "unit": float(of_split["unit"]),
    }
    return [{"fold": int(row.fold), "score": float(row.score), **shared} for row in result.scores.itertuples()]


def ranks(results: pd.DataFrame, within: list[str], *, higher_is_better: bool = False) -> pd.Series:
    """Rank methods by score on every fold, the best having the highest rank, as in the paper's figures.

    Parameters
    ----------
    results : DataFrame
        With columns ``method``, ``score`` and those of ``within``.
    within : list of str
        What the methods compete on: one fold of one split of one table.
    higher_is_better : bool

    Returns
    -------
    Series
        Of each row of ``results``; NaN where not all methods have a score.
    """
    groups = results.groupby(within, sort=False)["score"]
    ranked = groups.rank(ascending=higher_is_better)
    return ranked.where(groups.transform("size") == results["method"].nunique())
