"""Training of all folds and candidates as members of one stack, and the choice among them."""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import jax
import numpy as np
from numpy.typing import NDArray
from tqdm.auto import tqdm

from castlereg.layout import Layout
from castlereg.notices import warn_user
from castlereg.regularizers import Castle, Regularizer
from castlereg.regularizers.engine import trained_nodes
from castlereg.table.table import Table
from castlereg.training import Member, Plan, TrainedStack, phases_for, train
from castlereg.training.callbacks import Callback, Epoch
from castlereg.training.loop import OnInterrupt
from castlereg.training.sources import Source

Candidate = tuple[Regularizer, ...]


@dataclass(frozen=True)
class FoldGrid:
    """Networks trained on every fold with every candidate."""

    # Candidates trained on all folds; after Ctrl-C with "keep", there may be fewer than requested.
    candidates: list[Candidate]
    stacks: list[TrainedStack]  # the networks of each candidate, fold by fold

    @cached_property
    def losses(self) -> NDArray[np.float64]:
        """Validation loss of each network at its best epoch, shape (candidates, folds)."""
        return np.stack([stack.validation_loss for stack in self.stacks]).astype(np.float64)

    @property
    def best(self) -> int:
        """Index of the candidate with the lowest mean validation loss."""
        return choose(-self.losses)

    def of(self, folds: NDArray[np.int64]) -> FoldGrid:
        """Return some of the folds, such as those of one split."""
        return FoldGrid(self.candidates, [stack.take(folds) for stack in self.stacks])

    def trained(self, candidate: int) -> NDArray[np.int64]:
        """Return the folds on which a candidate's network had a finite loss."""
        return np.flatnonzero(np.isfinite(self.losses[candidate]))

    def networks(self, candidate: int, folds: NDArray[np.int64]) -> TrainedStack:
        """Return a candidate's networks of some folds."""
        return self.stacks[candidate].take(folds)


def choose(scores: NDArray[np.float64], strengths: Sequence[tuple[float, ...]] | None = None) -> int:
    """Choose a candidate by its mean score over folds.

    Parameters
    ----------
    scores : array of shape (candidates, folds)
        Higher is better.
    strengths : sequence of tuple of float, optional
        For the one-standard-error rule: choose the strongest candidate whose mean is within one standard error of the
        best one. By default, choose the best one.

    Examples
    --------
    >>> import numpy as np
    >>> scores = np.array([[-1.0, -1.2], [-1.05, -1.2], [-3.0, -3.0]])
    >>> choose(scores)
    0
    >>> choose(scores, strengths=[(0.01,), (0.1,), (1.0,)])
    1
    """
    means = scores.mean(axis=1)
    if not np.isfinite(
        means
    ).any():  # every candidate has failed folds: choose by the fewest of them, then the best mean
        finite = np.isfinite(scores)
        sums = np.where(finite, scores, 0.0).sum(axis=1)
        return max(range(len(scores)), key=lambda i: (finite[i].sum(), sums[i]))
    best = int(np.where(np.isfinite(means), means, -np.inf).argmax())
    if strengths is None:
        return best
    n_folds = scores.shape[1]
    error = scores[best].std(ddof=1) / np.sqrt(n_folds) if n_folds > 1 else 0.0
    near = [i for i in range(len(scores)) if means[i] >= means[best] - error]
    return max(near, key=lambda i: (strengths[i], means[i]))


def strengths_of(candidate: Sequence[Regularizer]) -> dict[str, float]:
    """Return a candidate's strengths by name: ``L2.strength``; those of CASTLE are ``reg_beta`` and ``reg_lambda``.

    Examples
    --------
    >>> from castlereg.regularizers import L2, Castle
    >>> strengths_of([Castle(0.1), L2(0.01)])
    {'reg_beta': 0.1, 'reg_lambda': 1.0, 'L2.strength': 0.01}
    """
    named: dict[str, float] = {}
    for regularizer in candidate:
        if isinstance(regularizer, Castle):
            named |= {"reg_beta": float(regularizer.reg_beta), "reg_lambda": float(regularizer.reg_lambda)}
            continue
        for path, leaf in jax.tree_util.tree_leaves_with_path(regularizer):
            named[f"{type(regularizer).__name__}.{path[-1].name}"] = float(leaf)
    return named


