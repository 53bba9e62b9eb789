"""What training leaves: weights, losses, a history, and warnings of what went wrong."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import jax
import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from castlereg.data.scaling import Standardization
from castlereg.layout import Layout
from castlereg.network import Packed, Parameters, unpack
from castlereg.notices import warn_user
from castlereg.training.members import Schedule
from castlereg.training.program import RATE_AFTER_RESTART, MemberState

Log = tuple[NDArray[np.int64], NDArray[np.float32]]


@dataclass(frozen=True)
class TrainedStack:
    """What training leaves: per member, in the order given.

    Attributes
    ----------
    parameters : Parameters
        Of the best epoch, with a leading member axis.
    standardization : Standardization
        Of each member, from its training rows.
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
    standardization: Standardization
    validation_loss: NDArray[np.float32]
    best_epoch: NDArray[np.int32]
    history: pd.DataFrame
    interrupted: bool

    @classmethod
    def joined(cls, stacks: Sequence[TrainedStack]) -> TrainedStack:
        """Put stacks of the same layout one behind the other."""
        first = np.cumsum([0, *(len(stack.validation_loss) for stack in stacks)])
        histories = [s.history.assign(member=s.history["member"] + n) for s, n in zip(stacks, first[:-1], strict=True)]
        parameters: Parameters = jax.tree.map(lambda *a: np.concatenate(a), *(stack.parameters for stack in stacks))
        standardization: Standardization = jax.tree.map(
            lambda *a: np.concatenate(a), *(stack.standardization for stack in stacks)
        )
        return cls(
            parameters,
            standardization,
            np.concatenate([stack.validation_loss for stack in stacks]),
            np.concatenate([stack.best_epoch for stack in stacks]),
            pd.concat(histories, ignore_index=True),
            any(stack.interrupted for stack in stacks),
        )

    def take(self, members: NDArray[np.int64]) -> TrainedStack:
        """Keep some members, numbered anew in the history."""
        parameters: Parameters = jax.tree.map(lambda a: a[members], self.parameters)
        number = {int(old): new for new, old in enumerate(members)}
        history = self.history[self.history["member"].isin(number)]
        return TrainedStack(
            parameters,
            self.standardization.of_member(members),
            self.validation_loss[members],
            self.best_epoch[members],
            history.assign(member=history["member"].map(number)).reset_index(drop=True),
            self.interrupted,
        )


def unpack_all(packed: Packed, hidden_layer_sizes: tuple[int, ...], layout: Layout) -> Parameters:
    """Unpack a stack of weights into parameters with a leading member axis."""
    members = [unpack(Packed(*one), hidden_layer_sizes, layout.output_width) for one in zip(*packed, strict=True)]
    stacked: Parameters = jax.tree.map(lambda *arrays: np.stack(arrays), *members)
    return stacked


def history_frame(logs: Sequence[Log], columns: Sequence[str]) -> pd.DataFrame:
    """Turn logs into one row per member and epoch.

    Parameters
    ----------
    logs : sequence of (first_epoch, log)
        Epochs that each member had done before a call, shape (members,), and what the call logged,
        shape (members, epochs, columns), NaN where no epoch was run.
    columns : sequence of str

    Returns
    -------
    DataFrame
    """
    frames = []
    for first_epoch, log in logs:
        ran = ~np.isnan(log[..., -1])
        member, epoch = np.nonzero(ran)
        frame = pd.DataFrame(log[ran], columns=list(columns))
        frame.insert(0, "epoch", first_epoch[member] + epoch + 1)
        frame.insert(0, "member", member)
        frames.append(frame)
    if not frames:
        return pd.DataFrame(columns=["member", "epoch", *columns])
    return pd.concat(frames, ignore_index=True).sort_values(["member", "epoch"], ignore_index=True)


def report_restarts(history: pd.DataFrame, states: MemberState, schedule: Schedule) -> None:
    """Warn of epochs that were undone; refuse a stack of which no network ever had a finite loss."""
    for row in history[history["finite"] == 0].itertuples():
        warn_user(
            f"network {row.member}: the loss was not finite in epoch {row.epoch}; went on from epoch {row.epoch - 1} "
            f"with learning rate {row.learning_rate * RATE_AFTER_RESTART:.1g}: a lower learning_rate avoids this",
            ConvergenceWarning,
        )
    failed = np.flatnonzero(~np.isfinite(states.best_loss))
    if len(failed) == 0:
        return
    message = (
        f"network {', '.join(map(str, failed))} had no epoch with a finite loss, at learning rates from "
        f"{schedule.learning_rate:g} down to {float(states.rate[failed[0]]):.1g}: lower learning_rate, reg_lambda or "
        "reg_beta"
    )
    if len(failed) == len(states.best_loss):
        raise FloatingPointError(message)
    warn_user(message, ConvergenceWarning)
