"""Folds x strengths as members of one stack, and the choice among them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from castlereg.objective import Objective
from castlereg.training import Member, Table, TrainedStack, train

Fold = tuple[NDArray[np.int64], NDArray[np.int64]]


@dataclass(frozen=True)
class FoldGrid:
    """Networks trained on every fold with every strength.

    Attributes
    ----------
    strengths : list of (reg_lambda, reg_beta)
    losses : array of shape (strengths, folds)
        Validation loss of each network at its best epoch.
    stack : TrainedStack
        Strength by strength, fold by fold.
    """

    strengths: list[tuple[float, float]]
    losses: NDArray[np.float64]
    stack: TrainedStack

    @property
    def best(self) -> int:
        """Index of the strength with the lowest mean validation loss."""
        return int(self.losses.mean(axis=1).argmin())

    def chosen(self) -> TrainedStack:
        """Return the fold networks of the best strength."""
        n_folds = self.losses.shape[1]
        return self.stack.take(self.best * n_folds + np.arange(n_folds))


def train_folds(
    objective: Objective,
    table: Table,
    folds: Sequence[Fold],
    *,
    strengths: Sequence[tuple[float, float]] = ((1.0, 0.01),),
    seed: int = 0,
    **training: Any,
) -> FoldGrid:
    """Train one network per fold and strength in a single run.

    Every network stops by the rows its fold leaves out. Networks of one fold start from the same weights and
    see the same batches, whatever their strength and objective.

    Parameters
    ----------
    objective : Objective
    table : Table
    folds : sequence of (train_rows, validation_rows)
    strengths : sequence of (reg_lambda, reg_beta)
    seed : int
    **training
        Passed to :func:`castlereg.training.train`.

    Returns
    -------
    FoldGrid
    """
    members = [
        Member(train_rows, validation_rows, np.random.SeedSequence(seed, spawn_key=(0, fold)), reg_lambda, reg_beta)
        for reg_lambda, reg_beta in strengths
        for fold, (train_rows, validation_rows) in enumerate(folds)
    ]
    stack = train(objective, table, members, **training)
    losses = stack.validation_loss.astype(np.float64).reshape(len(strengths), len(folds))
    return FoldGrid(list(strengths), losses, stack)
