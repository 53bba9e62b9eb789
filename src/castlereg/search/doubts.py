"""What makes a fit less trustworthy, each in one line: few rows, rare classes, a grid that ends too early, no skill."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from castlereg.data.table import Standardization, Table
from castlereg.data.targets import ClassTarget, Target
from castlereg.regularizers.castle import castle_of
from castlereg.search.grid import Candidate, FoldGrid
from castlereg.search.request import Assignment

_FEW_ROWS = 50
_ROWS_BEYOND_COLUMNS = 10
_ROWS_OF_A_CLASS = 10
_ROWS_TO_SCORE = 10  # of fewer the mean is known too well to be a rival
_MOST_NAMED = 3
_CLEARLY = 2.0  # standard errors


def doubts(rows: Assignment, grid: FoldGrid, scores: NDArray[np.float64], best: int) -> list[str]:
    """Say what makes a fit less trustworthy, given the scores of its candidates on folds and the chosen candidate."""
    targets, counts = rows.preprocessing.targets, rows.counts()
    found = [few_rows(int(counts[0].sum()), rows.preprocessing.layout.n_features)]
    for k, target in enumerate(targets):
        if isinstance(target, ClassTarget):
            n_folds = 0 if rows.fold_rows is None else len(rows.folds)
            found.append(rare_classes(target, counts[k]))
            found.append(class_without_rows(target, [rows.counts(fold)[k] for fold in range(n_folds)]))
    if rows.fold_rows is not None:
        found.append(end_of_grid(grid.candidates, scores, best))
    trained = grid.trained(best)
    table = rows.source if isinstance(rows.source, Table) else rows.source.table
    validation = [np.asarray(rows.folds[i][1]) for i in trained]
    if len(np.unique(np.concatenate(validation))) >= _ROWS_TO_SCORE:
        means = losses_of_means(table, validation, grid.networks(best, trained).standardization)
        found.append(no_skill(grid.losses[best, trained], means, targets))
    return [doubt for doubt in found if doubt is not None]


def few_rows(n_rows: int, n_columns: int) -> str | None:
    """Say that there are few rows: below 50, or hardly more than columns.

    Examples
    --------
    >>> few_rows(30, 4)
    '30 rows for 4 columns are few: scores and edges will change with other rows; compare several folds or seeds'
    >>> few_rows(442, 10) is None
    True
    """
    if n_rows >= max(_FEW_ROWS, n_columns + _ROWS_BEYOND_COLUMNS):
        return None
    return (
        f"{n_rows} rows for {n_columns} column{'' if n_columns == 1 else 's'} are few: scores and edges will change "
        "with other rows; compare several folds or seeds"
    )


def rare_classes(target: ClassTarget, counts: NDArray[np.int64]) -> str | None:
    """Name the classes with fewer than ten rows, given the rows of each class.

    Examples
    --------
    >>> import numpy as np
    >>> rare_classes(ClassTarget("grade", np.array(["high", "low", "mid"])), np.array([90, 4, 60]))
    "'grade' has rare classes, 'low' (4 rows): they can hardly be learned or scored; merge them or collect more rows"
    """
    rare = np.flatnonzero(counts < _ROWS_OF_A_CLASS)
    if len(rare) == 0:
        return None
    order = rare[np.argsort(counts[rare], kind="stable")]
    labels = target.classes.tolist()
    named = [f"{labels[k]!r} ({counts[k]} row{'' if counts[k] == 1 else 's'})" for k in order[:_MOST_NAMED]]
    more = f" and {len(rare) - _MOST_NAMED} more" if len(rare) > _MOST_NAMED else ""
    return (
        f"{target.name!r} has rare classes, {', '.join(named)}{more}: they can hardly be learned or scored; merge them "
        "or collect more rows"
    )


def class_without_rows(target: ClassTarget, counts: Sequence[NDArray[np.int64]]) -> str | None:
    """Name the first class that a fold does not train on, given the training rows of each class, fold by fold.

    Examples
    --------
    >>> import numpy as np
    >>> class_without_rows(ClassTarget("grade", np.array(["high", "low"])), [np.array([9, 9]), np.array([18, 0])])
    "fold 1 has no training rows of class 'low' of 'grade': it cannot predict it; use a stratified splitter"
    """
    for fold, of_fold in enumerate(counts):
        if (of_fold == 0).any():
            label = target.classes.tolist()[int(np.argmax(of_fold == 0))]
            return (
                f"fold {fold} has no training rows of class {label!r} of {target.name!r}: it cannot predict it; use a "
                "stratified splitter"
            )
    return None


def end_of_grid(candidates: Sequence[Candidate], scores: NDArray[np.float64], best: int) -> str | None:
    """Say that the chosen beta is the largest or smallest tried, and clearly better than the one next to it.

    Clearly is by more than two standard errors of the difference over folds; scores have shape (candidates, folds),
    higher is better. Only candidates that differ from the chosen one in nothing but beta count.

    Examples
    --------
    >>> import numpy as np
    >>> from castlereg.regularizers import Castle
    >>> grid = [(Castle(beta),) for beta in (0.01, 0.1, 1.0)]
    >>> scores = np.array([[-0.8, -0.9, -0.7], [-0.7, -0.8, -0.61], [-0.6, -0.7, -0.49]])
    >>> end_of_grid(grid, scores, best=2)
    'reg_beta=1 is the largest tried and clearly better than 0.1: try larger ones too'
    >>> end_of_grid(grid, scores[::-1], best=0)
    'reg_beta=0.01 is the smallest tried and clearly better than 0.1: try smaller ones too'
    >>> end_of_grid(grid, scores, best=1) is None
    True
    """
    castles = [castle_of(candidate) for candidate in candidates]
    chosen = castles[best]
    if chosen is None:
        return None
    beta = float(chosen.reg_beta)
    at = {float(c.reg_beta): i for i, c in enumerate(castles) if c and replace(c, reg_beta=chosen.reg_beta) == chosen}
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
    return f"reg_beta={beta:g} is the {end} tried and clearly better than {neighbour:g}: try {further} ones too"


def no_skill(losses: NDArray[np.float64], of_means: NDArray[np.float64], targets: Sequence[Target]) -> str | None:
    """Say that held-out rows are predicted no better than by their mean, given both losses of each network.

    Examples
    --------
    >>> import numpy as np
    >>> target = ClassTarget("grade", np.array(["high", "low"]))
    >>> no_skill(np.array([1.1, 1.2]), np.array([1.0, 1.1]), [target])
    "held-out rows of 'grade' are predicted no better than by their class shares: train longer, or doubt the columns"
    """
    if losses.mean() < of_means.mean():
        return None
    means = [
        "their class shares" if isinstance(target, ClassTarget) else "their mean (R² below 0)" for target in targets
    ]
    return (
        f"held-out rows of {', '.join(repr(target.name) for target in targets)} are predicted no better than by "
        f"{' and '.join(dict.fromkeys(means))}: train longer, or doubt the columns"
    )


def losses_of_means(table: Table, rows: Sequence[NDArray[np.int64]], by: Standardization) -> NDArray[np.float64]:
    """Return what the validation loss of each network would be if it predicted the mean and the class shares.

    These are of the validation rows of all networks together, as in R². ``by`` has a leading axis of networks.
    """
    together = np.concatenate(rows)
    return np.array([_loss_of_means(table, own, together, by.of_member(i)) for i, own in enumerate(rows)])


def _loss_of_means(table: Table, rows: NDArray[np.int64], together: NDArray[np.int64], by: Standardization) -> float:
    layout, loss = table.layout, 0.0
    weight = np.ones(len(table.inputs)) if table.weight is None else table.weight.astype(np.float64)
    for k in layout.targets:
        node = layout.nodes[k]
        channels = layout.output_channels[k][: node.levels]
        values = table.inputs[:, channels].astype(np.float64)
        if node.kind == "binary":
            values = np.c_[1 - values, values]
        means = np.average(values[together], axis=0, weights=weight[together])
        if node.kind == "numeric":
            losses = ((values[rows, 0] - means) * float(by.scale[channels[0]])) ** 2
        else:
            assert by.null_loss is not None
            losses = -values[rows] @ np.log(np.maximum(means, 1e-12)) / float(by.null_loss[k])
        loss += float(np.average(losses, weights=weight[rows]))
    return loss
