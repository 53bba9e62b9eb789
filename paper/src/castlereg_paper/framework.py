"""Methods x tables x splits: units of work that run on any backend of joblib, with one file per result.

:func:`run_units` runs a function on items and keeps each result; :func:`castlereg_paper.compare` and all experiments
use it. An :class:`Experiment` lists units, measures them and summarizes their records; :func:`run` runs what is
missing.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time
import warnings
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, NamedTuple

import numpy as np
import pandas as pd
from joblib import Parallel, delayed, effective_n_jobs, parallel_config
from joblib.parallel import get_active_backend
from tqdm.auto import tqdm

from castlereg.atomic_write import atomic_write

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# --- units and their results ---------------------------------------------------------------------------


class Done(NamedTuple):
    """An item that has run, with its result or its error."""

    item: Any
    result: Any
    seconds: float
    error: Exception | None = None


def item_key(item: Any) -> str:
    """Return the name of an item's file: a digest of the item as JSON.

    Examples
    --------
    >>> item_key({"beta": 0.1, "seed": 3}) == item_key({"seed": 3, "beta": 0.1})
    True
    """
    return hashlib.sha256(json.dumps(item, sort_keys=True, default=_plain).encode()).hexdigest()


class Results:
    """Results of items by key: one JSON file each, which appears when it is complete.

    Parameters
    ----------
    folder : Path, optional
        Created when the first result is written; None keeps the results in memory.

    Examples
    --------
    >>> results = Results(None)
    >>> [done.result for done in run_units(lambda item: item["n"] ** 2, [{"n": 3}, {"n": 4}], results)]
    [9, 16]
    >>> results.read([item_key({"n": 4})])[item_key({"n": 4})].result
    16
    """

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder
        self._in_memory: dict[str, Done] = {}

    def keys(self) -> set[str]:
        """Return the keys of all items that are done."""
        return set(self._in_memory) if self.folder is None else {file.stem for file in self.folder.glob("*.json")}

    def read(self, keys: Iterable[str]) -> dict[str, Done]:
        """Return the items that are done, by key."""
        stored = self.keys()
        return {key: self._read(key) for key in dict.fromkeys(keys) if key in stored}

    def write(self, done: Done) -> None:
        """Keep the result of an item."""
        key = item_key(done.item)
        if self.folder is None:
            self._in_memory[key] = done
            return
        content = json.dumps({"item": done.item, "result": done.result, "seconds": done.seconds}, default=_plain)
        self.folder.mkdir(parents=True, exist_ok=True)
        with atomic_write(self.folder / f"{key}.json") as file:
            file.write(content.encode())

    def _read(self, key: str) -> Done:
        """Read one result."""
        if self.folder is None:
            return self._in_memory[key]
        path = self.folder / f"{key}.json"
        try:
            content = json.loads(path.read_bytes())
            return Done(content["item"], content["result"], content["seconds"])
        except (ValueError, LookupError, TypeError) as error:
            raise ValueError(f"{path} is not the result of a unit ({error}); delete it and run again") from None


def _plain(value: Any) -> Any:
    """Convert numbers and arrays of NumPy for JSON."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    raise TypeError(f"objects of type {type(value).__name__} have no JSON form")


def run_units(
    function: Callable[[Any], Any], items: Iterable[Any], results: Results, *, jobs: int | None = None
) -> Iterator[Done]:
    """Call a function on the items that have no result yet; yield each when it is done, and keep its result.

    Items run on the backend that :func:`joblib.parallel_config` selects: by default in this process, with ``jobs`` in
    several, and on Dask or Ray if these are registered. Only this process writes results. An item that raises is
    yielded with its error, and no result is kept.

    Parameters
    ----------
    function : callable
        Takes an item and returns numbers, strings, lists and dicts of these.
    items : iterable
        Numbers, strings, lists and dicts of these. An item contains everything that its result depends on.
    results : Results
    jobs : int, optional
        Number of items that run in parallel; by default that of :func:`joblib.parallel_config`.
    """
    stored = results.keys()
    waiting = {key: item for item in items if (key := item_key(item)) not in stored}
    if not waiting:
        return
    with warnings.catch_warnings():
        # joblib replaces processes that have grown, as those that compile many programs do
        warnings.filterwarnings("ignore", "A worker stopped while some jobs were given", UserWarning)
        calls = (delayed(_run_unit)(function, item) for item in waiting.values())
        for done in _in_parallel(list(calls), jobs):
            if done.error is None:
                try:
                    results.write(done)
                except (OSError, TypeError) as error:  # such as a full disk, or a result without a JSON form
                    done = done._replace(error=error)
            yield done


