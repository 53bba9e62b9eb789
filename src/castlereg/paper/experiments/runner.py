"""Run what is not there yet and keep it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
from tqdm.auto import tqdm

from castlereg.paper.experiments.description import Experiment, Scale, Settings, table_of
from castlereg.paper.experiments.registry import experiment_named
from castlereg.paper.experiments.store import Store, StoreError
from castlereg.paper.experiments.workers import Done, Task, run_unit, run_units


@dataclass(frozen=True)
class Outcome:
    """What a run did for one experiment.

    Attributes
    ----------
    results : DataFrame
        Records of all units that are done, in the order of the units, those of other experiments that this one reads
        first; the column ``experiment`` distinguishes them.
    n_units, n_new : int
        Units of the scale, and those that this run did.
    failed : tuple of (Settings, str)
        Units that could not be run or kept, and why.
    scale : str
    """

    results: pd.DataFrame
    n_units: int
    n_new: int
    failed: tuple[tuple[Settings, str], ...]
    scale: Scale

    @property
    def complete(self) -> bool:
        """Whether all units are done."""
        return not self.failed

    @property
    def messages(self) -> list[str]:
        """What went wrong, the same message once."""
        counts = Counter(message for _, message in self.failed)
        return [f"{number} unit{'s' if number > 1 else ''}: {message}" for message, number in counts.items()]


def run(
    experiments: Sequence[Experiment],
    scale: Scale,
    folder: Path,
    *,
    jobs: int | None = None,
    verbose: bool = True,
) -> dict[str, Outcome]:
    """Run the units of experiments that are not done yet, and of those that they read.

    Each unit is kept as soon as it is done, so that a run that was stopped goes on where it was.

    Parameters
    ----------
    experiments : sequence of Experiment
    scale : {"quick", "standard", "paper"}
    folder : Path
        Where results are kept, one file per experiment.
    jobs : int, optional
        Units side by side, each on one core, on the backend that :func:`joblib.parallel_config` chooses: processes of
        this machine by default. 1, the default there, runs them in this process.
    verbose : bool
        Show a bar with the time left.

    Returns
    -------
    dict of str to Outcome
        By name, of the experiments asked for.
    """
    work = {one.name: _Work(one, scale, folder) for one in with_sources(experiments)}
    waiting = [task for one in work.values() for task in one.waiting]
    n_units = sum(len(one.units) for one in work.values())
    bar = tqdm(total=n_units, initial=n_units - len(waiting), unit="unit", disable=not verbose, smoothing=0.05)
    with bar:
        for done in _running(waiting, jobs):
            bar.set_postfix_str(done.experiment)
            work[done.experiment].keep(done)
            bar.update()
    own = {name: one.outcome() for name, one in work.items()}
    return {
        experiment.name: _joined([own[one.name] for one in with_sources([experiment])]) for experiment in experiments
    }


def with_sources(experiments: Sequence[Experiment]) -> list[Experiment]:
    """List experiments, each behind those that it reads, none twice."""
    ordered: dict[str, Experiment] = {}
    for experiment in experiments:
        for name in experiment.sources:
            ordered.setdefault(name, experiment_named(name))
        ordered.setdefault(experiment.name, experiment)
    return list(ordered.values())


def waiting_units(experiment: Experiment, scale: Scale, folder: Path) -> list[Settings]:
    """Return the units of this experiment that a run would do; touches no file."""
    units = experiment.units(scale)
    path = folder / f"{experiment.name}.sqlite"
    there = Store(path).records(map(experiment.key, units)) if path.exists() else {}
    return [unit for unit in units if experiment.key(unit) not in there]


class _Work:
    """Units of one experiment while they run."""

    def __init__(self, experiment: Experiment, scale: Scale, folder: Path) -> None:
        self.experiment, self.scale, self.units = experiment, scale, experiment.units(scale)
        self.failed: list[tuple[Settings, str]] = []
        self.waiting: list[Task] = []
        self.store: Store | None = None
        if not self.units:
            return
        try:
            self.store = Store(folder / f"{experiment.name}.sqlite")
            there = self.store.records(self.keys)
        except StoreError as error:  # the other experiments go on
            self.failed = [(unit, str(error)) for unit in self.units]
            return
        pairs = zip(self.units, self.keys, strict=True)
        self.waiting = [Task(experiment, unit) for unit, key in pairs if key not in there]

    @property
    def keys(self) -> list[str]:
        return [self.experiment.key(unit) for unit in self.units]

    def keep(self, done: Done) -> None:
        error = done.error
        if not error:
            assert self.store is not None
            try:
                self.store.put(self.experiment.key(done.settings), done.settings, done.records, done.seconds)
            except StoreError as full:
                error = str(full)
        if error:
            self.failed.append((done.settings, error))

    def outcome(self) -> Outcome:
        if self.store is None:
            return Outcome(pd.DataFrame(), len(self.units), 0, tuple(self.failed), self.scale)
        there = self.store.records(self.keys)
        kept = [(unit, there[key]) for unit, key in zip(self.units, self.keys, strict=True) if key in there]
        results = table_of([unit for unit, _ in kept], [records for _, records in kept])
        order = {key: place for place, key in enumerate(self.keys)}
        failed = sorted(self.failed, key=lambda one: order[self.experiment.key(one[0])])
        n_new = len(self.waiting) - len(failed)
        results = results.assign(experiment=self.experiment.name)
        return Outcome(results, len(self.units), n_new, tuple(failed), self.scale)


def _joined(parts: list[Outcome]) -> Outcome:
    frames = [part.results for part in parts if len(part.results)]
    return Outcome(
        pd.concat(frames, ignore_index=True) if frames else pd.DataFrame(),
        sum(part.n_units for part in parts),
        sum(part.n_new for part in parts),
        tuple(one for part in parts for one in part.failed),
        parts[0].scale,
    )


def _running(tasks: list[Task], jobs: int | None) -> Iterator[Done]:
    """Run tasks, the longest first so that none is left alone at the end, those that are timed one by one here."""
    ordered = sorted(tasks, key=lambda task: task.experiment.cost(task.settings), reverse=True)
    yield from run_units([task for task in ordered if not task.experiment.timed], jobs)
    yield from map(run_unit, (task for task in ordered if task.experiment.timed))
