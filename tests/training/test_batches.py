"""Batches drawn on the host."""

from __future__ import annotations

import numpy as np

from castlereg.regularizers import Castle, Dropout, MixUp
from castlereg.training import Member
from castlereg.training.loop import BatchStream, _Draws
from castlereg.training.state import Setup
from tests.training.cases import plan, table


def test_an_epoch_is_every_row_once_in_random_order() -> None:
    rows = np.arange(100, 175, dtype=np.int32)
    stream = BatchStream(rows, 32, np.random.SeedSequence(0))
    batches = np.full((3, 4, 32), -1, np.int32)
    stream.fill_rows(batches)
    assert stream.steps == 3
    for epoch in batches:
        drawn = epoch[epoch >= 0]
        np.testing.assert_array_equal(np.sort(drawn), rows)
        assert (epoch[2, 75 - 64 :] == -1).all()
        assert (epoch[3] == -1).all()
    assert not np.array_equal(batches[0], batches[1])


def test_repeated_rows_come_as_often_as_given() -> None:
    stream = BatchStream(np.array([4, 4, 7], np.int32), 2, np.random.SeedSequence(0))
    batches = np.full((1, 2, 2), -1, np.int32)
    stream.fill_rows(batches)
    np.testing.assert_array_equal(np.sort(batches.ravel()), [-1, 4, 4, 7])


def test_independent_draws_as_in_the_released_code() -> None:
    stream = BatchStream(np.arange(100, dtype=np.int32), 32, np.random.SeedSequence(0), "independent")
    assert stream.steps == 3
    batches = np.full((1, 3, 32), -1, np.int32)
    stream.fill_rows(batches)
    assert all(len(set(batch)) == 32 for batch in batches[0])
    assert len(set(batches.ravel())) < 96


def test_sampled_features_are_distinct_and_ascending() -> None:
    stream = BatchStream(np.arange(64, dtype=np.int32), 32, np.random.SeedSequence(0))
    sampled = np.full((50, 4, 3), -1, np.int32)
    stream.fill_features(sampled, n_features=9)
    chosen = sampled[:, :2].reshape(-1, 3)
    assert (np.diff(chosen, axis=1) > 0).all()
    assert (sampled[:, 2:] == -1).all()  # an epoch has two steps
    np.testing.assert_allclose(np.bincount(chosen.ravel(), minlength=9), len(chosen) / 3, rtol=0.5)


def test_what_is_drawn_does_not_depend_on_how_epochs_are_cut() -> None:
    def drawn(*epochs: int) -> tuple[np.ndarray, np.ndarray]:
        stream = BatchStream(np.arange(64, dtype=np.int32), 32, np.random.SeedSequence(0))
        batches, features = [], []
        for n in epochs:
            batches.append(np.zeros((n, 2, 32), np.int32))
            features.append(np.zeros((n, 2, 3), np.int32))
            stream.fill_rows(batches[-1])
            stream.fill_features(features[-1], n_features=9)
        return np.concatenate(batches), np.concatenate(features)

    for one, other in zip(drawn(6), drawn(1, 3, 2), strict=True):
        np.testing.assert_array_equal(one, other)


def test_members_that_have_finished_draw_nothing_and_the_targets_are_always_trained() -> None:
    rows = np.arange(50)
    regularizers = (Castle(features_per_step=2), Dropout(), MixUp())
    members = [Member(rows[:n], rows, np.random.SeedSequence(n), regularizers) for n in (50, 30)]
    draws = _Draws(Setup(table(), members, plan((3, 3), batch_size=20)))
    np.testing.assert_array_equal(draws.steps, [3, 2])
    batches, sampled, numbers = draws.draw(np.array([True, False]), 2, 4)
    assert batches.shape == (2, 4, 16, 20)
    assert sampled is not None
    assert (batches[1] == 127).all()
    assert (batches[0, 2:] == 127).all()
    assert (batches[0, :2, 3:] == 127).all()
    np.testing.assert_array_equal(np.sort(batches[0, 1, :3].ravel())[:50], rows)
    assert sampled.shape == (2, 4, 16, 3)
    assert (sampled[..., -1] == 4).all()
    words, shares = numbers[1:]
    assert words.shape == (2, 4, 16, 2, 2)  # two words for each hidden layer
    assert words[0, :2, :3].all()
    assert not words[1].any()
    assert shares[0, :2, :3].all()
    assert not shares[0, 2:].any()
