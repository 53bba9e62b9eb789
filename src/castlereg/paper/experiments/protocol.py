"""The paper's protocol for one method: held-out rows, ten folds, early stopping, strengths chosen by validation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pandas as pd

from castlereg.comparison import compare
from castlereg.comparison.methods import CASTLE_BETAS, LATER_METHODS, PAPER_METHODS, Candidates
from castlereg.comparison.run import held_out_splits
from castlereg.estimators.recipe import Recipe
from castlereg.paper.experiments.description import Record
from castlereg.regularizers import Castle

METHODS: Final = tuple(PAPER_METHODS)
TWELVE: Final = (*METHODS, *LATER_METHODS)

# Our own searches, in addition to the paper's ten methods and the two later ones.
WIDE_GRID: Final = "CASTLE, wide grid"
REFIT: Final = "CASTLE, refit"
OURS: Final = (WIDE_GRID, REFIT)
_LAMBDAS, _BETAS = (0.01, 0.1, 1.0), (0.0001, *CASTLE_BETAS)

_CANDIDATES: Final[dict[str, Candidates]] = {
    **PAPER_METHODS,
    **LATER_METHODS,
    WIDE_GRID: tuple((Castle(beta, value),) for value in _LAMBDAS for beta in _BETAS),
    REFIT: PAPER_METHODS["CASTLE"],
}


def method_scores(method: str, X: Any, y: Any, **options: Any) -> list[Record]:
    """Score a method by name, see :func:`fold_scores`: one of the twelve, or one of our searches.

    ``"CASTLE, wide grid"`` chooses from fifteen pairs of lambda and beta; ``"CASTLE, refit"`` trains plain networks on
    the columns that CASTLE selects.
    """
    if method == REFIT:
        options["recipe"] = Recipe(refit=True)
    return fold_scores(X, y, _CANDIDATES[method], **options)


def castle_candidates(**switches: Any) -> Candidates:
    """Return CASTLE with the paper's betas and with some terms switched on or off."""
    return tuple((Castle(beta, **switches),) for beta in CASTLE_BETAS)


def fold_scores(
    X: Any,
    y: Any,
    candidates: Candidates,
    *,
    task: str,
    seed: int,
    cv: int,
    folds: int | None = None,
    test_size: float | int = 0.2,
    input_init: str = "small",
    **network: Any,
) -> list[Record]:
    """Score the fold networks of one method on held-out rows.

    The seed determines the held-out rows, the folds, the initial weights and the batches, independently of the method,
    so methods that run separately share all of them.

    Parameters
    ----------
    X, y : DataFrame and Series
    candidates : tuple of tuple of Regularizer
        The method, one candidate per strength.
    task : {"regression", "classification"}
    seed : int
    cv : int
    folds : int, optional
        Number of folds to train, from the first; by default all. Networks for large graphs take hours.
    test_size : float or int
    input_init : {"small", "glorot"}
    **network
        Options of :func:`castlereg.compare`.

    Returns
    -------
    list of dict
        One per fold: ``fold``, ``score`` on the held-out rows, ``averaged`` (score of the averaged fold networks),
        ``chosen`` strengths and the ``unit`` of MSE.
    """
    result = compare(
        X,
        y,
        methods={"method": [list(candidate) for candidate in candidates]},
        cv=cv if folds is None else _first_folds(X, y, folds, task=task, cv=cv, test_size=test_size, seed=seed),
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


def _first_folds(
    X: Any, y: Any, folds: int, *, task: Any, cv: int, test_size: float | int, seed: int
) -> list[tuple[Any, Any]]:
    """Return the first of the ``cv`` folds, as positions among the rows that are not held out."""
    (split,) = held_out_splits(X, y, task=task, cv=cv, n_splits=1, test_size=test_size, random_state=seed)
    position = np.empty(len(y), np.int64)
    position[split.rest] = np.arange(len(split.rest))
    return [(position[train], position[held]) for train, held in split.folds[:folds]]


def ranks(results: pd.DataFrame, within: list[str], *, higher_is_better: bool = False) -> pd.Series:
    """Rank methods by score on every fold; the best has the highest rank, as in the paper's figures.

    Parameters
    ----------
    results : DataFrame
        With columns ``method``, ``score`` and those of ``within``.
    within : list of str
        Columns that identify a competition: one fold of one split of one table.
    higher_is_better : bool

    Returns
    -------
    Series
        Rank of each row of ``results``; NaN unless all methods have a score.
    """
    groups = results.groupby(within, sort=False)["score"]
    ranked = groups.rank(ascending=higher_is_better)
    return ranked.where(groups.transform("size") == results["method"].nunique())


def ranks_among(results: pd.DataFrame, methods: Sequence[str], within: list[str], **options: Any) -> pd.Series:
    """Rank some of the methods with :func:`ranks`; rows of other methods have no rank.

    Our searches are ranked one at a time, each instead of CASTLE.
    """
    among = results[results["method"].isin(methods)]
    ranked = ranks(among, within, **options) if len(among) else pd.Series(dtype=float)
    for search in OURS:
        challengers = [method for method in methods if method != "CASTLE"]
        of_search = results[results["method"].isin([*challengers, search])]
        if "CASTLE" in methods and (of_search["method"] == search).any():
            in_its_place = ranks(of_search, within, **options)
            ranked = pd.concat([ranked, in_its_place[of_search["method"] == search]])
    return ranked.reindex(results.index)
