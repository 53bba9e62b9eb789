"""Training from the first epoch to the last, in the JAX engine: phases, stacks, divergence, interrupts, and memory."""

from __future__ import annotations

import gc
import io
import signal
import subprocess
import sys
import threading
import warnings
import weakref
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import IO, Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from tqdm.auto import tqdm

from castlereg.layout import EdgeRules, Layout, Node
from castlereg.network import forward, initialize, squared_adjacency
from castlereg.regularizers import L2, Castle, Dropout
from castlereg.table.encoding import Encoded, Standardization, padded_size
from castlereg.training import Control, Member, Phase, Plan, TrainedStack, loop, phases_for, program, train
from castlereg.training.engines import jax_engine
from castlereg.training.engines.jax_engine import JaxEngine
from castlereg.training.loop import Stack
from castlereg.training.state import MemberInputs, Shared
from tests.training.cases import assert_same, members, plain, plan, stack_of, table

KEEP = Control(on_interrupt="keep")
optimized = pytest.mark.optimized


# --- phases, best epochs and patience -------------------------------------------------------------


@optimized
def test_best_epoch_and_patience() -> None:
    how = plan((16, 16), epochs=300, patience=7, learning_rate=0.02)
    result = train(table(n_rows=60), plain(3, 60), how)
    for i, epochs in result.history.groupby("member"):
        losses = epochs["validation_loss"].to_numpy()
        best = losses.argmin()
        assert result.best_epoch[i] == best + 1
        assert result.validation_loss[i] == losses[best]
        assert len(losses) == min(best + 1 + 7, 300)
    assert result.history.groupby("member").size().nunique() > 1, "members should stop at different epochs here"


def test_epochs_that_do_not_count_are_not_chosen_and_cost_no_patience() -> None:
    phases = phases_for(max_epochs=60, warmup=20)
    result = train(table(n_rows=60), plain(2, 60), plan((16,), phases=phases, learning_rate=0.05))
    assert (result.best_epoch > 20).all()
    for i, epochs in result.history.groupby("member"):
        losses = epochs["validation_loss"].to_numpy()
        assert result.best_epoch[i] == 21 + losses[20:].argmin()
        assert len(losses) == min(result.best_epoch[i] + 5, 60)
    losses_by_member = result.history.groupby("member")["validation_loss"]
    assert (losses_by_member.apply(lambda losses: losses.to_numpy().argmin()) < 20).any(), "an earlier one is better"


def test_kept_weights_are_those_of_the_best_epoch() -> None:
    """Training again for just as many epochs as the best one took ends with the kept weights."""
    data = table(n_rows=60)
    result = train(data, plain(1, 60), plan((16,), epochs=100, learning_rate=0.02))
    assert result.best_epoch[0] < len(result.history)
    again = train(data, plain(1, 60), plan((16,), int(result.best_epoch[0]), patience=100, learning_rate=0.02))
    assert_same(result, again)


def test_phases_of_equal_settings_are_one_phase() -> None:
    whole = train(table(), members(2), Plan((5,), (Phase(9),)))
    assert_same(train(table(), members(2), Plan((5,), (Phase(2), Phase(0), Phase(4), Phase(3)))), whole)


@pytest.mark.parametrize("epochs_per_call", [1, 2, 16])
def test_rates_follow_the_phases(epochs_per_call: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "_MOST_EPOCHS_PER_CALL", epochs_per_call)
    fade = Phase(3, learning_rate=lambda done: 1 - done)
    how = plan((4,), phases=(Phase(4, counts=False), Phase(2), fade), learning_rate=0.01, patience=100)
    for _, epochs in train(table(), plain(2), how).history.groupby("member"):
        np.testing.assert_allclose(epochs["learning_rate"], 0.01 * np.array([1] * 6 + [1, 2 / 3, 1 / 3]), rtol=1e-6)
        np.testing.assert_array_equal(epochs["epoch"], np.arange(1, 10))


