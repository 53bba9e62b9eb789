"""Training from the first epoch to the last: best epochs, patience, divergence, interrupts, and memory."""

from __future__ import annotations

import functools
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
from pathlib import Path
from typing import IO, Any

import jax
import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from tqdm.auto import tqdm

from castlereg.acyclicity.cut import find_cycle
from castlereg.layout import EdgeRules, Layout, Node
from castlereg.network import initialize, squared_adjacency
from castlereg.regularizers import L2, Castle, Dropout
from castlereg.search.grid import train_folds
from castlereg.table.table import Table, room_for
from castlereg.training import Member, Phase, Plan, phases_for, program, sources, train
from castlereg.training.engines.jax_engine import JaxEngine
from tests.training.cases import assert_same, members, plain, plan, table


def test_best_epoch_and_patience() -> None:
    by = plan((16, 16), epochs=300, patience=7, learning_rate=0.02)
    result = train(table(n_rows=60), plain(3, 60), by)
    for i, epochs in result.history.groupby("member"):
        losses = epochs["validation_loss"].to_numpy()
        best = losses.argmin()
        assert result.best_epoch[i] == best + 1
        assert result.validation_loss[i] == losses[best]
        assert len(losses) == min(best + 1 + 7, 300)
    assert result.history.groupby("member").size().nunique() > 1, "members should stop at different epochs here"


def test_warmup_delays_the_best_epoch_and_patience() -> None:
    phases = phases_for((), max_epochs=60, warmup=20)
    result = train(table(n_rows=60), plain(2, 60), Plan((16,), phases, patience=5, learning_rate=0.05))
    assert (result.best_epoch > 20).all()
    by_member = result.history.groupby("member")["validation_loss"]
    assert (by_member.apply(lambda losses: losses.to_numpy().argmin()) < 20).any(), "an earlier epoch should be better"


def test_kept_weights_are_those_of_the_best_epoch() -> None:
    """Training again for just as many epochs as the best one took ends with the kept weights."""
    data = table(n_rows=60)
    result = train(data, plain(1, 60), plan((16,), epochs=100, learning_rate=0.02))
    assert result.best_epoch[0] < len(result.history)
    again = train(data, plain(1, 60), plan((16,), int(result.best_epoch[0]), patience=100, learning_rate=0.02))
    assert_same(result, again)


def test_tables_of_different_length_share_a_program() -> None:
    before = program.compiled.cache_info().misses
    for n_rows in (70, 90, 101):
        rows = np.arange(n_rows)
        member = Member(rows[:-9], rows[-9:], np.random.SeedSequence(0), (Castle(),))
        train(table(n_rows), [member], plan((3, 3)))
    assert program.compiled.cache_info().misses - before == 1


def test_old_programs_make_room_for_new_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process may compile any number of programs: Linux limits the memory maps that those alive take."""
    bounded = functools.lru_cache(maxsize=2)(program.compiled.__wrapped__)
    monkeypatch.setattr(program, "compiled", bounded)

    def memory_maps() -> int:
        return len(Path("/proc/self/maps").read_text().splitlines())

    counts = []
    for width in range(3, 9):
        train(table(), plain(1), plan((width,), epochs=1))
        gc.collect()
        counts.append(memory_maps() if sys.platform == "linux" else 0)
    assert bounded.cache_info().currsize == 2
    assert counts[-1] - counts[1] < 300  # four more programs would take over a thousand


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
    """Let Ctrl-C come at the beginning of a call of the program."""
    run, calls = sources._TableRunner.run, []

    def interrupted(self: Any, *arguments: Any) -> Any:
        calls.append(1)
        if len(calls) == call:
            raise KeyboardInterrupt
        return run(self, *arguments)

    monkeypatch.setattr(sources._TableRunner, "run", interrupted)


def test_ctrl_c_is_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    interrupted_at(2, monkeypatch)
    with pytest.raises(KeyboardInterrupt):
        train(table(), members(2), plan((5,), epochs=400, patience=400))


def test_ctrl_c_may_leave_the_best_model_so_far(monkeypatch: pytest.MonkeyPatch) -> None:
    interrupted_at(3, monkeypatch)
    with pytest.warns(ConvergenceWarning, match="interrupted after 32 of at most 400 epochs"):
        result = train(table(), members(2), plan((5,), epochs=400, patience=400), on_interrupt="keep")
    assert result.interrupted
    assert np.isfinite(result.validation_loss).all()
    assert len(result.history) == 64


def test_ctrl_c_while_the_bar_is_drawn_leaves_it_to_other_threads() -> None:
    class Interrupted(tqdm):  # type: ignore[misc,type-arg]
        def display(self, *arguments: Any, **options: Any) -> None:
            if self.n:
                self.n = 0
                raise KeyboardInterrupt

    Interrupted.set_lock(threading.RLock())
    with Interrupted(total=100, mininterval=0, file=io.StringIO()) as bar, pytest.raises(KeyboardInterrupt):
        train(table(), members(2), plan((5,), epochs=400, patience=400), progress=bar)

    def is_free() -> bool:
        lock = Interrupted.get_lock()
        return bool(lock.acquire(timeout=10)) and lock.release() is None

    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(is_free).result()


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
        result = train(table(), members(2), plan((5,), epochs=400, patience=400), on_interrupt="keep")
    assert result.history.groupby("member")["epoch"].max().tolist() == [32, 32]
    best = result.history.groupby("member")["validation_loss"].min()
    np.testing.assert_array_equal(best.astype(np.float32), result.validation_loss)


def read_until(word: str, stream: IO[str]) -> None:
    seen = ""
    while word not in seen:
        letter = stream.read(1)
        assert letter, seen
        seen += letter


def test_a_real_interrupt_signal_leaves_a_model_or_is_passed_on() -> None:
    script = """
