"""Folds x candidates as members of one stack, and the choice among them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax
import numpy as np
from numpy.typing import NDArray
from tqdm.auto import tqdm

from castlereg.data.table import Table
from castlereg.notices import warn_user
from castlereg.regularizers import Castle, Regularizer
from castlereg.training import Member, Plan, TrainedStack, phases_for, train
from castlereg.training.memory import members_that_fit
from castlereg.training.sources import Source

Candidate = tuple[Regularizer, ...]


@dataclass(frozen=True)
class FoldGrid:
    """Networks trained on every fold with every candidate.

    Attributes
    ----------
    candidates : list of tuple of Regularizer
        Those that were trained on all folds: all of them, unless Ctrl-C came between.
    losses : array of shape (candidates, folds)
        Validation loss of each network at its best epoch.
    stack : TrainedStack
        Candidate by candidate, fold by fold.
    """

    candidates: list[Candidate]
    losses: NDArray[np.float64]
    stack: TrainedStack

    @property
    def best(self) -> int:
        """Index of the candidate with the lowest mean validation loss."""
        return choose(-self.losses)

    def of(self, folds: NDArray[np.int64]) -> FoldGrid:
        """Keep some folds, such as those of one split."""
        members = np.arange(len(self.candidates))[:, None] * self.losses.shape[1] + folds
        return FoldGrid(self.candidates, self.losses[:, folds], self.stack.take(members.ravel()))

    def trained(self, candidate: int) -> NDArray[np.int64]:
        """Return the folds on which a candidate's network had a finite loss."""
        return np.flatnonzero(np.isfinite(self.losses[candidate]))

    def networks(self, candidate: int, folds: NDArray[np.int64]) -> TrainedStack:
        """Return a candidate's networks of some folds."""
        return self.stack.take(candidate * self.losses.shape[1] + folds)


def choose(scores: NDArray[np.float64], strengths: Sequence[tuple[float, ...]] | None = None) -> int:
    """Choose a candidate by its mean score over folds.

    Parameters
    ----------
    scores : array of shape (candidates, folds)
        Higher is better.
    strengths : sequence of tuple of float, optional
        For the one-standard-error rule: of the candidates whose mean is within one standard error of the best one's,
        the strongest is chosen. By default the best one is.

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
    best = int(np.where(np.isnan(means), -np.inf, means).argmax())
    if strengths is None:
        return best
    n_folds = scores.shape[1]
    error = scores[best].std(ddof=1) / np.sqrt(n_folds) if n_folds > 1 else 0.0
    near = [i for i in range(len(scores)) if means[i] >= means[best] - error]
    return max(near, key=lambda i: (strengths[i], means[i]))


def strengths_of(candidate: Sequence[Regularizer]) -> dict[str, float]:
    """Name the strengths of a candidate's regularizers: ``L2.strength``; CASTLE's are ``reg_beta`` and ``reg_lambda``.

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
    progress: bool = False,
    most_members: int | None = None,
) -> FoldGrid:
    """Train one network per fold and candidate in a single run.

    Every network stops by the rows its fold leaves out. Networks of one fold start from the same weights and see the
    same batches, whatever their regularizers. A grid that does not fit into memory is trained in parts, which changes
    nothing: networks of a stack do not see each other.

    Parameters
    ----------
    rows : Table or Source
    folds : sequence of (train_rows, validation_rows)
    plan : Plan
        Its number of epochs is divided into the phases that each candidate needs.
    candidates : sequence of sequence of Regularizer
        Those with the same regularizers in different strengths are one program.
    seeds : sequence of SeedSequence
        Of each fold.
    progress : bool
        Show a progress bar over the whole grid.
    most_members : int, optional
        Networks to train at once; by default as many as fit into memory.

    Returns
    -------
    FoldGrid
    """
    grid = [tuple(candidate) for candidate in candidates]
    total = len(grid) * len(folds) * plan.max_epochs
    done: dict[int, list[TrainedStack]] = {}
    with tqdm(total=total, desc="training", unit="epoch", leave=False, disable=not progress) as bar:
        for part in _parts(grid, len(folds), rows, plan, most_members):
            members = [Member(*folds[fold], seeds[fold], grid[i]) for i, fold in part]
            phases = phases_for(grid[part[0][0]], plan.max_epochs, plan.warmup)
            stack = train(rows, members, replace(plan, phases=phases), progress=bar)
            for position, (i, _) in enumerate(part):
                done.setdefault(i, []).append(stack.take(np.array([position])))
            if stack.interrupted:
                break
    trained = [i for i in range(len(grid)) if len(done.get(i, [])) == len(folds)]
    if not trained:
        raise KeyboardInterrupt("training was interrupted before any candidate was trained on all folds")
    if len(trained) < len(grid):
        warn_user(f"training was interrupted: {len(trained)} of {len(grid)} candidates were trained and are compared")
    stack = TrainedStack.joined([stack for i in trained for stack in done[i]])
    losses = stack.validation_loss.astype(np.float64).reshape(len(trained), len(folds))
    return FoldGrid([grid[i] for i in trained], losses, stack)


def _parts(
    grid: list[Candidate], n_folds: int, rows: Table | Source, plan: Plan, most_members: int | None
) -> list[list[tuple[int, int]]]:
    """Cut the grid into runs of members with the same regularizers, candidate by candidate, that fit into memory."""
    table = rows if isinstance(rows, Table) else rows.table
    by_structure: dict[Any, list[int]] = {}
    for i, candidate in enumerate(grid):
        by_structure.setdefault(jax.tree.structure(candidate), []).append(i)
    parts = []
    for alike in by_structure.values():
        most = most_members or members_that_fit(table, plan.hidden_layer_sizes, grid[alike[0]])
        cells = [(i, fold) for i in alike for fold in range(n_folds)]
        parts += [cells[start : start + most] for start in range(0, len(cells), most)]
    return parts
