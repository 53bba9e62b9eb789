"""Where units run: processes of this machine, or a Dask cluster."""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from importlib import import_module
from typing import Any, NamedTuple

import jax

from castlereg.experiments.description import Experiment, Record, Settings

_MOST_BROKEN_POOLS = 3
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
        records = task.experiment.measure(settings)
    except Exception as error:  # the other units go on
        return Done(name, settings, [], time.perf_counter() - begun, f"{type(error).__name__}: {error}")
    return Done(name, settings, records, time.perf_counter() - begun)


def run_here(tasks: Sequence[Task], jobs: int) -> Iterator[Done]:
    """Run units in processes of this machine; yield each as it is done.

    Parameters
    ----------
    tasks : sequence of Task
    jobs : int
        Processes, each of which uses one core.

    Yields
    ------
    Done
        A unit whose process died three times comes back as an error.
    """
    waiting = list(tasks)
    for _ in range(_MOST_BROKEN_POOLS):
        if not waiting:
            return
        left: list[Task] = []
        pool = ProcessPoolExecutor(
            min(jobs, len(waiting)), multiprocessing.get_context("spawn"), initializer=use_one_core
        )
        try:
            futures = {pool.submit(run_unit, task): task for task in waiting}
            for future in as_completed(futures):
                if isinstance(future.exception(), BrokenProcessPool):
                    left.append(futures[future])
                else:
                    yield future.result()
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
        waiting = left
    for task in waiting:
        yield _failed(task, "its process died, perhaps for want of memory: run again with fewer --jobs")


def run_on_cluster(tasks: Sequence[Task], address: str) -> Iterator[Done]:
    """Run units on a Dask cluster; yield each as it is done.

    A unit whose worker dies is run on another. castlereg, and the tables in ``CASTLEREG_DATA``, must be
    there on every worker.

    Parameters
    ----------
    tasks : sequence of Task
    address : str
        Of the scheduler, such as ``tcp://10.0.0.1:8786``.

    Yields
    ------
    Done
    """
    if not tasks:
        return
    try:
        distributed: Any = import_module("distributed")
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError('--cluster needs Dask: pip install "castlereg[dask]"') from error
    try:
        client = distributed.Client(address, timeout=_PATIENCE, set_as_default=False)
    except (OSError, TimeoutError, ValueError) as error:
        raise ConnectionError(f"no Dask scheduler answers at {address}: start one with `dask scheduler`") from error
    with client:
        futures: dict[Any, Task] = {client.submit(run_unit, task, pure=False, retries=2): task for task in tasks}
        for future in distributed.as_completed(list(futures), loop=client.loop):
            yield _of_cluster(future, futures[future])


def _of_cluster(future: Any, task: Task) -> Done:
    try:
        done: Done = future.result()
    except Exception as error:  # its workers died again and again
        return _failed(task, f"{type(error).__name__}: {error}")
    return done


def _failed(task: Task, message: str) -> Done:
    return Done(task.experiment.name, task.settings, [], 0.0, message)
