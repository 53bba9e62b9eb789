"""Folds x candidates in one run: the same as one by one, in parts, interrupted, and the choice among them."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest
from tqdm import tqdm

from castlereg.acyclicity.cut import find_cycle
from castlereg.layout import Layout, Node
from castlereg.network import squared_adjacency
from castlereg.regularizers import L2, Castle, Dropout
from castlereg.search import grid
from castlereg.search import grid as searched
from castlereg.search.grid import choose, strengths_of, train_folds
from castlereg.table.table import Table
from castlereg.training import Phase, Plan, train

PLAN = Plan((4,), (Phase(3),))


def table(n: int = 60) -> Table:
    rows = np.random.default_rng(0).normal(size=(n, 4)).astype(np.float32)
    return Table(rows, Layout((Node(), Node(), Node(), Node(target=True))))


def folds(n: int = 60, k: int = 3) -> list[Any]:
    fold = np.arange(n) % k
    return [(np.flatnonzero(fold != i), np.flatnonzero(fold == i)) for i in range(k)]


GRID = [[Castle(beta)] for beta in (0.01, 0.1, 1.0)]
OPTIONS: dict[str, Any] = {"plan": PLAN, "seeds": [np.random.SeedSequence(i) for i in range(3)]}


def test_parts_change_nothing() -> None:
    whole = train_folds(table(), folds(), candidates=GRID, **OPTIONS)
    for most in (1, 2, 4, 100):
        parts = train_folds(table(), folds(), candidates=GRID, most_members=most, **OPTIONS)
        np.testing.assert_array_equal(parts.losses, whole.losses)
        for part, of_whole in zip(parts.stacks, whole.stacks, strict=True):
            jax.tree.map(np.testing.assert_array_equal, part.parameters, of_whole.parameters)
            np.testing.assert_array_equal(part.history["member"], of_whole.history["member"])


def test_candidates_of_different_kinds_are_trained_side_by_side() -> None:
    """With all sub-networks or only the target's, in any number of phases."""
    mixed = [[], [L2(0.1)], [Castle(0.1)], [Dropout(0.2)], [Castle(0.1, objective="graph")], [L2(0.01)]]
    grid = train_folds(table(), folds(), candidates=mixed, **OPTIONS)
    assert grid.losses.shape == (6, 3)
    assert [list(candidate) for candidate in grid.candidates] == mixed
    for i, candidate in enumerate(mixed):
        alone = train_folds(table(), folds(), candidates=[candidate], **OPTIONS)
        np.testing.assert_array_equal(grid.losses[i], alone.losses[0])
    assert [stack.parameters.input_weights.shape[2] for stack in grid.stacks] == [1, 1, 4, 1, 4, 1]
    for weights in grid.stacks[4].parameters.input_weights:
        assert find_cycle(np.asarray(squared_adjacency(weights, table().layout)) > 0) is None


def test_some_folds_of_a_grid() -> None:
    grid = train_folds(table(), folds(), candidates=GRID, **OPTIONS)
    some = grid.of(np.array([2, 0]))
    np.testing.assert_array_equal(some.losses, grid.losses[:, [2, 0]])
    network = grid.networks(1, np.array([2]))
    np.testing.assert_array_equal(network.parameters.input_weights[0], some.stacks[1].parameters.input_weights[0])
    np.testing.assert_array_equal(network.validation_loss, grid.losses[1, 2:])
    np.testing.assert_array_equal(grid.trained(1), [0, 1, 2])


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_folds_that_failed_are_known() -> None:
    """A value that only the second fold holds out is too large for float32 once it is standardized."""
    rows = table()
    rows.inputs[folds()[1][1][0], 0] = 1e38
    grid = train_folds(rows, folds(), candidates=[[Castle()]], **OPTIONS)
    np.testing.assert_array_equal(np.isfinite(grid.losses), [[True, False, True]])
    np.testing.assert_array_equal(grid.trained(0), [0, 2])


def test_an_interrupted_grid_keeps_what_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def interrupted(*args: Any, **kwargs: Any) -> Any:
        calls.append(args)
        stack = train(*args, **kwargs)
        object.__setattr__(stack, "interrupted", len(calls) == 2)
        return stack

    monkeypatch.setattr(searched, "train", interrupted)
    with pytest.warns(UserWarning, match="interrupted: 2 of 3 candidates were trained"):
        grid = train_folds(table(), folds(), candidates=GRID, most_members=3, on_interrupt="keep", **OPTIONS)
    assert [list(candidate) for candidate in grid.candidates] == GRID[:2]
    assert len(calls) == 2


