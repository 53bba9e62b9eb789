"""The members of a stack, and the plan by which they are trained.

A plan is a list of phases. A phase lasts a number of epochs; over these it may change the strengths of regularizers and
the learning rate, and it may end with an action on the graph, such as cutting the edges that close cycles.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from castlereg.acyclicity.cut import acyclic_cut
from castlereg.layout import EdgeRules, Layout
from castlereg.network import ActivationName, Form, InputInit, Parameters, edge_weights
from castlereg.options import check_integer
from castlereg.regularizers import Regularizer
from castlereg.regularizers.castle import castle_of
from castlereg.table.table import RowNumbers
from castlereg.training.engines.protocol import EngineChoice

EdgeAction = Callable[[NDArray[np.float32], Layout, EdgeRules | None, bool], NDArray[np.bool_]]
Start = InputInit | Callable[[Layout, tuple[int, ...], np.random.SeedSequence, tuple[int, ...]], Parameters]
Batches = Literal["shuffle", "independent"]
Schedule = Literal["constant", "cosine"]

# For the graph objective, chosen among a few values on sums of sigmoids, sines and smooth functions; see
# docs/decisions/0011-exact-acyclicity.md. The factor of h grows over a first share of the epochs.
_FIRST_FACTOR, _LAST_FACTOR = 0.1, 10.0
_SHARE_BEFORE_CUT = 0.6


@dataclass(frozen=True)
class Member:
    """One network of a stack."""

    train_rows: RowNumbers  # indices into the table; a row may occur more than once
    validation_rows: RowNumbers
    seed: np.random.SeedSequence  # determines the starting weights, the batches and the random numbers of regularizers
    regularizers: tuple[Regularizer, ...] = ()  # the same for all members of a stack, except for their strengths
    used: NDArray[np.bool_] | None = None  # (nodes,), which columns predict the targets; all by default
    name: str = ""  # for callbacks


@dataclass(frozen=True)
class Phase:
    """A number of epochs of training.

    ``at_end`` decides which edges stay after a phase that does not count. It is a function of the input weights
    (channels, trained nodes, width), the layout, the edge rules and whether the network is linear, and returns booleans
    of shape (nodes, trained nodes).
    """

    epochs: int
    counts: bool = True  # whether these epochs count for the best epoch and for patience
    ramps: tuple[tuple[str, float, float], ...] = ()  # name of a strength; first and last factor
    learning_rate: Callable[[float], float] | None = None  # factor by the share of the phase that is done, 0 to 1
    at_end: EdgeAction | None = None

    def __post_init__(self) -> None:
        check_integer("epochs", self.epochs, least=0)
        for name, first, last in self.ramps:
            if not (first > 0 and last > 0):
                raise ValueError(f"the ramp of {name!r} goes from {first} to {last}; both must be positive")
        if self.counts and self.at_end is not None:
            raise ValueError(
                "a phase with at_end cannot count: its networks have edges that the action removes; set counts=False"
            )

    def factor(self, name: str, done: float) -> float:
        """Return the factor of a strength after a share of the phase is done."""
        return next((first * (last / first) ** done for ramp, first, last in self.ramps if ramp == name), 1.0)


@dataclass(frozen=True)
class Plan:
    """How every member is trained.

    Examples
    --------
    >>> plan = Plan((8, 8), (Phase(5, counts=False), Phase(20)))
    >>> plan.max_epochs, plan.warmup
    (25, 5)
    """

    hidden_layer_sizes: tuple[int, ...]  # empty for the linear form
    phases: tuple[Phase, ...] = (Phase(200),)  # those that count come last
    learning_rate: float = 1e-3  # of Adam
    batch_size: int = 32
    patience: int = 30  # epochs without a lower validation loss after which a member stops
    input_init: Start = "small"  # see castlereg.network.initialize; or a function of layout, widths, seed and nodes
    batches: Batches = "shuffle"  # an epoch goes once through the shuffled rows; or its batches are independent
    schedule: Schedule = "constant"  # of the learning rate, in the phases of phases_for
    activation: ActivationName = "relu"
    averaging: float | None = None  # decay of a running average of the weights, per epoch; None for no average
    weight_decay: float | None = None  # share of the weights that a step removes, times its learning rate
    embedding: int = 0  # inputs that the networks compute from each number
    engine: EngineChoice = "auto"  # see castlereg.training.engines.choice

    def __post_init__(self) -> None:
        counts = [phase.counts for phase in self.phases if phase.epochs]
        if counts != sorted(counts) or not any(counts):
            raise ValueError(f"phases that count must come last, and at least one is needed, got {self.phases}")

    @property
    def form(self) -> Form:
        """Widths and activation of the networks."""
        return Form(self.hidden_layer_sizes, self.activation)

    @property
    def max_epochs(self) -> int:
        """Number of epochs of all phases."""
        return sum(phase.epochs for phase in self.phases)

    @property
    def warmup(self) -> int:
        """Number of epochs before the best epoch and patience count."""
        return sum(phase.epochs for phase in self.phases if not phase.counts)

    def phase_at(self, epoch: int) -> tuple[Phase, int]:
        """Return the phase of an epoch, counted from 0, and the epochs before that phase."""
        before = 0
        for phase in self.phases[:-1]:
            if epoch < before + phase.epochs:
                return phase, before
            before += phase.epochs
        return self.phases[-1], before

    def actions_at(self, epoch: int) -> list[EdgeAction]:
        """Return the actions of the phases that end when this many epochs are done."""
        ends = np.cumsum([phase.epochs for phase in self.phases])
        return [phase.at_end for phase, end in zip(self.phases, ends, strict=True) if phase.at_end and end == epoch]


def cosine(done: float) -> float:
    """Return the factor of the learning rate after a share of the epochs: half a wave, from 1 down to 0.01."""
    return 0.01 + 0.99 * 0.5 * (1 + math.cos(math.pi * done))


def phases_for(
    regularizers: Sequence[Regularizer], max_epochs: int, warmup: int = 0, schedule: Schedule = "constant"
) -> tuple[Phase, ...]:
    """Return the phases of training with regularizers: those of the graph objective, or a warmup and a single phase.

    Examples
    --------
    >>> from castlereg.regularizers import Castle
    >>> [phase.epochs for phase in phases_for([Castle(objective="graph")], 100)]
    [60, 40]
    """
    rate = cosine if schedule == "cosine" else None
    castle = castle_of(regularizers)
    if castle is not None and castle.objective == "graph":
        first = min(round(_SHARE_BEFORE_CUT * max_epochs), max_epochs - 1)
        name = "acyclicity_strength"
        grow = Phase(first, counts=False, ramps=((name, _FIRST_FACTOR, _LAST_FACTOR),), at_end=cut_cycles)
        last = Phase(max_epochs - first, ramps=((name, _LAST_FACTOR, _LAST_FACTOR),), learning_rate=rate)
        return grow, last
    warmup = min(warmup, max_epochs - 1)
    last = Phase(max_epochs - warmup, learning_rate=rate)
    return (Phase(warmup, counts=False), last) if warmup else (last,)


def cut_cycles(
    input_weights: NDArray[np.float32], layout: Layout, rules: EdgeRules | None, linear: bool
) -> NDArray[np.bool_]:
    """Keep the edges of an acyclic graph: the action after the first phase of the graph objective."""
    weights = edge_weights(input_weights, layout, linear=linear)
    if not np.isfinite(weights).all():
        return np.ones_like(weights, dtype=bool)
    is_edge: Any = acyclic_cut(weights, None if rules is None else rules.required) > 0
    return np.asarray(is_edge)
