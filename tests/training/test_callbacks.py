"""Callbacks of a stack: when they are called, what they see, and how they stop members."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from castlereg.training import Control, Phase, Plan, train
from castlereg.training.callbacks import Callback, Epoch, TimeLimit, check_callbacks, watched
from tests.training.cases import assert_same, members, plain, plan, table


class Notes:
    """Notes every epoch it is called with, and answers by a function of it."""

    def __init__(self, every: Any = 1, answer: Any = lambda epoch: None) -> None:
        self.every, self.answer = every, answer
        self.epochs: list[Epoch] = []

    def __call__(self, epoch: Epoch) -> Any:
        self.epochs.append(epoch)
        return self.answer(epoch)

    @property
    def numbers(self) -> list[int]:
        return [epoch.number for epoch in self.epochs]


@pytest.mark.parametrize(
    ("every", "numbers"),
    [
        (1, list(range(1, 22))),
        (10, [10, 20, 21]),
        ([3, 4, 19, 40], [3, 4, 19, 21]),
        (None, [3, 4, 19, 21]),  # where the calls end for the one above, and nowhere else
    ],
)
def test_callbacks_are_called_when_they_ask_to_be_and_after_the_last_epoch(every: Any, numbers: list[int]) -> None:
    notes, beside = Notes(every), Notes([3, 4, 19])
    others: list[Callback] = [beside] if every is None else []
    train(table(), plain(2), plan((4,), epochs=21, patience=100), Control([notes, *others]))
    assert notes.numbers == numbers


def test_without_a_wish_a_callback_is_called_whenever_the_program_returns() -> None:
    notes = Notes(None)
    train(table(), plain(1), plan((4,), epochs=40, patience=100), Control([notes]))
    assert notes.numbers == [16, 32, 40]


def test_callbacks_that_do_not_stop_change_nothing() -> None:
    by = plan((8, 8), epochs=40, patience=4, learning_rate=0.02)
    undisturbed, watched_ = (
        train(table(), members(3, features_per_step=2), by, Control(callbacks))
        for callbacks in ([], [Notes(1), Notes(7), Notes(None)])
    )
    assert_same(undisturbed, watched_)


def test_an_epoch_has_the_columns_of_the_history() -> None:
    notes = Notes(3)
    by = plan((8,), epochs=60, patience=3, learning_rate=0.05)
    result = train(table(n_rows=60), plain(4, 60), by, Control([notes]))
    history = result.history.set_index(["epoch", "member"])
    lengths = result.history.groupby("member").size()
    assert lengths.nunique() > 1 and notes.numbers[-1] == lengths.max()
    for epoch in notes.epochs:
        assert (epoch.stage, epoch.max_epochs) == ("training", 60)
        assert epoch.members == ("network 0", "network 1", "network 2", "network 3")
        assert list(epoch.metrics) == [name for name in result.history.columns if name not in ("member", "epoch")]
        running = np.flatnonzero(lengths >= epoch.number)
        for name, values in epoch.metrics.items():
            np.testing.assert_array_equal(values[running], history.loc[epoch.number, name])
            assert np.isnan(np.delete(values, running)).all()
        so_far = result.history.query("epoch <= @epoch.number").groupby("member")["validation_loss"].min()
        np.testing.assert_array_equal(epoch.best_loss, so_far)
        np.testing.assert_array_equal(epoch.active, lengths > epoch.number)


def test_an_epoch_cannot_be_changed() -> None:
    notes = Notes()
    train(table(), plain(1), plan((4,), epochs=1), Control([notes]))
    (epoch,) = notes.epochs
    for array in (epoch.best_loss, epoch.active, epoch.metrics["objective"]):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0
    with pytest.raises(TypeError):
        epoch.metrics["objective"] = epoch.best_loss  # type: ignore[index]


# --- stopping ------------------------------------------------------------------------------------


def test_members_that_are_stopped_keep_their_best_weights() -> None:
    by = plan((8,), epochs=40, patience=100, learning_rate=0.01)
    stops = Notes(5, lambda epoch: np.arange(3) == 1 if epoch.number == 10 else None)
    stopped, whole = (train(table(), plain(3), by, Control(callbacks)) for callbacks in ([stops], []))
    assert list(stopped.history.groupby("member").size()) == [40, 10, 40]
    assert_same(stopped.take(np.array([0, 2])), whole.take(np.array([0, 2])))
    losses = stopped.history.query("member == 1")["validation_loss"]
    assert stopped.validation_loss[1] == losses.min() and stopped.best_epoch[1] <= 10
    assert stops.epochs[1].active.all() and list(stops.epochs[2].active) == [True, False, True]


def test_true_stops_all_and_every_callback_hears_the_last_epoch() -> None:
    logs = Notes(4)
    stops = Notes(3, lambda epoch: epoch.number == 6)
    result = train(table(), plain(2), plan((4,), epochs=40), Control([logs, stops]))
    assert (result.history.groupby("member").size() == 6).all() and not result.interrupted
    assert logs.numbers == [4, 6] and stops.numbers == [3, 6]
    assert not logs.epochs[-1].active.any()


def test_a_member_does_not_stop_before_it_has_an_epoch_that_counts() -> None:
    phases = Phase(6, counts=False), Phase(4)
    result = train(table(), plain(2), Plan((4,), phases, engine="jax"), Control([Notes(1, lambda epoch: True)]))
    assert (result.best_epoch == 7).all() and (result.history.groupby("member").size() == 7).all()


def test_a_time_limit_ends_training_when_the_program_returns() -> None:
    limit = TimeLimit(1e-9)
    result = train(table(), plain(2), plan((8,), epochs=60, patience=100), Control([limit]))
    assert (result.history.groupby("member").size() == 16).all()
    assert np.isfinite(result.validation_loss).all() and not result.interrupted
    endless = TimeLimit(1e9)
    assert not endless.is_over
    assert len(train(table(), plain(1), plan((8,), epochs=20, patience=100), Control([endless])).history) == 20
    with pytest.raises(ValueError, match="seconds=0 must be greater than 0"):
        TimeLimit(0)


# --- what is wrong with them ---------------------------------------------------------------------


@pytest.mark.parametrize("answer", [0.5, np.array([True]), np.zeros((2, 2), bool), "stop", np.array([0, 1])])
def test_other_answers_raise(answer: Any) -> None:
    with pytest.raises(ValueError, match=r"(?s)Notes returned .*; return None, True, False, or a boolean array"):
        train(table(), plain(2), plan((4,), epochs=2), Control([Notes(1, lambda epoch: answer)]))


def test_errors_of_callbacks_are_passed_on() -> None:
    def broken(epoch: Epoch) -> None:
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        train(table(), plain(1), plan((4,), epochs=2), Control([broken]))


@pytest.mark.parametrize(
    ("callbacks", "message"),
    [
        (TimeLimit(1), r"callbacks=TimeLimit\(seconds=1\) must be a sequence"),
        ([TimeLimit], r"callbacks contains the class TimeLimit; pass an instance, TimeLimit\(\)"),
        ([3], "callbacks contains 3, which is not callable; pass functions"),
        ([Notes(0)], "every of Notes=0 must be a whole number of at least 1"),
        ([Notes([2, 1.5])], "every of Notes=1.5 must be a whole number of at least 1"),
    ],
)
def test_what_is_not_a_callback_raises(callbacks: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check_callbacks(callbacks)


def test_begin_and_end_enclose_a_fit_also_when_it_fails() -> None:
    heard: list[Any] = []

    def listener(name: str) -> Any:
        def call(epoch: Epoch) -> None: ...

        call.begin = lambda estimator: heard.append((name, "begin", estimator))  # type: ignore[attr-defined]
        call.end = lambda estimator, error: heard.append((name, "end", error))  # type: ignore[attr-defined]
        return call

    estimator, error = SimpleNamespace(), OSError("disk full")
    callbacks = [listener("a"), lambda epoch: None, listener("b")]
    with watched(callbacks, estimator):
        heard.append("fit")
    assert heard == [
        ("a", "begin", estimator),
        ("b", "begin", estimator),
        "fit",
        ("b", "end", None),
        ("a", "end", None),
    ]
    heard.clear()
    with pytest.raises(OSError, match="disk full"), watched(callbacks, estimator):
        raise error
    assert heard[2:] == [("b", "end", error), ("a", "end", error)]
