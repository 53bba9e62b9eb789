"""Folds x candidates in one run: the same as one by one, in parts, interrupted, and the choice among them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from castlereg.selection import choose, strengths_of, train_folds
from tqdm import tqdm

from castlereg import selection
from castlereg.data.table import Table
from castlereg.layout import Layout, Node
from castlereg.regularizers import L2, Castle, Dropout
from castlereg.training import Schedule, memory, train

QUICK = Schedule(max_epochs=3)


def table(n: int = 60) -> Table:
    rows = np.random.default_rng(0).normal(size=(n, 4)).astype(np.float32)
    return Table(rows, Layout((Node(), Node(), Node(), Node(target=True))))


def folds(n: int = 60, k: int = 3) -> list[Any]:
    fold = np.arange(n) % k
    return [(np.flatnonzero(fold != i), np.flatnonzero(fold == i)) for i in range(k)]


GRID = [[Castle(beta)] for beta in (0.01, 0.1, 1.0)]
OPTIONS: dict[str, Any] = {"hidden_layer_sizes": (4,), "schedule": QUICK}


def test_parts_change_nothing() -> None:
    whole = train_folds(table(), folds(), candidates=GRID, **OPTIONS)
    for most in (1, 2, 4, 100):
        parts = train_folds(table(), folds(), candidates=GRID, most_members=most, **OPTIONS)
        np.testing.assert_array_equal(parts.losses, whole.losses)
        np.testing.assert_array_equal(parts.stack.parameters.input_weights, whole.stack.parameters.input_weights)
        np.testing.assert_array_equal(parts.stack.history["member"], whole.stack.history["member"])


def test_candidates_of_different_kinds_are_trained_side_by_side() -> None:
    mixed = [[], [L2(0.1)], [Dropout(0.2)], [L2(0.01)]]
    grid = train_folds(table(), folds(), candidates=mixed, **OPTIONS)
    assert grid.losses.shape == (4, 3)
    alone = train_folds(table(), folds(), candidates=[[L2(0.01)]], **OPTIONS)
    np.testing.assert_array_equal(grid.losses[3], alone.losses[0])


def test_an_interrupted_grid_keeps_what_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def interrupted(*args: Any, **kwargs: Any) -> Any:
        calls.append(args)
        stack = train(*args, **kwargs)
        object.__setattr__(stack, "interrupted", len(calls) == 2)
        return stack

    monkeypatch.setattr(selection, "train", interrupted)
    with pytest.warns(UserWarning, match="interrupted: 2 of 3 candidates were trained"):
        grid = train_folds(table(), folds(), candidates=GRID, most_members=3, **OPTIONS)
    assert grid.trained == [0, 1]
    assert len(calls) == 2
    calls.clear()
    monkeypatch.setattr(selection, "train", lambda *a, **k: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        train_folds(table(), folds(), candidates=GRID, **OPTIONS)


def test_the_progress_bar_runs_over_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    bars = []

    class Recorded(tqdm):  # type: ignore[misc,type-arg]
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            bars.append(self)

    monkeypatch.setattr(selection, "tqdm", Recorded)
    train_folds(table(), folds(), candidates=GRID, most_members=3, progress=True, **OPTIONS)
    assert [(bar.n, bar.total) for bar in bars] == [(27, 27)]


def test_choice_by_mean_and_by_one_standard_error() -> None:
    scores = np.array([[-1.0, -1.4, -1.2], [-1.05, -1.4, -1.25], [-3.0, -3.0, -3.0], [np.nan, 0.0, 0.0]])
    strengths = [(0.001,), (0.01,), (1.0,), (10.0,)]
    assert choose(scores) == 0
    assert choose(scores, strengths) == 1
    assert choose(scores[:, :1], strengths) == 0  # one fold has no standard error


def test_strengths_are_named() -> None:
    assert strengths_of([Castle(0.1, 0.5), Dropout(0.3)]) == {
        "reg_beta": 0.1,
        "reg_lambda": 0.5,
        "Dropout.rate": 0.3,
    }
    assert strengths_of([]) == {}


def test_memory_is_shared_out(monkeypatch: pytest.MonkeyPatch) -> None:
    data = table()
    one = memory.bytes_of_a_member(data, (4,), [Castle()], QUICK)
    assert memory.members_that_fit(data, (4,), [Castle()], QUICK, memory=10 * one) == 10
    assert memory.members_that_fit(data, (4,), [Castle()], QUICK, memory=0) == 1
    assert memory.free_memory() > 0
    weights = memory.n_weights(data.layout, (4,), 4)
    assert weights == 4 * 4 * 4 + 4 * 4 + 4 * 4 + 4  # inputs, their biases, outputs, their biases
    seen = []
    monkeypatch.setattr(selection, "members_that_fit", lambda *a: seen.append(a) or 4)
    train_folds(data, folds(), candidates=GRID, **OPTIONS)
    assert len(seen) == 1
