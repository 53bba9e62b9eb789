"""A stack against its members trained one by one, and what happens when training goes wrong."""

from __future__ import annotations

import functools
import gc
import signal
import subprocess
import sys
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from castlereg.acyclicity.cut import find_cycle
from castlereg.data.table import Table
from castlereg.layout import EdgeRules, Layout, Node
from castlereg.network import initialize, squared_adjacency
from castlereg.regularizers import L2, Castle, Dropout
from castlereg.training import Member, Schedule, TrainedStack, program, stack, train

QUICK = Schedule(max_epochs=12, patience=5)


def table(n_rows: int = 120, d: int = 4, kind: str = "numeric", seed: int = 0) -> Table:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n_rows, d))
    y = x[:, 0] - np.tanh(x[:, 1]) + 0.3 * rng.normal(size=n_rows)
    if kind == "numeric":
        target, channels = Node(target=True), y[:, None]
    elif kind == "binary":
        target, channels = Node("binary", target=True), (y > 0)[:, None]
    else:
        target, channels = Node("categorical", 3, target=True), np.eye(3)[np.digitize(y, [-0.5, 0.5])]
    layout = Layout((*(Node() for _ in range(d)), target))
    return Table(np.hstack([x, channels]).astype(np.float32), layout)


def members(n: int, n_rows: int = 120, **castle: Any) -> list[Member]:
    """Folds of unequal size with different seeds and strengths."""
    out = []
    for i in range(n):
        fold = np.arange(n_rows) % 10 == i % 10
        rows = np.flatnonzero(~fold)[: n_rows - 8 * i]
        out.append(Member(rows, np.flatnonzero(fold), np.random.SeedSequence(i), (Castle(10.0 ** (-i % 4), **castle),)))
    return out


def plain(n: int, n_rows: int) -> list[Member]:
    return [replace(member, regularizers=()) for member in members(n, n_rows)]


def assert_same(one: TrainedStack, other: TrainedStack, rtol: float = 0.0) -> None:
    def check(a: Any, b: Any) -> None:
        np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol)

    jax.tree.map(check, one.parameters, other.parameters)
    np.testing.assert_allclose(one.validation_loss, other.validation_loss, rtol=rtol)


