"""Fits within the number of cores that a benchmark allows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import jax

from castlereg.training.devices import prepare_jax, use_devices


@contextmanager
def at_most(cores: int | None) -> Iterator[None]:
    """Train on at most this many cores; a single network may still use the threads of others for its matrix products.

    Parameters
    ----------
    cores : int, optional
        No limit by default, and none on accelerators.

    Examples
    --------
    >>> from castlereg.training.devices import training_mesh
    >>> with at_most(1):
    ...     training_mesh(n_members=4).devices.size
    1
    """
    prepare_jax()
    devices = jax.local_devices()
    if cores is None or cores >= len(devices) or devices[0].platform != "cpu":
        yield
    else:
        with use_devices(max(1, int(cores))):
            yield
