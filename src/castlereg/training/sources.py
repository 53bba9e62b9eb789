"""Where the rows of a stack come from: a table in memory, or a file that is read in chunks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import jax
import numpy as np
from numpy.typing import NDArray

from castlereg.data.scaling import Moments, Standardization, clipping, drawn_in, measure, standardization_of
from castlereg.data.table import Table, room_for, rounded_up, with_empty_rows
from castlereg.layout import Layout
from castlereg.training import program
from castlereg.training.batches import Draws
from castlereg.training.devices import lanes, replicated
from castlereg.training.plan import Member
from castlereg.training.row_file import PIECE, RowFile
from castlereg.training.stack import Setup, Stack

# Work of one call of the program, in floating-point operations: a fraction of a second on one core, so that the
# progress bar moves, Ctrl-C is heard and finished members leave, at next to no cost.
_WORK_PER_CALL = 4e9
_MOST_EPOCHS_PER_CALL = 16

# Up to this width a program that compiles in little more than half of the time takes 6 or 7 % longer to train; at
# a width of 30 it takes a third longer. Of more rows, training is what takes the time.
_SMALL_WIDTH = 16
_SMALL_ROWS = 20_000

_ROWS_FOR_QUARTILES = 200_000  # evenly spaced pieces: a quartile needs no more


Prepared = tuple[Sequence[Member], Standardization, NDArray[np.float32]]
Progress = Callable[[float], None]


class Source(Protocol):
    """Rows to train on."""

    @property
    def table(self) -> Table:
        """What the devices hold."""

    def prepared(self, members: Sequence[Member]) -> Prepared:
        """Return the members with their rows in the table, their standardization and mean row weights."""

    def runner(self, stack: Stack) -> Runner:
        """Return what runs epochs of a stack."""


class Runner(Protocol):
    """Runs epochs of a stack on the rows of a source."""

    @property
    def epochs_per_call(self) -> int:
        """Most epochs that one call runs."""

    def run(self, epochs: int, following: int, progress: Progress) -> Any:
        """Advance the stack by some epochs; return the log.

        Parameters
        ----------
        epochs, following : int
            Epochs of this call and of the next one.
        progress : callable
            To be called with the share of an epoch that is done, if an epoch takes long.
        """


@dataclass(frozen=True)
class TableSource:
    """A table in memory."""

    table: Table

    def prepared(self, members: Sequence[Member]) -> Prepared:
        """Measure every member's training rows."""
        return members, *measure(self.table, [member.train_rows for member in members])

    def runner(self, stack: Stack) -> _TableRunner:
        """Compile the program of a stack."""
        return _TableRunner(stack)


class _TableRunner:
    """Runs several epochs of every member in one call of a program."""

    def __init__(self, stack: Stack) -> None:
        setup = stack.setup
        self.stack = stack
        self.draws = Draws(setup.members, setup.plan, setup.layout, setup.n_sampled, setup.empty_row)
        steps = rounded_up(int(self.draws.steps.max()))
        self.epochs_per_call = _epochs_per_call(setup, steps)
        self.room = (self.epochs_per_call, steps)
        self.shared = _shared_table(setup)
        self.drawn: tuple[Any, Any, Any] | None = None

    def run(self, epochs: int, following: int, progress: Progress) -> Any:
        """Advance the stack by some epochs; draw the next ones while the devices work."""
        stack, setup = self.stack, self.stack.setup
        drawn = self.draws.draw(stack.active, epochs, self.room) if self.drawn is None else self.drawn
        inputs = stack.inputs(drawn, self.draws.steps, self.epochs_per_call)
        shared = self.shared._replace(epochs=np.int32(epochs))
        call = program.compiled(
            setup.layout,
            setup.plan.hidden_layer_sizes,
            setup.mesh,
            lanes(setup.mesh, setup.slots_per_device),
            _is_small(setup),
            program.signature(stack.states, inputs, shared),
        )
        returned: list[list[jax.Array]] = []
        try:
            # Ctrl-C that comes while the program runs is heard between two steps of this function. What the program
            # returns is in the list by then, or the program was not called.
            returned.extend(map(call, (stack.states,), (inputs,), (shared,)))
        finally:
            if returned:
                stack.leaves = returned[0]
        self.drawn = self.draws.draw(stack.active, following, self.room) if following else None
        return returned[0][-1]


