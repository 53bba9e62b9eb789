"""Batches drawn on the host."""

from __future__ import annotations

import numpy as np

from castlereg.training.batches import BatchPlan


def test_an_epoch_is_every_row_once_in_random_order() -> None:
    rows = np.arange(100, 175, dtype=np.int32)
    plan = BatchPlan(rows, 32, np.random.SeedSequence(0))
    batches = np.full((3, 4, 32), -1, np.int32)
    plan.fill(batches, None, 5)
    assert plan.steps == 3
    for epoch in batches:
        drawn = epoch[epoch >= 0]
        np.testing.assert_array_equal(np.sort(drawn), rows)
        assert (epoch[2, 75 - 64 :] == -1).all()
        assert (epoch[3] == -1).all()
    assert not np.array_equal(batches[0], batches[1])


def test_repeated_rows_come_as_often_as_given() -> None:
    plan = BatchPlan(np.array([4, 4, 7], np.int32), 2, np.random.SeedSequence(0))
    batches = np.full((1, 2, 2), -1, np.int32)
    plan.fill(batches, None, 1)
    np.testing.assert_array_equal(np.sort(batches.ravel()), [-1, 4, 4, 7])


def test_independent_draws_as_in_the_released_code() -> None:
    plan = BatchPlan(np.arange(100, dtype=np.int32), 32, np.random.SeedSequence(0), "independent")
    assert plan.steps == 3
    batches = np.full((1, 3, 32), -1, np.int32)
    plan.fill(batches, None, 5)
    assert all(len(set(batch)) == 32 for batch in batches[0])
    assert len(set(batches.ravel())) < 96


def test_sampled_features_are_distinct_ascending_and_leave_the_targets() -> None:
    plan = BatchPlan(np.arange(64, dtype=np.int32), 32, np.random.SeedSequence(0))
    sampled = np.zeros((50, 4, 4), np.int32)
    sampled[..., -1] = 9
    plan.fill(np.zeros((50, 4, 32), np.int32), sampled, n_features=9)
    chosen = sampled[:, :2, :3].reshape(-1, 3)
    assert (np.diff(chosen, axis=1) > 0).all()
    assert (sampled[:, :2, -1] == 9).all()
    np.testing.assert_allclose(np.bincount(chosen.ravel(), minlength=9), len(chosen) / 3, rtol=0.5)


def test_what_is_drawn_does_not_depend_on_how_epochs_are_cut() -> None:
    def drawn(*epochs: int) -> tuple[np.ndarray, np.ndarray]:
        plan = BatchPlan(np.arange(64, dtype=np.int32), 32, np.random.SeedSequence(0))
        batches, features = [], []
        for n in epochs:
            sampled = np.zeros((n, 2, 4), np.int32)
            sampled[..., -1] = 9
            batches.append(np.zeros((n, 2, 32), np.int32))
            features.append(sampled)
            plan.fill(batches[-1], features[-1], n_features=9)
        return np.concatenate(batches), np.concatenate(features)

    for one, other in zip(drawn(6), drawn(1, 3, 2), strict=True):
        np.testing.assert_array_equal(one, other)
