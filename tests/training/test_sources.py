"""A file against a table with the same rows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import jax
import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from tqdm import tqdm

from castlereg.layout import Layout, Node
from castlereg.network import initialize
from castlereg.regularizers import Castle
from castlereg.table.table import Table
from castlereg.training import Member, sources, train
from castlereg.training.file_source import PIECE, FileSource, RowFile
from castlereg.training.sources import TableSource
from tests.training.cases import assert_same, plan, table

N_TRAIN, N_VALIDATION = 4 * PIECE - 56, 90
ROWS = np.arange(N_TRAIN + N_VALIDATION)


def whole_table() -> Table:
    """Training rows first, then validation rows."""
    return table(n_rows=len(ROWS))


@contextmanager
def in_file(
    data: Table, chunk_rows: int, weight: NDArray[np.float32] | None = None, seed: int = 0
) -> Iterator[FileSource]:
    """The same table with its training rows in a file."""
    rows = data.inputs if weight is None else np.column_stack([data.inputs, weight])
    with RowFile(rows.shape[1], np.random.default_rng(seed)) as file:
        file.append(rows[:N_TRAIN].astype(np.float32))
        file.finish()
        held_out = replace(
            data, inputs=data.inputs[N_TRAIN:], weight=None if weight is None else weight[N_TRAIN:].astype(np.float32)
        )
        yield FileSource(file, held_out, chunk_rows, weight is not None, np.random.default_rng(seed))


def members(n: int) -> list[Member]:
    seeds = np.random.SeedSequence(3).spawn(n)
    return [Member(ROWS[:N_TRAIN], ROWS[N_TRAIN:], seed, (Castle(10.0**-i),)) for i, seed in enumerate(seeds)]


def with_missing_values(data: Table) -> Table:
    """With a missing indicator behind the first column, and the second one clipped."""
    missing = np.random.default_rng(5).random(len(data.inputs)) < 0.2
    inputs = np.insert(data.inputs, 1, missing, axis=1)
    inputs[missing, 0] = np.nan
    layout = Layout((Node(missing=True), Node(clipped=True), *data.layout.nodes[2:]))
    return Table(inputs.astype(np.float32), layout)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("missing", [False, True])
def test_training_rows_are_measured_alike(missing: bool, weighted: bool) -> None:
    data = with_missing_values(whole_table()) if missing else whole_table()
    weight = np.linspace(0.5, 2, len(ROWS)).astype(np.float32) if weighted else None
    _, by_table, mean_weight = TableSource(replace(data, weight=weight)).prepared(members(2))
    with in_file(data, 10**6, weight) as source:
        prepared, by_file, mean_of_file = source.prepared(members(2))
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6), by_file, by_table)
    np.testing.assert_allclose(mean_of_file, mean_weight, rtol=1e-6)
    assert [len(member.validation_rows) for member in prepared] == [N_VALIDATION] * 2


@pytest.mark.parametrize("weighted", [False, True])
def test_one_chunk_in_one_batch_takes_the_steps_of_the_table(weighted: bool) -> None:
    """The order of rows within a batch does not matter."""
    data = whole_table()
    weight = np.linspace(0.5, 2, len(ROWS)).astype(np.float32) if weighted else None
    by = plan((5, 5), epochs=15, patience=15, batch_size=N_TRAIN, learning_rate=0.01)
    in_memory = train(replace(data, weight=weight), members(3), by)
    with in_file(data, 10**6, weight) as source:
        assert source.n_chunks == 1
        streamed = train(source, members(3), by)
    assert_same(streamed, in_memory, rtol=2e-4)
    np.testing.assert_array_equal(streamed.best_epoch, in_memory.best_epoch)
    for name in ("objective", "reconstruction", "validation_loss", "learning_rate"):
        np.testing.assert_allclose(streamed.history[name], in_memory.history[name], rtol=1e-4)


def batches_of_epochs(source: FileSource, by: Any, n: int, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """First channel of the rows in every batch of every member, by chunk."""
    drawn, draw = [], sources.Draws.draw
    read = source.read
    in_buffer: list[Any] = []

    def watched_read(room: Any, weights: Any, pieces: Any) -> int:
        n_rows = read(room, weights, pieces)
        in_buffer.append(room[:, 0].copy())
        return n_rows

    def watched_draw(self: Any, *arguments: Any) -> Any:
        result = draw(self, *arguments)
        values = in_buffer[-1]
        drawn.append([[values[b[b < self.empty_row]] for b in member[0]] for member in result[0]])
        return result

    monkeypatch.setattr(source, "read", watched_read)
    monkeypatch.setattr(sources.Draws, "draw", watched_draw)
    train(source, members(n), by)
    return drawn


def test_an_epoch_goes_once_through_the_file_and_members_share_its_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    data, by = whole_table(), plan((3,), epochs=2, batch_size=50)
    with in_file(data, 2 * PIECE) as source:
        assert source.n_chunks == 2
        chunks = batches_of_epochs(source, by, 3, monkeypatch)
    assert len(chunks) == 4
    expected = np.sort(data.inputs[:N_TRAIN, 0])
    for first in (0, 2):
        for member in range(3):
            epoch = np.concatenate([np.concatenate(chunk[member]) for chunk in chunks[first : first + 2]])
            np.testing.assert_array_equal(np.sort(epoch), expected)
    for chunk in chunks:
        rows = [np.concatenate(batches) for batches in chunk]
        for other in rows[1:]:
            np.testing.assert_array_equal(np.sort(other), np.sort(rows[0]))
            assert not np.array_equal(other, rows[0])  # each member in its own order
    first, second = (np.concatenate([np.concatenate(c[0]) for c in chunks[i : i + 2]]) for i in (0, 2))
    assert not np.array_equal(np.sort(first[: 2 * PIECE]), np.sort(second[: 2 * PIECE])), "chunks should differ"


def test_members_train_on_the_same_chunks_in_the_same_order() -> None:
    """From one start, with batches as large as a chunk, members with different seeds take the same steps."""

    def same_start(layout: Any, sizes: Any, seed: Any, nodes: Any) -> Any:
        return initialize(layout, sizes, 0, nodes=nodes)

    by = replace(plan((5,), epochs=6, patience=6, batch_size=PIECE, learning_rate=0.02), input_init=same_start)
    chosen = [replace(member, regularizers=(Castle(0.1),)) for member in members(2)]
    with in_file(whole_table(), PIECE) as source:
        result = train(source, chosen, by)
    assert_same(result.take(np.array([0])), result.take(np.array([1])), rtol=1e-4)
    with in_file(whole_table(), PIECE, seed=1) as source:
        other = train(source, chosen, by)
    difference = np.abs(other.parameters.input_weights - result.parameters.input_weights).max()
    assert difference > 1e-3, "another order of chunks should matter"


def test_ctrl_c_in_an_epoch_keeps_the_last_whole_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    read, calls = FileSource.read, []

    def interrupted(self: Any, *arguments: Any) -> int:
        calls.append(1)
        if len(calls) == 2 * 4 + 2:  # the second chunk of the third epoch
            raise KeyboardInterrupt
        return read(self, *arguments)

    monkeypatch.setattr(FileSource, "read", interrupted)
    with (
        in_file(whole_table(), PIECE) as source,
        pytest.warns(ConvergenceWarning, match="interrupted after 2 of at most 9 epochs"),
    ):
        assert source.n_chunks == 4
        stopped = train(source, members(2), plan((5,), epochs=9), on_interrupt="keep")
    monkeypatch.setattr(FileSource, "read", read)
    with in_file(whole_table(), PIECE) as source:
        whole = train(source, members(2), plan((5,), epochs=2))
    assert stopped.interrupted
    assert len(stopped.history) == 4
    assert_same(stopped, whole)


def test_a_file_is_let_go_of_by_the_devices() -> None:
    before = set(map(id, jax.live_arrays()))
    with in_file(whole_table(), 10**6) as source:
        train(source, members(2), plan((3,), epochs=2))
        assert max((a.nbytes for a in jax.live_arrays() if id(a) not in before), default=0) < 5000


def test_the_progress_bar_moves_within_an_epoch() -> None:
    shown = []

    class Recorded(tqdm):  # type: ignore[misc,type-arg]
        def update(self, n: float | None = 1) -> bool | None:
            shown.append(self.n)
            return super().update(n)

    with in_file(whole_table(), PIECE) as source, Recorded(total=6) as bar:
        train(source, members(2), plan((3,), epochs=3), progress=bar)
    assert shown == sorted(shown)
    assert shown[-1] == 6
    assert shown[:5] == [0.5, 1.0, 1.5, 2.0, 2]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_an_epoch_of_a_file_that_diverges_is_undone() -> None:
    with in_file(whole_table(), PIECE) as source:
        result = train(source, members(1), plan((), epochs=25, patience=25, learning_rate=1e20))
    rates = result.history["learning_rate"].to_numpy()
    assert rates[0] > rates[-1]
    assert np.isfinite(result.validation_loss).all()