def test_the_rate_follows_a_cosine() -> None:
    how = plan((4,), patience=100, phases=phases_for(20, schedule="cosine"))
    rates = train(table(), plain(1), how).history["learning_rate"].to_numpy() / how.learning_rate
    expected = 0.01 + 0.99 * 0.5 * (1 + np.cos(np.pi * np.arange(20) / 20))
    np.testing.assert_allclose(rates, expected, rtol=1e-5)


def test_a_rate_of_zero_leaves_the_weights_as_they_are() -> None:
    still = plan((5,), phases=(Phase(3), Phase(4, learning_rate=lambda done: 0.0)), patience=100)
    held, short = (train(table(), plain(1), how) for how in (still, plan((5,), 3)))
    losses = held.history["validation_loss"].to_numpy()
    np.testing.assert_array_equal(losses[3:], losses[2])
    np.testing.assert_array_equal(losses[:3], short.history["validation_loss"])


def test_averaged_weights_are_the_mean_over_epochs_that_decays() -> None:
    """Of networks that keep the weights of every epoch, one after the other."""
    data, how = table(n_rows=60), plan((6,), epochs=4, patience=100, learning_rate=0.01)
    average = jax.tree.map(np.asarray, initialize(data.layout, (6,), plain(1, 60)[0].seed, nodes=(4,)))
    for epochs in range(1, 5):  # training for fewer epochs is the same up to there
        last = train(data, plain(1, 60), replace(how, phases=(Phase(epochs - 1, counts=False), Phase(1))))
        average = jax.tree.map(lambda a, w: 0.7 * a + 0.3 * w[0], average, last.parameters)
    result = train(data, plain(1, 60), replace(how, averaging=0.7, phases=(Phase(3, counts=False), Phase(1))))
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a[0], b, rtol=1e-4, atol=1e-6), result.parameters, average)


@pytest.mark.parametrize(
    ("max_epochs", "warmup", "expected"),
    [
        (30, 0, (Phase(30),)),
        (30, 10, (Phase(10, counts=False), Phase(20))),
        (5, 50, (Phase(4, counts=False), Phase(1))),
        (1, 50, (Phase(1),)),
    ],
)
def test_phases_after_a_warmup(max_epochs: int, warmup: int, expected: tuple[Phase, ...]) -> None:
    assert phases_for(max_epochs, warmup) == expected


def test_bad_plans_are_named() -> None:
    with pytest.raises(ValueError, match="epochs=-1 must be a whole number of at least 0"):
        Phase(-1)
    for phases in ((), (Phase(3, counts=False),), (Phase(3), Phase(3, counts=False))):
        with pytest.raises(ValueError, match="phases that count must come last, and at least one is needed"):
            Plan((), phases)


# --- a stack against its members one by one ---------------------------------------------------------


