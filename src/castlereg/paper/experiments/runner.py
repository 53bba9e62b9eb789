"""Run what is not there yet and keep it."""

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

    Units are work items, see :func:`castlereg.work.run_items`: each is kept as soon as it is done, so that a run that
    was stopped goes on where it was, and several processes and machines may share the folder.

    Parameters
    ----------
    experiments : sequence of Experiment
    scale : {"quick", "standard", "paper"}
    folder : Path
        Where results are kept, one file per unit.
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
    listed, store = with_sources(experiments), _units_of(folder)
    there = store.keys()
    n_units = sum(len(one.units(scale)) for one in listed)
    waiting = [(one, unit) for one in listed for unit in one.units(scale) if item_key(one.item(unit)) not in there]
    failed: dict[str, str] = {}
    bar = tqdm(total=n_units, initial=n_units - len(waiting), unit="unit", disable=not verbose, smoothing=0.05)
    with bar:
        for done in _running(waiting, store, jobs):
            bar.set_postfix_str(done.item["experiment"])
            if done.error:
                failed[item_key(done.item)] = done.error
            bar.update()
    return _outcomes(experiments, scale, store, there, failed)


def collected(experiments: Sequence[Experiment], scale: Scale, folder: Path) -> dict[str, Outcome]:
    """Collect the results that a folder has, as :func:`run` returns them, and run nothing."""
    store = _units_of(folder)
    there = store.keys()
    missing = {
        item_key(experiment.item(unit)): "not run"
        for experiment in with_sources(experiments)
        for unit in experiment.units(scale)
    }
    return _outcomes(experiments, scale, store, there, {key: why for key, why in missing.items() if key not in there})


def _outcomes(
    experiments: Sequence[Experiment], scale: Scale, store: ResultFolder, before: set[str], failed: dict[str, str]
) -> dict[str, Outcome]:
    by_name = {part.name: _outcome(part, scale, store, before, failed) for part in with_sources(experiments)}
    return {
        experiment.name: _joined([by_name[part.name] for part in with_sources([experiment])])
        for experiment in experiments
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
    there = _units_of(folder).keys()
    return [unit for unit in experiment.units(scale) if item_key(experiment.item(unit)) not in there]


def _units_of(folder: Path) -> ResultFolder:
    return ResultFolder(folder / "units")


def _running(waiting: list[tuple[Experiment, Settings]], store: ResultFolder, jobs: int | None) -> Iterator[Done]:
    """Run units, the longest first so that none is left alone at the end, those that are timed one by one here."""
    ordered = sorted(waiting, key=lambda unit: unit[0].cost(unit[1]), reverse=True)
    measure = _Measure({experiment.name: experiment for experiment, _ in waiting})
    together, timed = ([one.item(unit) for one, unit in ordered if one.timed == timed] for timed in (False, True))
    yield from finished_items(measure, together, store.path, n_jobs=jobs)
    with parallel_config("sequential"):
        yield from finished_items(measure, timed, store.path, n_jobs=1)


@dataclass(frozen=True)
class _Measure:
    """What is done with an item: the experiment that it names measures its settings."""

    experiments: dict[str, Experiment]

    def __call__(self, item: dict[str, Any]) -> list[Record]:
        return self.experiments[item["experiment"]].measure(item["settings"])


def _outcome(
    experiment: Experiment, scale: Scale, store: ResultFolder, before: set[str], failed: dict[str, str]
) -> Outcome:
    """Collect what became of the units of an experiment, in their order."""
    units = {item_key(experiment.item(unit)): unit for unit in experiment.units(scale)}
    there = store.read(units)
    results = table_of([units[key] for key in there], [done.result for done in there.values()])
    return Outcome(
        results.assign(experiment=experiment.name),
        len(units),
        len(there.keys() - before),
        tuple((unit, failed[key]) for key, unit in units.items() if key in failed),
        scale,
    )


def _joined(parts: list[Outcome]) -> Outcome:
    frames = [part.results for part in parts if len(part.results)]
    return Outcome(
        pd.concat(frames, ignore_index=True) if frames else pd.DataFrame(),
        sum(part.n_units for part in parts),
        sum(part.n_new for part in parts),
        tuple(one for part in parts for one in part.failed),
        parts[0].scale,
    )
