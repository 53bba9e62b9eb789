"""Arrays on the way to the devices of a mesh and back, in one process or several that ``jax.distributed`` has joined.

Joined processes all run the same program on the same host arrays. Each places the parts that its own devices hold, and
all read the whole: what the host decides by, it decides everywhere alike.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from functools import cache
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from numpy.typing import NDArray

from castlereg.data.table import Table
from castlereg.training.devices import replicated
from castlereg.training.members import Member, Schedule
from castlereg.training.mesh import chosen_devices, everywhere


def on_devices(tree: Any, sharding: NamedSharding) -> Any:
    """Place host arrays, of which every process has the whole."""
    if sharding.is_fully_addressable:
        return jax.device_put(tree, sharding)

    def place(array: Any) -> jax.Array:
        whole = np.asarray(array)
        return jax.make_array_from_callback(whole.shape, sharding, lambda part: whole[part])

    return jax.tree.map(place, tree)


def on_host(tree: Any, mesh: Mesh) -> Any:
    """Read whole arrays, in every process."""
    if not mesh.is_multi_process:
        return jax.tree.map(np.asarray, tree)
    return jax.tree.map(lambda a: np.asarray(a.addressable_data(0)), _copier(mesh)(tree))


@cache
def _copier(mesh: Mesh) -> Any:
    return jax.jit(lambda tree: tree, out_shardings=replicated(mesh))


def least(number: int) -> int:
    """Return the least of what the processes that train together have found."""
    mesh = everywhere(chosen_devices())
    return number if mesh is None else int(_of_all([number], mesh, np.int32).min())


def check_agreement(
    table: Table, members: Sequence[Member], hidden_layer_sizes: tuple[int, ...], schedule: Schedule
) -> None:
    """Refuse to train with processes that were given other rows, seeds or settings: each would wait for the others."""
    mesh = everywhere(chosen_devices())
    if mesh is None:
        return
    rows = [row for member in members for row in (member.train_rows, member.validation_rows)]
    seeds = [(member.seed.entropy, member.seed.spawn_key) for member in members]
    strengths = [jax.tree.leaves(member.regularizers) for member in members]
    parts = {
        "rows": _checksum(table.inputs, table.weight, *rows),
        "seeds (random_state)": zlib.crc32(repr(seeds).encode()),
        "settings": zlib.crc32(repr((table.layout, strengths, hidden_layer_sizes, schedule)).encode()),
    }
    of_all = _of_all(list(parts.values()), mesh, np.uint32)
    different = [name for name, numbers in zip(parts, of_all.T, strict=True) if (numbers != numbers[0]).any()]
    if different:
        raise ValueError(
            f"processes joined by jax.distributed were given different {' and '.join(different)}: call fit with the "
            "same arguments in each, or train in each alone inside use_devices(jax.local_devices())"
        )


def _of_all(numbers: list[int], mesh: Mesh, dtype: Any) -> NDArray[Any]:
    """Collect numbers from the process of every device, shape (devices, numbers)."""
    sharding = NamedSharding(mesh, PartitionSpec(("members", "rows")))
    own = np.array([numbers], dtype)
    collected: NDArray[Any] = on_host(
        jax.make_array_from_callback((mesh.size, len(numbers)), sharding, lambda part: own), mesh
    )
    return collected


def _checksum(*arrays: NDArray[Any] | None) -> int:
    total = 0
    for array in arrays:
        if array is not None:
            total = zlib.crc32(np.ascontiguousarray(array).data, total)
    return total
