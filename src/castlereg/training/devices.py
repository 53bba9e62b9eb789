"""Where programs run, and where their compiled form is kept."""

from __future__ import annotations

import os
import sys
from functools import cache
from pathlib import Path
from typing import Any

import jax
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

MEMBERS = PartitionSpec("members")
EVERYWHERE = PartitionSpec()


@cache
def prepare_jax() -> None:
    """Give JAX one CPU device per core and a compilation cache, unless the user has set these.

    Runs once, before the first training. Nothing is changed when JAX has already started its
    devices, or when ``jax_num_cpu_devices`` or ``jax_compilation_cache_dir`` (or their
    environment variables) are set.
    """
    config: Any = jax.config
    forced = "xla_force_host_platform_device_count" in os.environ.get("XLA_FLAGS", "")
    if config.jax_num_cpu_devices < 0 and not forced:
        try:
            config.update("jax_num_cpu_devices", _available_cores())
        except RuntimeError:
            pass  # the devices have started: train on those there are
    if config.jax_compilation_cache_dir is None:
        config.update("jax_compilation_cache_dir", str(_cache_folder() / "jax"))
        config.update("jax_persistent_cache_min_compile_time_secs", 0.1)


def members_mesh(n_members: int) -> Mesh:
    """Lay members over the devices: as many devices as there are members, at most all.

    Parameters
    ----------
    n_members : int

    Returns
    -------
    Mesh
        With the one axis ``members``.
    """
    prepare_jax()
    devices = jax.devices()[: max(1, min(n_members, len(jax.devices())))]
    return _mesh(tuple(devices))


@cache
def _mesh(devices: tuple[jax.Device, ...]) -> Mesh:
    return jax.make_mesh((len(devices),), ("members",), axis_types=(AxisType.Auto,), devices=devices)


def sharded(mesh: Mesh) -> NamedSharding:
    """Place the leading axis over the devices of a mesh."""
    return NamedSharding(mesh, MEMBERS)


def replicated(mesh: Mesh) -> NamedSharding:
    """Place a copy on every device of a mesh."""
    return NamedSharding(mesh, EVERYWHERE)


def lanes(mesh: Mesh, members_per_device: int) -> int:
    """Members that advance side by side on one device.

    A core is as busy with one member as with several, and members that are
    trained one after the other cost nothing once they have finished; an accelerator needs them all at once.
    """
    return 1 if mesh.devices.flat[0].platform == "cpu" else members_per_device


def compiler_options(mesh: Mesh) -> dict[str, bool]:
    """Return XLA's options for a program on a mesh.

    Devices that are cores are busy with their own members: a matrix product that is shared out among them makes
    each wait for the others.
    """
    cores = mesh.devices.size > 1 and mesh.devices.flat[0].platform == "cpu"
    return {"xla_cpu_multi_thread_eigen": False} if cores else {}


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
