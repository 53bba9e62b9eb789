"""Rows of a file, read in chunks: encoded once into a temporary file, then read in a different order every epoch."""

from __future__ import annotations

import copy
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, BinaryIO, Self, cast

import jax
import numpy as np
from numpy.typing import NDArray

from castlereg.layout import EdgeRules, Layout
from castlereg.table.table import (
    Clipping,
    Moments,
    Standardization,
    Table,
    clipping,
    drawn_in,
    room_for,
    rounded_up,
    standardization_of,
    with_units_of_targets,
)
from castlereg.training import program
from castlereg.training.devices import wait_for
from castlereg.training.engines.jax_engine import JaxEngine
from castlereg.training.plan import Member
from castlereg.training.sources import Draws, Prepared, Progress
from castlereg.training.stack import Stack

# Rows that are read together: reading in random order still reads contiguous pieces.
PIECE = 256
# Rows that are shuffled together before they are written, so that neighbours in a sorted file are rarely read together.
_WINDOW = 65_536


class RowFile:
    """Rows of ``width`` float32 numbers in a temporary file, which is deleted when it is closed or the process ends.

    ``rng`` shuffles the rows before they are written. The file is not memory-mapped, so the rows do not count as memory
    of the process.
    """

    def __init__(self, width: int, rng: np.random.Generator) -> None:
        self.width, self.n_rows, self._rng = width, 0, rng
        self._waiting: list[NDArray[np.float32]] = []
        self._file = cast(BinaryIO, tempfile.TemporaryFile(prefix="castlereg-", suffix=".rows"))  # noqa: SIM115

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def append(self, rows: NDArray[np.float32]) -> None:
        """Add rows, shape (rows, width); they are shuffled and written together with others."""
        self._waiting.append(np.asarray(rows, np.float32))
        if sum(map(len, self._waiting)) >= _WINDOW:
            together = np.concatenate(self._waiting)
            n_written = len(together) // _WINDOW * _WINDOW
            for start in range(0, n_written, _WINDOW):
                self._write(together[start : start + _WINDOW])
            self._waiting = [together[n_written:].copy()]

    def finish(self) -> None:
        """Write the remaining rows, after the last ``append``."""
        if self._waiting:
            self._write(np.concatenate(self._waiting))
        self._waiting = []

    def _write(self, rows: NDArray[np.float32]) -> None:
        self._file.seek(0, 2)
        self._file.write(self._rng.permutation(rows).data)
        self.n_rows += len(rows)

    def pieces(self) -> NDArray[np.int64]:
        """Return the first row of every piece."""
        return np.arange(0, self.n_rows, PIECE)

    def piece(self, start: int) -> NDArray[np.float32]:
        """Read one piece."""
        rows = np.empty((min(PIECE, self.n_rows - start), self.width), np.float32)
        self._file.seek(4 * self.width * start)
        if self._file.readinto(rows.data.cast("B")) != rows.nbytes:  # type: ignore[attr-defined]
            raise OSError("the temporary file of encoded rows is truncated; check that the disk has enough space")
        return rows

    def blocks(self, most: int | None = None) -> Iterator[NDArray[np.float32]]:
        """Yield the rows piece by piece; with ``most``, evenly spaced pieces of about that many rows."""
        step = 1 if most is None else max(1, -(-self.n_rows // max(most, 1)))
        for start in self.pieces()[::step]:
            yield self.piece(int(start))


_ROWS_FOR_QUARTILES = 200_000  # from evenly spaced pieces; enough to estimate quartiles


class FileSource:
    """Rows of a file, read in chunks: each epoch goes once through the file, in a different order.

    An epoch reads the pieces of the file in a new random order, several for each chunk, and every member shuffles the
    rows of the chunk. The device holds the validation rows and one chunk while the host reads the next one, so memory
    does not grow with the file. A row has its channels and, if ``weighted``, its weight.
    """

    in_memory = False

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
        """Number of chunks in an epoch."""
        return -(-len(self.rows.pieces()) // self.pieces_per_chunk)

    def with_edges(self, edges: EdgeRules) -> FileSource:
        """Return the same rows with rules for the edges."""
        source = copy.copy(self)
        source.table = replace(self.table, edges=edges)
        return source

    def prepared(self, members: Sequence[Member]) -> Prepared:
        """Measure the training rows, which all members share."""
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
        clips: Clipping = (None, None)
        if layout.is_clipped.any():
            some = np.concatenate(list(self.rows.blocks(_ROWS_FOR_QUARTILES)))
            clips = clipping(some, np.arange(len(some)), layout)
        moments: Moments | None = None
        total = 0.0
        for block in self.rows.blocks():
            weight = block[:, -1].astype(np.float64) if self.weighted else np.ones(len(block))
            values = drawn_in(block[:, : layout.n_channels].astype(np.float64), *clips, layout)
            of_block = Moments.of(values, weight, layout.has_missing)
            moments = of_block if moments is None else moments.and_of(of_block)
            total += float(weight.sum())
        assert moments is not None  # there are rows
        by = standardization_of(moments, *clips, layout)
        if any(node.loss is not None for node in layout.nodes):
            some = np.concatenate(list(self.rows.blocks(_ROWS_FOR_QUARTILES)))
            by = with_units_of_targets(by, layout, lambda channel: some[:, channel])
        return by, total / self.rows.n_rows

    def read(self, room: NDArray[np.float32], weights: NDArray[np.float32], pieces: NDArray[np.int64]) -> int:
        """Read pieces into arrays of channels and weights, after the validation rows; return the number of rows."""
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
        assert isinstance(stack.engine, JaxEngine)  # the only engine that takes rows in chunks
        setup = stack.setup
        self.source, self.stack, self.engine = source, stack, stack.engine
        self.draws = Draws(setup.members, setup.plan, setup.layout, setup.n_sampled, setup.empty_row)
        self.room = (1, rounded_up(int(self.draws.steps.max())))
        shape = source.table.room.shape  # type: ignore[union-attr]
        self.buffers = [(room_for(shape[0] - 1, shape[1]), np.zeros(shape[0], np.float32)) for _ in range(2)]
        for room, weight in self.buffers:
            room[: source.n_validation] = source.validation.inputs
            of_validation = source.validation.weight
            weight[: source.n_validation] = 1.0 if of_validation is None else of_validation

    def _programs(self, *arguments: Any) -> tuple[Any, Any]:
        setup, engine = self.stack.setup, self.engine
        return program.compiled_in_parts(
            setup.layout, setup.plan.form, engine.mesh, engine.lanes, program.signature(*arguments)
        )

    def run(self, epochs: int, following: int, progress: Progress) -> Any:
        """Go once through the file."""
        stack, engine = self.stack, self.engine
        engine.rebalance()
        states = engine.states
        # The program overwrites its arguments, but the states are needed if the epoch is undone or interrupted.
        moving: Any = jax.tree.map(lambda a: a.copy(), states.moving)
        n_columns = len(program.log_columns(stack.setup.regularizers)) - 3
        totals: Any = engine.place(np.zeros((len(stack.active), n_columns), np.float32))
        steps, inputs, shared = np.zeros(len(stack.active), np.int32), None, None
        done: list[Any] = []
        for inputs, shared, chunk_steps in self._chunks(done):
            train, end = self._programs(states, moving, totals, inputs, shared)
            moving, totals = train(states, moving, totals, inputs, shared)
            done.append(totals)
            steps += chunk_steps
            progress(len(done) / self.source.n_chunks)
        means = engine.read(totals) / np.maximum(steps, 1).astype(np.float32)[:, None]
        engine.states, log = end(states, moving, engine.place(means), inputs, shared)
        return log[:, None]

    def _chunks(self, done: list[Any]) -> Iterator[tuple[Any, Any, NDArray[np.int32]]]:
        """Read chunks in a new random order into two alternating buffers; yield the inputs of each call."""
        source, stack = self.source, self.stack
        pieces = source.order.permutation(source.rows.pieces())
        for number, first in enumerate(range(0, len(pieces), source.pieces_per_chunk)):
            if number >= 2:
                wait_for(done[number - 2])  # until the program that uses this buffer is done
            buffer = self.buffers[number % 2]
            n_rows = source.read(*buffer, pieces[first : first + source.pieces_per_chunk])
            for stream in self.draws.streams:
                stream.rows = source.chunk[:n_rows].astype(np.int32)
            drawn, steps = self.draws.draw(stack.active, 1, self.room), self.draws.steps
            shared = self.engine.share(stack.setup.shared(*buffer))
            yield self.engine.place(stack.inputs(drawn, steps, 1)), shared, steps
