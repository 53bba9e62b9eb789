"""The training loop: draw batches, run a stack until every member has stopped, then collect the best weights."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

import jax
import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from tqdm.auto import tqdm

from castlereg.network import Packed, Parameters, unpack
from castlereg.notices import warn_user
from castlereg.random_streams import OfNetwork, named_stream, network_stream
from castlereg.table.encoding import Encoded, Standardization, padded_size
from castlereg.training.callbacks import Control, Epoch, members_to_stop
from castlereg.training.engines import all_names, engine_for
from castlereg.training.engines.jax_engine import stop_if_exiting, stopped_at_exit, without_jax_checks
from castlereg.training.program import RATE_AFTER_RESTART
from castlereg.training.state import Batches, Member, Plan, Setup, initial_states, log_columns

# Work of one call of an engine, in floating-point operations: a fraction of a second on one core. The progress bar
# then moves, Ctrl-C takes effect and finished members are dropped, at almost no cost.
_WORK_PER_CALL = 4e9
_MOST_EPOCHS_PER_CALL = 16


@without_jax_checks()
@stopped_at_exit()
def train(encoded: Encoded, members: Sequence[Member], plan: Plan, control: Control = Control()) -> TrainedStack:
    """Train a stack of networks.

    Parameters
    ----------
    encoded : Encoded
        Encoded rows of all members.
    members : sequence of Member
        They have the same regularizers, with any strengths.
    plan : Plan
    control : Control
        Callbacks, what Ctrl-C does, and the progress bar.

    Examples
    --------
    >>> import numpy as np
    >>> from castlereg.layout import Layout, Node
    >>> rows = np.random.default_rng(0).normal(size=(40, 3)).astype(np.float32)
    >>> table = Encoded(rows, Layout((Node(), Node(), Node(target=True))))
    >>> member = Member(np.arange(30), np.arange(30, 40), np.random.SeedSequence(0))
    >>> train(table, [member], Plan((4, 4))).validation_loss.shape
    (1,)
    """
    stack, interrupted = Stack(Setup(encoded, members, plan)), False
    with control.progress_bar(len(members) * plan.max_epochs) as bar:
        try:
            _run(stack, control, bar)
        except KeyboardInterrupt:
            _release_lock(bar)
            if control.on_interrupt == "raise":
                raise
            interrupted = True
    result = TrainedStack.of(stack, interrupted)
    stack.engine.close()
    return result


def _run(stack: Stack, control: Control, bar: tqdm[Any]) -> None:
    """Train until every member has stopped."""
    plan, begun = stack.setup.plan, bar.n
    stopped = np.zeros_like(stack.active)

    def epochs_after(done: int) -> int:
        return int(min(stack.epochs_per_call, plan.max_epochs - done, control.next_epoch(done) - done))

    while stack.active.any():
        stop_if_exiting()
        done = int(stack.epoch[stack.active].min())
        epochs = epochs_after(done)
        log = stack.run(epochs, epochs_after(done + epochs))
        try:
            rows = stack.engine.read(log)
        except KeyboardInterrupt:
            if control.on_interrupt == "keep":
                stack.record(stack.engine.read(log))  # the weights are those of its last epoch already
            raise
        stack.record(rows)
        called = control.due(int(stack.epoch.max())) if stack.active.any() else list(control.callbacks)
        if called:
            stopped |= members_to_stop(called, stack.last_epoch(control.stage))
        stack.stop(stopped & np.isfinite(stack.best_loss))  # a member needs weights to keep
        if not stack.active.any():  # this was the last epoch for the other callbacks too
            rest = [callback for callback in control.callbacks if not any(callback is other for other in called)]
            members_to_stop(rest, stack.last_epoch(control.stage))
        bar.set_postfix(validation_loss=f"{stack.best_loss.min():.4g}", active=int(stack.active.sum()))
        bar.n = begun + int(np.where(stack.active, stack.epoch, plan.max_epochs).sum())
        bar.update(0)


def _release_lock(bar: tqdm[Any]) -> None:
    """Release tqdm's lock, which stays held if Ctrl-C arrives while a bar is drawn; other threads would wait."""
    lock = bar.get_lock()
    for part in getattr(lock, "locks", [lock]):
        with suppress(RuntimeError, AssertionError):  # this thread does not hold it
            while True:
                part.release()


