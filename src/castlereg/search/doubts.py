"""Reasons to doubt a fit, one line each: few rows, rare classes, a grid that is too narrow, no skill."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from castlereg.causal.graph.causal_graph import CausalGraph
from castlereg.fitted.held_out import HeldOutPredictions
from castlereg.regularizers import Castle
from castlereg.regularizers.castle import castle_of
from castlereg.search.grid import Candidate, FoldGrid
from castlereg.search.request import Assignment
from castlereg.table.table import Table
from castlereg.table.targets import ClassTarget, Target

_FEW_ROWS = 50
_ROWS_BEYOND_COLUMNS = 10
_ROWS_OF_A_CLASS = 10
_ROWS_TO_SCORE = 10  # with fewer rows, a comparison with their mean is not meaningful
_MOST_NAMED = 3
_CLEARLY = 2.0  # standard errors


def doubts(
    rows: Assignment,
    grid: FoldGrid | None,
    scores: NDArray[np.float64] | None,
    best: int,
    held_out: HeldOutPredictions,
    graph: CausalGraph | None = None,
) -> list[str]:
    """Return reasons to doubt a fit, one line each.

    ``scores`` are those of the candidates of a grid on folds, of which the ``best`` was chosen; None for a pool.
    ``held_out`` are the predictions of held-out rows. ``graph``, if any, limits the columns that predict the targets.
    """
    targets, counts = rows.preprocessing.targets, rows.counts()
    reasons = [few_rows(int(counts[0].sum()), rows.preprocessing.layout.n_features)]
    for k, target in enumerate(targets):
        if isinstance(target, ClassTarget):
            n_folds = 0 if rows.fold_rows is None else len(rows.folds)
            reasons.append(rare_classes(target, counts[k]))
            reasons.append(class_without_rows(target, [rows.counts(fold)[k] for fold in range(n_folds)]))
    if rows.fold_rows is not None and grid is not None and scores is not None:
        reasons.append(end_of_grid(grid.candidates, scores, best))
    table = rows.source if isinstance(rows.source, Table) else rows.source.table
    # Weights deliberately shift predictions away from the mean of the unweighted rows.
    if table.weight is None and len(held_out.truth[0]) >= _ROWS_TO_SCORE:
        causeless = [target.name for target in targets if graph is not None and not graph.parents(target.name)]
        reasons.append(no_causes(causeless))
        reasons.append(no_skill(held_out, targets, causeless))
    return [reason for reason in reasons if reason is not None]


def no_causes(names: Sequence[str]) -> str | None:
    """Return a warning about targets without causes in the graph, which are predicted by a constant.

    Examples
    --------
    >>> no_causes(["age"])
    "the graph has no causes of 'age', so no column predicts it: objective='prediction' also uses its effects"
    """
    if not names:
        return None
    return (
        f"the graph has no causes of {', '.join(map(repr, names))}, so no column predicts it: "
        "objective='prediction' also uses its effects"
    )


def few_rows(n_rows: int, n_columns: int) -> str | None:
    """Return a warning about few rows: fewer than 50, or hardly more than columns.

    Examples
    --------
    >>> few_rows(30, 4)
    '30 rows for 4 columns are few: scores and edges may change with other rows; compare several folds or seeds'
    >>> few_rows(442, 10) is None
    True
    """
    if n_rows >= max(_FEW_ROWS, n_columns + _ROWS_BEYOND_COLUMNS):
        return None
    return (
        f"{n_rows} rows for {n_columns} column{'' if n_columns == 1 else 's'} are few: scores and edges may change "
        "with other rows; compare several folds or seeds"
    )


def rare_classes(target: ClassTarget, counts: NDArray[np.int64]) -> str | None:
    """Return a warning about classes with fewer than ten rows, given the number of rows of each class.

    Examples
    --------
    >>> import numpy as np
    >>> rare_classes(ClassTarget("grade", np.array(["high", "low", "mid"])), np.array([90, 4, 60]))
    "'grade' has rare classes, 'low' (4 rows): they are hard to learn and to score; merge them or collect more rows"
    """
    rare = np.flatnonzero(counts < _ROWS_OF_A_CLASS)
    if len(rare) == 0:
        return None
    order = rare[np.argsort(counts[rare], kind="stable")]
    labels = target.classes.tolist()
    named = [f"{labels[k]!r} ({counts[k]} row{'' if counts[k] == 1 else 's'})" for k in order[:_MOST_NAMED]]
    more = f" and {len(rare) - _MOST_NAMED} more" if len(rare) > _MOST_NAMED else ""
    return (
        f"{target.name!r} has rare classes, {', '.join(named)}{more}: they are hard to learn and to score; merge "
        "them or collect more rows"
    )


def class_without_rows(target: ClassTarget, counts: Sequence[NDArray[np.int64]]) -> str | None:
    """Return a warning about the first class without training rows in a fold, given the counts of each fold.

    Examples
    --------
    >>> import numpy as np
    >>> class_without_rows(ClassTarget("grade", np.array(["high", "low"])), [np.array([9, 9]), np.array([18, 0])])
    "fold 1 has no training rows of class 'low' of 'grade', so it cannot predict it: use a stratified splitter"
    """
    for fold, of_fold in enumerate(counts):
        if (of_fold == 0).any():
            label = target.classes.tolist()[int(np.argmax(of_fold == 0))]
            return (
                f"fold {fold} has no training rows of class {label!r} of {target.name!r}, so it cannot predict it: use "
                "a stratified splitter"
            )
    return None


def end_of_grid(candidates: Sequence[Candidate], scores: NDArray[np.float64], best: int) -> str | None:
    """Return a warning if the chosen beta is the largest or smallest tried, and clearly better than its neighbour.

    Clearly better means by more than two standard errors of the difference over folds. Scores have shape (candidates,
    folds); higher is better. Only candidates that differ from the chosen one only in beta are compared.

    Examples
    --------
    >>> import numpy as np
    >>> from castlereg.regularizers import Castle
    >>> grid = [(Castle(beta),) for beta in (0.01, 0.1, 1.0)]
    >>> scores = np.array([[-0.8, -0.9, -0.7], [-0.7, -0.8, -0.61], [-0.6, -0.7, -0.49]])
    >>> end_of_grid(grid, scores, best=2)
    'reg_beta=1 is the largest value tried and clearly better than 0.1: try larger values too'
    >>> end_of_grid(grid, scores[::-1], best=0)
    'reg_beta=0.01 is the smallest value tried and clearly better than 0.1: try smaller values too'
    >>> end_of_grid(grid, scores, best=1) is None
    True
    """
    castles = [castle_of(candidate) for candidate in candidates]
    chosen = castles[best]
    if chosen is None:
        return None
    beta = float(chosen.reg_beta)
    at = {
        float(castle.reg_beta): i
        for i, (castle, candidate) in enumerate(zip(castles, candidates, strict=True))
        if castle is not None and _with_beta(candidate, castle, chosen) == tuple(candidates[best])
    }
    betas = sorted(at)
    if len(betas) < 2 or beta == 0 or beta not in (betas[0], betas[-1]):
        return None
    end, further, neighbour = (
        ("largest", "larger", betas[-2]) if beta == betas[-1] else ("smallest", "smaller", betas[1])
    )
    if not np.isfinite(scores[[best, at[neighbour]]]).all():
        return None
    gain = scores[best] - scores[at[neighbour]]
    if gain.mean() <= _CLEARLY * gain.std(ddof=1) / np.sqrt(len(gain)):
        return None
    return f"reg_beta={beta:g} is the {end} value tried and clearly better than {neighbour:g}: try {further} values too"


def _with_beta(candidate: Candidate, castle: Castle, like: Castle) -> Candidate:
    """Replace the beta of a candidate's CASTLE by that of another one."""
    return tuple(replace(castle, reg_beta=like.reg_beta) if part is castle else part for part in candidate)


