"""What a stack is made of: the rows, the members that train on them, and the schedule they share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from castlereg.layout import Layout
from castlereg.regularizers import Regularizer
from castlereg.training.batches import Draws


@dataclass(frozen=True)
class Table:
    """Encoded rows.

    Parameters
    ----------
    inputs : array of float32, shape (rows, channels)
        Numeric channels on any scale near one; 0 or 1 for binary and categorical ones.
    layout : Layout
    weight : array of float32, shape (rows,), optional
        Positive row weights; all alike by default.
    constant : tuple of int
        Nodes that get no edges.
    """

    inputs: NDArray[np.float32]
    layout: Layout
    weight: NDArray[np.float32] | None = None
    constant: tuple[int, ...] = ()


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

    train_rows: NDArray[np.int64]
    validation_rows: NDArray[np.int64]
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


def standardization(
    table: Table, members: Sequence[Member]
) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float32]]:
    """Centre every channel and give every node unit variance, on each member's own training rows.

    The channels of one node are divided by one number, the root of their summed variances, so that a
    categorical column weighs as much as a numeric one and its rare levels do not grow large.
    A node that does not vary on these rows is multiplied by zero.
    """
    layout = table.layout
    shift = np.empty((len(members), layout.n_channels), np.float32)
    scale = np.empty_like(shift)
    mean_weight = np.ones(len(members), np.float32)
    known: dict[bytes, int] = {}
    for i, member in enumerate(members):
        same = known.setdefault(member.train_rows.tobytes(), i)
        if same != i:  # the same rows with other strengths
            shift[i], scale[i], mean_weight[i] = shift[same], scale[same], mean_weight[same]
            continue
        rows = table.inputs[member.train_rows].astype(np.float64)
        weight = np.ones(len(rows)) if table.weight is None else table.weight[member.train_rows].astype(np.float64)
        mean_weight[i] = weight.mean()
        mean = np.average(rows, axis=0, weights=weight)
        variance = np.bincount(layout.channel_nodes, np.average((rows - mean) ** 2, axis=0, weights=weight))
        varies = variance > 1e-12
        by_node = np.where(varies, 1 / np.sqrt(np.where(varies, variance, 1.0)), 0.0)
        shift[i], scale[i] = mean, by_node[layout.channel_nodes]
    return shift, scale, mean_weight