def train_folds(
    rows: Table | Source,
    folds: Sequence[tuple[NDArray[Any], NDArray[Any]]],
    plan: Plan,
    *,
    candidates: Sequence[Sequence[Regularizer]] = ((),),
    seeds: Sequence[np.random.SeedSequence],
    progress: bool | tqdm[Any] = False,
    most_members: int | None = None,
    on_interrupt: OnInterrupt = "raise",
    used: Sequence[NDArray[np.bool_]] | None = None,
    halving: bool = False,
    stage: str = "training",
    fold_names: Sequence[str] | None = None,
    callbacks: Sequence[Callback] = (),
) -> FoldGrid:
    """Train one network per fold and candidate in a single run.

    Early stopping uses the rows that a fold leaves out. Networks of one fold start from the same weights and train on
    the same batches, whatever their regularizers. A grid that does not fit into memory is trained in parts. The
    networks of a stack are independent, so this does not change the result, except that ``halving`` compares only the
    candidates of one part.

    Parameters
    ----------
    rows : Table or Source
    folds : sequence of (train_rows, validation_rows)
    plan : Plan
        Training plan. Its epochs are divided into the phases that each candidate needs.
    candidates : sequence of sequence of Regularizer
        Candidates with the same regularizers in different strengths share one program.
    seeds : sequence of SeedSequence
        One seed per fold.
    progress : bool or tqdm
        Whether to show a progress bar for the whole grid; or an existing bar that counts epochs.
    most_members : int, optional
        Maximum number of networks to train together; by default as many as fit into memory.
    on_interrupt : {"raise", "keep"}
        Whether Ctrl-C raises KeyboardInterrupt, or keeps the candidates that were trained on all folds so far.
    used : sequence of array of bool, shape (nodes,), optional
        Mask of the columns that predict the targets in each fold; all by default.
    halving : bool
        Whether to stop candidates that are clearly worse than the best one, see :func:`clearly_worse`.
    stage : str
        Name of the run for callbacks.
    fold_names : sequence of str, optional
        Names of the folds for callbacks; ``"fold 0"`` and so on by default.
    callbacks : sequence of Callback
        Functions called after epochs; they can stop networks.
    """
    grid = [tuple(candidate) for candidate in candidates]
    total = len(grid) * len(folds) * plan.max_epochs
    done: list[list[TrainedStack]] = [[] for _ in grid]
    columns = [None] * len(folds) if used is None else used
    bar: Any = progress
    if isinstance(progress, bool):
        bar = tqdm(total=total, desc="training", unit="epoch", leave=False, disable=not progress)
    with bar if bar is not progress else nullcontext():
        parts = _parts(grid, len(folds), rows, plan, most_members)
        names = _names(grid, [f"fold {k}" for k in range(len(folds))] if fold_names is None else fold_names)
        for number, part in enumerate(parts):
            members = [Member(*folds[k], seeds[k], grid[i], columns[k], names[i][k]) for i, k in part]
            phases = phases_for(grid[part[0][0]], plan.max_epochs, plan.warmup, plan.schedule)
            rule = (_Halving(len(folds), plan.max_epochs),) if halving else ()
            try:
                stack = train(
                    rows,
                    members,
                    replace(plan, phases=phases),
                    progress=bar,
                    on_interrupt=on_interrupt,
                    stage=stage if len(parts) == 1 else f"{stage}, part {number + 1} of {len(parts)}",
                    callbacks=(*callbacks, *rule),
                )
            except KeyboardInterrupt:
                if on_interrupt == "raise":
                    raise
                break  # in the first epoch
            of_candidate = np.array([i for i, _ in part])
            for i in np.unique(of_candidate):
                done[i].append(stack.take(np.flatnonzero(of_candidate == i)))
            if stack.interrupted:
                break
    trained = [i for i, stacks in enumerate(done) if sum(len(s.validation_loss) for s in stacks) == len(folds)]
    if not trained:
        raise KeyboardInterrupt("training was interrupted before any candidate was trained on all folds")
    if len(trained) < len(grid):
        warn_user(f"training was interrupted: {len(trained)} of {len(grid)} candidates were trained and are compared")
    return FoldGrid([grid[i] for i in trained], [TrainedStack.joined(done[i]) for i in trained])


_RUNGS = (0.25, 0.5)  # shares of the epochs after which candidates are compared
_CLEARLY = 2.0  # standard errors
_MARGIN = 0.1  # of the best loss


def clearly_worse(losses: NDArray[np.floating[Any]]) -> NDArray[np.bool_]:
    """Return which candidates to stop, given losses of shape (candidates, folds).

    A candidate is stopped if its loss exceeds the best one by a tenth and by two standard errors of the difference over
    folds. Candidates without a finite loss on every fold so far continue.

    Examples
    --------
    >>> import numpy as np
    >>> clearly_worse(np.array([[0.5, 0.6, 0.4], [0.52, 0.6, 0.44], [0.8, 0.9, 0.8]]))
    array([False, False,  True])
    """
    means = losses.mean(axis=1)
    best = int(np.argmin(np.where(np.isfinite(means), means, np.inf)))
    difference = losses - losses[best]
    with np.errstate(invalid="ignore"):  # a fold without a finite loss yet
        error = difference.std(axis=1, ddof=1) / np.sqrt(losses.shape[1]) if losses.shape[1] > 1 else np.inf
        worse: NDArray[np.bool_] = difference.mean(axis=1) > np.maximum(_MARGIN * means[best], _CLEARLY * error)
    return worse


