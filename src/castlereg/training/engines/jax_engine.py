"""The JAX engine: states in slots on the devices of a mesh, and one compiled program for all members."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
from numpy.typing import NDArray

from castlereg.training import program
from castlereg.training.devices import lanes, release, replicated, sharded, training_mesh, wait_for
from castlereg.training.engines.protocol import EngineName
from castlereg.training.setup import Setup
from castlereg.training.state import MemberInputs, MemberState, Shared

# Quick compilation takes little more than half the time. Up to this width, training then takes 6 or 7 % longer; at a
# width of 30 it takes a third longer. With more rows than this, training takes most of the time.
_SMALL_WIDTH = 16
_SMALL_ROWS = 20_000


class JaxEngine:
    """Engine that shares the members of a stack among JAX devices."""

    name: EngineName = "jax"

    def __init__(self, setup: Setup) -> None:
        n = len(setup.members)
        self.setup = setup
        self.mesh = training_mesh(n)
        self.members_per_worker = 1 << (-(-n // self.mesh.size) - 1).bit_length()  # slots of a device: a power of two
        self._slot = _deal(np.arange(n), self.mesh.size, self.members_per_worker)

    @property
    def states(self) -> MemberState:
        """States on the devices, rebuilt from their leaves, which a single assignment replaces."""
        states: MemberState = jax.tree.unflatten(self._structure, self._leaves[: self._structure.num_leaves])
        return states

    @states.setter
    def states(self, states: MemberState) -> None:
        self._leaves: list[jax.Array] = jax.tree.leaves(states)
        self._structure: Any = jax.tree.structure(states)

    @property
    def lanes(self) -> int:
        """Members that advance side by side on one device."""
        return lanes(self.mesh, self.members_per_worker)

    def place(self, by_member: Any) -> Any:
        """Move arrays with a leading member axis into their slots on the devices."""
        return self._placed(by_member, self._slot)

    def read(self, placed: Any) -> Any:
        """Read copies of arrays in slots, member by member, once they are computed."""
        for array in jax.tree.leaves(placed):
            wait_for(array)
        return jax.tree.map(lambda a: np.asarray(a)[self._slot], placed)

    def share(self, shared: Shared) -> Shared:
        """Put what all members share on every device."""
        placed: Shared = jax.device_put(shared, replicated(self.mesh))
        return placed

    def run(self, inputs: MemberInputs, shared: Shared) -> Any:
        """Start the program on the devices, and return its log."""
        self.rebalance()
        arguments = self.states, self.place(inputs), shared
        call = program.compiled(
            self.setup.layout,
            self.setup.plan.form,
            self.mesh,
            self.lanes,
            _is_small(self.setup),
            program.signature(*arguments),
        )
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
        """Release the states."""
        self._leaves = []
        release()

    def rebalance(self) -> None:
        """Redistribute the remaining members if a device has clearly more of them than its share."""
        active, n_devices = self.read(self.states.active), self.mesh.size
        counts = np.bincount(self._slot[active] // self.members_per_worker, minlength=n_devices)
        if counts.max() <= 1.25 * -(-int(active.sum()) // n_devices):
            return
        slot = _deal(np.argsort(~active, kind="stable"), n_devices, self.members_per_worker)
        leaves = jax.tree.leaves(self._placed(self.read(self.states), slot))
        self._slot, self._leaves = slot, leaves

    def _placed(self, by_member: Any, slot: NDArray[np.int64]) -> Any:
        def place(array: NDArray[Any]) -> jax.Array:
            slots = np.zeros((self.mesh.size * self.members_per_worker, *array.shape[1:]), array.dtype)
            slots[slot] = array
            return jax.device_put(slots, sharded(self.mesh))

        return jax.tree.map(place, by_member)


def _deal(members: NDArray[np.int64], n_devices: int, slots_per_device: int) -> NDArray[np.int64]:
    """Distribute members over the slots of devices, one device after the other; return the slot of each member."""
    slot = np.empty(len(members), np.int64)
    turn = np.arange(len(members))
    slot[members] = (turn % n_devices) * slots_per_device + turn // n_devices
    return slot


def _is_small(setup: Setup) -> bool:
    """Return whether compiling takes longer than training, by table and widths only: the same for any stack."""
    widest = max(setup.layout.n_inputs, *setup.plan.hidden_layer_sizes, 0)
    return widest <= _SMALL_WIDTH and len(setup.table.inputs) <= _SMALL_ROWS