def _in_parallel(calls: list[Any], jobs: int | None) -> Iterator[Done]:
    """Yield results as they are done; backends that return only lists, such as Ray's, get the calls in parts."""
    if get_active_backend()[0].supports_return_generator:
        yield from Parallel(jobs, batch_size=1, return_as="generator_unordered")(calls)
        return
    size = 4 * effective_n_jobs(jobs)
    for start in range(0, len(calls), size):
        yield from Parallel(jobs, batch_size=1)(calls[start : start + size])


def _run_unit(function: Callable[[Any], Any], item: Any) -> Done:
    """Call the function on one item."""
    begun = time.perf_counter()
    try:
        with parallel_config("sequential"):  # for joblib calls inside the function
            result = function(item)
    except Exception as error:  # the other items continue
        return Done(item, None, time.perf_counter() - begun, error)
    return Done(item, result, time.perf_counter() - begun)


# --- experiments ---------------------------------------------------------------------------------------

Scale = Literal["quick", "standard", "paper"]
SCALES: Final[tuple[Scale, ...]] = ("quick", "standard", "paper")
Settings = Mapping[str, str | int | float]
Record = dict[str, Any]
Judgement = Literal["reproduced", "partly", "not reproduced", "cannot be met", "not in the paper"]


@dataclass(frozen=True)
class Verdict:
    """The verdict on a claim of the paper: the claim in our words, and the reason with the deciding figures."""

    claim: str
    judgement: Judgement
    reason: str


@dataclass(frozen=True)
class Experiment(ABC):
    """One table or figure of the paper, or an experiment beyond it.

    A *unit* is a flat mapping of all settings that its result depends on: the same settings give the same records, in
    any process and on any machine of the same kind. Results are therefore stored by the settings of the unit, and all
    scales share them. Subclasses implement :meth:`units`, :meth:`measure` and :meth:`summary`.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    shown_in: ClassVar[str]  # table or figure of the paper
    revision: ClassVar[int] = 1  # increase it when the same settings give other records
    sources: ClassVar[tuple[type[Experiment], ...]] = ()  # experiments whose results this one also reads
    timed: ClassVar[bool] = False  # whether it measures seconds, so its units must not run in parallel
    explanation: ClassVar[str] = ""  # for readers of the table

    @abstractmethod
    def units(self, scale: Scale) -> list[Settings]:
        """List the units of a scale."""

    @abstractmethod
    def measure(self, settings: Settings) -> list[Record]:
        """Run a unit; return records of plain numbers and text."""

    @abstractmethod
    def summary(self, results: pd.DataFrame) -> pd.DataFrame:
        """Summarize the records of all units, with their settings as columns, in a readable table."""

    def draw(self, results: pd.DataFrame) -> Figure | None:
        """Draw the figure, in the form of the paper if it has one."""
        return None

    def verdicts(self, results: pd.DataFrame) -> list[Verdict]:
        """Judge the paper's claims."""
        return []

    def cost(self, settings: Settings) -> float:
        """Estimate the seconds of a unit on one core."""
        return 1.0

    def item(self, settings: Settings) -> dict[str, Any]:
        """Return a unit with everything that its results depend on."""
        return {"experiment": self.name, "revision": self.revision, "settings": dict(settings)}


@dataclass(frozen=True)
class Outcome:
    """Outcome of a run for one experiment."""

    results: pd.DataFrame  # records in the order of the units, after those of sources; ``experiment`` names each
    n_units: int  # of the scale
    n_new: int  # units that this run finished
    failed: tuple[tuple[Settings, str], ...]  # units that could not be run or stored, and the reasons
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
    experiments: Sequence[Experiment], scale: Scale, folder: Path, *, jobs: int | None = None, verbose: bool = True
) -> dict[str, Outcome]:
    """Run the unfinished units of experiments and of their sources.

    Results are stored in the folder, one file per unit, as soon as the unit is finished, so a stopped run can be
    continued. ``jobs`` units run in parallel, each on one core; see :func:`run_units`.
    """
    listed, results = with_sources(experiments), _results_in(folder)
    stored = results.keys()
    waiting = [(each, unit) for each in listed for unit in each.units(scale) if item_key(each.item(unit)) not in stored]
    waiting.sort(key=lambda unit: unit[0].cost(unit[1]), reverse=True)  # longest first, to keep all cores busy
    parallel, timed = ([each.item(unit) for each, unit in waiting if each.timed == timed] for timed in (False, True))
    measure = _Measure({experiment.name: experiment for experiment in listed})
    failed: dict[str, str] = {}
    n_units = sum(len(each.units(scale)) for each in listed)
    bar = tqdm(total=n_units, initial=n_units - len(waiting), unit="unit", disable=not verbose, smoothing=0.05)

    def note(done: Done) -> None:
        if done.error is not None:
            failed[item_key(done.item)] = f"{type(done.error).__name__}: {done.error}"
        bar.set_postfix_str(done.item["experiment"])
        bar.update()

    with bar:
        for done in run_units(measure, parallel, results, jobs=jobs):
            note(done)
        with parallel_config("sequential"):  # one by one in this process
            for done in run_units(measure, timed, results, jobs=1):
                note(done)
    return _outcomes(experiments, scale, results, stored, failed)