@pytest.mark.parametrize("kind", ["numeric", "binary", "categorical"])
@pytest.mark.parametrize(("sizes", "features_per_step"), [((), None), ((5, 5), None), ((5, 5), 2)])
def test_a_stack_equals_its_members_one_by_one(
    kind: str, sizes: tuple[int, ...], features_per_step: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, of_stack = table(kind=kind), members(5, features_per_step=features_per_step)
    together = train(data, of_stack, plan(sizes))
    monkeypatch.setattr(loop, "_MOST_EPOCHS_PER_CALL", 4)  # a member of a large stack may train in shorter calls
    for i, member in enumerate(of_stack):
        alone = train(data, [member], plan(sizes))
        assert_same(together.take(np.array([i])), alone, rtol=1e-5)
        assert together.best_epoch[i] == alone.best_epoch[0]


@optimized
def test_members_side_by_side_equal_members_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """What an accelerator does: all members in one batch, finished ones held still."""
    in_turn = train(table(), members(5), plan((5, 5)))
    monkeypatch.setattr(jax_engine, "_side_by_side", lambda platform: True)
    jax_engine.compiled.cache_clear()
    side_by_side = train(table(), members(5), plan((5, 5)))
    jax_engine.compiled.cache_clear()
    assert_same(in_turn, side_by_side, rtol=1e-4)
    np.testing.assert_array_equal(in_turn.best_epoch, side_by_side.best_epoch)


@optimized
def test_the_same_seed_gives_the_same_bits_and_another_seed_others() -> None:
    runs = [train(table(), members(3), plan((5, 5))) for _ in range(2)]
    assert_same(*runs)
    other = [replace(member, seed=np.random.SeedSequence(99 + i)) for i, member in enumerate(members(3))]
    different = train(table(), other, plan((5, 5)))
    assert not np.array_equal(different.parameters.input_weights, runs[0].parameters.input_weights)


def test_finished_members_run_no_more_epochs() -> None:
    stack = stack_of(table(n_rows=60), plain(4, 60), plan((8,), epochs=200, patience=3, learning_rate=0.03))
    while stack.active.any():
        still = stack.active.copy()
        stack.record(stack.engine.read(stack.run(stack.epochs_per_call, stack.epochs_per_call)))
        ran = ~np.isnan(stack.logs[-1][1][..., -1])
        assert not ran[~still].any()


def test_members_of_a_stack_have_the_same_regularizers() -> None:
    first, second = members(2)
    with pytest.raises(ValueError, match=r"member 0 has regularizers \(Castle\(.*\) and member 1 has \(L2\("):
        train(table(), [first, replace(second, regularizers=(L2(),))], plan((5,)))


def test_joined_stacks_name_all_their_engines() -> None:
    ours = train(table(), members(2), plan((5,), epochs=2))
    other = replace(ours, engine="native")
    assert ours.engine == TrainedStack.joined([ours, ours]).engine == "jax"
    both = TrainedStack.joined([other, ours])
    assert both.engine == TrainedStack.joined([both, other]).engine == both.take(np.array([0])).engine == "jax, native"
    assert both.history["member"].nunique() == 4
    assert_same(both.take(np.array([2, 3])), ours)


@pytest.mark.parametrize(("engine", "x64"), [("jax", False), ("jax", True), ("native", False)])
def test_training_is_in_the_precision_of_the_table_if_the_engine_has_it(engine: Any, x64: bool) -> None:
    if engine == "native":
        pytest.importorskip("castlereg_kernels")
    data = table()
    wide = Encoded(data.inputs.astype(np.float64), data.layout, np.ones(120))
    with jax.enable_x64(x64):
        result = train(wide, members(2, features_per_step=2), plan((5,), engine=engine))
    expected = np.float64 if x64 or engine == "native" else np.float32
    assert {a.dtype for a in jax.tree.leaves(result.parameters)} == {np.dtype(expected)}
    assert_same(result, train(data, members(2, features_per_step=2), plan((5,))), rtol=1e-4)


# --- what is trained -----------------------------------------------------------------------------


def test_training_starts_from_the_stated_weights() -> None:
    data = table()
    result = train(data, members(1), plan((5, 5), epochs=1, learning_rate=1e-30))
    start = initialize(data.layout, (5, 5), members(1)[0].seed)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a[0], b, atol=1e-28), result.parameters, start)


def test_each_member_is_standardized_by_its_own_training_rows() -> None:
    data = table(kind="categorical")
    shifted = replace(data, inputs=data.inputs * np.array([5, 1, 1, 1, 1, 1, 1], np.float32) + 3)
    result = train(shifted, members(3), plan(()))
    for i, member in enumerate(members(3)):
        rows = shifted.inputs[member.train_rows].astype(np.float64)
        scale = np.r_[1 / rows[:, :4].std(axis=0), np.repeat(1 / np.sqrt(rows[:, 4:].var(axis=0).sum()), 3)]
        np.testing.assert_allclose(result.standardization.shift[i], rows.mean(axis=0), rtol=1e-5)
        np.testing.assert_allclose(result.standardization.scale[i], scale, rtol=1e-5)


