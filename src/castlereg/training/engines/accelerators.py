"""Detect whether JAX trains on an accelerator by default, without starting JAX if it has none."""

from __future__ import annotations

import os
from functools import cache
from importlib.metadata import entry_points
from importlib.util import find_spec

import jax

from castlereg.forks import has_started
from castlereg.training.devices import prepare_jax

# Environment variables and modules that add devices to JAX, in addition to its plugins.
_VARIABLES = ("PJRT_NAMES_AND_LIBRARY_PATHS", "TPU_LIBRARY_PATH")
_MODULES = ("jax_plugins", "libtpu")


def has_accelerator() -> bool:
    """Return whether JAX's default device is an accelerator."""
    platforms = jax.config.jax_platforms  # type: ignore[attr-defined]
    if not has_started():
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
