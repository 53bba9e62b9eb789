"""The training loop: run a stack phase by phase until every member has stopped, then collect the best weights."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Literal

import jax
import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from tqdm.auto import tqdm

from castlereg.layout import Layout
from castlereg.network import Form, Packed, Parameters, unpack
from castlereg.notices import warn_user
from castlereg.table.table import Standardization, Table
from castlereg.training.callbacks import Callback, Epoch, asked_to_stop, due, next_epoch
from castlereg.training.devices import usual_rules
from castlereg.training.ending import stop_if_ending, stopped_at_exit
from castlereg.training.engines.choice import all_names, engine_for
from castlereg.training.plan import Member, Plan
from castlereg.training.program import RATE_AFTER_RESTART, log_columns
from castlereg.training.setup import Setup
from castlereg.training.sources import Source, TableSource
from castlereg.training.stack import Stack

OnInterrupt = Literal["raise", "keep"]


@usual_rules()
@stopped_at_exit()
def train(
    rows: Table | Source,
    members: Sequence[Member],
    plan: Plan,
    *,
    progress: bool | tqdm[Any] = False,
    on_interrupt: OnInterrupt = "raise",
    stage: str = "training",
    callbacks: Sequence[Callback] = (),
) -> TrainedStack:
    """Train a stack of networks.

    Parameters
    ----------
    rows : Table or Source
        A table in memory, or a file that is read in chunks.
    members : sequence of Member
        They have the same regularizers, with any strengths.
    plan : Plan
    progress : bool or tqdm
        Whether to show a progress bar; or a bar to update, which counts epochs.
    on_interrupt : {"raise", "keep"}
        Whether Ctrl-C raises KeyboardInterrupt, or ends training with the best weights so far and a warning.
    stage : str
        Name of the stack for callbacks.
    callbacks : sequence of Callback
        Called after epochs; they may stop members.

    Examples
    --------
    >>> import numpy as np
    >>> from castlereg.layout import Layout, Node
    >>> rows = np.random.default_rng(0).normal(size=(40, 3)).astype(np.float32)
    >>> table = Table(rows, Layout((Node(), Node(), Node(target=True))))
    >>> member = Member(np.arange(30), np.arange(30, 40), np.random.SeedSequence(0))
    >>> train(table, [member], Plan((4, 4))).validation_loss.shape
    (1,)
    """
    source: Source = TableSource(rows) if isinstance(rows, Table) else rows
    members, standardization, mean_weight = source.prepared(members)
    setup = Setup.of(source.table, members, plan, standardization, mean_weight)
    stack = Stack(setup, engine_for(setup, in_memory=source.in_memory))
    bar: Any = progress
    if isinstance(progress, bool):
        total = len(members) * plan.max_epochs
        bar = tqdm(total=total, desc="training", unit="epoch", disable=not progress, leave=False)
    interrupted = False
    with bar if bar is not progress else nullcontext():
        try:
            _run(stack, source, bar, on_interrupt, stage, callbacks)
        except KeyboardInterrupt:
            _free_lock(bar)
            if on_interrupt == "raise":
                raise
            interrupted = True
    result = TrainedStack.of(stack, interrupted)
    stack.engine.close()
    return result


def _run(
    stack: Stack,
    source: Source,
    bar: Any,
    on_interrupt: OnInterrupt,
    stage: str,
    callbacks: Sequence[Callback],
) -> None:
    """Run the phases in order."""
    plan, begun = stack.setup.plan, bar.n
    runner = source.runner(stack)
    stopped = np.zeros_like(stack.active)

    def finished(share: float = 0) -> Any:
        return begun + np.where(stack.active, stack.epoch + share, plan.max_epochs).sum()

    def within_epoch(share: float) -> None:
        bar.n = round(float(finished(share)), 1)
        bar.update(0)

    while stack.active.any():
        stop_if_ending()
        done = int(stack.epoch[stack.active].min())
        for action in plan.actions_at(done):
            stack.keep_edges(action)
        epochs = _epochs_of_call(plan, done, runner.epochs_per_call, callbacks)
        following = _epochs_of_call(plan, done + epochs, runner.epochs_per_call, callbacks)
        log = runner.run(epochs, following, within_epoch)
        try:
            rows = stack.engine.read(log)
        except KeyboardInterrupt:
            if on_interrupt == "keep":
                stack.record(stack.engine.read(log))  # the weights are those of its last epoch already
            raise
        stack.record(rows)
        called = due(callbacks, int(stack.epoch.max()), is_last=not stack.active.any())
        if called:
            stopped |= asked_to_stop(called, _last_epoch(stack, stage))
        stack.stop(stopped & np.isfinite(stack.best_loss))  # a member needs weights to keep
        if not stack.active.any() and len(called) < len(callbacks):  # this was the last epoch for the others too
            asked_to_stop([c for c in callbacks if not any(c is d for d in called)], _last_epoch(stack, stage))
        bar.set_postfix(validation_loss=f"{stack.best_loss.min():.4g}", active=int(stack.active.sum()))
        bar.n = int(finished())
        bar.update(0)


def _free_lock(bar: tqdm[Any]) -> None:
    """Release tqdm's lock, which stays held if Ctrl-C arrives while a bar is drawn; other threads would wait."""
    lock = bar.get_lock()
    for part in getattr(lock, "locks", [lock]):
        with suppress(RuntimeError, AssertionError):  # this thread does not hold it
            while True:
                part.release()