def test_weighted_rows_weigh_as_much_as_copies_in_a_full_batch() -> None:
    """One batch holds everything here, so weights and copies take the very same steps."""
    data, rows = table(n_rows=20), np.arange(20)
    weight = np.tile([1.0, 2.0], 10).astype(np.float32)
    how, seed = plan((5,), epochs=20, patience=30, batch_size=64), np.random.SeedSequence(0)
    weighted = train(Encoded(data.inputs, data.layout, weight), [Member(rows, rows, seed, (Castle(),))], how)
    copies = np.repeat(rows, weight.astype(int))
    repeated = train(data, [Member(copies, copies, seed, (Castle(),))], how)
    assert_same(weighted, repeated, rtol=1e-4)


def test_what_a_regularizer_draws_does_not_depend_on_the_others() -> None:
    """Dropout with and without an L2 of strength zero takes the same steps."""
    runs = (
        train(table(), [replace(members(1)[0], regularizers=chosen)], plan((5, 5)))
        for chosen in ((Dropout(0.3),), (L2(0.0), Dropout(0.3)))
    )
    assert_same(*runs, rtol=1e-6)


def test_edge_rules_and_constant_columns_hold_while_training() -> None:
    allowed = ~np.eye(5, dtype=bool) & (np.arange(5) != 2)
    required = np.zeros((5, 5), bool)
    required[1, 3] = True
    data = replace(table(), edges=EdgeRules(allowed, required), constant=(0,))
    (weights,) = train(data, members(1), plan((5, 5))).parameters.input_weights
    edges = squared_adjacency(np.asarray(weights), data.layout)
    assert not edges[:, 2].any() and not edges[0].any() and not edges[:, 0].any()
    assert edges[1, 3] > 0 and edges[1:4, 4].all()


def test_columns_that_a_member_does_not_use_have_no_weight() -> None:
    used = np.array([True, False, True, False, True])
    both = [replace(member, used=used if i else None) for i, member in enumerate(plain(2))]
    result = train(table(), both, plan((8,), epochs=5))
    weights = np.abs(result.parameters.input_weights).max(axis=(2, 3))
    assert (weights[0, :4] > 0).all()
    assert (weights[1, [0, 2]] > 0).all() and not weights[1, [1, 3]].any()


# --- sampled sub-networks ------------------------------------------------------------------------


@optimized
def test_sampling_every_feature_equals_training_all() -> None:
    runs = [train(table(), members(2, features_per_step=chosen), plan((5, 5))) for chosen in (None, 4)]
    assert_same(*runs, rtol=2e-5)


def test_more_sampled_features_than_there_are_is_an_error() -> None:
    with pytest.raises(ValueError, match="features_per_step=5, but X has 4 features; pass at most 4, or None for all"):
        train(table(), members(1, features_per_step=5), plan((5, 5)))


@optimized
def test_sampling_computes_only_the_sampled_sub_networks(monkeypatch: pytest.MonkeyPatch) -> None:
    """The compiled step has the products of the sampled sub-networks, not of all."""
    flops, lowered, compiled = {}, list[Any](), jax_engine.compiled

    def only_lowered(*arguments: Any) -> Any:
        def call(*inputs: Any) -> None:
            lowered.append(compiled(*arguments).lower(*inputs))
            raise KeyboardInterrupt

        return call

    monkeypatch.setattr(jax_engine, "compiled", only_lowered)
    for chosen in (None, 3):
        with pytest.raises(KeyboardInterrupt):
            train(table(d=40), members(1, features_per_step=chosen), plan((32, 32), epochs=1))
        flops[chosen] = lowered.pop().compile().cost_analysis()["flops"]
    assert flops[3] < 0.35 * flops[None]