def _shared_table(setup: Setup) -> Any:
    table = setup.table
    weight = np.zeros(setup.empty_row + 1, setup.dtype)
    weight[: len(table.inputs)] = 1.0 if table.weight is None else table.weight
    return setup.shared(with_empty_rows(table.inputs, table.room), weight)


def _epochs_per_call(setup: Setup, steps: int) -> int:
    """Power of two such that a call is a fraction of a second, by the size of the problem."""
    layout, sizes = setup.layout, setup.plan.hidden_layer_sizes
    width = sizes[0] if sizes else layout.output_width
    trained = len(setup.nodes) if setup.n_sampled is None else setup.n_sampled
    per_row = trained * (4 * layout.n_channels * width + 6 * width * width)
    per_epoch = steps * setup.plan.batch_size * per_row * setup.slots_per_device
    wanted = int(min(max(_WORK_PER_CALL / per_epoch, 1), _MOST_EPOCHS_PER_CALL))
    return 1 << (wanted.bit_length() - 1)


def _is_small(setup: Setup) -> bool:
    """Whether compiling takes longer than training; by table and widths only, to be the same for any stack."""
    widest = max(setup.layout.n_channels, *setup.plan.hidden_layer_sizes, 0)
    return widest <= _SMALL_WIDTH and len(setup.table.inputs) <= _SMALL_ROWS