def no_skill(held_out: HeldOutPredictions, targets: Sequence[Target], but_for: Sequence[str] = ()) -> str | None:
    """Return a warning about targets with predictions of held-out rows no better than a constant; skip ``but_for``.

    Examples
    --------
    >>> import numpy as np
    >>> target = ClassTarget("grade", np.array(["high", "low"]))
    >>> truth = np.array(["high", "low", "low", "low"])
    >>> no_skill(HeldOutPredictions([truth], [np.full((4, 2), 0.5)]), [target])
    "predictions of 'grade' on held-out rows are no better than the class shares: train longer, or add columns"
    """
    pairs = zip(targets, held_out.truth, held_out.predicted, strict=True)
    without = [
        target
        for target, truth, predicted in pairs
        if target.name not in but_for and _is_no_better(target, truth, predicted)
    ]
    if not without:
        return None
    means = [
        "the class shares"
        if isinstance(target, ClassTarget)
        else "the mean (R² below 0)"
        if target.loss is None
        else "a constant (by the target's own loss)"
        for target in without
    ]
    return (
        f"predictions of {', '.join(repr(target.name) for target in without)} on held-out rows are no better than "
        f"{' and '.join(dict.fromkeys(means))}: train longer, or add columns"
    )


def _is_no_better(target: Target, truth: NDArray[Any], predicted: NDArray[np.float64]) -> bool:
    if not isinstance(target, ClassTarget):
        constant = target.predicted(target.constant(truth))
        losses = (target.errors_of_predictions(values, truth).mean() for values in (predicted, constant))
        return float(next(losses)) >= float(next(losses))
    codes = target.codes(truth)
    shares = np.bincount(codes, minlength=predicted.shape[1]) / len(codes)
    probabilities = np.maximum(predicted[np.arange(len(codes)), codes], 1e-12)
    return float(np.log(probabilities).mean()) <= float(np.log(shares[codes]).mean())