@pytest.mark.parametrize("acyclicity", ["expm", None])
def test_a_step_leaves_sub_networks_that_were_not_sampled_as_they_are(acyclicity: str | None) -> None:
    rows = np.arange(32)  # one batch, one step an epoch
    castle = Castle(0.1, features_per_step=2, acyclicity=acyclicity)
    member = Member(rows, np.arange(32, 64), np.random.SeedSequence(3), (castle,))
    stack, twin = (stack_of(table(), [member], plan((5, 5), epochs=1, patience=1)) for _ in range(2))
    _, sampled, _ = twin.draws.draw(twin.active, 1, 1)
    assert sampled is not None
    before = stack.engine.read(stack.engine.states.train.weights.network.input_weights)[0]
    stack.record(stack.engine.read(stack.run(1, 0)))
    states = stack.engine.read(stack.engine.states)
    changed = (before != states.train.weights.network.input_weights[0]).any(axis=(0, 2))
    np.testing.assert_array_equal(np.flatnonzero(changed), sampled[0, 0, 0])
    np.testing.assert_array_equal(states.train.moments.nodes.count[0], changed)


# --- long epochs and validations in blocks ---------------------------------------------------------


@pytest.mark.parametrize("steps", [1025, 1300])
def test_every_step_is_taken_once_and_in_order(steps: int) -> None:
    padded = padded_size(steps - 1)
    numbers = jnp.arange(padded) + 7

    def step(gathered: jnp.ndarray, first: int, i: jnp.ndarray, sums: jnp.ndarray) -> jnp.ndarray:
        return sums.at[i].set(gathered[i - first] + sums[i - 1])  # the one before was taken before

    def gather(first: int, size: int) -> jnp.ndarray:
        return numbers[first + jnp.arange(size)]

    sums = program._in_blocks(step, gather, padded, jnp.asarray(steps), jnp.zeros(padded, int))
    np.testing.assert_array_equal(sums[:steps], np.cumsum(np.arange(padded) + 7)[:steps])
    assert not sums[steps:].any()