@pytest.mark.parametrize("kind", ["numeric", "binary", "categorical"])
@pytest.mark.parametrize(("sizes", "reconstruct"), [((), "all"), ((5, 5), "all"), ((5, 5), 2)])
def test_a_stack_equals_its_members_one_by_one(
    kind: str, sizes: tuple[int, ...], reconstruct: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, stack_members = table(kind=kind), members(5, reconstruct=reconstruct)
    options: dict[str, Any] = {"hidden_layer_sizes": sizes, "schedule": QUICK}
    together = train(data, stack_members, **options)
    monkeypatch.setattr(stack, "_MOST_EPOCHS_PER_CALL", 4)  # a member of a large stack may train in shorter calls
    for i, member in enumerate(stack_members):
        alone = train(data, [member], **options)
        assert_same(together.take(np.array([i])), alone, rtol=1e-5)
        assert together.best_epoch[i] == alone.best_epoch[0]


def test_members_side_by_side_equal_members_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """What an accelerator does: all members of a device in one batch, finished ones held still."""
    data = table()
    in_turn = train(data, members(5), hidden_layer_sizes=(5, 5), schedule=QUICK)
    monkeypatch.setattr(stack, "lanes", lambda mesh, members_per_device: members_per_device)
    side_by_side = train(data, members(5), hidden_layer_sizes=(5, 5), schedule=QUICK)
    assert_same(in_turn, side_by_side, rtol=1e-4)
    np.testing.assert_array_equal(in_turn.best_epoch, side_by_side.best_epoch)


def test_the_same_seed_gives_the_same_bits_and_another_seed_others() -> None:
    data = table()
    runs = [train(data, members(3), hidden_layer_sizes=(5, 5), schedule=QUICK) for _ in range(2)]
    assert_same(*runs)
    other = [
        Member(m.train_rows, m.validation_rows, np.random.SeedSequence(99 + i), m.regularizers)
        for i, m in enumerate(members(3))
    ]
    different = train(data, other, hidden_layer_sizes=(5, 5), schedule=QUICK)
    assert not np.array_equal(different.parameters.input_weights, runs[0].parameters.input_weights)


def test_sampling_every_feature_equals_training_all() -> None:
    data = table()
    runs = [
        train(
            data,
            members(2, reconstruct=reconstruct),
            hidden_layer_sizes=(5, 5),
            schedule=QUICK,
        )
        for reconstruct in ("all", 4)
    ]
    assert_same(*runs, rtol=2e-5)


def test_sampling_computes_only_the_sampled_sub_networks() -> None:
    """The compiled step has the products of the sampled sub-networks, not of all."""
    data = table(d=40)
    flops = {}
    for reconstruct in ("all", 3):
        one = stack._Stack(data, members(1, reconstruct=reconstruct), (32, 32), QUICK, "small", False)
        cost = one.program.lower(one.states, one._inputs(), one.shared).compile().cost_analysis()
        flops[reconstruct] = cost["flops"]
    assert flops[3] < 0.35 * flops["all"]


@pytest.mark.parametrize("acyclicity", ["expm", None])
def test_a_step_leaves_sub_networks_that_were_not_sampled_as_they_are(acyclicity: str | None) -> None:
    data = table()
    rows = np.arange(32)  # one batch, one step an epoch
    member = Member(
        rows, np.arange(32, 64), np.random.SeedSequence(3), (Castle(0.1, reconstruct=2, acyclicity=acyclicity),)
    )
    schedule = Schedule(max_epochs=1, patience=1)
    one = stack._Stack(data, [member], (5, 5), schedule, "small", False)
    before = np.asarray(one.states.weights.network.input_weights)[0].copy()
    sampled = one.next_batches[1][0, 0, 0]
    one.advance()
    after = np.asarray(one.states.weights.network.input_weights)[0]
    changed = (before != after).any(axis=(0, 2))
    np.testing.assert_array_equal(np.flatnonzero(changed), sampled)
    counts = np.asarray(one.states.moments.own.count)[0]
    np.testing.assert_array_equal(counts, changed)


def test_best_epoch_and_patience() -> None:
    data = table(n_rows=60)
    schedule = Schedule(max_epochs=300, patience=7, learning_rate=0.02)
    result = train(data, plain(3, 60), hidden_layer_sizes=(16, 16), schedule=schedule)
    for i, epochs in result.history.groupby("member"):
        losses = epochs["validation_loss"].to_numpy()
        best = losses.argmin()
        assert result.best_epoch[i] == best + 1
        assert result.validation_loss[i] == losses[best]
        assert len(losses) == min(best + 1 + 7, 300)
    assert result.history.groupby("member").size().nunique() > 1, "members should stop at different epochs here"


def test_warmup_delays_the_best_epoch_and_patience() -> None:
    data = table(n_rows=60)
    schedule = Schedule(max_epochs=60, patience=5, learning_rate=0.05, warmup=20)
    result = train(data, plain(2, 60), hidden_layer_sizes=(16,), schedule=schedule)
    assert (result.best_epoch > 20).all()


def test_kept_weights_are_those_of_the_best_epoch() -> None:
    """Training again for just as many epochs as the best one took ends with the kept weights."""
    data = table(n_rows=60)
    schedule = Schedule(max_epochs=100, patience=5, learning_rate=0.02)
    result = train(data, plain(1, 60), hidden_layer_sizes=(16,), schedule=schedule)
    assert result.best_epoch[0] < len(result.history)
    short = Schedule(max_epochs=int(result.best_epoch[0]), patience=100, learning_rate=0.02)
    again = train(data, plain(1, 60), hidden_layer_sizes=(16,), schedule=short)
    assert_same(result, again)


def test_each_member_is_standardized_by_its_own_training_rows() -> None:
    data = table()
    shifted = Table(data.inputs * np.array([5, 1, 1, 1, 2], np.float32) + 3, data.layout)
    result = train(shifted, members(3), hidden_layer_sizes=(), schedule=QUICK)
    for i, member in enumerate(members(3)):
        rows = shifted.inputs[member.train_rows].astype(np.float64)
        np.testing.assert_allclose(result.standardization.shift[i], rows.mean(axis=0), rtol=1e-5)
        np.testing.assert_allclose(result.standardization.scale[i], 1 / rows.std(axis=0), rtol=1e-5)


def test_categorical_channels_share_one_scale() -> None:
    data = table(kind="categorical")
    result = train(data, members(1), hidden_layer_sizes=(), schedule=QUICK)
    rows = data.inputs[members(1)[0].train_rows][:, 4:].astype(np.float64)
    np.testing.assert_allclose(result.standardization.scale[0, 4:], 1 / np.sqrt(rows.var(axis=0).sum()), rtol=1e-5)


def test_tables_of_different_length_share_a_program() -> None:
    before = program.compiled.cache_info().misses
    for n_rows in (70, 90, 101):
        data = table(n_rows)
        rows = np.arange(n_rows)
        member = Member(rows[:-9], rows[-9:], np.random.SeedSequence(0), (Castle(),))
        train(data, [member], hidden_layer_sizes=(3, 3), schedule=QUICK)
    assert program.compiled.cache_info().misses - before == 1


def test_old_programs_make_room_for_new_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process may compile any number of programs: Linux limits the memory maps that those alive take."""
    bounded = functools.lru_cache(maxsize=2)(program.compiled.__wrapped__)
    monkeypatch.setattr(program, "compiled", bounded)

    def memory_maps() -> int:
        return len(Path("/proc/self/maps").read_text().splitlines())

    counts = []
    for width in range(3, 9):
        train(table(), plain(1, 120), hidden_layer_sizes=(width,), schedule=Schedule(max_epochs=1))
        gc.collect()
        counts.append(memory_maps() if sys.platform == "linux" else 0)
    assert bounded.cache_info().currsize == 2
    assert counts[-1] - counts[1] < 300  # four more programs would take over a thousand


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_rebalancing_moves_members_without_changing_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every other member fails at once, which would leave one of two devices idle."""
    data = table(n_rows=60)
    monkeypatch.setattr(stack, "_MOST_EPOCHS_PER_CALL", 2)
    some_fail = [
        replace(m, regularizers=(Castle(1e38, 1e38) if i % 2 == 0 else Castle(),)) for i, m in enumerate(members(6, 60))
    ]
    moved = []
    rebalance = stack._Stack._rebalance

    def watched(self: Any) -> None:
        before = self.slot.copy()
        rebalance(self)
        moved.append(not np.array_equal(before, self.slot))

    monkeypatch.setattr(stack._Stack, "_rebalance", watched)
    balanced = train(data, some_fail, hidden_layer_sizes=(8,), schedule=QUICK)
    monkeypatch.setattr(stack._Stack, "_rebalance", lambda self: None)
    left_alone = train(data, some_fail, hidden_layer_sizes=(8,), schedule=QUICK)
    odd = np.array([1, 3, 5])
    assert_same(balanced.take(odd), left_alone.take(odd))
    if len(jax.devices()) == 2:
        assert any(moved)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_member_that_diverges_goes_back_and_on_at_a_lower_rate() -> None:
    data = table()
    schedule = Schedule(max_epochs=30, learning_rate=1e20)
    with pytest.warns(
        ConvergenceWarning, match=r"network 0: the loss was not finite in epoch 1; went on from epoch 0 "
    ):
        result = train(data, members(1), hidden_layer_sizes=(), schedule=schedule)
    rates = result.history["learning_rate"].to_numpy()
    assert rates[0] > rates[-1]
    assert np.isfinite(result.validation_loss).all()
    assert all(np.isfinite(a).all() for a in jax.tree.leaves(result.parameters))


def test_other_members_do_not_notice_one_that_diverges() -> None:
    data = table()
    bad = Member(
        members(1)[0].train_rows, members(1)[0].validation_rows, np.random.SeedSequence(5), (Castle(1e38, 1e38),)
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        mixed = train(data, [*members(2), bad], hidden_layer_sizes=(5,), schedule=QUICK)
    assert np.isinf(mixed.validation_loss[2])
    clean = train(data, members(2), hidden_layer_sizes=(5,), schedule=QUICK)
    assert_same(mixed.take(np.array([0, 1])), clean, rtol=1e-5)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_network_without_one_finite_epoch_is_an_error() -> None:
    data = table()
    with pytest.raises(FloatingPointError, match="lower learning_rate"):
        train(
            data,
            members(1),
            hidden_layer_sizes=(),
            schedule=Schedule(max_epochs=30, learning_rate=3e38),
        )


def test_ctrl_c_leaves_the_best_model_so_far(monkeypatch: pytest.MonkeyPatch) -> None:
    data = table()
    advance = stack._Stack.advance
    calls = []

    def interrupted(self: Any) -> None:
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        advance(self)

    monkeypatch.setattr(stack._Stack, "advance", interrupted)
    schedule = Schedule(max_epochs=400, patience=400)
    with pytest.warns(ConvergenceWarning, match="interrupted after 32 of at most 400 epochs"):
        result = train(data, members(2), hidden_layer_sizes=(5,), schedule=schedule)
    assert result.interrupted
    assert np.isfinite(result.validation_loss).all()
    assert len(result.history) == 64


def test_a_real_interrupt_signal_leaves_a_model() -> None:
    script = """
from tests.training.test_stack import *
signal.signal(signal.SIGINT, signal.default_int_handler)  # a parent in the background may have it ignored
data = table()
schedule = Schedule(max_epochs=10**6, patience=10**6)
result = train(data, members(2), hidden_layer_sizes=(5,), schedule=schedule, progress=True)
print("interrupted", result.interrupted, np.isfinite(result.validation_loss).all())
"""
    process = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    seen = ""
    while "validation_loss" not in seen:
        seen += process.stderr.read(1)
        assert process.poll() is None, seen
    process.send_signal(signal.SIGINT)
    try:
        out, err = process.communicate(timeout=120)
    finally:
        process.kill()
    assert out.split() == ["interrupted", "True", "True"], err


def test_ctrl_c_before_the_first_epoch_is_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(self: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(stack._Stack, "advance", interrupted)
    data = table()
    with pytest.raises(KeyboardInterrupt):
        train(data, members(1), hidden_layer_sizes=(5,), schedule=QUICK)


def test_finished_members_run_no_more_epochs() -> None:
    data = table(n_rows=60)
    schedule = Schedule(max_epochs=200, patience=3, learning_rate=0.03)
    one = stack._Stack(data, plain(4, 60), (8,), schedule, "small", False)
    while one.active.any():
        still = one.active.copy()
        one.advance()
        ran = ~np.isnan(one.logs[-1][1][..., -1])
        assert not ran[~still].any()


def test_progress_bar(capsys: pytest.CaptureFixture[str]) -> None:
    data = table()
    train(data, members(1), hidden_layer_sizes=(), schedule=QUICK, progress=True)
    assert "training" in capsys.readouterr().err
    train(data, members(1), hidden_layer_sizes=(), schedule=QUICK)
    assert capsys.readouterr().err == ""


def test_weighted_rows_weigh_as_much_as_copies_in_a_full_batch() -> None:
    """One batch holds everything here, so weights and copies take the very same steps."""
    data = table(n_rows=20)
    rows = np.arange(20)
    weight = np.tile([1.0, 2.0], 10).astype(np.float32)
    schedule = Schedule(max_epochs=20, batch_size=64)
    seed = np.random.SeedSequence(0)
    weighted = train(
        Table(data.inputs, data.layout, weight),
        [Member(rows, rows, seed, (Castle(),))],
        hidden_layer_sizes=(5,),
        schedule=schedule,
    )
    copies = np.repeat(rows, weight.astype(int))
    repeated = train(data, [Member(copies, copies, seed, (Castle(),))], hidden_layer_sizes=(5,), schedule=schedule)
    assert_same(weighted, repeated, rtol=1e-4)


def test_training_starts_from_the_stated_weights() -> None:
    data = table()
    frozen = Schedule(max_epochs=1, learning_rate=1e-30)
    result = train(data, members(1), hidden_layer_sizes=(5, 5), schedule=frozen)
    start = initialize(data.layout, (5, 5), members(1)[0].seed)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a[0], b, atol=1e-28), result.parameters, start)


def test_members_of_a_stack_have_the_same_regularizers() -> None:
    first, second = members(2)
    with pytest.raises(ValueError, match=r"member 0 has regularizers \(Castle\(.*\) and member 1 has \(L2\("):
        train(table(), [first, replace(second, regularizers=(L2(),))], hidden_layer_sizes=(5,), schedule=QUICK)


def test_what_a_regularizer_draws_does_not_depend_on_the_others() -> None:
    """Dropout with and without an L2 of strength zero beside it takes the same steps."""
    data = table()
    alone, beside = (
        train(data, [replace(members(1)[0], regularizers=chosen)], hidden_layer_sizes=(5, 5), schedule=QUICK)
        for chosen in ((Dropout(0.3),), (L2(0.0), Dropout(0.3)))
    )
    assert_same(alone, beside, rtol=1e-6)


# --- exact acyclicity ----------------------------------------------------------------------------


def test_exact_ends_without_cycles_and_batched_equals_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    data, stack_members = table(), members(3, acyclicity_schedule="exact")
    options: dict[str, Any] = {"hidden_layer_sizes": (5, 5), "schedule": Schedule(max_epochs=20, patience=5)}
    together = train(data, stack_members, **options)
    monkeypatch.setattr(stack, "_MOST_EPOCHS_PER_CALL", 8)  # the cut at epoch 12 ends a call early
    for i, member in enumerate(stack_members):
        assert_same(together.take(np.array([i])), train(data, [member], **options), rtol=1e-5)
        edges = squared_adjacency(np.asarray(together.parameters.input_weights)[i], data.layout) > 0
        assert find_cycle(np.asarray(edges)) is None
        h = together.history.loc[together.history["member"] == i, "acyclicity"].to_numpy()
        assert (h[:12] > 0).all()  # three fifths of the epochs
        assert (h[12:] == 0).all()
        assert together.best_epoch[i] > 12


def test_rules_hold_while_training() -> None:
    allowed = ~np.eye(5, dtype=bool) & (np.arange(5) != 2)
    required = np.zeros((5, 5), bool)
    required[1, 3] = True
    data = replace(table(), edges=EdgeRules(allowed, required))
    for schedule in ("fixed", "exact"):
        trained = train(data, members(1, acyclicity_schedule=schedule), hidden_layer_sizes=(5, 5), schedule=QUICK)
        edges = squared_adjacency(np.asarray(trained.parameters.input_weights)[0], data.layout)
        assert not edges[:, 2].any()
        assert edges[1, 3] > 0
        assert edges[:, 4].any()
