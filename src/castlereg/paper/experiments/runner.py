"""Run the missing units of experiments and store their results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from joblib import parallel_config
from tqdm.auto import tqdm

from castlereg.paper.experiments.description import Experiment, Record, Scale, Settings, table_of
from castlereg.paper.experiments.registry import experiment_named
from castlereg.work import Done, ResultFolder, finished_items, item_key


@dataclass(frozen=True)
class Outcome:
    """Outcome of a run for one experiment.

    Attributes
    ----------
    results : DataFrame
        Records of all finished units, in the order of the units. Records of other experiments that this one reads come
        first; the column ``experiment`` distinguishes them.
    n_units, n_new : int
        Number of units of the scale, and number of units finished by this run.
    failed : tuple of (Settings, str)
        Units that could not be run or stored, and the reasons.
    scale : str
    """

    results: pd.DataFrame
    n_units: int
    n_new: int
    failed: tuple[tuple[Settings, str], ...]
    scale: Scale

    @property
    def complete(self) -> bool:
        """Whether all units are finished."""
        return not self.failed

    @property
    def messages(self) -> list[str]:
        """Error messages, without duplicates."""
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
    """Run the unfinished units of experiments and of their sources.

    Units are work items, see :func:`castlereg.work.run_items`. Each result is stored as soon as its unit is finished,
    so a stopped run can be continued, and several processes and machines can share the folder.

    Parameters
    ----------
    experiments : sequence of Experiment
    scale : {"quick", "standard", "paper"}
    folder : Path
        Folder for the results, one file per unit.
    jobs : int, optional
        Number of units to run in parallel, each on one core, on the backend of :func:`joblib.parallel_config`: by
        default, processes on this machine. 1, the default there, runs all units in this process.
    verbose : bool
        Show a progress bar with the remaining time.

    Returns
    -------
    dict of str to Outcome
        Outcomes of the requested experiments, by name.
    """
    listed, store = with_sources(experiments), _units_of(folder)
    stored = store.keys()
    n_units = sum(len(each.units(scale)) for each in listed)
    waiting = [(each, unit) for each in listed for unit in each.units(scale) if item_key(each.item(unit)) not in stored]
    failed: dict[str, str] = {}
    bar = tqdm(total=n_units, initial=n_units - len(waiting), unit="unit", disable=not verbose, smoothing=0.05)
    with bar:
        for done in _running(waiting, store, jobs):
            bar.set_postfix_str(done.item["experiment"])
            if done.error:
                failed[item_key(done.item)] = done.error
            bar.update()
    return _outcomes(experiments, scale, store, stored, failed)


def collected(experiments: Sequence[Experiment], scale: Scale, folder: Path) -> dict[str, Outcome]:
    """Collect the results in a folder in the form of :func:`run`, without running anything."""
    store = _units_of(folder)
    stored = store.keys()
    missing = {
        item_key(experiment.item(unit)): "not run"
        for experiment in with_sources(experiments)
        for unit in experiment.units(scale)
    }
    not_run = {key: reason for key, reason in missing.items() if key not in stored}
    return _outcomes(experiments, scale, store, stored, not_run)


def _outcomes(
    experiments: Sequence[Experiment], scale: Scale, store: ResultFolder, before: set[str], failed: dict[str, str]
) -> dict[str, Outcome]:
    by_name = {part.name: _outcome(part, scale, store, before, failed) for part in with_sources(experiments)}
    return {
        experiment.name: _joined([by_name[part.name] for part in with_sources([experiment])])
        for experiment in experiments
    }


def with_sources(experiments: Sequence[Experiment]) -> list[Experiment]:
    """List experiments, each once and after its sources."""
    ordered: dict[str, Experiment] = {}
    for experiment in experiments:
        for name in experiment.sources:
            ordered.setdefault(name, experiment_named(name))
        ordered.setdefault(experiment.name, experiment)
    return list(ordered.values())


def waiting_units(experiment: Experiment, scale: Scale, folder: Path) -> list[Settings]:
    """Return the units of this experiment that a run would do; changes no file."""
    stored = _units_of(folder).keys()
    return [unit for unit in experiment.units(scale) if item_key(experiment.item(unit)) not in stored]


def _units_of(folder: Path) -> ResultFolder:
    return ResultFolder(folder / "units")


def _running(waiting: list[tuple[Experiment, Settings]], store: ResultFolder, jobs: int | None) -> Iterator[Done]:
    """Run units, longest first to keep all cores busy; units that are timed run one by one in this process."""
    ordered = sorted(waiting, key=lambda unit: unit[0].cost(unit[1]), reverse=True)
    measure = _Measure({experiment.name: experiment for experiment, _ in waiting})
    parallel, timed = ([each.item(unit) for each, unit in ordered if each.timed == timed] for timed in (False, True))
    yield from finished_items(measure, parallel, store.path, n_jobs=jobs)
    with parallel_config("sequential"):
        yield from finished_items(measure, timed, store.path, n_jobs=1)


@dataclass(frozen=True)
class _Measure:
    """Run an item: the experiment that it names measures its settings."""

    experiments: dict[str, Experiment]

    def __call__(self, item: dict[str, Any]) -> list[Record]:
        return self.experiments[item["experiment"]].measure(item["settings"])


def _outcome(
    experiment: Experiment, scale: Scale, store: ResultFolder, before: set[str], failed: dict[str, str]
) -> Outcome:
    """Collect the outcome of an experiment, in the order of its units."""
    units = {item_key(experiment.item(unit)): unit for unit in experiment.units(scale)}
    finished = store.read(units)
    results = table_of([units[key] for key in finished], [done.result for done in finished.values()])
    return Outcome(
        results.assign(experiment=experiment.name),
        len(units),
        len(finished.keys() - before),
        tuple((unit, failed[key]) for key, unit in units.items() if key in failed),
        scale,
    )


def _joined(parts: list[Outcome]) -> Outcome:
    frames = [part.results for part in parts if len(part.results)]
    return Outcome(
        pd.concat(frames, ignore_index=True) if frames else pd.DataFrame(),
        sum(part.n_units for part in parts),
        sum(part.n_new for part in parts),
        tuple(unit for part in parts for unit in part.failed),
        parts[0].scale,
    )
