"""Which devices train a stack: its networks dealt over groups of devices, the rows of a batch over those of a group."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache

import jax
import numpy as np
from jax.sharding import AxisType, Mesh

from castlereg.options import check_integer
from castlereg.training.devices import prepare_jax

# Rows of a batch below which an accelerator is not given a share of its own: a step then costs less than the sum of
# the gradients over devices. A cautious guess, see docs/devices.md.
_LEAST_ROWS = 512


@dataclass(frozen=True)
class _Choice:
    """What the user asked for; None for what is left to :func:`training_mesh`."""

    devices: int | tuple[jax.Device, ...] | None = None
    rows: int | None = None


_choice: ContextVar[_Choice] = ContextVar("castlereg_devices", default=_Choice())  # noqa: B039


@contextmanager
def use_devices(devices: int | Sequence[jax.Device] | None = None, *, rows: int | None = None) -> Iterator[None]:
    """Choose the devices of every fit inside a ``with`` block of this thread.

    Without it, networks are dealt over all devices. Accelerators that are left over take shares of the rows of
    large batches; cores do not.

    Parameters
    ----------
    devices : int or sequence of jax.Device, optional
        How many devices of each process, or which; all by default.
    rows : int, optional
        Devices over which the rows of each network's batches are split. Rows stay together, whatever is asked,
        beside a regularizer for which they belong together, see
        :attr:`castlereg.regularizers.Regularizer.rows_are_independent`.

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
            raise ValueError(f"devices={devices!r} must be a number or some of jax.devices()")
    elif devices is not None:
        check_integer("devices", devices)
        devices = int(devices)
    if rows is not None:
        check_integer("rows", rows)
    token = _choice.set(_Choice(devices, rows))
    try:
        yield
    finally:
        _choice.reset(token)


def training_mesh(n_members: int, batch_size: int, splits_rows: bool) -> Mesh:
    """Lay members over groups of devices, and the rows of a batch over the devices of a group.

    Parameters
    ----------
    n_members : int
    batch_size : int
    splits_rows : bool
        Whether devices may each take some rows of a batch.

    Returns
    -------
    Mesh
        With the axes ``members`` and ``rows``. In one process there are at most as many groups as members; joined
        processes all have their part in it, members or not.
    """
    devices = chosen_devices()
    rows = _rows_per_batch(devices, n_members, batch_size) if splits_rows else 1
    groups = [devices[first : first + rows] for first in range(0, len(devices) - rows + 1, rows)]
    if not _several_processes(devices):
        return _mesh(tuple(groups[: max(1, n_members)]))
    left_out = {device.process_index for device in devices[len(groups) * rows :]} - {
        d.process_index for d in groups[-1]
    }
    if left_out:
        raise ValueError(
            f"use_devices(rows={rows}) leaves out process {min(left_out)}: choose a number that divides the "
            f"{len(devices)} devices"
        )
    return _mesh(tuple(_processes_in_turn(groups)))


def chosen_devices() -> tuple[jax.Device, ...]:
    """Return the devices that the user chose, or all."""
    prepare_jax()
    wanted = _choice.get().devices
    if not isinstance(wanted, int):
        return tuple(jax.devices()) if wanted is None else wanted
    of_process = [[d for d in jax.devices() if d.process_index == i] for i in range(jax.process_count())]
    fewest = min(map(len, of_process))
    if wanted > fewest:
        raise ValueError(f"use_devices({wanted}), but JAX has {fewest}: {of_process[jax.process_index()]}")
    return tuple(device for own in of_process for device in own[:wanted])


def everywhere(devices: Sequence[jax.Device]) -> Mesh | None:
    """Return a mesh of devices of all processes; None when all of them are this process's own."""
    return _mesh(tuple((device,) for device in devices)) if _several_processes(devices) else None


def _rows_per_batch(devices: Sequence[jax.Device], n_members: int, batch_size: int) -> int:
    """Count the devices of a group: what the user asked for, or those that are left over if it is worth it."""
    asked, n = _choice.get().rows, len(devices)
    if asked is not None:
        if asked > n:
            raise ValueError(f"use_devices(rows={asked}), but there are {n} devices: {devices}")
        return asked
    if devices[0].platform == "cpu":
        return 1
    most = min(n // n_members, batch_size // _LEAST_ROWS)
    return max((r for r in range(1, most + 1) if n % r == 0), default=1)


def _several_processes(devices: Sequence[jax.Device]) -> bool:
    """Tell whether devices are those of all processes, or of this one alone; refuse anything between."""
    owners = {device.process_index for device in devices}
    if owners == {jax.process_index()}:
        return False
    if len(owners) < jax.process_count():
        raise ValueError(
            f"the devices that were chosen belong to processes {sorted(owners)} of {jax.process_count()}: choose "
            "devices of this process alone (jax.local_devices()) or of every process"
        )
    return True


def _processes_in_turn(groups: list[tuple[jax.Device, ...]]) -> list[tuple[jax.Device, ...]]:
    """Order groups so that few members are not all on the first process: its first group, the next one's first, ..."""
    seen: dict[int, int] = {}
    turns = []
    for group in groups:
        process = group[0].process_index
        seen[process] = seen.get(process, 0) + 1
        turns.append((seen[process], process))
    return [group for _, group in sorted(zip(turns, groups, strict=True), key=lambda pair: pair[0])]


@cache
def _mesh(groups: tuple[tuple[jax.Device, ...], ...]) -> Mesh:
    return Mesh(np.array(groups), ("members", "rows"), axis_types=(AxisType.Auto, AxisType.Auto))
