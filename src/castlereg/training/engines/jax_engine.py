"""The JAX engine: one compiled program for all members, on the CPU or on JAX's accelerator.

It is the readable reference; on CPUs, the native engine trains several members at a time and is faster.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import sys
import tempfile
import threading
import time
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from functools import cache, lru_cache, partial
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jax import lax
from numpy.typing import NDArray

from castlereg.forks import check_not_forked, has_started
from castlereg.layout import Layout
from castlereg.network import Form
from castlereg.notices import warn_user
from castlereg.training.program import train_member
from castlereg.training.state import EngineName, MemberInputs, MemberState, Setup, Shared

# Quick compilation takes little more than half the time. Up to this width, training then takes 6 or 7 % longer; at a
# width of 30 it takes a third longer. With more rows than this, training takes most of the time.
_SMALL_WIDTH = 16
_SMALL_ROWS = 20_000
# XLA's older way to compile fused operations, which takes less time.
_QUICK = {"xla_cpu_use_fusion_emitters": False}

# A compiled program takes 5 to 10 MB and 150 to 400 memory maps. Linux allows a process 65530 maps, and XLA crashes
# beyond. The least recently used program is dropped for a new one, and read from the disk cache when needed again.
_MOST_PROGRAMS = 16

_JAX_MIN_SECONDS = 1.0  # JAX's own value of jax_persistent_cache_min_compile_time_secs
_ADDRESS_SPACE = 2**30  # bytes that XLA needs to start and compile: 1.0 GB on two cores
# Environment variables and modules that add devices to JAX, in addition to its plugins.
_VARIABLES = ("PJRT_NAMES_AND_LIBRARY_PATHS", "TPU_LIBRARY_PATH")
_MODULES = ("jax_plugins", "libtpu")


class JaxEngine:
    """Engine that trains the members of a stack on JAX's default device.

    The stack sets ``states``, of all members as placed, and ``run`` updates them.
    """

    name: EngineName = "jax"

    def __init__(self, setup: Setup) -> None:
        check_not_forked()
        prepare_jax()
        self.setup, self._n_members = setup, len(setup.members)
        # The member axis is padded to a power of two, so that few programs fit stacks of all sizes.
        self.members_per_worker = 1 << (self._n_members - 1).bit_length()

    @property
    def states(self) -> MemberState:
        """States on the device, rebuilt from their leaves, which a single assignment replaces."""
        states: MemberState = jax.tree.unflatten(self._structure, self._leaves[: self._structure.num_leaves])
        return states

    @states.setter
    def states(self, states: MemberState) -> None:
        self._leaves: list[jax.Array] = jax.tree.leaves(states)
        self._structure: Any = jax.tree.structure(states)

    def place(self, by_member: Any) -> Any:
        """Copy arrays with a leading member axis to the device, padded."""

        def place(array: NDArray[Any]) -> jax.Array:
            padded = np.zeros((self.members_per_worker, *array.shape[1:]), array.dtype)
            padded[: self._n_members] = array
            return jax.device_put(padded)

        return jax.tree.map(place, by_member)

    def read(self, placed: Any) -> Any:
        """Copy arrays from the device, without padding, once they are computed."""
        for array in jax.tree.leaves(placed):
            _wait_for(array)
        return jax.tree.map(lambda array: np.asarray(array)[: self._n_members].copy(), placed)

    def share(self, shared: Shared) -> Any:
        """Put what all members share on the device."""
        return jax.device_put(shared)

    def run(self, inputs: MemberInputs, shared: Shared) -> Any:
        """Start ``shared.epochs`` epochs of all active members, and return the log, placed; ``inputs`` is not placed.

        The log has shape (members, epochs, columns), with the epoch axis of ``inputs`` and NaN for epochs that were not
        run. Ctrl-C never loses states that are computed.
        """
        arguments = self.states, self.place(inputs), shared
        leaves, structure = jax.tree.flatten(arguments)
        signature = structure, tuple((leaf.shape, str(leaf.dtype)) for leaf in leaves)
        call = compiled(self.setup.layout, self.setup.plan.form, _platform(), _is_small(self.setup), signature)
        returned: list[list[jax.Array]] = []
        try:
            # Python handles Ctrl-C between two steps of this function. By then, the list has what the program returned,
            # or the program was not called.
            returned.extend(map(call, *zip(arguments, strict=True)))
        finally:
            if returned:
                self._leaves = returned[0]
        return returned[0][-1]

    def close(self) -> None:
        """Release the states, and unused arrays: otherwise JAX frees them at its next call, which may be much later."""
        self._leaves = []
        jax.device_put(np.zeros(0, np.float32))


@lru_cache(maxsize=_MOST_PROGRAMS)
def compiled(layout: Layout, form: Form, platform: str, quick: bool, signature: Hashable) -> Any:
    """Return the jitted program ``(states, inputs, shared) -> [*leaves of states, log]`` for arguments of one shape."""
    _trim_heap()
    train: Any = partial(train_member, layout, form)

    def program(states: MemberState, inputs: MemberInputs, shared: Shared) -> list[jax.Array]:
        if len(states.active) == 1:  # a loop over a single member would take a third more to compile
            result = train(*jax.tree.map(lambda array: array[0], (states, inputs)), shared)
            result = jax.tree.map(lambda array: array[None], result)
        elif _side_by_side(platform):
            result = jax.vmap(train, in_axes=(0, 0, None))(states, inputs, shared)
        else:
            result = lax.map(lambda member: train(*member, shared), (states, inputs))
        # To rebuild the states, JAX would run Python code, where Ctrl-C would lose what the program has returned.
        return jax.tree.leaves(result)

    return jax.jit(program, donate_argnums=0, compiler_options=_compiler_options(platform, quick=quick))


def _side_by_side(platform: str) -> bool:
    """Return whether all members advance together, not one after the other: an accelerator needs parallel work."""
    return platform != "cpu"  # which one member keeps busy, and members that have finished then cost nothing


def _compiler_options(platform: str, *, quick: bool) -> dict[str, bool]:
    """Return XLA's options for a program; ``quick`` compiles in less time, and large operations are slower."""
    return _quick_options() if quick and platform == "cpu" else {}