class _Halving:
    """Callback that stops the members of clearly worse candidates at each rung."""

    def __init__(self, n_folds: int, max_epochs: int) -> None:
        self.n_folds = n_folds
        self.every = [math.ceil(share * max_epochs) for share in _RUNGS]

    def __call__(self, epoch: Epoch) -> NDArray[np.bool_] | None:
        """Return which members to stop."""
        if not epoch.active.any() or len(epoch.members) % self.n_folds:
            return None
        return np.repeat(clearly_worse(epoch.best_loss.reshape(-1, self.n_folds)), self.n_folds)


def _names(grid: Sequence[Candidate], fold_names: Sequence[str]) -> list[list[str]]:
    """Return names of the networks of every candidate and fold, with the strengths that differ."""
    strengths = [strengths_of(candidate) for candidate in grid]
    differ = [name for name in dict.fromkeys(itertools.chain(*strengths)) if len({s.get(name) for s in strengths}) > 1]
    labels = [", ".join(f"{name}={s[name]:g}" for name in differ if name in s) for s in strengths]
    if len(grid) == 1:
        return [list(fold_names)]
    if len(set(labels)) < len(labels) or "" in labels:
        labels = [f"candidate {i}" for i in range(len(grid))]
    return [[f"{label}, {fold}" for fold in fold_names] for label in labels]


def _parts(
    grid: list[Candidate], n_folds: int, rows: Table | Source, plan: Plan, most_members: int | None
) -> list[list[tuple[int, int]]]:
    """Split the grid into runs of members with the same regularizers that fit into memory."""
    table = rows if isinstance(rows, Table) else rows.table
    by_structure: dict[Any, list[int]] = {}
    for i, candidate in enumerate(grid):
        by_structure.setdefault(jax.tree.structure(candidate), []).append(i)
    parts = []
    for alike in by_structure.values():
        most = most_members or members_that_fit(
            replace(table, layout=replace(table.layout, embedding=plan.embedding)),
            plan.hidden_layer_sizes,
            grid[alike[0]],
        )
        cells = [(i, fold) for i in alike for fold in range(n_folds)]
        parts += [cells[start : start + most] for start in range(0, len(cells), most)]
    return parts


# Weights, Adam's two moments and the best weights; and temporarily the gradient, its update and copies between calls.
_COPIES_OF_WEIGHTS = 8
_SHARE = 0.5  # of the free memory
_FALLBACK = 4 * 2**30  # bytes, if the system does not report it


def members_that_fit(
    table: Table, hidden_layer_sizes: tuple[int, ...], regularizers: Sequence[Regularizer], memory: int | None = None
) -> int:
    """Return how many networks can be trained together, at least 1; ``memory`` is half of the free bytes by default.

    Examples
    --------
    >>> import numpy as np
    >>> from castlereg.layout import Layout, Node
    >>> table = Table(np.zeros((100, 3), np.float32), Layout((Node(), Node(), Node(target=True))))
    >>> narrow, wide = (members_that_fit(table, (w, w), (), memory=10**6) for w in (8, 99))
    >>> narrow > wide >= 1
    True
    """
    budget = int(_SHARE * free_memory()) if memory is None else memory
    return max(1, budget // bytes_of_a_member(table, hidden_layer_sizes, regularizers))


def bytes_of_a_member(table: Table, hidden_layer_sizes: tuple[int, ...], regularizers: Sequence[Regularizer]) -> int:
    """Estimate the memory of one network during training: weights, batches, and the rows of an epoch."""
    layout = table.layout
    weights = n_weights(layout, hidden_layer_sizes, len(trained_nodes(regularizers, layout)))
    rows = len(table.inputs)
    batches = 16 * 2 * rows  # indices of up to sixteen epochs, on the host and on the device
    epoch = rows * layout.n_channels // max(1, os.cpu_count() or 1)  # for the networks in training, one per core
    return 4 * (_COPIES_OF_WEIGHTS * weights + batches + epoch)


def n_weights(layout: Layout, hidden_layer_sizes: tuple[int, ...], n_trained: int) -> int:
    """Return the number of weights of a network, including biases."""
    widths = hidden_layer_sizes or (layout.output_width,)
    count = (layout.n_inputs + 1) * n_trained * widths[0]
    count += sum((fan_in + 1) * fan_out for fan_in, fan_out in itertools.pairwise(widths))
    if hidden_layer_sizes:
        count += n_trained * (widths[-1] + 1) * layout.output_width
    return count


def free_memory() -> int:
    """Return the free memory in bytes, within the limit of a container."""
    try:
        free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError, AttributeError):
        return _FALLBACK
    limit, used = Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory.current")
    try:
        return max(0, min(free, int(limit.read_text()) - int(used.read_text())))
    except (OSError, ValueError):  # not in a container, or no limit
        return int(free)
