"""The host's side of training: lay out a stack, run it in chunks of epochs, collect the best weights.

Folds, hyperparameters, seeds and bootstrap replicas are all *members* of one stack. They
share the table and differ in their rows, seed and strengths. Each is standardized by its own training rows.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

import jax
import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from tqdm.auto import tqdm

from castlereg.acyclicity.cut import acyclic_cut
from castlereg.network import InputInit, edge_weights, initialize, mask_inputs, pack
from castlereg.notices import warn_user
from castlereg.objective import trained_nodes
from castlereg.regularizers import Regularizer
from castlereg.regularizers.protocol import check_regularizers
from castlereg.training import program
from castlereg.training.batches import BatchPlan, rounded_up
from castlereg.training.devices import lanes, replicated, sharded
from castlereg.training.members import Member, Schedule, Table
from castlereg.training.mesh import training_mesh
from castlereg.training.placement import check_agreement, on_devices, on_host
from castlereg.training.room import with_empty_rows
from castlereg.training.standardization import measure
from castlereg.training.trained import Log, TrainedStack, history_frame, report_restarts, unpack_all

# Work of one call of the program, in floating-point operations: a fraction of a second on one core, so that the
# progress bar moves, Ctrl-C is heard and finished members leave, at next to no cost.
_WORK_PER_CALL = 4e9
_MOST_EPOCHS_PER_CALL = 16

# Up to this width a program that compiles in little more than half of the time takes 6 or 7 % longer to train; at
# a width of 30 it takes a third longer. Of more rows, training is what takes the time.
_SMALL_WIDTH = 16
_SMALL_ROWS = 20_000

# Share of the epochs after which exact CASTLE cuts the graph and goes on with what is left.
_ACYCLIC_FROM = 0.6

# Purposes of a member's random streams; 0 and 1 are the starting weights, 2 and 3 the batches.
DRAWS, HEADS = 4, 5


def train(
    table: Table,
    members: Sequence[Member],
    *,
    hidden_layer_sizes: tuple[int, ...],
    schedule: Schedule = Schedule(),
    input_init: InputInit = "small",
    released_init: bool = False,
    progress: bool | tqdm[Any] = False,
) -> TrainedStack:
    """Train a stack.

    Parameters
    ----------
    table : Table
    members : sequence of Member
        With the same regularizers, of any strengths.
    hidden_layer_sizes : tuple of int
        Empty for the linear form.
    schedule : Schedule
    input_init, released_init
        See :func:`castlereg.network.initialize`.
    progress : bool or tqdm
        Show a progress bar, or move one on that counts epochs.

    Returns
    -------
    TrainedStack
    """
    stack = _Stack(table, members, hidden_layer_sizes, schedule, input_init, released_init)
    interrupted = False
    total = len(members) * schedule.max_epochs
    bar: Any = progress
    if isinstance(progress, bool):
        bar = tqdm(total=total, desc="training", unit="epoch", disable=not progress, leave=False)
    begun = bar.n
    with bar if bar is not progress else nullcontext():
        try:
            while stack.active.any():
                stack.advance()
                done = np.where(stack.active, stack.epoch, schedule.max_epochs).sum()
                bar.set_postfix(validation_loss=f"{stack.best_loss.min():.4g}", active=int(stack.active.sum()))
                bar.update(begun + int(done) - bar.n)
        except KeyboardInterrupt:
            if stack.mesh.is_multi_process:  # the other processes do not know
                raise
            interrupted = True
    return stack.result(interrupted)


class _Stack:
    """A stack in training: device arrays in slots, and the host's books on each member."""

    def __init__(
        self,
        table: Table,
        members: Sequence[Member],
        hidden_layer_sizes: tuple[int, ...],
        schedule: Schedule,
        input_init: InputInit,
        released_init: bool,
    ) -> None:
        self.table, self.members, self.schedule = table, members, schedule
        self.hidden_layer_sizes = hidden_layer_sizes
        self.regularizers = _stacked(members, hidden_layer_sizes)
        self.nodes = trained_nodes(self.regularizers, table.layout)
        check_agreement(table, members, hidden_layer_sizes, schedule)
        self.mesh = training_mesh(
            len(members), schedule.batch_size, all(one.rows_are_independent for one in self.regularizers)
        )
        self.slots_per_device = _power_of_two(-(-len(members) // self.n_groups))
        self.slot = _deal(np.arange(len(members)), self.n_groups, self.slots_per_device)

        layout = table.layout
        self.plans = [
            BatchPlan(m.train_rows.astype(np.int32, copy=False), schedule.batch_size, m.seed, schedule.draws)
            for m in members
        ]
        self.standardization, mean_weight = measure(table, members)
        rules = table.edges
        self.edge_mask = layout.edge_mask(table.constant, None if rules is None else rules.allowed)[:, list(self.nodes)]
        exact = any(one.ends_acyclic for one in self.regularizers)
        self.acyclic_from = min(round(_ACYCLIC_FROM * schedule.max_epochs), schedule.max_epochs - 1) if exact else 0
        self.empty_row = rounded_up(len(table.inputs) + 1) - 1
        self.shared = self._shared()
        self.n_sampled = self._n_sampled()
        self.steps = np.array([plan.steps for plan in self.plans], np.int32)
        self.steps_rounded = rounded_up(int(self.steps.max()))
        self.epochs_per_call = self._epochs_per_call(hidden_layer_sizes)
        self.fixed: dict[str, Any] = {
            "steps": self.steps,
            "validation_rows": self._validation_rows(members),
            "standardization": self.standardization,
            "mean_weight": mean_weight,
            "edge_mask": np.repeat(self.edge_mask[None], len(members), axis=0),
            "regularizers": self.regularizers,
        }
        self.streams = [[_stream(m, DRAWS, one) for one in m.regularizers] for m in members]
        self.drawn: Any = ()
        starts = [self._start(member, input_init, released_init) for member in members]
        self.active = np.ones(len(members), bool)
        self.epoch = np.zeros(len(members), np.int64)
        self.best_loss = np.full(len(members), np.inf)
        self.logs: list[Log] = []
        self.is_cut = not exact
        self.states = self._place(
            _initial_states(starts, self._moments(starts[0]), self._regularizer_states(), schedule.learning_rate)
        )
        self.next_batches = self._draw(self._epochs_of_call(0))
        self.program = program.compiled(
            table.layout,
            hidden_layer_sizes,
            self.mesh,
            lanes(self.mesh, self.slots_per_device),
            self._is_small,
            program.signature(self.states, self.next_batches, self.fixed, self.shared),
        )

    def _start(self, member: Member, input_init: InputInit, released_init: bool) -> program.Weights:
        """Draw the starting weights of a member: of the network, and of the regularizers' heads."""
        layout, sizes = self.table.layout, self.hidden_layer_sizes
        network = initialize(
            layout, sizes, member.seed, nodes=self.nodes, input_init=input_init, released=released_init
        )
        heads = tuple(
            one.start_heads(layout, sizes, len(self.nodes), _stream(member, HEADS, one)) for one in member.regularizers
        )
        return program.Weights(pack(mask_inputs(network, self.edge_mask)), heads)  # type: ignore[arg-type]

    def _moments(self, start: program.Weights) -> Any:
        """Return the starting moments of Adam of every member."""
        shapes = jax.eval_shape(
            lambda weights: program.start_moments(
                weights,
                self.hidden_layer_sizes,
                self.table.layout.output_width,
                is_sampled=self.n_sampled is not None,
            ),
            start,
        )
        return jax.tree.map(lambda a: np.zeros((len(self.members), *a.shape), a.dtype), shapes)

    def _regularizer_states(self) -> Any:
        """Return the starting states of the regularizers of every member."""
        states = tuple(
            one.start_state(self.table.layout, self.hidden_layer_sizes, len(self.nodes)) for one in self.regularizers
        )
        return jax.tree.map(lambda a: np.repeat(a[None], len(self.members), axis=0), states)

    def _n_sampled(self) -> int | None:
        """Count the sub-networks that each step trains; None for all."""
        wanted = [one.features_per_step for one in self.regularizers if one.features_per_step is not None]
        if not wanted:
            return None
        layout = self.table.layout
        if max(wanted) > layout.n_features:
            raise ValueError(
                f"reconstruct={max(wanted)} features a step, but X has {layout.n_features}: "
                f"give at most {layout.n_features} or 'all'"
            )
        return max(wanted) + len(layout.targets)

    @property
    def n_groups(self) -> int:
        """Groups of devices, each of which has members of its own."""
        return int(self.mesh.shape["members"])

    @property
    def states(self) -> program.MemberState:
        """What the devices hold; built anew from its leaves, which a single assignment replaces in :meth:`_run`."""
        states: program.MemberState = jax.tree.unflatten(self.structure, self.leaves[: self.structure.num_leaves])
        return states

    @states.setter
    def states(self, states: program.MemberState) -> None:
        self.leaves: list[jax.Array] = jax.tree.leaves(states)
        self.structure: Any = jax.tree.structure(states)

    def advance(self) -> None:
        """Run the program once and bring the books up to date."""
        done = int(self.epoch[self.active].min())
        if not self.is_cut and done >= self.acyclic_from:
            self._cut_cycles()
        epochs = self._epochs_of_call(done)
        log = self._run(np.int32(epochs))
        if done + epochs < self.schedule.max_epochs:
            self.next_batches = self._draw(self._epochs_of_call(done + epochs))  # while the devices work
        books = (log, self.states.epoch, self.states.best_loss, self.states.active)
        rows, epoch, self.best_loss, self.active = (array[self.slot] for array in on_host(books, self.mesh))
        self.logs.append((self.epoch.copy(), rows))
        self.epoch = epoch.astype(np.int64)
        self._rebalance()

    def _run(self, epochs: Any) -> jax.Array:
        """Call the program, which takes the states away and returns them changed; return its log."""
        inputs, shared = self._inputs(), self.shared._replace(epochs=epochs)
        returned: list[list[jax.Array]] = []
        try:
            # Ctrl-C that comes while the program runs is heard between two steps of this function. What the program
            # returns is in the list by then, or the program was not called.
            returned.extend(map(self.program, (self.states,), (inputs,), (shared,)))
        finally:
            if returned:
                self.leaves = returned[0]
        return returned[0][-1]

    def _epochs_of_call(self, done: int) -> int:
        """Count the epochs of a call: the last one ends with training, and one ends where the graph is cut."""
        end = self.schedule.max_epochs if self.is_cut or done >= self.acyclic_from else self.acyclic_from
        return min(self.epochs_per_call, end - done)

    def _cut_cycles(self) -> None:
        """Cut every member's graph to one without cycles, for good."""
        layout, rules = self.table.layout, self.table.edges
        states = self._states()
        masks = self.fixed["edge_mask"]
        for mask, weights in zip(masks, states.weights.network.input_weights, strict=True):
            learned = edge_weights(weights, layout, linear=not self.hidden_layer_sizes)
            if np.isfinite(learned).all():
                mask *= (acyclic_cut(learned, None if rules is None else rules.required) > 0)[layout.channel_nodes]
        for part in (states.weights, states.moments.mu, states.moments.nu):
            part.network.input_weights[...] *= masks[..., None]
        self.states = self._place(states)
        self.is_cut = True

    def _inputs(self) -> program.MemberInputs:
        """Place what the next call trains on."""
        batches: tuple[Any, ...] = self.next_batches
        inputs: program.MemberInputs = self._place(program.MemberInputs(*batches, **self.fixed))
        return inputs

    def result(self, interrupted: bool) -> TrainedStack:
        """Collect the best weights; warn about what the user should know."""
        states = self._states()
        history = history_frame(self.logs, program.log_columns(self.regularizers))
        if interrupted and not np.isfinite(states.best_loss).all():
            raise KeyboardInterrupt("training was interrupted before every network had finished an epoch")
        if interrupted:
            warn_user(
                f"training was interrupted after {int(states.epoch.max())} of at most {self.schedule.max_epochs} "
                "epochs: the model is the best so far",
                ConvergenceWarning,
            )
        report_restarts(history, states, self.schedule)
        return TrainedStack(
            parameters=unpack_all(states.best, self.hidden_layer_sizes, self.table.layout),
            standardization=self.standardization,
            validation_loss=states.best_loss,
            best_epoch=states.best_epoch,
            history=history.drop(columns="finite"),
            interrupted=interrupted,
        )

    def _shared(self) -> program.Shared:
        """Put the table on every device, with empty rows up to the rounded length."""
        table, layout = self.table, self.table.layout
        rows = len(table.inputs)
        inputs = with_empty_rows(table.inputs, table.room)
        weight = np.zeros(self.empty_row + 1, np.float32)
        weight[:rows] = 1.0 if table.weight is None else table.weight
        node_weight = np.ones(layout.n_nodes, np.float32)
        node_weight[list(table.constant)] = 0.0
        shared: Any = program.Shared(
            inputs=inputs,  # type: ignore[arg-type]
            weight=weight,  # type: ignore[arg-type]
            penalized=self._penalized(),  # type: ignore[arg-type]
            node_weight=node_weight,  # type: ignore[arg-type]
            epochs=np.int32(0),  # type: ignore[arg-type]
            max_epochs=np.int32(self.schedule.max_epochs),  # type: ignore[arg-type]
            patience=np.int32(self.schedule.patience),  # type: ignore[arg-type]
            warmup=np.int32(max(self.schedule.warmup, self.acyclic_from)),  # type: ignore[arg-type]
            acyclic_from=np.int32(self.acyclic_from),  # type: ignore[arg-type]
        )
        placed: program.Shared = on_devices(shared, replicated(self.mesh))
        return placed

    def _penalized(self) -> NDArray[np.float32] | None:
        """Tell which weights sparsity counts, shape (channels, trained nodes): those of edges that are not required."""
        rules, layout = self.table.edges, self.table.layout
        if rules is None or not rules.required.any():
            return None
        return (~rules.required[layout.channel_nodes][:, list(self.nodes)]).astype(np.float32)

    def _validation_rows(self, members: Sequence[Member]) -> NDArray[np.int32]:
        longest = rounded_up(max(len(m.validation_rows) for m in members))
        rows = np.full((len(members), longest), self.empty_row, np.int32)
        for filled, member in zip(rows, members, strict=True):
            filled[: len(member.validation_rows)] = member.validation_rows
        return rows

    def _epochs_per_call(self, hidden_layer_sizes: tuple[int, ...]) -> int:
        """Power of two such that a call is a fraction of a second, by the size of the problem alone."""
        layout = self.table.layout
        width = hidden_layer_sizes[0] if hidden_layer_sizes else layout.output_width
        trained = len(self.nodes) if self.n_sampled is None else self.n_sampled
        per_row = trained * (4 * layout.n_channels * width + 6 * width * width)
        per_epoch = self.steps_rounded * self.schedule.batch_size * per_row * self.slots_per_device
        wanted = int(min(max(_WORK_PER_CALL / per_epoch, 1), _MOST_EPOCHS_PER_CALL))
        return 1 << (wanted.bit_length() - 1)

    @property
    def _is_small(self) -> bool:
        """Whether compiling takes longer than training; by table and widths alone, to be the same for any stack."""
        widest = max(self.table.layout.n_channels, *self.hidden_layer_sizes, 0)
        return widest <= _SMALL_WIDTH and len(self.table.inputs) <= _SMALL_ROWS

    def _draw(self, epochs: int) -> tuple[NDArray[np.int32], NDArray[np.int32] | None, Any]:
        """Draw the batches and random numbers of the next call for the members that still train."""
        shape = (len(self.plans), self.epochs_per_call, self.steps_rounded)
        batches = np.full((*shape, self.schedule.batch_size), self.empty_row, np.int32)
        sampled = None
        layout = self.table.layout
        if self.n_sampled is not None:
            sampled = np.zeros((*shape, self.n_sampled), np.int32)
            sampled[..., -len(layout.targets) :] = layout.targets
        for i in np.flatnonzero(self.active):
            self.plans[i].fill(batches[i, :epochs], None if sampled is None else sampled[i, :epochs], layout.n_features)
            drawn = self._numbers(int(i), epochs)
            if not jax.tree.leaves(self.drawn):
                self.drawn = jax.tree.map(lambda a: np.zeros((len(self.plans), *a.shape), a.dtype), drawn)
            jax.tree.map(lambda all_drawn, own, i=i: all_drawn.__setitem__(i, own), self.drawn, drawn)
        return batches, sampled, self.drawn

    def _numbers(self, i: int, epochs: int) -> Any:
        """Draw a member's random numbers for one call, shape (epochs, steps, ...) with steps rounded up."""
        steps = int(self.steps[i])
        pairs = list(zip(self.members[i].regularizers, self.streams[i], strict=True))
        by_epoch = [tuple(one.draw(rng, steps, self.hidden_layer_sizes) for one, rng in pairs) for _ in range(epochs)]

        def padded(*drawn: NDArray[Any]) -> NDArray[Any]:
            out = np.zeros((self.epochs_per_call, self.steps_rounded, *drawn[0].shape[1:]), drawn[0].dtype)
            out[:epochs, :steps] = drawn
            return out

        return jax.tree.map(padded, *by_epoch)

    def _place(self, by_member: Any) -> Any:
        """Move arrays with a leading member axis into their slots on the devices."""
        n_slots = self.n_groups * self.slots_per_device

        def place(array: NDArray[Any]) -> jax.Array:
            slots = np.zeros((n_slots, *array.shape[1:]), array.dtype)
            slots[self.slot] = array
            placed: jax.Array = on_devices(slots, sharded(self.mesh))
            return placed

        return jax.tree.map(place, by_member)

    def _states(self) -> Any:
        """Read a copy of the states, member by member."""
        return jax.tree.map(lambda a: a[self.slot], on_host(self.states, self.mesh))

    def _rebalance(self) -> None:
        """Deal the remaining members out anew when a group has clearly more of them than its share."""
        counts = np.bincount(self.slot[self.active] // self.slots_per_device, minlength=self.n_groups)
        share = -(-int(self.active.sum()) // self.n_groups)
        if counts.max() <= 1.25 * share:
            return
        states = self._states()
        order = np.argsort(~self.active, kind="stable")
        self.slot = _deal(order, self.n_groups, self.slots_per_device)
        self.states = self._place(states)


def _deal(members: NDArray[np.int64], n_groups: int, slots_per_device: int) -> NDArray[np.int64]:
    """Give each member a slot, dealing them to the groups in turn; return the slot of every member."""
    slot = np.empty(len(members), np.int64)
    turn = np.arange(len(members))
    slot[members] = (turn % n_groups) * slots_per_device + turn // n_groups
    return slot


def _power_of_two(n: int) -> int:
    return 1 << (n - 1).bit_length()


def _stacked(members: Sequence[Member], hidden_layer_sizes: tuple[int, ...]) -> tuple[Regularizer, ...]:
    """Make one set of regularizers whose strengths have a member axis."""
    first = check_regularizers(members[0].regularizers, hidden_layer_sizes)
    kinds: Any = jax.tree.structure(first)
    for number, member in enumerate(members):
        if jax.tree.structure(member.regularizers) != kinds:
            raise ValueError(
                f"members of one stack differ in strengths alone, but member 0 has regularizers {first} and member "
                f"{number} has {member.regularizers}: train them in separate stacks"
            )
    stacked: tuple[Regularizer, ...] = jax.tree.map(
        lambda *strengths: np.array(strengths, np.float32), *(member.regularizers for member in members)
    )
    return stacked


def _stream(member: Member, purpose: int, regularizer: Regularizer) -> np.random.Generator:
    """Return a member's own random stream for a regularizer, whatever others stand beside it."""
    name = zlib.crc32(type(regularizer).__name__.encode())
    seed = member.seed
    return np.random.default_rng(np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, purpose, name)))


def _initial_states(
    starts: Sequence[program.Weights], moments: Any, regularizer_states: Any, learning_rate: float
) -> program.MemberState:
    n = len(starts)
    weights = jax.tree.map(lambda *arrays: np.stack(arrays), *starts)
    fields: dict[str, Any] = {
        "weights": weights,
        "moments": moments,
        "regularizer_states": regularizer_states,
        "rate": np.full(n, learning_rate, np.float32),
        "best": weights.network,
        "best_loss": np.full(n, np.inf, np.float32),
        "best_epoch": np.zeros(n, np.int32),
        "epoch": np.zeros(n, np.int32),
        "restarts": np.zeros(n, np.int32),
        "active": np.ones(n, bool),
    }
    return program.MemberState(**fields)
