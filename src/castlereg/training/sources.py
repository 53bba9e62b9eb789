"""Sources of a stack's rows (a table in memory, or any other source), and the batches of each step.

Batches are index arrays, drawn on the host with NumPy: random numbers inside a compiled program triple its compile
time. Shapes are rounded up to a few sizes, so that tables of different lengths run the same program.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Protocol

import jax
import numpy as np
from numpy.typing import NDArray

from castlereg.layout import EdgeRules, Layout
from castlereg.random_streams import OfNetwork, named_stream, network_stream
from castlereg.table.table import Standardization, Table, measure, rounded_up, with_empty_rows
from castlereg.training.plan import Batches, Member, Plan
from castlereg.training.setup import Setup
from castlereg.training.stack import Stack
from castlereg.training.state import Shared

# Work of one call of the program, in floating-point operations: a fraction of a second on one core. The progress bar
# then moves, Ctrl-C takes effect and finished members are dropped, at almost no cost.
_WORK_PER_CALL = 4e9
_MOST_EPOCHS_PER_CALL = 16

Prepared = tuple[Sequence[Member], Standardization, NDArray[np.float32]]
Progress = Callable[[float], None]


class Source(Protocol):
    """Rows to train on."""

    @property
    def table(self) -> Table:
        """Rows that an engine holds at one time."""

    @property
    def in_memory(self) -> bool:
        """Whether the table has all rows."""

    def with_edges(self, edges: EdgeRules) -> Source:
        """Return the same rows with rules for the edges."""

    def prepared(self, members: Sequence[Member]) -> Prepared:
        """Return the members with their rows in the table, their standardization and mean row weights."""

    def runner(self, stack: Stack) -> Runner:
        """Return a runner of a stack's epochs."""


class Runner(Protocol):
    """Runs epochs of a stack on the rows of a source."""

    @property
    def epochs_per_call(self) -> int:
        """Maximum number of epochs of one call."""

    def run(self, epochs: int, following: int, progress: Progress) -> Any:
        """Advance the stack by some epochs and return its log, placed; the next call runs ``following`` epochs.

        If an epoch takes long, ``progress`` is called with the share of it that is done.
        """


@dataclass(frozen=True)
class TableSource:
    """A table in memory."""

    table: Table
    in_memory: ClassVar = True

    def with_edges(self, edges: EdgeRules) -> TableSource:
        """Return the same rows with rules for the edges."""
        return TableSource(replace(self.table, edges=edges))

    def prepared(self, members: Sequence[Member]) -> Prepared:
        """Measure every member's training rows."""
        return members, *measure(self.table, [member.train_rows for member in members])

    def runner(self, stack: Stack) -> _TableRunner:
        """Return a runner that passes the table to the engine of a stack."""
        return _TableRunner(stack)


class _TableRunner:
    """Runs several epochs of every member in one call of an engine."""

    def __init__(self, stack: Stack) -> None:
        setup = stack.setup
        self.stack = stack
        self.draws = Draws(setup.members, setup.plan, setup.layout, setup.n_sampled, setup.empty_row)
        steps = rounded_up(int(self.draws.steps.max()))
        self.epochs_per_call = _epochs_per_call(setup, steps, stack.engine.members_per_worker)
        self.room = (self.epochs_per_call, steps)
        self.shared = stack.engine.share(_shared_table(setup))
        self.drawn: tuple[Any, Any, Any] | None = None

    def run(self, epochs: int, following: int, progress: Progress) -> Any:
        """Advance the stack by some epochs; draw the next ones while the engine works."""
        stack = self.stack
        drawn = self.draws.draw(stack.active, epochs, self.room) if self.drawn is None else self.drawn
        inputs = stack.inputs(drawn, self.draws.steps, self.epochs_per_call)
        log = stack.engine.run(inputs, self.shared._replace(epochs=np.int32(epochs)))  # type: ignore[arg-type]
        self.drawn = self.draws.draw(stack.active, following, self.room) if following else None
        return log


def _shared_table(setup: Setup) -> Shared:
    table = setup.table
    weight = np.zeros(setup.empty_row + 1, setup.dtype)
    weight[: len(table.inputs)] = 1.0 if table.weight is None else table.weight
    return setup.shared(with_empty_rows(table.inputs, table.room), weight)


def _epochs_per_call(setup: Setup, steps: int, members_per_worker: int) -> int:
    """Return a power of two such that a call takes a fraction of a second."""
    per_epoch = steps * setup.operations_of_step * members_per_worker
    wanted = int(min(max(_WORK_PER_CALL / per_epoch, 1), _MOST_EPOCHS_PER_CALL))
    return 1 << (wanted.bit_length() - 1)