class FileSource:
    """Rows of a file, read in chunks: each epoch goes once through the file, in another order.

    An epoch reads the pieces of the file in an order of its own, as many at a time as make a chunk, and every member
    shuffles the rows of the chunk. The device holds the validation rows and one chunk, and the host one more that is
    being read meanwhile: memory does not grow with the file.

    Parameters
    ----------
    rows : RowFile
        Training rows: their channels and, if ``weighted``, their weight.
    validation : Table
        Validation rows.
    chunk_rows : int
        Rows on the device at a time.
    weighted : bool
    order : numpy.random.Generator
        Decides the order in which the file is read.
    """

    def __init__(
        self, rows: RowFile, validation: Table, chunk_rows: int, weighted: bool, order: np.random.Generator
    ) -> None:
        self.rows, self.validation, self.weighted, self.order = rows, validation, weighted, order
        self.pieces_per_chunk = max(1, min(chunk_rows // PIECE, -(-rows.n_rows // PIECE)))
        self.n_validation = len(validation.inputs)
        n_rows = self.n_validation + min(self.pieces_per_chunk * PIECE, rows.n_rows)
        self.chunk = np.arange(self.n_validation, n_rows)
        room = room_for(n_rows, validation.layout.n_channels)
        self.table = replace(validation, inputs=room[:n_rows], weight=None, room=room)

    @property
    def n_chunks(self) -> int:
        """Chunks that an epoch reads."""
        return -(-len(self.rows.pieces()) // self.pieces_per_chunk)

    def prepared(self, members: Sequence[Member]) -> Prepared:
        """Measure all training rows, which all members share."""
        by, mean_weight = self._measured(self.table.layout)
        n = len(members)
        stacked: list[Any] = [None if f is None else np.repeat(f[None].astype(np.float32), n, axis=0) for f in by]
        rows = np.arange(self.n_validation)
        members = [replace(member, train_rows=self.chunk, validation_rows=rows) for member in members]
        return members, Standardization(*stacked), np.full(n, mean_weight, np.float32)

    def runner(self, stack: Stack) -> _FileRunner:
        """Compile the programs of a stack."""
        return _FileRunner(self, stack)

    def _measured(self, layout: Layout) -> tuple[Standardization, float]:
        clip_center, clip_rate = None, None
        if layout.is_clipped.any():
            some = np.concatenate(list(self.rows.blocks(_ROWS_FOR_QUARTILES)))
            clip_center, clip_rate = clipping(some, np.arange(len(some)), layout)
        moments: Moments | None = None
        total = 0.0
        for block in self.rows.blocks():
            weight = block[:, -1].astype(np.float64) if self.weighted else np.ones(len(block))
            values = drawn_in(block[:, : layout.n_channels].astype(np.float64), clip_center, clip_rate, layout)
            of_block = Moments.of(values, weight, layout.has_gaps)
            moments = of_block if moments is None else moments.and_of(of_block)
            total += float(weight.sum())
        assert moments is not None  # there are rows
        return standardization_of(moments, clip_center, clip_rate, layout), total / self.rows.n_rows

    def read(self, room: NDArray[np.float32], weights: NDArray[np.float32], pieces: NDArray[np.int64]) -> int:
        """Read pieces of the file behind the validation rows of two arrays, channels and weights; count the rows."""
        at = self.n_validation
        for start in pieces:
            block = self.rows.piece(int(start))
            room[at : at + len(block)] = block[:, : room.shape[1]]
            weights[at : at + len(block)] = block[:, -1] if self.weighted else 1.0
            at += len(block)
        return at - self.n_validation


class _FileRunner:
    """Runs one epoch of every member, chunk by chunk."""

    epochs_per_call = 1

    def __init__(self, source: FileSource, stack: Stack) -> None:
        setup = stack.setup
        self.source, self.stack = source, stack
        self.draws = Draws(setup.members, setup.plan, setup.layout, setup.n_sampled, setup.empty_row)
        self.room = (1, rounded_up(int(self.draws.steps.max())))
        shape = source.table.room.shape  # type: ignore[union-attr]
        self.buffers = [(room_for(shape[0] - 1, shape[1]), np.zeros(shape[0], np.float32)) for _ in range(2)]
        for room, weight in self.buffers:
            room[: source.n_validation] = source.validation.inputs
            given = source.validation.weight
            weight[: source.n_validation] = 1.0 if given is None else given
        self.on_chunk, self.end = program.compiled_in_parts(
            setup.layout, setup.plan.hidden_layer_sizes, setup.mesh, lanes(setup.mesh, setup.slots_per_device)
        )

    def run(self, epochs: int, following: int, progress: Progress) -> Any:
        """Go once through the file."""
        stack, states = self.stack, self.stack.states
        # The program takes away what it changes, and the states are needed if the epoch is undone or interrupted.
        moving: Any = jax.tree.map(lambda a: a.copy(), states.moving)
        n_columns = len(program.log_columns(stack.setup.regularizers)) - 3
        totals: Any = stack.place(np.zeros((len(stack.active), n_columns), np.float32))
        steps, inputs, shared = np.zeros(len(stack.active), np.int32), None, None
        done: list[Any] = []
        for inputs, shared, chunk_steps in self._chunks(done):
            moving, totals = self.on_chunk(states, moving, totals, inputs, shared)
            done.append(totals)
            steps += chunk_steps
            progress(len(done) / self.source.n_chunks)
        means = stack.read(totals) / np.maximum(steps, 1).astype(np.float32)[:, None]
        stack.states, log = self.end(states, moving, stack.place(means), inputs, shared)
        return log[:, None]

    def _chunks(self, done: list[Any]) -> Iterator[tuple[Any, Any, NDArray[np.int32]]]:
        """Read chunks in an order drawn anew, into two buffers by turns; yield what to train on."""
        source, stack = self.source, self.stack
        pieces = source.order.permutation(source.rows.pieces())
        for number, first in enumerate(range(0, len(pieces), source.pieces_per_chunk)):
            if number >= 2:
                jax.block_until_ready(done[number - 2])  # the program that works on this buffer
            buffer = self.buffers[number % 2]
            n_rows = source.read(*buffer, pieces[first : first + source.pieces_per_chunk])
            for stream in self.draws.streams:
                stream.rows = source.chunk[:n_rows].astype(np.int32)
            drawn, steps = self.draws.draw(stack.active, 1, self.room), self.draws.steps
            placed = jax.device_put(buffer, replicated(stack.setup.mesh))
            yield stack.inputs(drawn, steps, 1), stack.setup.shared(*placed), steps
