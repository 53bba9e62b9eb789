"""Inputs of training, and the state of a member in training."""

from __future__ import annotations

from typing import Any, NamedTuple

import optax
from jax import Array

from castlereg.network import Packed
from castlereg.regularizers import Regularizer
from castlereg.table.table import Standardization

adam = optax.scale_by_adam()


class Weights(NamedTuple):
    """All trained arrays."""

    network: Packed
    own: tuple[Any, ...]  # the regularizers' trained arrays


class Moving(NamedTuple):
    """Arrays that a step changes."""

    weights: Weights
    moments: Any  # of Adam
    running: tuple[Any, ...]  # the regularizers' other arrays
    average: Packed | None = None  # of the network over epochs, which then predicts; None without averaging


class MemberState(NamedTuple):
    """State of a member in training."""

    moving: Moving
    rate: Array
    best: Packed  # the network that predicts, at the epoch of the lowest validation loss
    best_loss: Array
    best_epoch: Array
    epoch: Array  # epochs done
    restarts: Array
    active: Array


class MemberInputs(NamedTuple):
    """Inputs of a member in one call of the program."""

    batches: Array  # (epochs, steps, batch), rows of the table
    sampled: Array | None  # (epochs, steps, nodes), sub-networks to train; None for all
    drawn: tuple[Any, ...]  # (epochs, steps, ...), random numbers of each regularizer
    regularizers: tuple[Regularizer, ...]  # strengths of shape (epochs,)
    rate_factor: Array  # (epochs,)
    steps: Array  # steps in an epoch
    validation_rows: Array  # (validation,)
    standardization: Standardization
    mean_weight: Array  # of the training rows
    edge_mask: Array  # (inputs, trained nodes), 0 for forbidden edges
    averaging: Array | None = None  # decay of the average, per epoch; None without averaging
    weight_decay: Array | None = None  # share of the weights that a step removes, times its rate; None for none


class Shared(NamedTuple):
    """Inputs that all members share."""

    inputs: Array  # (rows, channels), encoded but not yet standardized; the last row is empty
    weight: Array  # (rows,), 0 for the empty row
    penalized: Array | None  # (inputs, trained nodes), 0 for required edges; None for all ones
    node_weight: Array  # (nodes,), factor in the reconstruction term
    epochs: Array  # epochs to train in this call
    max_epochs: Array
    patience: Array
    warmup: Array  # epochs before the best epoch and patience count