@dataclass
class BatchStream:
    """The batches of one member.

    A shuffled epoch goes once through the rows in random order; its last batch may be smaller. An epoch of independent
    batches has ``rows // batch_size`` of them.
    """

    rows: NDArray[np.int32]  # training rows, as indices into the table
    batch_size: int
    seed: np.random.SeedSequence
    batches: Batches = "shuffle"
    _row_rng: np.random.Generator = field(init=False)
    _feature_rng: np.random.Generator = field(init=False)

    def __post_init__(self) -> None:
        self._row_rng = network_stream(self.seed, OfNetwork.BATCHES)
        self._feature_rng = network_stream(self.seed, OfNetwork.FEATURES_PER_STEP)

    @property
    def steps(self) -> int:
        """Number of steps in an epoch."""
        if self.batches == "independent":
            return max(1, len(self.rows) // self.batch_size)
        return -(-len(self.rows) // self.batch_size)

    def fill_rows(self, epochs: NDArray[np.int32]) -> None:
        """Write the rows of the next epochs into an array of shape (epochs, steps, batch_size); padding stays."""
        for epoch in epochs.reshape(len(epochs), -1):
            if self.batches == "shuffle":
                epoch[: len(self.rows)] = self._row_rng.permutation(self.rows)
                continue
            for start in range(0, self.steps * self.batch_size, self.batch_size):
                drawn = self._row_rng.permutation(self.rows)[: self.batch_size]
                epoch[start : start + len(drawn)] = drawn

    def fill_features(self, epochs: NDArray[np.int32], n_features: int) -> None:
        """Draw the features of each step, ascending, into an array of shape (epochs, steps, features per step)."""
        chosen = epochs.shape[-1]
        order = np.argsort(self._feature_rng.random((len(epochs) * self.steps, n_features)), axis=1)[:, :chosen]
        epochs[:, : self.steps] = np.sort(order, axis=1).reshape(len(epochs), self.steps, chosen)


@dataclass
class Draws:
    """Random draws of a stack's members for the next epochs: rows, features, and random numbers of regularizers."""

    members: Sequence[Member]
    plan: Plan
    layout: Layout
    n_sampled: int | None  # sub-networks that each step trains, including the targets'; None for all
    empty_row: int  # pads batches
    streams: list[BatchStream] = field(init=False)
    _regularizer_rngs: list[list[np.random.Generator]] = field(init=False)
    _numbers: Any = ()  # of all members; finished ones keep their last numbers

    def __post_init__(self) -> None:
        self.streams = [
            BatchStream(m.train_rows.astype(np.int32, copy=False), self.plan.batch_size, m.seed, self.plan.batches)
            for m in self.members
        ]
        self._regularizer_rngs = [
            [named_stream(m.seed, OfNetwork.REGULARIZER_DRAWS, type(r).__name__) for r in m.regularizers]
            for m in self.members
        ]

    @property
    def steps(self) -> NDArray[np.int32]:
        """Number of steps in an epoch, for every member."""
        return np.array([stream.steps for stream in self.streams], np.int32)

    def draw(
        self, active: NDArray[np.bool_], epochs: int, room: tuple[int, int]
    ) -> tuple[NDArray[np.int32], NDArray[np.int32] | None, Any]:
        """Draw the next epochs for the members that still train: rows, sub-networks to train, random numbers.

        ``room`` is the number of epochs and steps in the shape of the arrays, at least as many as are drawn.
        """
        shape = (len(self.members), *room)
        batches = np.full((*shape, self.plan.batch_size), self.empty_row, np.int32)
        sampled = None
        if self.n_sampled is not None:
            sampled = np.zeros((*shape, self.n_sampled), np.int32)
            sampled[..., -len(self.layout.targets) :] = self.layout.targets
        self._numbers = jax.tree.map(np.copy, self._numbers)  # an engine may still work on what was drawn before
        for i in np.flatnonzero(active):
            self.streams[i].fill_rows(batches[i, :epochs])
            if sampled is not None:
                features = sampled[i, :epochs, :, : -len(self.layout.targets)]
                self.streams[i].fill_features(features, self.layout.n_features)
            drawn = self._drawn_by_regularizers(int(i), epochs, room)
            if not jax.tree.leaves(self._numbers):
                self._numbers = jax.tree.map(lambda a: np.zeros((len(self.members), *a.shape), a.dtype), drawn)
            jax.tree.map(lambda of_all, its, i=i: of_all.__setitem__(i, its), self._numbers, drawn)
        return batches, sampled, self._numbers

    def _drawn_by_regularizers(self, i: int, epochs: int, room: tuple[int, int]) -> Any:
        """Draw a member's random numbers, padded to the shape (*room, ...)."""
        steps, sizes = self.streams[i].steps, self.plan.hidden_layer_sizes
        pairs = list(zip(self.members[i].regularizers, self._regularizer_rngs[i], strict=True))
        by_epoch = [tuple(r.draw(rng, steps, sizes) for r, rng in pairs) for _ in range(epochs)]

        def padded(*drawn: NDArray[Any]) -> NDArray[Any]:
            out = np.zeros((*room, *drawn[0].shape[1:]), drawn[0].dtype)
            out[:epochs, :steps] = drawn
            return out

        return jax.tree.map(padded, *by_epoch)
