"""Long epochs and long validations in blocks are the same epochs and validations."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from castlereg.layout import Layout, Node
from castlereg.network import forward, initialize
from castlereg.table.table import Standardization, rounded_up
from castlereg.training import file_source, program
from castlereg.training.file_source import PIECE, RowFile
from castlereg.training.program import _in_blocks
from castlereg.training.state import MemberInputs, Shared


@pytest.mark.parametrize("steps", [1025, 1300])
def test_every_step_is_taken_once_and_in_order(steps: int) -> None:
    room = rounded_up(steps)
    numbers = jnp.arange(room) + 7

    def step(gathered: jnp.ndarray, first: int, i: jnp.ndarray, seen: jnp.ndarray) -> jnp.ndarray:
        return seen.at[i].set(gathered[i - first] + seen[i - 1])  # the one before was taken before

    def gather(first: int, size: int) -> jnp.ndarray:
        return numbers[first + jnp.arange(size)]

    seen = _in_blocks(step, gather, room, jnp.asarray(steps), jnp.zeros(room, int))
    np.testing.assert_array_equal(seen[:steps], np.cumsum(np.arange(room) + 7)[:steps])
    assert not seen[steps:].any()


def test_validation_in_blocks_is_the_validation(rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    layout = Layout((Node(), Node(), Node(target=True)))
    table = jnp.asarray(rng.normal(size=(65, 3)), jnp.float32)
    weight = jnp.asarray(np.r_[rng.random(50), np.zeros(15)], jnp.float32)  # the last rows are empty
    by = Standardization(np.zeros(3, np.float32), np.ones(3, np.float32), None, None, None)
    network = initialize(layout, (4,), seed=np.random.SeedSequence(0))

    unused: Any = None
    shared = Shared(table, weight, *[unused] * 6)
    inputs = MemberInputs(*[unused] * 6, jnp.arange(64), by, jnp.ones(()), unused)

    def loss() -> float:
        return float(jax.jit(program._validation_loss(layout, inputs, shared))(network))

    whole = loss()
    outputs = np.asarray(forward(network, table))[:64, -1, 0]
    squares = (outputs - np.asarray(table)[:64, -1]) ** 2
    assert whole == pytest.approx(float(np.average(squares, weights=np.asarray(weight)[:64])), rel=1e-5)
    monkeypatch.setattr(program, "_MOST_VALIDATION_ROWS", 16)
    monkeypatch.setattr(program, "_VALIDATION_BLOCK", 16)
    assert loss() == pytest.approx(whole, rel=1e-6)


def test_rows_come_back_from_the_file_shuffled(rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = rng.normal(size=(2 * PIECE + 5, 3)).astype(np.float32)
    monkeypatch.setattr(file_source, "_WINDOW", PIECE)
    read = []
    for cuts in ([200], [3, 300]):
        with RowFile(3, np.random.default_rng(0)) as file:
            for part in np.split(rows, cuts):
                file.append(part)
            file.finish()
            read.append(np.concatenate(list(file.blocks())))
            assert len(list(file.blocks(most=PIECE + 5))) == 2
    np.testing.assert_array_equal(*read)  # however the rows came
    assert not np.array_equal(read[0], rows)
    for window in (slice(0, PIECE), slice(PIECE, 2 * PIECE), slice(2 * PIECE, None)):
        np.testing.assert_array_equal(np.sort(read[0][window], axis=0), np.sort(rows[window], axis=0))