@pytest.mark.parametrize("at", [1, 3])
def test_ctrl_c_in_the_first_epoch_of_a_part_keeps_the_parts_before(at: int, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def interrupted(*args: Any, **kwargs: Any) -> Any:
        calls.append(args)
        if len(calls) == at:
            raise KeyboardInterrupt
        return train(*args, **kwargs)

    monkeypatch.setattr(searched, "train", interrupted)
    asked: dict[str, Any] = {"candidates": GRID, "most_members": 3, **OPTIONS}
    if at == 1:
        with pytest.raises(KeyboardInterrupt, match="before any candidate was trained on all folds"):
            train_folds(table(), folds(), **asked, on_interrupt="keep")
        return
    with pytest.warns(UserWarning, match="interrupted: 2 of 3 candidates were trained"):
        grid = train_folds(table(), folds(), **asked, on_interrupt="keep")
    assert grid.losses.shape == (2, 3)
    calls.clear()
    with pytest.raises(KeyboardInterrupt):
        train_folds(table(), folds(), **asked)


def test_the_progress_bar_runs_over_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    bars = []

    class Recorded(tqdm):  # type: ignore[misc,type-arg]
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            bars.append(self)

    monkeypatch.setattr(searched, "tqdm", Recorded)
    train_folds(table(), folds(), candidates=GRID, most_members=3, progress=True, **OPTIONS)
    assert [(bar.n, bar.total) for bar in bars] == [(27, 27)]


def test_choice_by_mean_and_by_one_standard_error() -> None:
    scores = np.array([[-1.0, -1.4, -1.2], [-1.05, -1.4, -1.25], [-3.0, -3.0, -3.0], [np.nan, 0.0, 0.0]])
    strengths = [(0.001,), (0.01,), (1.0,), (10.0,)]
    assert choose(scores) == 0
    assert choose(scores, strengths) == 1
    assert choose(scores[:, :1], strengths) == 0  # one fold has no standard error


@pytest.mark.parametrize("strengths", [None, [(0.01,), (0.1,), (1.0,)]])
def test_when_every_candidate_has_a_failed_fold_the_one_with_fewest_is_chosen(strengths: Any) -> None:
    failed = -np.inf
    assert choose(np.array([[failed, failed, -1.0], [failed, -2.0, -3.0], [-2.5, -2.6, failed]]), strengths) == 1
    assert choose(np.array([[failed, -5.0], [np.nan, -4.0], [failed, failed]]), strengths) == 1


def test_strengths_are_named() -> None:
    assert strengths_of([Castle(0.1, 0.5), Dropout(0.3)]) == {
        "reg_beta": 0.1,
        "reg_lambda": 0.5,
        "Dropout.rate": 0.3,
    }
    assert strengths_of([]) == {}


def test_parts_are_as_large_as_memory_allows_for_each_kind_of_candidate(monkeypatch: pytest.MonkeyPatch) -> None:
    """CASTLE's networks are larger than plain ones, and neither decides for the other."""
    layout = Layout((*(Node() for _ in range(30)), Node(target=True)))
    data = Table(np.random.default_rng(0).normal(size=(60, 31)).astype(np.float32), layout)
    castle, plain = (grid.bytes_of_a_member(data, (4,), chosen) for chosen in ([Castle()], []))
    assert castle > 3 * plain
    monkeypatch.setattr(grid, "free_memory", lambda: 4 * castle)  # half of which may be used
    sizes = []

    def counted(rows: Any, members: Any, *args: Any, **kwargs: Any) -> Any:
        sizes.append((len(members[0].regularizers), len(members)))
        return train(rows, members, *args, **kwargs)

    monkeypatch.setattr(searched, "train", counted)
    for candidates in ([[], [Castle(0.1)], [Castle(1.0)]], [[Castle(0.1)], [], [Castle(1.0)]]):
        sizes.clear()
        train_folds(data, folds(), candidates=candidates, **OPTIONS)
        assert sorted(sizes) == [(0, 3), (1, 2), (1, 2), (1, 2)]


def test_memory_is_shared_out() -> None:
    data = table()
    size = grid.bytes_of_a_member(data, (4,), [Castle()])
    assert grid.members_that_fit(data, (4,), [Castle()], memory=10 * size) == 10
    assert grid.members_that_fit(data, (4,), [Castle()], memory=0) == 1
    assert grid.members_that_fit(data, (4,), [L2()], memory=10 * size) > 10
    assert grid.free_memory() > 0
    weights = grid.n_weights(data.layout, (4,), 4)
    assert weights == 4 * 4 * 4 + 4 * 4 + 4 * 4 + 4  # inputs, their biases, outputs, their biases
