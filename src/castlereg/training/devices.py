"""Devices that train, and the cache of compiled programs."""

from __future__ import annotations

import ctypes
import os
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

from castlereg.forks import check_not_forked
from castlereg.notices import warn_user
from castlereg.options import check_integer
from castlereg.training.ending import stop_if_ending

MEMBERS = PartitionSpec("members")
EVERYWHERE = PartitionSpec()

# XLA's older way to compile fused operations, which takes less time.
_QUICK = {"xla_cpu_use_fusion_emitters": False}

_JAX_MIN_SECONDS = 1.0  # JAX's own value of jax_persistent_cache_min_compile_time_secs

_ROOM = 2**30  # bytes of address space that XLA needs to start and compile: 1.0 GB on two cores

_chosen: ContextVar[int | tuple[jax.Device, ...] | None] = ContextVar("castlereg_devices", default=None)


def available_cores() -> int:
    """Count the processor's cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@cache
def prepare_jax() -> None:
    """Give JAX one CPU device per core and a compilation cache, before the first fit.

    The user's settings stay: ``jax_num_cpu_devices``, ``jax_compilation_cache_dir``, and devices that have started.
    """
    _check_room()
    config: Any = jax.config
    if config.jax_num_cpu_devices < 0 and "xla_force_host_platform_device_count" not in os.environ.get("XLA_FLAGS", ""):
        try:
            config.update("jax_num_cpu_devices", available_cores())
        except RuntimeError:
            pass  # the devices have already started: train on them
    if config.jax_compilation_cache_dir is None:
        _use_own_cache()


def _check_room() -> None:
    """Raise if a memory limit leaves too little for XLA, which would end the process without a message."""
    try:
        import resource

        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    except (ImportError, OSError):  # another system
        return
    room = limit - pages * resource.getpagesize()
    if limit != resource.RLIM_INFINITY and room < _ROOM:
        raise MemoryError(
            f"the memory limit (ulimit -v) of {limit / 2**30:.1f} GiB leaves {max(room, 0) / 2**30:.1f} GiB, but XLA "
            f"needs about {_ROOM / 2**30:.0f} GiB; raise the limit"
        )


def _use_own_cache() -> None:
    """Keep compiled programs in the user's cache folder, if it can be written."""
    from platformdirs import user_cache_path

    config: Any = jax.config
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


@contextmanager
def usual_rules() -> Iterator[None]:
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


@contextmanager
def use_devices(devices: int | Sequence[jax.Device] | None = None) -> Iterator[None]:
    """Choose the devices of every fit inside a ``with`` block of this thread.

    Without it, all devices of the process share the networks. If ``jax_default_device`` is set, networks train there.

    Parameters
    ----------
    devices : int or sequence of jax.Device, optional
        Number of devices, or the devices themselves; all by default.

    Examples
    --------
    >>> from castlereg import CastleRegressor, use_devices
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True)
    >>> with use_devices(1):
    ...     model = CastleRegressor(n_members=2, max_epochs=2, random_state=0).fit(X, y)
    """
    if isinstance(devices, Iterable):
        devices = tuple(devices)
        if not devices or not all(isinstance(device, jax.Device) for device in devices):
            raise ValueError(f"devices={devices!r} must be a number, or a list of devices from jax.devices()")
    elif devices is not None:
        check_integer("devices", devices)
        devices = int(devices)
    token = _chosen.set(devices)
    try:
        yield
    finally:
        _chosen.reset(token)


def are_chosen() -> bool:
    """Return whether the user has chosen devices, by :func:`use_devices` or ``jax_default_device``."""
    return _chosen.get() is not None or jax.config.jax_default_device is not None  # type: ignore[attr-defined]


def training_mesh(n_members: int) -> Mesh:
    """Return the devices that share the members: at most one per member."""
    check_not_forked()
    prepare_jax()
    chosen = _chosen.get()
    if chosen is None:
        known = _devices_of_jax()
    elif isinstance(chosen, int):
        known = jax.local_devices()
        if chosen > len(known):
            raise ValueError(f"use_devices({chosen}) needs {chosen} devices, but JAX has {len(known)}: {known}")
        known = known[:chosen]
    else:
        known = list(chosen)
    return _mesh(tuple(known[: max(1, n_members)]))


def _devices_of_jax() -> list[jax.Device]:
    """Return all devices, or those of the user's ``jax_default_device`` (a device or a platform)."""
    default: Any = jax.config.jax_default_device  # type: ignore[attr-defined]
    return [default] if isinstance(default, jax.Device) else jax.local_devices(backend=default)


@cache
def _mesh(devices: tuple[jax.Device, ...]) -> Mesh:
    return Mesh(np.array(devices), ("members",), axis_types=(AxisType.Auto,))


def sharded(mesh: Mesh) -> NamedSharding:
    """Place the leading axis over the devices of a mesh."""
    return NamedSharding(mesh, MEMBERS)


def replicated(mesh: Mesh) -> NamedSharding:
    """Place a copy on every device of a mesh."""
    return NamedSharding(mesh, EVERYWHERE)


def wait_for(array: Any) -> None:
    """Wait until an array is computed; unlike JAX's own wait, Ctrl-C interrupts it immediately."""
    begun = time.perf_counter()
    while not array.is_ready():
        stop_if_ending()
        waited = time.perf_counter() - begun
        time.sleep(min(max(1e-4, waited / 50), 0.02))


def release() -> None:
    """Free unused arrays now; otherwise JAX frees them at its next call, which may be much later."""
    jax.device_put(np.zeros(0, np.float32))


def trim_heap() -> None:
    """Return memory freed by the compiler to the system; glibc would keep tens of megabytes per program."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
    if trim is not None:
        trim(0)


def lanes(mesh: Mesh, members_per_device: int) -> int:
    """Return how many members advance side by side on one device.

    One on a CPU core: a single member keeps it busy, and members that are trained one after the other cost nothing
    once they have finished. All of them on an accelerator, which needs parallel work.
    """
    return 1 if mesh.devices.flat[0].platform == "cpu" else members_per_device


def compiler_options(mesh: Mesh, *, quick: bool = False) -> dict[str, bool]:
    """Return XLA's options for a program; ``quick`` compiles in less time, at the price of slower large operations."""
    if mesh.devices.flat[0].platform != "cpu":
        return {}
    # Each core trains its own members; a matrix product shared among cores would make them wait for each other.
    single_threaded = {"xla_cpu_multi_thread_eigen": False} if mesh.devices.size > 1 else {}
    return single_threaded | (_quick_options() if quick else {})


@cache
def _quick_options() -> dict[str, bool]:
    """Return the options that make compiling quick; none if this version of XLA does not have them."""
    try:
        jax.jit(lambda: 0, compiler_options=_QUICK).lower().compile()
    except jax.errors.JaxRuntimeError:
        return {}
    return _QUICK