@dataclass(frozen=True)
class _Measure:
    """Run an item on one core: the experiment that it names measures its settings."""

    experiments: dict[str, Experiment]

    def __call__(self, item: dict[str, Any]) -> list[Record]:
        _use_one_core()
        return self.experiments[item["experiment"]].measure(item["settings"])


def _use_one_core() -> None:
    """Let this process train on one core, so that results do not depend on how many units run in parallel.

    In a process in which JAX has started its devices, this changes nothing.
    """
    flags = os.environ.get("XLA_FLAGS", "")
    if "xla_cpu_multi_thread_eigen" not in flags:
        os.environ["XLA_FLAGS"] = f"{flags} --xla_cpu_multi_thread_eigen=false".strip()
    if "jax" not in sys.modules:  # not every unit needs JAX
        os.environ.setdefault("JAX_NUM_CPU_DEVICES", "1")
        return
    config: Any = sys.modules["jax"].config
    if config.jax_num_cpu_devices < 0:
        try:
            config.update("jax_num_cpu_devices", 1)
        except RuntimeError:
            pass  # the devices have started


def collected(experiments: Sequence[Experiment], scale: Scale, folder: Path) -> dict[str, Outcome]:
    """Collect the results in a folder in the form of :func:`run`, without running anything."""
    results = _results_in(folder)
    stored = results.keys()
    keys = [item_key(each.item(unit)) for each in with_sources(experiments) for unit in each.units(scale)]
    return _outcomes(experiments, scale, results, stored, {key: "not run" for key in keys if key not in stored})


def waiting_units(experiment: Experiment, scale: Scale, folder: Path) -> list[Settings]:
    """Return the units of this experiment that a run would do; changes no file."""
    stored = _results_in(folder).keys()
    return [unit for unit in experiment.units(scale) if item_key(experiment.item(unit)) not in stored]


def with_sources(experiments: Sequence[Experiment]) -> list[Experiment]:
    """List experiments, each once and after its sources."""
    ordered: dict[str, Experiment] = {}
    for experiment in experiments:
        for source in experiment.sources:
            ordered.setdefault(source.name, source())
        ordered.setdefault(experiment.name, experiment)
    return list(ordered.values())


def _results_in(folder: Path) -> Results:
    """Return the results of units in the folder of a run."""
    return Results(folder / "units")


def _outcomes(
    experiments: Sequence[Experiment], scale: Scale, results: Results, before: set[str], failed: dict[str, str]
) -> dict[str, Outcome]:
    """Return the outcome of each experiment, with the records of its sources."""
    by_name = {part.name: _outcome(part, scale, results, before, failed) for part in with_sources(experiments)}
    outcomes = {}
    for experiment in experiments:
        parts = [by_name[part.name] for part in with_sources([experiment])]
        frames = [part.results for part in parts if len(part.results)]
        outcomes[experiment.name] = Outcome(
            pd.concat(frames, ignore_index=True) if frames else pd.DataFrame(),
            sum(part.n_units for part in parts),
            sum(part.n_new for part in parts),
            tuple(unit for part in parts for unit in part.failed),
            scale,
        )
    return outcomes


def _outcome(
    experiment: Experiment, scale: Scale, results: Results, before: set[str], failed: dict[str, str]
) -> Outcome:
    """Collect the outcome of one experiment, in the order of its units."""
    units = {item_key(experiment.item(unit)): unit for unit in experiment.units(scale)}
    finished = results.read(units)
    records = [{**units[key], **record} for key, done in finished.items() for record in done.result]
    return Outcome(
        pd.DataFrame(records).assign(experiment=experiment.name),
        len(units),
        len(finished.keys() - before),
        tuple((unit, failed[key]) for key, unit in units.items() if key in failed),
        scale,
    )
