"""Where programs run, and where their compiled form is kept."""

from __future__ import annotations

import os
import sys
from functools import cache
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

MEMBERS = PartitionSpec("members")
EVERYWHERE = PartitionSpec()

# Fused operations compiled in XLA's older way.
_QUICK = {"xla_cpu_use_fusion_emitters": False}


@cache
def prepare_jax() -> None:
    """Give JAX one CPU device per core and a compilation cache, unless the user has set these.

    Runs once, before the first training. Nothing is changed when JAX has already started its
    devices, or when ``jax_num_cpu_devices`` or ``jax_compilation_cache_dir`` (or their
    environment variables) are set. Processes that ``jax.distributed`` has joined keep the devices they were given.
    """
    config: Any = jax.config
    given = (
        "xla_force_host_platform_device_count" in os.environ.get("XLA_FLAGS", "") or jax.distributed.is_initialized()
    )
    if config.jax_num_cpu_devices < 0 and not given:
        try:
            config.update("jax_num_cpu_devices", _available_cores())
        except RuntimeError:
            pass  # the devices have started: train on those there are
    if config.jax_compilation_cache_dir is None:
        config.update("jax_compilation_cache_dir", str(_cache_folder() / "jax"))
        config.update("jax_persistent_cache_min_compile_time_secs", 0.1)


def sharded(mesh: Mesh) -> NamedSharding:
    """Place the leading axis over the members axis of a mesh."""
    return NamedSharding(mesh, MEMBERS)


def replicated(mesh: Mesh) -> NamedSharding:
    """Place a copy on every device of a mesh."""
    return NamedSharding(mesh, EVERYWHERE)


def release() -> None:
    """Let go of tables that nobody trains on: JAX does so at its next call, which may be long after."""
    jax.device_put(np.zeros(0, np.float32))


def lanes(mesh: Mesh, members_per_device: int) -> int:
    """Members that advance side by side on one device.

    A core is as busy with one member as with several, and members that are
    trained one after the other cost nothing once they have finished; an accelerator needs them all at once.
    """
    return 1 if mesh.devices.flat[0].platform == "cpu" else members_per_device


def compiler_options(mesh: Mesh, *, quick: bool = False) -> dict[str, bool]:
    """Return XLA's options for a program on a mesh.

    Devices that are cores of one process are busy with their own members: a matrix product that is shared out among
    them makes each wait for the others.

    Parameters
    ----------
    mesh : Mesh
    quick : bool
        Whether the program is to be compiled in less time, at the price of slower large operations.
    """
    if mesh.devices.flat[0].platform != "cpu":
        return {}
    processes = {device.process_index for device in mesh.devices.flat}
    own = {"xla_cpu_multi_thread_eigen": False} if mesh.devices.size > len(processes) else {}
    return own | (_quick_options() if quick else {})


@cache
def _quick_options() -> dict[str, bool]:
    """Return what makes compiling quick, or nothing if this version of XLA does not know it."""
    try:
        jax.jit(lambda: 0, compiler_options=_QUICK).lower().compile()
    except jax.errors.JaxRuntimeError:
        return {}
    return _QUICK


def _available_cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _cache_folder() -> Path:
    """Return the user's cache folder for castlereg, by the custom of the platform."""
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local"))
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "castlereg"