def test_validation_in_blocks_is_the_validation(rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    layout = Layout((Node(), Node(), Node(target=True)))
    rows = jnp.asarray(rng.normal(size=(65, 3)), jnp.float32)
    weight = jnp.asarray(np.r_[rng.random(50), np.zeros(15)], jnp.float32)  # the last rows are empty
    by = Standardization(np.zeros(3, np.float32), np.ones(3, np.float32), None, None, None)
    network = initialize(layout, (4,), seed=np.random.SeedSequence(0))
    unused: Any = None
    shared = Shared(rows, weight, *[unused] * 9)
    inputs = MemberInputs(*[unused] * 5, jnp.arange(64), by, jnp.ones(()), unused)

    def loss() -> float:
        return float(jax.jit(program._validation_loss(layout, inputs, shared))(network))

    whole = loss()
    outputs = np.asarray(forward(network, rows))[:64, -1, 0]
    squares = (outputs - np.asarray(rows)[:64, -1]) ** 2
    assert whole == pytest.approx(float(np.average(squares, weights=np.asarray(weight)[:64])), rel=1e-5)
    monkeypatch.setattr(program, "_MOST_VALIDATION_ROWS", 16)
    monkeypatch.setattr(program, "_VALIDATION_BLOCK", 16)
    assert loss() == pytest.approx(whole, rel=1e-6)


# --- divergence ----------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_member_that_diverges_goes_back_and_on_at_a_lower_rate() -> None:
    with pytest.warns(
        ConvergenceWarning, match=r"network 0: the loss was not finite in epoch 1; training continued from epoch 0 "
    ):
        result = train(table(), members(1), plan((), epochs=30, patience=30, learning_rate=1e20))
    rates = result.history["learning_rate"].to_numpy()
    assert rates[0] > rates[-1]
    assert np.isfinite(result.validation_loss).all()
    assert all(np.isfinite(a).all() for a in jax.tree.leaves(result.parameters))


def test_other_members_do_not_notice_one_that_diverges() -> None:
    bad = replace(members(1)[0], seed=np.random.SeedSequence(5), regularizers=(Castle(1e38, 1e38),))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        mixed = train(table(), [*members(2), bad], plan((5,)))
    assert np.isinf(mixed.validation_loss[2])
    clean = train(table(), members(2), plan((5,)))
    assert_same(mixed.take(np.array([0, 1])), clean, rtol=1e-5)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_network_without_one_finite_epoch_is_an_error() -> None:
    with pytest.raises(FloatingPointError, match="lower learning_rate"):
        train(table(), members(1), plan((), epochs=30, patience=30, learning_rate=3e38))


# --- interrupts ----------------------------------------------------------------------------------


def interrupted_at(call: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let Ctrl-C come at the beginning of a call of the engine."""
    run, calls = Stack.run, []

    def interrupted(self: Any, *arguments: Any) -> Any:
        calls.append(1)
        if len(calls) == call:
            raise KeyboardInterrupt
        return run(self, *arguments)

    monkeypatch.setattr(Stack, "run", interrupted)


@pytest.mark.parametrize(("call", "control"), [(2, Control()), (1, KEEP)])  # there is nothing to keep
def test_ctrl_c_is_passed_on(call: int, control: Control, monkeypatch: pytest.MonkeyPatch) -> None:
    interrupted_at(call, monkeypatch)
    with pytest.raises(KeyboardInterrupt):
        train(table(), members(2), plan((5,), epochs=400, patience=400), control)


def test_ctrl_c_may_leave_the_best_model_so_far(monkeypatch: pytest.MonkeyPatch) -> None:
    interrupted_at(3, monkeypatch)
    with pytest.warns(ConvergenceWarning, match="interrupted after 32 of at most 400 epochs"):
        result = train(table(), members(2), plan((5,), epochs=400, patience=400), KEEP)
    assert result.interrupted
    assert np.isfinite(result.validation_loss).all()
    assert len(result.history) == 64


def test_epochs_that_were_trained_when_ctrl_c_came_are_in_the_history(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that runs has changed the weights, whether or not its log was read."""
    logs = iter(range(10))
    read = JaxEngine.read

    def interrupted(self: JaxEngine, placed: Any) -> Any:
        if getattr(placed, "ndim", 0) == 3 and next(logs) == 1:  # the log of the second call
            raise KeyboardInterrupt
        return read(self, placed)

    monkeypatch.setattr(JaxEngine, "read", interrupted)
    with pytest.warns(ConvergenceWarning, match="interrupted after 32"):
        result = train(table(), members(2), plan((5,), epochs=400, patience=400), KEEP)
    assert result.history.groupby("member")["epoch"].max().tolist() == [32, 32]
    best = result.history.groupby("member")["validation_loss"].min()
    np.testing.assert_array_equal(best.astype(np.float32), result.validation_loss)


def test_ctrl_c_while_the_bar_is_drawn_leaves_it_to_other_threads() -> None:
    class Interrupted(tqdm):  # type: ignore[misc,type-arg]
        def display(self, *arguments: Any, **options: Any) -> None:
            if self.n:
                self.n = 0
                raise KeyboardInterrupt

    Interrupted.set_lock(threading.RLock())
    with Interrupted(total=100, mininterval=0, file=io.StringIO()) as bar, pytest.raises(KeyboardInterrupt):
        train(table(), members(2), plan((5,), epochs=400, patience=400), Control(progress=bar))

    def is_free() -> bool:
        lock = Interrupted.get_lock()
        return bool(lock.acquire(timeout=10)) and lock.release() is None

    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(is_free).result()


def read_until(word: str, stream: IO[str]) -> None:
    text = ""
    while word not in text:
        letter = stream.read(1)
        assert letter, text
        text += letter


def test_a_real_interrupt_signal_leaves_a_model_or_is_passed_on() -> None:
    script = """
import signal, sys, threading, time
import numpy as np
from castlereg.training import Control, train
from tests.training.cases import members, plan, table
signal.signal(signal.SIGINT, signal.default_int_handler)  # a parent in the background may have it ignored
endless = table(), members(2), plan((5,), epochs=10**6, patience=10**6)
result = train(*endless, Control(progress=True, on_interrupt="keep"))
print("interrupted", result.interrupted, np.isfinite(result.validation_loss).all())
print("stopped", file=sys.stderr, flush=True)
try:
    train(*endless, Control(progress=True))
except KeyboardInterrupt:
    print("raised")
    print("stopped", file=sys.stderr, flush=True)
threading.Thread(target=train, args=endless, daemon=True).start()  # ends with the process
time.sleep(0.3)
"""
    process = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    try:
        for _ in range(2):
            read_until("validation_loss", process.stderr)
            process.send_signal(signal.SIGINT)
            read_until("stopped", process.stderr)
        out, err = process.communicate(timeout=120)
    finally:
        process.kill()
    assert out.split() == ["interrupted", "True", "True", "raised"], err
    assert process.returncode == 0, err


def test_progress_bar(capsys: pytest.CaptureFixture[str]) -> None:
    train(table(), members(1), plan(()), Control(progress=True))
    assert "training" in capsys.readouterr().err
    train(table(), members(1), plan(()))
    assert capsys.readouterr().err == ""
    with tqdm(total=24, disable=None) as bar:
        for _ in range(2):
            train(table(), members(1), plan((), epochs=12, patience=3, learning_rate=1.0), Control(progress=bar))
        assert bar.n == 24, "epochs that are not needed count as done"


# --- memory --------------------------------------------------------------------------------------


def test_tables_of_different_length_share_a_program() -> None:
    before = jax_engine.compiled.cache_info().misses
    for n_rows in (70, 90, 101):
        rows = np.arange(n_rows)
        member = Member(rows[:-9], rows[-9:], np.random.SeedSequence(0), (Castle(),))
        train(table(n_rows), [member], plan((3, 3)))
    assert jax_engine.compiled.cache_info().misses - before == 1


def test_stacks_of_similar_size_share_a_program() -> None:
    before = jax_engine.compiled.cache_info().misses
    for n_members in (5, 6, 8):
        train(table(), plain(n_members), plan((3, 4)))
    assert jax_engine.compiled.cache_info().misses - before == 1


def test_old_programs_make_room_for_new_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process may compile any number of programs: Linux limits the memory maps that those alive take."""
    bounded = lru_cache(maxsize=2)(jax_engine.compiled.__wrapped__)
    monkeypatch.setattr(jax_engine, "compiled", bounded)

    def memory_maps() -> int:
        return len(Path("/proc/self/maps").read_text().splitlines())

    counts = []
    for width in range(3, 9):
        train(table(), plain(1), plan((width,), epochs=1))
        gc.collect()
        counts.append(memory_maps() if sys.platform == "linux" else 0)
    assert bounded.cache_info().currsize == 2
    assert counts[-1] - counts[1] < 300  # four more programs would take over a thousand


def large_table() -> tuple[Encoded, weakref.ref[Any]]:
    """Half a megabyte that the devices may use without a copy."""
    layout = Layout((*(Node() for _ in range(5)), Node(target=True)))
    padded = Encoded(np.random.default_rng(0).normal(size=(20_000, 6)).astype(np.float32), layout).padded()
    return Encoded(padded[:20_000], layout, storage=padded), weakref.ref(padded)


def test_the_device_releases_the_table() -> None:
    data, padded = large_table()
    rows, before = np.arange(20_000), set(map(id, jax.live_arrays()))
    member = Member(rows, rows[::7], np.random.SeedSequence(0), (Castle(),))
    result = train(data, [member], plan((3,), epochs=1, batch_size=2000))
    size = data.inputs.nbytes
    del data
    assert padded() is None  # before JAX is called again, which would release what it has finished with
    assert max((a.nbytes for a in jax.live_arrays() if id(a) not in before), default=0) < size / 10
    assert np.isfinite(result.validation_loss).all()