import signal, sys, threading, time
import numpy as np
from castlereg.training import train
from tests.training.cases import members, plan, table
signal.signal(signal.SIGINT, signal.default_int_handler)  # a parent in the background may have it ignored
endless = table(), members(2), plan((5,), epochs=10**6, patience=10**6)
result = train(*endless, progress=True, on_interrupt="keep")
print("interrupted", result.interrupted, np.isfinite(result.validation_loss).all())
print("stopped", file=sys.stderr, flush=True)
try:
    train(*endless, progress=True)
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


def test_ctrl_c_before_the_first_epoch_is_always_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    interrupted_at(1, monkeypatch)
    with pytest.raises(KeyboardInterrupt):
        train(table(), members(1), plan((5,)), on_interrupt="keep")


def test_progress_bar(capsys: pytest.CaptureFixture[str]) -> None:
    train(table(), members(1), plan(()), progress=True)
    assert "training" in capsys.readouterr().err
    train(table(), members(1), plan(()))
    assert capsys.readouterr().err == ""


# --- what is trained -----------------------------------------------------------------------------


def test_weighted_rows_weigh_as_much_as_copies_in_a_full_batch() -> None:
    """One batch holds everything here, so weights and copies take the very same steps."""
    data, rows = table(n_rows=20), np.arange(20)
    weight = np.tile([1.0, 2.0], 10).astype(np.float32)
    by, seed = plan((5,), epochs=20, patience=30, batch_size=64), np.random.SeedSequence(0)
    weighted = train(Table(data.inputs, data.layout, weight), [Member(rows, rows, seed, (Castle(),))], by)
    copies = np.repeat(rows, weight.astype(int))
    repeated = train(data, [Member(copies, copies, seed, (Castle(),))], by)
    assert_same(weighted, repeated, rtol=1e-4)


def test_training_starts_from_the_stated_weights() -> None:
    data = table()
    result = train(data, members(1), plan((5, 5), epochs=1, learning_rate=1e-30))
    start = initialize(data.layout, (5, 5), members(1)[0].seed)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a[0], b, atol=1e-28), result.parameters, start)


def test_what_a_regularizer_draws_does_not_depend_on_the_others() -> None:
    """Dropout with and without an L2 of strength zero beside it takes the same steps."""
    alone, beside = (
        train(table(), [replace(members(1)[0], regularizers=chosen)], plan((5, 5)))
        for chosen in ((Dropout(0.3),), (L2(0.0), Dropout(0.3)))
    )
    assert_same(alone, beside, rtol=1e-6)


