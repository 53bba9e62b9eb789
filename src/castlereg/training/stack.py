"""The host's side of training: lay out a stack, run it in chunks of epochs, collect the best weights.

Folds, hyperparameters, seeds and bootstrap replicas are all *members* of one stack. They
share the table and differ in their rows, seed and strengths. Each is standardized by its own training rows.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import jax
import numpy as np
import pandas as pd
from jax.sharding import Mesh
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from tqdm.auto import tqdm

from castlereg.layout import Layout
from castlereg.network import InputInit, Packed, Parameters, initialize, pack, unpack
from castlereg.objective import Objective, Strengths, Structure
from castlereg.training import program
from castlereg.training.batches import BatchPlan, Draws, rounded_up
from castlereg.training.devices import lanes, members_mesh, replicated, sharded

# Work of one call of the program, in floating-point operations: a fraction of a second on one core, so that the
# progress bar moves, Ctrl-C is heard and finished members leave, at next to no cost.
_WORK_PER_CALL = 4e9
_MOST_EPOCHS_PER_CALL = 16


@dataclass(frozen=True)
class Table:
    """Encoded rows.

    Parameters
    ----------
    inputs : array of float32, shape (rows, channels)
        Numeric channels on any scale near one; 0 or 1 for binary and categorical ones.
    layout : Layout
    weight : array of float32, shape (rows,), optional
        Positive row weights; all alike by default.
    constant : tuple of int
        Nodes that get no edges.
    """

    inputs: NDArray[np.float32]
    layout: Layout
    weight: NDArray[np.float32] | None = None
    constant: tuple[int, ...] = ()


@dataclass(frozen=True)
class Member:
    """One network of a stack.

    Parameters
    ----------
    train_rows, validation_rows : array of int
        Indices into the table; a row may occur more than once.
    seed : SeedSequence
        Decides the starting weights and the batches.
    reg_lambda, reg_beta : float
        Factors of eq. 5 and 6.
    """

    train_rows: NDArray[np.int64]
    validation_rows: NDArray[np.int64]
    seed: np.random.SeedSequence
    reg_lambda: float = 1.0
    reg_beta: float = 0.01


@dataclass(frozen=True)
class Schedule:
    """How every member is trained.

    Parameters
    ----------
    learning_rate : float
        Of Adam.
    batch_size : int
    max_epochs : int
    patience : int
        Epochs without a lower validation loss after which a member stops.
    warmup : int
        Epochs before the best epoch and patience count (50 in the released code).
    draws : {"shuffle", "independent"}
        How batches are drawn, see :class:`castlereg.training.batches.BatchPlan`.
    """

    learning_rate: float = 1e-3
    batch_size: int = 32
    max_epochs: int = 200
    patience: int = 30
    warmup: int = 0
    draws: Draws = "shuffle"


@dataclass(frozen=True)
class TrainedStack:
    """What training leaves: per member, in the order given.

    Attributes
    ----------
    parameters : Parameters
        Of the best epoch, with a leading member axis.
    shift, scale : array of shape (members, channels)
        Standardized channels are ``(encoded - shift) * scale``.
    validation_loss : array of shape (members,)
        At the best epoch; infinite for a member that never had a finite loss.
    best_epoch : array of int, shape (members,)
        Counted from 1.
    history : DataFrame
        One row per member and epoch.
    interrupted : bool
        Whether Ctrl-C ended training early.
    """

    parameters: Parameters
    shift: NDArray[np.float32]
    scale: NDArray[np.float32]
    validation_loss: NDArray[np.float32]
    best_epoch: NDArray[np.int32]
    history: pd.DataFrame
    interrupted: bool

    def take(self, members: NDArray[np.int64]) -> TrainedStack:
        """Keep some members, numbered anew in the history."""
        parameters: Parameters = jax.tree.map(lambda a: a[members], self.parameters)
        number = {int(old): new for new, old in enumerate(members)}
        history = self.history[self.history["member"].isin(number)]
        return TrainedStack(
            parameters,
            self.shift[members],
            self.scale[members],
            self.validation_loss[members],
            self.best_epoch[members],
            history.assign(member=history["member"].map(number)).reset_index(drop=True),
            self.interrupted,
        )


def train(
    objective: Objective,
    table: Table,
    members: Sequence[Member],
    *,
    hidden_layer_sizes: tuple[int, ...],
    schedule: Schedule = Schedule(),
    reconstruct: int | Literal["all"] = "all",
    input_init: InputInit = "small",
    released_init: bool = False,
    progress: bool = False,
) -> TrainedStack:
    """Train a stack.

    Parameters
    ----------
    objective : Objective
    table : Table
    members : sequence of Member
    hidden_layer_sizes : tuple of int
        Empty for the linear form.
    schedule : Schedule
    reconstruct : int or "all"
        Features that are reconstructed in each step.
    input_init, released_init
        See :func:`castlereg.network.initialize`.
    progress : bool
        Show a progress bar.

    Returns
    -------
    TrainedStack
    """
    stack = _Stack(objective, table, members, hidden_layer_sizes, schedule, reconstruct, input_init, released_init)
    interrupted = False
    bar = tqdm(total=len(members) * schedule.max_epochs, desc="training", unit="epoch", disable=not progress, leave=False)
    with bar:
        try:
            while stack.active.any():
                stack.advance()
                done = np.where(stack.active, stack.epoch, schedule.max_epochs).sum()
                bar.set_postfix(validation_loss=f"{stack.best_loss.min():.4g}", active=int(stack.active.sum()))
                bar.update(int(done) - bar.n)
        except KeyboardInterrupt:
            interrupted = True
    return stack.result(interrupted)


class _Stack:
    """A stack in training: device arrays in slots, and the host's books on each member."""

    def __init__(
        self,
        objective: Objective,
        table: Table,
        members: Sequence[Member],
        hidden_layer_sizes: tuple[int, ...],
        schedule: Schedule,
        reconstruct: int | Literal["all"],
        input_init: InputInit,
        released_init: bool,
    ) -> None:
        self.objective, self.table, self.schedule = objective, table, schedule
        self.hidden_layer_sizes = hidden_layer_sizes
        self.mesh = members_mesh(len(members))
        self.slots_per_device = _power_of_two(-(-len(members) // self.n_devices))
        self.slot = _deal(np.arange(len(members)), self.n_devices, self.slots_per_device)
        self.program = program.compiled(objective, hidden_layer_sizes, self.mesh, lanes(self.mesh, self.slots_per_device))

        layout = table.layout
        self.plans = [
            BatchPlan(m.train_rows.astype(np.int32), schedule.batch_size, _batch_rng(m.seed), schedule.draws)
            for m in members
        ]
        self.shift, self.scale, mean_weight = _standardization(table, members)
        self.empty_row = rounded_up(len(table.inputs) + 1) - 1
        self.shared = self._shared()
        self.n_sampled = None if reconstruct == "all" else reconstruct + len(layout.targets)
        self.steps = np.array([plan.steps for plan in self.plans], np.int32)
        self.steps_rounded = rounded_up(int(self.steps.max()))
        self.epochs_per_call = self._epochs_per_call(hidden_layer_sizes)
        self.fixed = {
            "steps": self.steps,
            "validation_rows": self._validation_rows(members),
            "shift": self.shift,
            "scale": self.scale,
            "mean_weight": mean_weight,
            "strengths": Strengths(
                np.array([m.reg_lambda for m in members], np.float32),  # type: ignore[arg-type]
                np.array([m.reg_beta for m in members], np.float32),  # type: ignore[arg-type]
            ),
        }
        starts = [
            pack(
                initialize(
                    layout,
                    hidden_layer_sizes,
                    m.seed,
                    nodes=objective.nodes,
                    input_init=input_init,
                    released=released_init,
                )
            )
            for m in members
        ]
        self.active = np.ones(len(members), bool)
        self.epoch = np.zeros(len(members), np.int64)
        self.best_loss = np.full(len(members), np.inf)
        self.logs: list[tuple[NDArray[np.int64], NDArray[np.float32]]] = []
        self.states = self._place(_initial_states(starts, schedule.learning_rate))
        self.next_batches = self._draw()

    @property
    def n_devices(self) -> int:
        return int(self.mesh.devices.size)

    def advance(self) -> None:
        """Run the program once and bring the books up to date."""
        left = self.schedule.max_epochs - int(self.epoch[self.active].min())
        shared = self.shared._replace(epochs=np.int32(min(self.epochs_per_call, left)))
        inputs = self._place(program.MemberInputs(*self.next_batches, **self.fixed))
        self.states, log = self.program(self.states, inputs, shared)
        if left > self.epochs_per_call:
            self.next_batches = self._draw()  # while the devices work
        rows = np.asarray(log)[self.slot]
        self.logs.append((self.epoch.copy(), rows))
        self.epoch = np.asarray(self.states.epoch)[self.slot].astype(np.int64)
        self.best_loss = np.asarray(self.states.best_loss)[self.slot]
        self.active = np.asarray(self.states.active)[self.slot]
        self._rebalance()

    def result(self, interrupted: bool) -> TrainedStack:
        """Collect the best weights; warn about what the user should know."""
        states = jax.tree.map(lambda a: np.asarray(a)[self.slot], self.states)
        history = self._history()
        if interrupted and not np.isfinite(states.best_loss).all():
            raise KeyboardInterrupt("training was interrupted before every network had finished an epoch")
        if interrupted:
            warnings.warn(
                f"training was interrupted after {int(states.epoch.max())} of at most {self.schedule.max_epochs} epochs: "
                "the model is the best so far",
                ConvergenceWarning,
                stacklevel=4,
            )
        _report_restarts(history, states, self.schedule)
        return TrainedStack(
            parameters=_unpack_all(states.best, self.hidden_layer_sizes, self.table.layout),
            shift=self.shift,
            scale=self.scale,
            validation_loss=states.best_loss,
            best_epoch=states.best_epoch,
            history=history.drop(columns="finite"),
            interrupted=interrupted,
        )

    def _shared(self) -> program.Shared:
        """Put the table on every device, with empty rows up to the rounded length."""
        table, layout = self.table, self.table.layout
        rows = len(table.inputs)
        inputs = np.zeros((self.empty_row + 1, layout.n_channels), np.float32)
        inputs[:rows] = table.inputs
        weight = np.zeros(self.empty_row + 1, np.float32)
        weight[:rows] = 1.0 if table.weight is None else table.weight
        node_weight = np.ones(layout.n_nodes, np.float32)
        node_weight[list(table.constant)] = 0.0
        shared: Any = program.Shared(
            inputs=inputs,  # type: ignore[arg-type]
            weight=weight,  # type: ignore[arg-type]
            structure=Structure(layout.edge_mask(table.constant), node_weight),  # type: ignore[arg-type]
            epochs=np.int32(0),  # type: ignore[arg-type]
            max_epochs=np.int32(self.schedule.max_epochs),  # type: ignore[arg-type]
            patience=np.int32(self.schedule.patience),  # type: ignore[arg-type]
            warmup=np.int32(self.schedule.warmup),  # type: ignore[arg-type]
        )
        placed: program.Shared = jax.device_put(shared, replicated(self.mesh))
        return placed

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
        trained = len(self.objective.nodes) if self.n_sampled is None else self.n_sampled
        per_row = trained * (4 * layout.n_channels * width + 6 * width * width)
        per_epoch = self.steps_rounded * self.schedule.batch_size * per_row * self.slots_per_device
        wanted = int(min(max(_WORK_PER_CALL / per_epoch, 1), _MOST_EPOCHS_PER_CALL))
        return 1 << (wanted.bit_length() - 1)

    def _draw(self) -> tuple[NDArray[np.int32], NDArray[np.int32] | None]:
        """Draw the batches of the next call for the members that still train."""
        shape = (len(self.plans), self.epochs_per_call, self.steps_rounded)
        batches = np.full((*shape, self.schedule.batch_size), self.empty_row, np.int32)
        sampled = None
        layout = self.table.layout
        if self.n_sampled is not None:
            sampled = np.zeros((*shape, self.n_sampled), np.int32)
            sampled[..., -len(layout.targets) :] = layout.targets
        for i in np.flatnonzero(self.active):
            self.plans[i].fill(batches[i], None if sampled is None else sampled[i], layout.n_features)
        return batches, sampled

    def _place(self, by_member: Any) -> Any:
        """Move arrays with a leading member axis into their slots on the devices."""
        n_slots = self.n_devices * self.slots_per_device

        def place(array: NDArray[Any]) -> jax.Array:
            slots = np.zeros((n_slots, *array.shape[1:]), array.dtype)
            slots[self.slot] = array
            return jax.device_put(slots, sharded(self.mesh))

        return jax.tree.map(place, by_member)

    def _rebalance(self) -> None:
        """Deal the remaining members out anew when a device has clearly more of them than its share."""
        counts = np.bincount(self.slot[self.active] // self.slots_per_device, minlength=self.n_devices)
        share = -(-int(self.active.sum()) // self.n_devices)
        if counts.max() <= 1.25 * share:
            return
        states = jax.tree.map(lambda a: np.asarray(a)[self.slot], self.states)
        order = np.argsort(~self.active, kind="stable")
        self.slot = _deal(order, self.n_devices, self.slots_per_device)
        self.states = self._place(states)

    def _history(self) -> pd.DataFrame:
        """Turn the logs into one row per member and epoch."""
        frames = []
        columns = list(program.log_columns(self.objective))
        for first_epoch, log in self.logs:
            ran = ~np.isnan(log[..., -1])
            member, epoch = np.nonzero(ran)
            frame = pd.DataFrame(log[ran], columns=columns)
            frame.insert(0, "epoch", first_epoch[member] + epoch + 1)
            frame.insert(0, "member", member)
            frames.append(frame)
        if not frames:
            return pd.DataFrame(columns=["member", "epoch", *columns])
        return pd.concat(frames, ignore_index=True).sort_values(["member", "epoch"], ignore_index=True)


def _deal(members: NDArray[np.int64], n_devices: int, slots_per_device: int) -> NDArray[np.int64]:
    """Give each member a slot, dealing them to the devices in turn; return the slot of every member."""
    slot = np.empty(len(members), np.int64)
    turn = np.arange(len(members))
    slot[members] = (turn % n_devices) * slots_per_device + turn // n_devices
    return slot


def _power_of_two(n: int) -> int:
    return 1 << (n - 1).bit_length()


def _batch_rng(seed: np.random.SeedSequence) -> np.random.Generator:
    """Return the stream of a member's batches, apart from those of its starting weights."""
    return np.random.default_rng(np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, 2)))


def _standardization(
    table: Table, members: Sequence[Member]
) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float32]]:
    """Centre every channel and give every node unit variance, on each member's own training rows.

    The channels of one node are divided by one number, the root of their summed variances, so that a
    categorical column weighs as much as a numeric one and its rare levels do not grow large.
    A node that does not vary on these rows is multiplied by zero.
    """
    layout = table.layout
    shift = np.empty((len(members), layout.n_channels), np.float32)
    scale = np.empty_like(shift)
    mean_weight = np.ones(len(members), np.float32)
    known: dict[bytes, int] = {}
    for i, member in enumerate(members):
        same = known.setdefault(member.train_rows.tobytes(), i)
        if same != i:  # the same rows with other strengths
            shift[i], scale[i], mean_weight[i] = shift[same], scale[same], mean_weight[same]
            continue
        rows = table.inputs[member.train_rows].astype(np.float64)
        weight = np.ones(len(rows)) if table.weight is None else table.weight[member.train_rows].astype(np.float64)
        mean_weight[i] = weight.mean()
        mean = np.average(rows, axis=0, weights=weight)
        variance = np.bincount(layout.channel_nodes, np.average((rows - mean) ** 2, axis=0, weights=weight))
        varies = variance > 1e-12
        by_node = np.where(varies, 1 / np.sqrt(np.where(varies, variance, 1.0)), 0.0)
        shift[i], scale[i] = mean, by_node[layout.channel_nodes]
    return shift, scale, mean_weight


