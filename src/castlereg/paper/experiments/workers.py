"""Where units run: in this process or on any backend of joblib, such as processes (its default) or a Dask cluster."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any, NamedTuple

import jax
from joblib import Parallel, delayed, parallel_config

from castlereg.paper.experiments.description import Experiment, Record, Settings

_MOST_ATTEMPTS = 3
_PATIENCE = "10s"  # for a scheduler to answer


class Task(NamedTuple):
    """A unit to run."""

    experiment: Experiment
    settings: Settings


class Done(NamedTuple):
    """What became of a unit: records, or what went wrong."""

    experiment: str
    settings: Settings
    records: list[Record]
    seconds: float
    error: str = ""


def use_one_core() -> None:
    """Let this process train on one core, so that results do not depend on how many units run side by side.

    Must run before JAX starts its devices. In a process that has started them with one device it changes nothing.
    """
    flags = os.environ.get("XLA_FLAGS", "")
    if "xla_cpu_multi_thread_eigen" not in flags:
        os.environ["XLA_FLAGS"] = f"{flags} --xla_cpu_multi_thread_eigen=false".strip()
    config: Any = jax.config
    if config.jax_num_cpu_devices < 0:
        try:
            config.update("jax_num_cpu_devices", 1)
        except RuntimeError:
            pass  # the devices have started


def run_unit(task: Task) -> Done:
    """Run one unit in this process; an error becomes a message."""
    use_one_core()
    name, settings = task.experiment.name, task.settings
    begun = time.perf_counter()
    try:
        with parallel_config("sequential"):  # for what the unit itself would give to joblib
            records = task.experiment.measure(settings)
    except Exception as error:  # the other units go on
        return Done(name, settings, [], time.perf_counter() - begun, f"{type(error).__name__}: {error}")
    return Done(name, settings, records, time.perf_counter() - begun)


def run_units(tasks: Sequence[Task], jobs: int | None = None) -> Iterator[Done]:
    """Run units by joblib; yield each as it is done.

    Parameters
    ----------
    tasks : sequence of Task
    jobs : int, optional
        Units side by side, each on one core; 1 is this process. By default as many as the backend has, which
        :func:`joblib.parallel_config` chooses. A Dask cluster uses all its cores, whatever the number. Every worker
        needs castlereg, and the tables in ``CASTLEREG_DATA``.

    Yields
    ------
    Done
        Units that are left when workers have died three times come back as errors.
    """
    waiting, reason = dict(enumerate(tasks)), ""
    for _ in range(_MOST_ATTEMPTS):
        if not waiting:
            return
        try:
            with _quiet_workers():
                parallel = Parallel(jobs, batch_size=1, return_as="generator_unordered")
                for number, done in parallel(delayed(_numbered)(*pair) for pair in list(waiting.items())):
                    del waiting[number]
                    yield done
        except Exception as error:  # a unit's own errors are in `done`
            reason = type(error).__name__
    for task in waiting.values():
        message = f"its worker died ({reason}), perhaps for want of memory: run again with fewer --jobs"
        yield Done(task.experiment.name, task.settings, [], 0.0, message)


@contextmanager
def on_cluster(address: str) -> Iterator[None]:
    """Have joblib run on a Dask cluster.

    Parameters
    ----------
    address : str
        Of the scheduler, such as ``tcp://10.0.0.1:8786``.
    """
    try:
        distributed: Any = import_module("distributed")
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError('--cluster needs Dask: pip install "castlereg[dask]"') from error
    try:
        client = distributed.Client(address, timeout=_PATIENCE, set_as_default=False)
    except (OSError, TimeoutError, ValueError) as error:
        raise ConnectionError(f"no Dask scheduler answers at {address}: start one with `dask scheduler`") from error
    with client, parallel_config("dask", client=client):
        yield


def _numbered(number: int, task: Task) -> tuple[int, Done]:
    return number, run_unit(task)


@contextmanager
def _quiet_workers() -> Iterator[None]:
    """Hide that joblib replaces processes which have grown: those that compile many programs do."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "A worker stopped while some jobs were given", UserWarning)
        yield
