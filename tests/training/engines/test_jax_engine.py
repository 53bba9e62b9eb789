"""JAX in this process: how programs are compiled, where they run, and how processes and threads end."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import jax
import joblib
import pytest

from castlereg.training import train
from castlereg.training.engines import jax_engine
from tests.training.cases import assert_same, members, plain, plan, stack_of, table

QUICK = ("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")  # as programs are compiled in this process


# --- compiler options ----------------------------------------------------------------------------


@pytest.fixture
def ask_again() -> Iterator[None]:
    jax_engine._quick_options.cache_clear()
    yield
    jax_engine._quick_options.cache_clear()


@pytest.mark.usefixtures("ask_again")
def test_quick_programs_leave_out_what_takes_long_to_compile(monkeypatch: pytest.MonkeyPatch) -> None:
    assert jax_engine._compiler_options("cpu", quick=False) == jax_engine._compiler_options("gpu", quick=True) == {}
    assert jax_engine._compiler_options("cpu", quick=True)["xla_cpu_use_fusion_emitters"] is False
    monkeypatch.setattr(jax_engine, "_QUICK", {"xla_cpu_no_such_option": False})
    jax_engine._quick_options.cache_clear()
    assert jax_engine._compiler_options("cpu", quick=True) == {}, "an option that XLA does not have is left out"


@pytest.mark.parametrize(
    ("n_rows", "n_features", "sizes", "quick"),
    [(60, 5, (16,), True), (60, 20, (16,), False), (60, 5, (40,), False), (60, 5, (), True), (20_001, 2, (2,), False)],
)
def test_small_tables_and_networks_are_quick(n_rows: int, n_features: int, sizes: Any, quick: bool) -> None:
    setup = stack_of(table(n_rows, n_features), plain(1, n_rows), plan(sizes)).setup
    assert jax_engine._is_small(setup) == quick


def test_jax_trains_on_the_device_that_the_user_has_chosen() -> None:
    assert jax_engine._platform() == "cpu"
    with jax.default_device(jax.devices()[0]):
        assert jax_engine._platform() == "cpu"
        stack = stack_of(table(), plain(1), plan((5,)))
    assert stack.engine.states.rate.devices() == {jax.devices()[0]}


# --- accelerators --------------------------------------------------------------------------------


@dataclass
class _Config:
    jax_platforms: str | None


@pytest.mark.parametrize(
    ("platforms", "plugin", "backend", "asked", "expected"),
    [
        (None, False, "gpu", False, False),
        ("cpu", True, "gpu", False, False),
        (None, True, "gpu", True, True),
        (None, True, "cpu", True, False),  # a plugin without its hardware
        ("cuda", False, "gpu", True, True),
    ],
)
def test_jax_is_only_asked_where_it_may_have_an_accelerator(
    platforms: str | None, plugin: bool, backend: str, asked: bool, expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    questions = []

    def default_backend() -> str:
        questions.append(True)
        return backend

    monkeypatch.setattr(jax_engine, "has_started", lambda: False)
    monkeypatch.setattr(jax_engine, "_has_plugin", lambda: plugin)
    monkeypatch.setattr(jax_engine, "prepare_jax", lambda: None)
    monkeypatch.setattr(jax_engine.jax, "config", _Config(platforms))
    monkeypatch.setattr(jax_engine.jax, "default_backend", default_backend)
    assert jax_engine.has_accelerator() == expected
    assert bool(questions) == asked


def test_plugins_are_found_by_their_entry_points(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[Any] = []
    for name in jax_engine._VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(jax_engine, "find_spec", lambda name: None)
    monkeypatch.setattr(jax_engine, "entry_points", lambda group: found if group == "jax_plugins" else [1])
    assert not jax_engine._has_plugin.__wrapped__()
    found.append("cuda12")
    assert jax_engine._has_plugin.__wrapped__()


# --- processes and threads -----------------------------------------------------------------------


def trained(width: int = 5, seed: int = 0) -> Any:
    chosen = [member for member in members(3) if member.seed.entropy == seed]
    return train(table(), chosen, plan((width,), epochs=2))


FORKED = """
import multiprocessing, os
from tests.training.engines.test_jax_engine import trained

early = os.fork()
if early == 0:
    os._exit(len(trained().validation_loss) != 1)
assert os.waitpid(early, 0)[1] == 0

def in_child(queue):
    try:
        trained()
    except RuntimeError as error:
        queue.put(str(error))

trained()
context = multiprocessing.get_context("fork")
queue = context.SimpleQueue()
process = context.Process(target=in_child, args=(queue,), daemon=True)
process.start()
message = queue.get()
process.join()
assert "forked after JAX had started" in message and "get_context('spawn')" in message, message
"""
FORKED_BEFORE_THE_IMPORT = """
import os
import jax

jax.numpy.zeros(1)
child = os.fork()
if child == 0:
    from castlereg.forks import check_not_forked

    try:
        check_not_forked()
    except RuntimeError:
        os._exit(3)
    os._exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.parametrize("script", [FORKED, FORKED_BEFORE_THE_IMPORT], ids=["after", "before the import"])
def test_a_process_that_was_forked_after_jax_had_started_says_that_it_cannot_train(script: str) -> None:
    subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script], check=True, timeout=120, env=os.environ | dict([QUICK])
    )


def test_spawned_processes_and_joblib_train_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(*QUICK)
    here = trained()
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert_same(pool.apply(trained), here, rtol=1e-5)
    (there,) = joblib.Parallel(n_jobs=2)([joblib.delayed(trained)()])
    assert_same(there, here, rtol=1e-5)


def test_threads_train_side_by_side() -> None:
    wanted = [(4, 0), (3, 1), (4, 2), (3, 0)]  # two shapes, none compiled before
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda arguments: trained(*arguments), wanted))
    for arguments, result in zip(wanted, together, strict=True):
        assert_same(trained(*arguments), result)


def test_training_ends_with_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jax_engine, "_exiting", threading.Event())
    with jax_engine.stopped_at_exit():
        assert threading.get_ident() in jax_engine._training
        jax_engine.stop_if_exiting()
    assert threading.get_ident() not in jax_engine._training
    jax_engine._exiting.set()
    with pytest.raises(SystemExit):
        train(table(), members(1), plan((5,)))
    assert not jax_engine._training