@pytest.mark.parametrize("objective", ["prediction", "graph"])
def test_rules_hold_while_training(objective: Any) -> None:
    allowed = ~np.eye(5, dtype=bool) & (np.arange(5) != 2)
    required = np.zeros((5, 5), bool)
    required[1, 3] = True
    data, member = replace(table(), edges=EdgeRules(allowed, required)), members(1, objective=objective)[0]
    trained = train(data, [member], Plan((5, 5), phases_for(member.regularizers, 12), patience=5))
    edges = squared_adjacency(np.asarray(trained.parameters.input_weights)[0], data.layout)
    assert not edges[:, 2].any()
    assert edges[1, 3] > 0
    assert edges[:, 4].any()


# --- memory --------------------------------------------------------------------------------------


def large_table() -> tuple[Table, weakref.ref[Any]]:
    """Half a megabyte that the devices may use without a copy."""
    room = room_for(20_000, 6)
    room[:20_000] = np.random.default_rng(0).normal(size=(20_000, 6))
    layout = Layout((*(Node() for _ in range(5)), Node(target=True)))
    return Table(room[:20_000], layout, room=room), weakref.ref(room)


@pytest.mark.parametrize("how", ["train", "train_folds"])
def test_the_devices_let_go_of_the_table(how: str) -> None:
    data, room = large_table()
    rows, seed = np.arange(20_000), np.random.SeedSequence(0)
    by = plan((3,), epochs=1, batch_size=2000)
    before = set(map(id, jax.live_arrays()))
    if how == "train":
        result: Any = train(data, [Member(rows, rows[::7], seed, (Castle(),))], by)
    else:
        candidates = [[Castle()], [L2()]]
        result = train_folds(data, [(rows, rows[::7])], by, candidates=candidates, seeds=[seed], most_members=1)
    size = data.inputs.nbytes
    del data
    assert room() is None  # before JAX is called again, which would let go of what it has finished with
    assert max((a.nbytes for a in jax.live_arrays() if id(a) not in before), default=0) < size / 10
    assert np.isfinite(result.validation_loss if how == "train" else result.losses).all()


def test_the_rate_follows_a_cosine() -> None:
    by = plan((4,), epochs=20, patience=100)
    by = replace(by, phases=phases_for((), 20, schedule="cosine"))
    rates = train(table(), plain(1), by).history["learning_rate"].to_numpy() / by.learning_rate
    expected = 0.01 + 0.99 * 0.5 * (1 + np.cos(np.pi * np.arange(20) / 20))
    np.testing.assert_allclose(rates, expected, rtol=1e-5)


def test_averaged_weights_are_the_mean_over_epochs_that_decays() -> None:
    """Of networks that keep the weights of every epoch, one after the other."""
    data, by = table(n_rows=60), plan((6,), epochs=4, patience=100, learning_rate=0.01)
    start = initialize(data.layout, (6,), plain(1, 60)[0].seed, nodes=(4,))
    average = jax.tree.map(np.asarray, start)
    for epochs in range(1, 5):  # training for fewer epochs is the same up to there
        last = train(data, plain(1, 60), replace(by, phases=(Phase(epochs - 1, counts=False), Phase(1))))
        average = jax.tree.map(lambda a, w: 0.7 * a + 0.3 * w[0], average, last.parameters)
    result = train(data, plain(1, 60), replace(by, averaging=0.7, phases=(Phase(3, counts=False), Phase(1))))
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a[0], b, rtol=1e-4, atol=1e-6), result.parameters, average)


def test_averaged_weights_have_no_cycle_either() -> None:
    data = table(n_rows=60)
    castle = Castle(objective="graph")
    by = replace(plan((6,), epochs=10, patience=100), phases=phases_for([castle], 10), averaging=0.8)
    member = replace(plain(1, 60)[0], regularizers=(castle,))
    (weights,) = np.abs(train(data, [member], by).parameters.input_weights).max(axis=-1)
    assert weights.any() and find_cycle(weights > 0) is None


def test_columns_that_a_member_does_not_use_have_no_weight() -> None:
    used = np.array([True, False, True, False, True])
    both = [replace(member, used=used if i else None) for i, member in enumerate(plain(2))]
    result = train(table(), both, plan((8,), epochs=5))
    weights = np.abs(result.parameters.input_weights).max(axis=(2, 3))
    assert (weights[0, :4] > 0).all()
    assert (weights[1, [0, 2]] > 0).all() and not weights[1, [1, 3]].any()