# --- what is drawn for every step ---
# On the host, with NumPy: random numbers inside a compiled program triple its compile time.


@dataclass
class BatchStream:
    """The batches of one member.

    A shuffled epoch goes once through the rows in random order; its last batch may be smaller. An epoch of independent
    batches has ``rows // batch_size`` of them.
    """

    rows: NDArray[np.int32]  # training rows, as indices into the table
    batch_size: int
    seed: np.random.SeedSequence
    batches: Batches = "shuffle"
    _row_rng: np.random.Generator = field(init=False)
    _feature_rng: np.random.Generator = field(init=False)

    def __post_init__(self) -> None:
        self._row_rng = network_stream(self.seed, OfNetwork.BATCHES)
        self._feature_rng = network_stream(self.seed, OfNetwork.FEATURES_PER_STEP)

    @property
    def steps(self) -> int:
        """Number of steps in an epoch."""
        if self.batches == "independent":
            return max(1, len(self.rows) // self.batch_size)
        return -(-len(self.rows) // self.batch_size)

    def fill_rows(self, epochs: NDArray[np.int32]) -> None:
        """Write the rows of the next epochs into an array of shape (epochs, steps, batch_size); padding stays."""
        for epoch in epochs.reshape(len(epochs), -1):
            if self.batches == "shuffle":
                epoch[: len(self.rows)] = self._row_rng.permutation(self.rows)
                continue
            for start in range(0, self.steps * self.batch_size, self.batch_size):
                drawn = self._row_rng.permutation(self.rows)[: self.batch_size]
                epoch[start : start + len(drawn)] = drawn

    def fill_features(self, epochs: NDArray[np.int32], n_features: int) -> None:
        """Draw the features of each step, ascending, into an array of shape (epochs, steps, features per step)."""
        chosen = epochs.shape[-1]
        order = np.argsort(self._feature_rng.random((len(epochs) * self.steps, n_features)), axis=1)[:, :chosen]
        epochs[:, : self.steps] = np.sort(order, axis=1).reshape(len(epochs), self.steps, chosen)


class _Draws:
    """Draws of all members for the next epochs, padded to a few shapes: tables of all lengths run the same program."""

    def __init__(self, setup: Setup) -> None:
        self.setup, plan = setup, setup.plan
        self.streams = [
            BatchStream(member.train_rows.astype(np.int32, copy=False), plan.batch_size, member.seed, plan.batches)
            for member in setup.members
        ]
        self.steps = np.array([stream.steps for stream in self.streams], np.int32)  # in an epoch of each member
        self.padded_steps = padded_size(int(self.steps.max()) - 1)
        self._regularizer_rngs = [
            [named_stream(m.seed, OfNetwork.REGULARIZER_DRAWS, type(r).__name__) for r in m.regularizers]
            for m in setup.members
        ]

    def draw(
        self, active: NDArray[np.bool_], epochs: int, padded_epochs: int
    ) -> tuple[NDArray[np.int32], NDArray[np.int32] | None, Any]:
        """Draw rows, sub-networks to train and random numbers, (members, padded epochs, padded steps, ...)."""
        setup, layout = self.setup, self.setup.layout
        shape = (len(setup.members), padded_epochs, self.padded_steps)
        batches = np.full((*shape, setup.plan.batch_size), setup.empty_row, np.int32)
        sampled, numbers = None, None
        if setup.n_sampled is not None:
            sampled = np.zeros((*shape, setup.n_sampled), np.int32)
            sampled[..., -len(layout.targets) :] = layout.targets
        for i in np.flatnonzero(active):
            self.streams[i].fill_rows(batches[i, :epochs])
            if sampled is not None:
                self.streams[i].fill_features(sampled[i, :epochs, :, : -len(layout.targets)], layout.n_features)
            drawn = self._regularizer_numbers(int(i), epochs, shape[1:])
            if numbers is None:
                numbers = jax.tree.map(lambda a: np.zeros((len(setup.members), *a.shape), a.dtype), drawn)
            jax.tree.map(lambda array, numbers_of_epoch, i=i: array.__setitem__(i, numbers_of_epoch), numbers, drawn)
        return batches, sampled, numbers

    def _regularizer_numbers(self, i: int, epochs: int, padded_shape: tuple[int, ...]) -> Any:
        """Draw a member's random numbers, padded to (padded epochs, padded steps, ...)."""
        steps, sizes = self.streams[i].steps, self.setup.plan.hidden_layer_sizes
        pairs = list(zip(self.setup.members[i].regularizers, self._regularizer_rngs[i], strict=True))
        by_epoch = [tuple(r.draw(rng, steps, sizes) for r, rng in pairs) for _ in range(epochs)]

        def padded(*drawn: NDArray[Any]) -> NDArray[Any]:
            out = np.zeros((*padded_shape, *drawn[0].shape[1:]), drawn[0].dtype)
            out[:epochs, :steps] = drawn
            return out

        return jax.tree.map(padded, *by_epoch)


# --- members in training ---


class Stack:
    """Members in training: their states in an engine, and a record of every epoch."""

    def __init__(self, setup: Setup) -> None:
        n = len(setup.members)
        self.setup, self.engine, self.draws = setup, engine_for(setup), _Draws(setup)
        per_epoch = self.draws.padded_steps * setup.operations_per_step * self.engine.members_per_worker
        wanted = int(min(max(_WORK_PER_CALL / per_epoch, 1), _MOST_EPOCHS_PER_CALL))
        self.epochs_per_call = 1 << (wanted.bit_length() - 1)  # a power of two: fewer programs
        self.active, self.epoch, self.best_loss = np.ones(n, bool), np.zeros(n, np.int64), np.full(n, np.inf)
        # Of every call: the epochs of each member before it, and its log, (members, epochs, columns).
        self.logs: list[tuple[NDArray[np.int64], NDArray[np.float32]]] = []
        self._inputs = setup.member_inputs(self.draws.steps)
        self._shared = self.engine.share(setup.shared())
        self._drawn: tuple[Any, Any, Any] | None = None
        self.engine.states = self.engine.place(initial_states(setup))

    def run(self, epochs: int, following: int) -> Any:
        """Start some epochs and return their log, placed; draw the ``following`` ones while the engine works."""
        padded = self.epochs_per_call
        batches, sampled, drawn = self._drawn or self.draws.draw(self.active, epochs, padded)
        done = int(self.epoch[self.active].min())
        rate_factor = np.array([self.setup.plan.rate_factor(done + i) for i in range(padded)], self.setup.dtype)
        inputs: Any = self._inputs._replace(batches=batches, sampled=sampled, drawn=drawn)  # type: ignore[arg-type]
        shared: Any = self._shared._replace(epochs=np.int32(epochs), rate_factor=rate_factor)  # type: ignore[arg-type]
        log = self.engine.run(inputs, shared)
        self._drawn = self.draws.draw(self.active, following, padded) if following else None
        return log

    def record(self, log: NDArray[np.float32]) -> None:
        """Update the record after a call and its log."""
        states = self.engine.states
        self.logs.append((self.epoch, log))
        epoch, self.best_loss, self.active = self.engine.read((states.epoch, states.best_loss, states.active))
        self.epoch = epoch.astype(np.int64)

    def stop(self, members: NDArray[np.bool_]) -> None:
        """End the training of some members; they keep their best weights."""
        if (members & self.active).any():
            self.active = self.active & ~members
            self.engine.states = self.engine.states._replace(active=self.engine.place(self.active))

    def last_epoch(self, stage: str) -> Epoch:
        """Collect the metrics of the last epoch."""
        setup, number = self.setup, int(self.epoch.max())
        first_epoch, log = self.logs[-1]
        columns = log[:, number - 1 - first_epoch.max()].T.copy()
        best_loss, active = self.best_loss.copy(), self.active.copy()
        for array in (columns, best_loss, active):
            array.flags.writeable = False
        metrics = dict(zip(log_columns(setup.regularizers)[:-1], columns, strict=False))  # without "finite"
        names = tuple(member.name or f"network {i}" for i, member in enumerate(setup.members))
        return Epoch(stage, number, setup.plan.max_epochs, names, MappingProxyType(metrics), best_loss, active)

    def history(self) -> pd.DataFrame:
        """Return one row per member and epoch."""
        columns = log_columns(self.setup.regularizers)
        frames = []
        for first_epoch, log in self.logs:
            member, epoch = np.nonzero(~np.isnan(log[..., -1]))  # NaN for epochs that were not run
            frame = pd.DataFrame(log[member, epoch], columns=columns)
            frame.insert(0, "epoch", first_epoch[member] + epoch + 1)
            frame.insert(0, "member", member)
            frames.append(frame)
        if not frames:
            return pd.DataFrame(columns=["member", "epoch", *columns])
        return pd.concat(frames, ignore_index=True).sort_values(["member", "epoch"], ignore_index=True)


@dataclass(frozen=True)
class TrainedStack:
    """Result of training, per member, in the order of the members."""

    parameters: Parameters  # of the best epoch, with a leading member axis
    standardization: Standardization  # of each member, from its training rows
    validation_loss: NDArray[np.float32]  # (members,), at the best epoch; infinite if it was never finite
    best_epoch: NDArray[np.int32]  # (members,), counted from 1
    history: pd.DataFrame  # one row per member and epoch
    interrupted: bool  # whether Ctrl-C ended training early; the networks then have their best weights so far
    engine: str  # name of the engine that trained the members, or of several: "jax, native"; empty without training

    @classmethod
    def of(cls, stack: Stack, interrupted: bool) -> TrainedStack:
        """Collect the best weights of a stack; warn about what the user should know."""
        setup, states, history = stack.setup, stack.engine.read(stack.engine.states), stack.history()
        if interrupted and not np.isfinite(states.best_loss).all():
            raise KeyboardInterrupt("training was interrupted before every network had finished an epoch")
        if interrupted:
            warn_user(
                f"training was interrupted after {int(states.epoch.max())} of at most {setup.plan.max_epochs} epochs; "
                "the networks keep their best weights so far",
                ConvergenceWarning,
            )
        _warn_of_restarts(history, states.best_loss, states.rate, setup.plan.learning_rate)
        members = [unpack(Packed(*arrays), setup.plan.form, setup.layout) for arrays in zip(*states.best, strict=True)]
        return cls(
            parameters=jax.tree.map(lambda *arrays: np.stack(arrays), *members),
            standardization=setup.measured[0],
            validation_loss=states.best_loss,
            best_epoch=states.best_epoch,
            history=history.drop(columns="finite"),
            interrupted=interrupted,
            engine=stack.engine.name,
        )

    @classmethod
    def joined(cls, stacks: Sequence[TrainedStack]) -> TrainedStack:
        """Concatenate stacks of the same layout."""
        first = np.cumsum([0, *(len(stack.validation_loss) for stack in stacks)])
        histories = [s.history.assign(member=s.history["member"] + n) for s, n in zip(stacks, first[:-1], strict=True)]
        fields = jax.tree.map(lambda *a: np.concatenate(a), *(stack._by_member for stack in stacks))
        return cls(
            **fields,
            history=pd.concat(histories, ignore_index=True),
            interrupted=any(stack.interrupted for stack in stacks),
            engine=all_names(stack.engine for stack in stacks),
        )

    def take(self, members: NDArray[np.int64]) -> TrainedStack:
        """Keep some members, and renumber them in the history."""
        number = {int(old): new for new, old in enumerate(members)}
        history = self.history[self.history["member"].isin(number)]
        history = history.assign(member=history["member"].map(number)).reset_index(drop=True)
        fields = jax.tree.map(lambda a: a[members], self._by_member)
        return replace(self, **fields, history=history)

    @property
    def _by_member(self) -> dict[str, Any]:
        names = ("parameters", "standardization", "validation_loss", "best_epoch")
        return {name: getattr(self, name) for name in names}


def _warn_of_restarts(history: pd.DataFrame, best_loss: Any, rate: Any, learning_rate: float) -> None:
    """Warn about epochs that were undone; raise if no network ever had a finite loss."""
    for row in history[history["finite"] == 0].itertuples():
        warn_user(
            f"network {row.member}: the loss was not finite in epoch {row.epoch}; training continued from epoch "
            f"{row.epoch - 1} with learning rate {row.learning_rate * RATE_AFTER_RESTART:.1g}. Set a lower "
            "learning_rate to avoid this",
            ConvergenceWarning,
        )
    failed = np.flatnonzero(~np.isfinite(best_loss))
    if len(failed) == 0:
        return
    message = (
        f"network {', '.join(map(str, failed))} had no epoch with a finite loss at learning rates from "
        f"{learning_rate:g} down to {float(rate[failed[0]]):.1g}; lower learning_rate, reg_lambda or reg_beta"
    )
    if len(failed) == len(best_loss):
        raise FloatingPointError(message)
    warn_user(message, ConvergenceWarning)
