"""A stack against its members trained one by one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import jax
import numpy as np
import pytest

from castlereg.network import Form
from castlereg.regularizers import L2, Castle
from castlereg.table.table import Table
from castlereg.training import Member, program, sources, train
from castlereg.training.engines import jax_engine
from castlereg.training.engines.jax_engine import JaxEngine
from castlereg.training.sources import TableSource
from tests.training.cases import assert_same, members, plain, plan, stack_of, table


def ignored(share: float) -> None:
    """Progress that nobody watches."""


@pytest.mark.parametrize("kind", ["numeric", "binary", "categorical"])
@pytest.mark.parametrize(("sizes", "features_per_step"), [((), None), ((5, 5), None), ((5, 5), 2)])
def test_a_stack_equals_its_members_one_by_one(
    kind: str, sizes: tuple[int, ...], features_per_step: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, of_stack = table(kind=kind), members(5, features_per_step=features_per_step)
    together = train(data, of_stack, plan(sizes))
    monkeypatch.setattr(sources, "_MOST_EPOCHS_PER_CALL", 4)  # a member of a large stack may train in shorter calls
    for i, member in enumerate(of_stack):
        alone = train(data, [member], plan(sizes))
        assert_same(together.take(np.array([i])), alone, rtol=1e-5)
        assert together.best_epoch[i] == alone.best_epoch[0]


def test_members_side_by_side_equal_members_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """What an accelerator does: all members of a device in one batch, finished ones held still."""
    data = table()
    in_turn = train(data, members(5), plan((5, 5)))
    monkeypatch.setattr(jax_engine, "lanes", lambda mesh, members_per_device: members_per_device)
    side_by_side = train(data, members(5), plan((5, 5)))
    assert_same(in_turn, side_by_side, rtol=1e-4)
    np.testing.assert_array_equal(in_turn.best_epoch, side_by_side.best_epoch)


def test_the_same_seed_gives_the_same_bits_and_another_seed_others() -> None:
    data = table()
    runs = [train(data, members(3), plan((5, 5))) for _ in range(2)]
    assert_same(*runs)
    other = [replace(member, seed=np.random.SeedSequence(99 + i)) for i, member in enumerate(members(3))]
    different = train(data, other, plan((5, 5)))
    assert not np.array_equal(different.parameters.input_weights, runs[0].parameters.input_weights)


def test_sampling_every_feature_equals_training_all() -> None:
    runs = [train(table(), members(2, features_per_step=chosen), plan((5, 5))) for chosen in (None, 4)]
    assert_same(*runs, rtol=2e-5)


def test_more_sampled_features_than_there_are_is_an_error() -> None:
    with pytest.raises(ValueError, match="features_per_step=5, but X has 4 features; pass at most 4, or None for all"):
        train(table(), members(1, features_per_step=5), plan((5, 5)))


def test_sampling_computes_only_the_sampled_sub_networks() -> None:
    """The compiled step has the products of the sampled sub-networks, not of all."""
    data, flops = table(d=40), {}
    for chosen in (None, 3):
        stack = stack_of(data, members(1, features_per_step=chosen), plan((32, 32)))
        runner, engine = TableSource(data).runner(stack), stack.engine
        assert isinstance(engine, JaxEngine)
        drawn = runner.draws.draw(stack.active, 1, runner.room)
        inputs = engine.place(stack.inputs(drawn, runner.draws.steps, runner.epochs_per_call))
        arguments = engine.states, inputs, runner.shared
        layout = stack.setup.layout
        call = program.compiled(layout, Form((32, 32)), engine.mesh, 1, False, program.signature(*arguments))
        flops[chosen] = call.lower(*arguments).compile().cost_analysis()["flops"]
    assert flops[3] < 0.35 * flops[None]


@pytest.mark.parametrize("acyclicity", ["expm", None])
def test_a_step_leaves_sub_networks_that_were_not_sampled_as_they_are(acyclicity: str | None) -> None:
    rows = np.arange(32)  # one batch, one step an epoch
    castle = Castle(0.1, features_per_step=2, acyclicity=acyclicity)
    member = Member(rows, np.arange(32, 64), np.random.SeedSequence(3), (castle,))
    stack = stack_of(table(), [member], plan((5, 5), epochs=1, patience=1))
    before = stack.engine.read(stack.engine.states.moving.weights.network.input_weights)[0]
    runner = TableSource(table()).runner(stack)
    runner.drawn = runner.draws.draw(stack.active, 1, runner.room)
    sampled = runner.drawn[1][0, 0, 0]
    stack.record(stack.engine.read(runner.run(1, 0, ignored)))
    after = stack.engine.read(stack.engine.states.moving.weights.network.input_weights)[0]
    changed = (before != after).any(axis=(0, 2))
    np.testing.assert_array_equal(np.flatnonzero(changed), sampled)
    counts = stack.engine.read(stack.engine.states.moving.moments.own.count)[0]
    np.testing.assert_array_equal(counts, changed)


def test_finished_members_run_no_more_epochs() -> None:
    data = table(n_rows=60)
    stack = stack_of(data, plain(4, 60), plan((8,), epochs=200, patience=3, learning_rate=0.03))
    runner = TableSource(data).runner(stack)
    while stack.active.any():
        still = stack.active.copy()
        log = runner.run(runner.epochs_per_call, runner.epochs_per_call, ignored)
        stack.record(stack.engine.read(log))
        ran = ~np.isnan(stack.logs[-1][1][..., -1])
        assert not ran[~still].any()


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_rebalancing_moves_members_without_changing_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every other member fails at once, which would leave one of two devices idle."""
    data = table(n_rows=60)
    monkeypatch.setattr(sources, "_MOST_EPOCHS_PER_CALL", 2)
    some_fail = [
        replace(m, regularizers=(Castle(1e38, 1e38) if i % 2 == 0 else Castle(),)) for i, m in enumerate(members(6, 60))
    ]
    moved = []
    rebalance = JaxEngine.rebalance

    def watched(self: Any) -> None:
        before = self._slot.copy()
        rebalance(self)
        moved.append(not np.array_equal(before, self._slot))

    monkeypatch.setattr(JaxEngine, "rebalance", watched)
    balanced = train(data, some_fail, plan((8,)))
    monkeypatch.setattr(JaxEngine, "rebalance", lambda self: None)
    left_alone = train(data, some_fail, plan((8,)))
    odd = np.array([1, 3, 5])
    assert_same(balanced.take(odd), left_alone.take(odd))
    if len(jax.devices()) == 2:
        assert any(moved)


