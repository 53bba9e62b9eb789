"""The training loop: run a stack phase by phase until every member has stopped, then collect the best weights."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np
from tqdm.auto import tqdm

from castlereg.data.table import Table
from castlereg.training.devices import release
from castlereg.training.plan import Member, Plan
from castlereg.training.sources import Source, TableSource
from castlereg.training.stack import Setup, Stack
from castlereg.training.trained import TrainedStack


def train(
    rows: Table | Source, members: Sequence[Member], plan: Plan, *, progress: bool | tqdm[Any] = False
) -> TrainedStack:
    """Train a stack.

    Parameters
    ----------
    rows : Table or Source
        A table in memory, or a file that is read in chunks.
    members : sequence of Member
        With the same regularizers, of any strengths.
    plan : Plan
    progress : bool or tqdm
        Show a progress bar, or move one on that counts epochs.

    Returns
    -------
    TrainedStack

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
    stack = Stack(Setup.of(source.table, members, plan, standardization, mean_weight))
    bar: Any = progress
    if isinstance(progress, bool):
        total = len(members) * plan.max_epochs
        bar = tqdm(total=total, desc="training", unit="epoch", disable=not progress, leave=False)
    interrupted = False
    with bar if bar is not progress else nullcontext():
        try:
            _run(stack, source, bar)
        except KeyboardInterrupt:
            interrupted = True
    result = TrainedStack.of(stack, interrupted)
    del stack, source
    release()
    return result


def _run(stack: Stack, source: Source, bar: Any) -> None:
    """Run the phases one after the other."""
    plan, begun = stack.setup.plan, bar.n
    runner = source.runner(stack)

    def finished(share: float = 0) -> Any:
        return begun + np.where(stack.active, stack.epoch + share, plan.max_epochs).sum()

    def within_epoch(share: float) -> None:
        bar.n = round(float(finished(share)), 1)
        bar.update(0)

    while stack.active.any():
        done = int(stack.epoch[stack.active].min())
        for action in plan.actions_at(done):
            stack.keep_edges(action)
        epochs = _epochs_of_call(plan, done, runner.epochs_per_call)
        following = _epochs_of_call(plan, done + epochs, runner.epochs_per_call)
        stack.record(runner.run(epochs, following, within_epoch))
        bar.set_postfix(validation_loss=f"{stack.best_loss.min():.4g}", active=int(stack.active.sum()))
        bar.n = int(finished())
        bar.update(0)


def _epochs_of_call(plan: Plan, done: int, most: int) -> int:
    """Count the epochs of a call: a phase ends with a call."""
    if done >= plan.max_epochs:
        return 0
    phase, before = plan.phase_at(done)
    return min(most, before + phase.epochs - done)
