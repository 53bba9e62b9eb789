"""Search over a pool: train stage by stage on the same folds, and blend the candidates by greedy selection."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata
from sklearn.exceptions import ConvergenceWarning
from tqdm.auto import tqdm

from castlereg.fitted.blend import Blend, targets_only
from castlereg.fitted.held_out import HeldOut, HeldOutPredictions
from castlereg.fitted.networks import Networks
from castlereg.fitted.row_losses import RowLosses
from castlereg.fitted.thresholds import by_node, into_targets, selected_columns
from castlereg.notices import warn_user
from castlereg.search.ensemble import greedy_weights
from castlereg.search.grid import Candidate, strengths_of, train_folds
from castlereg.search.linear import linear_forms, solve_linear
from castlereg.search.pool import Stage
from castlereg.search.request import Assignment
from castlereg.table.table import Table
from castlereg.training import TrainedStack
from castlereg.training.callbacks import Callback, TimeLimit
from castlereg.training.loop import OnInterrupt


@dataclass(frozen=True)
class Trained:
    """A candidate with one network per fold."""

    name: str
    stage: str
    candidate: Candidate  # empty for the linear form
    stack: TrainedStack
    networks: Networks
    predicted: Sequence[NDArray[np.float64]]  # held-out rows, each predicted by the network that was not trained on it
    loss: float  # of the held-out rows
    row_losses: NDArray[np.float64]  # (rows,)
    seconds: float

    @property
    def has_graph(self) -> bool:
        """Whether the sub-networks of all columns were trained."""
        return self.networks.has_all_nodes


@dataclass
class PoolRun:
    """State of a search: the candidates trained so far."""

    rows: Assignment
    held_out: HeldOut
    losses: RowLosses
    trained: list[Trained] = field(default_factory=list)
    used: NDArray[np.bool_] | None = None  # (folds, columns), selected for the refit, in the user's order

    @classmethod
    def of(cls, rows: Assignment) -> PoolRun:
        """Create a search with the held-out rows of the folds."""
        held_out = rows.held_out(np.arange(len(rows.folds)))
        return cls(rows, held_out, RowLosses(rows.preprocessing.targets, held_out.truth, held_out.weight))

    def run(
        self,
        stages: Sequence[Stage],
        *,
        verbose: bool = False,
        on_interrupt: OnInterrupt = "raise",
        time_limit: float | None = None,
        callbacks: Sequence[Callback] = (),
    ) -> None:
        """Solve the linear forms, then train stage by stage until the time limit or, with "keep", Ctrl-C."""
        limit = None if time_limit is None else TimeLimit(time_limit)
        callbacks = callbacks if limit is None else (*callbacks, limit)
        table = self.rows.source
        assert isinstance(table, Table)
        self._solve_linear(table)
        total = sum(len(stage.candidates) * len(self.rows.folds) * stage.plan.max_epochs for stage in stages)
        with tqdm(total=total, desc="search", unit="epoch", leave=False, disable=not verbose) as bar:
            for number, stage in enumerate(stages):
                if number and limit is not None and limit.is_over:
                    break
                try:
                    interrupted = self._train(table, stage, bar, on_interrupt, callbacks)
                except KeyboardInterrupt:
                    if on_interrupt == "raise" or not number:  # the first stage is needed for a graph
                        raise
                    interrupted = True
                except FloatingPointError as error:
                    if number == len(stages) - 1 and not self.networks:
                        raise
                    warn_user(f"the candidates of stage {stage.name!r} are skipped: {error}", ConvergenceWarning)
                    continue
                if interrupted:
                    warn_user(f"the search was interrupted: the {len(self.trained)} candidates trained so far are used")
                    break

    def _solve_linear(self, table: Table) -> None:
        begun = time.perf_counter()
        forms = linear_forms(table.layout)
        stacks = solve_linear(table, self.rows.folds, forms)
        seconds = (time.perf_counter() - begun) / len(forms)
        for form, stack in zip(forms, stacks, strict=True):
            self._add(form.name, "linear", (), stack, seconds)

    @property
    def networks(self) -> list[Trained]:
        """Candidates with hidden layers."""
        return [candidate for candidate in self.trained if candidate.stage != "linear"]

    def _train(
        self, table: Table, stage: Stage, bar: Any, on_interrupt: OnInterrupt, callbacks: Sequence[Callback]
    ) -> bool:
        """Train the candidates of a stage; return whether Ctrl-C interrupted it."""
        begun, before = time.perf_counter(), bar.n
        all_epochs = len(stage.candidates) * len(self.rows.folds) * stage.plan.max_epochs
        used = self._selected() if stage.refit else None
        if stage.refit and used is None:
            bar.update(all_epochs)
            return False
        bar.set_description(stage.name)
        grid = train_folds(
            table,
            self.rows.folds,
            stage.plan,
            candidates=stage.candidates,
            seeds=self.rows.seeds,
            progress=bar,
            on_interrupt=on_interrupt,
            used=used,
            halving=True,
            stage=stage.name,
            callbacks=callbacks,
        )
        bar.update(before + all_epochs - bar.n)
        seconds = (time.perf_counter() - begun) / len(grid.stacks)
        for candidate, stack in zip(grid.candidates, grid.stacks, strict=True):
            if np.isfinite(stack.validation_loss).all():
                label = stage.label(stage.candidates.index(candidate))
                self._add(label, stage.name, candidate, stack, seconds)
        return any(stack.interrupted for stack in grid.stacks)

    def _selected(self) -> list[NDArray[np.bool_]] | None:
        """Select the columns of each fold with the best candidate of the first stage; return masks of nodes.

        None if there is nothing to refit: no such candidate, or one that needs all of its columns.
        """
        if not self.networks:
            return None
        first = self.networks[0].stage
        of_first = [candidate for candidate in self.networks if candidate.stage == first]
        best = min(of_first, key=lambda candidate: candidate.loss)
        self.used = selected_columns(best.networks, self.held_out)
        needs_all = np.array_equal(self.used, into_targets(best.networks) > 0)
        return None if needs_all else by_node(self.used, self.rows.preprocessing)

    def _add(self, name: str, stage: str, candidate: Candidate, stack: TrainedStack, seconds: float) -> None:
        networks = Networks.of(self.rows.preprocessing, stack)
        predicted = HeldOutPredictions.of(networks, self.held_out).predicted
        by_row = self.losses(predicted)
        if np.isfinite(by_row).all():
            self.trained.append(
                Trained(name, stage, candidate, stack, networks, predicted, float(by_row.mean()), by_row, seconds)
            )

    def blend(self) -> tuple[Blend, NDArray[np.float64]]:
        """Select candidates greedily; return their blend, and the weights of all candidates."""
        weights = greedy_weights([candidate.predicted for candidate in self.trained], self.losses)
        chosen = np.flatnonzero(weights)
        parts = tuple(targets_only(self.trained[i].networks) for i in chosen)
        return Blend(parts, weights[chosen], tuple(self.trained[i].name for i in chosen)), weights

    def results(self, weights: NDArray[np.float64]) -> dict[str, Any]:
        """Return the results of all candidates in the format of scikit-learn's searches, with more columns."""
        by_fold = [
            -np.array([candidate.row_losses[rows].mean() for rows in self.held_out.by_member])
            for candidate in self.trained
        ]
        scores = np.array(by_fold)
        results: dict[str, Any] = {
            "candidate": [candidate.name for candidate in self.trained],
            "stage": [candidate.stage for candidate in self.trained],
            "weight": weights,
            "loss": np.array([candidate.loss for candidate in self.trained]),
            "mean_fit_time": np.array([candidate.seconds for candidate in self.trained]) / scores.shape[1],
            "params": [strengths_of(candidate.candidate) for candidate in self.trained],
        }
        results |= {f"split{fold}_test_score": scores[:, fold] for fold in range(scores.shape[1])}
        results["mean_test_score"], results["std_test_score"] = scores.mean(axis=1), scores.std(axis=1)
        results["rank_test_score"] = rankdata(-scores.mean(axis=1), method="min").astype(np.int32)
        return results
