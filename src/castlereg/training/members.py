"""What a stack is made of: its members, and the schedule they share."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from castlereg.data.scaling import RowNumbers
from castlereg.regularizers import Regularizer
from castlereg.training.batches import Draws


@dataclass(frozen=True)
class Member:
    """One network of a stack.

    Parameters
    ----------
    train_rows, validation_rows : array of int
        Indices into the table; a row may occur more than once.
    seed : SeedSequence
        Decides the starting weights, the batches and what the regularizers draw.
    regularizers : tuple of Regularizer
        The same for all members of a stack but for their strengths.
    """

    train_rows: RowNumbers
    validation_rows: RowNumbers
    seed: np.random.SeedSequence
    regularizers: tuple[Regularizer, ...] = ()


@dataclass(frozen=True)
class Schedule:
    """How every member is trained.

    Parameters
    ----------
    learning_rate : float
        Of Adam.
    batch_size : int
    max_epochs : int
    patience : int
        Epochs without a lower validation loss after which a member stops.
    warmup : int
        Epochs before the best epoch and patience count (50 in the released code).
    draws : {"shuffle", "independent"}
        How batches are drawn, see :class:`castlereg.training.batches.BatchPlan`.
    """

    learning_rate: float = 1e-3
    batch_size: int = 32
    max_epochs: int = 200
    patience: int = 30
    warmup: int = 0
    draws: Draws = "shuffle"
