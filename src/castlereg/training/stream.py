"""Training on rows that are read in chunks: each epoch goes once through the file, in another order.

An epoch reads the pieces of the file in an order of its own, as many at a time as make a chunk, and every member
shuffles the rows of the chunk. The device holds the rows to stop by and one chunk, and the host one more that is
being read meanwhile: memory does not grow with the file.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import jax
import numpy as np
from numpy.typing import NDArray
from tqdm.auto import tqdm

from castlereg.data.scaling import Moments, Standardization, clipping, drawn_in, standardization_of
from castlereg.data.table import Table, room_for
from castlereg.layout import Layout
from castlereg.network import InputInit
from castlereg.regularizers import Regularizer
from castlereg.training import program
from castlereg.training.devices import lanes, replicated
from castlereg.training.members import Member, Schedule
from castlereg.training.row_file import PIECE, RowFile
from castlereg.training.stack import _Stack
from castlereg.training.stream_program import compiled_parts
from castlereg.training.trained import TrainedStack

_ROWS_FOR_QUARTILES = 200_000  # evenly spaced pieces: a quartile needs no more


def train_stream(
    rows: RowFile,
    validation: Table,
    seeds: Sequence[np.random.SeedSequence],
    regularizers: tuple[Regularizer, ...],
    *,
    order_seed: np.random.SeedSequence,
    chunk_rows: int,
    weighted: bool,
    hidden_layer_sizes: tuple[int, ...],
    schedule: Schedule = Schedule(),
    input_init: InputInit = "small",
    released_init: bool = False,
    progress: bool = False,
) -> TrainedStack:
    """Train members on one stream of rows.

    Parameters
    ----------
    rows : RowFile
        Training rows: their channels and, if ``weighted``, their weight.
    validation : Table
        Rows to stop by.
    seeds : sequence of SeedSequence
        Of each member.
    regularizers : tuple of Regularizer
    order_seed : SeedSequence
        Decides the order in which the file is read.
    chunk_rows : int
        Rows on the device at a time.
    weighted : bool
    hidden_layer_sizes, schedule, input_init, released_init
        See :func:`castlereg.training.train`.
    progress : bool

    Returns
    -------
    TrainedStack
    """
    if jax.process_count() > 1:
        raise ValueError(
            f"fit_file trains in one process, and {jax.process_count()} are joined: call it before "
            "jax.distributed.initialize, or use fit"
        )
    stream = _Stream(
        rows,
        validation,
        [Member(np.zeros(0, np.int64), np.arange(len(validation.inputs)), seed, regularizers) for seed in seeds],
        np.random.default_rng(order_seed),
        chunk_rows,
        weighted,
        hidden_layer_sizes,
        schedule,
        input_init,
        released_init,
    )
    total = schedule.max_epochs * rows.n_rows
    interrupted = False
    with tqdm(total=total, desc="training", unit="row", unit_scale=True, disable=not progress, leave=False) as bar:
        try:
            while stream.active.any():
                stream.run_epoch(bar)
                bar.set_postfix(validation_loss=f"{stream.best_loss.min():.4g}", active=int(stream.active.sum()))
        except KeyboardInterrupt:
            interrupted = True
    return stream.result(interrupted)


class _Stream(_Stack):
    """A stack that is shown the rows of a file in chunks."""

    def __init__(
        self,
        rows: RowFile,
        validation: Table,
        members: Sequence[Member],
        rng: np.random.Generator,
        chunk_rows: int,
        weighted: bool,
        *options: Any,
    ) -> None:
        self.rows, self.rng, self.weighted = rows, rng, weighted
        self.pieces_per_chunk = max(1, min(chunk_rows // PIECE, -(-rows.n_rows // PIECE)))
        chunk_rows = min(self.pieces_per_chunk * PIECE, rows.n_rows)
        self.n_validation = len(validation.inputs)
        layout = validation.layout
        self.rooms = [room_for(self.n_validation + chunk_rows, layout.n_channels) for _ in range(2)]
        self.weights = [np.zeros(len(room), np.float32) for room in self.rooms]
        for room, weight in zip(self.rooms, self.weights, strict=True):
            room[: self.n_validation] = validation.inputs
            weight[: self.n_validation] = 1.0 if validation.weight is None else validation.weight
        self.chunk = np.arange(self.n_validation, self.n_validation + chunk_rows)
        n_rows = self.n_validation + chunk_rows
        table = Table(self.rooms[0][:n_rows], layout, None, validation.constant, validation.edges, self.rooms[0])
        members = [Member(self.chunk, m.validation_rows, m.seed, m.regularizers) for m in members]
        super().__init__(table, members, *options)
        self.standardization, self.fixed["mean_weight"] = self._measured(layout)
        self.fixed["standardization"] = self.standardization
        self.some_rows, self.end = compiled_parts(
            layout, self.hidden_layer_sizes, self.mesh, lanes(self.mesh, self.slots_per_device)
        )

    def _epochs_per_call(self, hidden_layer_sizes: tuple[int, ...]) -> int:
        return 1

    def _measured(self, layout: Layout) -> tuple[Standardization, NDArray[np.float32]]:
        """Measure all training rows, of which every member has the same."""
        clip_center, clip_rate = None, None
        if layout.is_clipped.any():
            some = np.concatenate(list(self.rows.blocks(_ROWS_FOR_QUARTILES)))
            clip_center, clip_rate = clipping(some, np.arange(len(some)), layout)
        moments: Moments | None = None
        total = 0.0
        for block in self.rows.blocks():
            weight = block[:, -1].astype(np.float64) if self.weighted else np.ones(len(block))
            values = drawn_in(block[:, : layout.n_channels].astype(np.float64), clip_center, clip_rate, layout)
            own = Moments.of(values, weight, layout.has_gaps)
            moments = own if moments is None else moments.and_of(own)
            total += float(weight.sum())
        assert moments is not None
        one = standardization_of(moments, clip_center, clip_rate, layout)
        n = len(self.members)
        stacked: list[Any] = [None if f is None else np.repeat(f[None].astype(np.float32), n, axis=0) for f in one]
        return Standardization(*stacked), np.full(n, total / self.rows.n_rows, np.float32)

    def run_epoch(self, bar: Any) -> None:
        """Go once through the file, and bring the books up to date."""
        if not self.is_cut and int(self.epoch[self.active].min()) >= self.acyclic_from:
            self._cut_cycles()
        states = self.states
        # The program takes what it changes away, and the states are needed if the epoch is undone or interrupted.
        moving: Any = jax.tree.map(
            lambda a: a.copy(), program.Moving(states.weights, states.moments, states.regularizer_states)
        )
        names = 1 + len(program.terms(self.regularizers))
        totals: Any = self._place(np.zeros((len(self.members), names), np.float32))
        steps = np.zeros(len(self.members), np.int32)
        inputs, shared = None, None
        done: list[Any] = []
        for number, n_rows in enumerate(self._read(done)):
            inputs, shared = self._chunk(number % 2, n_rows)
            moving, totals = self.some_rows(states, moving, totals, inputs, shared)
            done.append(totals)
            steps += self.steps
            bar.update(n_rows)
        means = np.asarray(totals)[self.slot] / np.maximum(steps, 1).astype(np.float32)[:, None]
        closed, log = self.end(states, moving, self._place(means), inputs, shared)
        self.logs.append((self.epoch.copy(), np.asarray(log)[self.slot][:, None]))
        self.states = closed
        self.epoch = np.asarray(self.states.epoch)[self.slot].astype(np.int64)
        self.best_loss = np.asarray(self.states.best_loss)[self.slot]
        self.active = np.asarray(self.states.active)[self.slot]
        self._rebalance()

    def _read(self, done: list[Any]) -> Iterator[int]:
        """Read chunks in an order drawn anew, into two arrays by turns; yield how many rows each has."""
        pieces = self.rng.permutation(self.rows.pieces())
        for number, first in enumerate(range(0, len(pieces), self.pieces_per_chunk)):
            if number >= 2:
                jax.block_until_ready(done[number - 2])  # whoever works on this array
            yield self._fill(number % 2, pieces[first : first + self.pieces_per_chunk])

    def _fill(self, which: int, pieces: NDArray[np.int64]) -> int:
        room, weights, at = self.rooms[which], self.weights[which], self.n_validation
        n_channels = room.shape[1]
        for start in pieces:
            block = self.rows.piece(int(start))
            room[at : at + len(block)] = block[:, :n_channels]
            weights[at : at + len(block)] = block[:, -1] if self.weighted else 1.0
            at += len(block)
        return at - self.n_validation

    def _chunk(self, which: int, n_rows: int) -> tuple[program.MemberInputs, program.Shared]:
        """Draw the batches of a chunk, and place both."""
        for plan in self.plans:
            plan.rows = self.chunk[:n_rows].astype(np.int32)
        self.steps = np.array([plan.steps for plan in self.plans], np.int32)
        self.fixed["steps"] = self.steps
        self.next_batches = self._draw(1)
        placed: Any = jax.device_put((self.rooms[which], self.weights[which]), replicated(self.mesh))
        return self._inputs(), self.shared._replace(inputs=placed[0], weight=placed[1])