def test_each_member_is_standardized_by_its_own_training_rows() -> None:
    data = table()
    shifted = Table(data.inputs * np.array([5, 1, 1, 1, 2], np.float32) + 3, data.layout)
    result = train(shifted, members(3), plan(()))
    for i, member in enumerate(members(3)):
        rows = shifted.inputs[member.train_rows].astype(np.float64)
        np.testing.assert_allclose(result.standardization.shift[i], rows.mean(axis=0), rtol=1e-5)
        np.testing.assert_allclose(result.standardization.scale[i], 1 / rows.std(axis=0), rtol=1e-5)


def test_categorical_channels_share_one_scale() -> None:
    data = table(kind="categorical")
    result = train(data, members(1), plan(()))
    rows = data.inputs[members(1)[0].train_rows][:, 4:].astype(np.float64)
    np.testing.assert_allclose(result.standardization.scale[0, 4:], 1 / np.sqrt(rows.var(axis=0).sum()), rtol=1e-5)


def test_members_of_a_stack_have_the_same_regularizers() -> None:
    first, second = members(2)
    with pytest.raises(ValueError, match=r"member 0 has regularizers \(Castle\(.*\) and member 1 has \(L2\("):
        train(table(), [first, replace(second, regularizers=(L2(),))], plan((5,)))


@pytest.mark.parametrize(("engine", "x64"), [("jax", False), ("jax", True), ("native", False)])
def test_training_is_in_the_precision_of_the_table_if_the_engine_has_it(engine: Any, x64: bool) -> None:
    if engine == "native":
        pytest.importorskip("castlereg_kernels")
    data = table()
    wide = Table(data.inputs.astype(np.float64), data.layout, np.ones(120))
    with jax.enable_x64(x64):
        result = train(wide, members(2, features_per_step=2), plan((5,), engine=engine))
    expected = np.float64 if x64 or engine == "native" else np.float32
    assert {a.dtype for a in jax.tree.leaves(result.parameters)} == {np.dtype(expected)}
    assert_same(result, train(data, members(2, features_per_step=2), plan((5,))), rtol=1e-4)