def _epochs_of_call(plan: Plan, done: int, most: int, callbacks: Sequence[Callback]) -> int:
    """Return the number of epochs of a call, up to the end of a phase or the next callback."""
    if done >= plan.max_epochs:
        return 0
    phase, before = plan.phase_at(done)
    return int(min(most, before + phase.epochs - done, next_epoch(callbacks, done) - done))


def _last_epoch(stack: Stack, stage: str) -> Epoch:
    """Collect the metrics of the last epoch that a stack has logged."""
    setup, number = stack.setup, int(stack.epoch.max())
    first_epoch, log = stack.logs[-1]
    *values, _ = log[:, number - 1 - first_epoch.max()].T.copy()
    *columns, _ = log_columns(setup.regularizers)  # without the last one, "finite"
    metrics = {name: _fixed(column) for name, column in zip(columns, values, strict=True)}
    names = tuple(member.name or f"network {i}" for i, member in enumerate(setup.members))
    best_loss, active = _fixed(stack.best_loss.copy()), _fixed(stack.active.copy())
    return Epoch(stage, number, setup.plan.max_epochs, names, MappingProxyType(metrics), best_loss, active)


def _fixed(array: NDArray[Any]) -> NDArray[Any]:
    array.flags.writeable = False
    return array


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
        setup, states = stack.setup, stack.engine.read(stack.engine.states)
        history = history_of(stack)
        if interrupted and not np.isfinite(states.best_loss).all():
            raise KeyboardInterrupt("training was interrupted before every network had finished an epoch")
        if interrupted:
            warn_user(
                f"training was interrupted after {int(states.epoch.max())} of at most {setup.plan.max_epochs} epochs; "
                "the networks keep their best weights so far",
                ConvergenceWarning,
            )
        _report_restarts(history, states.best_loss, states.rate, setup.plan.learning_rate)
        return cls(
            parameters=unpacked(states.best, setup.plan.form, setup.layout),
            standardization=setup.standardization,
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


def unpacked(packed: Packed, form: Form, layout: Layout) -> Parameters:
    """Unpack a stack of weights into parameters with a leading member axis."""
    members = [unpack(Packed(*arrays), form, layout) for arrays in zip(*packed, strict=True)]
    stacked: Parameters = jax.tree.map(lambda *arrays: np.stack(arrays), *members)
    return stacked


def history_of(stack: Stack) -> pd.DataFrame:
    """Turn the logs of a stack into one row per member and epoch."""
    columns = log_columns(stack.setup.regularizers)
    frames = []
    for first_epoch, log in stack.logs:
        ran = ~np.isnan(log[..., -1])
        member, epoch = np.nonzero(ran)
        frame = pd.DataFrame(log[ran], columns=columns)
        frame.insert(0, "epoch", first_epoch[member] + epoch + 1)
        frame.insert(0, "member", member)
        frames.append(frame)
    if not frames:
        return pd.DataFrame(columns=["member", "epoch", *columns])
    return pd.concat(frames, ignore_index=True).sort_values(["member", "epoch"], ignore_index=True)


def _report_restarts(history: pd.DataFrame, best_loss: Any, rate: Any, learning_rate: float) -> None:
    """Warn about epochs that were undone; raise if no network ever had a finite loss."""
    warn_of_restarts(history)
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


def warn_of_restarts(history: pd.DataFrame) -> None:
    """Warn about epochs that were undone."""
    for row in history[history["finite"] == 0].itertuples():
        warn_user(
            f"network {row.member}: the loss was not finite in epoch {row.epoch}; training continued from epoch "
            f"{row.epoch - 1} with learning rate {row.learning_rate * RATE_AFTER_RESTART:.1g}. Set a lower "
            "learning_rate to avoid this",
            ConvergenceWarning,
        )