@cache
def _quick_options() -> dict[str, bool]:
    """Return the options that make compiling quick; none if this version of XLA does not have them."""
    try:
        jax.jit(lambda: 0, compiler_options=_QUICK).lower().compile()
    except jax.errors.JaxRuntimeError:
        return {}
    return _QUICK


def _is_small(setup: Setup) -> bool:
    """Return whether compiling takes longer than training, by table and widths only: the same for any stack."""
    widest = max(setup.layout.n_inputs, *setup.plan.hidden_layer_sizes, 0)
    return widest <= _SMALL_WIDTH and len(setup.encoded.inputs) <= _SMALL_ROWS


def _platform() -> str:
    """Return the platform of the default device, which the user may have set: a device or the name of a platform."""
    default: Any = jax.config.jax_default_device  # type: ignore[attr-defined]
    if default is None:
        return jax.default_backend()
    return default if isinstance(default, str) else str(default.platform)


def _wait_for(array: Any) -> None:
    """Wait until an array is computed; unlike JAX's own wait, Ctrl-C interrupts it immediately."""
    begun = time.perf_counter()
    while not array.is_ready():
        stop_if_exiting()
        waited = time.perf_counter() - begun
        time.sleep(min(max(1e-4, waited / 50), 0.02))


def _trim_heap() -> None:
    """Return memory freed by the compiler to the system; glibc would keep tens of megabytes per program."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
    if trim is not None:
        trim(0)


# --- JAX in this process ---


@contextmanager
def without_jax_checks() -> Iterator[None]:
    """Train in this thread without the JAX checks that the user may have switched on.

    The programs mark epochs that did not run by NaN, undo epochs whose loss is not finite, and need JAX's standard
    promotion rules.
    """
    with (
        jax.debug_nans(False),
        jax.debug_infs(False),
        jax.numpy_dtype_promotion("standard"),
        jax.numpy_rank_promotion("allow"),
        jax.transfer_guard("allow"),
    ):
        yield


@cache
def prepare_jax() -> None:
    """Give JAX a compilation cache before the first fit, unless the user has set one; check the memory limit."""
    _check_memory_limit()
    config: Any = jax.config
    if config.jax_compilation_cache_dir is not None:
        return
    from platformdirs import user_cache_path

    folder = user_cache_path("castlereg") / "jax"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(bytes(1))
    except OSError as error:
        warn_user(
            f"{folder} is not writable ({error.strerror}), so every process compiles its programs again; "
            "set JAX_COMPILATION_CACHE_DIR to a writable folder"
        )
        return
    config.update("jax_compilation_cache_dir", str(folder))
    if config.jax_persistent_cache_min_compile_time_secs == _JAX_MIN_SECONDS:
        config.update("jax_persistent_cache_min_compile_time_secs", 0.1)


def _check_memory_limit() -> None:
    """Raise if a memory limit leaves too little for XLA, which would end the process without a message."""
    try:
        import resource

        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    except (ImportError, OSError):  # another system
        return
    left = limit - pages * resource.getpagesize()
    if limit != resource.RLIM_INFINITY and left < _ADDRESS_SPACE:
        raise MemoryError(
            f"the memory limit (ulimit -v) of {limit / 2**30:.1f} GiB leaves {max(left, 0) / 2**30:.1f} GiB, but XLA "
            f"needs about {_ADDRESS_SPACE / 2**30:.0f} GiB; raise the limit"
        )


def has_accelerator() -> bool:
    """Return whether JAX's default device is an accelerator; if it has none, without starting JAX."""
    if not has_started():
        platforms = jax.config.jax_platforms  # type: ignore[attr-defined]
        if platforms == "cpu" if platforms else not _has_plugin():
            return False
        prepare_jax()
    return jax.default_backend() != "cpu"


@cache
def _has_plugin() -> bool:
    """Return whether anything is installed that may add a JAX device other than the CPU."""
    return bool(
        any(map(os.environ.get, _VARIABLES)) or any(map(find_spec, _MODULES)) or entry_points(group="jax_plugins")
    )


# --- the end of the process ---

_exiting = threading.Event()
_training: set[int] = set()  # threads
_MOST_SECONDS = 30  # to wait for threads, which may be compiling a program


@contextmanager
def stopped_at_exit() -> Iterator[None]:
    """Mark this thread as training: exiting while JAX runs in a daemon thread would abort the process.

    The thread must call :func:`stop_if_exiting` regularly.
    """
    _training.add(threading.get_ident())
    try:
        stop_if_exiting()
        yield
    finally:
        _training.discard(threading.get_ident())


def stop_if_exiting() -> None:
    """End this thread if Python is exiting."""
    if _exiting.is_set():
        raise SystemExit


@atexit.register
def _wait_for_threads() -> None:
    _exiting.set()
    latest = time.monotonic() + _MOST_SECONDS
    while _training and time.monotonic() < latest:
        time.sleep(0.01)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_training.clear)  # a forked child does not have these threads
