"""Folds x candidates as members of one stack, and the choice among them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from castlereg.regularizers import Regularizer
from castlereg.training import Member, Table, TrainedStack, train

Fold = tuple[NDArray[np.int64], NDArray[np.int64]]


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
    """

    candidates: list[tuple[Regularizer, ...]]
    losses: NDArray[np.float64]
    stack: TrainedStack

    @property
    def best(self) -> int:
        """Index of the candidate with the lowest mean validation loss."""
        return int(self.losses.mean(axis=1).argmin())

    def of(self, folds: NDArray[np.int64]) -> FoldGrid:
        """Keep some folds, such as those of one split."""
        members = np.arange(len(self.candidates))[:, None] * self.losses.shape[1] + folds
        return FoldGrid(self.candidates, self.losses[:, folds], self.stack.take(members.ravel()))

    def chosen(self) -> TrainedStack:
        """Return the fold networks of the best candidate."""
        n_folds = self.losses.shape[1]
        return self.stack.take(self.best * n_folds + np.arange(n_folds))


def train_folds(
    table: Table,
    folds: Sequence[Fold],
    *,
    candidates: Sequence[Sequence[Regularizer]] = ((),),
    seed: int = 0,
    **training: Any,
) -> FoldGrid:
    """Train one network per fold and candidate in a single run.

    Every network stops by the rows its fold leaves out. Networks of one fold start from the same weights and
    see the same batches, whatever their regularizers.

    Parameters
    ----------
    table : Table
    folds : sequence of (train_rows, validation_rows)
    candidates : sequence of sequence of Regularizer
        The same regularizers with different strengths.
    seed : int
    **training
        Passed to :func:`castlereg.training.train`.

    Returns
    -------
    FoldGrid
    """
    grid = [tuple(candidate) for candidate in candidates]
    members = [
        Member(train_rows, validation_rows, np.random.SeedSequence(seed, spawn_key=(0, fold)), candidate)
        for candidate in grid
        for fold, (train_rows, validation_rows) in enumerate(folds)
    ]
    stack = train(table, members, **training)
    losses = stack.validation_loss.astype(np.float64).reshape(len(grid), len(folds))
    return FoldGrid(grid, losses, stack)
