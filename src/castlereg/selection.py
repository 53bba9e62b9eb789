"""Folds x candidates as members of one stack, and the choice among them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from numpy.typing import NDArray
from tqdm.auto import tqdm

from castlereg.data.splits import Fold
from castlereg.data.table import Table
from castlereg.notices import warn_user
from castlereg.regularizers import Regularizer
from castlereg.training import Member, Schedule, TrainedStack, train
from castlereg.training.memory import members_that_fit


@dataclass(frozen=True)
class FoldGrid:
    """Networks trained on every fold with every candidate.

    Attributes
    ----------
    candidates : list of tuple of Regularizer
    losses : array of shape (candidates, folds)
        Validation loss of each network at its best epoch.
    stack : TrainedStack
        Candidate by candidate, fold by fold.
    trained : list of int
        Which of the candidates that were asked for these are; fewer than all when training was interrupted.
    """

    candidates: list[tuple[Regularizer, ...]]
    losses: NDArray[np.float64]
    stack: TrainedStack
    trained: list[int]

    @property
    def best(self) -> int:
        """Index of the candidate with the lowest mean validation loss."""
        return choose(-self.losses)

    def of(self, folds: NDArray[np.int64]) -> FoldGrid:
        """Keep some folds, such as those of one split."""
        members = np.arange(len(self.candidates))[:, None] * self.losses.shape[1] + folds
        return FoldGrid(self.candidates, self.losses[:, folds], self.stack.take(members.ravel()), self.trained)

    def members(self, candidate: int) -> NDArray[np.int64]:
        """Return the places of a candidate's fold networks in the stack."""
        n_folds = self.losses.shape[1]
        return candidate * n_folds + np.arange(n_folds)

    def chosen(self) -> TrainedStack:
        """Return the fold networks of the best candidate."""
        return self.stack.take(self.members(self.best))


def choose(
    scores: NDArray[np.float64],
    strengths: Sequence[tuple[float, ...]] | None = None,
) -> int:
    """Choose a candidate by its mean score over folds.

    Parameters
    ----------
    scores : array of shape (candidates, folds)
        Higher is better.
    strengths : sequence of tuple of float, optional
        For the one-standard-error rule: of the candidates whose mean is within one standard error of the best one's,
        the strongest is taken. Without them the best one is.

    Returns
    -------
    int

    Examples
    --------
    >>> import numpy as np
    >>> scores = np.array([[-1.0, -1.2], [-1.05, -1.2], [-3.0, -3.0]])
    >>> choose(scores)
    0
    >>> choose(scores, strengths=[(0.01,), (0.1,), (1.0,)])
    1
    """
    means = scores.mean(axis=1)
    best = int(np.where(np.isnan(means), -np.inf, means).argmax())
    if strengths is None:
        return best
    n_folds = scores.shape[1]
    error = scores[best].std(ddof=1) / np.sqrt(n_folds) if n_folds > 1 else 0.0
    near = [i for i in range(len(scores)) if means[i] >= means[best] - error]
    return max(near, key=lambda i: (strengths[i], means[i]))


def strengths_of(candidate: Sequence[Regularizer]) -> dict[str, float]:
    """Name the strengths of a candidate's regularizers: ``L2.strength``; CASTLE's are ``reg_beta`` and ``reg_lambda``.

    Examples
    --------
    >>> from castlereg.regularizers import L2, Castle
    >>> strengths_of([Castle(0.1), L2(0.01)])
    {'reg_beta': 0.1, 'reg_lambda': 1.0, 'L2.strength': 0.01}
    """
    named = {}
    for regularizer in candidate:
        prefix = "" if any(name.startswith("reg_") for name in vars(regularizer)) else f"{type(regularizer).__name__}."
        for path, leaf in jax.tree_util.tree_leaves_with_path(regularizer):
            named[f"{prefix}{path[-1].name}"] = float(leaf)
    return named


def train_folds(
    table: Table,
    folds: Sequence[Fold],
    *,
    candidates: Sequence[Sequence[Regularizer]] = ((),),
    seeds: Sequence[np.random.SeedSequence] | int = 0,
    schedule: Schedule = Schedule(),
    progress: bool = False,
    most_members: int | None = None,
    **training: Any,
) -> FoldGrid:
    """Train one network per fold and candidate in a single run.

    Every network stops by the rows its fold leaves out. Networks of one fold start from the same weights and
    see the same batches, whatever their regularizers. A grid that does not fit into memory is trained in parts, which
    changes nothing: networks of a stack do not see each other.

    Parameters
    ----------
    table : Table
    folds : sequence of (train_rows, validation_rows)
    candidates : sequence of sequence of Regularizer
        Those with the same regularizers in different strengths are one program.
    seeds : sequence of SeedSequence, or int
        Of each fold; an integer is the entropy of all, and the folds are its children.
    schedule : Schedule
    progress : bool
        Show a progress bar over the whole grid.
    most_members : int, optional
        Networks to train at once; by default as many as fit into memory.
    **training
        Passed to :func:`castlereg.training.train`.

    Returns
    -------
    FoldGrid
        Of the candidates that were trained on all folds: all of them, unless Ctrl-C came between.
    """
    grid = [tuple(candidate) for candidate in candidates]
    if isinstance(seeds, int):
        seeds = [np.random.SeedSequence(seeds, spawn_key=(0, fold)) for fold in range(len(folds))]
    members = [[Member(*fold, seed, candidate) for fold, seed in zip(folds, seeds, strict=True)] for candidate in grid]
    if most_members is None:
        most_members = members_that_fit(table, training["hidden_layer_sizes"], grid[0], schedule)
    total = len(grid) * len(folds) * schedule.max_epochs
    bar = tqdm(total=total, desc="training", unit="epoch", leave=False) if progress else None
    done: dict[int, list[TrainedStack]] = {}
    with bar or nullcontext():
        for part in _parts(grid, len(folds), most_members):
            stack = train(
                table, [members[i][fold] for i, fold in part], schedule=schedule, progress=bar or False, **training
            )
            for place, (i, _) in enumerate(part):
                done.setdefault(i, []).append(stack.take(np.array([place])))
            if stack.interrupted:
                break
    trained = [i for i in range(len(grid)) if len(done.get(i, [])) == len(folds)]
    if not trained:
        raise KeyboardInterrupt("training was interrupted before any candidate was trained on all folds")
    if len(trained) < len(grid):
        warn_user(f"training was interrupted: {len(trained)} of {len(grid)} candidates were trained and are compared")
    stack = TrainedStack.joined([one for i in trained for one in done[i]])
    losses = stack.validation_loss.astype(np.float64).reshape(len(trained), len(folds))
    return FoldGrid([grid[i] for i in trained], losses, stack, trained)


def _parts(grid: list[tuple[Regularizer, ...]], n_folds: int, most_members: int) -> list[list[tuple[int, int]]]:
    """Cut the grid into runs of members with the same regularizers, candidate by candidate."""
    by_structure: dict[Any, list[int]] = {}
    for i, candidate in enumerate(grid):
        by_structure.setdefault(jax.tree.structure(candidate), []).append(i)
    parts = []
    for alike in by_structure.values():
        places = [(i, fold) for i in alike for fold in range(n_folds)]
        parts += [places[start : start + most_members] for start in range(0, len(places), most_members)]
    return parts