def _initial_states(starts: Sequence[Packed], learning_rate: float) -> program.MemberState:
    n = len(starts)
    weights = jax.tree.map(lambda *arrays: np.stack(arrays), *starts)
    moments = jax.tree.map(
        lambda a: np.zeros((n, *a.shape), a.dtype), jax.eval_shape(program.adam.init, starts[0])
    )
    fields: dict[str, Any] = {
        "weights": weights,
        "moments": moments,
        "rate": np.full(n, learning_rate, np.float32),
        "best": weights,
        "best_loss": np.full(n, np.inf, np.float32),
        "best_epoch": np.zeros(n, np.int32),
        "epoch": np.zeros(n, np.int32),
        "restarts": np.zeros(n, np.int32),
        "active": np.ones(n, bool),
    }
    return program.MemberState(**fields)


def _unpack_all(packed: Packed, hidden_layer_sizes: tuple[int, ...], layout: Layout) -> Parameters:
    """Unpack a stack of weights into parameters with a leading member axis."""
    members = [unpack(Packed(*one), hidden_layer_sizes, layout.output_width) for one in zip(*packed, strict=True)]
    stacked: Parameters = jax.tree.map(lambda *arrays: np.stack(arrays), *members)
    return stacked


def _report_restarts(history: pd.DataFrame, states: program.MemberState, schedule: Schedule) -> None:
    """Warn of epochs that were undone; refuse a stack of which no network ever had a finite loss."""
    for row in history[history["finite"] == 0].itertuples():
        warnings.warn(
            f"network {row.member}: the loss was not finite in epoch {row.epoch}; went on from epoch {row.epoch - 1} "
            f"with learning rate {row.learning_rate * program.RATE_AFTER_RESTART:.1g}. A lower learning_rate avoids this.",
            ConvergenceWarning,
            stacklevel=5,
        )
    failed = np.flatnonzero(~np.isfinite(states.best_loss))
    if len(failed) == 0:
        return
    message = (
        f"network {', '.join(map(str, failed))} had no epoch with a finite loss, at learning rates from "
        f"{schedule.learning_rate:g} down to {float(states.rate[failed[0]]):.1g}: lower learning_rate, reg_lambda or reg_beta"
    )
    if len(failed) == len(states.best_loss):
        raise FloatingPointError(message)
    warnings.warn(message, ConvergenceWarning, stacklevel=5)
