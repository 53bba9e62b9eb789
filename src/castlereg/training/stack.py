"""A stack on its devices: the states of its members in slots, and the host's books on each of them.

Folds, hyperparameters, seeds and bootstrap replicas are all *members* of one stack. They share the table and differ in
their rows, seed and strengths. Each is standardized by its own training rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh
from numpy.typing import NDArray

from castlereg.data.table import Standardization, Table, rounded_up
from castlereg.layout import Layout
from castlereg.monotone import with_signs
from castlereg.network import initialize, mask_inputs, pack, unpack
from castlereg.random_streams import OfNetwork, named_stream
from castlereg.regularizers import Regularizer
from castlereg.regularizers.engine import trained_nodes
from castlereg.regularizers.protocol import check_regularizers
from castlereg.training import sampled
from castlereg.training.devices import replicated, sharded, training_mesh
from castlereg.training.plan import EdgeAction, Member, Plan
from castlereg.training.state import MemberInputs, MemberState, Moving, Shared, Weights, adam

# Epochs that each member had done before a call, and what the call logged: (members, epochs, columns), NaN where no
# epoch was run.
Log = tuple[NDArray[np.int64], NDArray[np.float32]]


@dataclass(frozen=True)
class Setup:
    """What is known of a stack before its first step."""

    table: Table  # rows on the devices
    members: Sequence[Member]
    plan: Plan
    standardization: Standardization  # of every member
    mean_weight: NDArray[np.floating[Any]]  # (members,), of the training rows
    mesh: Mesh
    regularizers: tuple[Regularizer, ...]  # of all members, with strengths of shape (members,)

    @classmethod
    def of(
        cls,
        table: Table,
        members: Sequence[Member],
        plan: Plan,
        standardization: Standardization,
        mean_weight: NDArray[np.floating[Any]],
    ) -> Setup:
        """Choose devices, and stack the regularizers of the members."""
        regularizers = _stacked(members, plan.hidden_layer_sizes, table.inputs.dtype)
        _check_ramps(plan, regularizers)
        return cls(table, members, plan, standardization, mean_weight, training_mesh(len(members)), regularizers)

    @cached_property
    def layout(self) -> Layout:
        """Nodes of the table, with the networks' embedding."""
        return replace(self.table.layout, embedding=self.plan.embedding)

    @property
    def dtype(self) -> Any:
        """Precision of training: that of the table."""
        return self.table.inputs.dtype

    @property
    def nodes(self) -> tuple[int, ...]:
        """Nodes whose sub-networks are trained."""
        return trained_nodes(self.regularizers, self.layout)

    @property
    def n_sampled(self) -> int | None:
        """Sub-networks that each step trains, the targets' included; None for all."""
        wanted = [r.features_per_step for r in self.regularizers if r.features_per_step is not None]
        if not wanted:
            return None
        if max(wanted) > self.layout.n_features:
            raise ValueError(
                f"features_per_step={max(wanted)}, but X has {self.layout.n_features} features: "
                f"give at most {self.layout.n_features}, or None for all"
            )
        return max(wanted) + len(self.layout.targets)

    @property
    def slots_per_device(self) -> int:
        """Members that a device has room for: a power of two."""
        return 1 << (-(-len(self.members) // self.mesh.size) - 1).bit_length()

    @property
    def empty_row(self) -> int:
        """Index of a row that weighs nothing."""
        return rounded_up(len(self.table.inputs) + 1) - 1

    def edge_mask(self) -> NDArray[np.float32]:
        """Which channels may enter which trained sub-network, shape (inputs, trained nodes)."""
        rules = self.table.edges
        allowed = None if rules is None else rules.allowed
        return self.layout.edge_mask(self.table.constant, allowed)[:, list(self.nodes)]

    def edge_masks(self) -> NDArray[Any]:
        """The same for every member, shape (members, inputs, trained nodes), without columns that it does not use."""
        masks = np.repeat(self.edge_mask()[None].astype(self.dtype), len(self.members), axis=0)
        into_targets = [position for position, node in enumerate(self.nodes) if self.layout.nodes[node].target]
        for mask, member in zip(masks, self.members, strict=True):
            if member.used is not None:
                mask[:, into_targets] *= member.used[self.layout.input_nodes][:, None]
        return masks

    def penalized(self) -> NDArray[Any] | None:
        """Which weights sparsity counts, shape (inputs, trained nodes): all but those of required edges."""
        rules = self.table.edges
        if rules is None or not rules.required.any():
            return None
        return (~rules.required[self.layout.input_nodes][:, list(self.nodes)]).astype(self.dtype)

    def shared(self, inputs: Any, weight: Any) -> Shared:
        """Put rows, and what all members share, on every device."""
        node_weight = np.ones(self.layout.n_nodes, self.dtype)
        node_weight[list(self.table.constant)] = 0.0
        counts = (0, self.plan.max_epochs, self.plan.patience, self.plan.warmup)
        shared: Any = Shared(inputs, weight, self.penalized(), node_weight, *map(np.int32, counts))  # type: ignore[arg-type]
        placed: Shared = jax.device_put(shared, replicated(self.mesh))
        return placed

    def schedule(self, first_epoch: int, epochs: int) -> tuple[Any, Any]:
        """Return strengths and factors of the learning rate of the next epochs, leaves of shape (members, epochs)."""
        phases = [self.plan.phase_at(first_epoch + i) for i in range(epochs)]
        done = [min((first_epoch + i - before) / max(phase.epochs, 1), 1.0) for i, (phase, before) in enumerate(phases)]

        def of_strength(path: Any, base: NDArray[Any]) -> NDArray[Any]:
            factors = [phase.factor(path[-1].name, d) for (phase, _), d in zip(phases, done, strict=True)]
            return (base.astype(np.float64)[:, None] * factors).astype(self.dtype)

        rates = [
            1.0 if phase.learning_rate is None else phase.learning_rate(d)
            for (phase, _), d in zip(phases, done, strict=True)
        ]
        of_members = np.repeat(np.array(rates, self.dtype)[None], len(self.members), axis=0)
        return jax.tree_util.tree_map_with_path(of_strength, self.regularizers), of_members

    def validation_rows(self) -> Any:
        """Return every member's validation rows, filled up with the empty row."""
        longest = rounded_up(max(len(m.validation_rows) for m in self.members))
        rows = np.full((len(self.members), longest), self.empty_row, np.int32)
        for filled, member in zip(rows, self.members, strict=True):
            filled[: len(member.validation_rows)] = member.validation_rows
        return rows


class Stack:
    """The members in training: arrays on the devices, and what the host knows of each member."""

    def __init__(self, setup: Setup, states: MemberState | None = None) -> None:
        n = len(setup.members)
        states = initial_states(setup) if states is None else states
        self.setup = setup
        self.active, self.epoch, self.best_loss = np.ones(n, bool), np.array(states.epoch, int), np.full(n, np.inf)
        # Edges that each member may have, shape (members, inputs, trained nodes).
        self.masks = setup.edge_masks()
        self.logs: list[Log] = []  # of every call of the program
        self._slot = _deal(np.arange(n), setup.mesh.size, setup.slots_per_device)
        self.states = self.place(states)

    @property
    def states(self) -> MemberState:
        """What the devices hold; built anew from its leaves, which a single assignment replaces."""
        states: MemberState = jax.tree.unflatten(self._structure, self.leaves[: self._structure.num_leaves])
        return states

    @states.setter
    def states(self, states: MemberState) -> None:
        self.leaves: list[jax.Array] = jax.tree.leaves(states)
        self._structure: Any = jax.tree.structure(states)

    def inputs(self, drawn: tuple[Any, Any, Any], steps: Any, epochs: int) -> MemberInputs:
        """Place what the next call trains on; ``epochs`` is what there is room for."""
        setup = self.setup
        regularizers, rates = setup.schedule(int(self.epoch[self.active].min()), epochs)
        weight: Any = setup.mean_weight
        masks: Any = self.masks
        rows, by = setup.validation_rows(), setup.standardization
        extras: list[Any] = [
            None if value is None else np.full(len(setup.members), value, setup.dtype)
            for value in (setup.plan.averaging, setup.plan.weight_decay)
        ]
        placed: MemberInputs = self.place(
            MemberInputs(*drawn, regularizers, rates, steps, rows, by, weight, masks, *extras)
        )
        return placed

    def place(self, by_member: Any) -> Any:
        """Move arrays with a leading member axis into their slots on the devices."""
        n_slots = self.setup.mesh.size * self.setup.slots_per_device

        def place(array: NDArray[Any]) -> jax.Array:
            slots = np.zeros((n_slots, *array.shape[1:]), array.dtype)
            slots[self._slot] = array
            return jax.device_put(slots, sharded(self.setup.mesh))

        return jax.tree.map(place, by_member)

    def read(self, placed: Any) -> Any:
        """Read copies of arrays in slots, member by member."""
        return jax.tree.map(lambda a: np.asarray(a)[self._slot], placed)

    def record(self, log: Any) -> None:
        """Bring the books up to date after a call."""
        rows, epoch, self.best_loss, self.active = self.read(
            (log, self.states.epoch, self.states.best_loss, self.states.active)
        )
        self.logs.append((self.epoch.copy(), rows))
        self.epoch = epoch.astype(np.int64)
        self._rebalance()

    def stop(self, members: NDArray[np.bool_]) -> None:
        """End the training of some members; their best weights stay."""
        if not (members & self.active).any():
            return
        self.active = self.active & ~members
        self.states = self.states._replace(active=self.place(self.active))

    def keep_edges(self, action: EdgeAction) -> None:
        """Let an action decide which edges every member keeps from now on."""
        layout, rules, linear = self.setup.layout, self.setup.table.edges, not self.setup.plan.hidden_layer_sizes
        states = self.read(self.states)
        for mask, weights in zip(self.masks, states.moving.weights.network.input_weights, strict=True):
            mask *= action(weights, layout, rules, linear)[layout.input_nodes]
        moments = states.moving.moments
        if self.setup.n_sampled is None:
            of_inputs = [moment.network.input_weights for moment in (moments.mu, moments.nu)]
        else:  # laid out by node
            of_inputs = [moment.input_weights.swapaxes(1, 2) for moment in (moments.own.mu, moments.own.nu)]
        averaged = () if states.moving.average is None else (states.moving.average.input_weights,)
        for array in (states.moving.weights.network.input_weights, *averaged, *of_inputs):
            array *= self.masks[..., None]
        self.states = self.place(states)

    def _rebalance(self) -> None:
        """Deal the remaining members out anew when a device has clearly more of them than its share."""
        n_devices, slots = self.setup.mesh.size, self.setup.slots_per_device
        counts = np.bincount(self._slot[self.active] // slots, minlength=n_devices)
        if counts.max() <= 1.25 * -(-int(self.active.sum()) // n_devices):
            return
        states = self.read(self.states)
        self._slot = _deal(np.argsort(~self.active, kind="stable"), n_devices, slots)
        self.states = self.place(states)


def _deal(members: NDArray[np.int64], n_devices: int, slots_per_device: int) -> NDArray[np.int64]:
    """Give each member a slot, dealing them to the devices in turn; return the slot of every member."""
    slot = np.empty(len(members), np.int64)
    turn = np.arange(len(members))
    slot[members] = (turn % n_devices) * slots_per_device + turn // n_devices
    return slot


def _stacked(members: Sequence[Member], hidden_layer_sizes: tuple[int, ...], dtype: Any) -> tuple[Regularizer, ...]:
    """Make one set of regularizers whose strengths have a member axis."""
    first = check_regularizers(members[0].regularizers, hidden_layer_sizes)
    structure: Any = jax.tree.structure(first)
    for number, member in enumerate(members):
        if jax.tree.structure(member.regularizers) != structure:
            raise ValueError(
                f"members of a stack may differ only in strengths, but member 0 has regularizers {first} and member "
                f"{number} has {member.regularizers}: train them in separate stacks"
            )
    stacked: tuple[Regularizer, ...] = jax.tree.map(
        lambda *strengths: np.array(strengths, dtype), *(member.regularizers for member in members)
    )
    return stacked


def _check_ramps(plan: Plan, regularizers: tuple[Regularizer, ...]) -> None:
    paths = jax.tree_util.tree_leaves_with_path(regularizers)
    strengths = sorted({path[-1].name for path, _ in paths})
    for name in (name for phase in plan.phases for name, _, _ in phase.ramps):
        if name not in strengths:
            raise ValueError(f"a phase has a ramp of {name!r}, but the strengths are {', '.join(strengths) or 'none'}")


def initial_states(setup: Setup) -> MemberState:
    """Draw the starting weights of all members, and start everything else."""
    plan, layout, nodes, n = setup.plan, setup.layout, setup.nodes, len(setup.members)
    sizes = plan.hidden_layer_sizes
    starts = []
    for member, mask in zip(setup.members, setup.edge_masks(), strict=True):
        if callable(plan.input_init):
            network = plan.input_init(layout, sizes, member.seed, nodes)
        else:
            start, activation = plan.input_init, plan.activation
            network = initialize(layout, sizes, member.seed, nodes=nodes, input_init=start, activation=activation)
        own = [
            r.start(layout, sizes, len(nodes), named_stream(member.seed, OfNetwork.REGULARIZER_START, type(r).__name__))
            for r in member.regularizers
        ]
        weights = Weights(pack(with_signs(mask_inputs(network, mask), layout)), tuple(state.trained for state in own))
        starts.append((weights, tuple(state.running for state in own)))
    weights, running = jax.tree.map(lambda *arrays: np.stack(arrays).astype(setup.dtype), *starts)

    def moments_of(weights: Weights) -> Any:
        if setup.n_sampled is None:
            return adam.init(weights)
        return sampled.start_moments(adam, unpack(weights.network, plan.form, layout), weights.own)

    shapes = jax.eval_shape(moments_of, jax.tree.map(lambda a: a[0], weights))
    moments = jax.tree.map(lambda a: np.zeros((n, *a.shape), a.dtype), shapes)
    fields: dict[str, Any] = {
        "moving": Moving(weights, moments, running, None if plan.averaging is None else weights.network),
        "rate": np.full(n, plan.learning_rate, setup.dtype),
        "best": weights.network,
        "best_loss": np.full(n, np.inf, setup.dtype),
        "active": np.ones(n, bool),
    }
    fields |= {name: np.zeros(n, np.int32) for name in ("best_epoch", "epoch", "restarts")}
    return MemberState(**fields)
